//! The answers of the models of a tree of agents: each agent's answers follow from its goal and from what it sees,
//! and so does the final text of an undisturbed run.

use std::collections::BTreeMap;

use proptest::prelude::*;
use provost_engine::{CallModel, JudgeCall};
use provost_event::{
    AgentEntry, Block, CallId, Confidence, ConversationEntry, Entry, ErrorClass, GoalTrigger, Json,
    JudgeAnswer, LifecycleEntry, Outcome, Priority, Purpose, Record, Seq, StopReason, SupervisorError,
    SupervisorVerdict, ToolCall, ToolEntry, ToolStatus,
};

use super::goal;
use crate::tree_world::{Tree, key, session};
use crate::world::RUN;

/// One agent of the case: which agent requests it, when and how; and its other work.
#[derive(Debug, Clone)]
pub(super) struct Node {
    parent: u8,
    turn: u8,
    tool: u8,
    turns: u8,
    calls: u16,
}

pub(super) fn node() -> impl Strategy<Value = Node> {
    let wide = prop_oneof![2 => Just(0_u8), 3 => any::<u8>()];
    (wide, 0..3_u8, any::<u8>(), 1..4_u8, any::<u16>()).prop_map(|(parent, turn, tool, turns, calls)| Node {
        parent,
        turn,
        tool,
        turns,
        calls,
    })
}

#[derive(Debug)]
pub(super) struct Script {
    nodes: Vec<Node>,
    /// Whether agents may set the condition for agents that they request.
    is_judged: bool,
    /// By agent and turn: the agents that it requests.
    children: BTreeMap<(usize, u8), Vec<usize>>,
}

impl Script {
    pub(super) fn new(nodes: &[Node], is_judged: bool) -> Self {
        let mut children = BTreeMap::<_, Vec<_>>::new();
        for (number, node) in nodes.iter().enumerate().skip(1) {
            let parent = usize::from(node.parent) % number;
            let turn = node.turn % nodes[parent].turns;
            children.entry((parent, turn)).or_default().push(number);
        }
        Self { nodes: nodes.to_vec(), is_judged, children }
    }

    /// An agent's answer, given its log.
    pub(super) fn answer(&self, log: &[Record], model_call: &CallModel) -> (Vec<Block>, StopReason) {
        if model_call.purpose == Purpose::FinalSummary {
            return (vec![Block::Text("last words".to_owned())], StopReason::EndTurn);
        }
        let Some(Entry::Lifecycle(LifecycleEntry::SessionStarted(started))) =
            log.first().map(|record| &record.entry)
        else {
            panic!("an agent without a beginning thinks")
        };
        let number = number_of(&started.goal);
        let turn = u8::try_from(model_call.answers_before).unwrap_or(u8::MAX);
        if turn >= self.nodes[number].turns {
            let log = log.iter().take_while(|record| record.seq <= model_call.through);
            return (vec![Block::Text(self.text(number, log))], StopReason::EndTurn);
        }
        let calls = self.calls(number, turn).into_iter().enumerate();
        let calls = calls.map(|(place, (name, input))| {
            Block::ToolCall(ToolCall {
                id: CallId::from(format!("n{number}-{turn}-{place}").as_str()),
                name,
                input: Json::parse(input).expect("JSON"),
                malformed: None,
            })
        });
        (calls.collect(), StopReason::ToolUse)
    }

    /// The tools that an agent calls in a turn, each with its arguments.
    fn calls(&self, number: usize, turn: u8) -> Vec<(String, String)> {
        let bits = self.nodes[number].calls >> (turn * 5);
        let own = |name: &str| (name.to_owned(), format!(r#"{{"path":"n{number}-{turn}"}}"#));
        let children = self.children.get(&(number, turn)).map(Vec::as_slice).unwrap_or_default();
        let mut calls = children.iter().map(|child| self.call_for(*child)).collect::<Vec<_>>();
        if bits & 1 == 1 || calls.is_empty() {
            calls.insert(usize::from(bits >> 3 & 1).min(calls.len()), own("read"));
        }
        if bits & 6 == 6 {
            calls.push(own("shell"));
        }
        if bits & 22 == 18 {
            calls.insert(0, own("edit"));
        }
        if bits & 24 == 24 {
            calls.extend(self.call_again(number, turn));
        }
        calls
    }

    /// A call for an agent that this one has requested before, or for another if the guess is wrong.
    fn call_again(&self, number: usize, turn: u8) -> Option<(String, String)> {
        let before = (0..turn).find_map(|earlier| self.children.get(&(number, earlier))?.first())?;
        let (tool, _) = self.call_for(*before);
        Some((tool, format!(r#"{{"goal":"again","agent":"{before}"}}"#)))
    }

    fn call_for(&self, child: usize) -> (String, String) {
        let tool = self.nodes[child].tool;
        let priority = Priority::ALL[usize::from(tool) % 5];
        if tool < 60 && priority <= Priority::Normal {
            let done_when =
                if self.is_judged && tool.is_multiple_of(2) { r#","done_when":"n is done""# } else { "" };
            let input = format!(r#"{{"goal":"n{child}","priority":"{priority}"{done_when}}}"#);
            return ("spawn_agent".to_owned(), input);
        }
        (priority.name().to_owned(), format!(r#"{{"goal":"n{child}"}}"#))
    }

    /// An agent's final text: what it read, and the results of the agents it requested, in the order of its calls.
    fn text<'a>(&self, number: usize, log: impl Iterator<Item = &'a Record>) -> String {
        let mut results = BTreeMap::new();
        for record in log {
            if let Entry::Tool(ToolEntry::Finished(done)) = &record.entry {
                results.insert(done.call.0.to_string(), (done.status, done.output.clone()));
            }
        }
        let mut parts = Vec::new();
        for turn in 0..self.nodes[number].turns {
            for (place, (tool, _)) in self.calls(number, turn).into_iter().enumerate() {
                let found = results.get(&format!("n{number}-{turn}-{place}"));
                parts.push(match (tool.as_str(), found) {
                    ("shell" | "edit", _) => continue,
                    (_, Some((ToolStatus::Ok, output))) => {
                        output.split("\n\n<system-reminder").next().unwrap_or_default().to_owned()
                    }
                    (_, Some(_)) => "-".to_owned(),
                    (_, None) => "not seen".to_owned(),
                });
            }
        }
        said(number, &parts)
    }

    /// The final text of an agent if it and all below it were undisturbed; `None` if they weren't.
    pub(super) fn expected(&self, tree: &Tree, agent: u32) -> Option<String> {
        let log = tree.log(key(agent));
        let disturbs =
            |record: &Record| matches!(record.entry, Entry::Lifecycle(LifecycleEntry::StopRequested(_)));
        if log.iter().any(disturbs) || !matches!(tree.suspended(agent), Some(Outcome::Completed { .. })) {
            return None;
        }
        let number = number_of(&goal(tree, session(agent)));
        let mut parts = Vec::new();
        for turn in 0..self.nodes[number].turns {
            for (place, (tool, input)) in self.calls(number, turn).into_iter().enumerate() {
                match tool.as_str() {
                    "shell" | "edit" => continue,
                    "read" => parts.push(output(&tool, &input)),
                    _ => {
                        let call = CallId::from(format!("n{number}-{turn}-{place}").as_str());
                        parts.push(match child_of(tree, agent, &call) {
                            Some(child) => self.expected(tree, child)?,
                            None => "-".to_owned(),
                        });
                    }
                }
            }
        }
        Some(said(number, &parts))
    }
}

/// The agent that a call requested.
fn child_of(tree: &Tree, parent: u32, call: &CallId) -> Option<u32> {
    let started = |record: &Record| match &record.entry {
        Entry::Tool(ToolEntry::Started(started)) if started.call == *call => Some(record.seq),
        _ => None,
    };
    let started = tree.log(key(parent)).iter().find_map(started)?;
    let is_by = |found: Option<Seq>| found == Some(started);
    tree.log(RUN.into()).iter().find_map(|record| match &record.entry {
        Entry::Agent(AgentEntry::Spawned(spawned))
            if spawned.parent == Some(session(parent)) && is_by(spawned.call) =>
        {
            Some(spawned.child.agent)
        }
        Entry::Agent(AgentEntry::AskedAgain(asked))
            if asked.parent == session(parent) && asked.call == started =>
        {
            Some(asked.child.agent)
        }
        _ => None,
    })
}

/// The answer of a well-behaved judge, unless `salt` selects another.
pub(super) fn judgement(call: &JudgeCall, salt: u16) -> JudgeAnswer {
    let verdict = |achieved| {
        JudgeAnswer::Verdict(SupervisorVerdict {
            achieved,
            reasoning: "the log shows it".to_owned(),
            confidence: Confidence::FULL,
            suggestions: Vec::new(),
        })
    };
    match salt % 16 {
        // An agent that has not claimed to be done isn't done.
        _ if call.trigger == GoalTrigger::Interval => verdict(false),
        5 | 6 => verdict(false),
        7 => JudgeAnswer::Failed(SupervisorError::Parse("no JSON".to_owned())),
        8 => JudgeAnswer::Failed(SupervisorError::RateLimited { retry_after_ms: None }),
        9 => JudgeAnswer::Failed(SupervisorError::Timeout(60_000)),
        _ => verdict(true),
    }
}

/// The answer of a judge that was aborted.
pub(super) fn aborted() -> JudgeAnswer {
    let (class, message) = (ErrorClass::Aborted, "stopped".to_owned());
    JudgeAnswer::Failed(SupervisorError::Llm { class, message, hint: String::new() })
}

fn said(number: usize, parts: &[String]) -> String {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let hash = bytes.fold(7_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
    format!("n{number} is done: {hash:x}")
}

pub(super) fn output(tool: &str, input: &str) -> String {
    format!("{tool} of {input}")
}

/// The last thing that an agent said.
pub(super) fn last_text(log: &[Record]) -> String {
    let text = |record: &Record| match &record.entry {
        Entry::Conversation(ConversationEntry::AssistantMessage(answer)) => match answer.content.first() {
            Some(Block::Text(text)) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    };
    log.iter().rev().find_map(text).unwrap_or_default()
}

fn number_of(goal: &str) -> usize {
    goal.strip_prefix('n').and_then(|number| number.parse().ok()).expect("a goal of the script")
}
