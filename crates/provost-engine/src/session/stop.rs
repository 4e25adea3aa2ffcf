//! When an agent wishes to stop: the stop hooks decide, and whoever keeps saying no about nothing new ends it.

use provost_event::{
    GoalTrigger, HookMoment, HookSubject, ItemKind, Origin, Outcome, Seq, StopHookVerdict, StopReport,
    StopVerdicts, SystemItem, Verdict, Verification,
};

use super::{Deciding, Phase, SessionState};
use crate::event::StopCheckResult;
use crate::{Effect, StopCheck};

impl Deciding<'_> {
    /// The answer asks for no tool: the agent thinks that it is done.
    pub(super) fn wish_to_stop(&mut self) {
        if self.state.has_hook(HookMoment::TurnEnd) && !self.state.told.turn_end {
            return self.ask(HookSubject::TurnEnd { turn: self.state.next_turn() });
        }
        self.ask_stop_hooks();
    }

    /// The entry just committed names the question; where the claim is to be verified, one that says so does.
    pub(super) fn ask_stop_hooks(&mut self) {
        if self.state.has_goal() && self.state.live_check().is_none() {
            return self.start_check(GoalTrigger::Claim);
        }
        self.put_stop_question();
    }

    /// Asks the stop hooks, if there are any.
    pub(super) fn put_stop_question(&mut self) {
        if !self.state.has_stop_hooks() {
            return self.may_stop(Verification::None);
        }
        let check = StopCheck {
            session: self.state.session,
            turn: self.state.next_turn(),
            tool_calls: self.state.counters.tool_calls,
            final_text: self.state.turn_text.clone(),
            blocked_before: self.state.counters.stop_blocks > 0,
            trigger: self.state.live_check().map_or(GoalTrigger::Claim, |check| check.trigger),
        };
        self.open(Effect::CheckStop(check));
    }

    pub(super) fn stop_checked(&mut self, seq: Seq, result: StopCheckResult) {
        self.step.close(seq);
        let trigger = self.state.live_check().map(|check| check.trigger);
        if let Some(outcome) = self.state.stopping.clone().filter(|_| trigger.is_none()) {
            // Whatever they said, they may have been cut short: a resume asks again.
            return self.rest(outcome);
        }
        let verdicts =
            StopVerdicts { turn: self.state.next_turn(), reports: result.reports, evidence: result.evidence };
        let halt = verdicts.reports.iter().find_map(|report| match &report.verdict {
            StopHookVerdict::Halt(reason) => Some((report.name.clone(), reason.clone())),
            StopHookVerdict::Allow | StopHookVerdict::Block(_) | StopHookVerdict::Error(_) => None,
        });
        let (names, reasons) = self.state.stop_reasons(&verdicts).into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
        let verification = self.state.verification_by(&verdicts);
        self.commit(verdicts);
        let is_wish = matches!(trigger, None | Some(GoalTrigger::Claim));
        match halt {
            Some((hook, reason)) => {
                if is_wish {
                    self.end_turn(0);
                }
                self.rest(Outcome::Aborted { hook, reason });
            }
            None if reasons.is_empty() => self.may_stop(verification),
            None if is_wish => self.blocked(names, reasons),
            // The agent hasn't asked: it goes on as if nobody had.
            None => self.go_on_unfinished(None),
        }
    }

    fn blocked(&mut self, names: Vec<String>, reasons: Vec<String>) {
        let repeated = self.state.block.as_ref().is_some_and(|block| block.times >= 2);
        let body = format!("You can't stop yet. What stands against it:\n\n{}", reasons.join("\n\n"));
        let origin = Origin::StopHooks(names);
        self.commit(SystemItem { item: ItemKind::StopBlocked, body, origin });
        self.end_turn(0);
        if repeated || self.state.counters.stop_blocks >= self.state.limits().stop_blocks_max {
            self.rest(Outcome::Blocked { reasons });
        } else {
            self.next_turn();
        }
    }

    fn may_stop(&mut self, verification: Verification) {
        if self.state.live_check().is_some() { self.ask_judge() } else { self.let_go(verification) }
    }

    /// Nothing stands against the agent's wish to stop; `verification` says what has confirmed that the work is done.
    pub(super) fn let_go(&mut self, verification: Verification) {
        let verdict = Verdict::find(&self.state.turn_text);
        let unheard = self.state.unheard || self.state.has_open_prompts();
        self.end_turn(0);
        if unheard || self.state.works_for_a_person() {
            self.next_turn();
        } else {
            self.rest(Outcome::Completed { verdict, verification });
        }
    }
}

impl SessionState {
    pub(super) fn has_stop_hooks(&self) -> bool {
        let has_own = self.policy.as_ref().is_some_and(|policy| !policy.stop_hooks.is_empty());
        has_own || self.has_hook(HookMoment::stop(self.parent))
    }

    /// What stands against a stop: the hook's name, and its reason with that name, in configured order.
    pub(super) fn stop_reasons(&self, verdicts: &StopVerdicts) -> Vec<(String, String)> {
        let reason = |report: &StopReport| match &report.verdict {
            StopHookVerdict::Block(reason) => Some(format!("{}: {reason}", report.name)),
            StopHookVerdict::Error(why) if self.errors_block() => {
                Some(format!("{}: the check could not be made, so it proves nothing: {why}", report.name))
            }
            StopHookVerdict::Allow | StopHookVerdict::Halt(_) | StopHookVerdict::Error(_) => None,
        };
        verdicts.reports.iter().filter_map(|report| Some((report.name.clone(), reason(report)?))).collect()
    }

    /// What the stop hooks' answers confirm, where nothing of them stands against a stop.
    fn verification_by(&self, verdicts: &StopVerdicts) -> Verification {
        let is_ignored = |report: &&StopReport| matches!(report.verdict, StopHookVerdict::Error(_));
        let ignored = verdicts.reports.iter().filter(is_ignored).map(|report| report.name.clone());
        let checks = ignored.collect::<Vec<_>>();
        match (checks.is_empty(), verdicts.reports.is_empty()) {
            (false, _) => Verification::Ignored { checks },
            (true, false) => Verification::Passed,
            (true, true) => Verification::None,
        }
    }

    /// Whether the effect that entry `seq` opened asks the stop hooks.
    pub(super) fn is_checked_by(&self, seq: Seq) -> bool {
        self.phase == Phase::Wishing(seq) && self.outcome.is_none() && !self.questions.contains_key(&seq)
    }
}
