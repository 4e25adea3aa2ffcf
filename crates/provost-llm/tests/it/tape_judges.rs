//! Judges' answers are recorded and repeated, each in its position.

use std::sync::Arc;

use expect_test::expect;
use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_event::{
    ActorKey, AgentPolicy, Block, ConversationEntry, Entry, ErrorClass, GoalEntry, GoalPolicy, ModelPolicy,
    Outcome, RunId, RunPolicy, Seq, SessionId,
};
use provost_harness::{AgentHarness, HarnessDeps, Log as _, Model, Models, ToolRegistry};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::scripted::script;
use crate::support::*;
use crate::tape_support::*;

const RUN: RunId = RunId::from_entropy(7);

/// The answer of this agent's judge after this many earlier calls.
async fn said(model: &dyn Model, agent: u32, asked_before: u32) -> String {
    let session = SessionId { run: RUN, agent };
    let asked = Conversation { session, ..Conversation::to_judge("is it done?", asked_before) };
    match asked.ask(model).await {
        Ok(answer) => match &answer.content[..] {
            [Block::Text(text)] => text.clone(),
            other => format!("{other:?}"),
        },
        Err(failure) => format!("{:?}: {}", failure.class, failure.message),
    }
}

const BOTH: &str = "
answers: [{text: an answer}, {text: another}]
verdicts: [{text: first}, {fault: rate_limited}, {text: second}, {text: third}]
";

#[tokio::test]
async fn agent_and_judges_share_a_recording_and_each_has_its_place() {
    let tapes = Tapes::new();
    // The order of calls to one model that serves the agent and both of its judges.
    let order = [(0, 0), (0, 1), (1, 0), (0, 2), (0, 3), (1, 1)];
    let all = async |model: &dyn Model| {
        let mut said_by_all = Vec::new();
        for (agent, asked_before) in order {
            said_by_all.push(said(model, agent, asked_before).await);
        }
        said_by_all
    };
    let recording = tapes.script(BOTH);
    let answers = converse(&recording, 0, 2, "ok").await;
    let live = all(&recording).await;
    let limited = "RateLimited: rate limited (scripted)";
    assert_eq!(live, ["first", limited, "first", "second", "third", limited]);

    assert_eq!(all(&tapes.replay()).await, live);
    let replay = tapes.replay();
    assert_eq!(converse(&replay, 0, 2, "ok").await, answers);
    assert_eq!(all(&replay).await, live);
    expect!["ScriptMismatch: run.jsonl has no verdict 5 about session 0: the conversation went another way than when it was recorded; record it again"]
        .assert_eq(&tapes.words(&said(&replay, 0, 4).await));
}

#[tokio::test]
async fn a_judge_that_failed_fails_as_often_as_it_is_asked_there() {
    let tapes = Tapes::new();
    let recording = tapes.script(BOTH);
    for before in [0, 1, 2] {
        said(&recording, 0, before).await;
    }
    let replay = tapes.replay();
    let failed = said(&replay, 0, 1).await;
    assert!(failed.starts_with("RateLimited"), "{failed}");
    assert_eq!(said(&replay, 0, 1).await, failed);
    assert_eq!(said(&replay, 0, 2).await, "second");
}

/// A judge's call that is cancelled during the answer.
async fn cancelled(model: &dyn Model, asked_before: u32) {
    let (cancel, heard) = (CancellationToken::new(), DeltaRecorder::default());
    let asked = Conversation::to_judge("is it done?", asked_before);
    let cancelling = async {
        heard.until_first().await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(model.answer(asked.request(), &heard, &cancel), cancelling);
    assert_eq!(outcome.unwrap_err().class, ErrorClass::Aborted);
}

const SLOW: &str = "verdicts: [{text: [a, b], chunk_delay_ms: 86400000}, {text: in time}]";

#[tokio::test]
async fn a_judge_that_took_too_long_has_been_asked_in_the_recording_too() {
    let tapes = Tapes::new();
    let recording = tapes.script(SLOW);
    cancelled(&recording, 0).await;
    assert_eq!(said(&recording, 0, 1).await, "in time");
    let replay = tapes.replay();
    expect!["Aborted: cancelled while the model was answering"].assert_eq(&said(&replay, 0, 0).await);
    assert_eq!(said(&replay, 0, 1).await, "in time");
}

#[tokio::test]
async fn of_a_judges_calls_at_one_place_the_last_one_counts() {
    let tapes = Tapes::new();
    // It yielded to another agent, or its process was killed, and it was called once more.
    cancelled(&tapes.script(SLOW), 0).await;
    said(&tapes.script("verdicts: [{text: lost}]"), 0, 0).await;
    said(&tapes.script("verdicts: [{text: kept}]"), 0, 0).await;
    let replay = tapes.replay();
    for _ in 0..2 {
        assert_eq!(said(&replay, 0, 0).await, "kept");
    }
}

/// A run with an agent that claims twice, and two judges, of which the first fails once.
const RUN_SCRIPT: &str = "
model: everybody
answers: [{text: I am done.}, {text: Now I am done.}]
verdicts:
  - { achieved: true, confidence: 0.8, reasoning: It looks so. }
  - { achieved: false, confidence: 0.9, reasoning: Nothing was done., suggestions: Begin. }
  - text: I can't say.
  - { achieved: true, confidence: 0.9, reasoning: The first agrees. }
  - { achieved: true, confidence: 0.75, reasoning: The second agrees. }
";

fn policy(workspace: &TempDir) -> RunPolicy {
    let model = || ModelPolicy::new("demo", 500);
    let goal =
        GoalPolicy { judges: vec![model(), model()], agree: 2, ..GoalPolicy::new("it is done", model()) };
    let agent = AgentPolicy {
        goal: Some(Box::new(goal)),
        system_prompt: "You are careful.".to_owned(),
        ..AgentPolicy::new(model(), workspace.path().to_owned())
    };
    RunPolicy::new(agent)
}

/// The answers of the agent and its judges, in the order of the log.
async fn run(model: impl Model + 'static) -> String {
    let workspace = TempDir::new().unwrap();
    let (_, clock) = still_clock();
    let backend = Arc::new(EmbeddedBackend::new(MemoryStore::new(), Arc::clone(&clock)).unwrap());
    let models = Models::new().with("demo", Arc::new(model));
    let deps = HarnessDeps { clock, ..HarnessDeps::new(backend.clone(), models, ToolRegistry::new()) };
    let mut run = AgentHarness::new(deps).start(RUN, "do it", policy(&workspace)).await.unwrap();
    let outcome = in_time(run.run(&CancellationToken::new())).await.unwrap();
    assert_eq!(outcome, Outcome::VERIFIED);
    let log = backend.read(ActorKey::from(SessionId::root(RUN)), Seq(0), 1_000).await.unwrap();
    let line = |entry: &Entry| match entry {
        Entry::Conversation(ConversationEntry::AssistantMessage(message)) => {
            Some(serde_json::to_string(&message.content).unwrap())
        }
        Entry::Goal(GoalEntry::Judged(judged)) => {
            Some(serde_json::to_string(&(&judged.answer, judged.call.usage)).unwrap())
        }
        Entry::Goal(GoalEntry::Verdict(verdict)) => Some(serde_json::to_string(&verdict.finding).unwrap()),
        _ => None,
    };
    log.iter().filter_map(|record| line(&record.entry)).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_run_with_two_judges_is_replayed_word_for_word() {
    let tapes = Tapes::new();
    let live = run(tapes.script(RUN_SCRIPT)).await;
    assert_eq!(live, run(script(RUN_SCRIPT)).await);
    assert_eq!(run(tapes.replay()).await, live);
    expect![[r#"
        [{"text":"I am done."}]
        [{"verdict":{"achieved":true,"reasoning":"It looks so.","confidence":0.8}},{"input_tokens":818,"output_tokens":20,"cache_read_tokens":0,"cache_write_tokens":0}]
        [{"verdict":{"achieved":false,"reasoning":"Nothing was done.","confidence":0.9,"suggestions":["Begin."]}},{"input_tokens":818,"output_tokens":23,"cache_read_tokens":0,"cache_write_tokens":0}]
        {"not_achieved":{"reasoning":"demo: Nothing was done.","suggestions":["Begin."],"confidence":0.9}}
        [{"text":"Now I am done."}]
        [{"failed":{"parse":"I can't say."}},{"input_tokens":819,"output_tokens":3,"cache_read_tokens":0,"cache_write_tokens":0}]
        [{"verdict":{"achieved":true,"reasoning":"The first agrees.","confidence":0.9}},{"input_tokens":838,"output_tokens":21,"cache_read_tokens":0,"cache_write_tokens":0}]
        [{"verdict":{"achieved":true,"reasoning":"The second agrees.","confidence":0.75}},{"input_tokens":819,"output_tokens":22,"cache_read_tokens":0,"cache_write_tokens":0}]
        {"achieved":{"confidence":0.75,"reasoning":"demo: The first agrees.\n\ndemo: The second agrees."}}"#]].assert_eq(&live);
    let places = tapes.lines().into_iter().skip(1);
    let places = places.map(|line| format!("{} {}", line["purpose"], line["answers_before"]));
    expect![[r#"
        "turn" 0
        "judge" 0
        "judge" 1
        "turn" 1
        "judge" 2
        "judge" 3
        "judge" 4"#]]
    .assert_eq(&places.collect::<Vec<_>>().join("\n"));
}
