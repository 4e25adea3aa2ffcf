//! One verification: from its start over the stop hooks and the judges to its result.

use provost_event::{
    Elapsed, GoalCheckStarted, GoalFinding, GoalJudged, GoalTrigger, GoalVerdict, JudgeAnswer, ModelCalled,
    OnHookError, Outcome, Purpose, StopHookVerdict, StopVerdicts, SupervisorError,
};

use super::{Check, Count, GoalLaws, Word};

/// The longest waits: one that a provider asks for, and one of the session's own.
const RETRY_AFTER_MS_MAX: u64 = 600_000;
const WAIT_MS_MAX: u64 = 60_000;

impl GoalLaws {
    pub(super) fn called(&mut self, called: &ModelCalled, now: Elapsed) {
        self.is_interrupted = false;
        self.deadline = called.time_left.map(|left| now.plus_ms(left.work_ms));
        assert_eq!(self.call, None, "a call while a judge is asked");
        if called.purpose == Purpose::Turn {
            self.unheard = false;
            self.disturb("a turn");
        }
        if called.purpose != Purpose::Judge {
            return;
        }
        assert!(self.is_checking(), "a judge is asked about nothing");
        assert_eq!(self.tally(), Count::Open, "a judge is asked what is known");
        let check = self.check.as_ref().expect("it is verified");
        assert!(check.allowed || !self.asks_stop_hooks, "a judge is asked before the stop hooks let it pass");
        assert_eq!(called.turn, check.turn);
        self.call = Some(called.call);
        self.count("judge asked");
    }

    pub(super) fn check_started(&mut self, started: &GoalCheckStarted) {
        assert!(self.is_bound() && self.outcome.is_none(), "there is nothing to verify");
        // The last check at a limit begins anew when the process that called the stop hooks is gone.
        let is_anew = started.trigger == GoalTrigger::Limit && std::mem::take(&mut self.is_interrupted);
        let asks_hooks = self.check.as_ref().is_some_and(|check| {
            check.trigger == GoalTrigger::Limit && !check.allowed && self.asks_stop_hooks
        });
        let is_anew = is_anew && self.is_checking() && asks_hooks;
        assert!(is_anew || !self.is_checking(), "two verifications at once");
        assert_eq!(self.call, None, "the old judge is still asked");
        let newest = self.generations.last().copied().unwrap_or_default();
        assert!(started.generation > newest, "generation {} after {newest}", started.generation);
        match started.trigger {
            GoalTrigger::Claim => {
                assert!(self.claims, "the agent hasn't said that it is done");
                self.claim_checked = Some(self.turns + 1);
                assert!(self.stopping.is_none(), "a claim of an agent that stops");
                assert_eq!(started.turn, self.turns + 1);
            }
            GoalTrigger::Interval => {
                let every = self.goal().verify_every.expect("only where it is wanted");
                assert!(self.turns > 0 && self.turns.is_multiple_of(every), "after {} turns", self.turns);
                assert!(self.has_worked && self.verified_at != Some(self.turns), "again for nothing");
                self.verified_at = Some(self.turns);
            }
            GoalTrigger::Limit => {
                assert!(matches!(self.stopping, Some(Outcome::BudgetExhausted(_))), "no limit ends it");
                assert!(is_anew || !self.checked_at_limit, "twice at one limit");
                assert!(self.has_worked, "nothing new to verify at the limit");
                self.checked_at_limit = true;
            }
        }
        self.waited_ms = 0;
        self.check = Some(Check {
            trigger: started.trigger,
            turn: started.turn,
            generation: started.generation,
            words: self.goal().judges.iter().map(|_| Word::None).collect(),
            allowed: false,
            parsed_badly: false,
            waited: false,
            is_void: false,
        });
        self.count(format!("check at {:?}", started.trigger));
    }

    pub(super) fn stop_hooks_said(&mut self, verdicts: &StopVerdicts) {
        if !self.is_checking() {
            return;
        }
        let errors_block = self.goal().stop_hook_errors == OnHookError::Block;
        let objects = |verdict: &StopHookVerdict| match verdict {
            StopHookVerdict::Allow => false,
            StopHookVerdict::Error(_) | StopHookVerdict::Broken(_) | StopHookVerdict::TimedOut(_) => {
                errors_block
            }
            StopHookVerdict::Block(_) | StopHookVerdict::Halt(_) => true,
        };
        if verdicts.reports.iter().any(|report| objects(&report.stop_verdict())) {
            self.check = None;
            self.count("stop hooks object");
        } else if let Some(check) = &mut self.check {
            check.allowed = true;
        }
    }

    /// The tally of the judges' votes.
    pub(super) fn tally(&self) -> Count {
        let (check, goal) = (self.check.as_ref().expect("it is verified"), self.goal());
        let (mut yes, mut open, mut failed) = (0, 0, 0);
        for word in &check.words {
            match word {
                Word::None => open += 1,
                Word::Failed => failed += 1,
                Word::Said(said) => yes += u32::from(said.achieved && said.confidence >= goal.threshold),
            }
        }
        match goal.agree {
            _ if check.words.is_empty() => Count::Unknown,
            needed if yes >= needed => Count::Yes,
            needed if yes + open + failed < needed => Count::No,
            _ if open > 0 => Count::Open,
            _ => Count::Unknown,
        }
    }

    pub(super) fn judged(&mut self, judged: &GoalJudged) {
        assert_eq!(self.call.take(), Some(judged.call.call), "an answer without a question");
        assert_eq!(judged.stale, !self.is_checking(), "whether it comes too late");
        let goal = self.policy.clone().expect("it has a goal");
        let free_wait = self.free_wait(&judged.answer);
        let check = self.check.as_mut().expect("it was verified when the judge was asked");
        assert_eq!(judged.generation, check.generation);
        if judged.stale {
            self.check = None;
            assert_eq!(judged.wait_ms, None, "there is no wait after a late answer");
            return self.count("stale");
        }
        let place = check.in_turn().expect("a judge is in turn");
        assert_eq!(judged.judge, goal.judges[place].name, "the judge in turn");
        match &judged.answer {
            JudgeAnswer::Verdict(said) => check.words[place] = Word::Said(said.clone()),
            JudgeAnswer::Failed(SupervisorError::Parse(_)) if !check.parsed_badly => {
                check.parsed_badly = true;
                assert_eq!(judged.wait_ms, None, "it is asked once more at once");
                return self.count("parsed badly once");
            }
            JudgeAnswer::Failed(SupervisorError::RateLimited { .. }) if free_wait.is_some() => {
                check.waited = true;
                self.waits(judged, free_wait);
                return self.count("rate limited once");
            }
            JudgeAnswer::Failed(_) => check.words[place] = Word::Failed,
        }
        (check.parsed_badly, check.waited) = (false, false);
        self.judge_is_done(judged);
    }

    /// A judge is done, with or without a vote.
    fn judge_is_done(&mut self, judged: &GoalJudged) {
        if self.tally() != Count::Unknown {
            return assert_eq!(judged.wait_ms, None, "a wait for nothing");
        }
        self.failures += 1;
        self.count("judges failed");
        // Only a claim suspends the session for the judges.
        let is_claim = self.check.as_ref().is_some_and(|check| check.trigger == GoalTrigger::Claim);
        let is_asked_again = is_claim && self.failures < self.goal().failures_max;
        if !(is_asked_again && self.has_time_for(self.own_wait())) {
            return assert_eq!(judged.wait_ms, None, "another wait after {} failures", self.failures);
        }
        self.waits(judged, None);
        self.waited_ms = 0;
        let check = self.check.as_mut().expect("it is verified");
        let failed = check.words.iter_mut().filter(|word| matches!(word, Word::Failed));
        failed.for_each(|word| *word = Word::None);
    }

    /// The wait that a provider may ask for once without a failure.
    pub(super) fn free_wait(&self, answer: &JudgeAnswer) -> Option<u64> {
        let waited = self.check.as_ref().is_none_or(|check| check.waited);
        let JudgeAnswer::Failed(SupervisorError::RateLimited { retry_after_ms }) = answer else {
            return None;
        };
        let wait = retry_after_ms.unwrap_or(self.own_wait());
        (!waited && wait <= RETRY_AFTER_MS_MAX && self.has_time_for(wait)).then_some(wait)
    }

    pub(super) fn has_time_for(&self, wait_ms: u64) -> bool {
        let due = self.answered_at.plus_ms(wait_ms);
        self.deadline.is_none_or(|deadline| due < deadline)
    }

    pub(super) fn own_wait(&self) -> u64 {
        (5_000 << self.waits.min(8)).min(WAIT_MS_MAX)
    }

    fn waits(&mut self, judged: &GoalJudged, wanted: Option<u64>) {
        assert_eq!(judged.wait_ms, Some(wanted.unwrap_or(self.own_wait())), "the wait");
        self.waits += 1;
        self.waited_ms += judged.wait_ms.unwrap_or_default();
        let judges = u64::try_from(self.goal().judges.len()).expect("few");
        let most = judges * RETRY_AFTER_MS_MAX + WAIT_MS_MAX;
        assert!(self.waited_ms <= most, "{} ms of waits for one failure", self.waited_ms);
    }

    pub(super) fn verdict(&mut self, verdict: &GoalVerdict) {
        assert!(self.is_checking() && self.call.is_none(), "a verdict about nothing");
        let tally = self.tally();
        let check = self.check.take().expect("it is verified");
        let known = (check.trigger, check.turn, check.generation);
        assert_eq!((verdict.trigger, verdict.turn, verdict.generation), known);
        match &verdict.finding {
            GoalFinding::Achieved { confidence, reasoning } => {
                assert_eq!(tally, Count::Yes, "achieved, and the judges say otherwise: {:?}", check.words);
                assert!(check.allowed || !self.asks_stop_hooks, "the stop hooks never let it pass");
                assert!(*confidence >= self.goal().threshold && !reasoning.is_empty());
                self.is_proven = !self.unheard && self.prompts.is_empty();
            }
            GoalFinding::NotAchieved { reasoning, .. } => {
                assert_eq!(tally, Count::No, "not achieved, and the judges say otherwise");
                assert!(!reasoning.is_empty());
                self.rounds += u32::from(check.trigger == GoalTrigger::Claim);
                self.must_tell = true;
            }
            GoalFinding::Unverified { why } if tally == Count::Open => {
                let known = ["no budget left", "the judges' part of the run's budget", "it was interrupted"];
                let is_known = known.iter().any(|known| why.contains(known));
                assert!(is_known, "unverified with a judge unasked: {why}");
            }
            GoalFinding::Unverified { .. } => assert_eq!(tally, Count::Unknown, "unverified"),
        }
        if !matches!(verdict.finding, GoalFinding::Unverified { .. }) {
            (self.failures, self.waits) = (0, 0);
        }
        self.has_worked = false;
        self.finding = Some(verdict.finding.clone());
        let word = format!("{:?}", verdict.finding);
        let word = word.split_whitespace().next().unwrap_or_default().to_owned();
        self.count(format!("{word} at {:?}", verdict.trigger));
    }
}
