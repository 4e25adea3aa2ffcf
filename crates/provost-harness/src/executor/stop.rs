//! Asking the stop hooks.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::join_all;
use provost_engine::{StopCheck, StopCheckResult};
use provost_event::{Seq, SessionId, StopHookPolicy, StopHookVerdict, StopReport};
use tokio_util::sync::CancellationToken;

use super::HarnessExecutor;
use crate::known::Opening;
use crate::workspace::fingerprint;
use crate::{ShellStopHook, StopHookContext, StopHookHandler};

/// How long a hook may take to end after its time is over, before it is let go.
const ENDING_MAX: Duration = Duration::from_secs(5);
/// Entries written to a transcript at a time.
const BATCH: usize = 1_000;

impl HarnessExecutor {
    /// Asks all hooks side by side and waits for each within its time.
    pub(super) async fn check_stop(&self, check: &StopCheck, cancel: &CancellationToken) -> StopCheckResult {
        let opening = match self.known.opening(self.home(), check.session).await {
            Ok(opening) => opening,
            Err(error) => {
                let reports = vec![report("stop hooks", StopHookVerdict::Error(error.to_string()))];
                return StopCheckResult { reports, evidence: String::new() };
            }
        };
        let evidence = self.evidence(&opening).await;
        let context = self.stop_context(check, &opening).await;
        let asked = opening.policy.stop_hooks.iter().map(|hook| self.ask(hook, &context, cancel));
        StopCheckResult { reports: join_all(asked).await, evidence }
    }

    async fn evidence(&self, opening: &Opening) -> String {
        let workspace = opening.workspace.clone();
        tokio::task::spawn_blocking(move || fingerprint(&workspace)).await.unwrap_or_default()
    }

    async fn stop_context(&self, check: &StopCheck, opening: &Opening) -> StopHookContext {
        StopHookContext {
            hook_event_name: "Stop",
            run_id: check.session.run,
            session_id: check.session,
            cwd: opening.workspace.to_path_buf(),
            transcript_path: self.write_transcript(check.session).await,
            final_text: check.final_text.clone(),
            last_assistant_message: check.final_text.clone(),
            iterations: check.turn,
            tool_calls: check.tool_calls,
            stop_reason: "end_turn",
            stop_hook_active: check.blocked_before,
        }
    }

    async fn ask(
        &self,
        hook: &StopHookPolicy,
        context: &StopHookContext,
        cancel: &CancellationToken,
    ) -> StopReport {
        let started = self.deps.clock.now();
        let timeout = Duration::from_millis(hook.timeout_ms);
        let verdict = match self.handler(hook, timeout) {
            Some(handler) => self.hear(&*handler, context, timeout, cancel).await,
            None => {
                StopHookVerdict::Error("the program that runs this agent doesn't have this hook".to_owned())
            }
        };
        let mut report = report(&hook.name, verdict);
        report.duration_ms = self.deps.clock.now().since_ms(started);
        report
    }

    fn handler(&self, hook: &StopHookPolicy, timeout: Duration) -> Option<Arc<dyn StopHookHandler>> {
        match &hook.command {
            Some(command) => {
                Some(Arc::new(ShellStopHook { name: hook.name.clone(), command: command.clone(), timeout }))
            }
            None => self.deps.stop_hooks.iter().find(|handler| handler.name() == hook.name).cloned(),
        }
    }

    async fn hear(
        &self,
        handler: &dyn StopHookHandler,
        context: &StopHookContext,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> StopHookVerdict {
        let cancel = cancel.child_token();
        let mut asked = std::pin::pin!(AssertUnwindSafe(handler.evaluate(context, &cancel)).catch_unwind());
        let panicked = |_| StopHookVerdict::Error("it panicked".to_owned());
        // A shell hook keeps its own time to the same limit and says so itself; the little more is for that.
        tokio::select! {
            verdict = &mut asked => return verdict.unwrap_or_else(panicked),
            () = self.deps.clock.sleep(timeout + ENDING_MAX) => cancel.cancel(),
        }
        tokio::select! {
            verdict = &mut asked => verdict.unwrap_or_else(panicked),
            () = self.deps.clock.sleep(ENDING_MAX) => {
                StopHookVerdict::Error(format!("no answer within {} s", timeout.as_secs_f32()))
            }
        }
    }

    /// Writes the session's log where hooks can read it; `None` where that isn't wanted or can't be done.
    async fn write_transcript(&self, session: SessionId) -> Option<PathBuf> {
        let folder = self.deps.transcripts.as_deref()?;
        match self.transcript_lines(session).await {
            Ok(lines) => write_whole(folder, session, lines.into_bytes()).await,
            Err(error) => {
                tracing::warn!(%session, %error, "the transcript for stop hooks can't be written");
                None
            }
        }
    }

    async fn transcript_lines(&self, session: SessionId) -> Result<String, crate::HomeError> {
        let (mut lines, mut after) = (String::new(), Seq::START);
        loop {
            let records = self.deps.home.read(session.into(), after, BATCH).await?;
            let Some(last) = records.last() else { return Ok(lines) };
            after = last.seq;
            for line in records.iter().flat_map(|record| record.to_line()) {
                lines.push_str(&line);
                lines.push('\n');
            }
        }
    }
}

async fn write_whole(folder: &Path, session: SessionId, bytes: Vec<u8>) -> Option<PathBuf> {
    let path = folder.join(format!("{session}.jsonl"));
    let (folder, file) = (folder.to_owned(), path.clone());
    let written = tokio::task::spawn_blocking(move || {
        std::fs::create_dir_all(&folder)?;
        let draft = file.with_extension("jsonl.new");
        std::fs::write(&draft, bytes)?;
        std::fs::rename(&draft, &file)
    });
    match written.await {
        Ok(Ok(())) => Some(path),
        Ok(Err(error)) => {
            tracing::warn!(path = %path.display(), %error, "the transcript for stop hooks can't be written");
            None
        }
        Err(_) => None,
    }
}

fn report(name: &str, verdict: StopHookVerdict) -> StopReport {
    StopReport { name: name.to_owned(), verdict, duration_ms: 0 }
}
