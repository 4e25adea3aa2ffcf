//! `provost diff`: what was changed in a workspace since a run began.

use std::io::IsTerminal as _;
use std::sync::Arc;

use anyhow::Context as _;
use console::Style;
use provost_engine::RunState;
use provost_event::{Entry, LifecycleEntry, RunId, Seq, SessionId, counted};
use provost_harness::{
    Backend, Redactor, Sandbox, WorkspaceDiffError, WorkspaceDiffQuery, confine_own_git, workspace_diff,
};
use provost_view::{ChangedFile, ChangedFileState, RunChanges, run_state};
use tokio_util::sync::CancellationToken;

use super::show::date_and_time;
use super::target::{Target, agent_of};
use super::{backend_to_read, place, print};
use crate::cli::DiffArgs;
use crate::exit::{Exit, Refusal};
use crate::output::tell;
use crate::render::{safe, visible};
use crate::wiring::variables;

/// A file with more changed lines is printed on a terminal only if it is asked for.
const SHOWN_LINES_MAX: u64 = 1_000;
/// Agents that are asked whether they have a worktree.
const AGENTS_MAX: usize = 200;

/// Has git look from a box, if the run's agents were confined.
fn boxed_git(state: &RunState) -> anyhow::Result<Option<Arc<dyn Sandbox>>> {
    if state.policy().is_none_or(|policy| policy.agent.sandbox.is_off()) {
        return Ok(None);
    }
    let sandbox: Arc<dyn Sandbox> = Arc::new(place()?.sandbox(variables()));
    confine_own_git(&sandbox);
    Ok(Some(sandbox))
}

pub(super) async fn diff(args: DiffArgs) -> anyhow::Result<Exit> {
    let backend = backend_to_read().await?;
    let Target { run, agent } = Target::find(&*backend, &args.run).await?;
    let state = run_state(&*backend, run).await?.with_context(|| format!("the log of run {run} is empty"))?;
    let session = SessionId { run, agent: agent.unwrap_or_default() };
    if agent.is_some() {
        agent_of(&state, session)?;
    }
    let paths = args.paths.iter().map(|path| path.trim_start_matches("./").to_owned()).collect();
    let query = WorkspaceDiffQuery { paths, has_patches: !args.stat };
    let redactor = Arc::new(Redactor::default());
    // Kept as long as git looks.
    let _sandbox = boxed_git(&state)?;
    let compared = workspace_diff(&*backend, session, &query, &redactor, &CancellationToken::new()).await;
    let changes = RunChanges::new(run, session.agent, compared.map_err(refusal)?);
    if args.json {
        print(&format!("{}\n", serde_json::to_string(&changes)?))?;
        return Ok(Exit::Done);
    }
    let is_terminal = std::io::stdout().is_terminal();
    if args.stat {
        print(&list(&changes))?;
    } else if is_terminal {
        let is_asked_for = !args.paths.is_empty();
        print(&format!("{}\n{}", list(&changes), patches(&changes, is_asked_for)))?;
    } else {
        for patch in changes.files.iter().filter_map(|file| file.patch.as_deref()) {
            print(patch)?;
        }
        tell(&summary(&changes));
    }
    for file in changes.files.iter().filter(|file| !file.compared && !args.stat && !is_terminal) {
        tell(&format!("not in the patch: {}, whose content wasn't compared", visible(&file.path)));
    }
    if agent.is_none() {
        let others = own_worktrees(&*backend, run, state.agents().map(|agent| agent.session)).await?;
        for session in others {
            tell(&format!(
                "agent {} worked in a git worktree of its own: provost diff {session}",
                session.agent
            ));
        }
    }
    Ok(Exit::Done)
}

fn refusal(error: WorkspaceDiffError) -> anyhow::Error {
    let remedy = match &error {
        WorkspaceDiffError::NoBaseline { run, .. } => format!("`provost logs {run}` shows each call"),
        _ => return error.into(),
    };
    Refusal::new(error.to_string(), remedy).into()
}

/// The agents that have worktrees of their own.
async fn own_worktrees(
    backend: &dyn Backend,
    run: RunId,
    agents: impl Iterator<Item = SessionId>,
) -> anyhow::Result<Vec<SessionId>> {
    let mut found = Vec::new();
    for session in agents.filter(|session| *session != SessionId::root(run)).take(AGENTS_MAX) {
        let first = backend.read(session.into(), Seq::START, 1).await?;
        let opening = first.first().map(|first| &first.entry);
        if let Some(Entry::Lifecycle(LifecycleEntry::SessionStarted(started))) = opening
            && started.worktree.is_some()
            && started.policy.workspace.is_dir()
        {
            found.push(session);
        }
    }
    Ok(found)
}

/// How much has changed, since when and where.
fn summary(changes: &RunChanges) -> String {
    let RunChanges { files, added, removed, .. } = changes;
    let whose = if changes.is_own_worktree { "its agent" } else { "the run" };
    let files = match files.len() {
        0 => "nothing differs".to_owned(),
        count => format!("{} changed, +{added} -{removed}", counted(count as u64, "file")),
    };
    format!(
        "{files} in {} since {whose} began at {}, changes by others included",
        visible(&changes.workspace.display().to_string()),
        date_and_time(changes.since_at_ms)
    )
}

/// A line for each file, below the summary.
fn list(changes: &RunChanges) -> String {
    let counts = changes.files.iter().map(counts).collect::<Vec<_>>();
    let width = counts.iter().map(String::len).max().unwrap_or_default();
    let lines = changes.files.iter().zip(&counts).map(|(file, counts)| {
        let (mark, style) = match file.change {
            ChangedFileState::Added => ("A", Style::new().green()),
            ChangedFileState::Changed => ("M", Style::new().yellow()),
            ChangedFileState::Deleted => ("D", Style::new().red()),
        };
        format!("{} {counts:<width$}  {}\n", style.apply_to(mark), visible(&file.path))
    });
    format!("{}\n{}", Style::new().bold().apply_to(summary(changes)), lines.collect::<String>())
}

fn counts(file: &ChangedFile) -> String {
    match (file.added, file.removed) {
        (Some(added), Some(removed)) => format!("+{added} -{removed}"),
        _ if file.compared => "not text".to_owned(),
        _ => "not compared".to_owned(),
    }
}

/// The changed lines, in colours.
fn patches(changes: &RunChanges, is_asked_for: bool) -> String {
    let mut page = String::new();
    for file in &changes.files {
        let lines = file.added.unwrap_or_default().saturating_add(file.removed.unwrap_or_default());
        match &file.patch {
            Some(_) if lines > SHOWN_LINES_MAX && !is_asked_for => {
                let path = visible(&file.path);
                page.push_str(&format!(
                    "{path}: {lines} changed lines; `provost diff {} -- {path}` shows them\n",
                    changes.run
                ));
            }
            // The list says that it isn't text.
            Some(_) if file.added.is_none() => {}
            Some(patch) => patch.lines().for_each(|line| page.push_str(&coloured(line))),
            None => {}
        }
    }
    page
}

fn coloured(line: &str) -> String {
    let plain = Style::new();
    let style = match line.as_bytes().first() {
        Some(b'+') if !line.starts_with("+++ ") => plain.green(),
        Some(b'-') if !line.starts_with("--- ") => plain.red(),
        Some(b'@') => plain.cyan(),
        Some(b' ') => plain,
        _ => plain.bold(),
    };
    format!("{}\n", style.apply_to(safe(line)))
}
