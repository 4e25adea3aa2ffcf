//! A question in full, as lines: all of a call, with everything spelled out that can't be seen, since it is what is
//! agreed to.

use provost_event::EffectId;
use provost_view::{AnswerField, visible};
use serde_json::Value;

use super::Tone;
use super::text::{Breaks, width, wrapped};
use crate::app::Asked;

/// Columns before the lines of an argument.
const INDENT: usize = 2;

/// The lines of one question, made once for a width.
#[derive(Debug, Default)]
pub(crate) struct Body {
    made_for: Option<(EffectId, usize)>,
    lines: Vec<(String, Tone)>,
}

impl Body {
    pub(crate) fn lines(&self) -> &[(String, Tone)] {
        &self.lines
    }

    /// Makes the lines, if they aren't those of this question in this width.
    pub(crate) fn fit(&mut self, asked: &Asked<'_>, columns: usize) {
        let made_for = (asked.question.id(), columns);
        if self.made_for == Some(made_for) {
            return;
        }
        self.made_for = Some(made_for);
        self.lines = lines(asked, columns);
    }
}

fn lines(asked: &Asked<'_>, columns: usize) -> Vec<(String, Tone)> {
    let question = asked.question;
    let mut lines = Vec::new();
    let fields = match question.input.read::<Value>() {
        Ok(Value::Object(fields)) => fields.into_iter().collect::<Vec<_>>(),
        Ok(other) => vec![(String::new(), other)],
        Err(_) => vec![(String::new(), Value::from(question.input.text()))],
    };
    for (name, value) in &fields {
        // A single text stands for itself.
        if fields.len() > 1 {
            lines.push((visible(name), Tone::Dim));
        }
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        for line in text.split('\n') {
            let pieces = wrapped(&visible(line), columns.saturating_sub(INDENT), Breaks::Anywhere);
            let tone = tone_of(&text, line);
            lines.extend(pieces.into_iter().map(|piece| (format!("  {piece}"), tone)));
        }
    }
    lines.push((String::new(), Tone::Plain));
    for (label, text) in reasons(asked) {
        let label = format!("{label:<9}");
        let pieces = wrapped(&visible(&text), columns.saturating_sub(width(&label)), Breaks::Anywhere);
        for (number, piece) in pieces.into_iter().enumerate() {
            let label = if number == 0 { label.clone() } else { " ".repeat(width(&label)) };
            lines.push((format!("{label}{piece}"), Tone::Dim));
        }
    }
    lines
}

/// Lines of a diff show what they do.
fn tone_of(text: &str, line: &str) -> Tone {
    if !text.contains("\n@@ ") && !text.starts_with("@@ ") {
        return Tone::Strong;
    }
    match line.as_bytes().first() {
        Some(b'+') => Tone::Done,
        Some(b'-') => Tone::Failed,
        _ => Tone::Plain,
    }
}

fn reasons(asked: &Asked<'_>) -> Vec<(&'static str, String)> {
    let question = asked.question;
    let mut reasons = match &question.question {
        None => vec![("why you", question.why.clone())],
        Some(asked) => {
            let fields = asked.fields().into_iter();
            let field = |field: AnswerField| {
                let must = if field.is_required { "" } else { "; may be left out" };
                ("field", format!("{}: {}{must}", field.label, field.expected()))
            };
            let secrets =
                "the answer goes to the program that has the tool, and into the log: give no secret";
            [("asks", asked.message.clone())]
                .into_iter()
                .chain(fields.map(field))
                .chain([("counts", secrets.to_owned())])
                .collect()
        }
    };
    if question.question.is_some() {
        // It is answered, and not allowed.
    } else if question.is_for_once() {
        reasons
            .push(("counts", "for this call only: what it runs may be something else next time".to_owned()));
    } else {
        reasons.push(("covers", format!("with r and A: {}; a deny rule still wins", question.pattern)));
    }
    reasons.extend(question.scripts.iter().map(|script| ("runs", format!("{}, as it is now", script.path))));
    if question.unnamed {
        let text = "it may run files that its text doesn't name: what they hold isn't checked";
        reasons.push(("runs", text.to_owned()));
    }
    if !question.options.is_empty() {
        reasons.push(("answers", question.options.join(" / ")));
    }
    reasons
}
