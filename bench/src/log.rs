//! A session's log as the engine writes it, without an executor.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use provost_engine::{
    Actor, Answer, Decision, Effect, EffectRequest, Event, Now, RunEvent, SessionEvent, ToolResult,
};
use provost_event::{
    ActorKey, Block, Elapsed, Json, Purpose, Record, RunId, SessionId, StopReason, Timestamp, ToolCall,
    ToolStatus, Usage,
};

use crate::agent;
use crate::measure::thread_cpu;

/// The run whose log it is.
pub(crate) const RUN: RunId = RunId::from_entropy(7);

/// The model's window in tokens; the session is summarized whenever it is nearly full.
const WINDOW_TOKENS: u64 = 200_000;

/// One decision of the session.
pub(crate) struct Decided {
    /// What was committed; not empty.
    pub(crate) records: Vec<Record>,
    /// The CPU time that deciding took.
    pub(crate) took: Duration,
}

/// The first `entries` entries of a session that calls the tool endlessly.
pub(crate) fn records(entries: usize, workspace: &Path) -> anyhow::Result<Vec<Record>> {
    let mut records = Vec::with_capacity(entries);
    each_decision(Some(WINDOW_TOKENS), workspace, |decided| {
        records.extend(decided.records);
        Ok(records.len() < entries)
    })?;
    records.truncate(entries);
    Ok(records)
}

/// Passes the decisions of a session that calls the tool endlessly to `see`, until `see` ends that.
pub(crate) fn each_decision(
    window_tokens: Option<u64>,
    workspace: &Path,
    mut see: impl FnMut(Decided) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let session = ActorKey::from(SessionId::root(RUN));
    let mut actors = [Actor::new(RUN.into()), Actor::new(session)];
    let mut policy = Box::new(agent::policy(workspace)?);
    policy.agent.model.window_tokens = window_tokens;
    let start = RunEvent::Start { goal: agent::GOAL.to_owned(), images: Vec::new(), policy, baseline: None };
    let mut waiting = VecDeque::from([(ActorKey::Run(RUN), Event::Run(start))]);
    let mut at = Timestamp(1_700_000_000_000);
    let mut elapsed = Elapsed::default();
    let mut effects_done = 0;
    loop {
        let (to, event) = waiting.pop_front().context("the session came to an end")?;
        let [run, agent] = &mut actors;
        let actor = if to == session { agent } else { run };
        at = at.plus_ms(1);
        elapsed = elapsed.plus_ms(1);
        let (mut seq, before) = (actor.head(), thread_cpu());
        let Decision { entries, effects, messages, .. } =
            actor.decide(event, Now { at, elapsed, entropy: 0 });
        let took = thread_cpu().saturating_sub(before);
        if to == session && !entries.is_empty() {
            let records = entries.into_iter().map(|entry| {
                seq = seq.next();
                Record { actor: session, seq, at, elapsed, entry }
            });
            if !see(Decided { records: records.collect(), took })? {
                return Ok(());
            }
        }
        waiting.extend(messages.into_iter().map(|message| (message.to, message.event)));
        for request in effects {
            effects_done += 1;
            waiting.push_back((session, performed(request, effects_done)?.into()));
        }
    }
}

/// The result of an effect.
fn performed(request: EffectRequest, number: usize) -> anyhow::Result<SessionEvent> {
    let seq = request.seq;
    Ok(match request.effect {
        Effect::CallModel(model_call) if model_call.purpose != Purpose::Turn => {
            SessionEvent::Answered { seq, answer: summary() }
        }
        Effect::CallModel(_) => SessionEvent::Answered { seq, answer: answer(number)? },
        _ => SessionEvent::ToolDone {
            seq,
            result: ToolResult {
                tools: Vec::new(),
                asks: None,
                status: ToolStatus::Ok,
                output: agent::tool_output(),
                images: Vec::new(),
                whole: None,
                duration_ms: 1,
                memory: None,
                plan: None,
                facts: provost_event::CallFacts::default(),
            },
        },
    })
}

fn answer(number: usize) -> anyhow::Result<Answer> {
    let call = ToolCall {
        id: format!("toolu_{number:08}").as_str().into(),
        name: agent::TOOL.to_owned(),
        input: Json::parse(format!(r#"{{"n": {number}}}"#))?,
        malformed: None,
    };
    let words = "I'll call the tool once more and look at what it says before I go on.";
    Ok(Answer {
        content: vec![Block::Text(words.to_owned()), Block::ToolCall(call)],
        // Usage that isn't reported is estimated, which costs more the longer the conversation is.
        usage: Usage::default(),
        model: "claude-sonnet-4-5".to_owned(),
        stop: StopReason::ToolUse,
        cost: None,
    })
}

fn summary() -> Answer {
    Answer {
        content: vec![Block::Text(
            "The tool was called again and again, and always did nothing. ".repeat(20),
        )],
        usage: Usage::default(),
        model: "claude-sonnet-4-5".to_owned(),
        stop: StopReason::EndTurn,
        cost: None,
    }
}
