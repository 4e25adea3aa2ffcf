//! Runs of workflows: which steps begin when, and what follows from failures, suspensions, ends and crashes.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use provost_engine::{
    Actor, Answer, Effect, Event, Message, RunEvent, RunState, SessionEvent, StopCheckResult,
};
use provost_event::{
    ActorKey, AgentEntry, Block, Budget, EffectId, Entry, ErrorClass, FlowPolicy, HookPoint, HookReport,
    LifecycleEntry, ModelFailure, OnStepFailure, Outcome, Priority, Record, RunPolicy, Seq, SessionId,
    StepEnd, StepPolicy, StopHookPolicy, StopHookVerdict, StopReason, Timestamp, Usage,
};

use crate::states;
use crate::time::{BEGIN, Clocks};
use crate::world::{RUN, without_hooks};

fn step(name: &str, needs: &[&str]) -> StepPolicy {
    StepPolicy {
        name: name.to_owned(),
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        agent: None,
        goal: format!("do {name}"),
        stop_hooks: Vec::new(),
        attempts_max: 1,
        restarts_max: None,
        on_failure: OnStepFailure::Abort,
        priority: Priority::Normal,
        budget: Budget::default(),
    }
}

fn policy(slots: u32, steps: Vec<StepPolicy>) -> RunPolicy {
    let mut policy = without_hooks();
    policy.agent.limits.model_patience_ms = 0;
    policy.agent.limits.retry.attempts_max = 0;
    policy.spawn.max_agents = slots;
    policy.flow = Some(FlowPolicy { name: "flow".to_owned(), file: None, steps });
    policy
}

/// The logs of a workflow whose first step is restarted, and then retried by another agent.
pub(crate) fn eventful() -> Vec<Record> {
    let first = StepPolicy {
        attempts_max: 2,
        restarts_max: Some(1),
        on_failure: OnStepFailure::Skip,
        ..step("first", &[])
    };
    let mut stage = Stage::start(policy(2, vec![first, step("second", &["first"])]));
    stage.fail("first");
    stage.tick();
    stage.say("first", "It can't be done.\n\nVERDICT: FAIL");
    stage.tick();
    stage.say("first", "the first is done");
    stage.say("second", "all is done");
    stage.logs.into_values().flatten().collect()
}

fn diamond() -> Vec<StepPolicy> {
    vec![step("a", &[]), step("b", &["a"]), step("c", &["a"]), step("d", &["b", "c"])]
}

/// A backend reduced to what decisions need. After every event the fold of each log is the state.
struct Stage {
    actors: BTreeMap<ActorKey, Actor>,
    logs: BTreeMap<ActorKey, Vec<Record>>,
    open: BTreeMap<(ActorKey, Seq), Effect>,
    now: Timestamp,
    clocks: Clocks,
    shown: usize,
}

impl Stage {
    fn start(policy: RunPolicy) -> Self {
        let mut stage = Self {
            actors: BTreeMap::new(),
            logs: BTreeMap::new(),
            open: BTreeMap::new(),
            now: BEGIN,
            clocks: Clocks::default(),
            shown: 0,
        };
        let (goal, images) = ("the flow".to_owned(), Vec::new());
        stage.run_event(RunEvent::Start { goal, images, policy: Box::new(policy), baseline: None });
        stage
    }

    fn run_event(&mut self, event: RunEvent) {
        self.post(RUN.into(), event.into());
    }

    fn post(&mut self, to: ActorKey, event: Event) {
        let mut queue = VecDeque::from([Message { to, event }]);
        while let Some(Message { to, event }) = queue.pop_front() {
            let now = self.clocks.now(self.now, 7);
            let actor = self.actors.entry(to).or_insert_with(|| Actor::new(to));
            let step = states::decide(actor, event, now);
            let log = self.logs.entry(to).or_default();
            for entry in step.entries {
                let seq = Seq(log.len() as u64 + 1);
                log.push(self.clocks.record(self.now, to, seq, entry));
            }
            step.closed.iter().for_each(|seq| drop(self.open.remove(&(to, *seq))));
            for request in step.effects {
                let doubled =
                    self.open.insert((to, request.seq), self.clocks.begun(self.now, request.effect));
                assert!(doubled.is_none(), "effect {to}#{} opened twice", request.seq);
            }
            // A call that is aborted ends at once, without a result.
            for seq in step.aborts {
                let failure = ModelFailure::new(ErrorClass::Aborted, "stopped");
                let event = SessionEvent::ModelFailed { seq, failure };
                queue.push_back(Message { to, event: event.into() });
            }
            queue.extend(step.messages);
        }
        assert_eq!(self.folded(), self.actors, "the fold of the logs is the state");
    }

    fn folded(&self) -> BTreeMap<ActorKey, Actor> {
        let folded = self.logs.iter().map(|(key, log)| {
            let mut actor = Actor::new(*key);
            log.iter().for_each(|record| actor.replay(record).expect("the log replays"));
            (*key, actor)
        });
        folded.collect()
    }

    /// The process is gone, with its unfinished work; another takes the run over.
    fn crash(&mut self) {
        self.actors = self.folded();
        self.run_event(RunEvent::Recover { fresh: Vec::<EffectId>::new() });
    }

    fn run(&self) -> &RunState {
        match &self.actors[&RUN.into()] {
            Actor::Run(state) => state,
            Actor::Session(_) => panic!("a session in place of the run"),
        }
    }

    /// The open effect of the newest agent of a step.
    fn effect(&self, step: &str, wanted: impl Fn(&Effect) -> bool) -> (ActorKey, Seq) {
        let agents = self.run().agents().filter(|agent| agent.name == step).map(|agent| agent.session);
        let key = ActorKey::from(agents.last().unwrap_or_else(|| panic!("no agent does {step}")));
        let of_it = |id: &&(ActorKey, Seq)| id.0 == key && wanted(&self.open[*id]);
        *self.open.keys().find(of_it).unwrap_or_else(|| panic!("{step} waits for nothing like that"))
    }

    fn say(&mut self, step: &str, text: &str) {
        let (key, seq) = self.effect(step, |effect| matches!(effect, Effect::CallModel(_)));
        let content = vec![Block::Text(text.to_owned())];
        let usage = Usage { input_tokens: 50, output_tokens: 50, ..Usage::default() };
        let answer = Answer { cost: None, content, usage, model: "m".to_owned(), stop: StopReason::EndTurn };
        self.post(key, SessionEvent::Answered { seq, answer }.into());
    }

    fn fail(&mut self, step: &str) {
        let (key, seq) = self.effect(step, |effect| matches!(effect, Effect::CallModel(_)));
        let failure = ModelFailure::new(ErrorClass::Program, "it crashed");
        self.post(key, SessionEvent::ModelFailed { seq, failure }.into());
    }

    fn stop_hook(&mut self, step: &str, verdict: StopHookVerdict) {
        let (key, seq) = self.effect(step, |effect| matches!(effect, Effect::CheckStop(_)));
        let reports = vec![HookReport::new("tests", HookPoint::Stop, verdict)];
        let result = StopCheckResult { reports, evidence: String::new() };
        self.post(key, SessionEvent::StopChecked { seq, result }.into());
    }

    /// Lets the run's timer fire.
    fn tick(&mut self) {
        let timer = self.open.iter().find_map(|((actor, seq), effect)| match effect {
            Effect::Timer { due, .. } if *actor == RUN.into() => Some((*seq, *due)),
            _ => None,
        });
        let Some((seq, due)) = timer else { panic!("the run waits for no time") };
        self.now = self.now.max(due);
        self.run_event(RunEvent::TimerFired { seq });
    }

    fn resume(&mut self) {
        let (by, budget) = ("alice".to_owned(), Budget::default());
        self.run_event(RunEvent::Resume { agent: None, by, budget, turns_max: None, text: None });
    }

    fn cancel(&mut self) {
        self.run_event(RunEvent::Cancel { agent: None, by: "alice".to_owned() });
    }

    fn outcome(&self) -> String {
        self.run().outcome().map(ToString::to_string).unwrap_or_default()
    }

    /// The goal of the newest agent of a step.
    fn goal(&self, step: &str) -> String {
        let agents = self.run().agents().filter(|agent| agent.name == step);
        agents.last().and_then(|agent| agent.goal).unwrap_or_default().to_owned()
    }

    /// The run's new entries on its agents and steps, a word each.
    fn news(&mut self) -> String {
        let log = self.logs.get(&RUN.into()).map(Vec::as_slice).unwrap_or_default();
        let names = log.iter().filter_map(|record| match &record.entry {
            Entry::Agent(AgentEntry::Spawned(entry)) => Some((entry.child, entry.brief.name.clone())),
            _ => None,
        });
        let names = names.collect::<BTreeMap<_, _>>();
        let mut text = String::new();
        for record in log.iter().skip(self.shown) {
            let _ = match &record.entry {
                Entry::Agent(AgentEntry::Spawned(entry)) => {
                    let slot = format!("{:?}", entry.slot).to_lowercase();
                    write!(text, "{}? ({}) ", entry.brief.name, slot.split('(').next().unwrap_or_default())
                }
                Entry::Agent(AgentEntry::Started(entry)) => write!(text, "{}! ", names[&entry.child]),
                Entry::Agent(AgentEntry::Suspended(entry)) => {
                    write!(text, "{} is suspended ", names[&entry.child])
                }
                Entry::Agent(AgentEntry::RetryScheduled(entry)) => {
                    write!(
                        text,
                        "{} restarts({}/{}) ",
                        names[&entry.agent], entry.attempt, entry.attempts_max
                    )
                }
                Entry::Agent(AgentEntry::StepEnded(entry)) => match &entry.end {
                    StepEnd::Done { .. } => write!(text, "{} done ", entry.step),
                    StepEnd::Again { .. } => write!(text, "{} again({}) ", entry.step, entry.attempt),
                    StepEnd::Failed { skipped, .. } => write!(text, "{} failed{skipped:?} ", entry.step),
                },
                Entry::Lifecycle(LifecycleEntry::Paused(_)) => write!(text, "paused "),
                Entry::Lifecycle(LifecycleEntry::Ended(entry)) => {
                    write!(text, "ended: {} ", entry.outcome.word())
                }
                _ => Ok(()),
            };
        }
        self.shown = log.len();
        text.trim_end().to_owned()
    }
}

#[test]
fn steps_run_as_soon_as_what_they_need_is_done() {
    let mut stage = Stage::start(policy(8, diamond()));
    assert_eq!(stage.news(), "a? (free) a!");
    stage.say("a", "the plan");
    assert_eq!(stage.news(), "a done b? (free) c? (free) b! c!");
    assert_eq!(
        stage.goal("b"),
        "do b\n\nThis was done before. What was said last of each step:\n\n<step name=\"a\">\nthe plan\n</step>"
    );
    stage.say("c", "C");
    assert_eq!(stage.news(), "c done");
    stage.say("b", "B");
    assert_eq!(stage.news(), "b done d? (free) d!");
    let goal = stage.goal("d");
    assert!(goal.contains("<step name=\"b\">\nB\n</step>\n\n<step name=\"c\">\nC\n</step>"), "{goal}");
    stage.say("d", "D");
    assert_eq!(stage.news(), "d done ended: completed");
    assert_eq!(stage.open, BTreeMap::new());
    assert!(!stage.logs.contains_key(&SessionId::root(RUN).into()), "there is no root");
}

#[test]
fn steps_wait_for_slots_the_urgent_first() {
    let urgent = StepPolicy { priority: Priority::High, ..step("urgent", &[]) };
    let mut stage = Stage::start(policy(1, vec![step("one", &[]), step("two", &[]), urgent]));
    assert_eq!(stage.news(), "urgent? (free) one? (queued) two? (queued) urgent!");
    stage.say("urgent", "ok");
    assert_eq!(stage.news(), "urgent done one!");
    stage.say("one", "ok");
    stage.say("two", "ok");
    assert_eq!(stage.news(), "one done two! two done ended: completed");
}

#[test]
fn an_urgent_step_has_another_yield() {
    let urgent = StepPolicy { priority: Priority::High, ..step("urgent", &["first"]) };
    let mut stage =
        Stage::start(policy(2, vec![step("first", &[]), step("slow", &[]), step("next", &[]), urgent]));
    assert_eq!(stage.news(), "first? (free) slow? (free) next? (queued) first! slow!");
    stage.say("first", "ok");
    assert_eq!(stage.news(), "first done urgent? (after) next!");
    for name in ["slow", "next"] {
        stage.say(name, "ok");
    }
    assert_eq!(stage.news(), "slow done urgent! next done");
    stage.say("urgent", "ok");
    assert_eq!(stage.news(), "urgent done ended: completed");
}

#[test]
fn the_agent_of_a_failed_step_is_restarted_in_its_session_and_then_the_flow_is_given_up() {
    let mut steps = diamond();
    steps[1].attempts_max = 2;
    steps[1].restarts_max = Some(1);
    let mut stage = Stage::start(policy(8, steps));
    stage.say("a", "ok");
    stage.fail("b");
    assert_eq!(stage.news(), "a? (free) a! a done b? (free) c? (free) b! c! b restarts(1/1)");
    stage.tick();
    assert_eq!(stage.news(), "b!");
    assert_eq!(stage.run().agents().map(|agent| agent.session.agent).collect::<Vec<_>>(), [1, 2, 3]);
    stage.fail("b");
    assert_eq!(stage.news(), "b failed[] ended: failed");
    assert_eq!(stage.outcome(), "a step of the workflow has failed: `b`: the program failed: it crashed");
    assert_eq!(stage.open, BTreeMap::new(), "c was stopped");
    stage.cancel();
    assert_eq!(stage.news(), "");
}

#[test]
fn a_step_whose_work_does_not_pass_is_tried_again_in_a_new_session() {
    let again = StepPolicy { attempts_max: 2, restarts_max: Some(1), ..step("a", &[]) };
    let mut stage = Stage::start(policy(8, vec![again]));
    stage.say("a", "It doesn't work.\nVERDICT: FAIL");
    assert_eq!(stage.news(), "a? (free) a! a again(1)");
    stage.tick();
    stage.say("a", "ok");
    assert_eq!(stage.news(), "a? (free) a! a done ended: completed");
    assert_eq!(stage.run().agents().map(|agent| agent.session.agent).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn what_needs_a_skipped_step_is_skipped_and_the_rest_goes_on() {
    let mut steps = diamond();
    steps[1].on_failure = OnStepFailure::Skip;
    steps.push(step("e", &["c"]));
    let mut stage = Stage::start(policy(8, steps));
    stage.say("a", "ok");
    stage.news();
    stage.fail("b");
    assert_eq!(stage.news(), "b failed[\"d\"]");
    stage.say("c", "ok");
    stage.say("e", "ok");
    assert_eq!(stage.news(), "c done e? (free) e! e done ended: completed");
}

#[test]
fn a_step_that_asks_rests_the_run_and_is_tried_again_with_all_attempts() {
    let mut steps = diamond();
    steps[1].on_failure = OnStepFailure::Ask;
    steps[1].attempts_max = 2;
    steps[1].restarts_max = Some(1);
    let mut stage = Stage::start(policy(8, steps));
    stage.say("a", "ok");
    stage.news();
    for _ in 0..2 {
        stage.fail("b");
        stage.tick();
        stage.fail("b");
        assert_eq!(stage.news(), "b restarts(1/1) b! b failed[]", "c is still at work");
        if stage.run().outcome().is_none() {
            stage.say("c", "ok");
        }
        assert_eq!(
            stage.outcome(),
            "step `b` has failed (the program failed: it crashed); resume tries it again, cancel ends the run"
        );
        assert!(stage.news().ends_with("paused"));
        stage.resume();
        assert_eq!(stage.news(), "b? (free) b!");
        // So that the step fails while another agent works, in the second round too.
        if stage.logs[&RUN.into()]
            .iter()
            .filter(|record| matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Paused(_))))
            .count()
            == 1
        {
            stage.fail("b");
            stage.tick();
            stage.fail("b");
            assert_eq!(stage.news(), "b restarts(1/1) b! b failed[] paused");
            stage.resume();
            assert_eq!(stage.news(), "b? (free) b!");
            stage.say("b", "ok");
            stage.say("d", "ok");
            break;
        }
    }
    assert_eq!(stage.news(), "b done d? (free) d! d done ended: completed");
}

#[test]
fn a_steps_stop_hooks_decide_whether_it_is_done() {
    let mut steps = diamond();
    steps[0].stop_hooks = vec![StopHookPolicy {
        name: "tests".to_owned(),
        command: None,
        timeout_ms: 1_000,
        on_error: provost_event::OnHookError::Ignore,
    }];
    let mut stage = Stage::start(policy(8, steps));
    stage.say("a", "done, I think");
    stage.stop_hook("a", StopHookVerdict::Block("not yet".to_owned()));
    assert_eq!(stage.news(), "a? (free) a!");
    stage.say("a", "now");
    stage.stop_hook("a", StopHookVerdict::Allow);
    assert_eq!(stage.news(), "a done b? (free) c? (free) b! c!");
    stage.say("b", "no hook asked");
    assert_eq!(stage.news(), "b done");
}

#[test]
fn a_hook_that_halts_a_step_aborts_the_run() {
    let hook = StopHookPolicy {
        name: "tests".to_owned(),
        command: None,
        timeout_ms: 1_000,
        on_error: provost_event::OnHookError::Ignore,
    };
    let halted = StepPolicy { stop_hooks: vec![hook], attempts_max: 3, ..step("a", &[]) };
    let mut stage = Stage::start(policy(8, vec![halted, step("b", &[])]));
    stage.say("a", "ok");
    stage.stop_hook("a", StopHookVerdict::Halt("enough".to_owned()));
    assert_eq!(stage.outcome(), "aborted by tests: step `a`: enough");
}

#[test]
fn a_step_that_judges_its_own_work_as_failed_has_failed() {
    let mut stage = Stage::start(policy(8, vec![step("a", &[]), step("b", &["a"])]));
    stage.say("a", "It doesn't work.\nVERDICT: FAIL");
    assert_eq!(stage.news(), "a? (free) a! a failed[] ended: failed");
}

#[test]
fn a_pause_rests_all_steps_and_a_resume_goes_on_with_them() {
    let mut stage = Stage::start(policy(1, vec![step("a", &[]), step("b", &[]), step("c", &["a"])]));
    stage.run_event(RunEvent::Pause { agent: None, by: "alice".to_owned() });
    assert_eq!(stage.news(), "a? (free) b? (queued) a! a is suspended paused");
    assert_eq!(stage.outcome(), "paused by alice");
    assert_eq!(stage.open, BTreeMap::new());
    stage.resume();
    stage.say("b", "ok");
    stage.say("a", "ok");
    stage.say("c", "ok");
    assert_eq!(stage.news(), "b! b done a! a done c? (free) c! c done ended: completed");
}

#[test]
fn a_pause_while_a_step_waits_to_be_tried_again_keeps_the_wait() {
    let again = StepPolicy { attempts_max: 2, restarts_max: Some(1), ..step("a", &[]) };
    let mut stage = Stage::start(policy(8, vec![again]));
    stage.fail("a");
    stage.run_event(RunEvent::Pause { agent: None, by: "alice".to_owned() });
    assert_eq!(stage.news(), "a? (free) a! a restarts(1/1) paused");
    assert_eq!(stage.open, BTreeMap::new());
    stage.resume();
    stage.tick();
    stage.say("a", "ok");
    assert_eq!(stage.news(), "a! a done ended: completed");
}

#[test]
fn a_cancel_ends_the_run_however_its_steps_stand() {
    let asks = StepPolicy { on_failure: OnStepFailure::Ask, ..step("a", &[]) };
    let steps = vec![asks, step("b", &[]), step("c", &["a"])];
    let mut at_work = Stage::start(policy(1, steps.clone()));
    at_work.cancel();
    assert_eq!(at_work.news(), "a? (free) b? (queued) a! ended: cancelled");
    let mut asking = Stage::start(policy(8, steps));
    asking.fail("a");
    asking.say("b", "ok");
    assert!(asking.news().ends_with("paused"));
    asking.cancel();
    assert_eq!(asking.news(), "ended: cancelled");
    assert_eq!(asking.outcome(), "cancelled by alice");
    let again = StepPolicy { attempts_max: 2, restarts_max: Some(1), ..step("a", &[]) };
    let mut waiting = Stage::start(policy(8, vec![again]));
    waiting.fail("a");
    waiting.cancel();
    assert!(waiting.news().ends_with("ended: cancelled"));
    assert_eq!(waiting.open, BTreeMap::new());
}

#[test]
fn a_cancelled_step_has_failed_and_is_not_tried_again() {
    let cancelled = StepPolicy { attempts_max: 3, on_failure: OnStepFailure::Skip, ..step("a", &[]) };
    let mut stage = Stage::start(policy(8, vec![cancelled, step("b", &["a"]), step("c", &[])]));
    stage.run_event(RunEvent::Cancel { agent: Some(1), by: "alice".to_owned() });
    stage.say("c", "ok");
    assert_eq!(stage.news(), "a? (free) c? (free) a! c! a failed[\"b\"] c done ended: completed");
}

#[test]
fn a_paused_step_rests_the_run_once_nothing_else_is_left() {
    let mut stage = Stage::start(policy(8, vec![step("a", &[]), step("b", &[]), step("c", &["a"])]));
    stage.run_event(RunEvent::Pause { agent: Some(1), by: "alice".to_owned() });
    assert_eq!(stage.news(), "a? (free) b? (free) a! b! a is suspended");
    stage.say("b", "ok");
    assert_eq!(stage.news(), "b done paused");
    stage.resume();
    stage.say("a", "ok");
    stage.say("c", "ok");
    assert_eq!(stage.news(), "a! a done c? (free) c! c done ended: completed");
}

#[test]
fn the_runs_tokens_bind_all_steps_and_more_of_them_go_on() {
    let mut policy = policy(8, vec![step("a", &[]), step("b", &["a"])]);
    policy.budget.tokens = Some(360);
    let mut stage = Stage::start(policy);
    while stage.run().outcome().is_none() {
        let name = if stage.run().agents().count() == 1 { "a" } else { "b" };
        stage.say(name, "ok");
    }
    assert!(stage.outcome().starts_with("Token budget"), "{}", stage.outcome());
    let (by, budget) = ("alice".to_owned(), Budget { tokens: Some(100_000), ..Budget::default() });
    stage.run_event(RunEvent::Resume { agent: None, by, budget, turns_max: None, text: None });
    while stage.run().outcome().is_none() {
        let name = if stage.run().agents().count() == 1 { "a" } else { "b" };
        stage.say(name, "done");
    }
    assert_eq!(stage.outcome(), "completed, not verified");
}

#[test]
fn a_steps_own_budget_is_for_all_its_attempts() {
    let budget = Budget { tokens: Some(20_000), ..Budget::default() };
    let again = StepPolicy { attempts_max: 2, restarts_max: Some(1), budget, ..step("a", &[]) };
    let mut stage = Stage::start(policy(8, vec![again]));
    stage.say("a", "It doesn't work.\nVERDICT: FAIL");
    stage.tick();
    let left = stage.run().agents().map(|agent| agent.budget.tokens).collect::<Vec<_>>();
    assert_eq!(left, [None, Some(19_900)], "the first one's work is over");
}

#[test]
fn the_runs_time_rests_it_and_more_of_it_goes_on() {
    let mut policy = policy(1, vec![step("a", &[]), step("b", &[])]);
    policy.budget.wall_time_ms = Some(10_000);
    let mut stage = Stage::start(policy);
    stage.tick();
    while stage.run().outcome().is_none() {
        stage.say("a", "so far");
    }
    assert!(stage.outcome().starts_with("Time budget"), "{}", stage.outcome());
    assert_eq!(stage.open, BTreeMap::new());
    let (by, budget) = ("alice".to_owned(), Budget { wall_time_ms: Some(100_000), ..Budget::default() });
    stage.run_event(RunEvent::Resume { agent: None, by, budget, turns_max: None, text: None });
    stage.say("b", "ok");
    stage.say("a", "ok");
    assert_eq!(stage.outcome(), "completed, not verified");
}

#[test]
fn a_crash_at_any_point_loses_nothing() {
    let mut steps = diamond();
    steps[1].attempts_max = 2;
    steps[1].restarts_max = Some(1);
    let moves: [&dyn Fn(&mut Stage); 6] = [
        &|stage| stage.say("a", "A"),
        &|stage| stage.fail("b"),
        &|stage| stage.tick(),
        &|stage| stage.say("c", "C"),
        &|stage| stage.say("b", "B"),
        &|stage| stage.say("d", "D"),
    ];
    for crash_at in 0..moves.len() {
        let mut stage = Stage::start(policy(2, steps.clone()));
        for (place, one) in moves.iter().enumerate() {
            if place == crash_at {
                stage.crash();
            }
            one(&mut stage);
        }
        assert_eq!(stage.outcome(), "completed, not verified", "crashed before {crash_at}");
        assert_eq!(stage.run().agents().count(), 4);
        assert_eq!(stage.open, BTreeMap::new());
    }
}

#[test]
fn a_flow_that_cannot_go_on_fails_instead_of_waiting_for_ever() {
    let stage = Stage::start(policy(8, vec![step("a", &["b"]), step("b", &["a"])]));
    assert_eq!(
        stage.outcome(),
        "a step of the workflow has failed: none of those that are left can be begun"
    );
    let completed = Stage::start(policy(8, vec![]));
    assert_eq!(completed.run().outcome(), Some(&Outcome::UNVERIFIED));
}
