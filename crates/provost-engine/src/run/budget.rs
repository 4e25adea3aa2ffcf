//! What a run may spend, what it has spent, and how long it was worked on; the answers to its agents' requests for
//! budget.

use provost_event::{
    AgentEntry, Budget, BudgetCharged, BudgetEntry, BudgetExhausted, BudgetReserved, Dimension, Elapsed,
    Entry, Exhausted, LifecycleEntry, LimitOwner, Purpose, Resumed, RunPolicy, RunPolicyChanged, SessionId,
    TimeLeft, Usage,
};
use serde::{Deserialize, Serialize};

use super::AgentNumber;
use super::agents::ROOT;
use super::clock::WorkClock;
use super::ledger::{self, Ledger, Refusal};
use super::lifecycle::SegmentChange;
use crate::{LimitUse, ReserveRequest, SessionEvent, SettleNote};

/// The answer to a request for budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReserveAnswer {
    /// The call has its reservation, with this cap on its output.
    Known(u32),
    /// It gets this one.
    Reserved(BudgetReserved),
    /// There is no budget for it; with the entry on the limit, if the work ends without that budget.
    Refused {
        exhausted: Exhausted,
        /// Only the judges' part of the limit is used up.
        is_judges: bool,
        noted: Option<BudgetExhausted>,
    },
}

/// A call that has its reservation.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReservedCall {
    pub(super) session: SessionId,
    pub(super) call: u32,
    pub(super) purpose: Purpose,
    pub(super) output_tokens_max: u32,
}

/// The time limit of one agent and its run.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentTime<'a> {
    /// The agent's own; absent for an unknown agent.
    pub(super) clock: Option<&'a WorkClock>,
    pub(super) now: Elapsed,
}

/// The budget of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunBudget {
    limits: Budget,
    /// The turn limit of the root agent.
    turns_max: u32,
    ledger: Ledger,
    clock: WorkClock,
}

impl RunBudget {
    pub(super) const fn limits(&self) -> Budget {
        self.limits
    }

    pub(super) const fn turns_max(&self) -> u32 {
        self.turns_max
    }

    pub(super) const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Whether money is limited for the agent: by its own budget, by one above it or by the run's.
    pub(super) fn limits_money(&self, agent: AgentNumber) -> bool {
        self.limits.money.is_some() || self.ledger.limits_money(agent)
    }

    /// Milliseconds worked until `now`.
    pub(super) const fn worked_ms(&self, now: Elapsed) -> u64 {
        self.clock.used_ms(now)
    }

    /// The use of the limit on the run's time, if there is one.
    pub(super) fn time_used(&self, now: Elapsed) -> Option<Exhausted> {
        self.clock.used(now)
    }

    /// Whether the working time is over, and only the final summaries remain.
    pub(super) const fn winds_down(&self) -> bool {
        self.clock.winds_down
    }

    /// When the limit on the run's time next requires an action.
    pub(super) fn due(&self) -> Option<Elapsed> {
        self.clock.due()
    }

    /// The limits that apply once `policy` replaces `old`.
    pub(super) fn limits_under(&self, policy: &RunPolicy, old: Option<&RunPolicy>) -> Budget {
        old.map_or(policy.budget, |old| self.limits.under(old.budget, policy.budget))
    }

    /// The turn limit of the root agent once `policy` replaces `old`.
    pub(super) fn turns_max_under(&self, policy: &RunPolicy, old: Option<&RunPolicy>) -> u32 {
        let new = policy.agent.limits.turns_max;
        if old.is_some_and(|old| old.agent.limits.turns_max == new) { self.turns_max } else { new }
    }

    /// The answer to a request for budget.
    pub(super) fn reserve(&self, request: ReserveRequest, time: AgentTime<'_>) -> ReserveAnswer {
        let session = request.session;
        if let Some(exhausted) = self.time_is_over(time) {
            return ReserveAnswer::Refused { exhausted, is_judges: false, noted: None };
        }
        if let Some(output) = self.ledger.reserved_output(session, request.call, request.purpose) {
            return ReserveAnswer::Known(output);
        }
        let request = self.ledger.calibrated(request);
        match self.ledger.fitting_output(self.limits, &request) {
            Ok(output_tokens_max) => ReserveAnswer::Reserved(BudgetReserved {
                session,
                call: request.call,
                tokens: request.input_tokens.saturating_add(u64::from(output_tokens_max)),
                cost: ledger::worst_cost(&request, output_tokens_max),
                output_tokens_max,
                purpose: request.purpose,
                turn: request.turn,
                estimated_tokens: request.estimated_tokens,
            }),
            Err(Refusal { exhausted, by, is_judges }) => {
                let of = by.map(|agent| SessionId { run: session.run, agent });
                let noted = BudgetExhausted { session, of, exhausted };
                let ends_work = request.ends_work && !is_judges;
                ReserveAnswer::Refused { exhausted, is_judges, noted: ends_work.then_some(noted) }
            }
        }
    }

    /// What the session is told of the reservation for its call.
    pub(super) fn reserved_event(&self, reserved: ReservedCall, time: AgentTime<'_>) -> SessionEvent {
        let ReservedCall { session, call, purpose, output_tokens_max } = reserved;
        let limits = match purpose {
            Purpose::Turn => self.limits_near(session, time),
            Purpose::Summary | Purpose::FinalSummary | Purpose::Judge | Purpose::External | Purpose::Hook => {
                Vec::new()
            }
        };
        let is_last_turn = self.ledger.is_at_last_turn(self.limits, session.agent);
        let time_left = self.time_left(time);
        SessionEvent::Reserved { call, purpose, output_tokens_max, time_left, limits, is_last_turn }
    }

    /// The charge for a call, if that has a reservation. A call that was lost to a crash is charged with what was
    /// reserved for it.
    pub(super) fn charge(&self, mut note: SettleNote) -> Option<BudgetCharged> {
        if note.usage == Usage::unconfirmed()
            && let Some((usage, cost)) = self.ledger.unconfirmed_usage(note.session, note.call, note.purpose)
        {
            note = SettleNote { usage, cost: note.cost.map(|_| cost), ..note };
        }
        let SettleNote { session, call, turn, model, usage, cost, purpose } = note;
        let charged = BudgetCharged { session, call, turn, model, usage, cost, purpose };
        self.ledger.is_reserved(session, call, purpose).then_some(charged)
    }

    /// The limit of tokens or money that an agent has passed, with the agent whose limit it is unless it is the run's.
    pub(super) fn over(&self, agent: AgentNumber) -> Option<(Option<AgentNumber>, Exhausted)> {
        self.ledger.over(self.limits, agent)
    }

    /// The remaining time of an agent: the smaller of its own and the run's, if either is limited.
    fn time_left(&self, time: AgentTime<'_>) -> Option<TimeLeft> {
        let own = time.clock.and_then(|clock| clock.left(time.now));
        own.into_iter().chain(self.clock.left(time.now)).reduce(|one, other| TimeLeft {
            work_ms: one.work_ms.min(other.work_ms),
            limit_ms: one.limit_ms.min(other.limit_ms),
        })
    }

    /// For each dimension the limit that is nearest to its end, if at least half of it is used.
    fn limits_near(&self, session: SessionId, time: AgentTime<'_>) -> Vec<LimitUse> {
        let mut limits = self.ledger.limits_near(self.limits, session.agent);
        let own = time.clock.and_then(|clock| clock.used(time.now));
        let run = self.clock.used(time.now);
        let times = [(own, LimitOwner::Agent), (run, LimitOwner::Run)].into_iter();
        let times = times.filter_map(|(used, owner)| {
            let Exhausted { dimension, used, limit, .. } = used?;
            Some(LimitUse { dimension, used, limit, owner })
        });
        limits.extend(times.max_by_key(LimitUse::percent).filter(|limit| limit.percent() >= LimitUse::NEAR));
        limits
    }

    /// The exhausted time limit for an agent that requests a model call, if its time or the run's is used up.
    fn time_is_over(&self, time: AgentTime<'_>) -> Option<Exhausted> {
        let own = time.clock.and_then(|clock| clock.over(time.now));
        self.clock.over(time.now).or(own)
    }

    /// Applies an entry; `policy` is the run's before it.
    pub(super) fn apply(
        &mut self,
        entry: &Entry,
        policy: Option<&RunPolicy>,
        segment: SegmentChange,
        now: Elapsed,
    ) {
        match entry {
            Entry::Lifecycle(LifecycleEntry::RunStarted(started)) => self.run_started(&started.policy, now),
            Entry::Lifecycle(LifecycleEntry::RunPolicyChanged(changed)) => {
                self.policy_changed(changed, policy)
            }
            Entry::Budget(BudgetEntry::Reserved(reserved)) => self.ledger.reserve(reserved),
            Entry::Budget(BudgetEntry::Charged(charged)) => self.ledger.charge(charged),
            Entry::Budget(BudgetEntry::Exhausted(exhausted)) => {
                self.clock.winds_down |=
                    exhausted.dimension() == Dimension::WallTime && exhausted.of.is_none();
            }
            Entry::Agent(AgentEntry::Spawned(spawned)) => {
                let parent = spawned.parent.map(|parent| parent.agent);
                self.ledger.admit(spawned.child.agent, parent, spawned.brief.budget);
            }
            Entry::Agent(AgentEntry::AskedAgain(asked)) => self.ledger.asked_again(asked.child.agent),
            Entry::Agent(AgentEntry::Suspended(suspended)) => {
                self.ledger.agent_stopped(suspended.child.agent)
            }
            Entry::Agent(AgentEntry::Finished(finished)) => self.ledger.agent_stopped(finished.child.agent),
            Entry::Agent(AgentEntry::RetryScheduled(scheduled)) => {
                self.ledger.agent_stopped(scheduled.agent.agent)
            }
            Entry::Lifecycle(LifecycleEntry::Paused(_) | LifecycleEntry::Ended(_)) => {
                self.clock.stop(now);
                self.ledger.agent_stopped(ROOT);
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => self.resumed(resumed, segment, now),
            _ => {}
        }
    }

    fn run_started(&mut self, policy: &RunPolicy, now: Elapsed) {
        self.limits = policy.budget;
        self.turns_max = policy.agent.limits.turns_max;
        self.clock = WorkClock::limited(self.limits.wall_time_ms);
        self.clock.start(now);
    }

    fn policy_changed(&mut self, changed: &RunPolicyChanged, old: Option<&RunPolicy>) {
        let new = &changed.policy;
        if old.is_some() {
            self.turns_max = self.turns_max_under(new, old);
            self.limits = self.limits_under(new, old);
        }
        self.clock.limit_ms = self.limits.wall_time_ms;
    }

    /// Reservations for calls that no task waits for any more are settled by the sessions themselves.
    fn resumed(&mut self, resumed: &Resumed, segment: SegmentChange, now: Elapsed) {
        if segment != SegmentChange::None {
            self.clock.start(now);
        }
        self.limits = self.limits.changed_by(resumed.budget);
        self.clock.limit_ms = self.limits.wall_time_ms;
        self.turns_max = resumed.turns_max.unwrap_or(self.turns_max);
    }

    /// The run's time counts while its agents do more than wait for a provider.
    pub(super) fn count_work(&mut self, is_worked_on: bool, now: Elapsed) {
        if is_worked_on { self.clock.go_on(now) } else { self.clock.stop(now) }
    }
}
