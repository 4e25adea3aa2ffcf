//! The engine and the workers, as `provost cluster` starts them.
#![expect(clippy::indexing_slicing, reason = "a JSON value indexed by a missing name is null")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use xtask::shell::workspace;

const WORKERS: &str = "3";
/// Where `cargo xtask restate-server` installs the engine's server.
const SERVER_FOLDER: &str = "target/tools/restate/node_modules/.bin";
/// The file with the user's settings, in the home folder.
const USER_SETTINGS: &str = ".config/provost/config.toml";

/// A cluster with a state folder of its own.
pub(crate) struct Cluster {
    program: PathBuf,
    folder: PathBuf,
    nodes: String,
}

/// How an engine is reached.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Addresses {
    pub(crate) ingress: String,
    pub(crate) admin: String,
}

/// What was killed.
pub(super) enum Victim {
    Node,
    Worker,
}

impl Cluster {
    /// `None` where the engine's server isn't installed.
    pub(crate) fn new(program: &Path, folder: &Path, nodes: u32) -> Result<Option<Self>> {
        let cluster =
            Self { program: program.to_owned(), folder: folder.to_owned(), nodes: nodes.to_string() };
        // Settings of a project could only ask for this.
        let settings = folder.join(USER_SETTINGS);
        fs::create_dir_all(settings.parent().context("a folder")?)?;
        fs::write(settings, "[permissions]\nallow = [\"shell\", \"list_dir\", \"spawn_agent\"]\n")?;
        let tried =
            cluster.provost(&["cluster", "up", "--nodes", &cluster.nodes, "--workers", "0"]).output()?;
        let said = String::from_utf8_lossy(&tried.stderr);
        if tried.status.code() == Some(2) && said.contains("isn't installed") {
            return Ok(None);
        }
        ensure!(tried.status.success(), "cluster up: {said}");
        Ok(Some(cluster))
    }

    /// `provost` with these arguments, over the runs of the engine.
    pub(super) fn provost(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(&self.folder).stdin(Stdio::null());
        command.env("PROVOST_STATE_DIR", self.folder.join("state")).env("HOME", &self.folder);
        command.env("PROVOST_ENGINE_URL", "local");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(workspace().join(SERVER_FOLDER)).chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(folders) {
            command.env("PATH", path);
        }
        command
    }

    /// The output of a command that must succeed.
    pub(super) fn must(&self, args: &[&str]) -> Result<String> {
        let output = self.provost(args).output()?;
        said(args, output)
    }

    pub(super) fn up(&self) -> Result<()> {
        self.must(&["cluster", "up", "--nodes", &self.nodes, "--workers", WORKERS]).map(drop)
    }

    pub(crate) fn down(&self) -> Result<()> {
        self.must(&["cluster", "down", "--remove"]).map(drop)
    }

    /// How its engine is reached.
    pub(crate) fn addresses(&self) -> Result<Addresses> {
        let status: Value = serde_json::from_str(&self.status()?)?;
        let first = |name: &str| status[name][0].as_str().map(str::to_owned).context("an address");
        Ok(Addresses { ingress: first("ingress")?, admin: first("admin")? })
    }

    /// Kills a node or a worker.
    pub(super) fn kill_one(&self, random: &mut fastrand::Rng) -> Result<Victim> {
        let status: Value = serde_json::from_str(&self.status()?)?;
        let members = status["members"].as_array().context("members")?;
        let running = members.iter().filter(|member| member["pid"].is_u64()).collect::<Vec<_>>();
        ensure!(!running.is_empty(), "nothing runs: {status}");
        let victim = running.get(random.usize(..running.len())).context("a member")?;
        let pid = i32::try_from(victim["pid"].as_u64().context("a pid")?)?;
        let pid = rustix::process::Pid::from_raw(pid).context("a pid")?;
        // It may have ended by itself, which `up` reports.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        Ok(if victim["role"] == "node" { Victim::Node } else { Victim::Worker })
    }

    /// What it says also where a member isn't ready.
    fn status(&self) -> Result<String> {
        Ok(String::from_utf8(self.provost(&["cluster", "status", "--json"]).output()?.stdout)?)
    }
}

/// Standard output, or why it failed.
pub(super) fn said(args: &[&str], output: Output) -> Result<String> {
    ensure!(
        output.status.success(),
        "provost {}: {}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}
