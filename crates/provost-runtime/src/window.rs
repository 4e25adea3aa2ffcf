//! Whether a model's window has room for its task. What stands before every conversation can't be left out; in a
//! window with little more room than that a conversation would be shortened again and again for nothing. A judge
//! has one request.

use provost_config::{EVIDENCE_TOKENS_MIN, Problem, Settled, Source};
use provost_engine::{JUDGE_TOKENS, tokens_of};
use provost_event::{ModelPolicy, ToolSpec, counted, grouped};

/// A request must have room for this many times what stands before every conversation, plus this many tokens: the
/// engine shortens to half of the room where it can.
const TIMES: u64 = 2;
const BESIDES: u64 = 400;
/// What stands around a tool in a request.
const TOOL_TOKENS: u64 = 8;
/// The smallest cap on answers that can be set.
const OUTPUT_TOKENS_MIN: u64 = 256;
/// A proposed cap on evidence is a multiple of this.
const ROUND_TOKENS: u64 = 100;

/// Where an agent's settings name its model and the cap on its answers, with their keys.
pub(crate) struct Keys {
    /// The model.
    pub(crate) model: (Source, String),
    /// The cap.
    pub(crate) cap: (Source, String),
}

/// What a window must have room for.
pub(crate) enum Room {
    /// A conversation, and what stands before it.
    Conversation {
        /// The system prompt.
        prompt: String,
        /// The tools.
        tools: Vec<ToolSpec>,
    },
    /// The question of a hook, which tells when it is too long.
    Check,
    /// The request of a judge.
    Verdict {
        /// Tokens of evidence.
        evidence_tokens: u32,
        /// What must be true.
        condition: String,
    },
}

/// A model with its window.
struct Window<'a> {
    name: &'a str,
    tokens: u64,
    /// The cap on its answers.
    cap: u64,
    keys: &'a Keys,
    settled: &'a Settled,
}

/// What is wrong with the window of `model`, which `name` names, if something is. An unknown window is never
/// wrong.
pub(crate) fn problem(
    settled: &Settled,
    name: &str,
    model: &ModelPolicy,
    room: &Room,
    keys: &Keys,
) -> Option<Problem> {
    let window =
        Window { name, tokens: model.window_tokens?, cap: u64::from(model.output_tokens_max), keys, settled };
    match room {
        Room::Conversation { prompt, tools } => window.for_conversation(prompt, tools),
        Room::Check => None,
        Room::Verdict { evidence_tokens, condition } => {
            window.for_verdict(u64::from(*evidence_tokens), condition)
        }
    }
}

impl Window<'_> {
    /// What is left of it beside an answer, which never gets more than half.
    fn room(&self) -> u64 {
        self.tokens.saturating_sub(self.cap.min(self.tokens / 2))
    }

    fn for_conversation(&self, prompt: &str, tools: &[ToolSpec]) -> Option<Problem> {
        let fixed = tokens_of(prompt).saturating_add(tools.iter().map(tokens_of_tool).sum());
        let need = fixed.saturating_mul(TIMES).saturating_add(BESIDES);
        let (Self { name, tokens, .. }, room) = (self, self.room());
        if room >= need {
            return None;
        }
        let taken = format!("system prompt and tools take about {} of each request", counted(fixed, "token"));
        let window = counted(*tokens, "token");
        let what =
            format!("{name} has a window of {window}, {} of them beside an answer; {taken}", grouped(room));
        let cap_that_fits = tokens.saturating_sub(need);
        if cap_that_fits >= OUTPUT_TOKENS_MIN {
            let ((source, key), remedy) =
                (self.keys.cap.clone(), format!("e.g. output_tokens_max = {cap_that_fits}"));
            return Some(Problem { source, key, what, remedy });
        }
        Some(self.too_small(what, need.saturating_add(self.cap.min(need))))
    }

    fn for_verdict(&self, evidence: u64, condition: &str) -> Option<Problem> {
        let besides = tokens_of(condition).saturating_add(JUDGE_TOKENS);
        let (Self { name, tokens, .. }, room) = (self, self.room());
        if room >= besides.saturating_add(evidence) {
            return None;
        }
        let what = format!(
            "{name} has a window of {}, {} of them beside a verdict; {} of evidence and about {} around it don't fit",
            counted(*tokens, "token"),
            grouped(room),
            grouped(evidence),
            grouped(besides),
        );
        let least = u64::from(EVIDENCE_TOKENS_MIN);
        let fits = room.saturating_sub(besides) / ROUND_TOKENS * ROUND_TOKENS;
        if fits < least {
            let need = besides.saturating_add(least);
            return Some(self.too_small(what, need.saturating_add(self.cap.min(need))));
        }
        let key = "goal.evidence_tokens".to_owned();
        let remedy = format!("e.g. evidence_tokens = {fits}");
        Some(Problem { source: self.settled.source(&key), key, what, remedy })
    }

    fn too_small(&self, what: String, least: u64) -> Problem {
        let set = format!("models.\"{}\".window_tokens", self.name);
        let is_set = self.settled.is_set(&set);
        let (source, key) = if is_set { (self.settled.source(&set), set) } else { self.keys.model.clone() };
        Problem {
            source,
            key,
            what,
            remedy: format!("it takes a window of at least {}", counted(least, "token")),
        }
    }
}

fn tokens_of_tool(tool: &ToolSpec) -> u64 {
    let texts = [tool.name.as_str(), &tool.description, tool.input_schema.text()];
    texts.into_iter().map(tokens_of).fold(TOOL_TOKENS, u64::saturating_add)
}
