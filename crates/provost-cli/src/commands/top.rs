//! `provost top`: the dashboard in the terminal.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use provost_config::{DetachKey, Request, Scope, keep_approved, load};
use provost_event::{Dimension, RunId, SessionId, Timestamp};
use provost_external::{AttachError, Role};
use provost_harness::SystemClock;
use provost_process::{Begun, Confinement, FirstErrors, Launch, start_on_its_own};
use provost_runtime::{SeenFile, Variables, available_tools};
use provost_tui::{Colours, Glyphs, Start, TopHost, TopOptions};
use provost_view::SeenRuns;

use super::current_dir;
use crate::attached::{Asides, Attaching, Left, must_be_terminal};
use crate::cli::TopArgs;
use crate::exit::Exit;
use crate::locale::is_utf8;
use crate::questions::user_name;
use crate::wiring::{leave_store, state_dir, variables};

/// How long to wait for a started process that ends at once.
const BEGINS_WITHIN: Duration = Duration::from_secs(3);

/// Shows it. The thread of the terminal isn't the one that reads the runs.
pub(super) fn top(args: &TopArgs) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.context("can't start the runtime")?;
    let result = runtime.block_on(async {
        let result = show(args).await;
        let is_whole = leave_store().await;
        result.map(|exit| if is_whole { exit } else { Exit::Failed })
    });
    runtime.shutdown_background();
    result
}

async fn show(args: &TopArgs) -> anyhow::Result<Exit> {
    must_be_terminal("provost top", "`provost ps` lists the runs without one")?;
    let (folder, variables) = (current_dir()?, variables());
    let request = Request::new(Scope::User, &folder, &variables, available_tools());
    let (loading, folders) = load(&request)?;
    let settled = loading.settled()?;
    let place = state_dir(&settled.settings, &folders);
    let locale_is_utf8 = is_utf8(|name| variables.get(name).cloned());
    // Without a locale they are ASCII.
    let is_ascii = args.ascii || !locale_is_utf8.unwrap_or_default();
    let home = variables.get("HOME").map(PathBuf::from);
    let host = Host {
        program: std::env::current_exe().context("can't tell which program this is")?,
        folder,
        user_file: folders.user_file,
        terminals: place.terminals(),
        key: settled.settings.exec.detach_key,
        seen: place.seen(),
        variables,
    };
    let options = TopOptions {
        backend: place.open().await?,
        by: user_name("a person"),
        host: Arc::new(host),
        home,
        clock: Arc::new(SystemClock),
        glyphs: if is_ascii { Glyphs::Ascii } else { Glyphs::Unicode },
        colours: if console::colors_enabled() { Colours::Sixteen } else { Colours::None },
    };
    provost_tui::work(options).await?;
    Ok(Exit::Done)
}

/// What the dashboard can't do by itself.
struct Host {
    program: PathBuf,
    folder: PathBuf,
    user_file: PathBuf,
    terminals: PathBuf,
    key: DetachKey,
    seen: SeenFile,
    variables: Variables,
}

impl SeenRuns for Host {
    fn has_seen(&self, run: RunId, changed_at: Timestamp) -> bool {
        self.seen.has_seen(run, changed_at)
    }

    fn look_at(&self, run: RunId, changed_at: Timestamp) {
        // It is new again at the next start, and nothing else.
        let _ = self.seen.look_at(run, changed_at);
    }
}

#[async_trait]
impl TopHost for Host {
    async fn keep_approved(&self, pattern: &str) -> Result<(), String> {
        let (file, pattern) = (self.user_file.clone(), pattern.to_owned());
        let kept = tokio::task::spawn_blocking(move || keep_approved(&file, &pattern)).await;
        match kept {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(format!("can't change your settings: {error}")),
            Err(error) => Err(format!("can't change your settings: {error}")),
        }
    }

    async fn start(&self, start: Start) -> Result<(), String> {
        let cwd = match &start {
            Start::Run { folder, .. } => folder.clone(),
            Start::Resume { .. } | Start::Fork { .. } => self.folder.clone(),
        };
        let launch = Launch {
            program: self.program.clone().into(),
            args: arguments(start),
            env: self.variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd,
            stdio: FirstErrors { within: BEGINS_WITHIN },
            confinement: Confinement::Strongest,
        };
        match start_on_its_own(launch).await {
            Ok(Begun::GoesOn | Begun::Ended { succeeded: true, .. }) => Ok(()),
            // How it ended is in its log.
            Ok(Begun::Ended { errors, .. }) => {
                match errors.lines().find(|line| line.starts_with("error: ")) {
                    Some(error) => {
                        let hint = errors.lines().find(|line| line.starts_with("hint: "));
                        Err([Some(error), hint].into_iter().flatten().collect::<Vec<_>>().join("; "))
                    }
                    None => Ok(()),
                }
            }
            Err(error) => Err(error.to_string()),
        }
    }

    async fn attach(&self, session: SessionId) -> Result<String, String> {
        let role = Role::Control;
        let attaching =
            Attaching { folder: &self.terminals, session, role, key: self.key, asides: Asides::default() };
        match attaching.converse().await {
            Ok(Left::Detached) => Ok("detached from the program; it goes on".to_owned()),
            Ok(Left::Gone(Some(exit))) => Ok(format!("the program has ended: {exit}")),
            Ok(Left::Gone(None)) => Ok("the program has ended".to_owned()),
            Ok(Left::Lost) => Ok("the program is no longer driven".to_owned()),
            Err(error) => Err(match error.downcast_ref() {
                Some(AttachError::NotThere { .. }) => {
                    format!("agent {session} has no terminal at this moment: only external agents have one")
                }
                _ => format!("{error:#}"),
            }),
        }
    }

    fn detach_key(&self) -> String {
        self.key.to_string()
    }

    fn folder(&self) -> PathBuf {
        self.folder.clone()
    }
}

/// The arguments of this program that do it.
fn arguments(start: Start) -> Vec<OsString> {
    let words = match start {
        Start::Run { goal, .. } => vec!["run".to_owned(), "--quiet".to_owned(), "--".to_owned(), goal],
        Start::Resume { run, text, more } => {
            let more = more.map(|(of, amount)| format!("{}={amount}", flag(of)));
            let begin = ["resume".to_owned(), "--quiet".to_owned()].into_iter().chain(more);
            begin.chain(["--".to_owned(), run.to_string()]).chain(said(text)).collect()
        }
        Start::Fork { session, at, text } => {
            let at = at.map(|at| format!("--at={at}"));
            let begin = ["fork".to_owned(), "--quiet".to_owned()].into_iter().chain(at);
            begin.chain(["--".to_owned(), session.to_string()]).chain(said(text)).collect()
        }
    };
    words.into_iter().map(OsString::from).collect()
}

fn said(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// The flag that adds to a limit.
const fn flag(of: Dimension) -> &'static str {
    match of {
        Dimension::Tokens => "--tokens",
        Dimension::Money => "--usd",
        Dimension::Turns => "--max-turns",
        Dimension::WallTime => "--wall-time",
    }
}
