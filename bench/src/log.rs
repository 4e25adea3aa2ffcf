//! A session's log as the engine writes it, without anybody who performs its effects.

use std::collections::VecDeque;
use std::path::Path;

use anyhow::Context as _;
use provost_engine::{
    Actor, Answer, Effect, EffectRequest, Event, Now, RunEvent, SessionEvent, Step, ToolResult,
};
use provost_event::{
    ActorKey, Block, Json, Record, RunId, SessionId, StopReason, Timestamp, ToolCall, ToolStatus, Usage,
};

use crate::agent;

/// The run whose log it is.
pub(crate) const RUN: RunId = RunId::from_entropy(7);

/// The first `entries` entries of a session that calls the tool for ever.
pub(crate) fn records(entries: usize, workspace: &Path) -> anyhow::Result<Vec<Record>> {
    let session = SessionId::root(RUN).into();
    let mut actors = [Actor::new(RUN.into()), Actor::new(session)];
    let policy = Box::new(agent::policy(workspace)?);
    let start = RunEvent::Start { goal: agent::GOAL.to_owned(), images: Vec::new(), policy };
    let mut waiting = VecDeque::from([(ActorKey::Run(RUN), Event::Run(start))]);
    let mut records = Vec::with_capacity(entries);
    let mut at = Timestamp(1_700_000_000_000);
    while records.len() < entries {
        let (to, event) = waiting.pop_front().context("the session came to an end")?;
        let [run, agent] = &mut actors;
        let actor = if to == session { agent } else { run };
        at = at.plus_ms(1);
        let mut seq = actor.head();
        let Step { entries, effects, messages, .. } = actor.decide(event, Now { at, entropy: 0 });
        if to == session {
            records.extend(entries.into_iter().map(|entry| {
                seq = seq.next();
                Record { actor: session, seq, at, entry }
            }));
        }
        waiting.extend(messages.into_iter().map(|message| (message.to, message.event)));
        for request in effects {
            waiting.push_back((session, performed(request, records.len())?.into()));
        }
    }
    records.truncate(entries);
    Ok(records)
}

/// What comes of an effect.
fn performed(request: EffectRequest, number: usize) -> anyhow::Result<SessionEvent> {
    let seq = request.seq;
    Ok(match request.effect {
        Effect::Think(_) => SessionEvent::Answered { seq, answer: answer(number)? },
        _ => SessionEvent::ToolDone {
            seq,
            result: ToolResult {
                status: ToolStatus::Ok,
                output: agent::tool_output(),
                images: Vec::new(),
                whole: None,
                duration_ms: 1,
                memory: None,
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
        usage: Usage { input_tokens: 1000, output_tokens: 40, ..Usage::default() },
        model: "claude-sonnet-4-5".to_owned(),
        stop: StopReason::ToolUse,
    })
}
