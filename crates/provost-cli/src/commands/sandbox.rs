//! `provost sandbox run` and `provost sandbox explain`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use provost_config::{Folders, Request, SandboxSettings, Scope, Settled, home_folder, load};
use provost_event::{RunId, SandboxMode, SandboxNetwork, SandboxPolicy, SessionId};
use provost_harness::{Sandbox as _, SandboxRequest};
use provost_runtime::{available_tools, require};
use provost_sandbox::{Explanation, PathExplanation, explain};

use super::{current_dir, print};
use crate::cli::{SandboxCommand, SandboxExplainArgs, SandboxPolicyArgs, SandboxRunArgs};
use crate::exit::{Exit, Refusal};
use crate::output::tell;
use crate::render::safe;
use crate::wiring::{state_dir, variables};

/// The exit status when no sandbox can be made.
const NO_SANDBOX: u8 = 125;
/// The exit status when there is no such program, as shells have it.
const NOT_FOUND: u8 = 127;

pub(super) fn sandbox(command: SandboxCommand) -> anyhow::Result<Exit> {
    match command {
        SandboxCommand::Run(args) => run(args),
        SandboxCommand::Explain(args) => explain_it(&args),
    }
}

/// What counts here.
struct Here {
    policy: SandboxPolicy,
    folder: PathBuf,
    settled: Settled,
    folders: Folders,
    /// Whether the settings confine nothing, and the mode is the one that `init` writes.
    is_assumed: bool,
}

impl Here {
    fn find(args: &SandboxPolicyArgs) -> anyhow::Result<Self> {
        let here = current_dir()?;
        let folder = args.dir.as_deref().map_or_else(|| here.clone(), |dir| here.join(dir));
        let folder = folder.canonicalize().with_context(|| format!("can't find {}", folder.display()))?;
        let variables = variables();
        let file = args.config.as_deref();
        let assumed_mode = mode_of(args).unwrap_or(SandboxMode::Workspace);
        let request = Request {
            file,
            assumed_mode,
            ..Request::new(Scope::Project, &folder, &variables, available_tools())
        };
        let (loading, folders) = load(&request)?;
        let settled = loading.settled()?;
        let mut settings = settled.settings.clone();
        let is_assumed = args.mode.is_none() && settings.sandbox.mode == SandboxMode::Off;
        with_arguments(&mut settings.sandbox, args);
        if is_assumed {
            settings.sandbox.mode = SandboxMode::Workspace;
        }
        if !args.allow_host.is_empty() && settings.sandbox.network != SandboxNetwork::Proxy {
            return Err(Refusal::new(
                "--allow-host has no effect: hosts are reached through the proxy only",
                "add --network proxy",
            )
            .into());
        }
        let policy = settings.sandbox_policy(&folder, home_folder().as_deref());
        Ok(Self { policy, folder, settled, folders, is_assumed })
    }
}

fn mode_of(args: &SandboxPolicyArgs) -> Option<SandboxMode> {
    SandboxMode::ALL.into_iter().find(|mode| args.mode.as_deref() == Some(mode.name()))
}

fn with_arguments(settings: &mut SandboxSettings, args: &SandboxPolicyArgs) {
    if let Some(mode) = mode_of(args) {
        settings.mode = mode;
    }
    let named = |network: &SandboxNetwork| args.network.as_deref() == Some(network.name());
    if let Some(network) = SandboxNetwork::ALL.into_iter().find(named) {
        settings.network = network;
    }
    settings.allow_hosts.extend(args.allow_host.iter().cloned());
}

#[cfg(unix)]
fn run(args: SandboxRunArgs) -> anyhow::Result<Exit> {
    use provost_process::{Launch, inherited_env, run_attached};

    let here = Here::find(&args.policy)?;
    let place = state_dir(&here.settled.settings, &here.folders);
    require(&place.trust(), &here.settled.project)?;
    let sandbox = place.sandbox(variables());
    let session = SessionId::root(RunId::from_entropy(fastrand::u64(..)));
    let request = SandboxRequest { policy: &here.policy, session, workspace: &here.folder };
    let confined = match sandbox.of_agent(request) {
        Ok(confined) => confined,
        Err(why) => {
            tell(&format!("error: {why}"));
            return Ok(Exit::Status(NO_SANDBOX));
        }
    };
    let mut words = args.command.into_iter();
    let launch = Launch {
        program: words.next().unwrap_or_default(),
        args: words.collect(),
        env: inherited_env(&[], |_| false),
        cwd: current_dir()?,
        stdio: (),
        confinement: confined.confinement(),
    };
    let launch =
        Launch { cwd: if launch.cwd.starts_with(&here.folder) { launch.cwd } else { here.folder }, ..launch };
    let status = match run_attached(&launch) {
        Ok(status) => status,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            tell(&format!("error: {}: there is no such program", Path::new(&launch.program).display()));
            return Ok(Exit::Status(NOT_FOUND));
        }
        Err(error) => {
            let program = Path::new(&launch.program).display().to_string();
            return Err(error).with_context(|| format!("{program} can't be started in the sandbox"));
        }
    };
    confined.denials("").iter().for_each(|denial| tell(&format!("sandbox: {denial}")));
    // Removes the folder of the box, and covers.
    drop((launch, confined, sandbox));
    Ok(Exit::Status(u8::try_from(status).unwrap_or(u8::MAX)))
}

#[cfg(not(unix))]
fn run(_args: SandboxRunArgs) -> anyhow::Result<Exit> {
    Err(Refusal::new("there is no sandbox on this system", "use Linux, or a container as the boundary")
        .into())
}

fn explain_it(args: &SandboxExplainArgs) -> anyhow::Result<Exit> {
    let here = Here::find(&args.policy)?;
    if here.policy.mode == SandboxMode::Off {
        return Err(Refusal::new(
            "nothing is confined: the mode is off",
            "--mode workspace explains that one",
        )
        .into());
    }
    let place = state_dir(&here.settled.settings, &here.folders);
    let explanation = explain(&here.policy, &here.folder, &place.places(variables()), &args.command);
    if args.json {
        print(&format!("{}\n", serde_json::to_string(&explanation)?))?;
    } else {
        print(&safe(&page(&explanation, here.is_assumed)))?;
    }
    Ok(Exit::Done)
}

fn page(explanation: &Explanation, is_assumed: bool) -> String {
    let mut text = format!("mode      {}", explanation.mode.name());
    if is_assumed {
        text.push_str("  (the settings have off: this is what `provost init` writes)");
    }
    text.push_str(if explanation.required {
        "\nrequired  yes: where no sandbox is possible nothing is started\n"
    } else {
        "\nrequired  no: where no sandbox is possible programs run unconfined\n"
    });
    text.push_str(&network(explanation));
    listed(&mut text, "writes", &explanation.write);
    listed(&mut text, "but not", &explanation.protected);
    let paths = |all: &[PathBuf], why: &str| {
        all.iter().map(|path| PathExplanation { path: path.clone(), why: why.to_owned() }).collect::<Vec<_>>()
    };
    if explanation.read.is_empty() {
        text.push_str("reads     everything that you may\n");
    } else {
        listed(&mut text, "reads", &paths(&explanation.read, ""));
    }
    listed(
        &mut text,
        "but not",
        &paths(
            &explanation.masked,
            "holds credentials or Provost's own state, or sandbox.deny_read names it",
        ),
    );
    listed(&mut text, "command", &explanation.command);
    explanation.gaps.iter().for_each(|gap| text.push_str(&format!("note      {gap}\n")));
    text
}

fn network(explanation: &Explanation) -> String {
    match explanation.network {
        SandboxNetwork::None => {
            "network   nothing but each other, on a loopback interface of their own\n".to_owned()
        }
        SandboxNetwork::Open => "network   everything that you reach\n".to_owned(),
        SandboxNetwork::Proxy => {
            let hosts =
                if explanation.hosts.is_empty() { "none".to_owned() } else { explanation.hosts.join(", ") };
            format!("network   through a proxy, these hosts: {hosts}\n")
        }
    }
}

fn listed(text: &mut String, label: &str, all: &[PathExplanation]) {
    for (at, one) in all.iter().enumerate() {
        let label = if at == 0 { label } else { "" };
        let why = if one.why.is_empty() { String::new() } else { format!("  {}", one.why) };
        text.push_str(&format!("{label:<9} {}{why}\n", one.path.display()));
    }
}
