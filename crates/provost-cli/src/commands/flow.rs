//! `provost flow`: runs a workflow from a file.

use std::path::Path;

use provost_config::{FlowFile, Request, Scope, Settled, load};
use provost_config::{TrustState, trust_in};
use provost_event::{RunPolicy, StopHookPolicy};
use provost_harness::Goal;

use super::exec::in_shell_words;
use super::run::{Ready, tell};
use super::{current_dir, print, shown};
use crate::cli::{FlowCheckArgs, FlowRunArgs};
use crate::exit::{Exit, Refusal};
use crate::input::tell_of_unread;
use crate::render::{plural, safe};
use crate::wiring::{attended, state_dir, variables};
use provost_runtime::require_by;
use provost_runtime::{Team, available_tools, policy, retiring};

pub(super) async fn run(args: FlowRunArgs) -> anyhow::Result<Exit> {
    tell_of_unread("");
    let mut ready = Ready::new(&args.work, Vec::new())?;
    let file = FlowFile::read(&args.file)?;
    ready.settled = ready.settled.with_flow(&file);
    let flow = file.policy(&ready.settled.settings)?;
    require_by(&ready.place.trust(), &ready.settled.project, &trusting(&args.file))?;
    let Ready { settled, folder, .. } = &ready;
    // Its steps may name any of them, also where agents may not ask for others.
    let team = Team::choose(settled, &settled.settings.agents, folder, &ready.variables)?;
    tell(&retiring(settled, &settled.settings.agents, folder, &ready.variables));
    let mut policy = attended(policy(&settled.settings, &team, folder, &ready.place.worktrees()));
    policy.agent.stop_hooks = Vec::<StopHookPolicy>::new();
    policy.agent.goal = None;
    tell(&unused_goal(settled).into_iter().collect::<Vec<_>>());
    let goal = Goal { text: file.name, images: Vec::new() };
    ready.start(goal, RunPolicy { flow: Some(flow), ..policy }, team.models).await
}

pub(super) fn check(args: &FlowCheckArgs) -> anyhow::Result<Exit> {
    let folder = match &args.dir {
        Some(dir) => dir.canonicalize().map_err(|error| {
            Refusal::new(format!("can't work in {}: {error}", dir.display()), "give --dir an existing folder")
        })?,
        None => current_dir()?,
    };
    let (variables, file) = (variables(), args.config.as_deref());
    let request = Request { file, ..Request::new(Scope::Project, &folder, &variables, available_tools()) };
    let (loading, folders) = load(&request)?;
    let file = FlowFile::read(&args.file)?;
    let settled = loading.settled()?.with_flow(&file);
    file.policy(&settled.settings)?;
    Team::choose(&settled, &settled.settings.agents, &folder, &variables)?;
    let standing = trust_in(&state_dir(&settled.settings, &folders).trust(), &settled.project)?;
    print(&safe(&page(&file, &settled, &standing, &args.file)))?;
    tell(&unused_goal(&settled).into_iter().collect::<Vec<_>>());
    Ok(Exit::Done)
}

fn page(file: &FlowFile, settled: &Settled, standing: &TrustState, path: &Path) -> String {
    let steps = file.outline();
    let width = steps.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let slots = settled.settings.spawn.max_agents;
    let count = plural(steps.len() as u64, "step");
    let at_once = if slots == 1 { "one at a time".to_owned() } else { format!("at most {slots} at a time") };
    let mut page = format!("{}: {count}, {at_once}\n", file.name);
    for (name, words) in &steps {
        page.push_str(&format!("  {name:width$}  {words}\n"));
    }
    if let TrustState::Needed(needed) = standing {
        let (listed, command) = (needed.listed(), trusting(path));
        page.push_str(&format!("\nit needs your trust first; `{command}` asks you:\n{listed}"));
    }
    page
}

/// A note that the goal of the settings, if there is one, isn't used.
fn unused_goal(settled: &Settled) -> Option<String> {
    settled.settings.goal.condition.as_ref()?;
    let source = settled.source("goal.condition");
    Some(format!(
        "{source}: goal.condition: a workflow has no goal of its own, so that this one isn't verified; those of [[agents]] are"
    ))
}

/// The command that permits a workflow's commands to run.
pub(super) fn trusting(path: &Path) -> String {
    format!("provost trust --flow {}", in_shell_words(&[shown(path)]))
}
