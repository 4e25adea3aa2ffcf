//! A request's body as text for people, without what differs from machine to machine.

use std::fmt::Write as _;

use serde_json::Value;

use crate::support::Scene;

/// Lines of the text on an agent's surroundings that depend on the machine or the day.
const OF_THE_MACHINE: [&str; 7] = ["date", "system", "shell", "user", "network", "programs", "git"];
/// Lines of a text that are stored of its beginning and of its end.
const LINES_MAX: usize = 60;

/// Writes the requests of one run, each as far as it isn't the same as the one before.
pub(super) struct Readable<'a> {
    scene: &'a Scene,
    messages: &'static str,
    before: Option<Value>,
}

impl<'a> Readable<'a> {
    pub(super) const fn new(scene: &'a Scene, messages: &'static str) -> Self {
        Self { scene, messages, before: None }
    }

    /// A request under a title.
    ///
    /// # Panics
    /// When a message of the request before has changed.
    pub(super) fn section(&mut self, title: &str, body: &Value) -> String {
        let whole = body.to_string();
        let mut text = format!("\n======== {title}: {} tokens\n", rounded(tokens(&self.plain(&whole))));
        let bare = without_marks(body.clone());
        let before = self.before.replace(bare.clone());
        for (name, value) in bare.as_object().unwrap() {
            let known = before.as_ref().map(|before| &before[name]);
            if name == self.messages {
                self.messages_of(known, value, &mut text);
            } else if known == Some(value) {
                let _ = writeln!(text, "{name}: (as before)");
            } else {
                self.write(name, value, 0, &mut text);
            }
        }
        text
    }

    fn messages_of(&self, known: Option<&Value>, now: &Value, text: &mut String) {
        let known = known.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let now = now.as_array().unwrap();
        // What was sent stays as it was; only the last message may have got further parts.
        for (place, (old, new)) in known.iter().zip(now).enumerate().take(known.len().saturating_sub(1)) {
            assert_eq!(old, new, "message {place} has changed");
        }
        let same = known.iter().zip(now).take_while(|(old, new)| old == new).count();
        let _ = writeln!(text, "{}: ({same} as before)", self.messages);
        for message in &now[same..] {
            self.write("-", message, 1, text);
        }
    }

    fn write(&self, name: &str, value: &Value, depth: usize, text: &mut String) {
        let indent = "  ".repeat(depth);
        match value {
            Value::Object(members) if !members.is_empty() => {
                let _ = writeln!(text, "{indent}{name}:");
                members.iter().for_each(|(name, value)| self.write(name, value, depth + 1, text));
            }
            Value::Array(items) if !items.is_empty() => {
                let _ = writeln!(text, "{indent}{name}:");
                items.iter().for_each(|item| self.write("-", item, depth + 1, text));
            }
            Value::String(said) => {
                let said = self.plain(said);
                if !said.contains('\n') {
                    let _ = writeln!(text, "{indent}{name}: {said}");
                    return;
                }
                let _ = writeln!(text, "{indent}{name}: |");
                for line in shortened(&said) {
                    let _ = writeln!(text, "{}", format!("{indent}  {line}").trim_end());
                }
            }
            other => {
                let _ = writeln!(text, "{indent}{name}: {other}");
            }
        }
    }

    /// Without folders, ids and what is true of this machine only.
    fn plain(&self, text: &str) -> String {
        let text = self.scene.stable(text);
        let lines = text.split('\n').map(|line| {
            let machine = OF_THE_MACHINE.iter().find(|name| line.starts_with(&format!("{name}: ")));
            machine.map_or_else(|| line.to_owned(), |name| format!("{name}: …"))
        });
        without_ids(&lines.collect::<Vec<_>>().join("\n"))
    }
}

/// Without the random ids of reminders, and without keys for caches.
fn without_ids(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("<system-reminder id=\"") {
        let (before, after) = rest.split_at(at);
        let id = after.split('"').nth(1).unwrap_or_default().to_owned();
        out.push_str(before);
        out.push_str("<system-reminder id=\"ID\"");
        rest = after.strip_prefix(&format!("<system-reminder id=\"{id}\"")).unwrap_or_default();
    }
    out.push_str(rest);
    let words = out.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let is_id = |word: &str| word.len() == 16 && word.bytes().all(|b| b.is_ascii_lowercase());
    words
        .map(|word| {
            let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            if is_id(bare) { format!("ID{}", &word[bare.len()..]) } else { word.to_owned() }
        })
        .collect()
}

/// The beginning and the end of a long text.
fn shortened(text: &str) -> Vec<String> {
    let lines = text.split('\n').map(str::to_owned).collect::<Vec<_>>();
    if lines.len() <= 2 * LINES_MAX {
        return lines;
    }
    let left_out = lines.len() - 2 * LINES_MAX;
    let end = &lines[lines.len() - LINES_MAX..];
    let note = format!("(… {left_out} lines, which aren't stored)");
    lines[..LINES_MAX].iter().cloned().chain([note]).chain(end.iter().cloned()).collect()
}

/// Without the marks of what may be cached, which move on from request to request.
fn without_marks(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            members.remove("cache_control");
            for key in ["prompt_cache_key", "user"] {
                members.remove(key);
            }
            members.values_mut().for_each(|member| *member = without_marks(member.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_marks(item.take())),
        _ => {}
    }
    value
}

/// How many tokens a text is, counted as OpenAI's models count.
pub(super) fn tokens(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len()
}

/// To hundreds: lengths of paths differ.
fn rounded(count: usize) -> String {
    format!("about {}", count.div_ceil(100) * 100)
}
