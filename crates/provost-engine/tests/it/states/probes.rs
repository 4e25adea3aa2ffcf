//! Events that are tried in every phase: commands, and results that no effect waits for.

use provost_engine::{
    Actor, Answer, Event, ExternalCallRequest, ExternalCallResult, FolderRules, ForkStart, JudgeReport,
    ReserveRequest, RunEvent, RunForkRequest, SPAWN_TOOL, SessionEvent, SessionState, SessionStatus,
    SettleNote, StopCheckResult, SubAgentReport, WorktreeResult,
};
use provost_event::{
    AgentPolicyChanged, ApprovalAnswer, Budget, CallId, ErrorClass, Exhausted, Exit, ExternalCall,
    ExternalCallEnd, Forked, Json, JudgeAnswer, MicroDollars, ModelFailure, ModelTrouble, Outcome,
    PauseReason, Priority, ProcessStamp, ProviderAwaited, Purpose, RunPolicyChanged, Seq, ServiceEvent,
    ServiceNoted, SessionFork, SessionStarted, StepMode, StopReason, SupervisorError, TerminalEvent,
    TerminalNoted, Timestamp, ToolStatus, ToolsChanged, Usage, WorktreeLeft,
};

use crate::tree_world::result;
use crate::world::{ROOT, RUN, World, policy, without_hooks};

/// An effect that no actor has opened.
const UNKNOWN: Seq = Seq(1_000_000);
/// A call, or an agent, that doesn't exist.
const UNKNOWN_CALL: u32 = 1_000_000;

fn by() -> String {
    "a person".to_owned()
}

fn cancelled() -> Outcome {
    Outcome::Cancelled { by: by() }
}

fn paused() -> Outcome {
    Outcome::Paused { why: PauseReason::Asked { by: by(), awaited: None } }
}

/// The events to try on an actor.
pub(super) fn events(actor: &Actor) -> Vec<Event> {
    match actor {
        Actor::Run(_) => run_commands().into_iter().chain(session_notes()).map(Event::from).collect(),
        Actor::Session(session) => session_events(session).into_iter().map(Event::from).collect(),
    }
}

fn run_commands() -> Vec<RunEvent> {
    let text = String::new;
    let changed = RunPolicyChanged { policy: policy(), goal: None, differences: Vec::new(), by: by() };
    let budget = Budget::default();
    vec![
        RunEvent::Start {
            goal: "g".to_owned(),
            images: Vec::new(),
            policy: Box::new(policy()),
            baseline: None,
        },
        RunEvent::Fork(Box::new(RunForkRequest {
            goal: text(),
            agent_goal: text(),
            policy: policy(),
            fork: Box::new(SessionFork {
                bases: Vec::new(),
                workspace: "/w".into(),
                reminder_id: text(),
                state: provost_event::Snapshot { layout: 0, state: Json::empty_object() },
            }),
            worktree: None,
            baseline: None,
            text: None,
            by: by(),
        })),
        RunEvent::Forked(Forked { from: ROOT, at: Seq(1), hash: text(), to: RUN }),
        RunEvent::ProcessesLeft,
        RunEvent::Reprioritize { agent: 0, priority: Priority::Critical, by: by() },
        RunEvent::TimerFired { seq: UNKNOWN },
        RunEvent::Say { agent: 0, text: "and".to_owned(), by: by() },
        RunEvent::ClearGoal { agent: 0, by: by() },
        RunEvent::Pause { agent: None, by: by() },
        RunEvent::Cancel { agent: None, by: by() },
        RunEvent::Retune { model: None, outage_max_ms: Some(1), by: by() },
        RunEvent::ChangePolicy(Box::new(changed)),
        RunEvent::ChangeTools(Box::new(without_tools())),
        RunEvent::AwaitsProvider(Box::new(ProviderAwaited {
            session: ROOT,
            trouble: ModelTrouble {
                model: "m".to_owned(),
                class: ErrorClass::Server,
                message: text(),
                hint: text(),
                tried: Vec::new(),
            },
            until: Timestamp(0),
            suspended: false,
        })),
        RunEvent::Resume { agent: None, by: by(), budget, turns_max: None, text: None },
        RunEvent::Recover { fresh: Vec::new() },
    ]
}

/// What sessions report to their run, and request from it.
fn session_notes() -> Vec<RunEvent> {
    let text = String::new;
    vec![
        RunEvent::Reserve(ReserveRequest {
            session: ROOT,
            call: UNKNOWN_CALL,
            turn: 1,
            model: "m".to_owned(),
            input_tokens: 10,
            estimated_tokens: 10,
            is_counted: false,
            output_tokens_max: 10,
            price: None,
            keeps_back: false,
            thinking_tokens: 0,
            kept_tokens: 0,
            kept_cost: MicroDollars(0),
            judges_percent: 0,
            ends_work: false,
            purpose: Purpose::Turn,
            external: None,
        }),
        RunEvent::Spawn {
            parent: ROOT,
            call: UNKNOWN,
            tool: SPAWN_TOOL.to_owned(),
            input: Json::parse(r#"{"goal":"g"}"#.to_owned()).expect("JSON"),
        },
        RunEvent::Settle(SettleNote {
            session: ROOT,
            call: UNKNOWN_CALL,
            turn: 1,
            model: text(),
            usage: Usage::default(),
            cost: None,
            purpose: Purpose::Turn,
        }),
        RunEvent::SessionStopped {
            session: provost_event::SessionId { run: RUN, agent: UNKNOWN_CALL },
            outcome: cancelled(),
            text: text(),
            for_child: false,
        },
    ]
}

fn without_tools() -> ToolsChanged {
    let removed = without_hooks().agent.tools.into_iter().map(|tool| tool.name).collect();
    ToolsChanged { added: Vec::new(), removed, by: by() }
}

fn session_events(session: &SessionState) -> Vec<SessionEvent> {
    let started = SessionStarted {
        goal: "g".to_owned(),
        images: Vec::new(),
        policy: without_hooks().agent,
        parent: None,
        depth: 0,
        call: None,
        agent: None,
        worktree: None,
        fork: None,
        reminder_id: "r".to_owned(),
    };
    let policy = session.policy().unwrap_or(&started.policy).clone();
    let changed = AgentPolicyChanged { policy, goal: None, by: by() };
    let next = match session.standing() {
        SessionStatus::BetweenTurns { next } => next,
        _ => 1,
    };
    let start = SessionEvent::Start(Box::new(started.clone()));
    // A fork begins with the state of another session.
    let fork = SessionEvent::Fork(Box::new(ForkStart { started: Box::new(started), is_told_more: false }));
    let fork = session.policy().is_some().then_some(fork);
    let commands = vec![
        start,
        SessionEvent::ClearGoal { by: by() },
        SessionEvent::Say { text: "and".to_owned(), by: by() },
        SessionEvent::Proceed { turn: next },
        SessionEvent::Stop { outcome: cancelled() },
        SessionEvent::Stop { outcome: paused() },
        SessionEvent::Retune { model: None, outage_max_ms: Some(1), by: by() },
        SessionEvent::ChangePolicy(Box::new(changed)),
        SessionEvent::ChangeTools(Box::new(without_tools())),
        SessionEvent::Resume { by: by(), turns_max: None, text: None, reopens: false },
        SessionEvent::Resume { by: by(), turns_max: None, text: Some("now".to_owned()), reopens: true },
        SessionEvent::Restart { attempt: 1, attempts_max: 2 },
        SessionEvent::YieldSlot { to: None, grace_ms: 1_000 },
        SessionEvent::SlotFree,
        SessionEvent::Recover { fresh: Vec::new() },
    ];
    commands.into_iter().chain(fork).chain(results()).chain(program_calls()).collect()
}

/// A request of a program that no run has budget for.
fn wanted() -> ExternalCallRequest {
    let call = ExternalCall {
        purpose: provost_event::Purpose::External,
        request: "r".to_owned(),
        model: "m".to_owned(),
        wire: "w".to_owned(),
        price: None,
        body: None,
    };
    ExternalCallRequest { call, input_tokens: 10, output_tokens_max: 10 }
}

/// What a program's calls lead to, where none is open.
fn program_calls() -> Vec<SessionEvent> {
    let exhausted = Exhausted::new(provost_event::Dimension::Tokens, 1, 1);
    vec![
        SessionEvent::ExternalCall(Box::new(wanted())),
        SessionEvent::ExternalReserved {
            request: Box::new(wanted()),
            number: UNKNOWN_CALL,
            output_tokens_max: 1,
        },
        SessionEvent::ExternalRefused { request: Box::new(wanted()), exhausted: Some(exhausted) },
        SessionEvent::ExternalAnswered(Box::new(ExternalCallResult::new(
            "r".to_owned(),
            ExternalCallEnd::Answered,
        ))),
    ]
}

/// Results and answers that nothing waits for.
fn results() -> Vec<SessionEvent> {
    let seq = UNKNOWN;
    let started = seq;
    let exhausted = Exhausted::new(provost_event::Dimension::Tokens, 1, 1);
    let answer = Answer {
        content: Vec::new(),
        usage: Usage::default(),
        cost: None,
        model: String::new(),
        stop: StopReason::EndTurn,
    };
    let report = SubAgentReport {
        status: ToolStatus::Ok,
        text: String::new(),
        status_line: None,
        duration_ms: 0,
        ended: None,
    };
    let judged = JudgeReport {
        answer: JudgeAnswer::Failed(SupervisorError::Timeout(1)),
        usage: Usage::default(),
        model: String::new(),
        duration_ms: 1,
        evidence: String::new(),
    };
    vec![
        SessionEvent::Reserved {
            call: UNKNOWN_CALL,
            purpose: Purpose::Turn,
            output_tokens_max: 1,
            time_left: None,
            limits: Vec::new(),
            is_last_turn: false,
        },
        SessionEvent::Refused { call: UNKNOWN_CALL, purpose: Purpose::Turn, exhausted, is_judges: false },
        SessionEvent::Answered { seq, answer },
        SessionEvent::ModelFailed { seq, failure: ModelFailure::new(ErrorClass::Server, "m") },
        SessionEvent::ToolDone { seq, result: result(ToolStatus::Ok, "") },
        SessionEvent::StopChecked {
            seq,
            result: StopCheckResult { reports: Vec::new(), evidence: String::new() },
        },
        SessionEvent::Judged { seq, report: judged },
        SessionEvent::HooksAnswered { seq, reports: Vec::new(), scripts: None },
        SessionEvent::WorktreeReady { seq, result: WorktreeResult::Failed { message: String::new() } },
        SessionEvent::WorktreeChecked { seq, left: WorktreeLeft::Clean },
        SessionEvent::Terminal(Box::new(TerminalNoted::certain(TerminalEvent::Exited {
            exit: Exit::Code(0),
        }))),
        SessionEvent::RulesFound(vec![FolderRules {
            file: "a/AGENTS.md".to_owned(),
            bytes: 1,
            body: "x".to_owned(),
        }]),
        SessionEvent::AskWithdrawn { call: CallId::from("unknown") },
        SessionEvent::ServiceNoted(Box::new(ServiceNoted {
            name: "web".to_owned(),
            supervisor: ProcessStamp { pid: 2, started: 3 },
            event: ServiceEvent::Ended { how: "has ended".to_owned(), by_agent: false },
        })),
        SessionEvent::TerminalClosed { seq, exit: None },
        SessionEvent::Resolve {
            asked: seq,
            answer: ApprovalAnswer::Deny { reason: String::new() },
            by: by(),
        },
        SessionEvent::TimerFired { seq },
        SessionEvent::SubAgentFinished { started, report },
        SessionEvent::SubAgentSuspended { started, outcome: paused() },
        SessionEvent::SubAgentResumed { started },
    ]
}

/// A session that waits between its turns.
pub(super) fn play_stepped() {
    let mut policy = without_hooks();
    policy.agent.step_mode = StepMode::Stepped;
    let mut world = World::start(policy);
    for turn in 1..10 {
        world.session_event(SessionEvent::Proceed { turn });
        world.call(&[("read", &format!("{{\"turn\":{turn}}}"))]);
        world.finish_first(&format!("{turn}"));
    }
}
