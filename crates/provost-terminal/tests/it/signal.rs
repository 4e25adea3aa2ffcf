//! Reports of programs.

use provost_event::WindowSize;
use provost_terminal::{Screen, Signal};

fn signals(bytes: &str) -> Vec<Signal> {
    let mut screen = Screen::new(WindowSize::default());
    screen.feed(bytes.as_bytes());
    screen.take_signals()
}

fn check(bytes: &str, expected: &[Signal]) {
    assert_eq!(signals(bytes), expected, "{bytes:?}");
}

fn status(fields: &[(&str, &str)]) -> Signal {
    Signal::Status(fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
}

fn note(text: &str) -> Signal {
    Signal::Notification(text.to_owned())
}

#[test]
fn titles_are_reported_and_kept() {
    check(
        "\x1b]0;one\x07\x1b]2;two\x1b\\\x1b]1;icon\x07",
        &[Signal::Title("one".into()), Signal::Title("two".into())],
    );
    check("\x1b]0;a;b\x07", &[Signal::Title("a;b".into())]);
    check(
        "\x1b]2;a\x07\x1b[22;2t\x1b]2;b\x07\x1b[23;2t",
        &[Signal::Title("a".into()), Signal::Title("b".into()), Signal::Title("a".into())],
    );
}

#[test]
fn a_status_has_its_fields_parted_by_semicolons_or_colons() {
    check("\x1b]7501;state=working;app=x\x1b\\", &[status(&[("state", "working"), ("app", "x")])]);
    check(
        "\x1b]7501;state=blocked:app=codex:kind=permission\x07",
        &[status(&[("state", "blocked"), ("app", "codex"), ("kind", "permission")])],
    );
    check(
        "\x1b]7501;state=idle;url=http://x:80/\x07",
        &[status(&[("state", "idle"), ("url", "http://x:80/")])],
    );
    check("\x1b]7501;app=x\x07\x1b]7501\x07\x1b]7501;;;\x07", &[]);
}

#[test]
fn a_shells_marks_are_reported() {
    check(
        "\x1b]133;A;cl=m\x07\x1b]133;B\x07\x1b]133;C\x07\x1b]133;D;127\x07\x1b]133;D\x07\x1b]133;Z\x07",
        &[
            Signal::Mark('A', None),
            Signal::Mark('B', None),
            Signal::Mark('C', None),
            Signal::Mark('D', Some(127)),
            Signal::Mark('D', None),
        ],
    );
}

#[test]
fn progress_is_told_from_a_notification() {
    check("\x1b]9;4;1;50\x07", &[Signal::Progress(1, Some(50))]);
    check("\x1b]9;4;3\x07\x1b]9;4;1;200\x07", &[Signal::Progress(3, None), Signal::Progress(1, Some(100))]);
    check("\x1b]9;9;/home\x07\x1b]9;4;7;1\x07", &[]);
    check("\x1b]9;build done\x07", &[note("build done")]);
}

#[test]
fn notifications_of_three_kinds_are_read() {
    check("\x1b]777;notify;Title;Body\x07", &[note("Title: Body")]);
    check("\x1b]777;notify;Title\x07\x1b]777;other;x\x07", &[note("Title")]);
    check("\x1b]99;;hello\x1b\\", &[note("hello")]);
    check("\x1b]99;i=1:e=1;aGVsbG8=\x1b\\", &[note("hello")]);
    check("\x1b]99;i=1:d=0;Title\x1b\\\x1b]99;i=1:p=body;Body\x1b\\", &[note("Title Body")]);
    check("\x1b]99;i=1:p=?;\x1b\\", &[]);
}

#[test]
fn bells_in_a_row_are_one_and_keep_their_place() {
    check("\x07\x07\x1b]9;x\x07\x07", &[Signal::Bell, note("x"), Signal::Bell]);
}

#[test]
fn texts_are_short_and_harmless() {
    check("\x1b]9;a\u{85}b\u{202e}c\td\x07", &[note("abcd")]);
    let [Signal::Title(title)] = &signals(&format!("\x1b]0;{}\x07", "ä".repeat(1_500)))[..] else {
        panic!("no title")
    };
    assert_eq!(title.chars().count(), 1_024);
    check(&format!("\x1b]0;{}\x07", "x".repeat(5_000)), &[]);
}

#[test]
fn of_unread_reports_the_last_are_kept() {
    let all: String = (0..1_000).map(|n| format!("\x1b]0;{n}\x07")).collect();
    let signals = signals(&all);
    assert_eq!((signals.len(), signals.last()), (256, Some(&Signal::Title("999".into()))));
}
