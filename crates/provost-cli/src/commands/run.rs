//! `provost run`: an agent on a goal.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use provost_config::{Folders, Override, Request, Scope, Settled, Skills, Source, load};
use provost_event::{ModelPolicy, RunId, RunPolicy};
use provost_harness::{
    Backend, Goal, IMAGE_BYTES_MAX, ImageData, ImageError, Models, RunFilter, RunQuery, RunStatus,
    RunStatusFilter, RunSummary,
};

use super::{current_dir, mark, print};
use crate::asking::{Asking, who_asks};
use crate::cli::{RunArgs, ShownArgs, WorkArgs};
use crate::drive::{PendingStop, Work};
use crate::exit::{Exit, Refusal};
use crate::input::tell_of_unread;
use crate::output;
use crate::render::{Progress, one_line, visible};
use crate::reports::{bell, reporting};
use crate::stands_for::StandsFor;
use crate::unattended::{begun, new_run};
use crate::watcher::Watcher;
use crate::wiring::{attended, state_dir, variables};
use provost_runtime::observers;
use provost_runtime::require;
use provost_runtime::{
    Places, Programs, RunContext, StateDir, Team, Variables, available_tools, default_limit, doubts,
    given_flags, mcp_catalog, policy, retiring, with_file, with_mcp, with_preamble, with_remote, with_skills,
};

const GOAL_WIDTH: usize = 60;
const GOAL_BYTES_MAX: u64 = 1024 * 1024;
const STDIN: &str = "-";
const NO_GOAL: &str =
    "e.g. provost run \"Make the tests pass\"; `provost run -` reads it from standard input";
/// How what waits on standard input is read.
const READS_STDIN: &str = "; `provost run -` takes it as the goal, --stdin adds it to the goal";

pub(super) async fn run(args: RunArgs) -> anyhow::Result<Exit> {
    let goal = Goal { text: goal(&args)?, images: images(&args.images)? };
    tell_of_unread(READS_STDIN);
    let ready = Ready::new(&args.work, of_goal(&args))?;
    if args.detach {
        must_be_engine(&ready.place)?;
    }
    require(&ready.place.trust(), &ready.settled.project)?;
    let Ready { settled, folder, .. } = &ready;
    let team = Team::choose(settled, settled.settings.offered_agents(), folder, &ready.variables)?;
    can_see(&team.model, &goal)?;
    tell(&retiring(settled, settled.settings.offered_agents(), folder, &ready.variables));
    if team.goal.is_some() {
        tell(&doubts(settled, &[], folder));
    }
    let policy = attended(policy(&settled.settings, &team, folder, &ready.place.worktrees()));
    if args.detach {
        let shape = Shape { progress: Progress::Silent, stands_for: StandsFor::Run };
        let run = ready.begin(goal, policy, team.models, shape).await?.leave();
        print(&format!("{run}\n"))?;
        return Ok(Exit::Done);
    }
    ready.start(goal, policy, team.models).await
}

/// Refuses to leave a run to others where there are none.
pub(super) fn must_be_engine(place: &StateDir) -> Result<(), Refusal> {
    if place.engine().is_some() {
        return Ok(());
    }
    let hint = "--engine names one; without an engine, `provost serve` starts runs that go on by themselves";
    Err(Refusal::new("--detach: only workers of an engine would go on with the run", hint))
}

/// Prints notes on what is worth knowing before a run begins.
pub(super) fn tell(notes: &[String]) {
    notes.iter().for_each(|note| output::tell(&format!("note: {note}")));
}

/// The flags that set what must be confirmed, and by which judges.
fn of_goal(args: &RunArgs) -> Vec<Override> {
    let condition = args.condition.clone().map(|condition| Override::new("--goal", condition));
    let judges = (!args.judges.is_empty()).then(|| Override::new("--judge", args.judges.join(",")));
    condition.into_iter().chain(judges).collect()
}

/// What a run is started with, but for what it is to reach.
pub(super) struct Ready {
    pub(super) settled: Settled,
    pub(super) folder: PathBuf,
    pub(super) variables: Variables,
    pub(super) place: StateDir,
    folders: Folders,
    shown: ShownArgs,
    flags: Vec<Override>,
    /// The settings file that was named in place of the project's.
    file: Option<PathBuf>,
}

impl Ready {
    /// The settings that count for these arguments, and for flags besides.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn new(args: &WorkArgs, besides: Vec<Override>) -> anyhow::Result<Self> {
        let (folder, variables) = (folder(args.dir.as_deref())?, variables());
        let flags = flags(args, besides);
        let file = args.config.as_deref();
        let request = Request {
            file,
            flags: &flags,
            ..Request::new(Scope::Project, &folder, &variables, available_tools())
        };
        let (loading, folders) = load(&request)?;
        let settled = loading.settled()?;
        let place = state_dir(&settled.settings, &folders);
        let file = args.config.clone();
        Ok(Self { settled, folder, variables, place, folders, shown: args.shown, flags, file })
    }

    /// Starts a run and works on it until it is suspended or ends.
    ///
    /// # Errors
    /// When it can't be started, or its log not be written or read.
    pub(super) async fn start(self, goal: Goal, policy: RunPolicy, models: Models) -> anyhow::Result<Exit> {
        let shape = Shape { progress: Progress::choose(self.shown), stands_for: StandsFor::Run };
        self.begin(goal, policy, models, shape).await?.finish().await
    }

    /// Starts a run, to be worked on.
    ///
    /// # Errors
    /// When it can't be started.
    pub(super) async fn begin(
        self,
        goal: Goal,
        policy: RunPolicy,
        models: Models,
        Shape { progress, stands_for }: Shape,
    ) -> anyhow::Result<Work> {
        let Self { settled, folder, variables, place, folders, shown, flags, file } = self;
        let flags = given_flags(&flags, &policy.agent.model, &current_dir()?);
        let flags = with_file(flags, file.as_deref());
        let policy = RunPolicy { flags, ..policy };
        let (policy, unlimited) = default_limit(policy, &settled)?;
        unlimited.into_iter().for_each(|note| output::tell(&note));
        let places = Places { workspace: &folder, folders: &folders };
        let (policy, notices) = with_preamble(policy, places, &settled.settings, &variables).await;
        tell(&notices);
        let skills = place.skills(&folders, &folder)?;
        let policy = with_skills(policy, &skills);
        tell(&skipped_skills(&skills));
        let (catalog, notices) = mcp_catalog(&settled, &place, &folder, &variables).await;
        notices.iter().for_each(|notice| output::tell(&format!("note: {notice}")));
        let policy = with_mcp(policy, &settled.settings, &catalog);
        let id = new_run();
        if settled.settings.engine.git_remote.is_some() && place.engine().is_some() {
            output::tell("note: pushing the project's last commit to engine.git_remote");
        }
        let (policy, note) = with_remote(policy, &settled.settings, &place, (id, &folder)).await?;
        note.iter().for_each(|note| output::tell(&format!("note: {note}")));
        let observers = observers(&settled, &folder, &variables)?;
        let programs = Programs::of(&policy, &settled, &variables)?;
        tell(&settled.settings.not_known_yet());
        settled.notices.iter().for_each(|notice| output::tell(&format!("note: {notice}")));
        settled.skipped.iter().for_each(|skipped| output::tell(&format!("warning: skipped {skipped}")));
        let backend = place.open().await?;
        tell(&before_it_begins(&*backend, &folder, (&settled, shown), &policy).await?);
        let signals = stands_for.signals()?;
        let asks = who_asks(progress);
        let view = reporting(progress.view(None), &settled.settings, None);
        let watcher = Arc::new(Watcher::new(view, asks, HashMap::new()));
        let around = RunContext::new(&settled.settings, &variables, (watcher.clone(), observers), programs);
        let around = around.with_skills(&skills).with_mcp(catalog);
        let around = around.with_bell(bell(None)).with_streams(stands_for.streams());
        let harness = place.harness(backend.clone(), models, around);
        mark(Some(id));
        let harness = harness.start(id, goal, policy).await;
        let harness = harness.inspect_err(|_| watcher.close()).context("can't start the run")?;
        begun();
        let user_file = folders.user_file;
        let asking = Asking { backend: backend.clone(), watcher: watcher.clone(), asks, user_file };
        let pending_stop = PendingStop::None;
        Ok(Work {
            backend,
            harness,
            place,
            watcher,
            asking,
            signals,
            shown,
            progress,
            pending_stop,
            stands_for,
        })
    }
}

/// What is worth to know of a folder before a run begins in it.
async fn before_it_begins(
    backend: &dyn Backend,
    folder: &Path,
    (settled, shown): (&Settled, ShownArgs),
    policy: &RunPolicy,
) -> anyhow::Result<Vec<String>> {
    let running = backend.list(RunQuery::with_status(RunStatusFilter::Running)).await?;
    let is_shared = policy.remote.is_none();
    let mut notes = if is_shared { others_at_work(&running, folder, None) } else { Vec::new() };
    let wants_words = !shown.quiet && !shown.json;
    let has_no_rules = policy.agent.external.is_none() && settled.settings.permissions.has_no_rules();
    let is_first = wants_words && is_first_in(backend, folder).await?;
    if is_first && has_no_rules {
        notes.push(format!(
            "no rules are set: agents may change files in {} and run any command with your rights, without asking; \
             [permissions] in provost.toml limits that",
            visible(&folder.display().to_string())
        ));
    }
    if is_first && settled.source("sandbox.mode") == Source::Default {
        notes.push(
            "no sandbox is set: agents' programs have your rights; [sandbox] mode = \"workspace\" confines them \
             (`provost sandbox explain`)"
                .to_owned(),
        );
    }
    Ok(notes)
}

/// Whether no run has worked in this folder.
async fn is_first_in(backend: &dyn Backend, folder: &Path) -> anyhow::Result<bool> {
    let filter = RunFilter { workspace: Some(folder.to_owned()), ..RunFilter::default() };
    Ok(backend.list(RunQuery { filter, after: None, max: 1 }).await?.is_empty())
}

/// A line for each other run that a process holds now in `folder`, above it or below.
pub(super) fn others_at_work(runs: &[RunSummary], folder: &Path, but: Option<RunId>) -> Vec<String> {
    let is_shared = |run: &&RunSummary| {
        run.status == RunStatus::Running
            && Some(run.run) != but
            && (run.workspace.starts_with(folder) || folder.starts_with(&run.workspace))
    };
    let line = |run: &RunSummary| {
        let place = visible(&run.workspace.display().to_string());
        let goal = one_line(&run.goal, GOAL_WIDTH);
        format!("run {} works in {place} too, and both may change the same files: {goal}", run.run)
    };
    runs.iter().filter(is_shared).map(line).collect()
}

/// A line for each skill that isn't used.
fn skipped_skills(skills: &Skills) -> Vec<String> {
    skills.skipped.iter().map(|skipped| format!("{} {}", skipped.file.display(), skipped.why)).collect()
}

/// How a run is shown, and what the command stands for.
pub(super) struct Shape {
    pub(super) progress: Progress,
    pub(super) stands_for: StandsFor,
}

fn goal(args: &RunArgs) -> anyhow::Result<String> {
    let goal = match (&args.goal, &args.file) {
        (_, Some(file)) => read_file(file)?,
        (Some(goal), None) if goal != STDIN => goal.clone(),
        (Some(_), None) => return not_empty(read_stdin()?),
        (None, None) if args.stdin => String::new(),
        (None, None) => match &args.condition {
            Some(condition) => condition.clone(),
            None => return Err(Refusal::new("there is no goal", NO_GOAL).into()),
        },
    };
    let goal = if args.stdin { with_stdin(&goal)? } else { goal };
    not_empty(goal)
}

/// The text, and below it the content of standard input.
pub(super) fn with_stdin(said: &str) -> anyhow::Result<String> {
    let input = read_stdin()?;
    Ok([said.trim(), input.trim()]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n"))
}

fn not_empty(goal: String) -> anyhow::Result<String> {
    match goal.trim() {
        "" => Err(Refusal::new("the goal is empty", "e.g. provost run \"Make the tests pass\"").into()),
        goal => Ok(goal.to_owned()),
    }
}

pub(super) fn read_file(file: &Path) -> anyhow::Result<String> {
    let cant = |why: String| Refusal::new(format!("can't read the text from {}: {why}", file.display()), "");
    let text = std::fs::File::open(file).and_then(read);
    Ok(text.map_err(|error| cant(error.to_string()))?)
}

pub(super) fn read_stdin() -> anyhow::Result<String> {
    let text = read(std::io::stdin());
    Ok(text.map_err(|error| Refusal::new(format!("can't read the text from standard input: {error}"), ""))?)
}

fn read(input: impl std::io::Read) -> std::io::Result<String> {
    let mut text = String::new();
    let read = input.take(GOAL_BYTES_MAX + 1).read_to_string(&mut text)?;
    if read as u64 > GOAL_BYTES_MAX {
        return Err(std::io::Error::other(format!("it is longer than {GOAL_BYTES_MAX} bytes")));
    }
    Ok(text)
}

fn images(files: &[PathBuf]) -> Result<Vec<ImageData>, Refusal> {
    let cant = |file: &Path, why: String| Refusal::new(format!("--image {}: {why}", file.display()), "");
    let image = |file: &PathBuf| match file {
        file if file == Path::new(STDIN) => Err(cant(file, "a picture comes from a file".to_owned())),
        file => image(file).map_err(|error| cant(file, error.to_string())),
    };
    files.iter().map(image).collect()
}

fn image(file: &Path) -> anyhow::Result<ImageData> {
    let mut file = std::fs::File::open(file)?;
    let (length, mut bytes) = (file.metadata()?.len(), Vec::new());
    file.by_ref().take(IMAGE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    let image = ImageData::new(bytes);
    Ok(image.map_err(|error| match error {
        ImageError::TooLarge { bytes } => {
            ImageError::TooLarge { bytes: usize::try_from(length).unwrap_or(usize::MAX).max(bytes) }
        }
        _ => error,
    })?)
}

/// Refuses pictures for a model that isn't known to see.
fn can_see(model: &ModelPolicy, goal: &Goal) -> Result<(), Refusal> {
    if model.images || goal.images.is_empty() {
        return Ok(());
    }
    let name = &model.name;
    Err(Refusal::new(
        format!("--image: the model {name} isn't known to see pictures"),
        format!("if it does, set images = true in [models.\"{name}\"] of your own settings file"),
    ))
}

/// The folder to work in, without symlinks: tools compare paths with it.
pub(super) fn folder(dir: Option<&Path>) -> anyhow::Result<PathBuf> {
    let dir = dir.unwrap_or(Path::new("."));
    let found = dir.canonicalize().ok().filter(|folder| folder.is_dir());
    Ok(found.ok_or_else(|| {
        Refusal::new(format!("{} is no folder", dir.display()), "give --dir an existing folder")
    })?)
}

/// The flags that are settings.
fn flags(args: &WorkArgs, besides: Vec<Override>) -> Vec<Override> {
    let mut flags = args.budget.given();
    flags.extend(besides);
    flags.extend(args.model.clone().map(|model| Override::new("--model", model)));
    flags.extend(args.max_agents.clone().map(|agents| Override::new("--max-agents", agents)));
    flags.extend(args.allow_unpriced.then(|| Override::new("--allow-unpriced", "true")));
    flags
}
