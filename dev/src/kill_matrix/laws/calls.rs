//! Tool calls and model calls: each has one end, and was made as often as its end says.

use std::collections::{BTreeMap, BTreeSet};

use provost_event::{
    Block, CallId, ConversationEntry, Entry, GoalEntry, Json, ModelEntry, Outcome, PauseReason, SessionId,
    ToolCall, ToolEntry, ToolFinished, ToolStarted, ToolStatus,
};
use serde_json::Value;

use super::super::evidence::Evidence;
use super::Breaches;

pub(super) fn check(seen: &Evidence, found: &mut Breaches) {
    let mut known = BTreeSet::new();
    for session in seen.sessions() {
        check_one(seen, session, &mut known, found);
        every_model_call_has_its_end(seen, session, found);
    }
    for line in seen.counted(&seen.files.effects()).keys().filter(|line| !known.contains(*line)) {
        found.wrong(format!("no entry asks for the effect `{line}`"));
    }
}

/// The calls of one session; adds the lines of its effects to `known`.
fn check_one(seen: &Evidence, session: SessionId, known: &mut BTreeSet<String>, found: &mut Breaches) {
    let mut calls = BTreeMap::<&CallId, Made<'_>>::new();
    for (_, entry) in seen.session(session) {
        match entry {
            Entry::Conversation(ConversationEntry::AssistantMessage(message)) => {
                for block in &message.content {
                    if let Block::ToolCall(call) = block
                        && calls.insert(&call.id, Made::new(call)).is_some()
                    {
                        found.doubled(format!("the answer with call {}", call.id));
                    }
                }
            }
            Entry::Tool(ToolEntry::Started(started)) => match calls.get_mut(&started.call) {
                Some(made) => made.starts.push(started),
                None => found.wrong(format!("{} was started but never asked for", started.call)),
            },
            Entry::Tool(ToolEntry::Finished(finished)) => match calls.get_mut(&finished.call) {
                Some(made) => made.ends.push(finished),
                None => found.wrong(format!("{} was finished but never asked for", finished.call)),
            },
            _ => {}
        }
    }
    let effects = seen.counted(&seen.files.effects());
    let is_final = seen.rest.outcome.is_final();
    for (id, made) in &calls {
        if made.ends.is_empty() && !is_final {
            continue;
        }
        found.one(made.ends.len(), || format!("result of {id}"));
        made.check(&effects, found);
        if let Some(path) = made.file().filter(|path| !seen.files.workspace().join(path).is_file()) {
            found.lost(format!("the file {path}, said to be written"));
        }
    }
    known.extend(calls.values().filter_map(|made| line_of(made.call)));
}

/// A call and its progress.
struct Made<'a> {
    call: &'a ToolCall,
    starts: Vec<&'a ToolStarted>,
    ends: Vec<&'a ToolFinished>,
}

impl<'a> Made<'a> {
    const fn new(call: &'a ToolCall) -> Self {
        Self { call, starts: Vec::new(), ends: Vec::new() }
    }

    /// The file that the call has written, by its result.
    fn file(&self) -> Option<String> {
        let is_written = self.ends.iter().any(|end| end.status == ToolStatus::Ok);
        text_at(&self.call.input, "path").filter(|_| is_written && self.call.name == "write_file")
    }

    fn check(&self, effects: &BTreeMap<String, usize>, found: &mut Breaches) {
        let Some(end) = self.ends.first() else { return };
        let id = &self.call.id;
        let may_repeat = matches!(&*self.call.name, "mark" | "write_file" | "update_plan");
        if self.starts.iter().any(|start| start.input != self.call.input) {
            found.wrong(format!("{id} was made with other arguments than were asked for"));
        }
        if self.starts.len() > 1 && !may_repeat {
            found.doubled(format!("the start of {id}"));
        }
        if self.starts.iter().skip(1).any(|start| !start.again) {
            found.wrong(format!("{id} was started twice, and the second time doesn't say so"));
        }
        let is_odd = match end.status {
            ToolStatus::Denied => !self.starts.is_empty(),
            // A call can be refused at every step, also by the tool itself.
            ToolStatus::Rejected | ToolStatus::Cancelled => false,
            _ => self.starts.is_empty(),
        };
        if is_odd {
            found.wrong(format!("{id} has {} starts and ended as {:?}", self.starts.len(), end.status));
        }
        let Some(line) = line_of(self.call) else { return };
        let times = effects.get(&line).copied().unwrap_or_default();
        if times > 1 && !may_repeat {
            found.doubled(format!("the effect `{line}`, {times} times"));
        }
        match end.status {
            ToolStatus::Ok if times == 0 => found.lost(format!("the effect `{line}`, said to be done")),
            ToolStatus::Ok | ToolStatus::Unknown => {}
            ToolStatus::Denied | ToolStatus::Rejected | ToolStatus::Cancelled => {
                let may_have = end.status == ToolStatus::Cancelled && !self.starts.is_empty();
                if times > 0 && !may_have {
                    found.wrong(format!("the effect `{line}`, though {id} is {:?}", end.status));
                }
            }
            ToolStatus::Error | ToolStatus::TimedOut => {
                found.wrong(format!("{id} ended as {:?}: {}", end.status, end.output));
            }
        }
    }
}

/// The line that a call's effect writes.
fn line_of(call: &ToolCall) -> Option<String> {
    match &*call.name {
        name @ ("note" | "mark") => Some(format!("{name} {}", text_at(&call.input, "key")?)),
        "shell" => {
            let command = text_at(&call.input, "command")?;
            Some(command.strip_prefix("echo ")?.split_once(" >>")?.0.to_owned())
        }
        _ => None,
    }
}

fn text_at(input: &Json, field: &str) -> Option<String> {
    Some(input.read::<Value>().ok()?.get(field)?.as_str()?.to_owned())
}

/// An answer, another attempt, a judge's answer, a summary or a final summary: exactly one of them, before the
/// next call.
fn every_model_call_has_its_end(seen: &Evidence, session: SessionId, found: &mut Breaches) {
    let mut last = 0;
    let mut open = None;
    for (seq, entry) in seen.session(session) {
        let ended = match entry {
            Entry::Model(ModelEntry::Called(called)) => {
                if let Some(call) = open.replace(called.call) {
                    found.lost(format!("the end of model call {call}"));
                }
                if called.call != last + 1 {
                    found.wrong(format!("model call {} follows {last}", called.call));
                }
                last = called.call;
                continue;
            }
            Entry::Conversation(ConversationEntry::AssistantMessage(message)) => Some(message.call),
            Entry::Model(ModelEntry::Retried(retry)) => Some(retry.call),
            Entry::Goal(GoalEntry::Judged(judged)) => Some(judged.call.call),
            Entry::Conversation(ConversationEntry::Compacted(compacted)) => {
                compacted.call.as_ref().map(|call| call.call)
            }
            Entry::Conversation(ConversationEntry::FinalSummary(wrapped)) => {
                wrapped.call.as_ref().map(|call| call.call)
            }
            _ => None,
        };
        if let Some(call) = ended
            && open.take() != Some(call)
        {
            found.doubled(format!("entry {seq} ends model call {call}, which isn't open"));
        }
    }
    // For a call that can't be repeated the end itself says so.
    let has_failed =
        matches!(seen.rest.outcome, Outcome::Failed { .. } | Outcome::Paused { why: PauseReason::Model(_) });
    if let Some(call) = open.filter(|_| !has_failed) {
        found.lost(format!("the end of model call {call}"));
    }
}
