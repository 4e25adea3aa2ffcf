//! A judge works with every wire format, and gets only the evidence of the agent's conversation.

use std::sync::Arc;

use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_event::{
    ActorKey, AgentPolicy, Confidence, Effort, Entry, ErrorClass, GoalEntry, GoalFinding, GoalJudged,
    GoalPolicy, JudgeAnswer, ModelPolicy, Outcome, RunId, RunPolicy, Seq, SessionId, SupervisorError,
};
use provost_harness::{AgentHarness, GoalSupervisor, HarnessDeps, Log as _, Models, ToolRegistry};
use provost_llm::ProviderModel;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::matrix::*;
use crate::server::{Reply, Server, plain};
use crate::speaker::*;
use crate::support::{Conversation, in_time, still_clock};

for_every_provider! {
    a_judge_gets_its_instructions_and_the_evidence_and_nothing_else,
    a_run_is_completed_by_a_judge_of_this_provider,
    a_judge_that_thinks_or_wraps_its_verdict_is_understood,
    a_judge_that_is_rate_limited_says_for_how_long,
    a_judge_that_fails_says_how,
}

const VERDICT: &str =
    r#"{"achieved": true, "confidence": 0.9, "reasoning": "It was done.", "suggestions": []}"#;
/// Words that are only in a request with tools, reasoning or sealed blocks.
const FOREIGN: [&str; 11] = [
    "\"tools\"",
    "tool_choice",
    "toolConfig",
    "functionDeclarations",
    "thinking",
    "reasoning",
    "output_config",
    "\"include\"",
    "response_format",
    "responseMimeType",
    "c2VhbA",
];

/// A request without its messages and instructions, which may contain any text.
fn frame(speaker: &dyn Speaker, body: &[u8]) -> String {
    let mut body = serde_json::from_slice::<serde_json::Value>(body).unwrap();
    for key in ["system", "instructions", "messages", "input", "contents", "systemInstruction"] {
        body.as_object_mut().unwrap().remove(key);
    }
    format!("{}: {body}", speaker.wire())
}

async fn a_judge_gets_its_instructions_and_the_evidence_and_nothing_else(speaker: &dyn Speaker) {
    let mut scene = Scene::new(speaker, [whole(speaker, &speaker.events(&Spoken::text(&[VERDICT])))]).await;
    scene.conversation = Conversation::to_judge("is it done?", 3);
    scene.ask().await.unwrap();
    let asked = scene.server.seen().asked.remove(0);
    let expected = vec![Line::System("You are careful.".to_owned()), Line::Person("is it done?".to_owned())];
    assert_eq!(speaker.read(&asked.json()), expected);
    let frame = frame(speaker, &asked.body);
    for word in FOREIGN {
        assert!(!frame.contains(word), "{word} in {frame}");
    }
}

/// The agent thinks, calls a tool that doesn't exist, and claims; then the judge answers.
fn story(speaker: &dyn Speaker) -> Vec<Reply> {
    let thought = Thought { pieces: vec!["Hm.".to_owned()], seal: "c2VhbA1+/==".to_owned() };
    let call = Called {
        id: "call_1".to_owned(),
        name: "shell".to_owned(),
        pieces: vec!["{\"command\":\"make\"}".to_owned()],
    };
    let works = Spoken { thought: Some(thought), calls: vec![call], ..Spoken::text(&["I'll look."]) };
    let said = [works, Spoken::text(&["It is ", "done."]), Spoken::text(&[VERDICT])];
    said.iter().map(|spoken| whole(speaker, &speaker.events(spoken))).collect()
}

fn policy(workspace: &TempDir) -> RunPolicy {
    let judge = ModelPolicy { effort: Some(Effort::Low), ..ModelPolicy::new("a/model", 2_048) };
    let agent = AgentPolicy {
        goal: Some(Box::new(GoalPolicy::new("everything is made", judge))),
        system_prompt: "You are careful.".to_owned(),
        ..AgentPolicy::new(ModelPolicy::new("a/model", 1_000), workspace.path().to_owned())
    };
    RunPolicy::new(agent)
}

async fn a_run_is_completed_by_a_judge_of_this_provider(speaker: &dyn Speaker) {
    const RUN: RunId = RunId::from_entropy(9);
    let (server, workspace) = (Server::start(story(speaker)).await, TempDir::new().unwrap());
    let model = ProviderModel::new(options(speaker, &server.url())).unwrap();
    let (_, clock) = still_clock();
    let backend = Arc::new(EmbeddedBackend::new(MemoryStore::new(), Arc::clone(&clock)).unwrap());
    let models = Models::new().with("a/model", Arc::new(model));
    let deps = HarnessDeps { clock, ..HarnessDeps::new(backend.clone(), models, ToolRegistry::new()) };
    let mut run = AgentHarness::new(deps).start(RUN, "make everything", policy(&workspace)).await.unwrap();
    let outcome = in_time(run.run(&CancellationToken::new())).await.unwrap();
    assert_eq!(outcome, Outcome::VERIFIED);

    let asked = server.seen().asked;
    let lines = speaker.read(&asked[2].json());
    let [Line::System(system), Line::Person(question)] = &lines[..] else { panic!("{lines:?}") };
    assert!(system.contains("judge") && !system.contains("You are careful."), "{system}");
    for word in ["everything is made", "make everything", "shell", "It is done."] {
        assert!(question.contains(word), "{word} in {question}");
    }
    assert!(!String::from_utf8_lossy(&asked[2].body).contains("c2VhbA"));
    let frame = frame(speaker, &asked[2].body);
    assert!(!frame.contains("tool") && !frame.contains("function"), "{frame}");

    let log = backend.read(ActorKey::from(SessionId::root(RUN)), Seq(0), 1_000).await.unwrap();
    let judged = log.iter().find_map(|record| match &record.entry {
        Entry::Goal(GoalEntry::Judged(judged)) => Some(judged.clone()),
        _ => None,
    });
    let GoalJudged { answer: JudgeAnswer::Verdict(verdict), call, .. } = judged.unwrap() else { panic!() };
    assert_eq!((verdict.achieved, verdict.confidence), (true, Confidence::hundredths(90)));
    assert_eq!((call.model.as_str(), call.usage), (SPEAKING, speaker.tells(usage())));
    let finding = log.iter().find_map(|record| match &record.entry {
        Entry::Goal(GoalEntry::Verdict(verdict)) => Some(verdict.finding.clone()),
        _ => None,
    });
    assert!(matches!(finding, Some(GoalFinding::Achieved { .. })), "{finding:?}");
}

/// The supervisor's result with a judge of this provider and this answer.
async fn verified(
    speaker: &dyn Speaker,
    replies: Vec<Reply>,
) -> Result<provost_event::SupervisorVerdict, SupervisorError> {
    let server = Server::start(replies).await;
    let model = ProviderModel::new(options(speaker, &server.url())).unwrap();
    let (_, clock) = still_clock();
    let judge = GoalSupervisor::new(Arc::new(model), clock);
    in_time(judge.verify("it is done", "", Vec::new(), &CancellationToken::new())).await
}

async fn a_judge_that_thinks_or_wraps_its_verdict_is_understood(speaker: &dyn Speaker) {
    let thought =
        Thought { pieces: vec!["Is {\"achieved\": false} right?".to_owned()], seal: "c2VhbA==".to_owned() };
    let fenced = format!("```json\n{VERDICT}\n```");
    for spoken in [
        Spoken { thought: Some(thought), ..Spoken::text(&[VERDICT]) },
        Spoken::text(&[&VERDICT[..9], &VERDICT[9..]]),
        Spoken::text(&[&fenced]),
    ] {
        let verdict = verified(speaker, vec![whole(speaker, &speaker.events(&spoken))]).await.unwrap();
        assert_eq!((verdict.achieved, verdict.reasoning.as_str()), (true, "It was done."));
    }
}

async fn a_judge_that_is_rate_limited_says_for_how_long(speaker: &dyn Speaker) {
    for (headers, retry_after_ms) in [("retry-after: 7\r\n", Some(7_000)), ("", None)] {
        let reply = Reply::Whole(plain(429, headers, "slow down"));
        let failed = verified(speaker, vec![reply]).await;
        assert_eq!(failed, Err(SupervisorError::RateLimited { retry_after_ms }));
    }
}

async fn a_judge_that_fails_says_how(speaker: &dyn Speaker) {
    for (status, expected) in
        [(500, ErrorClass::Server), (401, ErrorClass::Unauthorized), (400, ErrorClass::InvalidRequest)]
    {
        let failed = verified(speaker, vec![Reply::Whole(plain(status, "", "no"))]).await;
        let Err(SupervisorError::Llm { class, .. }) = failed else { panic!("{failed:?}") };
        assert_eq!(class, expected);
    }
    let events = speaker.events(&Spoken::text(&[VERDICT]));
    let cut = stream(&events[..events.len() / 2]);
    let failed = verified(speaker, vec![Reply::Whole(streamed(speaker, [cut.as_bytes()]))]).await;
    let Err(SupervisorError::Llm { class, .. }) = failed else { panic!("{failed:?}") };
    assert_eq!(class, ErrorClass::Cut);
}
