//! A real program at a supervised terminal, with helpers for tests.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use provost_event::{Exit, OptionMeaning, TerminalAsk, TerminalEvent, WindowSize};
use provost_process::{AtTerminal, Confinement, Launch, PtyOptions, PtySupervisor};
use provost_terminal::{Detector, Profile};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::support::path;

const DEADLINE: Duration = Duration::from_secs(30);

/// Ends the test if the program isn't installed; fails on CI, where all programs have to be.
macro_rules! installed {
    ($program:literal) => {
        if !crate::real_program::is_installed($program) {
            return;
        }
    };
}
pub(crate) use installed;

pub(crate) fn is_installed(program: &str) -> bool {
    let found = std::env::split_paths(&path()).any(|folder| folder.join(program).is_file());
    assert!(found || std::env::var_os("CI").is_none_or(|ci| ci != "true"), "`{program}` isn't installed");
    if !found {
        eprintln!("skipped: `{program}` isn't installed");
    }
    found
}

/// A program at a terminal in a folder of its own, which is also its home.
pub(crate) struct Program {
    terminal: PtySupervisor,
    folder: TempDir,
}

impl Program {
    pub(crate) async fn start(program: &str, args: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), program, args).await
    }

    pub(crate) async fn start_in(folder: TempDir, program: &str, args: &[&str]) -> Self {
        let command = Launch {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
            env: env(folder.path()),
            cwd: folder.path().to_owned(),
            stdio: AtTerminal { size: WindowSize::new(24, 80) },
            confinement: Confinement::Strongest,
        };
        let terminal =
            PtySupervisor::spawn(command, PtyOptions::new(Detector::of_terminal(generic()))).await.unwrap();
        Self { terminal, folder }
    }

    /// Runs a program without questions, and returns its output.
    pub(crate) fn run_in(folder: &Path, program: &str, args: &[&str]) -> String {
        let run = Command::new(program)
            .args(args)
            .current_dir(folder)
            .env_clear()
            .envs(env(folder))
            .output()
            .unwrap();
        assert!(run.status.success(), "{program} {args:?}: {run:?}");
        String::from_utf8(run.stdout).unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) async fn types(&self, keys: &str) {
        self.terminal.send_input(keys).await.unwrap();
    }

    pub(crate) async fn types_secret(&self, secret: &str) {
        self.terminal.send_secret(secret.into()).await.unwrap();
    }

    /// Waits for a question for consent with these words.
    pub(crate) async fn asks(&self, words: &str) -> TerminalAsk {
        self.notices(words, |event| match event {
            TerminalEvent::ApprovalRequest(ask) if ask.question.contains(words) => Some(ask),
            _ => None,
        })
        .await
    }

    /// Waits for a prompt with these words that reads other input.
    pub(crate) async fn waits(&self, words: &str) {
        self.notices(words, |event| match event {
            TerminalEvent::WaitingForInput { prompt } => prompt.contains(words).then_some(()),
            _ => None,
        })
        .await;
    }

    /// Waits for a prompt with these words that reads a secret.
    pub(crate) async fn wants_secret(&self, words: &str) {
        self.notices(words, |event| match event {
            TerminalEvent::PasswordPrompt { prompt } => prompt.contains(words).then_some(()),
            _ => None,
        })
        .await;
    }

    /// Answers with the first option that has this meaning.
    pub(crate) async fn answers(&self, ask: &TerminalAsk, meaning: OptionMeaning) {
        let option = ask.option(meaning).unwrap_or_else(|| panic!("no {meaning:?} in {ask:?}"));
        self.types(&option.keys).await;
    }

    async fn notices<T>(&self, words: &str, mut wanted: impl FnMut(TerminalEvent) -> Option<T>) -> T {
        let mut heard = Vec::new();
        let search = async {
            while let Some(detected) = self.terminal.next_event().await {
                heard.push(detected.noted.event.to_string());
                if let Some(found) = wanted(detected.noted.event) {
                    return Some(found);
                }
            }
            None
        };
        match timeout(DEADLINE, search).await {
            Ok(Some(found)) => found,
            _ => {
                panic!("waited in vain for `{words}`; noticed {heard:#?}; it shows {:#?}", self.rows().await)
            }
        }
    }

    async fn rows(&self) -> Vec<String> {
        self.terminal.view().await.map(|view| view.rows).unwrap_or_default()
    }

    pub(crate) async fn shows(&self, words: &str) -> bool {
        self.rows().await.iter().any(|row| row.contains(words))
    }

    pub(crate) async fn until_shown(&self, words: &str) {
        let mut changes = self.terminal.changes();
        let search = async {
            while !self.shows(words).await {
                changes.next().await.unwrap();
            }
        };
        timeout(DEADLINE, search).await.unwrap_or_else(|_| panic!("`{words}` is never shown"));
    }

    pub(crate) async fn ends(&self) -> Exit {
        timeout(DEADLINE, self.terminal.gone()).await.unwrap()
    }
}

/// The generic profile. Read once: that takes a while in an unoptimized build.
fn generic() -> Arc<Profile> {
    static GENERIC: LazyLock<Arc<Profile>> = LazyLock::new(|| Arc::new(Profile::named("generic").unwrap()));
    Arc::clone(&GENERIC)
}

/// The environment of a plain English terminal, without inherited settings.
fn env(home: &Path) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let mut env = vec![("PATH".into(), path()), ("HOME".into(), home.into())];
    let plain = [
        ("TERM", "xterm-256color"),
        ("LC_ALL", "C.UTF-8"),
        ("PS1", "$ "),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("LESSHISTFILE", "-"),
        ("PYTHON_HISTORY", "/dev/null"),
    ];
    env.extend(plain.map(|(name, value)| (name.into(), value.into())));
    env
}
