//! Logs of runs, as runs write them, and helpers that pass them to an observer.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use provost_event::*;
use provost_harness::{ObserverOptions, Observers};
use provost_telemetry::Telemetry;

pub(crate) const RUN: &str = "k3x9m2p7q4ab";

pub(crate) fn run() -> RunId {
    RUN.parse().expect("a run id")
}

pub(crate) fn root() -> SessionId {
    SessionId::root(run())
}

/// The logs of one run, growing.
#[derive(Default)]
pub(crate) struct Log {
    heads: HashMap<ActorKey, Seq>,
    records: Vec<Record>,
}

impl Log {
    pub(crate) fn run(&mut self, at: u64, entry: impl Into<Entry>) -> &mut Self {
        self.add(run().into(), at, entry.into())
    }

    pub(crate) fn root(&mut self, at: u64, entry: impl Into<Entry>) -> &mut Self {
        self.add(root().into(), at, entry.into())
    }

    pub(crate) fn agent(&mut self, agent: u32, at: u64, entry: impl Into<Entry>) -> &mut Self {
        self.add(SessionId { run: run(), agent }.into(), at, entry.into())
    }

    fn add(&mut self, actor: ActorKey, at: u64, entry: Entry) -> &mut Self {
        let head = self.heads.entry(actor).or_default();
        *head = head.next();
        self.records.push(Record {
            actor,
            seq: *head,
            at: Timestamp(at),
            elapsed: Elapsed::default(),
            entry,
        });
        self
    }

    /// Takes the entries since the last call.
    pub(crate) fn take(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }
}

/// Passes `records` to an observer as a harness does, to the end.
pub(crate) fn observe(telemetry: &Arc<Telemetry>, records: Vec<Record>) {
    observe_knowing(telemetry, &[], records);
}

/// The same for a process that resumes a run, and knows its agents' positions from the first entries of their
/// logs.
pub(crate) fn observe_knowing(telemetry: &Arc<Telemetry>, first: &[Record], records: Vec<Record>) {
    let telemetry = Arc::clone(telemetry);
    // All of it is told faster than a busy machine may take it in.
    let options = ObserverOptions { queue_max: 1 << 20, ..ObserverOptions::default() };
    let observers = Observers::new().with("otel", options, move |run| telemetry.observer(run)).of_run(run());
    first.iter().for_each(|first| observers.learn(first));
    for record in records {
        observers.record(&Arc::new(record));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(observers.finish());
    let report = observers.reports().pop().expect("a report");
    assert_eq!((report.panicked, report.lost), (0, 0), "{report:?}");
}

/// A run from start to end: a call that was rate limited, two tool calls of which one isn't allowed, a stop hook
/// that objects, and an end.
pub(crate) fn whole_run() -> Vec<Record> {
    let mut log = Log::default();
    begin(&mut log);
    work(&mut log);
    log.root(6_000, completed()).run(6_001, completed());
    log.take()
}

pub(crate) fn completed() -> Ended {
    Ended { outcome: Outcome::UNVERIFIED }
}

pub(crate) fn begin(log: &mut Log) {
    let policy = policy();
    let agent = policy.agent.clone();
    let started = SessionStarted {
        goal: "mend the roof".to_owned(),
        images: Vec::new(),
        policy: agent,
        parent: None,
        depth: 0,
        call: None,
        agent: None,
        worktree: None,
        fork: None,
        reminder_id: String::new(),
    };
    log.run(1_000, RunStarted { goal: "mend the roof".to_owned(), policy, baseline: None })
        .root(1_001, started);
}

pub(crate) fn work(log: &mut Log) {
    let limited = RetryCause::Failed {
        class: ErrorClass::RateLimited,
        message: "slow down, roofer".to_owned(),
        status: Some(429),
        request_id: None,
    };
    let nothing = Usage { input_tokens: 7, ..Usage::default() };
    let usage = Usage {
        input_tokens: 100,
        output_tokens: 20,
        cache_read_tokens: 30,
        cache_write_tokens: 5,
        reasoning_tokens: 4,
        certainty: provost_event::Certainty::Reported,
    };
    log.root(1_010, called(1, 1))
        .root(1_500, Retry { delay_ms: 500, ..Retry::at_once(1, limited, nothing) })
        .run(1_500, charged(1, nothing, 11))
        .root(2_000, called(2, 2))
        .root(
            3_000,
            answer(2, StopReason::ToolUse, vec![call("c1", "shell"), call("c2", "write_file")], usage),
        )
        .run(3_000, charged(2, usage, 2_500))
        .root(3_010, permission("c2"))
        .root(3_020, asked("c1"))
        .root(3_100, allowed(10))
        .root(3_100, tool_started("c1", "shell"))
        .root(4_100, tool_finished("c1", "shell", ToolStatus::TimedOut))
        .root(4_100, tool_finished("c2", "write_file", ToolStatus::Denied))
        .root(4_101, TurnEnded { turn: 1, tool_calls: 2 })
        .root(4_150, shortened())
        .root(4_200, called(3, 1))
        .root(
            5_000,
            answer(3, StopReason::EndTurn, vec![Block::Text("the roof is mended".to_owned())], usage),
        )
        .run(5_000, charged(3, usage, 2_500))
        .root(5_500, objections());
}

pub(crate) fn policy() -> RunPolicy {
    let agent = AgentPolicy {
        system_prompt: "You are a roofer.".to_owned(),
        ..AgentPolicy::new(ModelPolicy::new("anthropic/roofer-1", 1000), PathBuf::from("/somewhere"))
    };
    RunPolicy { spawn: provost_event::SpawnBudget::default(), ..RunPolicy::new(agent) }
}

pub(crate) fn called(call: u32, attempt: u32) -> ModelCalled {
    ModelCalled {
        turn: 1,
        call,
        attempt,
        purpose: provost_event::Purpose::Turn,
        output_tokens_max: 1000,
        time_left: None,
    }
}

pub(crate) fn answer(call: u32, stop: StopReason, content: Vec<Block>, usage: Usage) -> AssistantMessage {
    AssistantMessage {
        turn: 1,
        call,
        content,
        usage,
        cost: Some(MicroDollars(2_500)),
        model: "roofer-1-20260101".to_owned(),
        stop,
    }
}

pub(crate) fn charged(call: u32, usage: Usage, cost: u64) -> BudgetCharged {
    let model = "anthropic/roofer-1".to_owned();
    BudgetCharged {
        session: root(),
        call,
        turn: 1,
        model,
        usage,
        cost: Some(MicroDollars(cost)),
        purpose: provost_event::Purpose::Turn,
    }
}

pub(crate) fn call(id: &str, tool: &str) -> Block {
    Block::ToolCall(ToolCall { id: id.into(), name: tool.to_owned(), input: input(), malformed: None })
}

pub(crate) fn input() -> Json {
    Json::parse(r#"{"command":"nail the tiles"}"#.to_owned()).expect("JSON")
}

pub(crate) fn tool_started(call: &str, tool: &str) -> ToolStarted {
    ToolStarted {
        call: call.into(),
        tool: tool.to_owned(),
        input: input(),
        again: false,
        outside: false,
        replaced_by: None,
    }
}

pub(crate) fn tool_finished(call: &str, tool: &str, status: ToolStatus) -> ToolFinished {
    ToolFinished {
        plan: None,
        facts: provost_event::CallFacts::default(),
        call: call.into(),
        tool: tool.to_owned(),
        status,
        output: "tiles are slippery".to_owned(),
        images: Vec::new(),
        whole: None,
        duration_ms: 990,
        memory: None,
    }
}

fn permission(call: &str) -> PermissionDecided {
    let why = "roofs are not to be written on".to_owned();
    PermissionDecided {
        call: call.into(),
        permission: Permission::Deny,
        rule: Some("deny write_file".to_owned()),
        by_default: false,
        leaves_sandbox: false,
        why,
    }
}

fn asked(call: &str) -> ApprovalRequested {
    ApprovalRequested {
        call: call.into(),
        tool: "shell".to_owned(),
        input: input(),
        why: "a roof is high".to_owned(),
        pattern: "shell(nail *)".to_owned(),
        due: Timestamp(9_000),
        scripts: Vec::new(),
        unnamed: false,
        outside: None,
        question: None,
    }
}

fn allowed(asked: u64) -> ApprovalResolved {
    let answer = ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None };
    ApprovalResolved { asked: Seq(asked), answer, by: "alice".to_owned() }
}

fn shortened() -> Compacted {
    Compacted {
        how: CompactionKind::Emergency,
        through: Seq(4),
        summary: "roofs and tiles".to_owned(),
        tokens_before: 900,
        tokens_after: 300,
        ..Compacted::new(CompactionKind::Emergency)
    }
}

/// The beginning of a call whose answer isn't part of the conversation.
pub(crate) fn called_aside(call: u32, purpose: Purpose) -> ModelCalled {
    ModelCalled { turn: 2, purpose, ..called(call, 1) }
}

/// Its usage and cost.
pub(crate) fn aside(call: u32, model: &str) -> AsideCall {
    let usage = Usage { input_tokens: 500, output_tokens: 50, ..Usage::default() };
    AsideCall { call, usage, cost: Some(MicroDollars(4_000)), model: model.to_owned() }
}

/// A run with a summary that is used, one that isn't, and a suspension at a limit with this final summary.
pub(crate) fn long_run(wrapped: FinalSummaryFinished) -> Vec<Record> {
    let mut log = Log::default();
    begin(&mut log);
    let summed_up = Compacted {
        through: Seq(4),
        summary: "roofs and tiles".to_owned(),
        call: Some(aside(1, "roofer-1-20260101")),
        tokens_before: 900,
        tokens_after: 300,
        ..Compacted::new(CompactionKind::Summary)
    };
    let why = "it speaks of cellars".to_owned();
    let usage = aside(2, "").usage;
    let useless = Retry::at_once(2, RetryCause::UselessSummary { why }, usage);
    let turn = Usage { input_tokens: 10, output_tokens: 2, ..Usage::default() };
    let limit = Exhausted::new(Dimension::Turns, 2, 2);
    let outcome = Outcome::BudgetExhausted(limit);
    log.root(1_100, tool_finished("c1", "shell", ToolStatus::Ok))
        .root(2_000, called_aside(1, Purpose::Summary))
        .run(2_500, charged(1, usage, 4_000))
        .root(2_500, summed_up)
        .root(3_000, called_aside(2, Purpose::Summary))
        .root(3_500, useless)
        .run(3_500, charged(2, usage, 4_000))
        .root(3_501, shortened())
        .root(4_000, called(3, 1))
        .root(4_500, answer(3, StopReason::ToolUse, vec![call("c1", "shell")], turn))
        .run(4_500, charged(3, turn, 2_500))
        .root(5_000, StopRequested { agent: None, outcome: outcome.clone(), for_child: false });
    if let Some(call) = &wrapped.call {
        log.root(5_001, called_aside(4, Purpose::FinalSummary)).run(5_500, charged(4, call.usage, 4_000));
    }
    log.root(5_500, wrapped).root(5_501, Paused { outcome: outcome.clone() }).run(5_501, Paused { outcome });
    log.take()
}

fn objections() -> StopVerdicts {
    let report = |name: &str, verdict: StopHookVerdict| HookReport::new(name, HookPoint::Stop, verdict);
    let reports = vec![
        report("rain", StopHookVerdict::Block("it still drips".to_owned())),
        report("sun", StopHookVerdict::Error("too hot".to_owned())),
        report("snow", StopHookVerdict::Allow),
    ];
    StopVerdicts { turn: 1, reports, evidence: String::new() }
}
