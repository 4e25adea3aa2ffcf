//! `provost profile mark`: a person says what a recording shows.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use provost_config::Profiles;
use provost_terminal::{EventKind, Label, Moment, Prediction, Profile, Recording, ReplayOptions, replay};

use crate::cli::ProfileMarkArgs;
use crate::commands::{print, shown};
use crate::exit::{Exit, Refusal};
use crate::output::tell;
use crate::render::{plural, safe};

/// Rows that are shown of a screen.
const ROWS_MAX: usize = 14;
/// A detector may report this much before or after a screen stands still.
const ABOUT: f64 = 0.5;
const CHOICES: &str = "a approval · w waits for input · p password · i idle (an agent's composer) · e error · d done · \
                       b busy, or nothing · q leave the rest · Enter: as proposed; several letters for several";

pub(super) fn mark(args: &ProfileMarkArgs, profiles: &Profiles) -> anyhow::Result<Exit> {
    let recording = Recording::read(&args.recording)?;
    let profile = match (&args.profile, recording.argv.split_first()) {
        (Some(name), _) => profiles.named(name)?,
        (None, Some((program, rest))) => profiles.for_command(program, rest),
        (None, None) => profiles.named("generic")?,
    };
    ask(&args.recording, recording, &[], Arc::new(profile))
}

/// Asks about each moment of the recording at `path`, and writes its labels.
pub(super) fn ask(
    path: &Path,
    mut recording: Recording,
    marks: &[Duration],
    profile: Arc<Profile>,
) -> anyhow::Result<Exit> {
    if !std::io::stdin().is_terminal() {
        return Err(
            Refusal::new("standard input is no terminal", "it asks a person what a recording shows").into()
        );
    }
    let moments = recording.moments(marks);
    let detected = replay(&recording, profile, ReplayOptions::default());
    let predictions = detected.iter().filter_map(Prediction::of).collect::<Vec<_>>();
    print(&format!("{}\n{CHOICES}\n", plural(moments.len() as u64, "moment")))?;
    let mut labels = Vec::new();
    for (number, moment) in moments.iter().enumerate() {
        let proposed = proposal(moment, &predictions);
        show(moment, (number + 1, moments.len()), proposed)?;
        let Some(kinds) = answer(proposed)? else { break };
        let span = (moment.begin.as_secs_f64(), moment.end.as_secs_f64());
        labels.extend(kinds.into_iter().map(|kind| Label::of(kind, span)));
    }
    let count = labels.len();
    let needs_human = labels.iter().filter(|label| label.kind.needs_human()).count();
    // The end of the program needs no person to say so.
    let ended = recording.exit.0.as_secs_f64();
    labels.push(Label::of(EventKind::Completion, (ended, ended)));
    recording.labels = Some(labels);
    recording.write_labels(path)?;
    tell(&format!(
        "{}, of which {needs_human} need a person; `provost profile test {}` scores a profile",
        plural(count as u64, "label"),
        shown(path)
    ));
    Ok(Exit::Done)
}

/// What the detector has reported at this moment.
fn proposal(moment: &Moment, predictions: &[Prediction]) -> EventKind {
    let span = moment.begin.as_secs_f64() - ABOUT..=moment.end.as_secs_f64() + ABOUT;
    let seen = predictions.iter().filter(|seen| span.contains(&seen.t)).map(|seen| seen.kind);
    seen.rev().find(|kind| kind.needs_human()).unwrap_or(EventKind::Working)
}

fn show(moment: &Moment, (number, of): (usize, usize), proposed: EventKind) -> anyhow::Result<()> {
    let lasts = moment.end.saturating_sub(moment.begin).as_secs_f64();
    let marked = if moment.is_marked { ", marked" } else { "" };
    let begin = moment.begin.as_secs_f64();
    let mut text = format!("\n--- {number} of {of}: at {begin:.1} s, for {lasts:.1} s{marked}\n");
    let last = moment.rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
    let last = last.max(usize::from(moment.cursor_row) + 1).min(moment.rows.len());
    for (place, row) in moment.rows.iter().enumerate().take(last).skip(last.saturating_sub(ROWS_MAX)) {
        let cursor = if place == usize::from(moment.cursor_row) { '>' } else { ' ' };
        text.push_str(&format!("{cursor} {row}\n"));
    }
    text.push_str(&format!("what is it? [{}] ", name(proposed)));
    print(&safe(&text))
}

const fn name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::ApprovalRequest => "a",
        EventKind::WaitingForInput => "w",
        EventKind::PasswordPrompt => "p",
        EventKind::Idle => "i",
        EventKind::Error => "e",
        EventKind::Completion => "d",
        EventKind::Working | EventKind::Other => "b",
    }
}

/// The kinds that were chosen, none for a program that is busy; `None`: the rest isn't asked.
fn answer(proposed: EventKind) -> anyhow::Result<Option<Vec<EventKind>>> {
    loop {
        let mut line = String::new();
        if std::io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match chosen(line.trim(), proposed) {
            Chosen::Kinds(kinds) => return Ok(Some(kinds)),
            Chosen::Leaves => return Ok(None),
            Chosen::Unreadable => print(&format!("{CHOICES}\n"))?,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Chosen {
    Kinds(Vec<EventKind>),
    Leaves,
    Unreadable,
}

fn chosen(typed: &str, proposed: EventKind) -> Chosen {
    let typed = if typed.is_empty() { name(proposed) } else { typed };
    let mut kinds = Vec::new();
    for letter in typed.chars().filter(|letter| !letter.is_whitespace()) {
        kinds.push(match letter {
            'a' => EventKind::ApprovalRequest,
            'w' => EventKind::WaitingForInput,
            'p' => EventKind::PasswordPrompt,
            'i' => EventKind::Idle,
            'e' => EventKind::Error,
            'd' => EventKind::Completion,
            'b' => continue,
            'q' => return Chosen::Leaves,
            _ => return Chosen::Unreadable,
        });
    }
    Chosen::Kinds(kinds)
}

#[cfg(test)]
mod tests {
    use super::{Chosen, EventKind, chosen};

    #[test]
    fn letters_name_what_is_on_the_screen() {
        let proposed = EventKind::PasswordPrompt;
        assert_eq!(chosen("", proposed), Chosen::Kinds(vec![EventKind::PasswordPrompt]));
        assert_eq!(chosen("ew", proposed), Chosen::Kinds(vec![EventKind::Error, EventKind::WaitingForInput]));
        assert_eq!(chosen("b", proposed), Chosen::Kinds(Vec::new()));
        assert_eq!(chosen("q", proposed), Chosen::Leaves);
        assert_eq!(chosen("yes", proposed), Chosen::Unreadable);
    }
}
