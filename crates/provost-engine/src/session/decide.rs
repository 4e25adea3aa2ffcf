//! Passes each event of a session to the part that it concerns.

use provost_event::{
    Block, Entry, ErrorClass, HookPoint, HookTrigger, HooksAsked, ItemKind, MicroDollars, Origin, Outcome,
    Purpose, Seq, SystemItem, TurnEnded, Usage, UserMessage,
};

use super::announce::ReservedLimits;
use super::{Deciding, Phase};
use crate::session::{
    answer,
    calls::{approve, delegate, run},
    change, external_calls, folder_rules, fork,
    goal::{judge, verify},
    hooks::{ask, decisions},
    model_call, models, recover, segment, services, stop, terminal, worktree, yielding,
};
use crate::{Effect, Event, HookCall, Message, RunEvent, SessionEvent, SettleNote};

impl Deciding<'_> {
    pub(super) fn say(&mut self, item: ItemKind, body: impl Into<String>) {
        self.commit(SystemItem { item, body: body.into(), origin: Origin::Engine, rules: Vec::new() });
    }

    /// The remaining time of the limit that applies to the agent, if any.
    pub(super) fn limit_left_ms(&self) -> Option<u64> {
        Some(self.state.turns.limit_ends()?.since_ms(self.step.now().elapsed))
    }

    pub(super) fn commit(&mut self, entry: impl Into<Entry>) {
        let entry = entry.into();
        self.state.apply(&entry, self.step.now());
        self.step.entry(entry);
    }

    /// The entry just committed opens an effect.
    pub(super) fn open(&mut self, effect: Effect) {
        self.step.effect(self.state.head, effect);
    }

    pub(super) fn tell_run(&mut self, event: RunEvent) {
        self.step.message(Message { to: self.state.session.run.into(), event: Event::Run(event) });
    }

    /// Charges the call in flight at the model's price.
    pub(super) fn settle(&mut self, usage: Usage) {
        self.settle_at(usage, None);
    }

    /// Charges the call in flight at `cost`, or at the model's price if that is absent. A call that took no tokens
    /// cost nothing, whatever the price; what an external agent's own calls cost is unknown, unless they pass the
    /// gateway, which has charged them.
    pub(super) fn settle_at(&mut self, usage: Usage, cost: Option<MicroDollars>) {
        let model = model_call::model_of(self.state, self.state.turns.purpose());
        let price = model.and_then(|model| model.price);
        let model = model.map(|model| model.name.clone()).unwrap_or_default();
        let is_external = self.state.assignment.is_external() && !self.state.assignment.is_metered();
        let took_nothing = usage == Usage::default() && !is_external;
        let nothing = took_nothing.then_some(MicroDollars(0));
        self.tell_run(RunEvent::Settle(SettleNote {
            session: self.state.session,
            call: self.state.turns.model_calls(),
            turn: model_call::turn_of(self.state, self.state.turns.purpose()),
            model,
            usage,
            cost: cost.or_else(|| price.map(|price| price.cost(usage))).or(nothing),
            purpose: Purpose::Turn,
        }));
    }

    pub(super) fn end_turn(&mut self, tool_calls: u32) {
        let turn = self.state.turns.next();
        self.commit(TurnEnded { turn, tool_calls });
    }

    /// Calls the hooks for `about`. While the session is suspended the question is only recorded, and asked when
    /// the session is resumed.
    pub(super) fn ask(&mut self, about: HookTrigger) {
        self.commit(HooksAsked { about });
        if self.state.lifecycle.is_live() {
            self.open_question(self.state.head);
        }
    }

    /// Calls the hooks for the question of entry `seq`.
    pub(super) fn open_question(&mut self, seq: Seq) {
        let Some(about) = self.state.hooks.get(seq).cloned() else { return };
        let details = ask::details(self.state, &about);
        self.step.effect(
            seq,
            Effect::AskHooks(HookCall {
                session: self.state.session,
                turn: self.state.turns.next(),
                about,
                details,
                limit_ms: self.limit_left_ms(),
                shell: self.state.calls.shell(&self.state.assignment),
                spent: self.state.hooks.spent(),
            }),
        );
    }
}

/// Decides on an event.
pub(super) fn on(deciding: &mut Deciding<'_>, event: SessionEvent) {
    match event {
        SessionEvent::Start(started) if deciding.state.lifecycle.is_new() => {
            segment::start(deciding, *started);
        }
        SessionEvent::Fork(fork) if deciding.state.lifecycle.is_new() => fork::start(deciding, *fork),
        event if deciding.state.lifecycle.is_new() => is_missing(deciding, event),
        SessionEvent::Resume { by, turns_max, text, reopens } if reopens || !deciding.state.has_ended() => {
            segment::resume(deciding, by, turns_max, text);
        }
        SessionEvent::Restart { attempt, attempts_max } => segment::restart(deciding, attempt, attempts_max),
        SessionEvent::ChangePolicy(changed) => change::change_policy(deciding, *changed),
        SessionEvent::ChangeTools(changed) => change::change_tools(deciding, &changed),
        SessionEvent::Retune { model, outage_max_ms, by } => {
            models::retune(deciding, model, outage_max_ms, &by);
        }
        SessionEvent::ServiceNoted(noted) => services::noted(deciding, *noted),
        _ if deciding.state.has_ended() => {}
        event if deciding.state.closing().is_some() && !counts_at_the_end(&event) => {}
        event => within_segment(deciding, event),
    }
}

/// Decides on an event of a session that has begun and not ended.
fn within_segment(deciding: &mut Deciding<'_>, event: SessionEvent) {
    match event {
        SessionEvent::Reserved { call, purpose, output_tokens_max, time_left, limits, is_last_turn } => {
            if model_call::awaits_budget_for(deciding, call, purpose) {
                let limits = ReservedLimits { limits, is_last_turn };
                model_call::reserved(deciding, call, output_tokens_max, time_left, &limits);
            }
        }
        SessionEvent::Refused { call, purpose, exhausted, is_judges } => {
            if model_call::awaits_budget_for(deciding, call, purpose) {
                model_call::refused_budget(deciding, exhausted, is_judges);
            }
        }
        SessionEvent::Answered { seq, answer } => {
            if deciding.state.lifecycle.phase() == Phase::Thinking(seq) {
                answer::answered(deciding, seq, answer);
            }
        }
        SessionEvent::ModelFailed { seq, failure } => {
            if deciding.state.lifecycle.phase() == Phase::Thinking(seq) {
                answer::model_failed(deciding, seq, failure);
            }
        }
        SessionEvent::ToolDone { seq, result } => run::tool_done(deciding, seq, result),
        SessionEvent::RulesFound(rules) => folder_rules::found(deciding, rules),
        SessionEvent::StopChecked { seq, result } => {
            if stop::is_checked_by(deciding.state, seq) {
                stop::stop_checked(deciding, seq, result);
            }
        }
        SessionEvent::Judged { seq, report } => judge::judged(deciding, seq, report),
        SessionEvent::ClearGoal { by } => verify::clear_goal(deciding, by),
        SessionEvent::HooksAnswered { seq, reports, scripts } => {
            decisions::hooks_said(deciding, seq, reports, scripts)
        }
        SessionEvent::HookSaid { .. } => decisions::said_later(deciding, event),
        SessionEvent::WorktreeReady { seq, result } => worktree::ready(deciding, seq, result),
        SessionEvent::WorktreeChecked { seq, left } => worktree::checked(deciding, seq, left),
        SessionEvent::ExternalCall(_)
        | SessionEvent::ExternalReserved { .. }
        | SessionEvent::ExternalRefused { .. }
        | SessionEvent::ExternalAnswered(_) => external_calls::on(deciding, event),
        SessionEvent::Terminal(noted) => terminal::noted(deciding, *noted),
        SessionEvent::AskWithdrawn { call } => terminal::ask_withdrawn(deciding, &call),
        SessionEvent::TerminalClosed { seq, exit } => terminal::closed(deciding, seq, exit),
        SessionEvent::Resolve { asked, answer, by } => approve::resolve(deciding, asked, answer, by),
        SessionEvent::TimerFired { seq } => timer_fired(deciding, seq),
        SessionEvent::Say { text, by } => say(deciding, text, by),
        SessionEvent::Proceed { turn } => segment::proceed(deciding, turn),
        SessionEvent::Stop { outcome } => segment::stop(deciding, outcome),
        SessionEvent::SubAgentFinished { started, report } => {
            delegate::sub_agent_finished(deciding, started, report)
        }
        SessionEvent::SubAgentSuspended { started, outcome } => {
            delegate::sub_agent_suspended(deciding, started, outcome)
        }
        SessionEvent::SubAgentResumed { started } => delegate::sub_agent_resumed(deciding, started),
        SessionEvent::YieldSlot { to, grace_ms } => yielding::yield_slot(deciding, to, grace_ms),
        SessionEvent::SlotFree => yielding::slot_is_free(deciding),
        SessionEvent::Recover { fresh } => recover::recover(deciding, &fresh),
        SessionEvent::Start(_)
        | SessionEvent::Fork(_)
        | SessionEvent::Resume { .. }
        | SessionEvent::Restart { .. }
        | SessionEvent::ChangePolicy(_)
        | SessionEvent::ChangeTools(_)
        | SessionEvent::ServiceNoted(_)
        | SessionEvent::Retune { .. } => {}
    }
}

/// A message arrived; hooks may refuse it.
fn say(deciding: &mut Deciding<'_>, text: String, by: String) {
    if deciding.state.assignment.has_hook(HookPoint::PromptSubmit) {
        deciding.ask(HookTrigger::Prompt { text, by });
    } else {
        deciding.commit(UserMessage { content: vec![Block::Text(text)], by });
    }
}

/// The session has no log, and an event for it arrived: its run must not wait for it.
fn is_missing(deciding: &mut Deciding<'_>, event: SessionEvent) {
    let session = deciding.state.session;
    let outcome = match event {
        SessionEvent::Stop { outcome } => outcome,
        SessionEvent::Recover { .. } | SessionEvent::Resume { .. } | SessionEvent::Restart { .. } => {
            let message =
                format!("the log of agent {session} isn't there; import the run from a whole export");
            Outcome::Failed { class: ErrorClass::Storage, message }
        }
        _ => return,
    };
    deciding.tell_run(RunEvent::SessionStopped { session, outcome, text: String::new(), for_child: false });
}

fn timer_fired(deciding: &mut Deciding<'_>, seq: Seq) {
    if deciding.state.lifecycle.phase() == Phase::Waiting(seq) && deciding.state.lifecycle.is_live() {
        deciding.step.close(seq);
        models::try_first_model_again(deciding);
        model_call::next_call(deciding);
    } else if deciding.state.lifecycle.phase() == Phase::JudgeWaits(seq) && deciding.state.lifecycle.is_live()
    {
        deciding.step.close(seq);
        verify::go_on_checking(deciding);
    } else if deciding.state.lifecycle.yielding().is_some_and(|yielding| yielding.timer == Some(seq)) {
        yielding::grace_is_over(deciding, seq);
    } else if deciding.state.external_calls.timer() == Some(seq) {
        external_calls::grace_is_over(deciding);
    } else {
        approve::approvals_timed_out(deciding, seq);
    }
}

/// Whether an event still counts while the questions before a stop are open.
const fn counts_at_the_end(event: &SessionEvent) -> bool {
    match event {
        SessionEvent::HooksAnswered { .. }
        | SessionEvent::WorktreeChecked { .. }
        | SessionEvent::Terminal(_)
        | SessionEvent::ExternalAnswered(_)
        | SessionEvent::TerminalClosed { .. }
        | SessionEvent::Resolve { .. }
        | SessionEvent::Say { .. }
        | SessionEvent::Retune { .. }
        | SessionEvent::ChangeTools(_)
        | SessionEvent::ServiceNoted(_)
        | SessionEvent::Stop { .. }
        | SessionEvent::SubAgentFinished { .. }
        | SessionEvent::ClearGoal { .. }
        | SessionEvent::Recover { .. } => true,
        SessionEvent::Start(_)
        | SessionEvent::Fork(_)
        | SessionEvent::Reserved { .. }
        | SessionEvent::Refused { .. }
        | SessionEvent::Answered { .. }
        | SessionEvent::ModelFailed { .. }
        | SessionEvent::AskWithdrawn { .. }
        | SessionEvent::ExternalCall(_)
        | SessionEvent::ExternalReserved { .. }
        | SessionEvent::ExternalRefused { .. }
        | SessionEvent::ToolDone { .. }
        | SessionEvent::RulesFound(_)
        | SessionEvent::HookSaid { .. }
        | SessionEvent::StopChecked { .. }
        | SessionEvent::Judged { .. }
        | SessionEvent::WorktreeReady { .. }
        | SessionEvent::TimerFired { .. }
        | SessionEvent::Proceed { .. }
        | SessionEvent::SubAgentSuspended { .. }
        | SessionEvent::SubAgentResumed { .. }
        | SessionEvent::YieldSlot { .. }
        | SessionEvent::SlotFree
        | SessionEvent::Restart { .. }
        | SessionEvent::ChangePolicy(_)
        | SessionEvent::Resume { .. } => false,
    }
}
