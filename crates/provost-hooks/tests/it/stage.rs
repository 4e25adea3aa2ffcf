//! A workspace, a session in it, and questions about it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use provost_engine::{CallDetails, HookCall, HookCallDetails, StopCheck, WantedAgent};
use provost_event::{
    CallFacts, Effort, Entry, ErrorClass, HookContract, HookDecision, HookPoint, HookPolicy, HookProgram,
    HookSetup, HookTrigger, Json, ModelPolicy, OnFailure, Outcome, Record, RunId, Seq, SessionId,
    SessionSource, Timestamp, ToolEntry, ToolFinished, ToolIdentity, ToolStatus, ToolSubject,
};
use provost_harness::{
    Clock, HookAgent, HookAnswer, HookPrograms as _, HookQuestion, HookQuestionTrigger, SystemClock,
};
use provost_hooks::{ProgramHooks, ProgramHooksOptions, hook_point_of};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// No hook of a test takes this long, unless its limits don't work.
const DEADLINE: Duration = Duration::from_secs(20);
/// The position of the entry with a call's result.
const FINISHED: Seq = Seq(7);

pub(crate) struct Stage {
    folder: TempDir,
    pub(crate) hooks: ProgramHooks,
    /// The tool of the call in questions about tools.
    pub(crate) tool: &'static str,
    pub(crate) input: Value,
    pub(crate) output: String,
    /// The text of the answer with which the agent wants to stop.
    pub(crate) final_text: String,
    /// The user's message.
    pub(crate) prompt: String,
    /// Whether a stop hook has made the agent go on already.
    pub(crate) blocked_before: bool,
    /// The session's log for hooks.
    pub(crate) transcript: PathBuf,
    pub(crate) effort: Option<Effort>,
    /// The agent that the call spawns.
    pub(crate) wanted: Option<WantedAgent>,
    /// The agent's position and name.
    pub(crate) agent: HookAgent,
    /// The agent's current folder, relative to the stage's own.
    pub(crate) current: PathBuf,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(Arc::new(SystemClock), &[], HashMap::new())
    }

    pub(crate) fn with(
        clock: Arc<dyn Clock>,
        extra_env: &[(&str, &str)],
        header_env: HashMap<String, String>,
    ) -> Self {
        let folder = TempDir::with_prefix("with space-").expect("a folder");
        std::fs::create_dir(folder.path().join("work")).expect("a folder");
        let options = ProgramHooksOptions {
            clock,
            spill: Some(folder.path().join("spill")),
            header_env,
            redactor: Arc::default(),
            extra_env: extra_env
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        };
        Self {
            folder,
            hooks: ProgramHooks::new(options),
            tool: "shell",
            input: json!({ "command": "rm -rf build" }),
            output: "fine\n".to_owned(),
            final_text: "All done.".to_owned(),
            prompt: "do it".to_owned(),
            blocked_before: true,
            transcript: "/logs/session.jsonl".into(),
            effort: None,
            wanted: None,
            agent: HookAgent::default(),
            current: "work".into(),
        }
    }

    /// The workspace; its path contains a space.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("a path").join("work")
    }

    pub(crate) fn spill(&self) -> PathBuf {
        self.folder.path().join("spill")
    }

    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.work().join(name);
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
        path
    }

    pub(crate) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.work().join(name)).unwrap_or_default()
    }

    fn call(&self) -> CallDetails {
        CallDetails {
            call: "call-1".into(),
            tool: Box::new(identity(self.tool)),
            input: Json::of(&self.input).expect("JSON"),
            memory: None,
            why: String::new(),
            wanted: self.wanted.clone().map(Box::new),
        }
    }

    pub(crate) fn root() -> SessionId {
        SessionId::root(RunId::from_entropy(7))
    }

    /// The agent that the call spawns.
    pub(crate) fn child() -> SessionId {
        SessionId { agent: 5, ..Self::root() }
    }

    fn session(&self) -> SessionId {
        match self.agent.parent {
            Some(_) => SessionId { agent: 3, ..Self::root() },
            None => Self::root(),
        }
    }

    fn record(&self, status: ToolStatus) -> Arc<Record> {
        let finished = ToolFinished {
            plan: None,
            facts: CallFacts::exited(3),
            call: "call-1".into(),
            tool: self.tool.to_owned(),
            status,
            output: self.output.clone(),
            images: Vec::new(),
            whole: None,
            duration_ms: 12,
            memory: None,
        };
        Arc::new(Record {
            actor: self.session().into(),
            seq: FINISHED,
            at: Timestamp(0),
            elapsed: provost_event::Elapsed(0),
            entry: Entry::Tool(ToolEntry::Finished(finished)),
        })
    }

    /// A question to hooks of `point`; `failed` is for results.
    pub(crate) fn question(&self, point: HookPoint, failed: bool) -> HookQuestion {
        let (trigger, records) = if matches!(point, HookPoint::Stop | HookPoint::SubagentStop) {
            let check = StopCheck {
                limit_ms: None,
                shell: None,
                spent: Vec::new(),
                session: self.session(),
                turn: 3,
                tool_calls: 5,
                final_text: self.final_text.clone(),
                blocked_before: self.blocked_before,
                trigger: provost_event::GoalTrigger::Claim,
            };
            (HookQuestionTrigger::Stop(check), Vec::new())
        } else {
            let status = if failed { ToolStatus::Error } else { ToolStatus::Ok };
            let (about, details) = self.trigger(point, failed);
            let hook_call = HookCall {
                session: self.session(),
                turn: 3,
                about,
                details,
                limit_ms: None,
                shell: None,
                spent: Vec::new(),
            };
            (HookQuestionTrigger::HookCall(hook_call), vec![self.record(status)])
        };
        let mut model = ModelPolicy::new("anthropic/claude-sonnet-4-5", 4_096);
        model.effort = self.effort;
        HookQuestion {
            trigger,
            workspace: Arc::from(self.work()),
            folder: Arc::from(self.folder.path().canonicalize().expect("a path").join(&self.current)),
            model,
            agent: self.agent.clone(),
            transcript_path: Some(self.transcript.clone()),
            root_transcript_path: self.agent.parent.map(|_| PathBuf::from("/logs/root.jsonl")),
            voice: None,
            env_file: None,
            records,
            confinement: provost_process::Confinement::Strongest,
        }
    }

    fn trigger(&self, point: HookPoint, failed: bool) -> (HookTrigger, HookCallDetails) {
        use HookPoint as M;
        let call = || "call-1".into();
        let text = || HookCallDetails::Text { tool_calls: 5, last_text: "All done.".to_owned() };
        let failure = Outcome::Failed { class: ErrorClass::Overloaded, message: "no room".to_owned() };
        match point {
            M::SessionStart => {
                (HookTrigger::Session { source: SessionSource::Startup }, HookCallDetails::None)
            }
            M::SubagentStart => (HookTrigger::Subagent, HookCallDetails::None),
            M::Spawn => (HookTrigger::Spawn { call: call() }, HookCallDetails::Call(self.call())),
            M::ChildEnd => {
                let (child, outcome) = (Self::child(), Outcome::UNVERIFIED);
                let details = HookCallDetails::Result { call: self.call(), finished: FINISHED };
                (HookTrigger::ChildEnd { call: call(), is_error: failed, child, outcome }, details)
            }
            M::PromptSubmit => {
                let prompt = HookTrigger::Prompt { text: self.prompt.clone(), by: "user".to_owned() };
                (prompt, HookCallDetails::None)
            }
            M::PreLlmRequest => {
                let details = HookCallDetails::Request { items: 4, input_tokens: Some(99), tool_calls: 1 };
                (HookTrigger::Request { call: 2 }, details)
            }
            M::PreToolCall => (HookTrigger::call(call()), HookCallDetails::Call(self.call())),
            M::Approval | M::Notification => {
                let why = "rule ask shell".to_owned();
                let details = HookCallDetails::Call(CallDetails { why, ..self.call() });
                (HookTrigger::approval(call()), details)
            }
            M::PostToolCall | M::PostToolSuccess | M::PostToolFailure => {
                let is_error = failed || point == M::PostToolFailure;
                let details = HookCallDetails::Result { call: self.call(), finished: FINISHED };
                (HookTrigger::Result { call: call(), is_error }, details)
            }
            M::PostToolBatch => {
                let calls = vec![(self.call(), FINISHED)];
                (HookTrigger::Batch { turn: 3 }, HookCallDetails::Batch { calls })
            }
            M::TurnEnd => (HookTrigger::TurnEnd { turn: 3 }, text()),
            M::PreCompact => (HookTrigger::Compaction, HookCallDetails::None),
            M::PostCompact => {
                (HookTrigger::Compacted, HookCallDetails::Compacted { summary: "short".to_owned() })
            }
            M::Abort | M::StopFailure => (HookTrigger::Closing { outcome: failure }, text()),
            M::SessionEnd | M::Stop | M::SubagentStop => {
                (HookTrigger::Closing { outcome: Outcome::UNVERIFIED }, text())
            }
        }
    }

    pub(crate) async fn ask(&self, hook: &HookPolicy) -> HookAnswer {
        self.ask_about(hook, false).await
    }

    pub(crate) async fn ask_about(&self, hook: &HookPolicy, failed: bool) -> HookAnswer {
        let question = self.question(hook.point, failed);
        let cancel = CancellationToken::new();
        let asked = self.hooks.ask(hook, &question, hook.point, &cancel);
        tokio::time::timeout(DEADLINE, asked).await.expect("it answers in time")
    }

    pub(crate) fn wants(&self, hook: &HookPolicy) -> bool {
        self.hooks.wants(hook, &self.question(hook.point, false), hook.point)
    }

    /// The JSON that a hook of `event` reads.
    pub(crate) async fn told(&self, event: &str, failed: bool) -> Value {
        let answer = self.ask_about(&claude(event, "cat > told.json"), failed).await;
        assert_eq!(answer, HookAnswer::only(HookDecision::Continue));
        serde_json::from_str(&self.file("told.json")).expect("JSON")
    }

    /// How many processes run in the workspace.
    pub(crate) fn left_running(&self) -> usize {
        let here = self.work();
        let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
        processes.filter(|entry| is_in(&entry.path(), &here)).count()
    }
}

fn is_in(process: &Path, folder: &Path) -> bool {
    std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == folder)
}

/// A hook with a command, with the contract of existing scripts.
pub(crate) fn claude(event: &str, command: &str) -> HookPolicy {
    HookPolicy {
        name: "the hook".to_owned(),
        point: hook_point_of(event).expect("an event"),
        matcher: None,
        condition: None,
        program: Some(HookProgram::Shell { command: command.to_owned() }),
        contract: HookContract::Claude,
        timeout_ms: 20_000,
        on_failure: OnFailure::ContinueIfRun,
        may_remind: true,
        setup: HookSetup::default(),
    }
}

/// The same with Provost's own contract.
pub(crate) fn own(event: &str, command: &str) -> HookPolicy {
    HookPolicy { contract: HookContract::Provost, on_failure: OnFailure::Continue, ..claude(event, command) }
}

/// An answer as one or more lines.
pub(crate) fn shown(answer: &HookAnswer) -> String {
    let mut lines = vec![match &answer.decision {
        HookDecision::Continue => "continue".to_owned(),
        HookDecision::Allow => "allow".to_owned(),
        HookDecision::Ask(why) => format!("ask: {why}"),
        HookDecision::Deny(why) => format!("deny: {why}"),
        HookDecision::Pause(why) => format!("pause: {why}"),
        HookDecision::Abort(why) => format!("abort: {why}"),
        HookDecision::Failed(why) => format!("failed: {why}"),
        HookDecision::Broken(why) => format!("broken: {why}"),
        HookDecision::TimedOut(_) => format!("no answer: {}", answer.decision.failure().unwrap_or_default()),
    }];
    lines.extend(answer.replacement.iter().map(|input| format!("replace: {}", input.text())));
    lines.extend(answer.reminders.iter().map(|body| format!("remind: {body}")));
    lines.extend(answer.note.iter().map(|note| format!("note: {note}")));
    lines.join(" | ").replace('\n', "\\n")
}

/// Asks each script and compares the result with the expected one; all differences are shown.
pub(crate) async fn check(cases: &[(&str, &str, &str)], hook: fn(&str, &str) -> HookPolicy) {
    let mut wrong = Vec::new();
    for (event, script, expected) in cases {
        let stage = Stage::new();
        let answer = shown(&stage.ask(&hook(event, script)).await);
        if answer != *expected {
            wrong.push(format!("{event}: {script}\n  is       {answer}\n  expected {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A tool as it is called everywhere.
fn identity(name: &str) -> ToolIdentity {
    let several = |aliases: &[&str], subject| ToolIdentity {
        aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
        subject,
        ..ToolIdentity::unknown(name)
    };
    match name {
        "terminal" => {
            let fields = ["command", "text"].map(str::to_owned).to_vec();
            return several(&[], ToolSubject::Typed { fields, keys: None, submit: None });
        }
        "apply_patch" => {
            let aliases = ["ApplyPatch", "Edit", "MultiEdit", "Write", "edit_file", "write_file"];
            return several(&aliases, ToolSubject::Patch { field: "input".to_owned() });
        }
        _ => {}
    }
    let alias = match name {
        "shell" => "Bash",
        "read_file" => "Read",
        "write_file" => "Write",
        "edit_file" => "Edit",
        "search" => "Grep",
        "list_dir" => "Glob",
        "update_plan" => "TodoWrite",
        "spawn_agent" | "Agent" => {
            let aliases = ["Agent", "Task"].map(str::to_owned).to_vec();
            return ToolIdentity { aliases, ..ToolIdentity::unknown(name) };
        }
        "apply_patch" => {
            let aliases = ["ApplyPatch", "Edit", "MultiEdit", "Write"].map(str::to_owned).to_vec();
            let subject = ToolSubject::Patch { field: "input".to_owned() };
            return ToolIdentity { name: name.to_owned(), aliases, subject };
        }
        _ => return ToolIdentity::unknown(name),
    };
    let subject = match name {
        "shell" => ToolSubject::command("command"),
        "read_file" | "search" | "list_dir" => ToolSubject::read_path("path"),
        "write_file" | "edit_file" => ToolSubject::written_path("path"),
        _ => ToolSubject::Opaque,
    };
    ToolIdentity { name: name.to_owned(), aliases: vec![alias.to_owned()], subject }
}
