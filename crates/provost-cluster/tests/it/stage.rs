//! A cluster in a folder of its own.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use provost_cluster::{
    ClusterError, ClusterStatus, LocalCluster, Snapshots, Started, UpRequest, WorkerProgram,
};
use provost_process::ProcessIdentity;
use tempfile::TempDir;

pub(crate) const GRACE: Duration = Duration::from_secs(10);

pub(crate) struct Stage {
    pub(crate) folder: TempDir,
    pub(crate) cluster: LocalCluster,
    pub(crate) server: PathBuf,
    worker: PathBuf,
    pub(crate) snapshots: Snapshots,
}

impl Stage {
    /// With stand-ins for all members.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let stand_in = program(&folder, "stand-in", include_str!("stand_in.py"));
        Self {
            cluster: LocalCluster::in_folder(folder.path().join("cluster")),
            folder,
            server: stand_in.clone(),
            worker: stand_in,
            snapshots: Snapshots::AsBefore,
        }
    }

    /// The same, where nodes are this program.
    pub(crate) fn with_server(mut self, server: PathBuf) -> Self {
        self.server = server;
        self
    }

    pub(crate) fn program(&self, name: &str, text: &str) -> PathBuf {
        program(&self.folder, name, text)
    }

    pub(crate) async fn up(
        &self,
        nodes: impl Into<Option<usize>>,
        workers: impl Into<Option<usize>>,
    ) -> Result<Started, ClusterError> {
        let env =
            ["PATH", "HOME"].into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
        let env = env.collect::<Vec<(OsString, OsString)>>();
        let request = UpRequest {
            nodes: nodes.into(),
            workers: workers.into(),
            server: &self.server,
            env: env.clone(),
            snapshots: self.snapshots.clone(),
            worker: WorkerProgram {
                program: self.worker.clone(),
                args: vec!["worker".into()],
                env,
                cwd: self.folder.path().to_owned(),
            },
        };
        self.cluster.up(&request, |_| {}).await
    }

    pub(crate) async fn down(&self) -> Vec<String> {
        self.cluster.down(GRACE).await.expect("it ends").members
    }

    pub(crate) async fn status(&self) -> ClusterStatus {
        self.cluster.status().await.expect("a status").expect("a cluster")
    }

    pub(crate) async fn pids(&self) -> Vec<Option<u32>> {
        self.status().await.members.iter().map(|member| member.pid).collect()
    }

    /// Kills a member as the system does that is out of memory.
    pub(crate) async fn kill(&self, name: &str) {
        let status = self.status().await;
        let member = status.members.iter().find(|member| member.name == name).expect("a member");
        let pid = member.pid.expect("it runs");
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
        let started =
            text.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)).expect("a time");
        let process = ProcessIdentity { pid, started: started.parse().expect("a number") };
        assert!(tokio::task::spawn_blocking(move || process.end_tree()).await.expect("a task"));
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind.
        let cluster = self.cluster.clone();
        let end = move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let _ = runtime.block_on(cluster.down(Duration::ZERO));
        };
        let _ = std::thread::spawn(end).join();
    }
}

fn program(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).expect("a program");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("permissions");
    path
}
