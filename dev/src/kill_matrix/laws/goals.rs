//! Goals: one verdict for each claim, no more answers of judges than requests, and no agent is done without a
//! verdict that its goal is reached.

use std::collections::BTreeMap;

use provost_engine::{Actor, GoalStatus};
use provost_event::{
    Entry, GateEntry, GoalEntry, GoalFinding, GoalState, GoalTrigger, HookDecision, LifecycleEntry, Outcome,
    ResumeCause, SessionId,
};

use super::super::evidence::Evidence;
use super::super::files::lines;
use super::Breaches;

/// A verification: its reason and its turn.
type About = (&'static str, u32);

/// A goal by its log.
#[derive(Default)]
struct GoalRecord {
    generation: u32,
    /// The running verification.
    about: Option<About>,
    /// How often each began, and how often it had a result.
    checks: BTreeMap<About, (usize, usize)>,
    /// Refuted claims since the agent was last resumed.
    rounds: u32,
    finding: Option<GoalFinding>,
    answers: usize,
}

pub(super) fn check(seen: &Evidence, found: &mut Breaches) {
    let mut answers = 0;
    for session in seen.sessions() {
        let Some(goal) = goal_of(seen, session) else { continue };
        answers += check_one(seen, session, &goal, found);
    }
    let asked = lines(&seen.files.judges()).len();
    if asked < answers {
        found.lost(format!("the log has {answers} answers of judges, who were asked {asked} times"));
    }
    if asked > answers + seen.kills {
        found.doubled(format!("judges were asked {asked} times for {answers} answers"));
    }
}

fn goal_of(seen: &Evidence, session: SessionId) -> Option<GoalStatus> {
    let mut actor = Actor::new(session.into());
    seen.logs.get(&session.into())?.iter().try_for_each(|record| actor.replay(record)).ok()?;
    match actor {
        Actor::Session(state) => state.goal(),
        Actor::Run(_) => None,
    }
}

/// Returns the number of judges' answers.
fn check_one(seen: &Evidence, session: SessionId, goal: &GoalStatus, found: &mut Breaches) -> usize {
    let mut told = GoalRecord::default();
    let mut outcome = None;
    for (_, entry) in seen.session(session) {
        if let Entry::Lifecycle(LifecycleEntry::Ended(ended)) = entry {
            outcome = Some(&ended.outcome);
        }
        told.take(session, entry, found);
    }
    for ((trigger, turn), (began, ended)) in &told.checks {
        let what = || format!("{trigger} of {session} about turn {turn}");
        found.one(*began, || format!("verification at {}", what()));
        found.one(*ended, || format!("verdict at {}", what()));
    }
    if goal.rounds != told.rounds {
        found.wrong(format!("{session} counts {} rejected claims of {}", goal.rounds, told.rounds));
    }
    if goal.failures != 0 {
        found.wrong(format!("{session} counts {} failures of judges", goal.failures));
    }
    let is_achieved = matches!(told.finding, Some(GoalFinding::Achieved { .. }));
    let is_completed = matches!(outcome, Some(Outcome::Completed { .. }));
    if is_completed != is_achieved || is_completed != (goal.state == GoalState::Achieved) {
        let state = goal.state.word();
        found.wrong(format!(
            "{session} ends as {outcome:?}, {state}, and the last verdict is {:?}",
            told.finding
        ));
    }
    told.answers
}

impl GoalRecord {
    fn take(&mut self, session: SessionId, entry: &Entry, found: &mut Breaches) {
        match entry {
            Entry::Goal(GoalEntry::CheckStarted(check)) => {
                if check.generation <= self.generation {
                    found.wrong(format!("a verification of {session} has an old generation"));
                }
                self.generation = check.generation;
                let about = (name_of(check.trigger), check.turn);
                self.about = Some(about);
                self.checks.entry(about).or_default().0 += 1;
            }
            Entry::Goal(GoalEntry::Judged(judged)) => {
                self.answers += 1;
                if judged.stale || judged.generation != self.generation {
                    found.wrong(format!("an answer about {session} is for another verification"));
                }
            }
            Entry::Goal(GoalEntry::Verdict(verdict)) => {
                if verdict.generation != self.generation {
                    found.wrong(format!("a verdict about {session} is for another verification"));
                }
                let is_no = matches!(verdict.finding, GoalFinding::NotAchieved { .. });
                self.rounds += u32::from(is_no && verdict.trigger == GoalTrigger::Claim);
                self.finding = Some(verdict.finding.clone());
                self.comes_to_something();
            }
            Entry::Gate(GateEntry::StopChecked(verdicts)) => {
                let blocks =
                    verdicts.reports.iter().any(|report| matches!(report.decision, HookDecision::Deny(_)));
                if blocks {
                    self.comes_to_something();
                }
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(resumed))
                if matches!(resumed.cause, ResumeCause::Asked { .. }) =>
            {
                self.rounds = 0
            }
            _ => {}
        }
    }

    fn comes_to_something(&mut self) {
        if let Some(about) = self.about.take() {
            self.checks.entry(about).or_default().1 += 1;
        }
    }
}

const fn name_of(trigger: GoalTrigger) -> &'static str {
    match trigger {
        GoalTrigger::Claim => "a claim",
        GoalTrigger::Interval => "an interval",
        GoalTrigger::Limit => "a limit",
    }
}
