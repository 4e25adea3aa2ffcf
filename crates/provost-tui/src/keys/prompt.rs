//! Keys while a line is typed.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent};
use provost_event::{ApprovalAnswer, ApprovalScope, EffectId};
use provost_view::{ApprovalQuestion, ToolQuestion};
use serde_json::{Map, Value};

use super::{ask, refuse};
use crate::app::{App, DEAD_FOR, Prompt, Purpose};
use crate::host::Start;
use crate::line::Line;
use crate::order::{Act, Order};

impl Purpose {
    /// Whether text is typed; otherwise Enter alone does it.
    pub(crate) const fn takes_text(&self) -> bool {
        !matches!(self, Self::Always { .. } | Self::Cancel { .. })
    }
}

pub(super) fn key(app: &mut App, key: KeyEvent, at: Instant) -> Option<Order> {
    let prompt = app.prompt.as_mut()?;
    match key.code {
        KeyCode::Esc => {
            if prompt.purpose == Purpose::Filter {
                app.filter.clear();
            }
            app.prompt = None;
            None
        }
        KeyCode::Enter => {
            let prompt = app.prompt.take()?;
            let text = prompt.line.text().trim().to_owned();
            done(app, prompt.purpose, text, at)
        }
        KeyCode::Tab => {
            if let Purpose::New { is_here } = &mut prompt.purpose {
                *is_here = !*is_here;
            }
            None
        }
        _ => {
            if prompt.purpose.takes_text() {
                prompt.line.key(key);
            }
            if prompt.purpose == Purpose::Filter {
                app.filter = prompt.line.text();
            }
            None
        }
    }
}

fn done(app: &mut App, purpose: Purpose, text: String, at: Instant) -> Option<Order> {
    let act = match purpose {
        Purpose::Filter => return None,
        Purpose::Say { .. } if text.is_empty() => return None,
        Purpose::Say { run, agent } => Act::Say { run, agent, text },
        Purpose::Resume { run } => Act::Start(Start::Resume { run, text, more: None }),
        Purpose::More { .. } if text.is_empty() => {
            refuse(app, "it has used up this limit: say how much more it gets");
            return None;
        }
        Purpose::More { run, of } => {
            let more = Some((of, text.trim_start_matches('$').to_owned()));
            Act::Start(Start::Resume { run, text: String::new(), more })
        }
        Purpose::Fork { session, at } => Act::Start(Start::Fork { session, at, text }),
        Purpose::New { .. } if text.is_empty() => return None,
        Purpose::New { is_here } => {
            let there = app.at_hand().map(|run| run.item.workspace.clone()).filter(|_| !is_here);
            let folder = there.unwrap_or_else(|| app.folder.clone());
            Act::Start(Start::Run { goal: text, folder })
        }
        Purpose::Deny { question } => {
            let question = Box::new(still_open(app, question, at)?);
            Act::Answer { question, answer: ApprovalAnswer::Deny { reason: text } }
        }
        Purpose::Field { question, number, given } => {
            let asked = still_open(app, question, at)?;
            let answer = filled(app, &asked, Typed { number, given, text })?;
            Act::Answer { question: Box::new(asked), answer }
        }
        Purpose::Always { question } => {
            let question = Box::new(still_open(app, question, at)?);
            let pattern = Some(question.pattern.clone());
            let answer = ApprovalAnswer::Allow { scope: ApprovalScope::Always, pattern };
            Act::Answer { question, answer }
        }
        Purpose::Cancel { run } => Act::Cancel(run),
    };
    app.whole = false;
    Some(Order::Act(act))
}

/// A field that was typed, and those before it.
struct Typed {
    number: usize,
    given: Map<String, Value>,
    text: String,
}

/// The answer, if this was its last field; otherwise the next field is asked for, or the same again if it wasn't right.
fn filled(app: &mut App, asked: &ApprovalQuestion, typed: Typed) -> Option<ApprovalAnswer> {
    let Typed { number, mut given, text } = typed;
    let question = asked.id();
    let fields = asked.question.as_ref().map(ToolQuestion::fields).unwrap_or_default();
    let field = fields.get(number)?;
    match field.typed(&text) {
        Ok(value) => given.extend(value.map(|value| (field.name.clone(), value))),
        Err(why) => {
            refuse(app, &format!("{}: {why}", field.label));
            app.prompt =
                Some(Prompt { purpose: Purpose::Field { question, number, given }, line: Line::of(&text) });
            return None;
        }
    }
    let number = number + 1;
    if number < fields.len() {
        ask(app, Purpose::Field { question, number, given });
        return None;
    }
    match asked.filled(given) {
        Ok(answer) => Some(answer),
        Err(why) => {
            refuse(app, &why);
            None
        }
    }
}

/// The question that the prompt was about, if it is still the one in view.
fn still_open(app: &mut App, id: EffectId, at: Instant) -> Option<ApprovalQuestion> {
    let is_in_view = app.in_view.as_ref().is_some_and(|shown| shown.id == id && at >= shown.since + DEAD_FOR);
    let question = app.asked_now().map(|asked| asked.question.clone()).filter(|question| question.id() == id);
    if question.is_none() || !is_in_view {
        refuse(app, "the question was answered meanwhile");
        return None;
    }
    question
}
