//! Runs a tool within its time and output limits.

use std::io::ErrorKind;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use provost_engine::{ToolResult, ToolRun};
use provost_event::{
    BlobId, CallFacts, EffectId, Elapsed, Image, Permission, Seq, SessionId, ToolStatus, ToolSubject,
};
use tokio_util::sync::CancellationToken;

use super::HarnessExecutor;
use super::links::leads_astray;
use crate::output::cut_middle;
use crate::sandbox::sandbox_of;
use crate::session_cache::Opening;
use crate::workspace::{Changes, WorkspaceSnapshot};
use crate::{
    AgentSandbox, FileReach, ImageData, LiveOutput, NoSandbox, SandboxRequest, SessionLog, Tool, ToolContext,
    ToolOutput,
};

/// What a model is told after what the sandbox denied.
const NO_OFFER: &str = ". Trying again won't help.]";
/// The same where a person can be asked.
const OFFER: &str = ". Trying again won't help. If the task needs it, make the call with `outside_sandbox`: true; a person \
                     is asked.]";

/// How long a tool may take to end after its cancellation.
const ENDING_MAX: Duration = Duration::from_secs(15);

/// The same if its agent's time limit is almost over. What the tool runs is killed when it is dropped.
const ENDING_MIN: Duration = Duration::from_millis(500);

impl HarnessExecutor {
    pub(super) async fn run_tool(
        &self,
        id: EffectId,
        run: &ToolRun,
        cancel: &CancellationToken,
    ) -> ToolResult {
        self.before_changes(run).await;
        let started = self.deps.clock.monotonic();
        let output = match self.known.opening(self.backend(), run.session).await {
            Ok(opening) if let Some(why) = self.no_longer_agreed(run, &opening).await => {
                ToolOutput { status: ToolStatus::Denied, ..ToolOutput::rejected(why) }
            }
            Ok(opening) if opening.policy.external.is_some() => {
                return self.answer_program(run, cancel).await;
            }
            Ok(opening) => {
                if let Some(why) = self.workspace_gone(run, &opening).await {
                    without_workspace(ToolOutput::error(""), why)
                } else {
                    let output = self.made(id, run, &opening, cancel).await;
                    match self.workspace_gone(run, &opening).await {
                        Some(why) if !opening.has_worktree => without_workspace(output, why),
                        Some(_) | None => output,
                    }
                }
            }
            Err(error) => ToolOutput::error(error.to_string()),
        };
        let images = self.keep(&output.images).await;
        // Provost's own keys are removed, however a tool got one.
        let text = self.deps.redactor.redact_cut(&output.text).into_owned();
        let (mut text, whole) = self.cut(text, run.output_bytes_max, id.seq).await;
        let lost = output.images.len().saturating_sub(images.len());
        if lost > 0 {
            text.push_str(&format!("\n[images that belong to this and couldn't be kept: {lost}]"));
        }
        let changes = self.changes(run).await;
        ToolResult {
            tools: output.tools,
            asks: output.asks,
            status: output.status,
            output: text,
            images,
            whole,
            duration_ms: self.deps.clock.monotonic().since_ms(started),
            memory: output.memory,
            plan: output.plan.map(Box::new),
            facts: CallFacts { changed_files: changes.files, new_files: changes.new, ..output.facts },
        }
    }

    /// Looks at the session's workspace before a call, if that is requested.
    async fn before_changes(&self, run: &ToolRun) {
        if run.looks_before {
            self.with_workspace_seen(run, WorkspaceSnapshot::begin).await;
        }
    }

    /// The files that have changed since the last look at the session's workspace, if that is requested.
    async fn changes(&self, run: &ToolRun) -> Changes {
        if !run.looks_at_workspace {
            return Changes::default();
        }
        self.with_workspace_seen(run, WorkspaceSnapshot::look).await.unwrap_or_default()
    }

    async fn with_workspace_seen<T: Send + 'static>(
        &self,
        run: &ToolRun,
        act: fn(&mut WorkspaceSnapshot, &Path) -> T,
    ) -> Option<T> {
        let opening = self.known.opening(self.backend(), run.session).await.ok()?;
        let (workspace, seen) = (opening.workspace.clone(), self.known.workspace_seen(run.session));
        let look = move || act(&mut seen.lock().unwrap_or_else(PoisonError::into_inner), &workspace);
        tokio::task::spawn_blocking(look).await.ok()
    }

    /// What the model is told if the tool works in the workspace, and that isn't a folder any more.
    async fn workspace_gone(&self, run: &ToolRun, opening: &Opening) -> Option<String> {
        match self.tools.get(&run.tool)?.spec().subject {
            ToolSubject::Command { .. }
            | ToolSubject::Typed { .. }
            | ToolSubject::Path { .. }
            | ToolSubject::Patch { .. } => folder_gone(&opening.workspace).await,
            ToolSubject::Url { .. } | ToolSubject::Own | ToolSubject::Opaque => None,
        }
    }

    pub(super) async fn made(
        &self,
        id: EffectId,
        run: &ToolRun,
        opening: &Opening,
        cancel: &CancellationToken,
    ) -> ToolOutput {
        let Some(tool) = self.tools.get(&run.tool) else {
            return ToolOutput::rejected(format!("The tool `{}` can't be run here.", run.tool));
        };
        if let Some(why) = leads_astray(run, opening).await {
            return ToolOutput { status: ToolStatus::Denied, ..ToolOutput::rejected(why) };
        }
        let context = ToolContext {
            effect: id,
            workspace: opening.workspace.clone(),
            reach: FileReach {
                roots: run.roots.clone(),
                granted: run.granted.clone(),
                masked: Arc::clone(&self.deps.masked),
            },
            memory: run.memory.clone(),
            env_file: self.env_file(run.session),
            timeout: Duration::from_millis(run.timeout_ms),
            limit: run.limit_ms.map(Duration::from_millis),
            cancel: cancel.child_token(),
            blobs: self.deps.blobs(),
            log: SessionLog::of(self.deps.backend.clone(), id),
            output_bytes_max: run.output_bytes_max,
            secrets: self.deps.redactor.clone(),
            sandbox: if run.outside { Arc::new(NoSandbox) } else { self.sandbox_of(run.session, opening) },
            output: LiveOutput::of(run.session, id.seq, self.deltas.clone(), self.deps.redactor.clone()),
            answer: run.answer.as_deref().cloned(),
        };
        let output = self.within_time(&*tool, run, &context).await;
        let subject = &tool.spec().subject;
        let offers = matches!(subject, ToolSubject::Command { leaves: Some(_), .. })
            && opening.policy.permissions.leaving == Permission::Ask;
        with_denials(output, &*context.sandbox, if offers { OFFER } else { NO_OFFER })
    }

    /// What confines an agent.
    pub(super) fn sandbox_of(&self, session: SessionId, opening: &Opening) -> Arc<dyn AgentSandbox> {
        let policy = &opening.policy.sandbox;
        sandbox_of(&*self.deps.sandbox, SandboxRequest { policy, session, workspace: &opening.workspace })
    }

    /// Runs the tool until it is done, its time limit is over, or the call is cancelled; in the latter cases it is
    /// cancelled and waited for a little longer.
    async fn within_time(&self, tool: &dyn Tool, run: &ToolRun, context: &ToolContext) -> ToolOutput {
        let began = self.deps.clock.monotonic();
        let mut call = std::pin::pin!(AssertUnwindSafe(tool.call(&run.input, context)).catch_unwind());
        let late = tokio::select! {
            done = &mut call => return done.unwrap_or_else(|_| panicked(&run.tool)),
            () = context.cancel.cancelled() => ToolStatus::Cancelled,
            () = self.deps.clock.sleep(context.timeout) => ToolStatus::TimedOut,
        };
        context.cancel.cancel();
        let output = tokio::select! {
            done = &mut call => done.unwrap_or_else(|_| panicked(&run.tool)),
            () = self.deps.clock.sleep(self.time_to_end(run, began)) => ToolOutput::error("It didn't end when it was told to."),
        };
        let note = match late {
            ToolStatus::TimedOut => {
                format!("Stopped: it ran longer than {} s.", context.timeout.as_secs_f32())
            }
            _ => "Stopped: the agent was told to stop.".to_owned(),
        };
        let text = if output.text.is_empty() { note } else { format!("{}\n{note}", output.text) };
        ToolOutput { status: late, images: output.images, ..ToolOutput::ok(text) }
    }

    /// How long to wait for a cancelled tool: no longer than the time limit lasts.
    fn time_to_end(&self, run: &ToolRun, began: Elapsed) -> Duration {
        let Some(limit_ms) = run.limit_ms else { return ENDING_MAX };
        let left_ms = limit_ms.saturating_sub(self.deps.clock.monotonic().since_ms(began));
        ENDING_MAX.min(Duration::from_millis(left_ms).max(ENDING_MIN))
    }

    /// The images that could be stored beside the log.
    async fn keep(&self, images: &[ImageData]) -> Vec<Image> {
        let mut kept = Vec::with_capacity(images.len());
        for image in images {
            match image.keep(self.backend()).await {
                Ok(image) => kept.push(image),
                Err(error) => tracing::warn!(%error, "an image can't be kept"),
            }
        }
        kept
    }

    /// The output for the model, and the blob with the whole output if that is only part of it.
    async fn cut(&self, text: String, bytes_max: usize, call: Seq) -> (String, Option<BlobId>) {
        let Some(cut) = cut_middle(&text, bytes_max) else { return (text, None) };
        let kept = self.deps.backend.put_blob(text.as_bytes().to_vec()).await;
        if let Err(error) = &kept {
            tracing::warn!(%error, "an output can't be kept whole");
        }
        let whole = kept.ok();
        (cut.with_note(whole.as_ref().map(|_| call)), whole)
    }
}

/// What the model is told if the workspace isn't a folder any more.
async fn folder_gone(workspace: &Arc<Path>) -> Option<String> {
    let folder = Arc::clone(workspace);
    let found = tokio::task::spawn_blocking(move || std::fs::metadata(folder)).await.ok()?;
    let is_gone = match found {
        Ok(found) => !found.is_dir(),
        Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    };
    let folder = workspace.display();
    is_gone.then(|| {
        format!(
            "The workspace `{folder}` is gone: it was deleted, moved or unmounted. You are suspended until it is back."
        )
    })
}

/// A call's output with the fact that the workspace is gone.
fn without_workspace(output: ToolOutput, why: String) -> ToolOutput {
    let text = if output.text.is_empty() { why } else { format!("{}\n[{why}]", output.text) };
    let facts = CallFacts { workspace_gone: true, ..output.facts };
    ToolOutput { text, facts, ..output }
}

/// A call's output with what the sandbox denied: a model that doesn't know that would only try again.
fn with_denials(mut output: ToolOutput, sandbox: &dyn AgentSandbox, advice: &str) -> ToolOutput {
    if !sandbox.confines() {
        return output;
    }
    let has_failed =
        output.status != ToolStatus::Ok || output.facts.exit_status.is_some_and(|code| code != 0);
    let denied = sandbox.denials(if has_failed { &output.text } else { "" });
    if !denied.is_empty() {
        output.text.push_str("\n[sandbox: ");
        output.text.push_str(&denied.join("; "));
        output.text.push_str(advice);
        output.facts.denied = denied;
    }
    output
}

fn panicked(tool: &str) -> ToolOutput {
    ToolOutput::error(format!("The tool `{tool}` failed inside Provost (it panicked)."))
}
