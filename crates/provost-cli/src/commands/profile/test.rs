//! `provost profile test`: the detector over recordings.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use provost_config::{Profiles, read_profile};
use provost_terminal::{
    Prediction, Profile, Recording, RecordingError, ReplayOptions, Reports, Score, ScoreRow, Wrong, replay,
};
use serde_json::{Value, json};

use crate::cli::ProfileTestArgs;
use crate::commands::{print, shown};
use crate::exit::{Exit, Refusal};
use crate::render::{plural, safe};

const RAW: &str = ".raw.jsonl";
/// Mistakes that are listed; what they have in common shows in the first.
const MISTAKES_MAX: usize = 100;

pub(super) fn test(args: &ProfileTestArgs, profiles: &Profiles, here: &Path) -> anyhow::Result<Exit> {
    let (profile, paths) = which(args, profiles)?;
    let paths = if paths.is_empty() { vec![here.to_owned()] } else { paths };
    let recordings = recordings(&paths)?;
    if let Some(folder) = &args.predictions {
        std::fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
    }
    let reports = if args.without_signals { Reports::Ignored } else { Reports::Heard };
    let (mut score, mut known, mut scored) = (Score::default(), HashMap::new(), 0_u64);
    for recording in &recordings {
        let profile = profile.clone().unwrap_or_else(|| chosen(recording, profiles, &mut known));
        let detected = replay(recording, profile, ReplayOptions { reports });
        let predictions = detected.iter().filter_map(Prediction::of).collect::<Vec<_>>();
        if let Some(folder) = &args.predictions {
            write(folder, &recording.name, &predictions)?;
        }
        if let Some(labels) = &recording.labels {
            score.add(&recording.name, labels, &predictions);
            scored += 1;
        }
    }
    let told = if args.json {
        as_json(&score, recordings.len())
    } else {
        page(&score, recordings.len() as u64, scored)
    };
    print(&safe(&told))?;
    if let Some(folder) = args.predictions.as_ref().filter(|_| !args.json) {
        print(&safe(&format!("predictions are in {}\n", shown(folder))))?;
    }
    Ok(Exit::Done)
}

/// The profile that the first argument names, if it does, and the recordings and folders behind it.
fn which(
    args: &ProfileTestArgs,
    profiles: &Profiles,
) -> anyhow::Result<(Option<Arc<Profile>>, Vec<PathBuf>)> {
    let Some((first, rest)) = args.what.split_first() else { return Ok((None, Vec::new())) };
    if first.extension().is_some_and(|ending| ending == "toml") {
        let profile = read_profile(first).map_err(|problem| provost_config::Problems(vec![problem]))?;
        return Ok((Some(Arc::new(profile)), rest.to_vec()));
    }
    if first.is_dir() || is_recording(first) {
        return Ok((None, args.what.clone()));
    }
    if first.components().count() > 1 {
        let what = format!("there is no recording {}", first.display());
        return Err(Refusal::new(what, "give a NAME.raw.jsonl, or a folder of such").into());
    }
    let profile = profiles.named(&first.to_string_lossy())?;
    Ok((Some(Arc::new(profile)), rest.to_vec()))
}

fn is_recording(path: &Path) -> bool {
    path.is_file() || Path::new(&format!("{}{RAW}", path.display())).is_file()
}

fn recordings(paths: &[PathBuf]) -> anyhow::Result<Vec<Recording>> {
    let mut all = Vec::new();
    for path in paths {
        if path.is_dir() {
            let mut of_folder = Recording::read_folder(path).map_err(refusal)?;
            if of_folder.is_empty() {
                let what = format!("there are no recordings in {}", path.display());
                return Err(Refusal::new(what, format!("a recording is a NAME{RAW}")).into());
            }
            all.append(&mut of_folder);
        } else if is_recording(path) {
            all.push(Recording::read(path).map_err(refusal)?);
        } else {
            let what = format!("there is no recording {}", path.display());
            return Err(Refusal::new(what, "give a NAME.raw.jsonl, or a folder of such").into());
        }
    }
    Ok(all)
}

fn refusal(error: RecordingError) -> Refusal {
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    Refusal::new(format!("{error}{cause}"), "")
}

/// The profile that knows a recording's command.
fn chosen(
    recording: &Recording,
    profiles: &Profiles,
    known: &mut HashMap<Vec<String>, Arc<Profile>>,
) -> Arc<Profile> {
    let choose = || {
        let (program, args) = recording
            .argv
            .split_first()
            .map_or(("", Default::default()), |(program, args)| (program.as_str(), args));
        Arc::new(profiles.for_command(program, args))
    };
    Arc::clone(known.entry(recording.argv.clone()).or_insert_with(choose))
}

fn write(folder: &Path, name: &str, predictions: &[Prediction]) -> anyhow::Result<()> {
    let path = folder.join(format!("{name}.jsonl"));
    let mut lines = String::new();
    for prediction in predictions {
        lines.push_str(&serde_json::to_string(prediction)?);
        lines.push('\n');
    }
    std::fs::write(&path, lines).with_context(|| format!("can't write {}", path.display()))
}

fn page(score: &Score, recordings: u64, scored: u64) -> String {
    if scored == 0 {
        return format!("{}, none with labels: nothing is scored\n", plural(recordings, "recording"));
    }
    let without = recordings.saturating_sub(scored);
    let without = if without > 0 { format!(", {without} without labels") } else { String::new() };
    let mut out = format!("{}{without}\n{score}", plural(recordings, "recording"));
    for mistake in score.mistakes.iter().take(MISTAKES_MAX) {
        let wrong = match mistake.wrong {
            Wrong::Missed => "missed",
            Wrong::FalseAlarm => "false alarm",
        };
        // Writing to a String can't fail, here and below.
        let _ =
            writeln!(out, "{wrong}: {} at {:.2} s in {}", mistake.kind.name(), mistake.t, mistake.recording);
    }
    let more = score.mistakes.len().saturating_sub(MISTAKES_MAX);
    if more > 0 {
        let _ = writeln!(out, "and {more} more");
    }
    out
}

fn as_json(score: &Score, recordings: usize) -> String {
    let row = |row: ScoreRow| {
        json!({
            "kind": row.kind,
            "hits": row.scored.hits,
            "misses": row.scored.misses,
            "false_alarms": row.scored.false_alarms,
            "precision": row.precision,
            "recall": row.recall,
            "delay_p50_s": row.delay_p50,
            "delay_p90_s": row.delay_p90,
        })
    };
    let kinds = score.rows().into_iter().map(row).collect::<Vec<Value>>();
    let mistakes = score.mistakes.iter().map(|mistake| {
        let wrong = if mistake.wrong == Wrong::Missed { "missed" } else { "false_alarm" };
        json!({ "recording": mistake.recording, "wrong": wrong, "kind": mistake.kind.name(), "t": mistake.t })
    });
    let mistakes = mistakes.collect::<Vec<Value>>();
    format!("{}\n", json!({ "recordings": recordings, "kinds": kinds, "mistakes": mistakes }))
}
