//! Recordings of classic programs in several languages and window sizes, and of traps: `tests/recordings`.

use std::path::Path;
use std::sync::Arc;

use provost_terminal::{Prediction, Profile, Recording, ReplayOptions, Reports, Score, replay};

fn recordings() -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    Recording::read_folder(&folder).expect("recordings")
}

fn predictions(recording: &Recording, profile: &Arc<Profile>, reports: Reports) -> Vec<Prediction> {
    let found = replay(recording, Arc::clone(profile), ReplayOptions { reports });
    found.iter().filter_map(Prediction::of).collect()
}

#[test]
fn classic_programs_are_understood_with_and_without_what_programs_say_of_themselves() {
    let profile = Arc::new(Profile::named("generic").expect("a profile"));
    let recordings = recordings();
    assert!(recordings.len() > 40, "{}", recordings.len());
    for reports in [Reports::Heard, Reports::Ignored] {
        let mut score = Score::default();
        for recording in &recordings {
            let labels = recording.labels.as_deref().expect("labels");
            score.add(&recording.name, labels, &predictions(recording, &profile, reports));
        }
        for row in score.rows().iter().filter(|row| row.kind != "error") {
            let is_good = |share: Option<f64>| share.is_none_or(|share| share >= 0.98);
            assert!(
                is_good(row.precision) && is_good(row.recall),
                "{reports:?}\n{score}\n{:#?}",
                score.mistakes
            );
        }
    }
}

#[test]
fn no_person_is_called_by_programs_that_wait_for_none() {
    let profile = Arc::new(Profile::named("generic").expect("a profile"));
    for recording in recordings().iter().filter(|recording| recording.name.starts_with("neg-")) {
        for reports in [Reports::Heard, Reports::Ignored] {
            let predictions = predictions(recording, &profile, reports);
            let alarms: Vec<_> =
                predictions.iter().filter(|prediction| prediction.kind.needs_human()).collect();
            assert!(alarms.is_empty(), "{}: {alarms:?}", recording.name);
        }
    }
}
