//! Calls hooks, typed ones and programs: which are called, in which order, and what counts as no answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::join_all;
use provost_event::{HookContract, HookDecision, HookPoint, HookPolicy, HookReport, OnFailure};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tracing::field::Empty;

use super::reminders::HookInvocation;
use super::{HookRegistry, REMINDERS_MAX, TaskReminders, WORDS_BYTES_MAX};
use crate::spans::{self, span};
use crate::{Clock, HookAnswer, HookPrograms, HookQuestion, HookQuestionTrigger};

/// How much longer than its own timeout a program is waited for: it enforces the timeout itself, and reports it.
const ENDING_MAX: Duration = Duration::from_secs(5);
/// How long it is waited for after its cancellation: killing its processes may take 14 s, and then it reports what
/// is left.
const ENDED_MAX: Duration = Duration::from_secs(15);
/// Marks a cut text.
const CUT: &str = " […]";

/// One question, and what is needed to ask it.
#[derive(Clone, Copy)]
pub(crate) struct Dispatch<'a> {
    /// The policy's hooks, in its order.
    pub(crate) hooks: &'a [HookPolicy],
    /// The embedding program's hooks.
    pub(crate) registry: &'a HookRegistry,
    /// The hooks that are programs.
    pub(crate) programs: &'a dyn HookPrograms,
    pub(crate) question: &'a Arc<HookQuestion>,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) cancel: &'a CancellationToken,
}

/// A hook, its position in the policy, and its report.
struct AnsweredHook<'a> {
    place: usize,
    hook: &'a HookPolicy,
    report: HookReport,
}

impl<'a> Dispatch<'a> {
    /// Calls hooks in order, up to the first that decides. Hooks with other programs' contracts have no order among
    /// themselves: all of them start at the position of the first, and all reports count.
    pub(crate) async fn all(self) -> Vec<HookReport> {
        let mut heard = Vec::new();
        let mut foreign_asked = false;
        for (place, hook) in self.meant() {
            let news = match hook.contract {
                HookContract::Provost => self.one(place, hook).await.into_iter().collect(),
                HookContract::Claude | HookContract::Codex if foreign_asked => continue,
                HookContract::Claude | HookContract::Codex => {
                    foreign_asked = true;
                    self.side_by_side(self.foreign_hooks().into_iter()).await
                }
            };
            let stops = news.iter().any(AnsweredHook::stops);
            heard.extend(news);
            if stops {
                break;
            }
        }
        let points = points(self.question);
        let point = |heard: &AnsweredHook<'_>| points.iter().position(|point| *point == heard.hook.point);
        heard.sort_by_key(|heard| (point(heard), heard.place));
        heard.into_iter().map(|heard| heard.report).collect()
    }

    /// Calls all hooks in parallel, regardless of each other's decisions; returned in the policy's order, with
    /// their hooks.
    pub(crate) async fn everybody(self) -> Vec<(&'a HookPolicy, HookReport)> {
        let foreign = self.foreign_hooks();
        let once = |(place, hook): &(usize, &HookPolicy)| {
            !hook.contract.is_foreign() || foreign.iter().any(|(chosen, _)| chosen == place)
        };
        let heard = self.side_by_side(self.meant().filter(once)).await;
        heard.into_iter().map(|heard| (heard.hook, heard.report)).collect()
    }

    /// The hooks at the question's hook points, point by point, with their positions in the policy.
    fn meant(&self) -> impl Iterator<Item = (usize, &'a HookPolicy)> + use<'a> {
        let (question, hooks) = (self.question, self.hooks);
        let is_asked = |hook: &HookPolicy| match &question.trigger {
            HookQuestionTrigger::HookCall(hook_call) => {
                hook.is_asked(&hook_call.about, question.agent.parent)
                    && !hook_call.spent.contains(&hook.name)
            }
            HookQuestionTrigger::Stop(check) => !check.spent.contains(&hook.name),
        };
        let of = move |point: HookPoint| {
            let all = hooks.iter().enumerate();
            all.filter(move |(_, hook)| hook.point == point && is_asked(hook))
        };
        points(question).iter().flat_map(move |point| of(*point))
    }

    /// The selected hooks with other programs' contracts. By Claude Code's the same program is called once, however
    /// often it is configured.
    fn foreign_hooks(&self) -> Vec<(usize, &'a HookPolicy)> {
        let mut chosen: Vec<(usize, &HookPolicy)> = Vec::new();
        for (place, hook) in self.meant().filter(|(_, hook)| hook.contract.is_foreign()) {
            let same = |(_, other): &(usize, &HookPolicy)| {
                hook.contract == HookContract::Claude
                    && other.contract == hook.contract
                    && other.point == hook.point
                    && other.program == hook.program
                    && other.setup == hook.setup
                    && hook.program.is_some()
            };
            if !chosen.iter().any(same) && (hook.program.is_none() || self.wants(hook)) {
                chosen.push((place, hook));
            }
        }
        chosen
    }

    async fn side_by_side(
        &self,
        hooks: impl Iterator<Item = (usize, &'a HookPolicy)>,
    ) -> Vec<AnsweredHook<'a>> {
        let heard = join_all(hooks.map(|(place, hook)| self.one(place, hook))).await;
        heard.into_iter().flatten().collect()
    }

    /// One hook's report; `None` if it isn't selected.
    async fn one(&self, place: usize, hook: &'a HookPolicy) -> Option<AnsweredHook<'a>> {
        if hook.program.is_some() && !self.wants(hook) {
            return None;
        }
        // A hook's duration decides nothing, and most are shorter than the resolution of the harness's clock.
        let started = Instant::now();
        let span = span!("hook.call", hook = hook.name, point = hook.point.name(), decision = Empty);
        let answer = if self.cancel.is_cancelled() {
            cancelled()
        } else if hook.program.is_some() {
            self.program(hook).instrument(span.clone()).await
        } else {
            self.typed(hook).instrument(span.clone()).await
        };
        let duration_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let HookAnswer { decision, reminders, note, replacement } = bounded(answer, hook);
        span.record("decision", spans::decision(&decision));
        let (name, point) = (hook.name.clone(), hook.point);
        let report = HookReport { hook: name, point, decision, reminders, note, replacement, duration_us };
        Some(AnsweredHook { place, hook, report })
    }

    async fn typed(&self, hook: &HookPolicy) -> HookAnswer {
        let Some(typed) = self.registry.get(hook) else {
            return broken("the program that runs this agent doesn't have this hook");
        };
        let reminders = hook.may_remind.then(TaskReminders::default);
        let asked = HookInvocation { question: self.question.clone(), reminders };
        let mut answer = pin!(AssertUnwindSafe(typed.ask(&asked)).catch_unwind());
        // Most return without waiting: those need no timer.
        let decided = match futures::poll!(answer.as_mut()) {
            Poll::Ready(decided) => decided,
            Poll::Pending => tokio::select! {
                biased;
                decided = answer => decided,
                () = self.cancel.cancelled() => return cancelled(),
                () = self.clock.sleep(Duration::from_millis(hook.timeout_ms)) => return late(hook),
            },
        };
        let decision = match decided {
            Ok(Some(decision)) => decision,
            Ok(None) => return failed("what it is asked about isn't there"),
            Err(_) => return broken("it panicked"),
        };
        let (reminders, dropped) = asked.reminders.as_ref().map(TaskReminders::take).unwrap_or_default();
        HookAnswer { reminders, note: too_many(dropped), ..HookAnswer::only(decision) }
    }

    /// Whether a program is selected; true if that can't be determined.
    fn wants(&self, hook: &HookPolicy) -> bool {
        let wants = || self.programs.wants(hook, self.question, hook.point);
        catch_unwind(AssertUnwindSafe(wants)).unwrap_or(true)
    }

    async fn program(&self, hook: &HookPolicy) -> HookAnswer {
        let cancel = self.cancel.child_token();
        let asked = async { self.programs.ask(hook, self.question, hook.point, &cancel).await };
        let mut asked = pin!(AssertUnwindSafe(asked).catch_unwind());
        let time = Duration::from_millis(hook.timeout_ms).saturating_add(ENDING_MAX);
        let otherwise = tokio::select! {
            biased;
            answer = &mut asked => return answer.unwrap_or_else(|_| broken("it panicked")),
            () = self.cancel.cancelled() => cancelled(),
            () = self.clock.sleep(time) => {
                cancel.cancel();
                late(hook)
            }
        };
        // It ends its processes. It may report why it has no answer; a decision is too late.
        tokio::select! {
            biased;
            answer = asked => match answer {
                Ok(said) if said.decision.failure().is_some() => said,
                // A report of processes that it left running is kept.
                Ok(said) => HookAnswer { note: said.note, ..otherwise },
                Err(_) => otherwise,
            },
            () = self.clock.sleep(ENDED_MAX) => otherwise,
        }
    }
}

impl AnsweredHook<'_> {
    /// Whether no later hook is called.
    fn stops(&self) -> bool {
        match self.report.decision {
            HookDecision::Continue | HookDecision::Allow | HookDecision::Ask(_) => false,
            HookDecision::Deny(_) | HookDecision::Pause(_) | HookDecision::Abort(_) => true,
            HookDecision::Failed(_) | HookDecision::Broken(_) | HookDecision::TimedOut(_) => {
                self.hook.on_failure == OnFailure::Deny
            }
        }
    }
}

/// The hook points of a question.
fn points(question: &HookQuestion) -> &'static [HookPoint] {
    match (&question.trigger, question.agent.parent) {
        (HookQuestionTrigger::HookCall(hook_call), _) => hook_call.about.points(),
        (HookQuestionTrigger::Stop(_), None) => &[HookPoint::Stop],
        (HookQuestionTrigger::Stop(_), Some(_)) => &[HookPoint::SubagentStop],
    }
}

fn failed(why: &str) -> HookAnswer {
    HookAnswer::only(HookDecision::Failed(why.to_owned()))
}

fn broken(why: &str) -> HookAnswer {
    HookAnswer::only(HookDecision::Broken(why.to_owned()))
}

fn cancelled() -> HookAnswer {
    failed("cancelled")
}

fn late(hook: &HookPolicy) -> HookAnswer {
    HookAnswer::only(HookDecision::TimedOut(hook.timeout_ms))
}

fn too_many(dropped: usize) -> Option<String> {
    (dropped > 0).then(|| format!("reminders beyond the first {REMINDERS_MAX} were dropped: {dropped}"))
}

/// The answer for the log: within the length limits, and with reminders only if they are allowed.
fn bounded(answer: HookAnswer, hook: &HookPolicy) -> HookAnswer {
    let HookAnswer { mut decision, reminders, note, replacement } = answer;
    let replacement = replacement.filter(|_| hook.contract.is_foreign());
    let mut reminders = reminders.into_iter().filter(|body| !body.trim().is_empty()).collect::<Vec<_>>();
    let more = if hook.may_remind {
        let dropped = reminders.len().saturating_sub(REMINDERS_MAX);
        reminders.truncate(REMINDERS_MAX);
        too_many(dropped)
    } else {
        let dropped = std::mem::take(&mut reminders).len();
        (dropped > 0)
            .then(|| format!("it may not remind the model of anything; reminders dropped: {dropped}"))
    };
    let note = [more, note].into_iter().flatten().reduce(|more, own| format!("{more}\n{own}"));
    if let Some(reason) = decision.reason_mut() {
        *reason = cut(std::mem::take(reason));
    }
    let reminders = reminders.into_iter().map(cut).collect();
    HookAnswer { decision, reminders, note: note.map(cut), replacement }
}

fn cut(mut words: String) -> String {
    if words.len() > WORDS_BYTES_MAX {
        words.truncate(words.floor_char_boundary(WORDS_BYTES_MAX.saturating_sub(CUT.len())));
        words.push_str(CUT);
    }
    words
}
