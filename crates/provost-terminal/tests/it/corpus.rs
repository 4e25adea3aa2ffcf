//! The labelled recordings beside the workspace, if they exist.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost_terminal::{Prediction, Profile, Recording, ReplayOptions, Reports, Score, replay};

fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if !folder.join("manifest.json").exists() {
        eprintln!("skipped: no recordings beside the workspace");
        return None;
    }
    Some(folder)
}

fn score(recordings: &[Recording], reports: Reports) -> Score {
    let mut score = Score::default();
    for recording in recordings {
        let program = recording.argv.first().map_or("", String::as_str);
        let profile = Profile::for_command(program, recording.argv.get(1..).unwrap_or_default());
        let found = replay(recording, Arc::new(profile), ReplayOptions { reports });
        let predictions: Vec<Prediction> = found.iter().filter_map(Prediction::of).collect();
        score.add(&recording.name, recording.labels.as_deref().unwrap_or_default(), &predictions);
    }
    score
}

#[test]
fn the_labelled_recordings_are_understood_with_and_without_what_programs_say_of_themselves() {
    let Some(folder) = folder() else { return };
    let recordings = Recording::read_folder(&folder).expect("recordings");
    for reports in [Reports::Heard, Reports::Ignored] {
        let score = score(&recordings, reports);
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
fn nothing_is_seen_where_no_person_is_waited_for() {
    let Some(folder) = folder() else { return };
    let recordings = Recording::read_folder(&folder).expect("recordings");
    for recording in recordings.iter().filter(|recording| recording.name.starts_with("neg-")) {
        let profile = Profile::for_command(&recording.argv[0], &recording.argv[1..]);
        let found = replay(recording, Arc::new(profile), ReplayOptions::default());
        let alarms =
            found.iter().filter_map(Prediction::of).filter(|prediction| prediction.kind.needs_human());
        assert_eq!(alarms.count(), 0, "{}", recording.name);
    }
}
