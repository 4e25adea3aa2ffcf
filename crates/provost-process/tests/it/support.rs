//! A shell in a folder of its own, and a view of the processes it started.

use std::fs;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use provost_process::{ChildSpec, Finished, Streams, run};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const MARKER_NAME: &str = "PROVOST_PROCESS_MARKER";
const DEADLINE: Duration = Duration::from_secs(20);

/// A temporary folder to run scripts in; every started process has a marker in its environment.
pub(crate) struct Shell {
    folder: TempDir,
    pub(crate) marker: String,
}

impl Shell {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let marker = format!("{MARKER_NAME}={}-{}.", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self { folder: TempDir::new().unwrap(), marker }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn spec(&self, script: &str) -> ChildSpec {
        let (name, value) = self.marker.split_once('=').unwrap();
        spec_in(self.path(), script, vec![("PATH".into(), path()), (name.into(), value.into())])
    }

    /// Runs to the end, and checks that no process is left at that moment.
    pub(crate) async fn run(&self, spec: ChildSpec, cancel: &CancellationToken) -> Finished {
        let finished = run(spec, cancel).await.unwrap();
        self.assert_nothing_left();
        finished
    }

    pub(crate) async fn script(&self, script: &str) -> Finished {
        self.run(self.spec(script), &CancellationToken::new()).await
    }

    pub(crate) fn in_background(&self, spec: ChildSpec) -> (JoinHandle<Finished>, CancellationToken) {
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        (tokio::spawn(async move { run(spec, &token).await.unwrap() }), cancel)
    }

    /// Waits until the script has made this file.
    pub(crate) async fn until_file(&self, name: &str) {
        until(name, || self.path().join(name).exists()).await;
    }

    /// Waits until the script has written a line to this file.
    pub(crate) async fn line(&self, name: &str) -> String {
        let read = || fs::read_to_string(self.path().join(name)).unwrap_or_default();
        until(name, || read().ends_with('\n')).await;
        read().trim().to_owned()
    }

    pub(crate) fn assert_nothing_left(&self) {
        assert_eq!(self.processes(), Vec::<String>::new());
    }

    /// Living processes with our marker; those that ended but weren't reaped have no environment any more.
    pub(crate) fn processes(&self) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environ.split(|byte| *byte == 0).any(|variable| variable == self.marker.as_bytes()) {
                let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push(format!("{:?} {}", entry.file_name(), String::from_utf8_lossy(&command)));
            }
        }
        found
    }

    /// The process id outside of the process that has the id `inner` to itself: it may be in a namespace of its
    /// own.
    pub(crate) fn number_here(&self, inner: &str) -> u32 {
        let here = self.numbers().into_iter().find(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let inside = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            inside.and_then(|numbers| numbers.split_whitespace().last()) == Some(inner)
        });
        here.unwrap_or_else(|| panic!("no process {inner}: {:?}", self.processes()))
    }

    pub(crate) fn numbers(&self) -> Vec<u32> {
        let is_ours = |pid: &u32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|variable| variable == self.marker.as_bytes())
        };
        let all = fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
    }

    pub(crate) async fn until_nothing_left(&self) {
        until("nothing is left", || self.processes().is_empty()).await;
    }
}

pub(crate) fn path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap()
}

/// A spec with large limits, so that no test ends by them unless it sets them.
pub(crate) fn spec_in(
    folder: &Path,
    script: &str,
    env: Vec<(std::ffi::OsString, std::ffi::OsString)>,
) -> ChildSpec {
    ChildSpec {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        cwd: folder.to_owned(),
        env,
        stdin: Vec::new(),
        streams: Streams::Apart,
        keep_bytes_max: 64 * 1024,
        timeout: Some(Duration::from_secs(60)),
        ends_within: None,
        grace: Duration::from_secs(30),
    }
}

pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < DEADLINE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Zombie children of this process.
pub(crate) fn zombies() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children = lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    let stats = children.filter_map(|child| fs::read_to_string(format!("/proc/{child}/stat")).ok());
    stats.filter(|stat| stat.contains(") Z ")).count()
}
