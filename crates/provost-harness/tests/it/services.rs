//! The supervisor of a service, with a simulated clock: real commands, hours in milliseconds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use provost_event::{RunId, SessionId, Timestamp};
use provost_harness::{
    NoSandbox, ServiceError, ServiceRecord, ServiceState, Services, SimulatedClock, Supervision,
    supervise_service,
};
use provost_process::boot_id;
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

struct Scene {
    folder: TempDir,
    clock: Arc<SimulatedClock>,
    stop: CancellationToken,
}

impl Scene {
    fn new() -> Self {
        let clock = Arc::new(SimulatedClock::at(Timestamp(1_000)));
        Self { folder: tempfile::tempdir().unwrap(), clock, stop: CancellationToken::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The record that a tool would have written.
    fn record(&self, command: &str) -> PathBuf {
        let record = json!({
            "name": "web", "command": command, "shell": "/bin/sh", "session": SessionId::root(RunId::from_entropy(7)),
            "workspace": self.folder.path(), "cwd": self.folder.path(), "log": self.path("web.log"), "since": 1_000,
            "expires": 1_000 + DAY_MS, "keep_ms": DAY_MS, "boot": boot_id(), "starter": { "pid": 1, "started": 0 },
        });
        let path = self.path("web.json");
        std::fs::write(&path, record.to_string()).unwrap();
        path
    }

    async fn supervise(&self, record: &Path) -> Result<ServiceRecord, ServiceError> {
        let started = self.path("started");
        let supervision = Supervision {
            sandbox: &NoSandbox,
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            clock: self.clock.clone(),
            stop: &self.stop,
            started: Box::new(move || std::fs::write(started, "").unwrap()),
        };
        supervise_service(record, supervision).await
    }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_service_is_ended_when_its_day_is_over_and_not_before() {
    let scene = Scene::new();
    let record = scene.record("echo begun; echo $$ > pid; exec sleep 1000");
    let services = Services::in_folder(scene.folder.path().to_owned());
    let during = async {
        until("it counts as started", || scene.path("started").exists()).await;
        assert_eq!(services.get("web").unwrap().state(), ServiceState::Running);
        scene.clock.advance_ms(DAY_MS - 1);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(services.get("web").unwrap().state(), ServiceState::Running);
        scene.clock.advance_ms(1);
    };
    let (ended, ()) = tokio::join!(scene.supervise(&record), during);
    let end = ended.unwrap().end.unwrap();
    assert_eq!(end.how, "has ended: its time of 24 h was over");
    assert_eq!(end.at, Timestamp(1_000 + DAY_MS));
    let kept = services.get("web").unwrap();
    assert_eq!(kept.state(), ServiceState::Ended(end));
    assert_eq!(services.output(&kept, 100).unwrap().bytes, b"begun\n");
}

#[tokio::test]
async fn a_service_that_ends_by_itself_says_how_and_one_without_a_shell_that_it_could_not_be_started() {
    let scene = Scene::new();
    let ended = scene.supervise(&scene.record("sleep 0.5; exit 3")).await.unwrap();
    assert_eq!(ended.end.unwrap().how, "has ended with exit status 3");
    let record = scene.record("true");
    let text = std::fs::read_to_string(&record).unwrap().replace("/bin/sh", "/no/shell");
    std::fs::write(&record, text).unwrap();
    let failed = scene.supervise(&record).await.unwrap();
    assert!(failed.end.unwrap().how.starts_with("couldn't be started: \"/no/shell\" was not found"));
}

#[tokio::test]
async fn a_record_that_is_none_starts_nothing() {
    let scene = Scene::new();
    let path = scene.path("web.json");
    std::fs::write(&path, "{}").unwrap();
    assert!(matches!(scene.supervise(&path).await, Err(ServiceError::Record { .. })));
    assert!(matches!(scene.supervise(&scene.path("none.json")).await, Err(ServiceError::File { .. })));
    assert!(!scene.path("started").exists());
    assert_eq!(Services::in_folder(scene.folder.path().to_owned()).all(), []);
}
