//! A session whose agent is an external program, as scripts: its exchanges, its questions, its end.

use expect_test::{Expect, expect};
use provost_engine::{Answer, Effect, RunEvent, SessionEvent};
use provost_event::{
    Access, ActorKey, AgentPolicy, ApprovalAnswer, ApprovalScope, AskKind, AskOption, Block, Blocker, Budget,
    BudgetEntry, CallId, Channel, CompletionScope, Entry, ErrorClass, EvidenceSource, Exit, ExternalPolicy,
    Metering, MicroDollars, ModelPolicy, OptionMeaning, Outcome, PauseReason, Permission, Plan, PlanItem,
    PlanStatus, Priority, ProgramActivity, ProgramCall, ProgramChange, RunPolicy, Seq, StopHookVerdict,
    StopReason, TerminalAsk, TerminalEntry, TerminalEvent, TerminalEvidence, TerminalNoted, TerminalState,
    ToolStatus, Usage, WindowSize,
};

use crate::tree_world::{self, Tree};
use crate::world::{ROOT, World, policy, tool, without_hooks};

const YES: ApprovalAnswer = ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None };

pub(crate) fn external() -> ExternalPolicy {
    ExternalPolicy {
        program: "codex".to_owned(),
        args: Vec::new(),
        env: std::collections::BTreeMap::new(),
        passes: Vec::new(),
        profile: "codex".to_owned(),
        channel: Channel::Terminal,
        size: WindowSize::default(),
        submits_goal: true,
        attended: false,
        unrecorded: false,
        idle_ms: None,
        metering: Metering::Reported,
    }
}

/// `policy` for a program whose tools may need approval.
fn of_program(mut policy: RunPolicy) -> RunPolicy {
    let agent = &mut policy.agent;
    agent.external = Some(Box::new(external()));
    agent.model = ModelPolicy::new("external/codex", 1);
    agent.tools = vec![tool("shell", Access::Anything, false), tool("consent", Access::Consents, false)];
    policy
}

fn program() -> RunPolicy {
    of_program(without_hooks())
}

fn asking() -> RunPolicy {
    let mut policy = program();
    policy.agent.permissions.default = Permission::Ask;
    policy
}

pub(crate) fn started() -> TerminalEvent {
    let command = vec!["codex".to_owned()];
    TerminalEvent::Started { command, pid: 7, channel: Channel::Terminal, recording: None }
}

impl World {
    pub(crate) fn note(&mut self, event: TerminalEvent) {
        self.session_event(SessionEvent::Terminal(Box::new(TerminalNoted::certain(event))));
    }

    /// The program was started, and has got all messages through the entry `through`.
    fn begin(&mut self, through: u64) {
        self.note(started());
        self.note(TerminalEvent::Submitted { text: "the goal".to_owned(), through: Seq(through) });
    }

    pub(crate) fn closing(&self) -> Option<Seq> {
        let closes = |effect: &Effect| matches!(effect, Effect::CloseTerminal { .. });
        self.open.iter().find(|(_, effect)| closes(effect)).map(|(id, _)| id.1)
    }

    pub(crate) fn close(&mut self, exit: Option<Exit>) {
        let seq = self.closing().expect("the program is ended");
        self.session_event(SessionEvent::TerminalClosed { seq, exit });
    }

    fn pause(&mut self) {
        self.run_event(RunEvent::Pause { agent: None, by: "a person".into() });
    }

    fn cancel(&mut self) {
        self.run_event(RunEvent::Cancel { agent: None, by: "a person".into() });
    }

    fn resume(&mut self) {
        self.run_event(RunEvent::Resume {
            agent: None,
            by: "a person".into(),
            budget: Budget::default(),
            turns_max: None,
            text: None,
        });
    }
}

/// A run of a program with every kind of terminal event.
pub(crate) fn eventful() -> World {
    let mut world = World::start(asking());
    let options = [("Yes", "y", OptionMeaning::ApproveOnce), ("No", "\u{1b}", OptionMeaning::Deny)];
    let option = |(label, keys, meaning): (&str, &str, OptionMeaning)| AskOption {
        label: label.to_owned(),
        keys: keys.to_owned(),
        meaning,
    };
    let ask = TerminalAsk {
        fingerprint: "0123456789abcdef".to_owned(),
        kind: AskKind::Command,
        question: "Would you like to run this command?".to_owned(),
        subject: Some("make".to_owned()),
        options: options.map(option).to_vec(),
        default: Some(0),
    };
    world.begin(1);
    world.note(TerminalEvent::State(TerminalState::Working));
    world.note(TerminalEvent::Attached { by: "a person".to_owned() });
    world.note(TerminalEvent::Detached { by: "a person".to_owned() });
    world.note(TerminalEvent::PasswordPrompt { prompt: "Password:".to_owned() });
    world.note(TerminalEvent::WaitingForInput { prompt: "Name:".to_owned() });
    world.note(TerminalEvent::Notification { text: "look here".to_owned() });
    world.note(TerminalEvent::Error { line: "error: no such file".to_owned() });
    let evidence =
        vec![TerminalEvidence { source: EvidenceSource::Screen, what: "rule approval".to_owned() }];
    let noted = TerminalNoted { event: TerminalEvent::ApprovalRequest(ask), confidence: 97, evidence };
    world.session_event(SessionEvent::Terminal(Box::new(noted)));
    world.note(TerminalEvent::State(TerminalState::Blocked(Blocker::Approval)));
    world.call(&[("shell", "{\"command\":\"make\"}")]);
    world.resolve(YES);
    let fingerprint = "0123456789abcdef".to_owned();
    world.note(TerminalEvent::Answered { fingerprint, choice: "Yes".to_owned() });
    world.finish_first("answered: Yes");
    world.fail(ErrorClass::Unanswered, None);
    world.close(Some(Exit::Signal(1)));
    world.resume();
    world.begin(1);
    world.note(TerminalEvent::Completion { scope: CompletionScope::Turn, succeeded: Some(true) });
    world.note(TerminalEvent::Idle);
    world.say("Done.");
    world.close(Some(Exit::Code(0)));
    world
}

#[test]
fn the_plan_that_a_program_reports_is_its_agents_plan() {
    let mut world = World::start(asking());
    world.begin(1);
    world.note(TerminalEvent::Activity(ProgramActivity::Plan(planned())));
    let changes = vec![ProgramChange { path: "a.txt".to_owned(), added: 2, removed: 1 }];
    let subject = "a.txt".to_owned();
    let call = ProgramCall { kind: AskKind::Edit, subject, succeeded: true, changes };
    world.note(TerminalEvent::Activity(ProgramActivity::Call(call)));
    assert_eq!(world.session().plan(), Some(&planned()));
}

fn planned() -> Plan {
    let item = |text: &str, status| PlanItem { text: text.to_owned(), status };
    Plan { items: vec![item("one", PlanStatus::Done), item("two", PlanStatus::InProgress)] }
}

fn check(policy: RunPolicy, script: impl FnOnce(&mut World), expected: Expect) {
    let mut world = World::start(policy);
    script(&mut world);
    expected.assert_eq(&world.news());
}

#[test]
fn a_run_with_a_program_ends_when_it_is_done_and_nothing_is_left_of_it() {
    check(
        program(),
        |w| {
            w.begin(1);
            w.say("It is made.");
            w.close(Some(Exit::Code(0)));
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            terminal_noted started as process 7: codex
            terminal_noted was told: the goal
            assistant_message EndTurn 1 blocks
            turn_ended
            terminal_ending
            terminal_noted ended (exit status 0)
            terminal_noted exited
            ended: completed, not verified
        "#]],
    );
}

#[test]
fn what_the_program_asks_passes_the_gate() {
    check(
        asking(),
        |w| {
            w.begin(1);
            w.call(&[("shell", "{\"command\":\"make\"}")]);
            w.resolve(YES);
            w.finish_first("answered: yes");
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            terminal_noted started as process 7: codex
            terminal_noted was told: the goal
            assistant_message ToolUse 1 blocks
            permission_decided c1 Ask
            approval_requested c1: calls that match no pattern need approval
            approval_resolved #7 Allow { scope: Once, pattern: None } by a person
            tool_started c1
            tool_finished c1 Ok: answered: yes
            turn_ended
            model_called turn 2 call 2 attempt 1
              → #12 call model (turn 2, cap 1)
        "#]],
    );
}

#[test]
fn a_refused_question_is_answered_by_the_next_exchange() {
    check(
        asking(),
        |w| {
            w.begin(1);
            w.call(&[("consent", "{\"question\":\"Trust it?\"}")]);
            w.resolve(ApprovalAnswer::Deny { reason: "not today".to_owned() });
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            terminal_noted started as process 7: codex
            terminal_noted was told: the goal
            assistant_message ToolUse 1 blocks
            permission_decided c1 Ask
            approval_requested c1: calls that match no pattern need approval
            approval_resolved #7 Deny { reason: "not today" } by a person
            tool_finished c1 Denied: Denied by a person: not today
            turn_ended
            model_called turn 2 call 2 attempt 1
              → #11 call model (turn 2, cap 1)
        "#]],
    );
}

#[test]
fn a_question_that_was_answered_at_the_terminal_is_over() {
    let mut world = World::start(asking());
    world.begin(1);
    world.call(&[("shell", "{\"command\":\"make\"}")]);
    world.session_event(SessionEvent::AskWithdrawn { call: CallId::from("c9") });
    assert_eq!(world.approvals().len(), 1, "another question isn't meant");
    world.session_event(SessionEvent::AskWithdrawn { call: CallId::from("c1") });
    assert!(world.approvals().is_empty() && world.tools().is_empty());
    assert!(world.thinking().is_some(), "the exchange goes on");
}

#[test]
fn a_block_is_the_next_exchange_and_the_program_stays_as_it_is() {
    check(
        of_program(policy()),
        |w| {
            w.begin(1);
            w.say("It is made.");
            w.hook(StopHookVerdict::Block("a test fails".into()), "0001");
            w.say("Now it is.");
            w.hook(StopHookVerdict::Allow, "0002");
            w.close(Some(Exit::Code(0)));
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            terminal_noted started as process 7: codex
            terminal_noted was told: the goal
            assistant_message EndTurn 1 blocks
            stop_verdicts Block("a test fails")
            system_item StopBlocked
            turn_ended
            model_called turn 2 call 2 attempt 1
            assistant_message EndTurn 1 blocks
            stop_verdicts Allow
            turn_ended
            terminal_ending
            terminal_noted ended (exit status 0)
            terminal_noted exited
            ended: completed, verified
        "#]],
    );
}

#[test]
fn a_pause_ends_the_program_and_a_resume_begins_another_exchange() {
    check(
        program(),
        |w| {
            w.begin(1);
            w.pause();
            w.fail(ErrorClass::Aborted, None);
            w.close(Some(Exit::Signal(1)));
            w.resume();
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            terminal_noted started as process 7: codex
            terminal_noted was told: the goal
            stop_requested: paused by a person
            terminal_ending
            terminal_noted ended (signal 1)
            terminal_noted exited
            paused: paused by a person
            resumed
            model_called turn 1 call 2 attempt 1
              → #11 call model (turn 1, cap 1)
        "#]],
    );
}

#[test]
fn a_pause_ends_the_program_and_keeps_an_open_question() {
    let mut world = World::start(asking());
    world.begin(1);
    world.call(&[("shell", "{\"command\":\"make\"}")]);
    world.pause();
    world.close(None);
    assert!(matches!(world.outcome(), Some(Outcome::Paused { .. })), "{:?}", world.outcome());
    world.resolve(YES);
    world.resume();
    assert_eq!(world.tools().len(), 1, "the answer is tried on whatever is there now");
}

#[test]
fn without_a_program_nothing_is_ended() {
    let mut world = World::start(program());
    world.fail(ErrorClass::Program, None);
    let outcome = world.outcome();
    assert!(matches!(outcome, Some(Outcome::Failed { class: ErrorClass::Program, .. })), "{outcome:?}");
}

#[test]
fn a_program_that_has_ended_by_itself_is_not_ended_again() {
    let mut world = World::start(program());
    world.begin(1);
    world.note(TerminalEvent::Exited { exit: Exit::Code(0) });
    world.say("Done.");
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{:?}", world.outcome());
    assert_eq!(world.session().terminal(), Some(TerminalState::Exited));
}

#[test]
fn a_program_that_ends_while_it_is_ended_is_noted_once() {
    let mut world = World::start(program());
    world.begin(1);
    world.say("Done.");
    world.note(TerminalEvent::Exited { exit: Exit::Signal(9) });
    world.close(Some(Exit::Signal(9)));
    let exits = world.session_log().iter().filter(|record| match &record.entry {
        Entry::Terminal(TerminalEntry::Noted(noted)) => matches!(noted.event, TerminalEvent::Exited { .. }),
        _ => false,
    });
    assert_eq!(exits.count(), 1);
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{:?}", world.outcome());
}

#[test]
fn an_operator_who_insists_does_not_wait_for_the_program_to_end_by_itself() {
    let mut world = World::start(program());
    world.begin(1);
    world.say("Done.");
    let seq = world.closing().expect("it is ended");
    world.cancel();
    assert!(world.aborted.contains(&(ActorKey::from(ROOT), seq)));
    world.close(Some(Exit::Signal(9)));
    assert!(world.outcome().is_some_and(|outcome| outcome.is_final()), "{:?}", world.outcome());
}

#[test]
fn a_new_holder_ends_the_program_under_the_same_name() {
    let mut world = World::start(program());
    world.begin(1);
    world.say("Done.");
    let seq = world.closing();
    world.run_event(RunEvent::Recover { fresh: Vec::new() });
    assert_eq!(world.closing(), seq);
    world.close(None);
    let unseen = world.session_log().iter().any(|record| match &record.entry {
        Entry::Terminal(TerminalEntry::Noted(noted)) => {
            noted.event == TerminalEvent::Exited { exit: Exit::Unseen }
        }
        _ => false,
    });
    assert!(unseen, "its end was not seen");
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{:?}", world.outcome());
}

#[test]
fn an_exchange_that_was_interrupted_is_made_again() {
    let mut world = World::start(program());
    world.begin(1);
    world.run_event(RunEvent::Recover { fresh: Vec::new() });
    world.begin(1);
    world.say("Done.");
    world.close(Some(Exit::Code(0)));
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{:?}", world.outcome());
}

#[test]
fn a_program_without_an_answer_suspends_its_session() {
    let mut world = World::start(program());
    world.begin(1);
    world.fail(ErrorClass::Unanswered, None);
    world.close(Some(Exit::Code(0)));
    let waits_for = "its message".to_owned();
    assert_eq!(world.outcome(), Some(Outcome::Paused { why: PauseReason::Unanswered { waits_for } }));
}

#[test]
fn words_that_were_typed_in_during_the_exchange_need_no_other() {
    for (through, goes_on) in [(u64::MAX, false), (1, true)] {
        let mut world = World::start(program());
        world.begin(1);
        world.run_event(RunEvent::Say { agent: 0, text: "be quick".into(), by: "a person".into() });
        let through = Seq(through.min(world.session_log().len() as u64));
        world.note(TerminalEvent::Submitted { text: "be quick".to_owned(), through });
        world.say("Done.");
        assert_eq!(world.thinking().is_some(), goes_on, "typed in through {through}");
    }
}

#[test]
fn where_a_person_works_it_is_over_when_the_program_ends() {
    let mut policy = program();
    policy.agent.external = Some(Box::new(ExternalPolicy { attended: true, ..external() }));
    let mut world = World::start(policy);
    world.begin(1);
    world.say("Done.");
    assert!(world.thinking().is_some(), "the person may have another task");
    world.note(TerminalEvent::Exited { exit: Exit::Code(0) });
    world.say("Bye.");
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{:?}", world.outcome());
}

#[test]
fn a_program_hears_nothing_of_windows_limits_and_final_summary() {
    let mut policy = program();
    policy.agent.limits.turns_max = 2;
    policy.agent.model.window_tokens = Some(10);
    let mut world = World::start(policy);
    world.begin(1);
    for _ in 0..2 {
        world.call(&[("shell", &format!("{{\"command\":\"{}\"}}", "x".repeat(4_000)))]);
        world.finish_first("answered: yes");
    }
    world.close(Some(Exit::Code(0)));
    let kinds = world.session_log().iter().map(|record| record.entry.kind()).collect::<Vec<_>>();
    assert!(
        !kinds.iter().any(|kind| ["compacted", "system_item", "final_summary_finished"].contains(kind)),
        "{kinds:?}"
    );
    assert!(matches!(world.outcome(), Some(Outcome::BudgetExhausted(_))), "{:?}", world.outcome());
}

#[test]
fn what_is_noted_of_a_session_that_rests_is_not_kept() {
    let mut world = World::start(program());
    world.begin(1);
    world.pause();
    world.fail(ErrorClass::Aborted, None);
    world.close(Some(Exit::Signal(1)));
    let before = world.session_log().len();
    world.note(TerminalEvent::Idle);
    assert_eq!(world.session_log().len(), before);
}

#[test]
fn a_program_that_works_for_another_agent_may_ask_for_no_more_than_that_one_may() {
    let mut policy = tree_world::policy(4);
    let model = ModelPolicy::new("external/codex", 1);
    let tools = ["shell", "fetch"]
        .map(|name| tool(name, if name == "shell" { Access::Anything } else { Access::Consents }, false));
    let agent = AgentPolicy {
        external: Some(Box::new(external())),
        model,
        tools: tools.to_vec(),
        ..policy.agent.clone()
    };
    policy.agent.tools.retain(|tool| tool.name != "shell");
    policy.agents = vec![tree_world::sub_agent("codex", Priority::Normal, &agent)];
    policy.agent.tools.push(provost_engine::agent_tool("codex", "works"));
    let mut tree = Tree::start(policy);
    tree.spawn(0, &["codex"]);
    let names = tree.session(1).and_then(|child| child.policy()).map(|policy| {
        assert!(policy.external.is_some());
        policy.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>()
    });
    assert_eq!(names, Some(vec!["fetch".to_owned()]));
    tree.call(1, &[("shell", "{\"command\":\"make\"}")]);
    assert_eq!(tree.results(1).last().map(|(status, _)| *status), Some(ToolStatus::Rejected));
}

#[test]
fn what_a_program_says_that_it_cost_is_what_is_charged() {
    let mut policy = program();
    policy.allow_unpriced = true;
    let mut world = World::start(policy);
    world.begin(1);
    let seq = world.thinking().expect("an exchange");
    let answer = Answer {
        content: vec![Block::Text("Done.".to_owned())],
        usage: Usage { input_tokens: 5, ..Usage::default() },
        cost: Some(MicroDollars(42)),
        model: "codex".to_owned(),
        stop: StopReason::EndTurn,
    };
    world.session_event(SessionEvent::Answered { seq, answer });
    let charged = world.run_log().iter().find_map(|record| match &record.entry {
        Entry::Budget(BudgetEntry::Charged(charged)) => Some(charged.cost),
        _ => None,
    });
    assert_eq!(charged, Some(Some(MicroDollars(42))));
}

#[test]
fn a_program_that_has_taken_more_than_a_limit_is_suspended_though_it_is_done() {
    let tokens = Budget { tokens: Some(1_000), ..Budget::default() };
    let money = Budget { money: Some(MicroDollars(1_000_000)), ..Budget::default() };
    for (metering, budget, input_tokens, cost) in [
        (Metering::Reported, tokens, 51_000, None),
        (Metering::Unmetered, tokens, 51_000, None),
        (Metering::Gateway, tokens, 51_000, None),
        (Metering::Gateway, money, 10, Some(MicroDollars(50_000_000))),
    ] {
        let mut policy = program();
        policy.agent.external = Some(Box::new(ExternalPolicy { metering, ..external() }));
        policy.allow_unpriced = true;
        policy.budget = budget;
        let mut world = World::start(policy);
        world.begin(1);
        let seq = world.thinking().expect("an exchange");
        let usage = Usage { input_tokens, ..Usage::default() };
        let content = vec![Block::Text("It is made.".to_owned())];
        let answer = Answer { content, usage, cost, model: "m".to_owned(), stop: StopReason::EndTurn };
        world.session_event(SessionEvent::Answered { seq, answer });
        world.close(Some(Exit::Code(0)));
        let outcome = world.outcome();
        assert!(matches!(outcome, Some(Outcome::BudgetExhausted(_))), "{metering:?} {budget:?}: {outcome:?}");
        world.run_event(RunEvent::Resume {
            agent: None,
            by: "a person".into(),
            budget: Budget {
                tokens: Some(100_000),
                money: Some(MicroDollars(90_000_000)),
                ..Budget::default()
            },
            turns_max: None,
            text: None,
        });
        assert!(world.thinking().is_some(), "{metering:?}: a higher limit goes on");
    }
}

#[test]
fn a_program_within_its_limits_that_tells_what_it_took_is_done() {
    let mut policy = program();
    policy.budget = Budget { tokens: Some(1_000), ..Budget::default() };
    let mut world = World::start(policy);
    world.begin(1);
    world.usage = Usage { input_tokens: 900, ..Usage::default() };
    world.say("It is made.");
    world.close(Some(Exit::Code(0)));
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{:?}", world.outcome());
}
