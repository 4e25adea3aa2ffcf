//! Calls the stop hooks.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{join, join_all};
use provost_engine::{StopCheck, StopCheckResult};
use provost_event::{
    EffectId, HookContract, HookDecision, HookPoint, HookPolicy, HookReport, OnFailure, OnHookError,
    StopHookPolicy, StopHookVerdict,
};
use provost_process::Confinement;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tracing::field::Empty;

use super::HarnessExecutor;
use super::hooks::{HookPlace, question};
use super::log_file::Informed;
use crate::session_cache::Opening;
use crate::shell_hook::timed_out;
use crate::spans::{self, span};
use crate::workspace::fingerprint;
use crate::{HookQuestionTrigger, ShellStopHook, StopHookContext, StopHookHandler};

/// How long a hook may take to end after its time limit, before it is dropped: killing its processes may take 14
/// s, and then it reports what is left.
const ENDING_MAX: Duration = Duration::from_secs(15);

/// How long hooks that may wake the agent are waited for where the run has no time limit.
const WAKING_MAX: Duration = Duration::from_secs(3_600);

impl HarnessExecutor {
    /// Calls all hooks in parallel and waits for each within its time limit.
    pub(super) async fn check_stop(
        &self,
        id: EffectId,
        check: &StopCheck,
        cancel: &CancellationToken,
    ) -> StopCheckResult {
        let opening = match self.known.opening(self.backend(), check.session).await {
            Ok(opening) => opening,
            Err(error) => {
                let broken = HookDecision::Broken(error.to_string());
                let reports = vec![HookReport::new("stop hooks", HookPoint::Stop, broken)];
                return StopCheckResult { reports, evidence: String::new() };
            }
        };
        let evidence = evidence(&opening).await;
        let informed = Informed::new(self, check.session, id.seq);
        let hooks = StopHooks {
            executor: self,
            check,
            opening: &opening,
            informed: &informed,
            confinement: OnceLock::new(),
            cancel,
        };
        let (mut reports, more) = join(hooks.ask_handlers(), hooks.ask_programs()).await;
        reports.extend(more);
        let objects = |report: &HookReport| {
            matches!(report.decision, HookDecision::Deny(_) | HookDecision::Pause(_) | HookDecision::Abort(_))
        };
        if !reports.iter().any(objects) {
            hooks.wait_for_waking().await;
        }
        StopCheckResult { reports, evidence }
    }
}

pub(super) async fn evidence(opening: &Opening) -> String {
    let workspace = opening.workspace.clone();
    tokio::task::spawn_blocking(move || fingerprint(&workspace)).await.unwrap_or_default()
}

/// The hooks that are asked whether an agent may stop, and what is known of the question.
struct StopHooks<'a> {
    executor: &'a HarnessExecutor,
    check: &'a StopCheck,
    opening: &'a Opening,
    informed: &'a Informed<'a>,
    confinement: OnceLock<Confinement>,
    cancel: &'a CancellationToken,
}

impl StopHooks<'_> {
    fn point(&self) -> HookPoint {
        HookPoint::stop(self.opening.agent.parent)
    }

    fn confinement(&self) -> Confinement {
        let confinement = || self.executor.hooks_confinement(self.check.session, self.opening, None);
        self.confinement.get_or_init(confinement).clone()
    }

    /// Waits for hooks that run beside the turn and may wake the agent: what they object to counts before it ends.
    async fn wait_for_waking(&self) {
        let time = self.check.limit_ms.map_or(WAKING_MAX, Duration::from_millis);
        let deps = &self.executor.deps;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {}
            () = deps.hook_programs.waking_over(self.check.session) => {}
            () = deps.clock.sleep(time) => {}
        }
    }

    /// Calls the hooks that can only be stop hooks.
    async fn ask_handlers(&self) -> Vec<HookReport> {
        let hooks = &self.opening.policy.stop_hooks;
        if hooks.is_empty() {
            return Vec::new();
        }
        let transcript = self.informed.path(HookContract::Provost).await;
        let context = stop_context(self.check, self.opening, transcript);
        let clock = &self.executor.deps.clock;
        let asked = hooks.iter().map(async |hook| {
            let started = clock.monotonic();
            let verdict = self.ask(hook, &context).await;
            let duration_us = clock.monotonic().since_ms(started).saturating_mul(1_000);
            HookReport { duration_us, ..HookReport::new(&hook.name, self.point(), verdict) }
        });
        join_all(asked).await
    }

    /// Calls hooks of [`HookPoint::Stop`], or of a sub-agent's stop, which are programs.
    async fn ask_programs(&self) -> Vec<HookReport> {
        let Self { executor, check, opening, .. } = *self;
        let hooks = &opening.policy.hooks;
        if !hooks.iter().any(|hook| hook.point == self.point()) {
            return Vec::new();
        }
        let place = HookPlace {
            folder: executor.current_folder(check.shell.as_ref(), opening),
            confinement: self.confinement(),
            env_file: None,
        };
        let question = question(HookQuestionTrigger::Stop(check.clone()), opening, place, Vec::new());
        let answers = executor.dispatch(hooks, self.informed, &question, self.cancel).everybody().await;
        answers.into_iter().map(|(hook, report)| at_stop(hook, report)).collect()
    }

    async fn ask(&self, hook: &StopHookPolicy, context: &StopHookContext) -> StopHookVerdict {
        let timeout = Duration::from_millis(hook.timeout_ms);
        let span = span!("stop_hook.call", hook = hook.name, decision = Empty);
        let verdict = match self.handler(hook, timeout) {
            Some(handler) => self.run_handler(&*handler, context, timeout).instrument(span.clone()).await,
            None => {
                StopHookVerdict::Broken("the program that runs this agent doesn't have this hook".to_owned())
            }
        };
        let verdict = match verdict {
            // A check that ran and failed blocks the stop, whatever its status.
            StopHookVerdict::Error(why) if hook.on_error == OnHookError::Block => StopHookVerdict::Block(why),
            verdict => verdict,
        };
        span.record("decision", spans::decision(&verdict.clone().into()));
        verdict
    }

    fn handler(&self, hook: &StopHookPolicy, timeout: Duration) -> Option<Arc<dyn StopHookHandler>> {
        match &hook.command {
            Some(command) => Some(Arc::new(ShellStopHook {
                name: hook.name.clone(),
                command: command.clone(),
                timeout,
                ends_within: self.check.limit_ms.map(Duration::from_millis),
                confinement: self.confinement(),
            })),
            None => {
                let handlers = &self.executor.deps.stop_hooks;
                handlers.iter().find(|handler| handler.name() == hook.name).cloned()
            }
        }
    }

    async fn run_handler(
        &self,
        handler: &dyn StopHookHandler,
        context: &StopHookContext,
        timeout: Duration,
    ) -> StopHookVerdict {
        let clock = &self.executor.deps.clock;
        let cancel = self.cancel.child_token();
        let mut asked = std::pin::pin!(AssertUnwindSafe(handler.evaluate(context, &cancel)).catch_unwind());
        let panicked = |_| StopHookVerdict::Broken("it panicked".to_owned());
        // A shell hook enforces the same limit itself and reports it; the extra time is for that.
        tokio::select! {
            verdict = &mut asked => return verdict.unwrap_or_else(panicked),
            () = clock.sleep(timeout + ENDING_MAX) => cancel.cancel(),
        }
        tokio::select! {
            verdict = &mut asked => verdict.unwrap_or_else(panicked),
            () = clock.sleep(ENDING_MAX) => timed_out(timeout),
        }
    }
}

fn stop_context(check: &StopCheck, opening: &Opening, transcript_path: Option<PathBuf>) -> StopHookContext {
    StopHookContext {
        hook_event_name: "Stop",
        run_id: check.session.run,
        session_id: check.session,
        cwd: opening.workspace.to_path_buf(),
        transcript_path,
        final_text: Some(check.final_text.clone()).filter(|text| !text.is_empty()),
        last_assistant_message: check.final_text.clone(),
        iterations: check.turn,
        tool_calls: check.tool_calls,
        tool_calls_made: check.tool_calls,
        stop_reason: check.stop_reason(),
        stop_hook_active: check.blocked_before,
    }
}

/// A hook's report as that of a stop hook. Reminders for the model block the stop, as the agent gets them only if it
/// continues; so does a missing answer that counts as a denial.
fn at_stop(hook: &HookPolicy, mut report: HookReport) -> HookReport {
    let objection = match report.stop_verdict() {
        StopHookVerdict::Allow => (!report.reminders.is_empty()).then(String::new),
        StopHookVerdict::Block(reason) => Some(reason),
        StopHookVerdict::Halt(_) => None,
        verdict => verdict.error().filter(|_| hook.on_failure == OnFailure::Deny),
    };
    let reminders = std::mem::take(&mut report.reminders);
    if let Some(reason) = objection {
        let said = std::iter::once(reason).chain(reminders).filter(|words| !words.is_empty());
        report.decision = HookDecision::Deny(said.collect::<Vec<_>>().join("\n\n"));
    }
    report
}
