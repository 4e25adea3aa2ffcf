//! When an agent asks to stop: the stop hooks decide, and a stop hook that repeats its objection without new
//! evidence suspends it.

use std::collections::BTreeMap;

use provost_event::{
    GoalTrigger, HookPoint, HookTrigger, ItemKind, OnHookError, Origin, Outcome, Seq, StopCheckCutShort,
    StopHookVerdict, StopReport, StopVerdicts, SystemItem, Verdict, Verification,
};

use super::{Deciding, Phase, SessionState};
use crate::event::StopCheckResult;
use crate::{Effect, StopCheck};

/// Number of times in a row that a check may give no answer before the agent is suspended.
const UNANSWERED_MAX: u32 = 2;
/// The agent's notice of a check that couldn't be run.
const BROKEN: &str = "this check itself couldn't be run, which says nothing of your work: ";

impl Deciding<'_> {
    /// The answer has no tool calls: the agent considers its work done.
    pub(super) fn check_stop(&mut self) {
        if self.state.assignment.has_hook(HookPoint::TurnEnd) && !self.state.told.turn_end {
            return self.ask(HookTrigger::TurnEnd { turn: self.state.next_turn() });
        }
        self.ask_stop_hooks();
    }

    /// Calls the stop hooks for the entry just committed, or begins the verification of the goal, which then calls
    /// them.
    pub(super) fn ask_stop_hooks(&mut self) {
        if self.state.has_goal() && self.state.live_check().is_none() {
            return self.start_check(GoalTrigger::Claim);
        }
        self.put_stop_question();
    }

    /// Calls the stop hooks, if there are any.
    pub(super) fn put_stop_question(&mut self) {
        if !self.state.assignment.has_stop_hooks() {
            return self.may_stop(Verification::None);
        }
        let check = StopCheck {
            session: self.state.session,
            turn: self.state.next_turn(),
            tool_calls: self.state.counters.tool_calls,
            final_text: self.state.turn_text.clone(),
            blocked_before: self.state.counters.stop_blocks > 0,
            trigger: self.state.live_check().map_or(GoalTrigger::Claim, |check| check.trigger),
            limit_ms: self.limit_left_ms(),
        };
        self.open(Effect::CheckStop(check));
    }

    pub(super) fn stop_checked(&mut self, seq: Seq, result: StopCheckResult) {
        self.step.close(seq);
        let trigger = self.state.live_check().map(|check| check.trigger);
        if let Some(outcome) = self.state.stopping.clone().filter(|_| trigger.is_none()) {
            // The hooks may have been cut short: they are called again after a resumption.
            self.commit(StopCheckCutShort { turn: self.state.next_turn(), reports: result.reports });
            return self.finish_segment(outcome);
        }
        let verdicts =
            StopVerdicts { turn: self.state.next_turn(), reports: result.reports, evidence: result.evidence };
        let halt = verdicts.reports.iter().find_map(|report| match &report.verdict {
            StopHookVerdict::Halt(reason) => Some((report.name.clone(), reason.clone())),
            _ => None,
        });
        let (names, reasons) = self.state.stop_reasons(&verdicts).into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
        let verification = verification_by(&verdicts);
        self.commit(verdicts);
        let is_wish = matches!(trigger, None | Some(GoalTrigger::Claim));
        match halt {
            Some((hook, reason)) => {
                if is_wish {
                    self.end_turn(0);
                }
                self.finish_segment(Outcome::Aborted { hook, reason });
            }
            None if reasons.is_empty() => self.may_stop(verification),
            None if is_wish => self.blocked(names, reasons),
            // The agent hasn't asked to stop: it continues as if there had been no check.
            None => self.go_on_unfinished(None),
        }
    }

    fn blocked(&mut self, names: Vec<String>, reasons: Vec<String>) {
        let repeated = self.state.block.as_ref().is_some_and(|block| block.times >= 2);
        let given_up = self.state.given_up_checks(&names, &reasons);
        let suspends = repeated
            || !given_up.is_empty()
            || self.state.counters.stop_blocks >= self.state.assignment.limits().stop_blocks_max;
        let body = format!("You can't stop yet. What stands against it:\n\n{}", reasons.join("\n\n"));
        let origin = Origin::StopHooks(names);
        let item = if suspends { ItemKind::StopSuspended } else { ItemKind::StopBlocked };
        self.commit(SystemItem { item, body, origin });
        self.end_turn(0);
        match suspends {
            true if given_up.is_empty() => self.finish_segment(Outcome::Blocked { reasons }),
            true => self.finish_segment(Outcome::Blocked { reasons: given_up }),
            false => self.next_turn(),
        }
    }

    fn may_stop(&mut self, verification: Verification) {
        if self.state.live_check().is_some() { self.ask_judge() } else { self.let_go(verification) }
    }

    /// The agent may stop; `verification` is what has confirmed that the work is done.
    pub(super) fn let_go(&mut self, verification: Verification) {
        let verdict = Verdict::find(&self.state.turn_text);
        let unheard = self.state.unheard || self.state.has_open_prompts();
        self.end_turn(0);
        if unheard || (self.state.assignment.is_attended() && self.state.terminal.is_open()) {
            self.next_turn();
        } else {
            self.finish_segment(Outcome::Completed { verdict, verification });
        }
    }
}

impl SessionState {
    /// The objections to a stop: the hook's name, and its reason with that name, in configured order.
    pub(super) fn stop_reasons(&self, verdicts: &StopVerdicts) -> Vec<(String, String)> {
        let reason = |place: usize, report: &StopReport| match &report.verdict {
            StopHookVerdict::Allow | StopHookVerdict::Halt(_) => None,
            StopHookVerdict::Block(reason) => Some(reason.clone()),
            _ if self.error_law(place, report) == OnHookError::Ignore => None,
            StopHookVerdict::Error(why) => Some(why.clone()),
            StopHookVerdict::Broken(why) => Some(format!("{BROKEN}{why}")),
            StopHookVerdict::TimedOut(_) => report.verdict.error(),
        };
        let reasons = verdicts.reports.iter().enumerate().filter_map(|(place, report)| {
            let reason = reason(place, report)?;
            Some((report.name.clone(), format!("{}: {reason}", report.name)))
        });
        reasons.collect()
    }

    /// The effect of a missing answer of the hook at this index of the reports. Stop hooks come first, in the
    /// policy's order.
    fn error_law(&self, place: usize, report: &StopReport) -> OnHookError {
        if let Some((goal, _)) = self.bound_by() {
            return goal.stop_hook_errors;
        }
        self.assignment.on_stop_hook_error(place, report)
    }

    /// Counts for each stop hook, of those whose failure counts, how many times in a row it gave no answer when
    /// the agent asked to stop.
    pub(super) fn count_unanswered(&mut self, verdicts: &StopVerdicts) {
        let mut unanswered = BTreeMap::new();
        for (place, report) in verdicts.reports.iter().enumerate() {
            if report.verdict.is_unanswered() && self.error_law(place, report) == OnHookError::Block {
                let before = self.unanswered.get(&report.name).copied().unwrap_or_default();
                unanswered.insert(report.name.clone(), before.saturating_add(1));
            }
        }
        self.unanswered = unanswered;
    }

    /// The message to a person about checks that gave no answer twice in a row; the agent can't repair them.
    fn given_up_checks(&self, names: &[String], reasons: &[String]) -> Vec<String> {
        let is_given_up =
            |name: &String| self.unanswered.get(name).is_some_and(|times| *times >= UNANSWERED_MAX);
        let given_up = names.iter().zip(reasons).filter(|(name, _)| is_given_up(name));
        let told = |(name, reason): (&String, &String)| {
            let why = reason.strip_prefix(&format!("{name}: ")).unwrap_or(reason);
            match why.strip_prefix(BROKEN) {
                Some(why) => format!("the check `{name}` is broken, not the agent's work: {why}"),
                None => format!(
                    "the check `{name}` gave no answer twice in a row, which says nothing of the agent's work: {why}"
                ),
            }
        };
        given_up.map(told).collect()
    }

    /// Whether the effect that entry `seq` opened calls the stop hooks.
    pub(super) fn is_checked_by(&self, seq: Seq) -> bool {
        self.phase == Phase::CheckingStop(seq) && self.outcome.is_none() && !self.questions.contains_key(&seq)
    }
}

/// What the stop hooks' answers confirm, if there is no objection to a stop.
fn verification_by(verdicts: &StopVerdicts) -> Verification {
    let ignored = verdicts.reports.iter().filter(|report| report.verdict.error().is_some());
    let checks = ignored.map(|report| report.name.clone()).collect::<Vec<_>>();
    match (checks.is_empty(), verdicts.reports.is_empty()) {
        (false, _) => Verification::Ignored { checks },
        (true, false) => Verification::Passed,
        (true, true) => Verification::None,
    }
}
