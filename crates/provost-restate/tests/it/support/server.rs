//! A real Restate server as a child process.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use url::Url;

/// How long a server may take to its first answer.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

pub(crate) struct Server {
    program: PathBuf,
    folder: TempDir,
    ports: [u16; 3],
    child: Option<Child>,
}

impl Server {
    /// Starts one; `None` if there is no program, which is said.
    pub(crate) async fn start() -> Option<Self> {
        let Some(program) = program() else {
            eprintln!(
                "SKIPPED: there is no restate-server. Set PROVOST_RESTATE_SERVER to its path, or install it with \
                 `cargo xtask restate-server`."
            );
            return None;
        };
        let mut server =
            Self { program, folder: TempDir::new().expect("a folder"), ports: free_ports(), child: None };
        server.resume().await;
        Some(server)
    }

    /// Starts it again after a kill, on the same data and ports.
    pub(crate) async fn resume(&mut self) {
        let [ingress, admin, node] = self.ports.map(|port| format!("127.0.0.1:{port}"));
        let log = std::fs::File::create(self.folder.path().join("log")).expect("a log");
        let child = Command::new(&self.program)
            .args(["--no-logo", "--node-name", "one"])
            .arg("--base-dir")
            .arg(self.folder.path().join("data"))
            .env("RESTATE_LISTEN_MODE", "tcp")
            .env("RESTATE_BIND_ADDRESS", &node)
            .env("RESTATE_ADVERTISED_ADDRESS", format!("http://{node}"))
            .env("RESTATE_INGRESS__BIND_ADDRESS", &ingress)
            .env("RESTATE_ADMIN__BIND_ADDRESS", &admin)
            .env("RESTATE_DEFAULT_NUM_PARTITIONS", "4")
            .env("RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE", "256 MiB")
            .env("RESTATE_DISABLE_TELEMETRY", "true")
            .env("RESTATE_ADMIN__DISABLE_WEB_UI", "true")
            .env("RESTATE_LOG_FILTER", "warn")
            .env("RESTATE_LOG_DISABLE_ANSI_CODES", "true")
            .env("DO_NOT_TRACK", "1")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("restate-server starts");
        self.child = Some(child);
        self.answers().await;
    }

    async fn answers(&mut self) {
        let started = Instant::now();
        let engine = super::engine(self, self.folder.path());
        loop {
            let clock = std::sync::Arc::new(provost_harness::SystemClock);
            if provost_restate::RestateBackend::connect(engine.clone(), clock).await.is_ok() {
                return;
            }
            let ended = self.child.as_mut().and_then(|child| child.try_wait().ok()).flatten();
            let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(ended.is_none(), "restate-server has ended: {}", log());
            assert!(started.elapsed() < STARTS_WITHIN, "restate-server doesn't answer: {}", log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn ingress(&self) -> Url {
        format!("http://127.0.0.1:{}", self.ports[0]).parse().expect("a URL")
    }

    pub(crate) fn admin(&self) -> Url {
        format!("http://127.0.0.1:{}", self.ports[1]).parse().expect("a URL")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ports that are free now.
fn free_ports() -> [u16; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}

/// The server's program: as named, as installed by `cargo xtask`, or on the path.
fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PROVOST_RESTATE_SERVER") {
        let named = PathBuf::from(named);
        assert!(named.is_file(), "PROVOST_RESTATE_SERVER names {}, which isn't there", named.display());
        return Some(named);
    }
    let modules =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/restate/node_modules/@restatedev");
    let installed = std::fs::read_dir(modules).into_iter().flatten().flatten();
    let installed = installed.map(|package| package.path().join("bin/restate-server"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        std::env::split_paths(&path).map(|folder| folder.join("restate-server")).collect::<Vec<_>>();
    installed.chain(on_path).find(|program| program.is_file())
}
