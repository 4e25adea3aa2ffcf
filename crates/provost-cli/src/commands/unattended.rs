//! Works on a run for a program that starts it, as servers do. No user calls it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use provost_event::RunId;
use provost_harness::{ForkRun, NotStarted, ResumeRun, StartRun, StartsWork, Work, WorkLimits};
use provost_process::{Confinement, FirstLine, Launch, start_detached};

use super::{act, fork, run};
use crate::cli::{BudgetArgs, ForkArgs, ResumeArgs, RunArgs, ShownArgs, UnattendedArgs, WorkArgs};
use crate::exit::{Exit, in_one_line, is_refusal};
use crate::unattended::{Said, work_for};
use crate::wiring::variables;

/// The command's name.
pub(super) const UNATTENDED: &str = "work-unattended";
/// How long a process may take until it works on the run: reading settings, connecting to servers of tools.
const START_MAX: Duration = Duration::from_secs(60);
const QUIET: ShownArgs = ShownArgs { json: false, quiet: true, verbose: false, require_verified: false };

pub(super) async fn unattended(args: UnattendedArgs) -> anyhow::Result<Exit> {
    let run = args.run.parse::<RunId>().ok().context("a run's id is expected")?;
    work_for(run);
    let result = match serde_json::from_str(&args.work).context("work is expected, as JSON")? {
        Work::Start(start) => run::run(run_args(start)).await,
        Work::Resume(resume) => act::resume(resume_args(run, resume)).await,
        Work::Fork { from, fork } => fork::fork(fork_args(from, fork)).await,
    };
    if let Err(error) = &result {
        let why = in_one_line(error);
        let said = if is_refusal(error) { Said::Refused(why) } else { Said::Failed(why) };
        said.say();
    }
    result
}

fn budget(limits: WorkLimits) -> BudgetArgs {
    let WorkLimits { usd, tokens, wall_time, max_turns } = limits;
    BudgetArgs { max_turns, tokens, usd, wall_time }
}

fn run_args(start: StartRun) -> RunArgs {
    let StartRun { goal, folder, condition, judges, model, max_agents, limits } = start;
    let work = WorkArgs {
        model,
        dir: Some(folder),
        shown: QUIET,
        budget: budget(limits),
        max_agents: max_agents.map(|agents| agents.to_string()),
        ..WorkArgs::default()
    };
    RunArgs { goal: Some(goal), condition, judges, work, ..RunArgs::default() }
}

fn resume_args(run: RunId, resume: ResumeRun) -> ResumeArgs {
    let ResumeRun { agent: _, text, goal, model, with_settings, limits } = resume;
    ResumeArgs {
        run: run.to_string(),
        text: text.into_iter().collect(),
        config: None,
        with_settings,
        goal,
        no_goal: false,
        model,
        effort: None,
        detach: false,
        shown: QUIET,
        budget: budget(limits),
    }
}

fn fork_args(run: String, fork: ForkRun) -> ForkArgs {
    let ForkRun { agent: _, at, text, folder, model, limits } = fork;
    ForkArgs {
        run,
        text: text.into_iter().collect(),
        at,
        dir: folder,
        config: None,
        with_settings: false,
        model,
        effort: None,
        shown: QUIET,
        budget: budget(limits),
        max_agents: None,
        allow_unpriced: false,
    }
}

/// Starts such processes.
pub(super) struct Unattended {
    /// Where they start, unless a run has a folder of its own.
    pub(super) folder: PathBuf,
}

#[async_trait]
impl StartsWork for Unattended {
    async fn start(&self, run: RunId, work: &Work) -> Result<(), NotStarted> {
        let failed = |why: String| NotStarted::Failed(format!("no process can be started: {why}"));
        let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let text = serde_json::to_string(work).map_err(|error| failed(error.to_string()))?;
        let cwd = match work {
            Work::Start(start) => start.folder.clone(),
            Work::Resume(_) | Work::Fork { .. } => self.folder.clone(),
        };
        let launch = Launch {
            program: program.into(),
            args: vec![UNATTENDED.into(), run.to_string().into(), text.into()],
            env: variables().iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd,
            stdio: FirstLine { within: START_MAX },
            confinement: Confinement::Strongest,
        };
        let started = start_detached(launch).await.map_err(|error| failed(error.to_string()))?;
        match serde_json::from_str(&started.line) {
            Ok(Said::Begun) => Ok(()),
            Ok(Said::Refused(why)) => Err(NotStarted::Refused(why)),
            Ok(Said::Failed(why)) => Err(NotStarted::Failed(why)),
            Err(_) => Err(failed("it ended without a word".to_owned())),
        }
    }
}
