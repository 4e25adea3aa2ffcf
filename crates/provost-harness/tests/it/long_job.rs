//! A job of many tool calls, by a model whose only state is its progress.

use fastrand::Rng;
use provost_event::{Block, CallId, Json, StopReason, ToolCall};

use super::long_texts::words;

/// The goal.
pub(crate) const GOAL: &str =
    "Look at everything there is, keep the plan up to date, and say when the harbour is safe.";
/// The model's last answer.
pub(crate) const DONE: &str = "The harbour is safe.";
/// The result of tools without output.
pub(crate) const REMEMBERED: &str = "done";
/// Turns between two changes of the plan.
const PLAN_EVERY: u32 = 20;

/// The arguments of a `look` call.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Look {
    pub(crate) n: u64,
}

/// A job: the calls of each turn, always the same.
#[derive(Debug)]
pub(crate) struct Job {
    /// For each turn, from 0, how many calls were made before it.
    calls_before: Vec<u32>,
    /// Words of most answers.
    words: usize,
}

impl Job {
    /// A job of about this many calls; a turn isn't cut short.
    pub(crate) fn of(calls: u32) -> Self {
        let (mut calls_before, mut made) = (Vec::new(), 0);
        while made < calls {
            let turn = u32::try_from(calls_before.len()).unwrap_or(u32::MAX);
            calls_before.push(made);
            made += calls_in(turn);
        }
        Self { calls_before, words: 12 }
    }

    /// With this many words in most answers.
    pub(crate) fn talking(self, words: usize) -> Self {
        Self { words, ..self }
    }

    /// Turns with calls.
    pub(crate) fn turns(&self) -> u32 {
        u32::try_from(self.calls_before.len()).unwrap_or(u32::MAX)
    }

    /// Calls made before a turn, the first being 0.
    pub(crate) fn calls_before(&self, turn: u32) -> Option<u32> {
        self.calls_before.get(usize::try_from(turn).unwrap_or(usize::MAX)).copied()
    }

    /// The model's answer in a turn, the first being 0.
    pub(crate) fn answer(&self, turn: u32) -> (Vec<Block>, StopReason) {
        let Some(first) = self.calls_before(turn) else {
            return (vec![Block::Text(DONE.to_owned())], StopReason::EndTurn);
        };
        let mut rng = Rng::with_seed(u64::from(turn));
        let mut content = Vec::new();
        if turn % 3 == 1 {
            content.push(thought(turn, &mut rng));
        }
        if turn % 4 != 2 {
            content.push(Block::Text(format!("Turn {turn}: {}.", words(&mut rng, self.words))));
        }
        for place in 0..calls_in(turn) {
            content.push(self.call(turn, first + place, &mut rng));
        }
        (content, StopReason::ToolUse)
    }

    fn call(&self, turn: u32, number: u32, rng: &mut Rng) -> Block {
        let (name, input) = if turn.is_multiple_of(PLAN_EVERY) {
            ("update_plan", format!(r#"{{"items":["{}","{}"]}}"#, plan_of(turn), words(rng, 30)))
        } else if turn % 15 == 11 {
            let text = words(rng, 400 + usize::try_from(turn % 300).unwrap_or_default());
            ("write", format!(r#"{{"path":"src/file_{}.rs","text":"{text}"}}"#, turn % 60))
        } else if turn % 12 == 7 && self.calls_before(turn) == Some(number) {
            // The same as a few turns before.
            let again = turn.checked_sub(5).and_then(|turn| self.calls_before(turn)).unwrap_or(number);
            ("look", format!(r#"{{"n":{again}}}"#))
        } else {
            ("look", format!(r#"{{"n":{number}}}"#))
        };
        let input = Json::parse(input).unwrap_or_else(|_| Json::empty_object());
        Block::ToolCall(ToolCall {
            id: CallId(format!("c{number}").into()),
            name: name.to_owned(),
            input,
            malformed: None,
        })
    }

    /// The turn of a call.
    pub(crate) fn turn_of(&self, number: u32) -> Option<u32> {
        let behind = self.calls_before.partition_point(|before| *before <= number);
        u32::try_from(behind.checked_sub(1)?).ok()
    }

    /// The beginning of a call's result; `None` for a call of another job.
    pub(crate) fn result_begins(&self, call: &CallId) -> Option<String> {
        let number = call.to_string().strip_prefix('c')?.parse::<u32>().ok()?;
        let (content, _) = self.answer(self.turn_of(number)?);
        let made = content.into_iter().find_map(|block| match block {
            Block::ToolCall(made) if made.id == *call => Some(made),
            _ => None,
        })?;
        match made.name.as_str() {
            "look" => Some(format!("look {}: ", made.input.read::<Look>().ok()?.n)),
            _ => Some(REMEMBERED.to_owned()),
        }
    }

    /// The plan's text in the request of a turn; `None` if there is none yet.
    pub(crate) fn open_item(&self, turn: u32) -> Option<String> {
        let last = turn.checked_sub(1)?.min(self.turns().saturating_sub(1));
        Some(plan_of(last / PLAN_EVERY * PLAN_EVERY))
    }
}

fn plan_of(turn: u32) -> String {
    format!("open: look behind gate {turn}, then close it")
}

fn calls_in(turn: u32) -> u32 {
    if !turn.is_multiple_of(PLAN_EVERY) && turn % 15 != 11 && turn % 9 == 4 { 2 + turn % 5 } else { 1 }
}

/// Signed reasoning, which must be sent back unchanged.
fn thought(turn: u32, rng: &mut Rng) -> Block {
    Block::Thinking {
        text: format!("I think  {}\n", words(rng, 20)),
        signature: Some(format!("seal+{turn}/{:016x}==", rng.u64(..))),
        wire: Some("anthropic".to_owned()),
        prefix: None,
    }
}
