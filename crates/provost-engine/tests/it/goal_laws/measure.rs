//! Whether a turn made progress, counted from the log in the plainest way: with sets of all that was ever seen.

use std::collections::{BTreeMap, BTreeSet};

use provost_engine::kind_of_text;
use provost_event::{
    Block, CallId, ConversationEntry, Entry, GateEntry, GoalEntry, Plan, PlanStatus, ToolEntry, ToolFinished,
    ToolStatus,
};

/// Turns in a row with only passing progress that count.
const PASSING_MAX: u32 = 30;

/// What was seen of calls, plans, stop hooks and the workspace.
#[derive(Debug, Default)]
pub(super) struct Measure {
    pub(super) idle_turns: u32,
    passing_turns: u32,
    lasts: bool,
    passes: bool,
    /// The arguments of the last answer's calls.
    inputs: BTreeMap<CallId, String>,
    seen: BTreeSet<String>,
    stop_hooks: BTreeSet<Vec<String>>,
    workspace: Option<String>,
}

impl Measure {
    pub(super) fn see(&mut self, entry: &Entry) {
        match entry {
            Entry::Conversation(ConversationEntry::AssistantMessage(answer)) => {
                let inputs = answer.content.iter().filter_map(|block| match block {
                    Block::ToolCall(call) => Some((call.id.clone(), call.input.text().to_owned())),
                    _ => None,
                });
                self.inputs = inputs.collect();
            }
            Entry::Tool(ToolEntry::Finished(done)) => match &done.plan {
                Some(plan) => self.planned(plan),
                None => self.finished(done),
            },
            Entry::Gate(GateEntry::StopChecked(verdicts)) => {
                let said = verdicts
                    .reports
                    .iter()
                    .map(|one| words(&format!("{} {:?}", one.hook, one.stop_verdict())));
                let said = said.flatten().collect::<Vec<_>>();
                let is_first = self.stop_hooks.is_empty();
                self.lasts |= self.stop_hooks.insert(said) && !is_first;
                self.looks_like(&verdicts.evidence);
            }
            Entry::Goal(GoalEntry::Judged(judged)) => self.looks_like(&judged.evidence),
            Entry::Conversation(ConversationEntry::UserMessage(_)) => self.begin_anew(),
            Entry::Conversation(ConversationEntry::TurnEnded(_)) => self.turn_ended(),
            _ => {}
        }
    }

    pub(super) const fn begin_anew(&mut self) {
        (self.idle_turns, self.passing_turns) = (0, 0);
    }

    fn turn_ended(&mut self) {
        if self.lasts {
            self.begin_anew();
        } else if self.passes && self.passing_turns < PASSING_MAX {
            (self.idle_turns, self.passing_turns) = (0, self.passing_turns + 1);
        } else {
            self.idle_turns += 1;
        }
        (self.lasts, self.passes) = (false, false);
    }

    fn planned(&mut self, plan: &Plan) {
        for item in plan.items.iter().filter(|item| item.status == PlanStatus::Done) {
            self.lasts |= self.seen.insert(format!("ticked {}", item.text));
        }
    }

    fn finished(&mut self, done: &ToolFinished) {
        if !matches!(done.status, ToolStatus::Ok | ToolStatus::Error | ToolStatus::TimedOut) {
            return;
        }
        let input = self.inputs.get(&done.call).cloned().unwrap_or_default();
        let (tool, output, is_ok) = (&done.tool, &done.output, done.status == ToolStatus::Ok);
        let kind = format!("{tool} {}", kind(&input));
        let is_new_call = self.seen.insert(format!("call {kind}"));
        let is_new_result =
            self.seen.insert(format!("result {tool} {}", self::kind(&without_words_of(&input, output))));
        let is_new_input = self.seen.insert(format!("input {tool} {input}"));
        let is_new = self.seen.insert(format!("exact {tool} {input} {output}"));
        let counts = counts(output);
        let counts_more = !counts.is_empty() && self.seen.insert(format!("counts {kind} {counts:?}"));
        self.lasts |= is_new_call && is_new_result && is_ok;
        self.passes |= is_new_call || is_new_result || counts_more;
        if let Some(path) = path_of(&input).filter(|_| tool == "edit" && is_ok) {
            self.lasts |=
                self.seen.insert(format!("file {path}")) | self.seen.insert(format!("edit {path} {kind}"));
        }
        self.passes |= tool == "read" && is_ok && is_new_input && is_new;
    }

    fn looks_like(&mut self, workspace: &str) {
        if workspace.is_empty() {
            return;
        }
        self.lasts |= self.workspace.as_ref().is_some_and(|before| before != workspace);
        self.workspace = Some(workspace.to_owned());
    }
}

fn path_of(input: &str) -> Option<String> {
    let input = serde_json::from_str::<serde_json::Value>(input).ok()?;
    Some(input.get("path")?.as_str()?.to_owned())
}

/// A text without its numbers.
fn kind(text: &str) -> u64 {
    kind_of_text(text)
}

/// `output` without the words that are in `input`, too.
fn without_words_of(input: &str, output: &str) -> String {
    let is_between = |c: char| !c.is_alphanumeric();
    let own = input.split(is_between).filter(|word| word.contains(char::is_alphabetic));
    let own = own.collect::<BTreeSet<_>>();
    let mut rest = String::new();
    for piece in output.split_inclusive(is_between) {
        let word = piece.trim_end_matches(is_between);
        rest.push_str(if own.contains(word) { "_" } else { word });
        rest.push_str(&piece[word.len()..]);
    }
    rest
}

/// The counts in a text: numbers next to a check's counted words.
fn counts(text: &str) -> Vec<String> {
    const WORDS: [&str; 6] = ["passed", "failed", "error", "errors", "ok", "tests"];
    let words =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>();
    let is_number = |word: &str| word.chars().all(|c| c.is_ascii_digit());
    let is_count = |one: &str, other: &str| is_number(one) && WORDS.contains(&&*other.to_lowercase());
    let pairs = words.windows(2).filter(|pair| is_count(pair[0], pair[1]) || is_count(pair[1], pair[0]));
    pairs.map(|pair| pair.join(" ")).collect()
}

/// A text without durations.
fn words(text: &str) -> Vec<String> {
    text.split_whitespace().filter(|word| !is_time(word)).map(str::to_owned).collect()
}

fn is_time(word: &&str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','));
    word.len() > unit.len() && matches!(unit, "s" | "ms")
}
