//! Decisions of a run, for each event.

use provost_event::{
    Budget, BudgetCharged, BudgetExhausted, BudgetReserved, Certainty, EffectId, Elapsed, Ended, Entry,
    Exhausted, Image, LimitOwner, Outcome, PauseReason, ProcessesLeft, Purpose, ResumeCause, Resumed,
    RunPolicy, RunStarted, Seq, SessionId, SessionStarted, TimeLeft,
};

use super::agents::ROOT;
use super::brief::told_of_goal;
use super::{AgentNumber, Deciding, Refusal, RunState, ledger};
use crate::reminder::reminder_id;
use crate::snapshot;
use crate::step::StepBuilder;
use crate::{Decision, Event, LimitUse, Message, Now, ReserveRequest, RunEvent, SessionEvent, SettleNote};

impl RunState {
    pub(crate) fn decide(&mut self, event: RunEvent, now: Now) -> Decision {
        let timer_before = self.timer;
        let mut deciding = Deciding { state: self, step: StepBuilder::at(now), entropy: now.entropy };
        deciding.on(event);
        deciding.go_on();
        deciding.set_timer(timer_before);
        let decision_time = deciding.step.now();
        let step = deciding.step.finish();
        if self.outcome.is_some() { step } else { snapshot::taken(self, step, decision_time) }
    }
}

impl Deciding<'_> {
    pub(super) fn commit(&mut self, entry: impl Into<Entry>) {
        let entry = entry.into();
        self.state.apply(&entry, self.step.now());
        self.step.entry(entry);
    }

    pub(super) fn tell(&mut self, session: SessionId, event: SessionEvent) {
        self.step.message(Message { to: session.into(), event: Event::Session(event) });
    }

    pub(super) fn root(&self) -> SessionId {
        SessionId::root(self.state.run)
    }

    fn on(&mut self, event: RunEvent) {
        match event {
            RunEvent::Start { goal, images, policy } if self.state.policy.is_none() => {
                self.start(goal, images, *policy);
            }
            RunEvent::Fork(wish) if self.state.policy.is_none() => self.start_fork(*wish),
            _ if self.state.policy.is_none() => {}
            RunEvent::Resume { agent: None | Some(ROOT), by, budget, turns_max, text } => {
                self.resume(by, budget, turns_max, text);
            }
            RunEvent::Retune { model, outage_max_ms, by } => self.retune(model, outage_max_ms, &by),
            RunEvent::ChangePolicy(changed) => self.change_policy(*changed),
            RunEvent::Forked(forked) => self.commit(forked),
            RunEvent::ProcessesLeft => self.commit(ProcessesLeft {}),
            _ if self.state.has_ended() => {}
            RunEvent::Start { .. } | RunEvent::Fork(_) => {}
            RunEvent::Reserve(request) => self.reserve(request),
            RunEvent::Settle(note) => self.settle(note),
            RunEvent::Spawn { parent, call, tool, input } => self.spawn(parent, call, &tool, &input),
            RunEvent::SessionStopped { session, outcome, text, for_child } => {
                self.session_stopped(session, outcome, &text, for_child);
            }
            RunEvent::TimerFired { seq } => self.timer_fired(seq),
            RunEvent::Say { agent, text, by } => self.say(agent, text, by),
            RunEvent::ClearGoal { agent, by } => self.clear_goal(agent, by),
            RunEvent::Pause { agent, by } => {
                let awaited = self.state.trouble_awaited(agent).cloned().map(Box::new);
                let outcome = Outcome::Paused { why: PauseReason::Asked { by, awaited } };
                self.stop(agent, outcome);
            }
            RunEvent::Cancel { agent, by } => self.stop(agent, Outcome::Cancelled { by }),
            RunEvent::Reprioritize { agent, priority, by } => self.reprioritize(agent, priority, by),
            RunEvent::AwaitsProvider(awaited) => self.awaits_provider(*awaited),
            RunEvent::Resume { agent: Some(agent), by, .. } => self.resume_agent(agent, &by),
            RunEvent::Recover { fresh } => self.recover(&fresh),
        }
    }

    fn start(&mut self, goal: String, images: Vec<Image>, policy: RunPolicy) {
        let agent = told_of_goal(policy.agent.clone());
        let has_root = policy.flow.is_none();
        self.commit(RunStarted { goal: goal.clone(), policy });
        if !has_root {
            return;
        }
        let started = SessionStarted {
            goal,
            images,
            policy: agent,
            parent: None,
            depth: 0,
            call: None,
            agent: None,
            worktree: None,
            fork: None,
            reminder_id: reminder_id(self.entropy, self.root().agent),
        };
        self.tell(self.root(), SessionEvent::Start(Box::new(started)));
    }

    /// Sets the timer that the new entries call for, in place of `before`.
    fn set_timer(&mut self, before: Option<(Seq, Elapsed)>) {
        if self.state.timer == before {
            return;
        }
        if let Some((seq, _)) = before {
            self.step.close(seq);
        }
        self.wait_for_timer();
    }

    /// Sets the timer for the time that remains until it is due.
    fn wait_for_timer(&mut self) {
        if let Some((seq, due)) = self.state.timer {
            let now = self.step.now();
            self.step.effect(seq, now.timer(due.since_ms(now.elapsed)));
        }
    }

    fn reserve(&mut self, request: ReserveRequest) {
        if self.state.outcome.is_some() {
            return;
        }
        let ReserveRequest { session, call, purpose, .. } = request;
        if let Some(exhausted) = self.state.time_is_over(session, self.step.now().elapsed) {
            return self.tell(session, SessionEvent::Refused { call, purpose, exhausted, is_judges: false });
        }
        if let Some(output_tokens_max) = self.state.ledger.reserved_output(session, call, purpose) {
            return self.tell_of_reserve(session, call, purpose, output_tokens_max);
        }
        let request = self.state.ledger.calibrated(request);
        match self.state.ledger.fitting_output(self.state.budget, &request) {
            Ok(output_tokens_max) => {
                self.commit(BudgetReserved {
                    session,
                    call,
                    tokens: request.input_tokens.saturating_add(u64::from(output_tokens_max)),
                    cost: ledger::worst_cost(&request, output_tokens_max),
                    output_tokens_max,
                    purpose,
                    turn: request.turn,
                    estimated_tokens: request.estimated_tokens,
                });
                self.tell_of_reserve(session, call, purpose, output_tokens_max);
            }
            Err(Refusal { exhausted, by, is_judges }) => {
                if request.ends_work && !is_judges {
                    let of = by.map(|agent| self.state.agents.session(agent));
                    self.commit(BudgetExhausted { session, of, exhausted });
                }
                self.tell(session, SessionEvent::Refused { call, purpose, exhausted, is_judges });
            }
        }
    }

    fn tell_of_reserve(&mut self, session: SessionId, call: u32, purpose: Purpose, output_tokens_max: u32) {
        let state = &self.state;
        let limits = match purpose {
            Purpose::Turn => state.limits_near(session.agent, self.step.now().elapsed),
            Purpose::Summary | Purpose::FinalSummary | Purpose::Judge => Vec::new(),
        };
        let time_left = state.time_left(session, self.step.now().elapsed);
        let is_last_turn = state.ledger.is_at_last_turn(state.budget, session.agent);
        let reserved =
            SessionEvent::Reserved { call, purpose, output_tokens_max, time_left, limits, is_last_turn };
        self.tell(session, reserved);
    }

    /// A call that was lost to a crash is charged with what was reserved for it.
    fn settle(&mut self, mut note: SettleNote) {
        if note.usage.certainty == Certainty::Unconfirmed
            && let Some((usage, cost)) = self.state.ledger.unconfirmed_usage(note.session, note.call)
        {
            note = SettleNote { usage, cost: note.cost.map(|_| cost), ..note };
        }
        if self.state.ledger.is_reserved(note.session, note.call) {
            self.commit(BudgetCharged {
                session: note.session,
                call: note.call,
                turn: note.turn,
                model: note.model,
                usage: note.usage,
                cost: note.cost,
            });
        }
    }

    fn timer_fired(&mut self, seq: Seq) {
        if self.state.timer.is_none_or(|(timer, _)| timer != seq) || self.state.outcome.is_some() {
            return;
        }
        self.step.close(seq);
        let now = self.step.now().elapsed;
        if self.state.timer.is_some_and(|(_, due)| due > now) {
            // A process that doesn't hold the run can set its timer, but doesn't know how much of the time has
            // passed.
            return self.wait_for_timer();
        }
        if self.state.clock.due().is_some_and(|due| due <= now) {
            self.time_passed();
        }
        for agent in self.state.agents.due_by(now) {
            self.agents_time_passed(agent);
        }
    }

    /// The run's working time is over, and only the final summaries remain; or all of its time is used up.
    fn time_passed(&mut self) {
        let Some(exhausted) = self.state.clock.used(self.step.now().elapsed) else { return };
        if !self.state.clock.winds_down {
            self.commit(BudgetExhausted { session: self.root(), of: None, exhausted });
        }
        let outcome = Outcome::BudgetExhausted(exhausted);
        for agent in self.state.at_work() {
            self.tell(agent, SessionEvent::Stop { outcome: outcome.clone() });
        }
    }

    /// Begins another segment.
    fn resume(&mut self, by: String, budget: Budget, turns_max: Option<u32>, text: Option<String>) {
        if self.state.outcome.is_none() {
            return;
        }
        let reopens = self.state.has_ended();
        let cause = ResumeCause::Asked { by: by.clone() };
        self.commit(Resumed { cause, budget, turns_max, reopens });
        if self.state.flow.is_none() {
            self.tell(self.root(), SessionEvent::Resume { by, turns_max, text, reopens });
        }
    }

    /// Ends the run. A suspended run ends in a segment of its own.
    pub(super) fn end(&mut self, outcome: Outcome) {
        if self.state.outcome.is_some() {
            let cause = ResumeCause::ToEnd;
            self.commit(Resumed { cause, budget: Budget::default(), turns_max: None, reopens: false });
        }
        self.commit(Ended { outcome });
    }

    fn recover(&mut self, fresh: &[EffectId]) {
        if self.state.outcome.is_some() {
            return;
        }
        self.commit(Resumed {
            cause: ResumeCause::Interrupted,
            budget: Budget::default(),
            turns_max: None,
            reopens: false,
        });
        for session in self.state.at_work() {
            let of_it = fresh.iter().filter(|id| id.actor == session.into()).map(|id| id.seq).collect();
            self.tell(session, SessionEvent::Recover { fresh: of_it });
        }
    }
}

impl RunState {
    /// The sessions that are worked on.
    fn at_work(&self) -> Vec<SessionId> {
        let at_work = self.agents.iter().filter(|(_, agent)| agent.is_at_work());
        at_work.map(|(number, _)| self.agents.session(number)).collect()
    }

    /// The remaining time of an agent: the smaller of its own and the run's, if either is limited.
    fn time_left(&self, session: SessionId, now: Elapsed) -> Option<TimeLeft> {
        let own = self.agents.get(session.agent).and_then(|agent| agent.clock.left(now));
        own.into_iter().chain(self.clock.left(now)).reduce(|one, other| TimeLeft {
            work_ms: one.work_ms.min(other.work_ms),
            limit_ms: one.limit_ms.min(other.limit_ms),
        })
    }

    /// For each dimension the limit that is nearest to its end, if at least half of it is used.
    fn limits_near(&self, agent: AgentNumber, now: Elapsed) -> Vec<LimitUse> {
        let mut limits = self.ledger.limits_near(self.budget, agent);
        let own = self.agents.get(agent).and_then(|agent| agent.clock.used(now));
        let run = self.clock.used(now);
        let time = [(own, LimitOwner::Agent), (run, LimitOwner::Run)].into_iter();
        let time = time.filter_map(|(used, owner)| {
            let Exhausted { dimension, used, limit, .. } = used?;
            Some(LimitUse { dimension, used, limit, owner })
        });
        limits.extend(time.max_by_key(LimitUse::percent).filter(|limit| limit.percent() >= LimitUse::NEAR));
        limits
    }

    /// The exhausted time limit for an agent that requests a model call, if its time or the run's is used up.
    fn time_is_over(&self, session: SessionId, now: Elapsed) -> Option<Exhausted> {
        let own = self.agents.get(session.agent).and_then(|agent| agent.clock.over(now));
        self.clock.over(now).or(own)
    }
}
