//! "Done" needs evidence, a failure of the program is one of the run, and prompts go into composers only.

use provost_event::{
    AgentPolicy, Entry, ErrorClass, Outcome, PauseReason, TerminalEntry, TerminalEvent, TerminalState,
};

use crate::stage::{COMPLETED, Program, Stage, prompts};

/// A program that paints, without a profile.
fn painter(stage: &Stage, kind: &str) -> Program {
    std::fs::write(stage.folder.path().join("painter.py"), include_str!("painter.py")).expect("a script");
    let script = stage.folder.path().join("painter.py").display().to_string();
    Program::named("python3").with(|external| {
        external.args = vec![script, kind.to_owned()];
        external.submits_goal = true;
        external.idle_ms = Some(5_000);
    })
}

async fn waits_for(stage: &Stage, program: Program) -> String {
    let outcome = stage.run("do it all", program.policy(stage)).await;
    match outcome {
        Outcome::Paused { why: PauseReason::Unanswered { waits_for } } => waits_for,
        other => panic!("{other:?} {:#?}", stage.told().await),
    }
}

#[tokio::test]
async fn a_painting_program_without_a_profile_is_never_done_by_waiting() {
    let stage = Stage::new();
    let waits_for = waits_for(&stage, painter(&stage, "composer")).await;
    assert!(waits_for.contains("evidence that it is done"), "{waits_for}");
    assert!(stage.file("worked").is_some(), "{:#?}", stage.told().await);
    // Its log says unknown, and never that it waits.
    let log = stage.log().await;
    let states = log.iter().filter_map(|record| match &record.entry {
        Entry::Terminal(TerminalEntry::Noted(noted)) => Some(noted.event.clone()),
        _ => None,
    });
    let states = states.collect::<Vec<_>>();
    assert!(states.contains(&TerminalEvent::State(TerminalState::Unknown)), "{states:#?}");
    assert!(!states.contains(&TerminalEvent::State(TerminalState::WaitingForInput)), "{states:#?}");
}

#[tokio::test]
async fn no_prompt_is_typed_into_a_sign_in_menu() {
    let stage = Stage::new();
    waits_for(&stage, painter(&stage, "menu")).await;
    assert!(stage.file("entered").is_none(), "{:#?}", stage.told().await);
}

#[tokio::test]
async fn a_prompt_that_the_screen_doesn_t_show_isn_t_returned() {
    let stage = Stage::new();
    let outcome = stage.run("do it all", painter(&stage, "splash").policy(&stage)).await;
    let Outcome::Failed { class: ErrorClass::Program, message } = outcome else {
        panic!("{outcome:?} {:#?}", stage.told().await)
    };
    assert!(message.contains("the screen doesn't show it"), "{message}");
    assert!(stage.file("entered").is_none(), "{:#?}", stage.told().await);
}

#[tokio::test]
async fn an_agent_isn_t_done_while_a_tool_of_its_turn_runs() {
    let stage = Stage::new();
    let outcome = stage.run("tool please", Program::agent(&stage).policy(&stage)).await;
    assert_eq!(outcome, COMPLETED, "{:#?}", stage.told().await);
    assert!(stage.file("tool-ended").is_some(), "{:#?}", stage.told().await);
}

#[tokio::test]
async fn an_agents_refused_key_suspends_the_run_with_its_message() {
    let stage = Stage::new();
    let outcome =
        stage.run("fail 401 Incorrect API key provided", Program::agent(&stage).policy(&stage)).await;
    let Outcome::Paused { why: PauseReason::Model(trouble) } = outcome else {
        panic!("{outcome:?} {:#?}", stage.told().await)
    };
    assert_eq!(trouble.class, ErrorClass::Unauthorized);
    assert!(trouble.message.contains("Incorrect API key provided"), "{}", trouble.message);
}

#[tokio::test]
async fn an_agents_failure_that_may_pass_is_followed_by_a_prompt_to_go_on() {
    let stage = Stage::new();
    let outcome = stage.run("flaky work", Program::agent(&stage).policy(&stage)).await;
    assert_eq!(outcome, COMPLETED, "{:#?}", stage.told().await);
    let prompts = prompts(stage.file("told"));
    let [first, second] = prompts.as_slice() else { panic!("{prompts:#?}") };
    assert_eq!(first, "flaky work");
    assert!(second.contains("Go on where you left off"), "{second}");
}

#[tokio::test]
async fn an_agents_unknown_failure_fails_the_run() {
    let stage = Stage::new();
    let outcome = stage.run("fail something odd", Program::agent(&stage).policy(&stage)).await;
    let Outcome::Failed { class: ErrorClass::Program, message } = outcome else {
        panic!("{outcome:?} {:#?}", stage.told().await)
    };
    assert!(message.contains("something odd"), "{message}");
}

#[tokio::test]
async fn what_an_agent_said_is_its_message() {
    let stage = Stage::new();
    let outcome = stage.run("chat with me", Program::agent(&stage).policy(&stage)).await;
    assert_eq!(outcome, COMPLETED, "{:#?}", stage.told().await);
    let told = stage.told().await.join("\n");
    assert!(told.contains(r#"answer: [Text("Hello there.\n\nThe second line.")]"#), "{told}");
}

#[tokio::test]
async fn a_fresh_folder_is_trusted_by_a_rule_that_names_it() {
    let stage = Stage::new();
    let folder = stage.workspace().display().to_string();
    let allows = |agent: &mut AgentPolicy| agent.permissions.allow = vec![format!("trust_folder({folder})")];
    let policy = Program::agent(&stage).policy_with(&stage, allows);
    assert_eq!(stage.run("trust it", policy).await, COMPLETED, "{:#?}", stage.told().await);
    assert!(stage.file("trusted").is_some(), "{:#?}", stage.told().await);
}
