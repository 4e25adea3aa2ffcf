//! `provost replay`: plays a recording of what a program showed.

use std::fs::File;
use std::io::{BufReader, IsTerminal as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use provost_event::SessionId;
use provost_terminal::{CastReader, Happened, PlayOptions, Player};
use tokio::time::{Duration, sleep};

use super::target::{Target, agent_of};
use super::{backend_to_read, print};
use crate::attached::{reset, size};
use crate::cli::ReplayArgs;
use crate::exit::{Exit, Refusal};
use crate::output::tell;
use crate::render::plural;
use crate::signals::Signals;
use provost_view::{AgentRecordings, run_state};

const ENDING: &str = "cast";

pub(super) async fn replay(args: ReplayArgs) -> anyhow::Result<Exit> {
    if !args.speed.is_finite() || args.speed <= 0.0 {
        let what = format!("--speed must be more than 0 (is {})", args.speed);
        return Err(Refusal::new(what, "e.g. --speed 2").into());
    }
    let files = files(&args).await?;
    let options = PlayOptions { speed: args.speed, idle_max: args.max_idle };
    let mut signals = Signals::listen()?;
    // Sequences that a recording leaves open are the terminal's otherwise, also when it is interrupted.
    let _terminal = std::io::stdout().is_terminal().then(|| Played);
    for file in files {
        let played = tokio::select! {
            played = play(&file, options) => played?,
            _ = signals.next() => return Ok(Exit::Cancelled),
        };
        if let Some(words) = played {
            tell(&words);
        }
    }
    Ok(Exit::Done)
}

/// Restores the terminal as a shell expects it.
struct Played;

impl Drop for Played {
    fn drop(&mut self) {
        reset();
    }
}

/// Plays one recording; returns a note on it, if any.
async fn play(file: &Path, options: PlayOptions) -> anyhow::Result<Option<String>> {
    let cant = || format!("can't play {}", file.display());
    let open = File::open(file).with_context(cant)?;
    let reader = CastReader::new(BufReader::new(open)).with_context(cant)?;
    let window = reader.header().size;
    if let Some(here) = size().filter(|here| here.rows < window.rows || here.cols < window.cols) {
        tell(&format!(
            "note: it was recorded in a window of {} and {}, and this one has {} and {}",
            plural(window.rows.into(), "row"),
            plural(window.cols.into(), "column"),
            here.rows,
            here.cols
        ));
        sleep(Duration::from_secs(1)).await;
    }
    let mut player = Player::new(reader, options);
    for step in player.by_ref() {
        let step = step.with_context(cant)?;
        sleep(step.delay).await;
        if let Happened::Output(text) = step.what {
            print(&text)?;
        }
    }
    Ok(player.reader().was_cut().then(|| format!("{} ends in the middle of a line", file.display())))
}

/// The recordings that are meant: a file, or all of an agent, one for each time that its program was started.
async fn files(args: &ReplayArgs) -> anyhow::Result<Vec<PathBuf>> {
    let path = PathBuf::from(&args.what);
    if path.is_file() {
        return Ok(vec![path]);
    }
    if args.what.contains('/') || path.extension().is_some_and(|ending| ending == ENDING) {
        return Err(Refusal::new(format!("there is no recording {}", path.display()), "").into());
    }
    let backend = backend_to_read().await?;
    let Target { run, agent } = Target::find(&*backend, &args.what).await?;
    let session = SessionId { run, agent: args.agent.or(agent).unwrap_or_default() };
    let Some(state) = run_state(&*backend, run).await? else {
        anyhow::bail!("the log of run {run} is empty")
    };
    agent_of(&state, session)?;
    let AgentRecordings { is_program, files } = AgentRecordings::read(&*backend, session).await?;
    let refuse = |what: String, hint: String| Err(Refusal::new(what, hint).into());
    if !is_program {
        let what = format!("agent {} of run {run} is no external agent", session.agent);
        return refuse(what, format!("`provost logs {run}` shows what it did"));
    }
    let there = files.iter().filter(|file| file.is_file()).cloned().collect::<Vec<_>>();
    match (files.first(), there.is_empty()) {
        (None, _) => {
            refuse(format!("nothing was recorded of {session}"), "exec.record says whether it is".to_owned())
        }
        (Some(file), true) => refuse(format!("the recording {} is gone", file.display()), String::new()),
        (Some(_), false) => Ok(there),
    }
}
