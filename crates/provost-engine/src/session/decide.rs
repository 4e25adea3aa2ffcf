//! Decisions of a session, for each event.

use provost_event::{
    Block, Ended, Entry, ErrorClass, Exhausted, HookPoint, HookTrigger, HooksAsked, ItemKind, MicroDollars,
    ModelCalled, ModelPolicy, Outcome, Paused, Purpose, ResumeCause, Seq, SessionStarted, StopRequested,
    TimeLeft, TurnEnded, Usage, UserMessage,
};

use super::announce::ReservedLimits;
use super::conversation::{SUMMARY_QUESTION, aside_effort};
use super::goal::KeptBudget;
use super::{Deciding, Phase, SessionState};
use crate::run::DELIVERED;
use crate::{CallModel, Effect, Event, Message, ReserveRequest, RunEvent, SessionEvent, SettleNote};

impl Deciding<'_> {
    pub(super) fn on(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::Start(started) if self.state.lifecycle.phase() == Phase::New => {
                self.start(*started)
            }
            SessionEvent::Fork(fork) if self.state.lifecycle.phase() == Phase::New => self.start_fork(*fork),
            event if self.state.lifecycle.phase() == Phase::New => self.is_missing(event),
            SessionEvent::Resume { by, turns_max, text, reopens } if reopens || !self.state.has_ended() => {
                self.resume(by, turns_max, text);
            }
            SessionEvent::Restart { attempt, attempts_max } => self.restart(attempt, attempts_max),
            SessionEvent::ChangePolicy(changed) => self.change_policy(*changed),
            SessionEvent::Retune { model, outage_max_ms, by } => self.retune(model, outage_max_ms, &by),
            _ if self.state.has_ended() => {}
            SessionEvent::Start(_) | SessionEvent::Fork(_) | SessionEvent::Resume { .. } => {}
            event if self.state.closing().is_some() && !counts_at_the_end(&event) => {}
            SessionEvent::Reserved { call, purpose, output_tokens_max, time_left, limits, is_last_turn } => {
                if self.awaits_budget_for(call, purpose) {
                    let limits = ReservedLimits { limits, is_last_turn };
                    self.reserved(call, output_tokens_max, time_left, &limits);
                }
            }
            SessionEvent::Refused { call, purpose, exhausted, is_judges } => {
                if self.awaits_budget_for(call, purpose) {
                    self.refused_budget(exhausted, is_judges);
                }
            }
            SessionEvent::Answered { seq, answer } => {
                if self.state.lifecycle.phase() == Phase::Thinking(seq) {
                    self.answered(seq, answer);
                }
            }
            SessionEvent::ModelFailed { seq, failure } => {
                if self.state.lifecycle.phase() == Phase::Thinking(seq) {
                    self.model_failed(seq, failure);
                }
            }
            SessionEvent::ToolDone { seq, result } => self.tool_done(seq, result),
            SessionEvent::StopChecked { seq, result } => {
                if self.state.is_checked_by(seq) {
                    self.stop_checked(seq, result);
                }
            }
            SessionEvent::Judged { seq, report } => self.judged(seq, report),
            SessionEvent::ClearGoal { by } => self.clear_goal(by),
            SessionEvent::HooksAnswered { seq, reports, scripts } => self.hooks_said(seq, reports, scripts),
            SessionEvent::WorktreeReady { seq, result } => self.worktree_ready(seq, result),
            SessionEvent::WorktreeChecked { seq, left } => self.worktree_checked(seq, left),
            SessionEvent::Terminal(noted) => self.terminal_noted(*noted),
            SessionEvent::AskWithdrawn { call } => self.ask_withdrawn(&call),
            SessionEvent::TerminalClosed { seq, exit } => self.terminal_closed(seq, exit),
            SessionEvent::Resolve { asked, answer, by } => self.resolve(asked, answer, by),
            SessionEvent::TimerFired { seq } => self.timer_fired(seq),
            SessionEvent::Say { text, by } if self.state.assignment.has_hook(HookPoint::PromptSubmit) => {
                self.ask(HookTrigger::Prompt { text, by });
            }
            SessionEvent::Say { text, by } => {
                self.commit(UserMessage { content: vec![Block::Text(text)], by });
            }
            SessionEvent::Proceed { turn } => self.proceed(turn),
            SessionEvent::Stop { outcome } => self.stop(outcome),
            SessionEvent::SubAgentFinished { started, report } => self.sub_agent_finished(started, report),
            SessionEvent::SubAgentSuspended { started, outcome } => {
                self.sub_agent_suspended(started, outcome)
            }
            SessionEvent::SubAgentResumed { started } => self.sub_agent_resumed(started),
            SessionEvent::YieldSlot { to, grace_ms } => self.yield_slot(to, grace_ms),
            SessionEvent::SlotFree => self.slot_is_free(),
            SessionEvent::Recover { fresh } => self.recover(&fresh),
        }
    }

    /// The session has no log, and an event for it arrived: its run must not wait for it.
    fn is_missing(&mut self, event: SessionEvent) {
        let session = self.state.session;
        let outcome = match event {
            SessionEvent::Stop { outcome } => outcome,
            SessionEvent::Recover { .. } | SessionEvent::Resume { .. } | SessionEvent::Restart { .. } => {
                let message =
                    format!("the log of agent {session} isn't there; import the run from a whole export");
                Outcome::Failed { class: ErrorClass::Storage, message }
            }
            _ => return,
        };
        self.tell_run(RunEvent::SessionStopped { session, outcome, text: String::new(), for_child: false });
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

    fn start(&mut self, started: SessionStarted) {
        self.commit(started);
        self.make_worktree();
        if self.state.lifecycle.phase() == Phase::Ready {
            self.next_call();
        }
    }

    /// Makes the next model call, unless something prevents it.
    pub(super) fn next_call(&mut self) {
        if let Some(outcome) = self.state.lifecycle.stopping().cloned() {
            return self.finish_segment(outcome);
        }
        if self.yielded() {
            return;
        }
        if let Some(exhausted) = self.state.turns.exhausted() {
            return self.finish_segment(Outcome::BudgetExhausted(exhausted));
        }
        self.announce_last_turn();
        // A new message is part of the next call, if hooks accept it.
        if self.state.lifecycle.phase() == Phase::Ready && self.state.hooks.have_prompts() {
            return;
        }
        if self.make_room() {
            return;
        }
        if let Some(about) = self.state.preparation() {
            return self.ask(about);
        }
        self.reserve(Purpose::Turn);
    }

    fn refused_budget(&mut self, exhausted: Exhausted, is_judges: bool) {
        match self.state.next_purpose() {
            Purpose::FinalSummary => self.final_summary_refused(exhausted),
            Purpose::Judge => self.judge_refused(exhausted, is_judges),
            // A summary without budget is skipped.
            Purpose::Summary if self.state.window().can_shorten_by_rule() => {
                if self.shorten_by_rule() {
                    self.next_call();
                }
            }
            Purpose::Summary | Purpose::Turn => self.finish_segment(Outcome::BudgetExhausted(exhausted)),
        }
    }

    pub(super) fn reserve(&mut self, purpose: Purpose) {
        let kept = match purpose {
            Purpose::Judge => KeptBudget::default(),
            _ => self.state.goal.kept_budget(&self.state.assignment),
        };
        let tokens = self.state.reserved_tokens(purpose);
        let request = ReserveRequest {
            session: self.state.session,
            call: self.state.turns.model_calls().saturating_add(1),
            turn: self.state.turn_of(purpose),
            model: self.state.model_of(purpose).map(|model| model.name.clone()).unwrap_or_default(),
            input_tokens: tokens.most,
            estimated_tokens: tokens.estimated,
            is_counted: purpose != Purpose::Judge && self.state.conversation.is_counted(),
            output_tokens_max: self.state.output_tokens_max(purpose),
            price: self.state.model_of(purpose).and_then(|model| model.price),
            // Before its first answer an agent has nothing for a final summary.
            keeps_back: matches!(purpose, Purpose::Turn | Purpose::Summary) && self.state.turns.answers() > 0,
            thinking_tokens: self.state.window().aside_thinking_tokens(),
            kept_tokens: kept.tokens,
            kept_cost: kept.cost,
            judges_percent: self.state.assignment.goal_policy().map_or(100, |policy| policy.budget_percent),
            ends_work: purpose == Purpose::Turn
                || (purpose == Purpose::Judge && self.state.goal.checks_claim()),
            purpose,
        };
        self.tell_run(RunEvent::Reserve(request));
    }

    /// Budget reserved for a judge pays for nothing else, and other budget not for a judge.
    fn awaits_budget_for(&self, call: u32, purpose: Purpose) -> bool {
        let state = &self.state;
        if state.wants_judge() != (purpose == Purpose::Judge) {
            return false;
        }
        call == state.turns.model_calls().saturating_add(1)
            && state.lifecycle.is_live()
            && match state.lifecycle.stopping() {
                _ if state.wants_judge() => true,
                Some(_) => {
                    state.wants_final_summary() && !matches!(state.lifecycle.phase(), Phase::Thinking(_))
                }
                None => matches!(state.lifecycle.phase(), Phase::Ready | Phase::Waiting(_) | Phase::Between),
            }
    }

    fn reserved(
        &mut self,
        call: u32,
        output_tokens_max: u32,
        time_left: Option<TimeLeft>,
        heard: &ReservedLimits,
    ) {
        let purpose = self.state.next_purpose();
        if purpose == Purpose::Turn
            && (self.state.window().is_compaction_due() || self.state.lifecycle.is_yielding())
        {
            // A message arrived after the request for budget.
            return self.next_call();
        }
        if purpose == Purpose::Judge && self.yielded() {
            return;
        }
        if purpose == Purpose::Turn {
            self.announce_limits(heard);
        }
        // The reservation may have been requested for another purpose.
        let output_tokens_max = output_tokens_max.min(self.state.output_tokens_max(purpose));
        self.call_model(purpose, call, output_tokens_max, time_left);
    }

    fn call_model(
        &mut self,
        purpose: Purpose,
        call: u32,
        output_tokens_max: u32,
        time_left: Option<TimeLeft>,
    ) {
        let attempt = self.state.models.next_attempt();
        let answers_before = self.state.turns.answers();
        let turn = self.state.turn_of(purpose);
        let question = self.state.question(purpose);
        self.commit(ModelCalled { turn, call, attempt, purpose, output_tokens_max, time_left });
        if purpose == Purpose::Judge {
            return self.judge(output_tokens_max);
        }
        let view = self.state.conversation.view();
        let (session, through) = (self.state.session, self.state.head);
        let summaries_before = self.state.conversation.summaries();
        let model = self.state.model();
        let name = model.map(|model| model.name.clone()).unwrap_or_default();
        let effort = if purpose == Purpose::Turn {
            model.and_then(|model| model.effort)
        } else {
            model.and_then(aside_effort)
        };
        let patience = self.state.models.patience();
        self.open(Effect::CallModel(CallModel {
            model: name,
            effort,
            patience,
            session,
            turn,
            through,
            view,
            purpose,
            question,
            answers_before,
            summaries_before,
            output_tokens_max,
        }));
    }

    /// Charges the call in flight at the model's price.
    pub(super) fn settle(&mut self, usage: Usage) {
        self.settle_at(usage, None);
    }

    /// Charges the call in flight at `cost`, or at the model's price if that is absent.
    pub(super) fn settle_at(&mut self, usage: Usage, cost: Option<MicroDollars>) {
        let model = self.state.model_of(self.state.turns.purpose());
        let price = model.and_then(|model| model.price);
        let model = model.map(|model| model.name.clone()).unwrap_or_default();
        self.tell_run(RunEvent::Settle(SettleNote {
            session: self.state.session,
            call: self.state.turns.model_calls(),
            turn: self.state.turn_of(self.state.turns.purpose()),
            model,
            usage,
            cost: cost.or_else(|| price.map(|price| price.cost(usage))),
        }));
    }

    fn timer_fired(&mut self, seq: Seq) {
        if self.state.lifecycle.phase() == Phase::Waiting(seq) && self.state.lifecycle.is_live() {
            self.step.close(seq);
            self.try_first_model_again();
            self.next_call();
        } else if self.state.lifecycle.phase() == Phase::JudgeWaits(seq) && self.state.lifecycle.is_live() {
            self.step.close(seq);
            self.go_on_checking();
        } else if self.state.lifecycle.yielding().is_some_and(|yielding| yielding.timer == Some(seq)) {
            self.grace_is_over(seq);
        } else {
            self.approvals_timed_out(seq);
        }
    }

    fn proceed(&mut self, turn: u32) {
        let between = self.state.lifecycle.phase() == Phase::Between && self.state.lifecycle.is_live();
        if between && turn == self.state.turns.next() && !self.looks_at_goal() {
            self.next_call();
        }
    }

    /// Suspends or ends the session, once hooks have been notified. Nothing is in flight any more.
    pub(super) fn finish_segment(&mut self, outcome: Outcome) {
        let outcome = self.state.without_summary(outcome);
        if self.state.closing().is_some()
            || self.ask_final_summary(&outcome)
            || self.checks_at_limit(&outcome)
        {
            return;
        }
        let Some(about) = self.state.closing_trigger(&outcome) else { return self.close_segment(outcome) };
        if let Phase::Waiting(timer) | Phase::JudgeWaits(timer) = self.state.lifecycle.phase() {
            self.step.close(timer);
        }
        if !self.state.lifecycle.stops_as(&outcome) {
            self.commit(StopRequested { agent: None, outcome, for_child: false });
        }
        self.ask(about);
    }

    /// Ends the segment. Calls that stay open in a suspended session get a result when it ends.
    pub(super) fn close_segment(&mut self, outcome: Outcome) {
        if outcome.is_final() {
            self.end_calls();
        }
        if self.closes_terminal(&outcome) || self.asks_about_worktree(&outcome) {
            return;
        }
        self.state.open_effects().into_iter().for_each(|seq| self.step.close(seq));
        self.end_segment(outcome);
    }

    /// Ends a suspended session, in a segment of its own. Nothing is in flight, and there may be no process to
    /// call hooks.
    fn end_suspended(&mut self, outcome: Outcome) {
        self.begin_segment(ResumeCause::ToEnd, None);
        self.end_calls();
        self.end_segment(outcome);
    }

    /// Gives each open call its result.
    fn end_calls(&mut self) {
        if self.state.lifecycle.phase() == Phase::Acting || self.state.stands_aside_of(Phase::Acting) {
            if let Phase::JudgeWaits(timer) = self.state.lifecycle.phase() {
                self.step.close(timer);
            }
            self.cut_delegated();
            self.cancel_calls();
        }
    }

    fn end_segment(&mut self, outcome: Outcome) {
        let for_child = self.state.lifecycle.stops_for_child();
        if outcome.is_final() {
            self.commit(Ended { outcome: outcome.clone() });
        } else {
            self.commit(Paused { outcome: outcome.clone() });
        }
        let (session, text) = (self.state.session, self.state.last_report());
        self.tell_run(RunEvent::SessionStopped { session, outcome, text, for_child });
    }

    pub(super) fn end_turn(&mut self, tool_calls: u32) {
        let turn = self.state.turns.next();
        self.commit(TurnEnded { turn, tool_calls });
    }

    /// After a turn that isn't the last: the next turn, or a wait for the event that allows it.
    pub(super) fn next_turn(&mut self) {
        // A stepped session checks the goal when it is told to take the next turn.
        if self.state.lifecycle.phase() != Phase::Between && self.looks_at_goal() {
            return;
        }
        let makes_way = self.state.lifecycle.phase() == Phase::Between && self.state.lifecycle.is_yielding();
        if self.state.lifecycle.phase() == Phase::Ready || self.state.lifecycle.is_stopping() || makes_way {
            self.next_call();
        }
    }

    pub(super) fn stop(&mut self, outcome: Outcome) {
        if self.state.lifecycle.outcome().is_some() {
            if outcome.is_final() {
                self.end_suspended(outcome);
            }
            return;
        }
        if outcome.is_final() {
            // A repeated stop by a person doesn't wait for the last hooks.
            self.state.closing().into_iter().for_each(|seq| self.step.abort(seq));
        }
        if let (Some(seq), Outcome::BudgetExhausted(exhausted)) = (self.state.ending_at_limit(), &outcome)
            && exhausted.used >= exhausted.limit
        {
            // The time for the final summary and for the last check of the goal is over too.
            self.step.abort(seq);
        }
        if !self.state.lifecycle.accepts_stop(&outcome) {
            return;
        }
        self.commit(StopRequested { agent: None, outcome: outcome.clone(), for_child: false });
        self.stop_asking();
        if self.state.closing().is_some() {
            return;
        }
        match self.state.lifecycle.phase() {
            Phase::Thinking(seq) | Phase::MakingWorktree(seq) | Phase::Judging(seq) => self.step.abort(seq),
            Phase::CheckingStop(seq) if self.state.hooks.is_open(seq) => {}
            Phase::CheckingStop(seq) => self.step.abort(seq),
            Phase::Preparing(seq) | Phase::Compacting(seq) if self.state.hooks.is_open(seq) => {}
            Phase::Preparing(_) | Phase::Compacting(_) => self.finish_segment(outcome),
            Phase::Acting => {
                let running = self.state.calls.running_effects().collect::<Vec<_>>();
                running.into_iter().for_each(|seq| self.step.abort(seq));
                self.advance_calls();
            }
            Phase::New
            | Phase::Ready
            | Phase::Between
            | Phase::Waiting(_)
            | Phase::Verifying
            | Phase::JudgeWaits(_) => self.finish_segment(outcome),
        }
    }

    /// Begins another segment.
    fn resume(&mut self, by: String, turns_max: Option<u32>, text: Option<String>) {
        let Some(before) = self.state.lifecycle.outcome().cloned() else { return };
        self.begin_segment(ResumeCause::Asked { by: by.clone() }, turns_max);
        self.tell_of_end(&before, text.is_some());
        self.tell_of_changed_goal();
        match text {
            // Open questions are asked as soon as the session is resumed.
            Some(text) if self.state.assignment.has_hook(HookPoint::PromptSubmit) => {
                self.commit(HooksAsked { about: HookTrigger::Prompt { text, by } });
            }
            Some(text) => self.commit(UserMessage { content: vec![Block::Text(text)], by }),
            None => {}
        }
        self.go_on_from_phase();
    }

    /// Begins another segment after a failure, within the limits of the previous one.
    fn restart(&mut self, attempt: u32, attempts_max: u32) {
        let Some(before) = self.state.lifecycle.outcome().map(ToString::to_string) else { return };
        let before = before.lines().next().unwrap_or_default();
        self.begin_segment(ResumeCause::Retry { attempt }, None);
        let body = format!(
            "Your work had failed ({before}), and you are restarted: retry {attempt} of {attempts_max}. What you did \
             before still stands, and your limits are the same. Look at how far you came, and go on from there; if what \
             you did led to the failure, do it differently."
        );
        self.say(ItemKind::Resumed, body);
        self.go_on_from_phase();
    }

    /// Tells the agent how its last segment ended, unless it was only suspended.
    fn tell_of_end(&mut self, outcome: &Outcome, is_told_more: bool) {
        if !outcome.is_final() {
            return;
        }
        let body = match outcome {
            Outcome::Completed { .. } if is_told_more => return,
            Outcome::Completed { .. } => {
                "You were done, and have been asked to go on. Look whether everything that was asked for is \
                 done, and do what is missing."
                    .to_owned()
            }
            Outcome::Cancelled { by } if by == DELIVERED => {
                "What you had come to was delivered, and you are asked to go on with it.".to_owned()
            }
            outcome => {
                format!("Your work had ended ({outcome}), and you have been asked to go on with it.")
            }
        };
        self.say(ItemKind::Resumed, &body);
    }
}

impl SessionState {
    /// The turn that a model call belongs to. The final summary opens no turn of its own.
    pub(super) fn turn_of(&self, purpose: Purpose) -> u32 {
        let amid_turn =
            self.lifecycle.before_final_summary().unwrap_or(self.lifecycle.phase()) == Phase::Acting;
        match purpose {
            Purpose::FinalSummary if !amid_turn => self.turns.count().max(1),
            Purpose::Judge => self.goal.live_trigger().map_or(1, |trigger| self.turn_checked(trigger)),
            Purpose::FinalSummary | Purpose::Turn | Purpose::Summary => self.turns.next(),
        }
    }

    /// The extra question to the model.
    pub(super) fn question(&self, purpose: Purpose) -> Option<String> {
        match purpose {
            Purpose::Turn | Purpose::Judge => None,
            Purpose::Summary => Some(SUMMARY_QUESTION.to_owned()),
            Purpose::FinalSummary => Some(self.final_summary_question()),
        }
    }

    /// Maximum tokens of the answer.
    fn output_tokens_max(&self, purpose: Purpose) -> u32 {
        match purpose {
            Purpose::Turn => self.window().answer_tokens_max(),
            Purpose::Summary => self.window().summary_tokens_max(),
            Purpose::FinalSummary => self.window().final_summary_tokens_max(),
            Purpose::Judge => self.judge_in_turn().map_or(0, |judge| judge.output_tokens_max),
        }
    }

    /// The model that is called.
    pub(super) fn model_of(&self, purpose: Purpose) -> Option<&ModelPolicy> {
        match purpose {
            Purpose::Turn | Purpose::Summary | Purpose::FinalSummary => self.model(),
            Purpose::Judge => self.judge_in_turn(),
        }
    }

    /// The purpose of the next model call.
    fn next_purpose(&self) -> Purpose {
        if self.wants_judge() {
            Purpose::Judge
        } else if self.wants_final_summary() {
            Purpose::FinalSummary
        } else if self.window().wants_summary() {
            Purpose::Summary
        } else {
            Purpose::Turn
        }
    }
}

/// Whether an event still counts while the questions before a stop are open.
const fn counts_at_the_end(event: &SessionEvent) -> bool {
    match event {
        SessionEvent::HooksAnswered { .. }
        | SessionEvent::WorktreeChecked { .. }
        | SessionEvent::Terminal(_)
        | SessionEvent::TerminalClosed { .. }
        | SessionEvent::Resolve { .. }
        | SessionEvent::Say { .. }
        | SessionEvent::Retune { .. }
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
        | SessionEvent::ToolDone { .. }
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
