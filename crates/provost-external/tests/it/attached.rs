//! User terminals attached to a program's terminal.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use provost_event::{Entry, GateEntry, TerminalEvent, ToolEntry, WindowSize};
use provost_external::{AttachError, AttachUpdate, Attached, AttachedInput, Hello, Role, Welcome, attach};
use tokio::time::timeout;

use crate::stage::{COMPLETED, DEADLINE, Program, ROOT, Stage, yes};

/// Repeats its input until that is `end`, and paints its window's size when that changes.
const ECHO: &str = "trap 'stty size' WINCH; printf 'first words\\r\\n'; while :; do read line || continue; \
                    [ \"$line\" = end ] && exit 0; echo \"heard $line\"; done";

struct Guest {
    shown: Attached,
    input: AttachedInput,
    seen: String,
    size: Option<WindowSize>,
}

impl Guest {
    /// A person's terminal, which answers queries.
    async fn terminal(stage: &Stage, size: (u16, u16)) -> Self {
        let hello = Hello::of_terminal(Role::Control, Some(WindowSize::new(size.0, size.1)), "alice");
        let attached = async {
            loop {
                match enter(stage, hello.clone()).await {
                    Ok((_, shown, input)) => break Self { shown, input, seen: String::new(), size: None },
                    Err(AttachError::NotThere { .. }) => tokio::task::yield_now().await,
                    Err(error) => panic!("{error}"),
                }
            }
        };
        timeout(DEADLINE, attached).await.expect("in time")
    }

    async fn comes(stage: &Stage, role: Role, size: Option<(u16, u16)>) -> Self {
        let size = size.map(|(rows, cols)| WindowSize::new(rows, cols));
        let (_, shown, input) = enter(stage, Hello::new(role, size, "alice")).await.expect("attached");
        Self { shown, input, seen: String::new(), size: None }
    }

    /// Reads output until it contains `wanted`.
    async fn sees(&mut self, wanted: &str) {
        let found = async {
            while !self.seen.contains(wanted) {
                match self.shown.next().await.expect("shown") {
                    Some(AttachUpdate::Screen { size, bytes, .. }) => {
                        self.size = Some(size);
                        self.seen = String::from_utf8_lossy(&bytes).into_owned();
                    }
                    Some(AttachUpdate::Output(bytes)) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                    Some(_) => {}
                    None => return false,
                }
            }
            true
        };
        let is_seen = timeout(DEADLINE, found).await.unwrap_or(false);
        assert!(is_seen, "no {wanted:?} in {:?}", self.seen);
    }

    /// Reads until the end; returns whether a successful exit was reported.
    async fn hears_of_the_end(mut self) -> bool {
        let told = async {
            while let Some(shown) = self.shown.next().await.expect("shown") {
                if let AttachUpdate::Gone(exit) = shown {
                    return exit.is_some_and(provost_event::Exit::is_success);
                }
            }
            false
        };
        timeout(DEADLINE, told).await.expect("in time")
    }
}

async fn enter(stage: &Stage, hello: Hello) -> Result<(Welcome, Attached, AttachedInput), AttachError> {
    attach(&stage.terminals(), ROOT, hello).await
}

async fn echo(stage: &Stage) -> crate::stage::Running {
    let run = stage.start("echo", Program::shell(ECHO).policy(stage)).await;
    stage.sees_event(|event| matches!(event, TerminalEvent::WaitingForInput { .. })).await;
    run
}

#[tokio::test]
async fn an_attached_terminal_gets_the_screen_first_and_then_what_comes() {
    let stage = Stage::new();
    let run = echo(&stage).await;
    let mut guest = Guest::comes(&stage, Role::Control, None).await;
    guest.sees("first words").await;
    guest.input.send(b"hello\r").await.expect("typed");
    guest.sees("heard hello").await;
    guest.input.send(b"end\r").await.expect("typed");
    assert!(guest.hears_of_the_end().await);
    assert_eq!(run.outcome().await, COMPLETED, "{:#?}", stage.told().await);
    let noted = stage.noted().await;
    assert!(noted.iter().any(|line| line == "alice is attached"), "{noted:#?}");
}

#[tokio::test]
async fn two_who_watch_see_the_same_and_can_not_type() {
    let stage = Stage::new();
    let run = echo(&stage).await;
    let mut first = Guest::comes(&stage, Role::Watch, None).await;
    let mut second = Guest::comes(&stage, Role::Watch, None).await;
    let mut typist = Guest::comes(&stage, Role::Control, None).await;
    first.input.send(b"not heard\r").await.expect("sent");
    typist.input.send(b"hello\r").await.expect("typed");
    for guest in [&mut first, &mut second, &mut typist] {
        guest.sees("heard hello").await;
        assert!(!guest.seen.contains("not heard"), "{:?}", guest.seen);
    }
    typist.input.send(b"end\r").await.expect("typed");
    run.outcome().await;
}

#[tokio::test]
async fn the_window_is_the_smallest_attached_and_its_own_again_after_the_last_detaches() {
    let stage = Stage::new();
    let run = echo(&stage).await;
    let mut large = Guest::comes(&stage, Role::Control, Some((30, 100))).await;
    large.sees("30 100").await;
    let mut small = Guest::comes(&stage, Role::Watch, Some((50, 60))).await;
    large.sees("30 60").await;
    small.sees("30 60").await;
    small.input.detach().await.expect("detached");
    large.sees("30 100").await;
    large.input.resize(WindowSize::new(20, 70)).await.expect("resized");
    large.sees("20 70").await;
    large.input.detach().await.expect("detached");
    stage.sees_event(|event| matches!(event, TerminalEvent::Detached { by } if by == "alice")).await;
    let mut last = Guest::comes(&stage, Role::Control, None).await;
    last.sees("40 120").await;
    last.input.send(b"end\r").await.expect("typed");
    run.outcome().await;
}

#[tokio::test]
async fn while_a_terminal_is_attached_nothing_is_answered_and_afterwards_it_is_handed_on() {
    let stage = Stage::new();
    let agent = Program::agent(&stage);
    let policy =
        agent.policy_with(&stage, |agent| agent.permissions.allow = vec!["shell(touch *)".to_owned()]);
    let run = stage.start("run touch made", policy).await;
    stage.sees_event(|event| matches!(event, TerminalEvent::Submitted { .. })).await;
    let mut guest = Guest::comes(&stage, Role::Control, None).await;
    guest.sees("Run this command?").await;
    stage.sees_event(|event| matches!(event, TerminalEvent::ApprovalRequest(_))).await;
    // Long enough for an automatic answer.
    let answered = stage.sees(|entry| matches!(entry, Entry::Tool(ToolEntry::Started(_))));
    assert!(timeout(Duration::from_millis(700), answered).await.is_err(), "{:#?}", stage.told().await);
    assert!(stage.file("made").is_none());
    guest.input.detach().await.expect("detached");
    assert_eq!(run.outcome().await, COMPLETED, "{:#?}", stage.told().await);
    assert!(stage.file("made").is_some());
}

#[tokio::test]
async fn the_socket_is_its_owners_alone_and_goes_with_the_program() {
    let stage = Stage::new();
    let run = echo(&stage).await;
    let sockets = stage.terminals().join("sockets");
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&sockets), 0o700);
    let socket = std::fs::read_dir(&sockets).expect("a folder").flatten().next().expect("a socket").path();
    assert_eq!(mode(&socket), 0o600);
    let mut guest = Guest::comes(&stage, Role::Control, None).await;
    guest.input.send(b"end\r").await.expect("typed");
    run.outcome().await;
    assert!(!socket.exists());
    let error =
        enter(&stage, Hello::new(Role::Watch, None, "late")).await.err().expect("no process is there");
    assert!(matches!(error, AttachError::NotThere { .. }), "{error}");
}

#[tokio::test]
async fn a_client_that_reads_nothing_delays_no_other() {
    let stage = Stage::new();
    let script = "read go; i=0; while [ $i -lt 400 ]; do printf '%01000d\\r\\n' $i; i=$((i+1)); done; echo all; read end";
    let run = stage.start("flood", Program::shell(script).policy(&stage)).await;
    stage.sees_event(|event| matches!(event, TerminalEvent::WaitingForInput { .. })).await;
    let stuck = Guest::comes(&stage, Role::Watch, None).await;
    let mut guest = Guest::comes(&stage, Role::Control, None).await;
    guest.input.send(b"go\r").await.expect("typed");
    guest.sees("all").await;
    guest.input.send(b"end\r").await.expect("typed");
    assert_eq!(run.outcome().await, COMPLETED);
    drop(stuck);
}

#[tokio::test]
async fn a_client_of_another_version_is_told_so() {
    let stage = Stage::new();
    let run = echo(&stage).await;
    let mut hello = Hello::new(Role::Watch, None, "old");
    hello.version = 0;
    let error = enter(&stage, hello).await.err().expect("refused");
    assert!(matches!(&error, AttachError::Refused { why } if why.contains("version")), "{error}");
    run.dies().await;
}

#[tokio::test]
async fn a_folder_with_a_long_name_has_a_socket_all_the_same() {
    let mut stage = Stage::new();
    stage.deepen(&"long".repeat(30));
    let run = echo(&stage).await;
    let mut guest = Guest::comes(&stage, Role::Control, None).await;
    guest.sees("first words").await;
    guest.input.send(b"end\r").await.expect("typed");
    assert_eq!(run.outcome().await, COMPLETED);
}

#[tokio::test]
async fn an_answer_is_given_by_the_inbox_while_no_terminal_is_attached() {
    let stage = Stage::new();
    let run = stage.start("run touch made", Program::agent(&stage).policy(&stage)).await;
    let asked = stage.sees(|entry| matches!(entry, Entry::Gate(GateEntry::ApprovalRequested(_)))).await;
    let mut guest = Guest::comes(&stage, Role::Watch, None).await;
    guest.sees("Run this command?").await;
    stage.answers(provost_event::Seq(asked.seq.0 - 1), yes()).await;
    assert_eq!(run.outcome().await, COMPLETED, "{:#?}", stage.told().await);
    assert!(stage.file("made").is_some());
}

/// Asks for the background colour at each `q`, and tells the answer.
const ASKS: &str = "stty raw -echo min 0 time 50; printf 'ready\\r\\n'; while :; do \
                    case $(dd bs=1 count=1 2>/dev/null) in \
                    q) printf '\\033]11;?\\007'; \
                    printf 'got %s\\r\\n' \"$(dd bs=100 count=1 2>/dev/null | tr -d '\\033\\007')\";; \
                    e) exit 0;; esac; done";

#[tokio::test]
async fn a_persons_terminal_answers_queries_and_provost_when_there_is_none() {
    let stage = Stage::new();
    let run = stage.start("asks", Program::shell(ASKS).policy(&stage)).await;
    let mut person = Guest::terminal(&stage, (40, 120)).await;
    let mut watcher = Guest::comes(&stage, Role::Watch, None).await;
    person.sees("ready").await;
    person.input.send(b"q").await.expect("typed");
    person.sees("\u{1b}]11;?\u{7}").await;
    person.input.send(b"\x1b]11;rgb:fafa/fafa/fafa\x07").await.expect("answered");
    person.sees("got ]11;rgb:fafa/fafa/fafa\r").await;
    watcher.sees("got ]11;rgb:fafa/fafa/fafa\r").await;
    assert!(!watcher.seen.contains("]11;?"), "{:?}", watcher.seen);
    // A terminal that leaves with a query open is answered for.
    person.input.send(b"q").await.expect("typed");
    person.sees("\u{1b}]11;?\u{7}").await;
    person.input.detach().await.expect("detached");
    watcher.sees("got ]11;rgb:1111/1111/1111").await;
    let mut page = Guest::comes(&stage, Role::Control, None).await;
    page.sees("got ]11;rgb:1111/1111/1111").await;
    page.seen.clear();
    page.input.send(b"q").await.expect("typed");
    page.sees("got ]11;rgb:1111/1111/1111").await;
    page.input.send(b"e").await.expect("typed");
    assert!(page.hears_of_the_end().await);
    run.outcome().await;
}

#[tokio::test]
async fn a_terminal_that_attaches_gets_what_has_scrolled_off_and_a_copy_does_not() {
    let stage = Stage::new();
    let script = "seq -f 'row %g' 1 500; read line";
    let run = stage.start("rows", Program::shell(script).policy(&stage)).await;
    stage.sees_event(|event| matches!(event, TerminalEvent::WaitingForInput { .. })).await;
    let hello = Hello::of_terminal(Role::Control, Some(WindowSize::new(40, 120)), "alice");
    let (_, mut shown, mut input) = enter(&stage, hello).await.expect("attached");
    let Ok(Some(AttachUpdate::Screen { scrollback, bytes, .. })) = shown.next().await else {
        panic!("the screen comes first")
    };
    let scrollback = String::from_utf8(scrollback).expect("UTF-8").replace("\u{1b}[m", "");
    let rows = scrollback.lines().map(str::trim_end).collect::<Vec<_>>();
    let expected = (1..=rows.len()).map(|row| format!("row {row}")).collect::<Vec<_>>();
    assert_eq!(rows, expected);
    assert_eq!(rows.len(), 500 + 1 - 40, "the rest is on the screen");
    assert!(String::from_utf8_lossy(&bytes).contains("row 500"));
    let (_, mut copy, _input) = enter(&stage, Hello::new(Role::Watch, None, "bob")).await.expect("attached");
    assert!(
        matches!(copy.next().await, Ok(Some(AttachUpdate::Screen { scrollback, .. })) if scrollback.is_empty())
    );
    input.send(b"\r").await.expect("typed");
    run.outcome().await;
}

#[tokio::test]
async fn what_an_attended_program_has_shown_before_it_ended_is_seen_by_the_terminal_that_comes() {
    let stage = Stage::new();
    let mut policy = Program::shell("echo shown").policy(&stage);
    let external = policy.agent.external.as_mut().expect("a program");
    (external.attended, external.submits_goal) = (true, false);
    let run = stage.start("shows", policy).await;
    let mut person = Guest::terminal(&stage, (40, 120)).await;
    person.sees("shown").await;
    assert!(person.hears_of_the_end().await);
    run.outcome().await;
}
