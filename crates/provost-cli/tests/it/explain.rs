//! The rules that a run consulted, read from its logs.

use expect_test::{Expect, expect};
use provost_event::{
    Access, ActorKey, AgentPolicy, ApprovalAnswer, ApprovalRequested, ApprovalResolved, ApprovalScope,
    AssistantMessage, Block, Budget, BudgetCharged, BudgetExhausted, BudgetReserved, CallId, Dimension,
    Elapsed, Ended, Entry, ErrorClass, Exhausted, HookContract, HookDecision, HookPoint, HookPolicy,
    HookProgram, HookReport, HookSetup, HookTrigger, HooksAsked, HooksDecided, ItemKind, Json, Limits,
    MicroDollars, ModelCalled, ModelPolicy, ModelTrouble, OnFailure, Origin, Outcome, PauseReason, Paused,
    Permission, PermissionDecided, PermissionPolicy, Price, Purpose, Record, ResumeCause, Resumed, Retry,
    RetryCause, RunId, RunPolicy, RunStarted, Seq, SessionId, SessionStarted, StopHookPolicy,
    StopHookVerdict, StopReason, StopRequested, StopVerdicts, SystemItem, Timestamp, ToolCall, ToolFinished,
    ToolSpec, ToolStarted, ToolStatus, ToolSubject, TurnEnded, Usage,
};
use serde_json::Value;

use crate::support::{Scene, json, line_in, sealed};

const RUN: &str = "00000000000a";

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        input_schema: Json::empty_object(),
        access: Access::Anything,
        subject: ToolSubject::Opaque,
        aliases: if name == "shell" { vec!["Bash".to_owned()] } else { Vec::new() },
        forms: Vec::new(),
        freeform: None,
        summary_field: None,
        idempotent: false,
        timeout_ms: 1_000,
        output_bytes_max: 1_000,
    }
}

fn hook(name: &str, point: HookPoint) -> HookPolicy {
    HookPolicy {
        name: name.to_owned(),
        point,
        matcher: None,
        condition: None,
        program: Some(HookProgram::Shell { command: "true".to_owned() }),
        contract: HookContract::Provost,
        timeout_ms: 1_000,
        on_failure: OnFailure::default_at(point),
        may_remind: false,
        setup: HookSetup::default(),
    }
}

fn for_tools(matcher: &str, hook: HookPolicy) -> HookPolicy {
    HookPolicy { matcher: Some(matcher.to_owned()), ..hook }
}

/// A policy without hooks, stop hooks and permissions.
fn plain() -> RunPolicy {
    let free = Price {
        input: MicroDollars(1_000_000),
        output: MicroDollars(1_000_000),
        cache_read: MicroDollars(0),
        cache_write: MicroDollars(0),
        long: None,
    };
    let agent = AgentPolicy {
        tools: ["read_file", "shell", "write_file"].map(tool).to_vec(),
        ..AgentPolicy::new(
            ModelPolicy { price: Some(free), ..ModelPolicy::new("ours/test", 1_000) },
            "/w".into(),
        )
    };
    RunPolicy { spawn: provost_event::SpawnBudget::default(), ..RunPolicy::new(agent) }
}

/// A run's logs as in an export, an entry a second.
struct Log {
    run: RunId,
    of_run: Vec<Record>,
    of_agent: Vec<Record>,
    now: u64,
    calls: u32,
}

impl Log {
    fn new(policy: RunPolicy) -> Self {
        let run = RUN.parse().unwrap();
        let (of_run, of_agent) = (Vec::new(), Vec::new());
        let mut log = Self { run, of_run, of_agent, now: 1_000_000, calls: 0 };
        log.run(RunStarted { goal: "the goal".to_owned(), policy: policy.clone(), baseline: None });
        let (goal, images, policy) = ("the goal".to_owned(), Vec::new(), policy.agent);
        log.agent(SessionStarted {
            goal,
            images,
            policy,
            parent: None,
            depth: 0,
            call: None,
            agent: None,
            worktree: None,
            fork: None,
            reminder_id: String::new(),
        });
        log
    }

    fn session(&self) -> SessionId {
        SessionId::root(self.run)
    }

    fn run(&mut self, entry: impl Into<Entry>) -> &mut Self {
        self.now += 1_000;
        let (seq, at) = (Seq(self.of_run.len() as u64 + 1), Timestamp(self.now));
        self.of_run.push(Record {
            actor: ActorKey::Run(self.run),
            seq,
            at,
            elapsed: Elapsed(at.0),
            entry: entry.into(),
        });
        self
    }

    fn agent(&mut self, entry: impl Into<Entry>) -> Seq {
        self.now += 1_000;
        let (seq, at) = (Seq(self.of_agent.len() as u64 + 1), Timestamp(self.now));
        self.of_agent.push(Record {
            actor: self.session().into(),
            seq,
            at,
            elapsed: Elapsed(at.0),
            entry: entry.into(),
        });
        seq
    }

    /// A model call in this turn, with this many tokens for the answer, that took 100.
    fn called(&mut self, turn: u32, attempt: u32, output_tokens_max: u32) {
        self.calls += 1;
        let (session, call) = (self.session(), self.calls);
        let tokens = u64::from(output_tokens_max) + 200;
        let cost = MicroDollars(tokens);
        self.run(BudgetReserved {
            turn: 0,
            estimated_tokens: 0,
            purpose: provost_event::Purpose::Turn,
            session,
            call,
            tokens,
            cost,
            output_tokens_max,
        });
        self.agent(ModelCalled {
            turn,
            call,
            attempt,
            purpose: Purpose::Turn,
            output_tokens_max,
            time_left: None,
        });
        let usage = Usage { input_tokens: 100, ..Usage::default() };
        let cost = Some(MicroDollars(100));
        self.run(BudgetCharged {
            session,
            call,
            turn,
            model: "ours/test".to_owned(),
            usage,
            cost,
            purpose: Purpose::Turn,
        });
    }

    fn says(&mut self, turn: u32, stop: StopReason, content: Vec<Block>) {
        self.called(turn, 1, 1_000);
        let (usage, model) = (Usage::default(), "m".to_owned());
        self.agent(AssistantMessage { turn, call: self.calls, content, usage, cost: None, model, stop });
    }

    /// An answer that asks for these calls: id, tool, arguments.
    fn asks_for(&mut self, turn: u32, calls: &[(&str, &str, &str)]) {
        let call = |(id, name, input): &(&str, &str, &str)| {
            let input = Json::parse((*input).to_owned()).unwrap();
            Block::ToolCall(ToolCall {
                id: CallId::from(*id),
                name: (*name).to_owned(),
                input,
                malformed: None,
            })
        };
        self.says(turn, StopReason::ToolUse, calls.iter().map(call).collect());
    }

    fn wants_to_stop(&mut self, turn: u32) {
        self.says(turn, StopReason::EndTurn, vec![Block::Text("done".to_owned())]);
    }

    fn hooks(&mut self, about: HookTrigger, reports: &[(&str, HookPoint, HookDecision)]) {
        let asked = self.agent(HooksAsked { about });
        let report = |(hook, point, decision): &(&str, HookPoint, HookDecision)| HookReport {
            hook: (*hook).to_owned(),
            point: *point,
            decision: decision.clone(),
            reminders: Vec::new(),
            note: None,
            replacement: None,
            duration_us: 1_500,
        };
        self.agent(HooksDecided { asked, reports: reports.iter().map(report).collect(), scripts: None });
    }

    fn permission(&mut self, call: &str, permission: Permission, rule: Option<&str>, why: &str) {
        let (call, rule, why) = (CallId::from(call), rule.map(str::to_owned), why.to_owned());
        self.agent(PermissionDecided {
            call,
            permission,
            by_default: rule.is_none() && !why.contains("unclear"),
            leaves_sandbox: false,
            rule,
            why,
        });
    }

    fn started(&mut self, call: &str, tool: &str) {
        let (call, tool, input) = (CallId::from(call), tool.to_owned(), Json::empty_object());
        self.agent(ToolStarted { call, tool, input, again: false, outside: false, replaced_by: None });
    }

    fn finished(&mut self, call: &str, tool: &str, status: ToolStatus) {
        self.agent(ToolFinished {
            plan: None,
            facts: provost_event::CallFacts::default(),
            call: CallId::from(call),
            tool: tool.to_owned(),
            status,
            output: "out".to_owned(),
            images: Vec::new(),
            whole: None,
            duration_ms: 5,
            memory: None,
        });
    }

    fn ran(&mut self, call: &str, tool: &str, status: ToolStatus) {
        self.started(call, tool);
        self.finished(call, tool, status);
    }

    fn verdicts(&mut self, turn: u32, reports: &[(&str, StopHookVerdict, u64)]) {
        let report = |(name, verdict, duration_ms): &(&str, StopHookVerdict, u64)| HookReport {
            duration_us: duration_ms * 1_000,
            ..HookReport::new(*name, HookPoint::Stop, verdict.clone())
        };
        let reports = reports.iter().map(report).collect();
        self.agent(StopVerdicts { turn, reports, evidence: String::new() });
    }

    fn turn_ended(&mut self, turn: u32, tool_calls: u32) {
        self.agent(TurnEnded { turn, tool_calls });
    }

    fn suspended(&mut self, outcome: &Outcome) {
        self.agent(Paused { outcome: outcome.clone() });
        self.run(Paused { outcome: outcome.clone() });
    }

    fn resumed(&mut self, cause: &ResumeCause, budget: Budget, turns_max: Option<u32>) {
        self.run(Resumed { cause: cause.clone(), budget, turns_max, reopens: false });
        self.agent(Resumed { cause: cause.clone(), budget: Budget::default(), turns_max, reopens: false });
    }

    fn ends(&mut self, outcome: &Outcome) {
        self.agent(Ended { outcome: outcome.clone() });
        self.run(Ended { outcome: outcome.clone() });
    }

    #[track_caller]
    fn import(&self) -> Scene {
        let scene = Scene::new();
        let records = self.of_run.iter().chain(&self.of_agent);
        let lines = records.map(|record| record.to_line().unwrap() + "\n").collect::<String>();
        scene.write("run.jsonl", &sealed(&lines));
        let imported = scene.provost(&["import", scene.path("run.jsonl").to_str().unwrap()]);
        assert_eq!(imported.status, 0, "{imported:?}");
        scene
    }

    #[track_caller]
    fn check(&self, expected: Expect) {
        expected.assert_eq(&text(&self.import()));
    }

    #[track_caller]
    fn json(&self) -> Value {
        whole(&self.import())
    }
}

#[track_caller]
fn text(scene: &Scene) -> String {
    let told = scene.provost(&["explain", "last", "--global"]);
    assert_eq!((told.status, told.stderr.as_str()), (0, ""));
    told.stdout
}

#[track_caller]
fn whole(scene: &Scene) -> Value {
    let told = scene.provost(&["explain", "last", "--global", "--json"]);
    assert_eq!((told.status, told.stderr.as_str()), (0, ""));
    json(&told.stdout)
}

/// The row of a group with this name.
#[track_caller]
fn row<'a>(rows: &'a Value, name: &str) -> &'a Value {
    let found = rows.as_array().unwrap().iter().find(|row| row["name"] == name || row["pattern"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {rows}"))
}

#[track_caller]
fn why(rows: &Value, name: &str) -> String {
    let row = row(rows, name);
    format!("{}: {}", row["say"].as_str().unwrap(), row["why"].as_str().unwrap_or_default())
}

const COMPLETED: Outcome = Outcome::UNVERIFIED;

fn asked_by_user() -> ResumeCause {
    ResumeCause::Asked { by: "a person".to_owned() }
}

/// A policy with something of everything.
fn rich_policy() -> RunPolicy {
    use HookPoint as M;
    let mut policy = plain();
    policy.budget =
        Budget { tokens: Some(1_500), money: Some(MicroDollars(5_000_000)), wall_time_ms: None, turns: None };
    policy.observers = vec!["trace.file".to_owned(), "trace.otlp".to_owned()];
    let agent = &mut policy.agent;
    let stop_hook = |name: &str| {
        let command = Some("true".to_owned());
        StopHookPolicy {
            name: name.to_owned(),
            command,
            timeout_ms: 1_000,
            on_error: provost_event::OnHookError::Ignore,
        }
    };
    agent.stop_hooks = ["tests", "lint"].map(stop_hook).to_vec();
    agent.hooks = vec![
        for_tools("shell", hook("no-force-push", M::PreToolCall)),
        for_tools("write_file", hook("second-look", M::PreToolCall)),
        for_tools("Bsh", hook("typo", M::PreToolCall)),
        hook("shorten", M::PreCompact),
        hook("farewell", M::SessionEnd),
    ];
    let patterns = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    agent.permissions = PermissionPolicy {
        allow: patterns(&["read_file", "shell(cargo *)", "write_file(./a)"]),
        ask: patterns(&["shell(git push *)"]),
        deny: patterns(&["shell(rm *)", "write_file", "no_such_tool"]),
        ..PermissionPolicy::default()
    };
    policy
}

/// A run under it.
fn rich() -> Log {
    use HookPoint as M;
    let mut log = Log::new(rich_policy());
    log.asks_for(
        1,
        &[("c1", "shell", r#"{"command":"git push"}"#), ("c2", "shell", r#"{"command":"rm -r x"}"#)],
    );
    let about = |call: &str| HookTrigger::call(CallId::from(call));
    log.hooks(about("c1"), &[("no-force-push", M::PreToolCall, HookDecision::Continue)]);
    log.permission("c1", Permission::Ask, Some("ask shell(git push *)"), "why");
    let asked = log.agent(ApprovalRequested {
        call: CallId::from("c1"),
        tool: "shell".to_owned(),
        input: Json::empty_object(),
        why: "why".to_owned(),
        pattern: "shell(git push)".to_owned(),
        due: Timestamp(9_000_000),
        scripts: Vec::new(),
        unnamed: false,
        outside: None,
        question: None,
    });
    log.now += 11_000;
    let answer =
        ApprovalAnswer::Allow { scope: ApprovalScope::Run, pattern: Some("shell(git push)".to_owned()) };
    log.agent(ApprovalResolved { asked, answer, by: "ann at a terminal".to_owned() });
    log.ran("c1", "shell", ToolStatus::Ok);
    log.hooks(about("c2"), &[("no-force-push", M::PreToolCall, HookDecision::Failed("late".to_owned()))]);
    log.finished("c2", "shell", ToolStatus::Denied);
    log.turn_ended(1, 2);
    log.asks_for(2, &[("c3", "shell", r#"{"command":"rm x"}"#), ("c4", "shell", r#"{"command":"ls"}"#)]);
    for call in ["c3", "c4"] {
        log.hooks(about(call), &[("no-force-push", M::PreToolCall, HookDecision::Continue)]);
    }
    log.permission("c3", Permission::Deny, Some("deny shell(rm *)"), "why");
    log.permission("c4", Permission::Allow, None, "calls that match no pattern are allowed");
    log.finished("c3", "shell", ToolStatus::Denied);
    log.ran("c4", "shell", ToolStatus::Ok);
    log.turn_ended(2, 2);
    log.wants_to_stop(3);
    log.verdicts(
        3,
        &[
            ("tests", StopHookVerdict::Block("one fails".to_owned()), 2_000),
            ("lint", StopHookVerdict::Error("late".to_owned()), 9_000),
        ],
    );
    log.turn_ended(3, 0);
    let exhausted = Exhausted::new(Dimension::Tokens, 300, 1_500);
    let session = log.session();
    log.run(BudgetExhausted { session, of: None, exhausted });
    log.suspended(&Outcome::BudgetExhausted(exhausted));
    log.resumed(&asked_by_user(), Budget { tokens: Some(9_000), ..Budget::default() }, None);
    log.wants_to_stop(4);
    log.verdicts(4, &[("tests", StopHookVerdict::Allow, 3_000), ("lint", StopHookVerdict::Allow, 1_000)]);
    log.turn_ended(4, 0);
    log.agent(StopRequested { agent: None, outcome: COMPLETED, for_child: false });
    log.hooks(
        HookTrigger::Closing { outcome: COMPLETED },
        &[("farewell", M::SessionEnd, HookDecision::Continue)],
    );
    log.ends(&COMPLETED);
    log
}

#[test]
fn everything_that_is_configured_has_a_row_and_what_had_no_say_a_mark_and_a_reason() {
    let scene = rich().import();
    let line = |delivered: u64, lost: u64| {
        format!(
            r#"{{"observer":"trace.file","at":1,"state":"finished","delivered":{delivered},"lost":{lost},"waiting":0,"failed":1,"panicked":0,"hung":0}}"#
        )
    };
    scene
        .write(&format!("state/observers/{RUN}.jsonl"), &format!("{}\n{}\n{{\"obs", line(40, 0), line(9, 2)));
    expect![[r#"
        run     00000000000a
        status  completed
        goal    the goal
        as of   entry 13 of the run, 40 of agent 0 · 1970-01-01 00:17:44Z

        limits of the run
           LIMIT       SET TO  REACHED  CONSULTED  DECIDED
           tokens       9,000      400          5        1  1,500 at first; at most 1,200 set aside, refused 1
           money        $5.00  $0.0004          4        0  at most $0.0012 set aside
           wall time  not set    1m02s
           turns      not set        4

        limits of the agent
           LIMIT                 SET TO  REACHED  CONSULTED  DECIDED
           turns                    300        4          4        0
        -  model patience secs      900        1          0        0  no model call failed
        -  empty answers              2        0          0        0  no answer was empty
        -  continuations              3        0          0        0  no answer was cut off
           repeated call notice       3        1          2        0
           repeated call             10        1          2        0
           failed turns notice        5        0          2        0
           failed turns              12        0          2        0
        -  interruptions              3        0          0        0  it was never interrupted
        -  stop blocks                8        0          0        0  no stop hook said no

        stop hooks
           STOP HOOK  CONSULTED   TIME  LONGEST
           tests              2   5.0s     3.0s  allowed 1, blocked 1
           lint               2  10.0s     9.0s  allowed 1, gave no answer 1

        hooks
           HOOK           POINT          CONSULTED  SKIPPED  TIME  LONGEST
           no-force-push  pre_tool_call          4        0   6ms      1ms  continued 3, gave no answer 1
        -  second-look    pre_tool_call          0        4                 no write_file call was made
        !  typo           pre_tool_call          0        4                 can't be reached: the agent has no tool `Bsh`
        -  shorten        pre_compact            0        0                 the conversation was never shortened
           farewell       session_end            1        0   1ms      1ms  continued 1

        permissions
           KIND   PATTERN            CONSULTED  DECIDED
           deny   shell(rm *)                3        1
        -  deny   write_file                 0        0  no write_file call was made
        !  deny   no_such_tool               0        0  can't be reached: the agent has no such tool
           ask    shell(git push *)          3        1
        -  allow  read_file                  0        0  no read_file call was made
           allow  shell(cargo *)             3        0
        !  allow  write_file(./a)            0        0  can't be reached: `deny write_file` comes first
           allow  all other calls            3        1
           agreed to for the run by ann at a terminal: shell(git push); decided since: 0

        approvals
           asked 1: allowed 1 (for the run 1)
           answered by ann at a terminal 1; after 12.0s at most

        observers
           OBSERVER    SEGMENTS  TOLD  LOST
           trace.file         2    49     2  calls failed 2
        ?  trace.otlp         0     0     0  not reported: the process was killed, or worked on another machine

        - 12 of 29 were never consulted: 5 limits, 3 hooks, 4 permissions
        ! 3 of them can't be reached
        ? of 1 observer nothing is reported
    "#]].assert_eq(&text(&scene));
}

#[test]
fn json_has_the_exact_numbers() {
    let whole = rich().json();
    assert_eq!(
        (&whole["run"], &whole["status"], &whole["entry"]),
        (&json("\"00000000000a\""), &json("\"completed\""), &13.into())
    );
    expect![[r#"{"name":"tokens","unit":"tokens","set_to":9000,"set_to_at_first":1500,"most":400,"consulted":5,"decided":1,"reserved_most":1200,"lowered":0,"refused":1,"say":"consulted"}"#]].assert_eq(&row(&whole["limits"], "tokens").to_string());
    let agent = &whole["agents"][0];
    expect![[
        r#"{"name":"turns","unit":"times","set_to":300,"most":4,"consulted":4,"decided":0,"say":"consulted"}"#
    ]]
    .assert_eq(&row(&agent["limits"], "turns").to_string());
    expect![[r#"{"name":"lint","consulted":2,"allowed":1,"blocked":0,"halted":0,"errors":1,"broken":0,"timed_out":0,"total_us":10000000,"longest_us":9000000,"say":"consulted"}"#]].assert_eq(&row(&agent["stop_hooks"], "lint").to_string());
    expect![[r#"{"name":"no-force-push","point":"pre_tool_call","matcher":"shell","consulted":4,"continued":3,"allowed":0,"asked":0,"denied":0,"paused":0,"aborted":0,"failed":1,"replaced":0,"reminders":0,"not_meant":0,"decided_before":0,"dropped":0,"total_us":6000,"longest_us":1500,"say":"consulted"}"#]].assert_eq(&row(&agent["hooks"], "no-force-push").to_string());
    expect![[r#"{"kind":"deny","pattern":"shell(rm *)","consulted":3,"decided":1,"allowed":0,"asked":0,"denied":1,"say":"consulted"}"#]].assert_eq(&row(&agent["permissions"]["patterns"], "shell(rm *)").to_string());
    expect![[r#"[{"pattern":"shell(git push)","scope":"run","by":"ann at a terminal","decided":0}]"#]]
        .assert_eq(&agent["permissions"]["grants"].to_string());
    expect![[r#"{"asked":1,"allowed_once":0,"allowed_for_run":1,"allowed_always":0,"allowed_with_another":0,"denied":0,"timed_out":0,"withdrawn":0,"suspended":0,"open":0,"total_us":12000000,"longest_us":12000000,"by":{"ann at a terminal":1}}"#]].assert_eq(&agent["approvals"].to_string());
    expect![[r#"{"name":"trace.file","segments":0,"delivered":0,"lost":0,"failed":0,"panicked":0,"hung":0,"say":"not_reported","why":"not reported: the process was killed, or worked on another machine"}"#]].assert_eq(&whole["observers"][0].to_string());
}

#[test]
fn a_run_that_has_just_begun_tells_that_nothing_was_consulted_yet() {
    let mut policy = plain();
    policy.agent.hooks = vec![hook("greet", HookPoint::SessionStart)];
    Log::new(policy).check(expect![[r#"
        run     00000000000a
        status  interrupted
        goal    the goal
        as of   entry 1 of the run, 1 of agent 0 · 1970-01-01 00:16:41Z

        limits of the run
           LIMIT       SET TO  REACHED  CONSULTED  DECIDED
           tokens     not set        0
           money      not set    $0.00
           wall time  not set      0ms
           turns      not set        0

        limits of the agent
           LIMIT                 SET TO  REACHED  CONSULTED  DECIDED
        -  turns                    300        0          0        0  no model was called
        -  model patience secs      900        0          0        0  no model call failed
        -  empty answers              2        0          0        0  no answer was empty
        -  continuations              3        0          0        0  no answer was cut off
        -  repeated call notice       3        0          0        0  no tool call was made
        -  repeated call             10        0          0        0  no tool call was made
        -  failed turns notice        5        0          0        0  no tool call was made
        -  failed turns              12        0          0        0  no tool call was made
        -  interruptions              3        0          0        0  it was never interrupted
        -  stop blocks                8        0          0        0  there is no stop hook

        hooks
           HOOK   POINT          CONSULTED  SKIPPED  TIME  LONGEST
        -  greet  session_start          0        0                 the run never came to this point

        permissions
           everything is allowed without asking

        not configured: stop hooks

        - 11 of 11 were never consulted: 10 limits, 1 hook
    "#]]);
}

fn no_answer() -> ModelTrouble {
    ModelTrouble {
        model: "m".to_owned(),
        class: ErrorClass::NoAnswer,
        message: "the model gave an empty answer 2 times in a row".to_owned(),
        hint: String::new(),
        tried: Vec::new(),
    }
}

#[test]
fn each_counter_tells_how_far_it_went_and_when_it_decided() {
    let mut policy = plain();
    policy.agent.limits =
        Limits { turns_max: 3, empty_answers_max: 1, continuations_max: 1, ..Limits::default() };
    let mut log = Log::new(policy);
    let retry = |log: &mut Log, cause: RetryCause| {
        let call = log.calls;
        log.agent(Retry::at_once(call, cause, Usage::default()));
    };
    let item = |log: &mut Log, item: ItemKind| {
        log.agent(SystemItem { item, body: String::new(), origin: Origin::Engine, rules: Vec::new() });
    };
    let failed = || RetryCause::Failed {
        class: ErrorClass::Server,
        message: String::new(),
        status: None,
        request_id: None,
    };
    for attempt in 1..=2 {
        log.called(1, attempt, 1_000);
        retry(&mut log, failed());
    }
    log.called(1, 3, 1_000);
    retry(&mut log, RetryCause::EmptyAnswer);
    // Cut off twice; goes on once.
    log.says(1, StopReason::OutputCap, vec![Block::Text("a".to_owned())]);
    item(&mut log, ItemKind::Continue);
    log.says(1, StopReason::OutputCap, vec![Block::Text("b".to_owned())]);
    log.turn_ended(1, 0);
    // The same three times in one turn, which counts once, and all of it fails.
    log.asks_for(2, &[("c1", "shell", "{}"), ("c2", "shell", "{}"), ("c3", "shell", "{}")]);
    for call in ["c1", "c2", "c3"] {
        log.ran(call, "shell", ToolStatus::Error);
    }
    item(&mut log, ItemKind::RepeatedCallNotice);
    log.turn_ended(2, 3);
    log.resumed(&ResumeCause::Interrupted, Budget::default(), None);
    log.wants_to_stop(3);
    log.turn_ended(3, 0);
    let exhausted = Exhausted::new(Dimension::Turns, 3, 3);
    log.suspended(&Outcome::BudgetExhausted(exhausted));
    log.resumed(&asked_by_user(), Budget::default(), Some(10));
    log.called(4, 1, 1_000);
    retry(&mut log, RetryCause::EmptyAnswer);
    log.called(4, 1, 1_000);
    log.suspended(&Outcome::Paused { why: PauseReason::Model(Box::new(no_answer())) });
    let whole = log.json();
    let told = |row: &Value| {
        let (name, first) = (row["name"].as_str().unwrap(), &row["set_to_at_first"]);
        format!(
            "{name}: {} of {} ({first}), {} {}\n",
            row["most"], row["set_to"], row["consulted"], row["decided"]
        )
    };
    let rows = whole["agents"][0]["limits"].as_array().unwrap();
    expect![[r#"
        turns: 4 of 10 (3), 10 1
        model_patience_secs: 3 of 900 (null), 2 0
        empty_answers: 1 of 1 (null), 3 1
        continuations: 1 of 1 (null), 2 1
        repeated_call_notice: 1 of 3 (null), 1 1
        repeated_call: 1 of 10 (null), 1 0
        failed_turns_notice: 1 of 5 (null), 1 0
        failed_turns: 1 of 12 (null), 1 0
        interruptions: 1 of 3 (null), 1 0
        stop_blocks: 0 of 8 (null), 0 0
    "#]]
    .assert_eq(&rows.iter().map(told).collect::<String>());
}

#[test]
fn budgets_tell_which_of_them_lowered_an_answer() {
    let mut policy = plain();
    policy.budget =
        Budget { tokens: Some(1_000), money: Some(MicroDollars(800)), wall_time_ms: None, turns: None };
    let mut log = Log::new(policy);
    // 1 000 tokens, less 200 for the input: 800 are left; of the money, 600.
    log.called(1, 1, 600);
    log.resumed(&asked_by_user(), Budget { money: Some(MicroDollars(9_000)), ..Budget::default() }, None);
    // 100 of the 1 000 are used up.
    log.called(1, 1, 700);
    let whole = log.json();
    let lowered = |name| row(&whole["limits"], name)["lowered"].clone();
    assert_eq!((lowered("tokens"), lowered("money")), (1.into(), 1.into()));
    assert_eq!(row(&whole["limits"], "tokens")["reserved_most"], 900);
    assert_eq!(row(&whole["limits"], "money")["set_to_at_first"], 800);
}

#[test]
fn money_of_a_model_without_a_price_cant_be_reached() {
    let mut policy = plain();
    policy.budget.money = Some(MicroDollars(1));
    policy.agent.model.price = None;
    let whole = Log::new(policy).json();
    assert_eq!(
        why(&whole["limits"], "money"),
        "unreachable: can't be reached: the price of the model isn't known"
    );
    assert_eq!(why(&whole["limits"], "tokens"), "not_set: ");
}

#[test]
fn a_hook_that_wasnt_asked_tells_why() {
    use HookPoint as M;
    let mut policy = plain();
    let conditional =
        |pattern: &str, hook: HookPolicy| HookPolicy { condition: Some(pattern.to_owned()), ..hook };
    policy.agent.hooks = vec![
        hook("first", M::PreToolCall),
        hook("second", M::PreToolCall),
        for_tools("write_file", hook("writes", M::PreToolCall)),
        for_tools("wr.*", hook("expression", M::PostToolCall)),
        conditional("Bash(git *)", hook("conditional", M::PostToolCall)),
        conditional("spawn_agent", hook("no such tool", M::PostToolCall)),
        hook("failure", M::PostToolFailure),
        hook("success", M::PostToolSuccess),
        hook("consent", M::Approval),
        hook("wish", M::TurnEnd),
        hook("stop", M::Stop),
        hook("compacted", M::PostCompact),
        hook("abort", M::Abort),
        hook("failed", M::StopFailure),
        hook("end", M::SessionEnd),
        hook("session", M::SessionStart),
    ];
    let mut log = Log::new(policy);
    log.asks_for(1, &[("c1", "shell", "{}"), ("c2", "shell", "{}")]);
    let denies = [("first", M::PreToolCall, HookDecision::Deny("no".to_owned()))];
    log.hooks(HookTrigger::call(CallId::from("c1")), &denies);
    log.finished("c1", "shell", ToolStatus::Denied);
    log.ran("c2", "shell", ToolStatus::Ok);
    let about = HookTrigger::Result { call: CallId::from("c2"), is_error: false };
    log.hooks(about, &[("success", M::PostToolSuccess, HookDecision::Continue)]);
    let whole = log.json();
    let rows = &whole["agents"][0]["hooks"];
    let told = |row: &Value| {
        let (name, skipped) = (row["name"].as_str().unwrap(), (&row["not_meant"], &row["decided_before"]));
        format!("{name}: {} {} {} {}\n", row["consulted"], skipped.0, skipped.1, why(rows, name))
    };
    expect![[r#"
        first: 1 0 0 consulted: 
        second: 0 0 1 never: a hook before it decided each time
        writes: 0 0 1 never: no write_file call was made
        expression: 0 1 0 never: its matcher didn't meet the one tool call
        conditional: 0 1 0 never: its `if` didn't meet the one tool call
        no such tool: 0 1 0 unreachable: can't be reached: the agent has no tool that `spawn_agent` speaks of
        failure: 0 0 0 never: no tool call that was run failed
        success: 1 0 0 consulted: 
        consent: 0 0 0 never: no tool call needed consent
        wish: 0 0 0 never: the agent never wanted to stop
        stop: 0 0 0 never: the agent never wanted to stop
        compacted: 0 0 0 never: the conversation was never shortened
        abort: 0 0 0 never: nothing stopped the agent before its work was done
        failed: 0 0 0 never: the agent didn't fail
        end: 0 0 0 never: the agent hasn't come to its end
        session: 0 0 0 never: the run never came to this point
    "#]]
    .assert_eq(&rows.as_array().unwrap().iter().map(told).collect::<String>());
}

#[test]
fn questions_that_an_interruption_dropped_are_no_fault_of_a_matcher() {
    let mut policy = plain();
    policy.agent.hooks = vec![for_tools("shell", hook("guard", HookPoint::PreToolCall))];
    let mut log = Log::new(policy);
    log.asks_for(1, &[("c1", "shell", "{}")]);
    let asked = log.agent(HooksAsked { about: HookTrigger::call(CallId::from("c1")) });
    assert_eq!(why(&log.json()["agents"][0]["hooks"], "guard"), "never: it is being asked");
    log.agent(StopRequested { agent: None, outcome: COMPLETED, for_child: false });
    log.resumed(&ResumeCause::Interrupted, Budget::default(), None);
    log.agent(HooksDecided { asked, reports: Vec::new(), scripts: None });
    let whole = log.json();
    let guard = row(&whole["agents"][0]["hooks"], "guard");
    assert_eq!((&guard["dropped"], &guard["not_meant"]), (&1.into(), &0.into()));
    assert_eq!(guard["why"], "the run was interrupted before it could be asked");
}

#[test]
fn hooks_with_claude_codes_contract_are_asked_together() {
    let claude = |name| HookPolicy { contract: HookContract::Claude, ..hook(name, HookPoint::PreToolCall) };
    let mut policy = plain();
    policy.agent.hooks = vec![
        claude("first"),
        hook("between", HookPoint::PreToolCall),
        for_tools("write_file", claude("last")),
    ];
    let mut log = Log::new(policy);
    log.asks_for(1, &[("c1", "shell", "{}")]);
    let denies = [("first", HookPoint::PreToolCall, HookDecision::Deny("no".to_owned()))];
    log.hooks(HookTrigger::call(CallId::from("c1")), &denies);
    let whole = log.json();
    let rows = &whole["agents"][0]["hooks"];
    assert_eq!(
        (&row(rows, "between")["decided_before"], &row(rows, "last")["not_meant"]),
        (&1.into(), &1.into())
    );
}

#[test]
fn a_hook_at_the_wish_to_stop_stands_among_hooks_even_if_a_stop_hook_has_its_name() {
    let mut policy = plain();
    let command = Some("true".to_owned());
    policy.agent.stop_hooks = vec![StopHookPolicy {
        name: "tests".to_owned(),
        command,
        timeout_ms: 1_000,
        on_error: provost_event::OnHookError::Ignore,
    }];
    policy.agent.hooks = vec![hook("tests", HookPoint::Stop)];
    let mut log = Log::new(policy);
    log.wants_to_stop(1);
    log.verdicts(
        1,
        &[("tests", StopHookVerdict::Allow, 1), ("tests", StopHookVerdict::Halt("enough".to_owned()), 7)],
    );
    let whole = log.json();
    let (stop_hook, hook) =
        (row(&whole["agents"][0]["stop_hooks"], "tests"), row(&whole["agents"][0]["hooks"], "tests"));
    assert_eq!((&stop_hook["allowed"], &stop_hook["halted"]), (&1.into(), &0.into()));
    assert_eq!((&hook["aborted"], &hook["longest_us"]), (&1.into(), &7_000.into()));
}

#[test]
fn patterns_that_can_never_decide_are_told_apart() {
    let mut policy = plain();
    let patterns = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    policy.agent.permissions = PermissionPolicy {
        deny: patterns(&["shell(*)", "*(secret)"]),
        ask: patterns(&["Bash(git *)", "*(git *)"]),
        allow: patterns(&["read_file", "spawn_agent", "shell(a"]),
        ..PermissionPolicy::default()
    };
    let whole = Log::new(policy.clone()).json();
    let rows = &whole["agents"][0]["permissions"]["patterns"];
    let told = |row: &Value| {
        let pattern = row["pattern"].as_str().unwrap();
        format!("{pattern} {}\n", why(rows, pattern))
    };
    expect![[r#"
        shell(*) never: no shell call was made
        *(secret) never: no tool call was made
        Bash(git *) unreachable: can't be reached: `deny shell(*)` comes first
        *(git *) never: no tool call was made
        read_file never: no read_file call was made
        spawn_agent unreachable: can't be reached: the agent has no such tool
        shell(a unreachable: can't be reached: it can't be read
    "#]]
    .assert_eq(&rows.as_array().unwrap().iter().map(told).collect::<String>());
    policy.agent.permissions =
        PermissionPolicy { allow: patterns(&["read_file"]), ..PermissionPolicy::default() };
    let whole = Log::new(policy).json();
    assert_eq!(
        why(&whole["agents"][0]["permissions"]["patterns"], "read_file"),
        "unreachable: can't be reached: everything is allowed without looking"
    );
}

#[test]
fn answers_to_questions_are_told_by_who_gave_them() {
    let mut policy = plain();
    policy.agent.permissions.ask = vec!["shell".to_owned()];
    let mut log = Log::new(policy);
    let answers = [
        (ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None }, "ann"),
        (ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None }, "ann (with #7)"),
        (ApprovalAnswer::Deny { reason: String::new() }, "bob"),
        (ApprovalAnswer::Deny { reason: "no answer in time".to_owned() }, "timeout"),
        (ApprovalAnswer::Deny { reason: String::new() }, "Provost"),
    ];
    let ask = |log: &mut Log| {
        log.agent(ApprovalRequested {
            call: CallId::from("c"),
            tool: "shell".to_owned(),
            input: Json::empty_object(),
            why: String::new(),
            pattern: "shell".to_owned(),
            due: Timestamp(9_000_000),
            scripts: Vec::new(),
            unnamed: false,
            outside: None,
            question: None,
        })
    };
    for (answer, by) in answers {
        let asked = ask(&mut log);
        log.agent(ApprovalResolved { asked, answer, by: by.to_owned() });
    }
    ask(&mut log);
    expect![[r#"{"asked":6,"allowed_once":2,"allowed_for_run":0,"allowed_always":0,"allowed_with_another":1,"denied":1,"timed_out":1,"withdrawn":1,"suspended":0,"open":1,"total_us":3000000,"longest_us":1000000,"by":{"ann":2,"bob":1}}"#]].assert_eq(&log.json()["agents"][0]["approvals"].to_string());
}

#[test]
fn long_logs_are_read_to_their_end() {
    let mut log = Log::new(plain());
    for turn in 1..=1_300 {
        log.wants_to_stop(turn);
        log.turn_ended(turn, 0);
    }
    assert_eq!(row(&log.json()["agents"][0]["limits"], "turns")["consulted"], 1_300);
}

#[test]
fn a_run_that_goes_on_is_told_as_far_as_it_is() {
    let scene = Scene::scripted(
        "
answers:
  - tools: [{ shell: { command: 'echo up > up; sleep 600' } }]
",
    );
    let running = scene.start(&["run", "go"]);
    line_in(&scene.path("work/up"));
    let whole = whole(&scene);
    assert_eq!((&whole["status"], &whole["agents"][0]["entry"]), (&json("\"running\""), &4.into()));
    running.signal("INT");
    assert_eq!(running.end().status, 130);
}

#[test]
fn a_run_that_isnt_there_is_refused_as_by_show() {
    let scene = rich().import();
    let refused = scene.provost(&["explain", "zzzz"]);
    assert_eq!((refused.status, refused.stdout.as_str()), (2, ""));
    expect![[r#"
        error: there is no run `zzzz`
        hint: `provost ps --all` lists them
    "#]]
    .assert_eq(&refused.stderr);
}

const GUARDED: &str = r#"
[[stop_hooks]]
name = "second look"
command = "test -e seen || { touch seen; exit 2; }"

[[hooks]]
name = "no-force-push"
event = "pre_tool_call"
matcher = "shell"
command = "! grep -q force || { echo 'not by force'; exit 2; }"

[[hooks]]
name = "typo"
event = "pre_tool_call"
matcher = "shel"
contract = "claude"
command = "exit 2"

[permissions]
allow = ["read_file", "shell(echo *)"]
deny = ["shell(rm *)"]
"#;

#[test]
fn what_a_real_run_consulted_is_what_its_settings_say() {
    let script = "
answers:
  - tools:
      - shell: { command: echo hello }
      - shell: { command: git push --force }
      - shell: { command: rm x }
  - text: done
  - text: really done
";
    let scene = Scene::scripted(script).with_settings(GUARDED).trusted();
    scene.write("home/.config/provost/config.toml", "[trace]\nfile = \"trace.jsonl\"\n");
    let ran = scene.provost(&["run", "go"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let whole = whole(&scene);
    let agent = &whole["agents"][0];
    let numbers = |row: &Value, names: &[&str]| {
        names.iter().map(|name| row[*name].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let guard = row(&agent["hooks"], "no-force-push");
    assert_eq!(numbers(guard, &["consulted", "continued", "denied", "not_meant"]), [3, 2, 1, 0], "{guard}");
    assert_eq!(why(&agent["hooks"], "typo"), "unreachable: can't be reached: the agent has no tool `shel`");
    let patterns = &agent["permissions"]["patterns"];
    assert_eq!(numbers(row(patterns, "shell(rm *)"), &["consulted", "decided", "denied"]), [2, 1, 1]);
    assert_eq!(numbers(row(patterns, "shell(echo *)"), &["consulted", "decided", "allowed"]), [2, 1, 1]);
    assert_eq!(why(patterns, "read_file"), "never: no read_file call was made");
    let second_look = row(&agent["stop_hooks"], "second look");
    assert_eq!(numbers(second_look, &["consulted", "blocked", "allowed"]), [2, 1, 1]);
    let trace = row(&whole["observers"], "trace.file");
    assert_eq!(
        (&trace["say"], numbers(trace, &["segments", "lost", "failed"])),
        (&"consulted".into(), vec![1, 0, 0])
    );
    assert!(trace["delivered"].as_u64().unwrap() > 0);
    std::fs::remove_dir_all(scene.path("state/observers")).unwrap();
    assert_eq!(
        why(&self::whole(&scene)["observers"], "trace.file"),
        "not_reported: not reported: the process was killed, or worked on another machine"
    );
}
