//! A shell at a terminal.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use provost_event::{Exit, WindowSize};
use provost_process::{
    AtTerminal, Confinement, Launch, OutputSubscription, PtyOptions, PtySupervisor, QuitPlan,
};
use provost_terminal::{Detector, Profile};
use tokio::time::timeout;

use crate::support::{Shell, path};

/// A wait for longer than this has failed.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// Far above real times: an ending that waits for one of these limits fails.
pub(crate) const FAR_AWAY: Duration = Duration::from_secs(60);

pub(crate) fn command_in(folder: &Path, marker: &str, script: &str) -> Launch<AtTerminal> {
    let (name, value) = marker.split_once('=').unwrap();
    Launch {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![("PATH".into(), path()), (name.into(), value.into())],
        cwd: folder.to_owned(),
        stdio: AtTerminal { size: WindowSize::default() },
        confinement: Confinement::Strongest,
    }
}

pub(crate) fn command(shell: &Shell, script: &str) -> Launch<AtTerminal> {
    command_in(shell.path(), &shell.marker, script)
}

pub(crate) fn options() -> PtyOptions {
    let mut options = PtyOptions::new(Detector::of_terminal(Arc::new(Profile::named("generic").unwrap())));
    options.hears_output = OutputSubscription::Wanted;
    options.grace = FAR_AWAY;
    options
}

pub(crate) async fn start(shell: &Shell, script: &str) -> PtySupervisor {
    start_with(shell, script, options()).await
}

pub(crate) async fn start_with(shell: &Shell, script: &str, options: PtyOptions) -> PtySupervisor {
    PtySupervisor::spawn(command(shell, script), options).await.unwrap()
}

pub(crate) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

/// Reads until `end` was written.
pub(crate) async fn read_until(terminal: &PtySupervisor, end: &str) -> String {
    let mut text = String::new();
    while !text.contains(end) {
        match in_time(end, terminal.read_output()).await {
            Some(more) => text.push_str(&more),
            None => panic!("ended before {end:?}: {text:?}"),
        }
    }
    text
}

pub(crate) async fn read_to_end(terminal: &PtySupervisor) -> String {
    let mut text = String::new();
    while let Some(more) = in_time("the end", terminal.read_output()).await {
        text.push_str(&more);
    }
    text
}

/// What a script writes, and how it ends.
pub(crate) async fn outcome(script: &str) -> (String, Exit) {
    let shell = Shell::new();
    let terminal = start(&shell, script).await;
    let text = read_to_end(&terminal).await;
    let exit = in_time("the exit", terminal.gone()).await;
    shell.assert_nothing_left();
    (text, exit)
}

pub(crate) fn quit(grace: Duration) -> QuitPlan {
    QuitPlan { steps: Vec::new(), grace }
}
