//! Decisions by which agents begin to work or continue: requests for them, slots, and preemption.

use provost_event::{AgentSpawned, AgentStarted, AgentYieldRequested, SessionId, SlotAssignment};

use super::Deciding;
use crate::run::AgentNumber;
use crate::run::agents::FirstEvent;
use crate::run::requests::{AgentCall, GrantedRequest, Refused};
use crate::run::spawn::SlotMove;
use crate::{SessionEvent, SubAgentReport};

/// How long an agent that yields may still wait for its model; then that call is cancelled, and made again later.
const PREEMPT_GRACE_MS: u64 = 30_000;

/// Decides which agents begin to work or continue.
pub(super) struct Starts<'d, 'a> {
    pub(super) run: &'d mut Deciding<'a>,
}

impl Starts<'_, '_> {
    /// An agent requests another by a call.
    pub(super) fn request(&mut self, asked: AgentCall<'_>) {
        let AgentCall { parent, call, .. } = asked;
        if self.run.agent(parent.agent).is_none_or(|asking| !asking.may_request(call)) {
            return;
        }
        match self.run.state.requests().grant(asked) {
            Ok(GrantedRequest::New(spawned)) => self.admit(*spawned),
            Ok(GrantedRequest::Again(asked)) => {
                let slot = asked.slot;
                let child = asked.child;
                self.run.commit(asked);
                self.free_slot(slot, child);
            }
            Err(Refused { status, why }) => {
                let report =
                    SubAgentReport { status, text: why, status_line: None, duration_ms: 0, ended: None };
                self.run.tell(parent, SessionEvent::SubAgentFinished { started: call, report });
            }
        }
    }

    /// Adds a new agent.
    fn admit(&mut self, spawned: AgentSpawned) {
        let slot = spawned.slot;
        let child = spawned.child;
        self.run.commit(spawned);
        self.free_slot(slot, child);
    }

    /// Tells the agent that gives its slot to `child` to yield, if there is one.
    fn free_slot(&mut self, slot: SlotAssignment, child: SessionId) {
        if let SlotAssignment::After(victim) = slot {
            self.request_yield(victim, Some(child));
        }
    }

    fn request_yield(&mut self, victim: SessionId, to: Option<SessionId>) {
        self.run.commit(AgentYieldRequested { child: victim, to });
        self.run.tell(victim, SessionEvent::YieldSlot { to, grace_ms: PREEMPT_GRACE_MS });
    }

    /// After each event: begins the steps that can begin, and starts the agents that have got a slot.
    pub(super) fn start_all(&mut self) {
        while self.run.state.may_start()
            && let Some(spawned) = self.run.state.step_briefs().next(self.run.now().elapsed)
        {
            self.admit(spawned);
        }
        while self.run.state.may_start()
            && let Some(next) = self.run.state.agents.slots().next_move()
        {
            match next {
                SlotMove::Leave(number) => self.request_yield(self.run.session(number), None),
                SlotMove::Begin(number) | SlotMove::GoOn(number) => self.work(number),
            }
        }
    }

    /// An agent has its slot.
    fn work(&mut self, number: AgentNumber) {
        let agent = self.run.agent(number);
        let was_suspended = agent.is_some_and(|agent| agent.suspended().is_some());
        let first = agent.and_then(|agent| agent.first_event());
        let child = self.run.session(number);
        self.run.commit(AgentStarted { child });
        if was_suspended {
            self.run.tell_of_going_on(number);
        }
        let event = match first {
            None => return,
            Some(FirstEvent::Start) => match self.run.state.policies().opening(number, self.run.entropy) {
                Some(started) => SessionEvent::Start(Box::new(started)),
                None => return,
            },
            Some(FirstEvent::SlotFree) => SessionEvent::SlotFree,
            Some(FirstEvent::Resume) => SessionEvent::Resume {
                by: self.run.state.agents.resumed_by().to_owned(),
                turns_max: None,
                text: None,
                reopens: false,
            },
            Some(FirstEvent::Restart { attempt, attempts_max }) => {
                SessionEvent::Restart { attempt, attempts_max }
            }
            Some(FirstEvent::Request(request)) => request.into_event(),
        };
        self.run.tell(child, event);
    }
}
