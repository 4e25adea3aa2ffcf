//! What may go wrong between a question and its answer, with secrets, and when Provost crashes.

use std::path::{Path, PathBuf};

use provost_event::{
    AgentPolicy, Entry, ErrorClass, GateEntry, Outcome, PauseReason, Seq, TerminalEntry, TerminalEvent,
    TerminalState,
};
use provost_external::{AttachUpdate, Hello, Role, attach};
use provost_harness::hooks::{Hook, HookEvent, HookOptions, HookRegistry, PreToolCall, PreToolCallAction};

use provost_terminal::CastReader;

use crate::stage::{COMPLETED, Program, ROOT, Stage, prompts, says, yes};

/// Keys of a person who is attached, typed once the program is there.
async fn types(terminals: &Path, keys: &[&[u8]], until: &str) {
    let hello = Hello::new(Role::Control, None, "a person");
    let (_, mut shown, mut input) = attach(terminals, ROOT, hello).await.expect("attached");
    for keys in keys {
        input.send(keys).await.expect("typed");
    }
    let mut seen = String::new();
    while !seen.contains(until) {
        match shown.next().await.expect("shown") {
            Some(AttachUpdate::Screen { bytes, .. } | AttachUpdate::Output(bytes)) => {
                seen.push_str(&String::from_utf8_lossy(&bytes))
            }
            Some(_) => {}
            None => return,
        }
    }
    input.detach().await.expect("detached");
    while shown.next().await.expect("shown").is_some() {}
}

/// Makes the program ask another question while its first one is being decided.
struct Meddler {
    terminals: PathBuf,
}

#[async_trait::async_trait]
impl Hook<PreToolCall> for Meddler {
    async fn decide(&self, input: <PreToolCall as HookEvent>::Input<'_>) -> PreToolCallAction {
        if input.arguments.text().contains("touch made") {
            types(&self.terminals, &[b"w"], "something else").await;
        }
        PreToolCallAction::Continue
    }
}

#[tokio::test]
async fn an_answer_for_a_question_that_is_no_longer_asked_is_not_typed() {
    let stage = Stage::new();
    let meddler = Meddler { terminals: stage.terminals() };
    let hooks = HookRegistry::builder().on(HookOptions::new("meddler"), meddler);
    *stage.hooks.lock().expect("hooks") = Some(hooks);
    let allows = |agent: &mut AgentPolicy| {
        agent.permissions.allow = vec!["shell(touch *)".to_owned()];
        agent.permissions.deny = vec!["shell(something *)".to_owned()];
    };
    let policy = Program::agent(&stage).policy_with(&stage, allows);
    assert_eq!(stage.run("run touch made", policy).await, COMPLETED, "{:#?}", stage.told().await);
    assert!(stage.file("made").is_none(), "{:#?}", stage.told().await);
    let told = stage.told().await.join("\n");
    assert!(told.contains("tool: Cancelled The screen changed before the answer could be given"), "{told}");
}

#[tokio::test]
async fn a_question_that_a_person_answers_at_the_terminal_leaves_the_inbox() {
    let stage = Stage::new();
    let run = stage.start("run touch made", Program::agent(&stage).policy(&stage)).await;
    stage.sees(|entry| matches!(entry, Entry::Gate(GateEntry::ApprovalRequested(_)))).await;
    types(&stage.terminals(), &[b"1"], "").await;
    assert_eq!(run.outcome().await, COMPLETED, "{:#?}", stage.told().await);
    assert!(stage.file("made").is_some());
    let told = stage.told().await.join("\n");
    assert!(told.contains("it was answered at the terminal"), "{told}");
    assert_eq!(prompts(stage.file("told")), ["run touch made"], "{told}");
}

#[tokio::test]
async fn what_is_said_while_it_works_is_told_when_it_is_ready_again() {
    let stage = Stage::new();
    let run = stage.start("run sleep 0.5", Program::agent(&stage).policy(&stage)).await;
    let asked = stage.sees(|entry| matches!(entry, Entry::Gate(GateEntry::ApprovalRequested(_)))).await;
    says(&stage, "and be quick").await;
    stage.answers(Seq(asked.seq.0 - 1), yes()).await;
    assert_eq!(run.outcome().await, COMPLETED, "{:#?}", stage.told().await);
    assert_eq!(prompts(stage.file("told")), ["run sleep 0.5", "and be quick"]);
}

#[tokio::test]
async fn a_question_that_stands_when_the_session_rests_is_not_consented_to_by_what_ends_the_program() {
    let stage = Stage::new();
    let run = stage.start("run touch made", Program::agent(&stage).policy(&stage)).await;
    stage.sees(|entry| matches!(entry, Entry::Gate(GateEntry::ApprovalRequested(_)))).await;
    let outcome = run.pauses().await;
    assert!(matches!(outcome, Outcome::Paused { .. }), "{outcome:?} {:#?}", stage.told().await);
    assert!(stage.file("made").is_none(), "{:#?}", stage.told().await);
    let noted = stage.noted().await;
    // It was neither refused nor told to quit: a signal has ended it.
    assert!(noted.iter().any(|line| line.starts_with("ended (signal")), "{noted:#?}");
    assert_eq!(stage.left_running(), 0);
}

#[tokio::test]
async fn ending_a_program_answers_none_of_its_questions() {
    for question in ["Cancel the deletion? [Y/n] ", "Keep the old one? (yes/no) ", "Name: "] {
        let stage = Stage::new();
        let script =
            format!("printf '{question}'; read a && echo \"$a\" > answered || touch ended; sleep 60");
        let run = stage.start("", Program::shell(&script).policy(&stage)).await;
        stage
            .sees_event(|event| {
                matches!(event, TerminalEvent::ApprovalRequest(_) | TerminalEvent::WaitingForInput { .. })
            })
            .await;
        let outcome = run.pauses().await;
        assert!(matches!(outcome, Outcome::Paused { .. }), "{outcome:?} {:#?}", stage.told().await);
        assert_eq!(stage.file("answered"), None, "{question}: {:#?}", stage.told().await);
        assert_eq!(stage.file("ended"), None, "{question}: {:#?}", stage.told().await);
    }
}

#[tokio::test]
async fn a_program_that_works_is_stopped_and_quits_in_its_own_way_when_the_session_rests() {
    let stage = Stage::new();
    let run = stage.start("stay here", Program::agent(&stage).policy(&stage)).await;
    stage.sees_event(|event| matches!(event, TerminalEvent::Submitted { .. })).await;
    let outcome = run.pauses().await;
    assert!(matches!(outcome, Outcome::Paused { .. }), "{outcome:?}");
    let noted = stage.noted().await;
    assert!(noted.iter().any(|line| line == "ended (exit status 0)"), "{noted:#?}");
}

const PASSWORD: &str = "correct horse battery";

#[tokio::test]
async fn words_are_never_typed_into_a_password_prompt_and_a_password_is_kept_nowhere() {
    let stage = Stage::new();
    let script = format!(
        "import getpass\np = getpass.getpass('Password: ')\nopen('length', 'w').write(str(len(p)))\n\
         assert len(p) == {}\n",
        PASSWORD.len()
    );
    std::fs::write(stage.folder.path().join("login.py"), script).expect("a script");
    let script = stage.folder.path().join("login.py").display().to_string();
    let program = Program::named("python3").with(|external| external.args = vec![script]);
    let run = stage.start("log in", program.policy(&stage)).await;
    stage.sees_event(|event| matches!(event, TerminalEvent::PasswordPrompt { .. })).await;
    says(&stage, "these are words").await;
    types(&stage.terminals(), &[PASSWORD.as_bytes(), b"\r"], "").await;
    run.outcome().await;
    assert_eq!(stage.file("length"), Some(PASSWORD.len().to_string()), "{:#?}", stage.told().await);
    assert_eq!(stage.files_with(PASSWORD), Vec::<std::path::PathBuf>::new());
    assert_eq!(stage.recordings().len(), 1);
}

#[tokio::test]
async fn a_password_that_isn_t_typed_suspends_the_session() {
    let stage = Stage::new();
    let program = Program::shell("stty -echo; printf 'Password: '; read it").with(|external| {
        external.idle_ms = Some(300);
        external.submits_goal = true;
    });
    let outcome = stage.run("no secret", program.policy(&stage)).await;
    let Outcome::Paused { why: PauseReason::Unanswered { waits_for } } = outcome else {
        panic!("{outcome:?}")
    };
    assert!(waits_for.contains("password"), "{waits_for}");
    let noted = stage.noted().await;
    assert!(!noted.iter().any(|line| line.starts_with("was told")), "{noted:#?}");
}

#[tokio::test]
async fn after_a_crash_nothing_of_the_old_program_is_left_and_a_new_one_goes_on() {
    let stage = Stage::new();
    let run = stage.start("stay here", Program::agent(&stage).policy(&stage)).await;
    stage.sees_event(|event| matches!(event, TerminalEvent::Submitted { .. })).await;
    run.dies().await;
    let mut again = stage.harness().open(crate::stage::RUN).await.expect("it opens");
    let outcome = tokio::time::timeout(crate::stage::DEADLINE, again.run(&Default::default())).await;
    assert_eq!(outcome.expect("in time").expect("it works"), COMPLETED, "{:#?}", stage.told().await);
    let prompts = prompts(stage.file("told"));
    let [first, second] = prompts.as_slice() else { panic!("{prompts:#?}") };
    assert_eq!(first, "stay here");
    assert!(second.contains("Go on where you left off"), "{second}");
    let noted = stage.noted().await;
    assert_eq!(noted.iter().filter(|line| line.starts_with("started as")).count(), 2, "{noted:#?}");
    assert!(noted.iter().any(|line| line.contains("--resume")), "{noted:#?}");
    assert_eq!(stage.left_running(), 0);
}

#[tokio::test]
async fn a_program_that_never_shows_that_it_took_a_prompt_is_an_error() {
    let stage = Stage::new();
    let program = Program::agent(&stage).with(|external| external.args.push("--deaf".to_owned()));
    let outcome = stage.run("do it", program.policy(&stage)).await;
    let Outcome::Failed { class: ErrorClass::Program, message } = outcome else {
        panic!("{outcome:?} {:#?}", stage.told().await)
    };
    assert!(message.contains("doesn't take what is typed"), "{message}");
}

/// What is typed while a program reads nothing is read by whatever it asks next.
#[tokio::test]
async fn no_return_is_left_for_a_question_that_an_agent_asks_when_it_reads_again() {
    let stage = Stage::new();
    let program = Program::agent(&stage).with(|external| external.args.push("--late".to_owned()));
    let outcome = stage.run("do it", program.policy(&stage)).await;
    let Outcome::Failed { class: ErrorClass::Program, message } = outcome else {
        panic!("{outcome:?} {:#?}", stage.told().await)
    };
    assert!(message.contains("nothing shows that it works on it"), "{message}");
    assert!(stage.file("asked").is_some(), "it was ended before it asked");
    assert!(stage.file("consented").is_none(), "{:#?}", stage.told().await);
}

#[tokio::test]
async fn states_are_noted_as_they_change_and_no_more() {
    let stage = Stage::new();
    // A spinner's mark that comes and goes fifty times a second for a second.
    let script = "for i in $(seq 50); do printf '\\033[H\\033[2J* Working'; sleep 0.01; \
                  printf '\\033[H\\033[2J> '; sleep 0.01; done; exit 0";
    let program = Program::shell(script).with(|external| external.profile = "fake".to_owned());
    assert_eq!(stage.run("spin", program.policy(&stage)).await, COMPLETED, "{:#?}", stage.told().await);
    let states = stage.log().await.into_iter().filter(|record| {
        matches!(&record.entry, Entry::Terminal(TerminalEntry::Noted(noted)) if matches!(noted.event, TerminalEvent::State(state) if state != TerminalState::Exited))
    });
    let count = states.count();
    assert!(count <= 12, "{count}: {:#?}", stage.told().await);
}

#[tokio::test]
async fn a_plain_program_that_remembers_nothing_is_told_all_of_it_again_after_a_crash() {
    let stage = Stage::new();
    let script =
        "printf 'Task: '; read task; echo $task >> tasks; printf 'More: '; read more; echo $more >> tasks";
    let program = Program::shell(script).with(|external| external.submits_goal = true);
    let run = stage.start("first", program.policy(&stage)).await;
    stage.sees_event(|event| matches!(event, TerminalEvent::Submitted { .. })).await;
    let more = |event: &TerminalEvent| matches!(event, TerminalEvent::WaitingForInput { prompt } if prompt.contains("More"));
    stage.sees_event(more).await;
    run.dies().await;
    let mut again = stage.harness().open(crate::stage::RUN).await.expect("it opens");
    let cancel = tokio_util::sync::CancellationToken::new();
    let work = tokio::spawn(async move { again.run(&cancel).await.map(|outcome| (again, outcome)) });
    let (_, outcome) = tokio::time::timeout(crate::stage::DEADLINE, work)
        .await
        .expect("in time")
        .expect("no panic")
        .expect("it works");
    assert_eq!(outcome, COMPLETED, "{:#?}", stage.told().await);
    assert_eq!(stage.file("tasks").expect("written"), "first\nfirst\n", "{:#?}", stage.told().await);
}

#[tokio::test]
async fn a_plain_program_with_a_goal_is_done_when_it_reads_anew() {
    let stage = Stage::new();
    let script = "while :; do printf 'calc> '; read sum || exit; echo $(($sum)); done";
    let program = Program::shell(script).with(|external| external.submits_goal = true);
    assert_eq!(stage.run("6 * 7", program.policy(&stage)).await, COMPLETED, "{:#?}", stage.told().await);
    let told = stage.told().await.join("\n");
    assert!(told.contains(r#"answer: [Text("42")]"#), "{told}");
    assert_eq!(stage.left_running(), 0);
}

#[tokio::test]
async fn a_recording_has_what_was_shown_without_secrets() {
    let stage = Stage::new();
    let secret = format!("sk-ant-{}", "a1B2".repeat(8));
    let script =
        format!("echo shown; printf 'key '; printf {}; sleep 0.05; echo {}", &secret[..12], &secret[12..]);
    std::fs::write(stage.workspace().join("tell.sh"), script).expect("a script");
    let program = Program::named("sh").with(|external| external.args = vec!["tell.sh".to_owned()]);
    assert_eq!(stage.run("tell", program.policy(&stage)).await, COMPLETED, "{:#?}", stage.told().await);
    let recordings = stage.recordings();
    let [recording] = recordings.as_slice() else { panic!("{recordings:?}") };
    let reader = CastReader::new(std::io::BufReader::new(std::fs::File::open(recording).expect("there")))
        .expect("a cast");
    let events = reader.collect::<Result<Vec<_>, _>>().expect("events");
    let text = format!("{events:?}");
    assert!(text.contains("shown") && text.contains("[secret]"), "{text}");
    assert!(!text.contains(&secret[12..]), "{text}");
    let told = stage.told().await.join("\n");
    assert!(told.contains("key [secret]"), "{told}");
}

#[tokio::test]
async fn a_secret_that_the_terminal_shows_gets_no_prompt_and_is_kept_nowhere() {
    let stage = Stage::new();
    let script = "printf 'Password: '; read it; echo \"it was $it\"; printf '%s' \"${#it}\" > length";
    let program = Program::shell(script).with(|external| external.submits_goal = true);
    let run = stage.start("log in", program.policy(&stage)).await;
    stage.sees_event(|event| matches!(event, TerminalEvent::WaitingForInput { .. })).await;
    let (first, second) = PASSWORD.as_bytes().split_at(5);
    types(&stage.terminals(), &[first, second, b"\r"], "it was").await;
    run.outcome().await;
    assert_eq!(stage.file("length"), Some(PASSWORD.len().to_string()), "{:#?}", stage.told().await);
    assert_eq!(stage.files_with(PASSWORD), Vec::<std::path::PathBuf>::new());
    let noted = stage.noted().await;
    assert!(
        !noted.iter().any(|line| line.starts_with("was told") || line.contains("password")),
        "{noted:#?}"
    );
}
