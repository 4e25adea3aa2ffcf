//! Recordings of terminals.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

use provost_event::SessionId;
use provost_harness::Backend;
use provost_terminal::{CastReader, Happened, Screen};
use provost_view::{AgentRecordings, ViewVersion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cells::ScreenView;
use crate::problem::Problem;

/// Parts of the time of a recording that are told apart.
const PARTS: u64 = 200;
/// Marks that are told.
const MARKS_MAX: usize = 200;

/// A recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RecordingView {
    /// The version of the view.
    pub(crate) v: ViewVersion,
    /// Its number among those of its agent, from 1.
    pub(crate) number: usize,
    /// How long it is.
    pub(crate) duration_ms: u64,
    /// How much was shown in each part of that time; all parts are equally long.
    pub(crate) bytes: Vec<u64>,
    /// What was noted in it, in order; the first 200.
    pub(crate) marks: Vec<MarkView>,
}

/// What was noted at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct MarkView {
    /// When, from the start.
    pub(crate) at_ms: u64,
    /// What.
    pub(crate) label: String,
}

/// A screen of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RecordedScreen {
    /// When, from the start.
    pub(crate) at_ms: u64,
    /// When what is shown changes next; null at the end.
    pub(crate) next_ms: Option<u64>,
    /// The screen.
    pub(crate) screen: ScreenView,
}

/// The files of an agent's recordings that are there. Only those in `folder` count: the log of an imported run may name
/// any file.
///
/// # Errors
/// When the log can't be read.
pub(crate) async fn files(
    backend: &dyn Backend,
    session: SessionId,
    folder: &Path,
) -> Result<Vec<PathBuf>, Problem> {
    let files = AgentRecordings::read(backend, session).await?.files;
    let Ok(folder) = folder.canonicalize() else { return Ok(Vec::new()) };
    let is_in = |file: &PathBuf| file.canonicalize().is_ok_and(|file| file.starts_with(&folder));
    Ok(files.into_iter().filter(is_in).collect())
}

/// What is known of a recording. Blocking.
///
/// # Errors
/// When it can't be read.
pub(crate) fn view(file: &Path, number: usize) -> Result<RecordingView, Problem> {
    let (mut duration, mut marks, mut shown) = (Duration::ZERO, Vec::new(), Vec::new());
    for event in reader(file)? {
        let Ok(event) = event else { break };
        duration = duration.max(event.at);
        match event.what {
            Happened::Output(text) => shown.push((event.at, text.len() as u64)),
            Happened::Marker(label) if marks.len() < MARKS_MAX => {
                marks.push(MarkView { at_ms: millis(event.at), label });
            }
            Happened::Marker(_) | Happened::Input(_) | Happened::Resized(_) => {}
        }
    }
    let duration_ms = millis(duration);
    let mut bytes = vec![0_u64; usize::try_from(PARTS).unwrap_or_default()];
    for (at, count) in shown {
        let part = (millis(at) * PARTS).checked_div(duration_ms.max(1)).unwrap_or_default().min(PARTS - 1);
        if let Some(sum) = bytes.get_mut(usize::try_from(part).unwrap_or_default()) {
            *sum += count;
        }
    }
    Ok(RecordingView { v: ViewVersion, number, duration_ms, bytes, marks })
}

/// What it shows at a moment. Blocking.
///
/// # Errors
/// When it can't be read.
pub(crate) fn screen_at(file: &Path, at_ms: u64) -> Result<RecordedScreen, Problem> {
    let reader = reader(file)?;
    let mut screen = Screen::new(reader.header().size);
    let mut next = None;
    for event in reader {
        let Ok(event) = event else { break };
        let at = millis(event.at);
        let is_shown = matches!(event.what, Happened::Output(_) | Happened::Resized(_));
        if at > at_ms {
            if is_shown {
                next = Some(at);
                break;
            }
            continue;
        }
        match event.what {
            Happened::Output(text) => screen.feed(text.as_bytes()),
            Happened::Resized(size) => screen.resize(size),
            Happened::Input(_) | Happened::Marker(_) => {}
        }
        screen.take_replies();
        screen.take_signals();
    }
    Ok(RecordedScreen { at_ms, next_ms: next, screen: ScreenView::of(&screen) })
}

fn reader(file: &Path) -> Result<CastReader<BufReader<File>>, Problem> {
    let cant = |why: String| Problem::conflict(format!("the recording can't be read: {why}"));
    let file = File::open(file).map_err(|error| cant(error.to_string()))?;
    CastReader::new(BufReader::new(file)).map_err(|error| cant(error.to_string()))
}

fn millis(at: Duration) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(u64::MAX)
}
