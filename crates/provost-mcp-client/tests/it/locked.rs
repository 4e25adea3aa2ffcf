//! A server that wants a login, with its authorization server, and a browser.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use provost_mcp_client::{LoginRequest, LoginSetup, PendingLogin, Reach};
use serde_json::{Value, json};

use crate::stage::Stage;

pub(crate) struct Locked {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Locked {
    pub(crate) fn new(config: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("config"), config.to_string()).unwrap();
        std::fs::write(path("record"), "").unwrap();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/oauth_server.py");
        let mut command = Command::new("python3");
        command.arg(program).args([path("config"), path("record")]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, folder, port: line.trim().parse().unwrap() }
    }

    pub(crate) fn configure(&self, config: &Value) {
        std::fs::write(self.folder.path().join("config"), config.to_string()).unwrap();
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn login_file(&self) -> PathBuf {
        self.folder.path().join("logins/server.json")
    }

    /// An agent's stage with this server.
    pub(crate) fn stage(&self) -> Stage {
        let mut stage = Stage::new(&json!({}));
        stage.setup.reach = Reach::Http {
            url: format!("{}/mcp", self.origin()),
            headers: Vec::new(),
            login: Box::new(LoginSetup { file: self.login_file(), ..LoginSetup::none() }),
        };
        stage
    }

    /// The user logs in by a browser.
    pub(crate) async fn logged_in(&self) -> Stage {
        let stage = self.stage();
        let pending = PendingLogin::begin(&stage.setup, &LoginRequest::default()).await.unwrap();
        let address = pending.address().to_owned();
        let browser = tokio::task::spawn_blocking(move || browse(&address));
        pending.by_browser(std::time::Duration::from_secs(20)).await.unwrap();
        assert!(browser.await.unwrap().contains("You are logged in"));
        stage
    }

    /// What the servers were asked.
    pub(crate) fn record(&self, what: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("record")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["what"] == what).collect()
    }

    /// The tokens of the login.
    pub(crate) fn kept(&self) -> Value {
        let text = std::fs::read_to_string(self.login_file()).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["credentials"]["token_response"].clone()
    }
}

const BROWSER: &str = "
import sys, urllib.request, urllib.error
class Stop(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_): return None
open = urllib.request.build_opener(*([Stop] if len(sys.argv) > 2 else [])).open
try: print(open(sys.argv[1], timeout=20).read().decode())
except urllib.error.HTTPError as error: print(error.headers.get('location') or error.read().decode())
";

/// What a browser shows at an address.
pub(crate) fn browse(address: &str) -> String {
    let shown = Command::new("python3").args(["-c", BROWSER, address]).output().unwrap();
    String::from_utf8(shown.stdout).unwrap()
}

/// Where an address sends the browser.
pub(crate) fn sent_to(address: &str) -> String {
    let shown = Command::new("python3").args(["-c", BROWSER, address, "stop"]).output().unwrap();
    String::from_utf8(shown.stdout).unwrap().trim().to_owned()
}
