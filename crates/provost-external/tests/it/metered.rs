//! What passes the model gateway is evidence: an open call is work, and a failed one is a failure, whatever the program
//! shows.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use provost_event::{ErrorClass, Metering, Outcome, PauseReason};
use provost_gateway::{Gateway, GatewayLimits, GatewayOptions, GatewayProviders};
use provost_harness::{Redactor, SystemClock};

use crate::provider::{AT_ONCE, Reply, provider};
use crate::stage::{COMPLETED, Program, Stage, prompts};

const PAUSES: Reply = Reply::Streams(Duration::from_secs(4));

/// A stage whose gateway forwards to a provider with these replies.
async fn stage(replies: impl IntoIterator<Item = Reply>) -> Stage {
    let mut stage = Stage::new();
    let gateway = Gateway::new(GatewayOptions {
        backend: stage.backend.clone(),
        settings: provider(replies).await,
        providers: GatewayProviders {
            anthropic: "a".to_owned(),
            openai: "a".to_owned(),
            gemini: "a".to_owned(),
        },
        models: Vec::new(),
        records: false,
        replays: None,
        redactor: Arc::new(Redactor::new([])),
        clock: Arc::new(SystemClock),
        limits: GatewayLimits::default(),
    });
    stage.gateway = Some(Arc::new(gateway));
    stage
}

fn metered(program: Program) -> Program {
    program.with(|external| external.metering = Metering::Gateway)
}

async fn outcome(stage: &Stage, goal: &str) -> Outcome {
    stage.run(goal, metered(Program::agent(stage)).policy(stage)).await
}

#[tokio::test]
async fn an_agent_isn_t_done_while_a_model_call_is_open() {
    let stage = stage([PAUSES]).await;
    assert_eq!(outcome(&stage, "ask 1").await, COMPLETED, "{:#?}", stage.told().await);
    assert!(stage.file("answered").is_some(), "{:#?}", stage.told().await);
}

#[tokio::test]
async fn an_agent_whose_calls_pass_the_gateway_is_done_whatever_other_connection_has_no_answer() {
    let stage = stage([]).await;
    let registry = TcpListener::bind("127.0.0.1:0").unwrap();
    let goal = format!("register {}", registry.local_addr().unwrap().port());
    assert_eq!(outcome(&stage, &goal).await, COMPLETED, "{:#?}", stage.told().await);
}

#[tokio::test]
async fn a_program_with_an_open_model_call_isn_t_idle() {
    let stage = stage([PAUSES]).await;
    let script = concat!(
        "import os, urllib.request as u\n",
        "body = b'{\"model\":\"claude\",\"max_tokens\":9,\"stream\":true,\"messages\":[]}'\n",
        "key = {'x-api-key': os.environ['ANTHROPIC_API_KEY']}\n",
        "u.urlopen(u.Request(os.environ['ANTHROPIC_BASE_URL'] + '/v1/messages', body, key)).read()\n",
        "open('answered', 'w').close()\n",
    );
    let program = Program::named("python3").with(|external| {
        external.args = vec!["-c".to_owned(), script.to_owned()];
        external.profile = "gateway".to_owned();
        external.idle_ms = Some(1_500);
    });
    let outcome = stage.run("go", metered(program).policy(&stage)).await;
    assert_eq!(outcome, COMPLETED, "{:#?}", stage.told().await);
    assert!(stage.file("answered").is_some());
}

#[tokio::test]
async fn a_refused_key_that_only_the_gateway_saw_suspends_the_run_with_the_providers_message() {
    let stage = stage([Reply::Fails(401, "that key was revoked")]).await;
    let outcome = outcome(&stage, "ask 1").await;
    let Outcome::Paused { why: PauseReason::Model(trouble) } = outcome else {
        panic!("{outcome:?} {:#?}", stage.told().await)
    };
    assert_eq!(trouble.class, ErrorClass::Unauthorized);
    assert!(trouble.message.contains("that key was revoked"), "{}", trouble.message);
}

#[tokio::test]
async fn a_failed_call_after_answered_ones_is_followed_by_a_prompt_to_go_on() {
    let stage = stage([AT_ONCE, Reply::Fails(500, "try later"), AT_ONCE]).await;
    assert_eq!(outcome(&stage, "ask 2").await, COMPLETED, "{:#?}", stage.told().await);
    let prompts = prompts(stage.file("told"));
    let [first, second] = prompts.as_slice() else { panic!("{prompts:#?}") };
    assert_eq!(first, "ask 2");
    assert!(second.contains("Go on where you left off"), "{second}");
    assert!(stage.file("answered").is_some());
}

#[tokio::test]
async fn a_program_that_ends_after_a_failed_call_is_started_again_and_goes_on() {
    let stage = stage([Reply::Fails(500, "try later"), AT_ONCE]).await;
    assert_eq!(outcome(&stage, "ask 1 exit").await, COMPLETED, "{:#?}", stage.told().await);
    let prompts = prompts(stage.file("told"));
    assert_eq!(prompts.len(), 2, "{prompts:#?}");
    assert!(stage.file("answered").is_some());
}

#[tokio::test]
async fn a_failure_that_a_new_try_can_t_cure_suspends_the_run_with_the_providers_message() {
    let stage = stage([Reply::Fails(400, "messages: too odd")]).await;
    let outcome = outcome(&stage, "ask 1").await;
    let Outcome::Paused { why: PauseReason::Model(trouble) } = outcome else {
        panic!("{outcome:?} {:#?}", stage.told().await)
    };
    assert_eq!(trouble.class, ErrorClass::InvalidRequest);
    assert!(trouble.message.contains("messages: too odd"), "{}", trouble.message);
}
