//! Writing recordings, and the moments of one that a person is asked about.

use std::sync::Arc;
use std::time::Duration;

use provost_event::{Exit, WindowSize};
use provost_terminal::{
    EventKind, KernelSample, Label, Profile, Recording, RecordingStep, ReplayOptions, replay,
};

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn output(ms: u64, text: &str) -> (Duration, RecordingStep) {
    (at(ms), RecordingStep::Output(text.as_bytes().to_vec()))
}

fn input(ms: u64, text: &str) -> (Duration, RecordingStep) {
    (at(ms), RecordingStep::Input(text.as_bytes().to_vec()))
}

/// A program that asks for a name and a password, works, and ends.
fn session() -> Recording {
    let reads = KernelSample {
        echo: Some(true),
        canonical: Some(true),
        reads_terminal: Some(true),
        polls: Some(false),
        is_busy: Some(false),
        foreground: Some(7),
        ..KernelSample::default()
    };
    let works = KernelSample { reads_terminal: Some(false), is_busy: Some(true), polls: Some(true), ..reads };
    Recording {
        name: String::new(),
        argv: vec!["asks".to_owned()],
        size: WindowSize::new(24, 80),
        steps: vec![
            output(100, "Name: "),
            input(2_000, "a"),
            output(2_010, "a"),
            input(3_500, "nn"),
            output(3_510, "nn"),
            input(5_000, "\r"),
            output(5_010, "\r\nPassword: "),
            input(7_000, "\r"),
            output(7_100, "\r\nworking"),
            output(7_400, "."),
            output(7_700, "."),
            output(10_000, "\r\ndone\r\n"),
        ],
        samples: vec![
            (at(110), reads),
            (at(5_020), KernelSample { echo: Some(false), ..reads }),
            (at(7_050), KernelSample { tool_started: Some(at(7_000)), awaits_answer: Some(true), ..works }),
        ],
        exit: (at(10_100), Exit::Code(3)),
        labels: None,
    }
}

#[test]
fn a_recording_that_was_written_is_read_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut written = session();
    written.labels = Some(vec![Label::of(EventKind::PasswordPrompt, (5.01, 7.0))]);
    written.write(&folder.path().join("one")).expect("written");
    let read = Recording::read(&folder.path().join("one.raw.jsonl")).expect("read");
    assert_eq!(read.name, "one");
    assert_eq!((read.argv, read.size, read.exit), (written.argv, written.size, written.exit));
    assert_eq!(read.steps, written.steps);
    assert_eq!(read.samples, written.samples);
    assert_eq!(read.labels, written.labels);
}

#[test]
fn a_moment_lasts_until_the_answer_is_sent_or_the_program_goes_on() {
    let moments = session().moments(&[]);
    let seen = moments
        .iter()
        .map(|moment| {
            let row = moment.rows.get(usize::from(moment.cursor_row)).map(String::as_str);
            (moment.begin.as_millis(), moment.end.as_millis(), row.unwrap_or_default())
        })
        .collect::<Vec<_>>();
    assert_eq!(
        seen,
        [(100, 5_000, "Name:"), (5_010, 7_000, "Password:"), (7_700, 10_000, "working..")],
        "{moments:#?}"
    );
}

#[test]
fn a_marked_moment_is_one_however_short() {
    let moments = session().moments(&[at(7_200)]);
    let marked = moments.iter().filter(|moment| moment.is_marked).collect::<Vec<_>>();
    assert_eq!(marked.len(), 1, "{moments:#?}");
    assert_eq!((marked[0].begin, marked[0].end), (at(7_100), at(7_400)));
}

#[test]
fn labels_of_a_recording_score_a_detector() {
    let mut recording = session();
    recording.labels = Some(vec![
        Label::of(EventKind::WaitingForInput, (0.1, 5.0)),
        Label::of(EventKind::PasswordPrompt, (5.01, 7.0)),
        Label::of(EventKind::Completion, (10.1, 10.1)),
    ]);
    let profile = Arc::new(Profile::named("generic").expect("a profile"));
    let detected = replay(&recording, profile, ReplayOptions::default());
    let predictions = detected.iter().filter_map(provost_terminal::Prediction::of).collect::<Vec<_>>();
    let mut score = provost_terminal::Score::default();
    score.add("one", recording.labels.as_deref().unwrap_or_default(), &predictions);
    assert!(score.mistakes.is_empty(), "{:?} {predictions:?}", score.mistakes);
}
