//! When an agent asks to stop: the stop hooks decide, and a stop hook that repeats its objection without new
//! evidence suspends it.

use std::collections::BTreeMap;

use provost_event::{
    GoalTrigger, HookDecision, HookReport, HookTrigger, ItemKind, OnHookError, Origin, Outcome, Seq,
    StopCheckCutShort, StopHookVerdict, StopVerdicts, SystemItem, Verdict, Verification,
};

use serde::{Deserialize, Serialize};

use super::assignment::Assignment;
use super::{Deciding, Phase, SessionState};
use crate::event::StopCheckResult;
use crate::session::{
    goal::{judge, verify},
    segment,
};
use crate::{Effect, StopCheck};

/// Number of times in a row that a check may give no answer before the agent is suspended.
const UNANSWERED_MAX: u32 = 2;
/// The agent's notice of a check that couldn't be run.
const BROKEN: &str = "this check itself couldn't be run, which says nothing of your work: ";

/// The objections of stop hooks, and the hooks that give no answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StopObjections {
    last: Option<RepeatedObjection>,
    /// For each stop hook whose failure counts, how many times in a row it gave no answer.
    unanswered: BTreeMap<String, u32>,
    /// Attempts to stop that were blocked.
    blocks: u32,
}

/// The last objection of the stop hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RepeatedObjection {
    reasons: Vec<String>,
    evidence: String,
    tool_calls: u32,
    /// How many times in a row it came with the same evidence.
    times: u32,
}

/// A stop hook's objection to a stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Objection {
    hook: String,
    /// The reason, with the hook's name.
    reason: String,
}

/// The effect of stop hooks that give no answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct StopHookLaw<'a> {
    pub(super) assignment: &'a Assignment,
    /// What the goal in force says, in place of the hooks' own policies.
    pub(super) by_goal: Option<OnHookError>,
}

/// What follows objections.
enum AfterObjections {
    /// The agent is told, and continues.
    GoOn,
    /// The agent is suspended, for these reasons.
    Suspend { reasons: Vec<String> },
}

impl StopHookLaw<'_> {
    /// The effect of a missing answer of the hook at this index of the reports.
    fn on_error(&self, place: usize, report: &HookReport) -> OnHookError {
        self.by_goal.unwrap_or_else(|| self.assignment.on_stop_hook_error(place, report))
    }

    /// The objections to a stop, in configured order.
    pub(super) fn objections(&self, verdicts: &StopVerdicts) -> Vec<Objection> {
        let reason = |place: usize, report: &HookReport| match report.stop_verdict() {
            StopHookVerdict::Allow | StopHookVerdict::Halt(_) => None,
            StopHookVerdict::Block(reason) => Some(reason),
            _ if self.on_error(place, report) == OnHookError::Ignore => None,
            StopHookVerdict::Error(why) => Some(why),
            StopHookVerdict::Broken(why) => Some(format!("{BROKEN}{why}")),
            StopHookVerdict::TimedOut(_) => report.decision.failure(),
        };
        let objections = verdicts.reports.iter().enumerate().filter_map(|(place, report)| {
            let reason = reason(place, report)?;
            Some(Objection { hook: report.hook.clone(), reason: format!("{}: {reason}", report.hook) })
        });
        objections.collect()
    }

    /// The hooks whose missing answer counts.
    fn unanswered(&self, verdicts: &StopVerdicts) -> Vec<String> {
        let reports = verdicts.reports.iter().enumerate();
        let counted = reports.filter(|(place, report)| {
            report.stop_verdict().is_unanswered() && self.on_error(*place, report) == OnHookError::Block
        });
        counted.map(|(_, report)| report.hook.clone()).collect()
    }
}

impl Objection {
    /// The message to a person about a check that gave no answer twice in a row; the agent can't repair it.
    fn of_broken_check(&self) -> String {
        let Self { hook, reason } = self;
        let why = reason.strip_prefix(&format!("{hook}: ")).unwrap_or(reason);
        match why.strip_prefix(BROKEN) {
            Some(why) => format!("the check `{hook}` is broken, not the agent's work: {why}"),
            None => format!(
                "the check `{hook}` gave no answer twice in a row, which says nothing of the agent's work: {why}"
            ),
        }
    }
}

impl StopObjections {
    /// The stop hooks have answered an attempt to stop, which came after this number of tool calls.
    pub(super) fn answered(
        &mut self,
        verdicts: &StopVerdicts,
        objections: Vec<Objection>,
        law: StopHookLaw<'_>,
        tool_calls: u32,
    ) {
        let before = std::mem::take(&mut self.unanswered);
        for hook in law.unanswered(verdicts) {
            let times = before.get(&hook).copied().unwrap_or_default().saturating_add(1);
            self.unanswered.insert(hook, times);
        }
        if objections.is_empty() {
            self.last = None;
            return;
        }
        self.blocks = self.blocks.saturating_add(1);
        let reasons = objections.into_iter().map(|objection| objection.reason).collect::<Vec<_>>();
        let is_same = |last: &&RepeatedObjection| {
            last.reasons == reasons && last.evidence == verdicts.evidence && last.tool_calls == tool_calls
        };
        let times = self.last.as_ref().filter(is_same).map_or(1, |last| last.times.saturating_add(1));
        self.last =
            Some(RepeatedObjection { reasons, evidence: verdicts.evidence.clone(), tool_calls, times });
    }

    /// The agent has another goal: what was said of the one before doesn't count.
    pub(super) fn goal_given(&mut self) {
        self.last = None;
        self.unanswered.clear();
    }

    /// The session was resumed by a request.
    pub(super) fn resumed(&mut self) {
        *self = Self::default();
    }

    /// Whether an attempt to stop was blocked before.
    const fn has_blocked(&self) -> bool {
        self.blocks > 0
    }

    /// A hook that repeats its objection without new evidence, or gives no answer, suspends the agent; so do too
    /// many objections.
    fn after(&self, objections: &[Objection], blocks_max: u32) -> AfterObjections {
        let gave_up = |objection: &&Objection| {
            self.unanswered.get(&objection.hook).is_some_and(|times| *times >= UNANSWERED_MAX)
        };
        let broken = objections.iter().filter(gave_up).map(Objection::of_broken_check).collect::<Vec<_>>();
        let is_repeated = self.last.as_ref().is_some_and(|last| last.times >= 2);
        if !broken.is_empty() {
            AfterObjections::Suspend { reasons: broken }
        } else if is_repeated || self.blocks >= blocks_max {
            let reasons = objections.iter().map(|objection| objection.reason.clone()).collect();
            AfterObjections::Suspend { reasons }
        } else {
            AfterObjections::GoOn
        }
    }
}

/// The answer has no tool calls: the agent considers its work done.
pub(in crate::session) fn check_stop(deciding: &mut Deciding<'_>) {
    if deciding.state.hooks.lack_turn_end(&deciding.state.assignment) {
        return deciding.ask(HookTrigger::TurnEnd { turn: deciding.state.turns.next() });
    }
    ask_stop_hooks(deciding);
}

/// Calls the stop hooks for the entry just committed, or begins the verification of the goal, which then calls
/// them.
pub(in crate::session) fn ask_stop_hooks(deciding: &mut Deciding<'_>) {
    if deciding.state.goal.in_force(&deciding.state.assignment).is_some()
        && !deciding.state.goal.is_verified()
    {
        return verify::start_check(deciding, GoalTrigger::Claim);
    }
    put_stop_question(deciding);
}

/// Calls the stop hooks, if there are any.
pub(in crate::session) fn put_stop_question(deciding: &mut Deciding<'_>) {
    if !deciding.state.assignment.has_stop_hooks() {
        return may_stop(deciding, Verification::None);
    }
    let check = StopCheck {
        session: deciding.state.session,
        turn: deciding.state.turns.next(),
        tool_calls: deciding.state.calls.made(),
        final_text: deciding.state.turns.text().to_owned(),
        blocked_before: deciding.state.objections.has_blocked(),
        trigger: deciding.state.goal.live_trigger().unwrap_or(GoalTrigger::Claim),
        limit_ms: deciding.limit_left_ms(),
        shell: deciding.state.calls.shell(&deciding.state.assignment),
        spent: deciding.state.hooks.spent(),
    };
    deciding.open(Effect::CheckStop(check));
}

pub(in crate::session) fn stop_checked(deciding: &mut Deciding<'_>, seq: Seq, result: StopCheckResult) {
    deciding.step.close(seq);
    let trigger = deciding.state.goal.live_trigger();
    if let Some(outcome) = deciding.state.lifecycle.stopping().cloned().filter(|_| trigger.is_none()) {
        // The hooks may have been cut short: they are called again after a resumption.
        deciding.commit(StopCheckCutShort { turn: deciding.state.turns.next(), reports: result.reports });
        return segment::finish(deciding, outcome);
    }
    let verdicts = StopVerdicts {
        turn: deciding.state.turns.next(),
        reports: result.reports,
        evidence: result.evidence,
    };
    let halt = verdicts.reports.iter().find_map(|report| match &report.decision {
        HookDecision::Abort(reason) => Some((report.hook.clone(), reason.clone())),
        _ => None,
    });
    let objections = stop_hook_law(deciding.state).objections(&verdicts);
    let verification = verification_by(&verdicts, &deciding.state.assignment);
    deciding.commit(verdicts);
    let is_wish = matches!(trigger, None | Some(GoalTrigger::Claim));
    match halt {
        Some((hook, reason)) => {
            if is_wish {
                deciding.end_turn(0);
            }
            segment::finish(deciding, Outcome::Aborted { hook, reason });
        }
        None if objections.is_empty() => may_stop(deciding, verification),
        None if is_wish => blocked(deciding, &objections),
        // The agent hasn't asked to stop: it continues as if there had been no check.
        None => verify::go_on_unfinished(deciding, None),
    }
}

fn blocked(deciding: &mut Deciding<'_>, objections: &[Objection]) {
    let after =
        deciding.state.objections.after(objections, deciding.state.assignment.limits().stop_blocks_max);
    let reasons = objections.iter().map(|objection| objection.reason.as_str()).collect::<Vec<_>>();
    let body = format!("You can't stop yet. What stands against it:\n\n{}", reasons.join("\n\n"));
    let origin = Origin::StopHooks(objections.iter().map(|objection| objection.hook.clone()).collect());
    let item = match after {
        AfterObjections::Suspend { .. } => ItemKind::StopSuspended,
        AfterObjections::GoOn => ItemKind::StopBlocked,
    };
    deciding.commit(SystemItem { item, body, origin, rules: Vec::new() });
    deciding.end_turn(0);
    match after {
        AfterObjections::Suspend { reasons } => segment::finish(deciding, Outcome::Blocked { reasons }),
        AfterObjections::GoOn => segment::next_turn(deciding),
    }
}

fn may_stop(deciding: &mut Deciding<'_>, verification: Verification) {
    if deciding.state.goal.is_verified() {
        judge::ask_judge(deciding)
    } else {
        let_go(deciding, verification)
    }
}

/// The agent may stop; `verification` is what has confirmed that the work is done.
pub(in crate::session) fn let_go(deciding: &mut Deciding<'_>, verification: Verification) {
    let verdict = Verdict::find(deciding.state.turns.text());
    let unheard = deciding.state.turns.is_unheard() || deciding.state.hooks.have_prompts();
    deciding.end_turn(0);
    if unheard || (deciding.state.assignment.is_attended() && deciding.state.terminal.is_open()) {
        segment::next_turn(deciding);
    } else {
        segment::finish(deciding, Outcome::Completed { verdict, verification });
    }
}

/// What the stop hooks' answers confirm, if there is no objection to a stop. A hook that no turn waits for confirms
/// nothing: it has only been started.
fn verification_by(verdicts: &StopVerdicts, assignment: &Assignment) -> Verification {
    let counted = verdicts.reports.iter().filter(|report| assignment.waits_for(&report.hook));
    let counted = counted.collect::<Vec<_>>();
    let ignored = counted.iter().filter(|report| report.decision.failure().is_some());
    let checks = ignored.map(|report| report.hook.clone()).collect::<Vec<_>>();
    match (checks.is_empty(), counted.is_empty()) {
        (false, _) => Verification::Ignored { checks },
        (true, false) => Verification::Passed,
        (true, true) => Verification::None,
    }
}

fn stop_hook_law(state: &SessionState) -> StopHookLaw<'_> {
    let by_goal = state.goal.in_force(&state.assignment).map(|goal| goal.stop_hook_errors);
    StopHookLaw { assignment: &state.assignment, by_goal }
}

/// Whether the effect that entry `seq` opened calls the stop hooks.
pub(in crate::session) fn is_checked_by(state: &SessionState, seq: Seq) -> bool {
    state.lifecycle.phase() == Phase::CheckingStop(seq)
        && state.lifecycle.is_live()
        && !state.hooks.is_open(seq)
}
