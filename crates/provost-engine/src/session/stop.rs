//! When an agent wishes to stop: the stop hooks decide, and whoever keeps saying no about nothing new ends it.

use provost_event::{
    HookMoment, HookSubject, ItemKind, Origin, Outcome, Seq, StopHookVerdict, StopVerdicts, SystemItem,
    Verdict,
};

use super::fold::block_reasons;
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

    /// The entry just committed names the question.
    pub(super) fn ask_stop_hooks(&mut self) {
        let asks_none = self.state.policy.as_ref().is_none_or(|policy| policy.stop_hooks.is_empty());
        let moment = HookMoment::stop(self.state.parent);
        if asks_none && !self.state.has_hook(moment) {
            return self.may_stop();
        }
        let check = StopCheck {
            session: self.state.session,
            turn: self.state.next_turn(),
            tool_calls: self.state.counters.tool_calls,
            final_text: self.state.turn_text.clone(),
            blocked_before: self.state.counters.stop_blocks > 0,
        };
        self.open(Effect::CheckStop(check));
    }

    pub(super) fn stop_checked(&mut self, seq: Seq, result: StopCheckResult) {
        self.step.close(seq);
        if let Some(outcome) = self.state.stopping.clone() {
            // Whatever they said, they may have been cut short: a resume asks again.
            return self.rest(outcome);
        }
        let verdicts =
            StopVerdicts { turn: self.state.next_turn(), reports: result.reports, evidence: result.evidence };
        let halt = verdicts.reports.iter().find_map(|report| match &report.verdict {
            StopHookVerdict::Halt(reason) => Some((report.name.clone(), reason.clone())),
            StopHookVerdict::Allow | StopHookVerdict::Block(_) | StopHookVerdict::Error(_) => None,
        });
        let reasons = block_reasons(&verdicts);
        let names = verdicts
            .reports
            .iter()
            .filter(|report| matches!(report.verdict, StopHookVerdict::Block(_)))
            .map(|report| report.name.clone())
            .collect();
        self.commit(verdicts);
        match halt {
            Some((hook, reason)) => {
                self.end_turn(0);
                self.rest(Outcome::Aborted { hook, reason });
            }
            None if reasons.is_empty() => self.may_stop(),
            None => self.blocked(names, reasons),
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

    fn may_stop(&mut self) {
        let verdict = Verdict::find(&self.state.turn_text);
        let unheard = self.state.unheard || self.state.has_open_prompts();
        self.end_turn(0);
        if unheard {
            self.next_turn();
        } else {
            self.rest(Outcome::Completed { verdict });
        }
    }
}

impl SessionState {
    /// Whether the effect that entry `seq` opened asks the stop hooks.
    pub(super) fn is_checked_by(&self, seq: Seq) -> bool {
        self.phase == Phase::Wishing(seq) && self.outcome.is_none() && !self.questions.contains_key(&seq)
    }
}
