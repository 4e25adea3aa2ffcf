//! A long conversation through the whole harness, with a log that doesn't depend on the provider.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_event::{
    Access, ActorKey, AgentPolicy, Json, Limits, ModelPolicy, Outcome, Record, RunId, RunPolicy, Seq,
    SessionId, ToolSpec,
};
use provost_harness::{
    AgentHarness, HarnessDeps, Log as _, Models, Tool, ToolContext, ToolOutput, ToolRegistry,
};
use provost_llm::ProviderModel;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::matrix::*;
use crate::server::Server;
use crate::speaker::*;
use crate::support::{still_clock, tool};

const TURNS: usize = 200;
/// The beginning of every output.
const BEGINS: &str = "It says: ";
const RUN: RunId = RunId::from_entropy(200);

/// A tool that returns its argument.
struct Echo(ToolSpec);

#[async_trait]
impl Tool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, input: &Json, _: &ToolContext) -> ToolOutput {
        let said = format!("{BEGINS}{} was asked\n{}", self.0.name, input.text());
        if input.text().contains("\"fails\"") { ToolOutput::error(said) } else { ToolOutput::ok(said) }
    }
}

/// The model's answer in turn `n`; in the last one it is done.
fn turn(n: usize, speaker: &dyn Speaker) -> Spoken {
    if n == TURNS {
        return Spoken::text(&["All ", "done."]);
    }
    let thought = Thought { pieces: vec!["Turn ".to_owned(), n.to_string()], seal: format!("c2VhbA{n}+/==") };
    let call = |place: usize| Called {
        // Some of Gemini's models give calls no id.
        id: if n.is_multiple_of(2) && speaker.names_no_calls() {
            String::new()
        } else {
            format!("call_{n}_{place}")
        },
        name: if place == 1 { "search" } else { "shell" }.to_owned(),
        pieces: vec![
            format!("{{\"turn\": {n}, \"place\":{place}"),
            if n.is_multiple_of(37) { ",\"fails\":\"ü\"}" } else { ",\"pattern\":\"fn add\\n\"}" }.to_owned(),
        ],
    };
    Spoken {
        thought: (!n.is_multiple_of(3)).then_some(thought),
        text: if n.is_multiple_of(2) {
            Vec::new()
        } else {
            vec![format!("In turn {n} "), "I look.".to_owned()]
        },
        calls: (0..=n % 3).map(call).collect(),
        ..Spoken::default()
    }
}

fn policy(tools: &ToolRegistry) -> RunPolicy {
    let agent = AgentPolicy {
        system_prompt: "You are careful.".to_owned(),
        tools: tools.specs(),
        limits: Limits { turns_max: 300, stuck_turns: 0, ..Limits::default() },
        ..AgentPolicy::new(ModelPolicy::new("a/model", 1_000), std::env::temp_dir())
    };
    RunPolicy { spawn: provost_event::SpawnBudget::default(), ..RunPolicy::new(agent) }
}

/// The results of a run.
struct Left {
    session: Vec<Value>,
    run: Vec<Value>,
    last: Vec<Line>,
}

async fn run(speaker: &dyn Speaker) -> Left {
    let replies = (1..=TURNS).map(|n| whole(speaker, &speaker.events(&turn(n, speaker))));
    let server = Server::start(replies.collect::<Vec<_>>()).await;
    let model = ProviderModel::new(options(speaker, &server.url())).unwrap();
    let (_, clock) = still_clock();
    let backend = Arc::new(EmbeddedBackend::new(MemoryStore::new(), Arc::clone(&clock)).unwrap());
    let echo = |name: &str| Echo(ToolSpec { access: Access::Anything, ..tool(name) });
    let tools = ToolRegistry::new().with(echo("search")).with(echo("shell"));
    let harness = AgentHarness::new(HarnessDeps {
        clock,
        ..HarnessDeps::new(backend.clone(), Models::new().with("a/model", Arc::new(model)), tools.clone())
    });
    let mut run = harness.start(RUN, "the goal", policy(&tools)).await.unwrap();
    let outcome = run.run(&CancellationToken::new()).await.unwrap();
    assert_eq!(outcome, Outcome::UNVERIFIED);
    let seen = server.seen();
    assert_eq!((seen.accepted, seen.asked.len()), (1, TURNS), "{}", speaker.wire());
    for pair in seen.asked.windows(2) {
        let (_, rest) = grown(&pair[0].body, &pair[1].body);
        assert!(!String::from_utf8_lossy(rest).contains("turn"), "{}", speaker.wire());
    }
    let read = async |actor: ActorKey| {
        let mut records: Vec<Arc<Record>> = Vec::new();
        loop {
            let from = Seq(records.len() as u64);
            let more = backend.read(actor, from, 1_000).await.unwrap();
            if more.is_empty() {
                return neutral(&records);
            }
            records.extend(more);
        }
    };
    let last = speaker.read(&seen.asked[TURNS - 1].json());
    Left {
        session: read(SessionId::root(RUN).into()).await,
        run: read(RUN.into()).await,
        last: nameless(last),
    }
}

/// The entries without what may differ: seals, token counts, the model's own name, ids of calls, and what a
/// snapshot derives from all that.
fn neutral(records: &[Arc<Record>]) -> Vec<Value> {
    let mut names = HashMap::new();
    let entry = |record: &Arc<Record>| {
        let mut body: Value = serde_json::from_str(&record.entry.body().unwrap()).unwrap();
        let object = body.as_object_mut().unwrap();
        for field in ["usage", "cost", "model", "tokens", "estimated_tokens", "state", "reminder_id"] {
            object.remove(field);
        }
        if let Some(call) = object.get_mut("call").filter(|call| call.is_string()) {
            rename(call, &mut names);
        }
        if let Some(content) = object.get_mut("content").and_then(Value::as_array_mut) {
            content.retain_mut(|block| {
                if let Some(thinking) = block.get_mut("thinking") {
                    *thinking = json!({"text": thinking["text"]});
                    return thinking["text"] != "";
                }
                if let Some(id) = block.pointer_mut("/tool_call/id") {
                    rename(id, &mut names);
                }
                block.get("opaque").is_none()
            });
        }
        json!({record.entry.kind(): body})
    };
    records.iter().map(entry).collect()
}

/// An id for the call by its position among all calls.
fn rename(name: &mut Value, names: &mut HashMap<String, usize>) {
    let next = names.len();
    let place = *names.entry(name.as_str().unwrap().to_owned()).or_insert(next);
    *name = place.into();
}

fn nameless(lines: Vec<Line>) -> Vec<Line> {
    let nameless = |line| match line {
        Line::Seal(_) => None,
        // Its content differs from run to run.
        Line::Person(text) if text.starts_with("<system-reminder id=") => {
            let (_, rest) = text.split_once("</system-reminder>").unwrap();
            Some(rest.trim_start()).filter(|rest| !rest.is_empty()).map(|rest| Line::Person(rest.to_owned()))
        }
        Line::Call { name, arguments, .. } => Some(Line::Call { id: String::new(), name, arguments }),
        // Where a format can't mark a failure, words before it do.
        Line::Result { output, .. } => {
            let output = output[output.find(BEGINS).unwrap()..].to_owned();
            Some(Line::Result { id: String::new(), output })
        }
        line => Some(line),
    };
    lines.into_iter().filter_map(nameless).collect()
}

#[tokio::test]
async fn two_hundred_turns_leave_the_same_log_with_every_provider() {
    let first = run(SPEAKERS[0]).await;
    assert!(first.session.len() > 4 * TURNS, "{} entries", first.session.len());
    for speaker in &SPEAKERS[1..] {
        let left = run(*speaker).await;
        for (place, (here, there)) in left.session.iter().zip(&first.session).enumerate() {
            assert_eq!(here, there, "entry {place} with {}", speaker.wire());
        }
        assert_eq!(left.session.len(), first.session.len());
        assert_eq!(left.run, first.run);
        for (here, there) in left.last.iter().zip(&first.last) {
            assert_eq!(here, there, "the last request to {}", speaker.wire());
        }
        assert_eq!(left.last.len(), first.last.len());
    }
}
