//! Decisions of a run: which part an event is for, and the entries and effects that follow from its answer.

mod changes;
mod starts;
mod stops;

use provost_event::{
    AgentResumeRequested, Budget, BudgetExhausted, EffectId, Ended, Entry, Image, Outcome, PauseReason,
    Priority, ProcessesLeft, ProviderAwaited, Purpose, Reprioritized, ResumeCause, Resumed, RunStarted, Seq,
    SessionId, SessionStarted, StopRequested, Worktree,
};

use super::agent_policy::{told_of_goal, worktree_branch};
use super::agents::{Agent, ROOT, TimeUp};
use super::budget::{AgentTime, ReserveAnswer, ReservedCall};
use super::lifecycle::RunTimer;
use super::requests::AgentCall;
use super::{AgentNumber, RunState};
use crate::decision::DecisionBuilder;
use crate::decision_time::DecisionTime;
use crate::reminder::reminder_id;
use crate::snapshot;
use crate::{
    Decision, Event, ExternalCallRequest, Message, Now, ReserveRequest, RunEvent, SessionEvent, SettleNote,
};
use starts::Starts;
pub(crate) use stops::DELIVERED;
use stops::Stops;

/// One decision in progress.
struct Deciding<'a> {
    state: &'a mut RunState,
    step: DecisionBuilder,
    /// Fresh random bits.
    entropy: u64,
}

impl RunState {
    pub(crate) fn decide(&mut self, event: RunEvent, now: Now) -> Decision {
        let timer_before = self.lifecycle.timer();
        let mut deciding = Deciding { state: self, step: DecisionBuilder::at(now), entropy: now.entropy };
        deciding.on(event);
        deciding.starts().start_all();
        deciding.stops().end_segment();
        deciding.set_timer(timer_before);
        let decision_time = deciding.step.now();
        let step = deciding.step.finish();
        if self.outcome().is_some() { step } else { snapshot::taken(self, step, decision_time) }
    }
}

impl<'a> Deciding<'a> {
    fn commit(&mut self, entry: impl Into<Entry>) {
        let entry = entry.into();
        self.state.apply(&entry, self.step.now());
        self.step.entry(entry);
    }

    fn tell(&mut self, session: SessionId, event: SessionEvent) {
        self.step.message(Message { to: session.into(), event: Event::Session(event) });
    }

    /// Decides which agents begin to work or continue.
    const fn starts(&mut self) -> Starts<'_, 'a> {
        Starts { run: self }
    }

    /// Decides which agents stop, and what follows when they have.
    const fn stops(&mut self) -> Stops<'_, 'a> {
        Stops { run: self }
    }

    const fn now(&self) -> DecisionTime {
        self.step.now()
    }

    fn agent(&self, number: AgentNumber) -> Option<&Agent> {
        self.state.agents.get(number)
    }

    const fn session(&self, number: AgentNumber) -> SessionId {
        SessionId { run: self.state.run, agent: number }
    }

    const fn is_worked_on(&self) -> bool {
        self.state.lifecycle.is_worked_on()
    }

    fn on(&mut self, event: RunEvent) {
        let is_started = self.state.policy.is_started();
        match event {
            RunEvent::Start { goal, images, policy, baseline } if !is_started => {
                self.start(RunStarted { goal, policy: *policy, baseline }, images);
            }
            RunEvent::Fork(request) if !is_started => self.start_fork(*request),
            _ if !is_started => {}
            RunEvent::Resume { agent: None | Some(ROOT), by, budget, turns_max, text } => {
                self.resume(by, budget, turns_max, text);
            }
            RunEvent::Retune { model, outage_max_ms, by } => self.retune(model, outage_max_ms, &by),
            RunEvent::ChangeTools(changed) => self.change_tools(*changed),
            RunEvent::ChangePolicy(changed) => self.change_policy(*changed),
            RunEvent::Forked(forked) => self.commit(forked),
            RunEvent::ProcessesLeft => self.commit(ProcessesLeft {}),
            _ if self.state.has_ended() => {}
            RunEvent::Start { .. } | RunEvent::Fork(_) => {}
            RunEvent::Reserve(request) => self.reserve(request),
            RunEvent::Settle(note) => self.settle(note),
            RunEvent::Spawn { parent, call, tool, input } => {
                self.starts().request(AgentCall { parent, call, tool: &tool, input: &input });
            }
            RunEvent::SessionStopped { session, outcome, text, for_child } => {
                self.stops().session_stopped(session, outcome, &text, for_child);
            }
            RunEvent::TimerFired { seq } => self.timer_fired(seq),
            RunEvent::Say { agent, text, by } => self.say(agent, text, by),
            RunEvent::ClearGoal { agent, by } => self.clear_goal(agent, by),
            RunEvent::Pause { agent, by } => {
                let awaited = self.state.trouble_awaited(agent).cloned().map(Box::new);
                let outcome = Outcome::Paused { why: PauseReason::Asked { by, awaited } };
                self.stops().stop(agent, outcome);
            }
            RunEvent::Cancel { agent, by } => self.stops().stop(agent, Outcome::Cancelled { by }),
            RunEvent::Reprioritize { agent, priority, by } => self.reprioritize(agent, priority, by),
            RunEvent::AwaitsProvider(awaited) => self.awaits_provider(*awaited),
            RunEvent::Resume { agent: Some(agent), by, .. } => self.resume_agent(agent, &by),
            RunEvent::Recover { fresh } => self.recover(&fresh),
        }
    }

    fn start(&mut self, run: RunStarted, images: Vec<Image>) {
        let goal = run.goal.clone();
        let agent = told_of_goal(run.policy.agent.clone());
        let has_root = run.policy.flow.is_none();
        let root = self.session(ROOT);
        let worktree = run.policy.remote.as_ref().map(|remote| Worktree {
            from: remote.copy.clone(),
            branch: worktree_branch(root),
            commit: Some(remote.commit.clone()),
        });
        self.commit(run);
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
            worktree,
            fork: None,
            reminder_id: reminder_id(self.entropy, ROOT),
        };
        self.tell(root, SessionEvent::Start(Box::new(started)));
    }

    /// Sets the timer that the new entries call for, in place of `before`.
    fn set_timer(&mut self, before: Option<RunTimer>) {
        if self.state.lifecycle.timer() == before {
            return;
        }
        if let Some(before) = before {
            self.step.close(before.seq);
        }
        self.wait_for_timer();
    }

    /// Sets the timer for the time that remains until it is due.
    fn wait_for_timer(&mut self) {
        if let Some(timer) = self.state.lifecycle.timer() {
            let now = self.now();
            self.step.effect(timer.seq, now.timer(timer.due.since_ms(now.elapsed)));
        }
    }

    fn reserve(&mut self, request: ReserveRequest) {
        if !self.is_worked_on() {
            return;
        }
        let ReserveRequest { session, call, purpose, .. } = request;
        let external = request.external.clone();
        if let Some(request) = external.as_ref().filter(|request| self.lacks_price(session, request)) {
            let event = SessionEvent::ExternalRefused { request: request.clone(), exhausted: None };
            return self.tell(session, event);
        }
        let answer = self.state.budget.reserve(request, self.time_of(session.agent));
        let output_tokens_max = match answer {
            ReserveAnswer::Known(output_tokens_max) => output_tokens_max,
            ReserveAnswer::Reserved(reserved) => {
                let output_tokens_max = reserved.output_tokens_max;
                self.commit(reserved);
                output_tokens_max
            }
            ReserveAnswer::Refused { exhausted, is_judges, noted } => {
                if let Some(noted) = noted {
                    self.commit(noted);
                }
                let event = match external {
                    Some(request) => SessionEvent::ExternalRefused { request, exhausted: Some(exhausted) },
                    None => SessionEvent::Refused { call, purpose, exhausted, is_judges },
                };
                return self.tell(session, event);
            }
        };
        if let Some(external) = external {
            let event = SessionEvent::ExternalReserved { request: external, number: call, output_tokens_max };
            return self.tell(session, event);
        }
        let reserved = ReservedCall { session, call, purpose, output_tokens_max };
        let event = self.state.budget.reserved_event(reserved, self.time_of(session.agent));
        self.tell(session, event);
    }

    /// Whether money is limited for the session, and the price of this call is unknown, which isn't allowed.
    fn lacks_price(&self, session: SessionId, request: &ExternalCallRequest) -> bool {
        let allowed = self.state.policy.get().is_some_and(|policy| policy.allow_unpriced);
        request.call.price.is_none() && !allowed && self.state.budget.limits_money(session.agent)
    }

    /// The time limits that an agent works under.
    fn time_of(&self, number: AgentNumber) -> AgentTime<'_> {
        AgentTime { clock: self.agent(number).map(Agent::clock), now: self.now().elapsed }
    }

    fn settle(&mut self, note: SettleNote) {
        let session = note.session;
        let is_turn = note.purpose == Purpose::Turn;
        if let Some(charged) = self.state.budget.charge(note) {
            self.commit(charged);
            if is_turn {
                self.stop_over_limit(session);
            }
        }
    }

    /// Stops an external agent that has taken more than a limit: it tells of that when the calls are made, so that none
    /// of them could be refused.
    fn stop_over_limit(&mut self, session: SessionId) {
        let policy = self.state.policies().of(session.agent);
        if policy.is_none_or(|policy| policy.external.is_none()) {
            return;
        }
        let Some((by, exhausted)) = self.state.budget.over(session.agent) else { return };
        let of = by.map(|agent| SessionId { run: session.run, agent });
        self.commit(BudgetExhausted { session, of, exhausted });
        self.tell(session, SessionEvent::Stop { outcome: Outcome::BudgetExhausted(exhausted) });
    }

    fn timer_fired(&mut self, seq: Seq) {
        let timer = self.state.lifecycle.timer().filter(|timer| timer.seq == seq && self.is_worked_on());
        let Some(timer) = timer else { return };
        self.step.close(seq);
        let now = self.now().elapsed;
        if timer.due > now {
            // A process that doesn't hold the run can set its timer, but doesn't know how much of the time has
            // passed.
            return self.wait_for_timer();
        }
        if self.state.budget.due().is_some_and(|due| due <= now) {
            self.time_passed();
        }
        for number in self.state.agents.table().due_by(now) {
            self.agent_time_passed(number);
        }
    }

    /// The run's working time is over, and only the final summaries remain; or all of its time is used up.
    fn time_passed(&mut self) {
        let Some(exhausted) = self.state.budget.time_used(self.now().elapsed) else { return };
        if !self.state.budget.winds_down() {
            self.commit(BudgetExhausted { session: self.session(ROOT), of: None, exhausted });
        }
        let outcome = Outcome::BudgetExhausted(exhausted);
        for agent in self.state.agents.table().sessions_at_work() {
            self.tell(agent, SessionEvent::Stop { outcome: outcome.clone() });
        }
    }

    /// An agent has used up its time, or the wait for its result or for its restart is over.
    fn agent_time_passed(&mut self, number: AgentNumber) {
        const BY_POLICY: &str = "the retry policy";

        let session = self.session(number);
        let time_up = self.agent(number).and_then(|agent| agent.time_up(self.now().elapsed));
        let outcome = match time_up {
            None => return,
            Some(TimeUp::Restarts) => {
                // It continues as soon as there is a slot.
                return self.commit(AgentResumeRequested { child: session, by: BY_POLICY.to_owned() });
            }
            Some(TimeUp::WindsDown(exhausted)) => {
                self.commit(BudgetExhausted { session, of: Some(session), exhausted });
                Outcome::BudgetExhausted(exhausted)
            }
            Some(TimeUp::Stops(outcome)) => {
                let agent = Some(session);
                self.commit(StopRequested { agent, outcome: outcome.clone(), for_child: false });
                outcome
            }
        };
        let below = self.state.agents.table().below(number);
        self.stops().stop_each([number].into_iter().chain(below), &outcome);
    }

    /// Begins another segment.
    fn resume(&mut self, by: String, budget: Budget, turns_max: Option<u32>, text: Option<String>) {
        if self.is_worked_on() {
            return;
        }
        let reopens = self.state.has_ended();
        let cause = ResumeCause::Asked { by: by.clone() };
        self.commit(Resumed { cause, budget, turns_max, reopens });
        if self.state.workflow.steps().is_none() {
            self.tell(self.session(ROOT), SessionEvent::Resume { by, turns_max, text, reopens });
        }
    }

    /// Ends the run. A suspended run ends in a segment of its own.
    fn end(&mut self, outcome: Outcome) {
        if !self.is_worked_on() {
            let cause = ResumeCause::ToEnd;
            self.commit(Resumed { cause, budget: Budget::default(), turns_max: None, reopens: false });
        }
        self.commit(Ended { outcome });
    }

    fn recover(&mut self, fresh: &[EffectId]) {
        if !self.is_worked_on() {
            return;
        }
        self.commit(Resumed {
            cause: ResumeCause::Interrupted,
            budget: Budget::default(),
            turns_max: None,
            reopens: false,
        });
        for session in self.state.agents.table().sessions_at_work() {
            let of_it = fresh.iter().filter(|id| id.actor == session.into()).map(|id| id.seq).collect();
            self.tell(session, SessionEvent::Recover { fresh: of_it });
        }
    }

    fn say(&mut self, number: AgentNumber, text: String, by: String) {
        if self.agent(number).is_some_and(Agent::gets_messages) {
            self.tell(self.session(number), SessionEvent::Say { text, by });
        }
    }

    /// Clears an agent's goal: the agent and all below it are suspended.
    fn clear_goal(&mut self, number: AgentNumber, by: String) {
        let has_begun = self.agent(number).is_some_and(|agent| agent.is_live() && agent.has_begun());
        if has_begun && self.state.policies().of(number).is_some_and(|policy| policy.goal.is_some()) {
            self.tell(self.session(number), SessionEvent::ClearGoal { by });
        }
    }

    /// Resumes a suspended agent and all below it, while the others keep working.
    fn resume_agent(&mut self, number: AgentNumber, by: &str) {
        if !self.is_worked_on() || self.state.is_stopping() {
            return;
        }
        let below = self.state.agents.table().below(number);
        for number in below.into_iter().chain([number]) {
            let live = self.agent(number).filter(|agent| agent.is_live());
            let suspended = live.and_then(Agent::suspended);
            if suspended.is_some_and(|outcome| !outcome.is_preempted()) {
                self.commit(AgentResumeRequested { child: self.session(number), by: by.to_owned() });
                self.tell_of_going_on(number);
            }
        }
    }

    /// Tells the nearest agent above that is at work that a suspended agent below continues.
    fn tell_of_going_on(&mut self, number: AgentNumber) {
        if let Some(above) = self.state.agents.table().nearest_at_work(number) {
            self.tell(above.session, SessionEvent::SubAgentResumed { started: above.call });
        }
    }

    fn reprioritize(&mut self, number: AgentNumber, priority: Priority, by: String) {
        let is_live = self.agent(number).is_some_and(Agent::is_live);
        if is_live && self.state.agents.slots().priority(number) != Some(priority) {
            self.commit(Reprioritized { agent: self.session(number), priority, by });
        }
    }

    fn awaits_provider(&mut self, awaited: ProviderAwaited) {
        if self.is_worked_on() && self.agent(awaited.session.agent).is_some_and(Agent::is_at_work) {
            self.commit(awaited);
        }
    }
}
