//! A shell in a folder of its own, and a view of the processes it started.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, iter, process};

use provost_process::{ChildSpec, Confinement, Finished, Launch, Stdio, Streams, run};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const MARKER_NAME: &str = "PROVOST_PROCESS_MARKER";
const DEADLINE: Duration = Duration::from_secs(20);

/// A temporary folder to run scripts in; every started process has a marker in its environment.
pub(crate) struct Shell {
    folder: TempDir,
    pub(crate) marker: String,
    /// Process ids and start times.
    seen_guards: Mutex<HashSet<(u32, u64)>>,
}

/// A living process.
struct Stat {
    pid: u32,
    parent: u32,
    started: u64,
    is_guard: bool,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, fields) = stat.rsplit_once(')')?;
        let fields: Vec<_> = fields.split_whitespace().collect();
        let is_guard = name.ends_with("(child-guard") && *fields.first()? != "Z";
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
            is_guard,
        })
    }

    const fn identity(&self) -> (u32, u64) {
        (self.pid, self.started)
    }
}

impl Shell {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let marker = format!("{MARKER_NAME}={}-{}.", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self { folder: TempDir::new().unwrap(), marker, seen_guards: Mutex::default() }
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

    /// Living processes with our marker, and their guards, which have no environment; those that ended but weren't
    /// reaped have none any more either.
    pub(crate) fn processes(&self) -> Vec<String> {
        let named = |pid: &u32| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!("{pid} {}", String::from_utf8_lossy(&command))
        };
        let marked = self.numbers();
        let guards = self.guards(&marked);
        marked.iter().map(named).chain(guards.iter().map(|pid| format!("{pid} a guard"))).collect()
    }

    /// The guards above and below these processes, and those seen before that still exist.
    fn guards(&self, marked: &[u32]) -> Vec<u32> {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let stats: HashMap<u32, Stat> = numbers.filter_map(|pid| Some((pid, Stat::of(pid)?))).collect();
        let above =
            |pid: u32| iter::successors(stats.get(&pid), |stat| stats.get(&stat.parent)).map(|stat| stat.pid);
        let mut near: HashSet<u32> = marked.iter().flat_map(|pid| above(*pid)).collect();
        near.extend(stats.keys().filter(|pid| above(**pid).any(|pid| marked.contains(&pid))));
        let mut seen = self.seen_guards.lock().unwrap();
        seen.extend(
            near.into_iter()
                .filter_map(|pid| stats.get(&pid))
                .filter(|stat| stat.is_guard)
                .map(Stat::identity),
        );
        let guards = stats.values().filter(|stat| stat.is_guard && seen.contains(&stat.identity()));
        guards.map(|stat| stat.pid).collect()
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
        launch: Launch {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env,
            cwd: folder.to_owned(),
            stdio: Stdio { input: Vec::new(), streams: Streams::Apart },
            confinement: Confinement::Strongest,
        },
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

pub(crate) fn is_root() -> bool {
    fs::read_to_string("/proc/self/status").unwrap().lines().any(|line| line.starts_with("Uid:\t0\t0"))
}
