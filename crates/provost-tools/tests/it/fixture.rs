//! A workspace and calls in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use expect_test::Expect;
use provost_event::{ActorKey, BlobId, EffectId, Json, RunId, Seq, SessionId};
use provost_harness::{BackendError, Blobs, FileReach, SessionLog, ToolContext, ToolOutput};
use provost_tools::builtin;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The blobs of a workspace.
#[derive(Default)]
pub(crate) struct Kept(pub(crate) BTreeMap<BlobId, Vec<u8>>);

#[async_trait]
impl Blobs for Kept {
    async fn put_blob(&self, _: Vec<u8>) -> Result<BlobId, BackendError> {
        unreachable!("tools only read")
    }

    async fn get_blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
        Ok(self.0.get(id).cloned())
    }
}

/// A folder that contains a workspace, so that there is a writable outside.
pub(crate) struct Fixture {
    whole: TempDir,
    pub(crate) blobs: Arc<Kept>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let whole = TempDir::with_prefix("tools-").unwrap();
        std::fs::create_dir(whole.path().join("workspace")).unwrap();
        Self { whole, blobs: Arc::default() }
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.whole.path().canonicalize().unwrap()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.outside().join("workspace")
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// Adds a file to the workspace.
    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn read(&self, path: &str) -> String {
        String::from_utf8(std::fs::read(self.path(path)).unwrap()).unwrap()
    }

    pub(crate) fn context(&self) -> ToolContext {
        let run = RunId::from_entropy(7);
        ToolContext {
            effect: EffectId { actor: ActorKey::Session(SessionId::root(run)), seq: Seq(1) },
            workspace: Arc::from(self.root()),
            reach: FileReach::default(),
            memory: None,
            env_file: None,
            limit: None,
            timeout: Duration::from_secs(600),
            cancel: CancellationToken::new(),
            blobs: self.blobs.clone(),
            log: SessionLog::empty(),
            output_bytes_max: provost_tools::OUTPUT_BYTES_MAX,
            secrets: Arc::default(),
            sandbox: Arc::new(provost_harness::NoSandbox),
            output: provost_harness::LiveOutput::ignored(),
            answer: None,
        }
    }

    pub(crate) async fn call(&self, tool: &str, input: serde_json::Value) -> ToolOutput {
        call_in(&self.context(), tool, input).await
    }

    /// Calls and compares status and text; the fixture's own folder is shown as `/tmp/it`.
    pub(crate) async fn check(&self, tool: &str, input: serde_json::Value, expect: Expect) {
        let output = self.call(tool, input).await;
        expect.assert_eq(&self.shown(&output));
    }

    pub(crate) fn shown(&self, output: &ToolOutput) -> String {
        let text = format!("{:?}\n{}\n", output.status, output.text);
        text.replace(self.outside().to_str().unwrap(), "/tmp/it")
    }

    /// The names in a folder of the workspace, sorted.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let mut names: Vec<_> = self
            .path(folder)
            .read_dir()
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

pub(crate) async fn call_in(context: &ToolContext, tool: &str, input: serde_json::Value) -> ToolOutput {
    let tool_registry = builtin();
    tool_registry.get(tool).unwrap().call(&Json::of(&input).unwrap(), context).await
}

#[cfg(unix)]
pub(crate) fn link(target: impl AsRef<Path>, at: impl AsRef<Path>) {
    std::os::unix::fs::symlink(target, at).unwrap();
}

#[cfg(unix)]
pub(crate) fn fifo(at: impl AsRef<Path>) {
    let made = std::process::Command::new("mkfifo").arg(at.as_ref()).status().unwrap();
    assert!(made.success());
}
