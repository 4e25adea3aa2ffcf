//! The stage for driven programs: a real backend on disk, the whole harness, real children; the log as short
//! lines.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use provost_backend::EmbeddedBackend;
use provost_engine::SessionEvent;
use provost_event::{
    AgentPolicy, ApprovalAnswer, ApprovalScope, Channel, ConversationEntry, Entry, ExternalPolicy, GateEntry,
    LifecycleEntry, ModelPolicy, Outcome, Permission, PermissionPolicy, Record, RunId, RunPolicy, Seq,
    SessionId, StopHookPolicy, TerminalEntry, TerminalEvent, ToolEntry, WindowSize,
};
use provost_external::{Drivers, DriversOptions};
use provost_harness::hooks::HookRegistryBuilder;
use provost_harness::{
    AgentHarness, Harness, HarnessDeps, Log as _, ModelGateway, Models, SystemClock, ToolRegistry,
    consent_tools,
};
use provost_sqlite::SqliteStore;
use provost_terminal::Profile;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) const RUN: RunId = RunId::from_entropy(4_711);
pub(crate) const ROOT: SessionId = SessionId::root(RUN);
pub(crate) const DEADLINE: Duration = Duration::from_secs(25);
pub(crate) const COMPLETED: Outcome = Outcome::UNVERIFIED;

pub(crate) struct Stage {
    pub(crate) folder: TempDir,
    pub(crate) backend: Arc<EmbeddedBackend>,
    terminals: PathBuf,
    /// Hooks of the next harness.
    pub(crate) hooks: Mutex<Option<HookRegistryBuilder>>,
    /// Where metered programs call models.
    pub(crate) gateway: Option<Arc<dyn ModelGateway>>,
}

/// A run that is being worked on.
pub(crate) struct Running {
    work: JoinHandle<Outcome>,
    stop: CancellationToken,
    backend: Arc<EmbeddedBackend>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("work")).expect("a workspace");
        std::fs::write(folder.path().join("agent.py"), include_str!("agent.py")).expect("an agent");
        let store = SqliteStore::open(folder.path().join("provost.db")).expect("a store");
        let backend = Arc::new(EmbeddedBackend::new(store, Arc::new(SystemClock)).expect("a backend"));
        let terminals = folder.path().join("terminals");
        Self { folder, backend, terminals, hooks: Mutex::default(), gateway: None }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn terminals(&self) -> PathBuf {
        self.terminals.clone()
    }

    /// Moves the folder for terminals to one with this name below it.
    pub(crate) fn deepen(&mut self, name: &str) {
        self.terminals = self.terminals.join(name);
    }

    pub(crate) fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.workspace().join(name)).ok()
    }

    /// A harness like one in a process of its own.
    pub(crate) fn harness(&self) -> AgentHarness {
        let drivers = Drivers::new(DriversOptions {
            folder: self.terminals(),
            records: true,
            env: ["PATH", "HOME", "LANG"]
                .iter()
                .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
                .collect(),
            passed: vec![("HANDED".to_owned(), "through".to_owned()), ("KEPT".to_owned(), "back".to_owned())],
            profiles: vec![Profile::parse("fake", include_str!("agent.toml")).expect("a profile")],
            gateway: self.gateway.clone(),
            masked: Arc::default(),
            private: Arc::default(),
            streams: None,
        });
        let hooks = self.hooks.lock().expect("hooks").take();
        AgentHarness::new(HarnessDeps {
            external: Arc::new(drivers),
            hooks: hooks.map(|hooks| hooks.freeze().expect("hooks")).unwrap_or_default(),
            ..HarnessDeps::new(self.backend.clone(), Models::new(), ToolRegistry::new())
        })
    }

    pub(crate) async fn start(&self, goal: &str, policy: RunPolicy) -> Running {
        let harness = self.harness();
        let mut run = harness.start(RUN, goal, policy).await.expect("it starts");
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let work = tokio::spawn(async move { work(&mut run, &stopped).await });
        Running { work, stop, backend: self.backend.clone() }
    }

    pub(crate) async fn run(&self, goal: &str, policy: RunPolicy) -> Outcome {
        self.start(goal, policy).await.outcome().await
    }

    /// The log of the agent so far.
    pub(crate) async fn log(&self) -> Vec<Arc<Record>> {
        self.backend.read(ROOT.into(), Seq::START, 10_000).await.expect("a log")
    }

    /// The recorded events of the terminal, one per line, without states.
    pub(crate) async fn noted(&self) -> Vec<String> {
        let log = self.log().await;
        let events = log.iter().filter_map(|record| match &record.entry {
            Entry::Terminal(TerminalEntry::Noted(noted))
                if !matches!(noted.event, TerminalEvent::State(_)) =>
            {
                Some(noted.event.to_string())
            }
            _ => None,
        });
        events.collect()
    }

    /// Waits for an entry.
    pub(crate) async fn sees(&self, wanted: impl Fn(&Entry) -> bool) -> Arc<Record> {
        let mut records = self.backend.subscribe(ROOT.into(), Seq::START);
        let found = async {
            while let Some(record) = records.next().await {
                let record = record.expect("a record");
                if wanted(&record.entry) {
                    return record;
                }
            }
            panic!("the log has ended")
        };
        match timeout(DEADLINE, found).await {
            Ok(record) => record,
            Err(_) => panic!("not in time; the log: {:#?}", self.told().await),
        }
    }

    pub(crate) async fn sees_event(&self, wanted: impl Fn(&TerminalEvent) -> bool) -> Arc<Record> {
        self.sees(
            |entry| matches!(entry, Entry::Terminal(TerminalEntry::Noted(noted)) if wanted(&noted.event)),
        )
        .await
    }

    /// Answers the next question in the inbox after `after`.
    pub(crate) async fn answers(&self, after: Seq, answer: ApprovalAnswer) -> Seq {
        let mut records = self.backend.subscribe(ROOT.into(), after);
        let asked = async {
            loop {
                let record = records.next().await.expect("a log").expect("a record");
                if let Entry::Gate(GateEntry::ApprovalRequested(_)) = record.entry {
                    return record.seq;
                }
            }
        };
        let asked = match timeout(DEADLINE, asked).await {
            Ok(asked) => asked,
            Err(_) => panic!("no question is open; the log: {:#?}", self.told().await),
        };
        let event = SessionEvent::Resolve { asked, answer, by: "a person".to_owned() };
        self.backend.post(ROOT.into(), event.into(), None).await.expect("posted");
        asked
    }

    pub(crate) async fn told(&self) -> Vec<String> {
        lines(&self.backend).await
    }

    /// The number of processes in the workspace.
    pub(crate) fn left_running(&self) -> usize {
        let here = self.workspace().canonicalize().expect("a path");
        let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
        let works_here = |entry: &std::fs::DirEntry| {
            std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == here)
        };
        processes.filter(works_here).count()
    }

    /// The files below the stage's folder that hold `text`.
    pub(crate) fn files_with(&self, text: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if std::fs::read(&path).is_ok_and(|bytes| holds(&bytes, text.as_bytes())) {
                    found.push(path);
                }
            }
        }
        found
    }

    pub(crate) fn recordings(&self) -> Vec<PathBuf> {
        let folder = self.terminals().join("recordings");
        let mut paths: Vec<_> =
            std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }
}

fn holds(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

async fn lines(backend: &EmbeddedBackend) -> Vec<String> {
    let log = backend.read(ROOT.into(), Seq::START, 10_000).await.expect("a log");
    log.iter().map(|record| format!("{} {}", record.seq, told(&record.entry))).collect()
}

fn told(entry: &Entry) -> String {
    match entry {
        Entry::Terminal(TerminalEntry::Noted(noted)) => format!("terminal: {}", noted.event),
        Entry::Conversation(ConversationEntry::AssistantMessage(message)) => {
            format!("answer: {:?}", message.content)
        }
        Entry::Tool(ToolEntry::Finished(finished)) => {
            format!("tool: {:?} {}", finished.status, finished.output)
        }
        Entry::Lifecycle(LifecycleEntry::Ended(ended)) => format!("ended: {:?}", ended.outcome),
        Entry::Lifecycle(LifecycleEntry::Paused(paused)) => format!("suspended: {:?}", paused.outcome),
        other => other.kind().to_owned(),
    }
}

async fn work(run: &mut Harness, stop: &CancellationToken) -> Outcome {
    run.run(stop).await.expect("it works")
}

impl Running {
    pub(crate) async fn outcome(self) -> Outcome {
        match timeout(DEADLINE, self.work).await {
            Ok(outcome) => outcome.expect("no panic"),
            Err(_) => panic!("not in time; the log: {:#?}", lines(&self.backend).await),
        }
    }

    /// Pauses the run.
    pub(crate) async fn pauses(self) -> Outcome {
        self.stop.cancel();
        self.outcome().await
    }

    /// As when the process crashes: no event reaches any receiver any more.
    pub(crate) async fn dies(self) {
        self.work.abort();
        assert!(self.work.await.is_err());
    }
}

/// A program for an agent.
pub(crate) struct Program(ExternalPolicy);

impl Program {
    fn of(program: &str, args: &[&str], profile: &str) -> Self {
        Self(ExternalPolicy {
            program: program.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: BTreeMap::new(),
            passes: Vec::new(),
            profile: profile.to_owned(),
            channel: Channel::Terminal,
            size: WindowSize::default(),
            submits_goal: false,
            attended: false,
            unrecorded: false,
            idle_ms: None,
            metering: Default::default(),
        })
    }

    /// The program in this folder that paints like an agent; the goal is its first prompt.
    pub(crate) fn agent(stage: &Stage) -> Self {
        let script = stage.folder.path().join("agent.py").display().to_string();
        Self::of("python3", &[&script], "fake").with(|external| external.submits_goal = true)
    }

    /// A shell script.
    pub(crate) fn shell(script: &str) -> Self {
        Self::of("sh", &["-c", script], "generic")
    }

    pub(crate) fn named(program: &str) -> Self {
        Self::of(program, &[], "generic")
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut ExternalPolicy)) -> Self {
        change(&mut self.0);
        self
    }

    pub(crate) fn policy(self, stage: &Stage) -> RunPolicy {
        self.policy_with(stage, |_| {})
    }

    pub(crate) fn policy_with(self, stage: &Stage, change: impl FnOnce(&mut AgentPolicy)) -> RunPolicy {
        let model = ModelPolicy::new(format!("external/{}", self.0.program), 1);
        let mut agent = AgentPolicy {
            external: Some(Box::new(self.0)),
            tools: consent_tools(),
            permissions: PermissionPolicy { default: Permission::Ask, ..PermissionPolicy::default() },
            ..AgentPolicy::new(model, stage.workspace())
        };
        change(&mut agent);
        RunPolicy::new(agent)
    }
}

pub(crate) fn yes() -> ApprovalAnswer {
    ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None }
}

pub(crate) fn no(reason: &str) -> ApprovalAnswer {
    ApprovalAnswer::Deny { reason: reason.to_owned() }
}

/// A hook that blocks once, with this reason.
pub(crate) fn blocks_once(reason: &str) -> StopHookPolicy {
    let command = format!("test -e asked || {{ touch asked; echo '{reason}'; exit 2; }}");
    StopHookPolicy {
        name: "tests".into(),
        command: Some(command),
        timeout_ms: 10_000,
        on_error: provost_event::OnHookError::Ignore,
    }
}

/// The prompts in the file in which a stage's agent records them.
pub(crate) fn prompts(told: Option<String>) -> Vec<String> {
    let told = told.unwrap_or_default();
    told.split("--\n")
        .map(|prompt| prompt.trim_end().to_owned())
        .filter(|prompt| !prompt.is_empty())
        .collect()
}

/// Sends this message to the agent.
pub(crate) async fn says(stage: &Stage, text: &str) {
    let event = SessionEvent::Say { text: text.to_owned(), by: "a person".to_owned() };
    stage.backend.post(ROOT.into(), event.into(), None).await.expect("said");
}
