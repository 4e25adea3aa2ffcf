//! What shells may complete an argument with: runs, agents, models, profiles.
//!
//! A shell starts `provost` with [`VARIABLE`] set for each completion, with the words so far. What can't be read
//! completes nothing.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use clap::CommandFactory as _;
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use provost_config::{Folders, Profiles, Request, Scope, Settled, load};
use provost_harness::{Backend, RunQuery, RunSummary, ServiceRecord};
use tokio::time::timeout;

use crate::commands::{Cli, find};
use crate::render::{one_line, visible};
use crate::wiring::{state_dir, variables};
use provost_runtime::available_tools;
use provost_view::run_state;

/// The variable by which a shell asks; its value is the shell's name.
pub(crate) const VARIABLE: &str = "PROVOST_COMPLETE";

/// Only the newest runs are named.
const RUNS_MAX: usize = 50;
const GOAL_WIDTH: usize = 60;
const LAST: &str = "last";
/// How long runs are looked for.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// Answers a shell that asks for completions; false if none does.
pub(crate) fn answer() -> bool {
    if std::env::var_os(VARIABLE).is_none() {
        return false;
    }
    let folder = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(Cli::command).var(VARIABLE).bin("provost");
    // A shell has no place for an error between the words of a command.
    let _ = asked.try_complete(std::env::args_os(), folder.as_deref());
    true
}

/// Completes the id of a run.
pub(crate) fn runs() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| fitting(current, with_backend(newest_runs)))
}

/// Completes the id of a run, and behind it the number of one of its agents.
pub(crate) fn agents() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| match current.to_str().and_then(|text| text.split_once('.')) {
        Some((run, _)) => {
            let run = run.to_owned();
            fitting(current, with_backend(|backend| agents_of(backend, run)))
        }
        None => fitting(current, with_backend(newest_runs)),
    })
}

/// Completes the name of a model that is known.
pub(crate) fn models() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| fitting(current, known_models()))
}

/// Completes the name of a provider.
pub(crate) fn providers() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| fitting(current, known_providers()))
}

/// Completes the name of a profile of an external program.
pub(crate) fn profiles() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| fitting(current, known_profiles()))
}

/// Completes the name of a service.
pub(crate) fn services() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| fitting(current, known_services()))
}

/// Completes the name of an MCP server.
pub(crate) fn mcp_servers() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| fitting(current, known_mcp_servers()))
}

/// A word and what is said of it.
type Word = (String, String);

/// Those that begin with what is typed.
fn fitting(current: &OsStr, all: Option<Vec<Word>>) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let words = all.unwrap_or_default().into_iter().filter(|(word, _)| word.starts_with(current));
    let candidate =
        |(word, about): Word| CompletionCandidate::new(word).help((!about.is_empty()).then(|| about.into()));
    words.map(candidate).collect()
}

fn bare(name: &str) -> Word {
    (name.to_owned(), String::new())
}

fn settled() -> Option<Settled> {
    let (folder, variables) = (std::env::current_dir().ok()?, variables());
    let request = Request::new(Scope::User, &folder, &variables, available_tools());
    load(&request).ok()?.0.settled().ok()
}

fn known_models() -> Option<Vec<Word>> {
    let settings = provost_runtime::providers(&settled()?.settings, &variables());
    let models = settings.providers.iter().flat_map(|one| settings.catalog.of_provider(&one.name));
    Some(models.map(|facts| bare(&facts.name)).collect())
}

fn known_providers() -> Option<Vec<Word>> {
    let settings = provost_runtime::providers(&settled()?.settings, &variables());
    Some(settings.providers.iter().map(|one| bare(&one.name)).collect())
}

fn known_profiles() -> Option<Vec<Word>> {
    let profiles = Profiles::load(&Folders::of_platform().ok()?.user_file).ok()?;
    Some(profiles.all().into_iter().map(|(_, profile)| bare(&profile.name)).collect())
}

fn known_mcp_servers() -> Option<Vec<Word>> {
    let folder = std::env::current_dir().ok()?;
    let variables = variables();
    let request = Request::new(Scope::Project, &folder, &variables, available_tools());
    let settled = load(&request).ok()?.0.settled().ok()?;
    Some(settled.settings.named.mcp.keys().map(|name| bare(name)).collect())
}

fn known_services() -> Option<Vec<Word>> {
    let place = state_dir(&settled()?.settings, &Folders::of_platform().ok()?);
    let word =
        |service: ServiceRecord| (service.name, visible(&one_line(&service.command, GOAL_WIDTH)).to_string());
    Some(place.services().all().into_iter().map(word).collect())
}

/// What `look` finds in the store, which is only read.
fn with_backend<F: Future<Output = Option<Vec<Word>>>>(
    look: impl FnOnce(Arc<dyn Backend>) -> F,
) -> Option<Vec<Word>> {
    let place = state_dir(&settled()?.settings, &Folders::of_platform().ok()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let look = async { look(place.open_to_read().await.ok()?).await };
    // A shell waits for it.
    runtime.block_on(async { timeout(LOOK_MAX, look).await.ok()? })
}

async fn newest_runs(backend: Arc<dyn Backend>) -> Option<Vec<Word>> {
    let runs = backend.list(RunQuery::newest(RUNS_MAX)).await.ok()?;
    let word =
        |run: &RunSummary| (run.run.to_string(), visible(&one_line(&run.goal, GOAL_WIDTH)).to_string());
    let last = runs.first().map(|run| (LAST.to_owned(), word(run).1));
    Some(last.into_iter().chain(runs.iter().map(word)).collect())
}

/// The agents of the run that is typed in front of the dot.
async fn agents_of(backend: Arc<dyn Backend>, typed: String) -> Option<Vec<Word>> {
    let run = find(&*backend, &typed).await.ok()?;
    let state = run_state(&*backend, run).await.ok()??;
    let agents = state.agents();
    Some(
        agents
            .map(|agent| (format!("{typed}.{}", agent.session.agent), visible(agent.name).to_string()))
            .collect(),
    )
}
