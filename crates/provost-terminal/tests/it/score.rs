//! The scorer, and recordings as files.

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use provost_event::{Exit, WindowSize};
use provost_terminal::{
    EventKind, KernelSample, Label, Prediction, Profile, Recording, RecordingStep, ReplayOptions, Score,
    replay,
};

fn label(kind: EventKind, t: f64, t_end: f64) -> Label {
    Label { kind, t, t_end: Some(t_end), t_soft: None, accept: vec![kind] }
}

const fn saw(kind: EventKind, t: f64) -> Prediction {
    Prediction { t, kind }
}

#[test]
fn hits_misses_false_alarms_and_delays_are_counted_by_kind() {
    let labels = [
        label(EventKind::ApprovalRequest, 1.0, 3.0),
        label(EventKind::WaitingForInput, 5.0, 6.0),
        label(EventKind::PasswordPrompt, 7.0, 8.0),
        Label { t_soft: Some(8.5), ..label(EventKind::Idle, 9.0, 10.0) },
        label(EventKind::Completion, 20.0, 20.1),
    ];
    let predictions = [
        saw(EventKind::ApprovalRequest, 1.06),
        saw(EventKind::ApprovalRequest, 2.0),
        saw(EventKind::ApprovalRequest, 3.3),
        saw(EventKind::WaitingForInput, 6.41),
        saw(EventKind::PasswordPrompt, 6.96),
        saw(EventKind::Idle, 8.5),
        saw(EventKind::Completion, 22.9),
        saw(EventKind::Working, 3.1),
    ];
    let score = Score::of([("tape", &labels[..], &predictions[..])]);
    expect![[r#"
        kind                  n  hit false  miss   prec recall   p50 s   p90 s
        approval_request      1    1     0     0  1.000  1.000   0.060       -
        waiting_for_input     1    0     1     1  0.000  0.000       -       -
        password_prompt       1    1     0     0  1.000  1.000   0.000       -
        idle                  1    1     0     0  1.000  1.000   0.000       -
        error                 0    0     0     0      -      -       -       -
        completion            1    1     0     0  1.000  1.000   2.900       -
        needs_human           4    3     1     1  0.750  0.750   0.000   0.000
        [
            Mistake {
                recording: "tape",
                wrong: Missed,
                kind: WaitingForInput,
                t: 5.0,
            },
            Mistake {
                recording: "tape",
                wrong: FalseAlarm,
                kind: WaitingForInput,
                t: 6.41,
            },
        ]
    "#]]
    .assert_eq(&format!("{score}{:#?}\n", score.mistakes));
}

#[test]
fn a_recording_is_read_with_what_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let raw = r#"{"t": 0.5, "d": "o", "b64": "aGk="}
{"t": 0.6, "d": "i", "b64": "eA==", "src": "user"}
{"t": 0.7, "d": "i", "b64": "eA==", "src": "term"}
{"t": 0.8, "d": "r", "b64": "MTAweDM2"}
"#;
    let path = folder.path().join("tape.raw.jsonl");
    std::fs::write(&path, raw).expect("written");
    let bare = Recording::read(&path).expect("read");
    assert_eq!((bare.name.as_str(), bare.argv.len(), bare.size), ("tape", 0, WindowSize::default()));
    let steps: Vec<RecordingStep> = bare.steps.iter().map(|(_, step)| step.clone()).collect();
    let size = WindowSize::new(36, 100);
    assert_eq!(
        steps,
        [
            RecordingStep::Output(b"hi".to_vec()),
            RecordingStep::Input(b"x".to_vec()),
            RecordingStep::Resize(size)
        ]
    );
    assert!(bare.labels.is_none() && bare.samples.is_empty());

    let about = r#"{"argv": ["rm", "-i"], "rows": 20, "cols": 70, "t_exit": 2.5, "exit_status": -9, "other": [1],
        "events": [{"kind": "idle", "t": 1, "t_end": null, "accept": ["idle", "something new"]}]}"#;
    std::fs::write(folder.path().join("tape.json"), about).expect("written");
    let kernel = r#"{"t": 0.1, "fg": 0, "echo": true, "icanon": true, "procs": [{"comm": "kthreadd"}], "tty_read": false}
{"t": 0.2, "fg": 7, "echo": false, "icanon": false, "procs": [{"pid": 7, "st": "S", "sys": "270", "wchan": "x"}]}
"#;
    std::fs::write(folder.path().join("tape.proc.jsonl"), kernel).expect("written");
    let full = Recording::read_folder(folder.path()).expect("read").remove(0);
    assert_eq!((full.exit.1, full.size), (Exit::Signal(9), WindowSize::new(20, 70)));
    let [(_, kernel_threads), (_, polls)] = full.samples[..] else { panic!("two samples") };
    assert_eq!((kernel_threads.reads_terminal, kernel_threads.echo), (Some(false), Some(true)));
    assert_eq!((polls.polls, polls.reads_terminal, polls.foreground), (Some(true), Some(false), Some(7)));
    assert_eq!(full.labels.expect("labels")[0].accept, [EventKind::Idle, EventKind::Other]);
}

#[test]
fn a_broken_line_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tape.raw.jsonl");
    std::fs::write(&path, "{\"t\": 0, \"d\": \"o\", \"b64\": \"aGk=\"}\n{\"t\": oops\n").expect("written");
    let error = Recording::read(&path).expect_err("broken").to_string();
    assert!(error.contains("line 2"), "{error}");
}

#[test]
fn steps_that_were_written_in_another_order_than_they_happened_are_played_to_the_end() {
    let at = Duration::from_millis;
    let raw = KernelSample { canonical: Some(false), polls: Some(true), ..KernelSample::default() };
    let tape = Recording {
        name: "tape".to_owned(),
        argv: Vec::new(),
        size: WindowSize::default(),
        steps: vec![
            (at(1005), RecordingStep::Input(b"x".to_vec())),
            (at(900), RecordingStep::Output(b"$ ".to_vec())),
        ],
        samples: vec![(at(10), raw)],
        exit: (at(5000), Exit::Code(0)),
        labels: None,
    };
    let generic = Arc::new(Profile::named("generic").expect("shipped"));
    let last = replay(&tape, generic, ReplayOptions::default()).pop().expect("its end");
    assert_eq!(last.at, at(5000));
}
