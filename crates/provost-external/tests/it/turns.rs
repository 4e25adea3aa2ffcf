//! Prompts go in, a question or an end comes out.

use std::path::Path;

use provost_event::{Entry, ErrorClass, Outcome, PauseReason, TerminalEvent, ToolEntry};

use crate::stage::{COMPLETED, Program, Stage, blocks_once, no, prompts, says, yes};

#[tokio::test]
async fn a_goal_is_typed_in_taken_as_one_prompt_and_answered() {
    let stage = Stage::new();
    let outcome = stage.run("fix the tests", Program::agent(&stage).policy(&stage)).await;
    assert_eq!(outcome, COMPLETED, "{:#?}", stage.told().await);
    assert_eq!(prompts(stage.file("told")), ["fix the tests"]);
    let told = stage.told().await.join("\n");
    assert!(told.contains(r#"answer: [Text("I did this: fix the tests")]"#), "{told}");
    assert_eq!(stage.left_running(), 0);
}

#[tokio::test]
async fn several_lines_are_one_prompt() {
    let stage = Stage::new();
    let outcome = stage.run("first\n\n  second\nthird", Program::agent(&stage).policy(&stage)).await;
    assert_eq!(outcome, COMPLETED, "{:#?}", stage.told().await);
    assert_eq!(prompts(stage.file("told")), ["first\n\n  second\nthird"]);
}

#[tokio::test]
async fn an_approved_command_is_run() {
    let stage = Stage::new();
    let run = stage.start("run touch made", Program::agent(&stage).policy(&stage)).await;
    stage.answers(provost_event::Seq::START, yes()).await;
    assert_eq!(run.outcome().await, COMPLETED, "{:#?}", stage.told().await);
    assert!(stage.file("made").is_some(), "{:#?}", stage.told().await);
    let call = stage.sees(|entry| matches!(entry, Entry::Tool(ToolEntry::Finished(_)))).await;
    let Entry::Tool(ToolEntry::Finished(finished)) = &call.entry else { unreachable!() };
    assert_eq!(finished.output, "Answered: Yes");
}

#[tokio::test]
async fn a_denied_command_is_not_run_and_the_reason_is_told() {
    let stage = Stage::new();
    let run = stage.start("run touch made", Program::agent(&stage).policy(&stage)).await;
    stage.answers(provost_event::Seq::START, no("not today")).await;
    assert_eq!(run.outcome().await, COMPLETED, "{:#?}", stage.told().await);
    assert!(stage.file("made").is_none());
    let prompts = prompts(stage.file("told"));
    let [_, reason] = prompts.as_slice() else { panic!("{prompts:#?}") };
    assert!(reason.contains("not today"), "{reason}");
}

#[tokio::test]
async fn the_reason_is_also_told_to_an_agent_that_works_on_after_a_denial() {
    let stage = Stage::new();
    let policy =
        Program::agent(&stage).with(|external| external.args.push("--undaunted".to_owned())).policy(&stage);
    let run = stage.start("run touch made", policy).await;
    stage.answers(provost_event::Seq::START, no("not today")).await;
    assert_eq!(run.outcome().await, COMPLETED, "{:#?}", stage.told().await);
    let prompts = prompts(stage.file("told"));
    let [_, reason] = prompts.as_slice() else { panic!("{prompts:#?}") };
    assert!(reason.contains("not today"), "{reason}");
}

#[tokio::test]
async fn a_prompt_that_waits_for_the_programs_start_is_told_once_it_is_taken() {
    let stage = Stage::new();
    let policy =
        Program::agent(&stage).with(|external| external.args.push("--starting".to_owned())).policy(&stage);
    assert_eq!(stage.run("fix it", policy).await, COMPLETED, "{:#?}", stage.told().await);
    assert_eq!(prompts(stage.file("told")), ["fix it"]);
    let told = stage.told().await.join("\n");
    assert!(told.contains("I did this: fix it"), "{told}");
}

#[tokio::test]
async fn what_stop_hooks_want_is_the_next_prompt() {
    let stage = Stage::new();
    let policy = Program::agent(&stage)
        .policy_with(&stage, |agent| agent.stop_hooks.push(blocks_once("the tests fail")));
    assert_eq!(stage.run("fix it", policy).await, Outcome::VERIFIED, "{:#?}", stage.told().await);
    let prompts = prompts(stage.file("told"));
    let [first, second] = prompts.as_slice() else { panic!("{prompts:#?}") };
    assert_eq!(first, "fix it");
    assert!(second.contains("the tests fail"), "{second}");
}

#[tokio::test]
async fn a_plain_program_gets_messages_and_is_done_when_it_ends() {
    let stage = Stage::new();
    let script = "printf 'Your name: '; read name; echo \"hello $name\"";
    let run = stage.start("greet", Program::shell(script).policy(&stage)).await;
    let waits = |event: &TerminalEvent| matches!(event, TerminalEvent::WaitingForInput { prompt } if prompt.contains("Your name"));
    stage.sees_event(waits).await;
    says(&stage, "Ada").await;
    assert_eq!(run.outcome().await, COMPLETED, "{:#?}", stage.told().await);
    let told = stage.told().await.join("\n");
    assert!(told.contains("hello Ada"), "{told}");
}

#[tokio::test]
async fn a_program_that_fails_fails_its_session_with_its_last_lines() {
    for (script, wanted) in [
        ("echo oh no; exit 3", "`sh` ended with exit status 3. It showed last:\noh no"),
        ("echo oh no; kill -9 $$", "`sh` was ended by signal 9. It showed last:\noh no"),
    ] {
        let stage = Stage::new();
        let outcome = stage.run("try", Program::shell(script).policy(&stage)).await;
        let Outcome::Failed { class: ErrorClass::Program, message } = outcome else { panic!("{outcome:?}") };
        assert_eq!(message, wanted);
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named_with_what_to_do() {
    let stage = Stage::new();
    let outcome = stage.run("try", Program::named("no-such-program").policy(&stage)).await;
    let Outcome::Failed { class: ErrorClass::Program, message } = outcome else { panic!("{outcome:?}") };
    assert!(message.contains("no-such-program") && message.contains("install it"), "{message}");
}

#[tokio::test]
async fn a_question_that_times_out_suspends_the_session() {
    let stage = Stage::new();
    let program =
        Program::shell("printf 'Which one? '; read it").with(|external| external.idle_ms = Some(300));
    let outcome = stage.run("ask", program.policy(&stage)).await;
    let Outcome::Paused { why: PauseReason::Unanswered { waits_for } } = outcome else {
        panic!("{outcome:?}")
    };
    assert!(waits_for.contains("Which one?"), "{waits_for}");
    assert_eq!(stage.left_running(), 0);
}

#[tokio::test]
async fn words_for_a_program_that_has_ended_and_can_not_go_on_are_an_error_that_says_so() {
    let stage = Stage::new();
    let policy = Program::shell("echo built")
        .policy_with(&stage, |agent| agent.stop_hooks.push(blocks_once("the tests fail")));
    let outcome = stage.run("build", policy).await;
    let Outcome::Failed { class: ErrorClass::ProgramGone, message } = outcome else { panic!("{outcome:?}") };
    assert!(message.contains("has ended") && message.contains("the tests fail"), "{message}");
}

#[tokio::test]
async fn an_agent_that_has_ended_is_started_again_to_be_told_what_stop_hooks_want() {
    let stage = Stage::new();
    let policy = Program::agent(&stage)
        .policy_with(&stage, |agent| agent.stop_hooks.push(blocks_once("the tests fail")));
    assert_eq!(stage.run("exit 0", policy).await, Outcome::VERIFIED, "{:#?}", stage.told().await);
    let prompts = prompts(stage.file("told"));
    assert!(prompts.len() == 2 && prompts[1].contains("the tests fail"), "{prompts:#?}");
    let noted = stage.noted().await;
    assert!(noted.iter().any(|line| line.contains("--resume")), "{noted:#?}");
}

#[tokio::test]
async fn nothing_is_left_running_whatever_the_program_has_started() {
    let stage = Stage::new();
    assert_eq!(
        stage.run("daemon", Program::agent(&stage).policy(&stage)).await,
        COMPLETED,
        "{:#?}",
        stage.told().await
    );
    assert_eq!(stage.left_running(), 0);
}

#[tokio::test]
async fn a_server_that_sessions_would_share_is_the_runs_own_unless_the_user_names_one() {
    let stage = Stage::new();
    let script = "env > env; stat -c %a \"$FAKE_SOCKETS\" > mode; exec python3 \"$0\"";
    let agent = stage.folder.path().join("agent.py").display().to_string();
    let program = |own: bool| {
        Program::agent(&stage).with(|external| {
            external.program = "sh".to_owned();
            external.args = vec!["-c".to_owned(), script.to_owned(), agent.clone()];
            if own {
                external.env.insert("FAKE_HUB".to_owned(), "/home/ann/hub".to_owned());
            }
        })
    };
    assert_eq!(stage.run("say hello", program(false).policy(&stage)).await, COMPLETED);
    let env = stage.file("env").expect("written");
    let place = |name: &str| env.lines().find_map(|line| line.strip_prefix(name)).expect("a variable");
    let (hub, sockets) = (Path::new(place("FAKE_HUB=")), Path::new(place("FAKE_SOCKETS=")));
    assert!(hub.is_absolute() && hub.ends_with("hub.json") && hub.parent() == sockets.parent(), "{env}");
    assert!(!hub.parent().expect("a folder").exists(), "it is gone with the run");
    assert_eq!(stage.file("mode").as_deref(), Some("700\n"));
    let other = Stage::new();
    assert_eq!(other.run("say hello", program(true).policy(&other)).await, COMPLETED);
    assert!(other.file("env").expect("written").lines().any(|line| line == "FAKE_HUB=/home/ann/hub"));
}

#[tokio::test]
async fn a_program_gets_the_variables_that_its_policy_names_and_no_others() {
    let stage = Stage::new();
    let program = Program::shell("env > env").with(|external| {
        external.passes = vec!["HANDED".to_owned()];
        external.env.insert("OWN".to_owned(), "its".to_owned());
    });
    assert_eq!(stage.run("look", program.policy(&stage)).await, COMPLETED);
    let env = stage.file("env").expect("written");
    for wanted in ["HANDED=through", "OWN=its", "TERM=xterm-256color"] {
        assert!(env.lines().any(|line| line == wanted), "{wanted}: {env}");
    }
    assert!(!env.contains("KEPT"), "{env}");
}
