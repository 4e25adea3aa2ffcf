//! One session: its prompts, and what ends them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use provost_event::{Outcome, RunId};
use provost_harness::{
    Backend, BackendError, Control, ResumeRun, RunPosition, RunStatus, StartRun, Work, WorkLimits,
};
use provost_view::run_state;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::AcpOptions;
use crate::editor::Editor;
use crate::ending::{Ending, Trouble, ending};

/// Bytes of a prompt: it is an argument of the process that works on the run.
const PROMPT_BYTES_MAX: usize = 64 * 1024;
/// How often it is looked whether a process has left a run, and how many times.
const LEAVE_LOOK_EVERY: Duration = Duration::from_millis(50);
const LEAVE_LOOKS_MAX: u32 = 200;
/// Prompts that wait for their end in one session.
const WAITING_MAX: usize = 64;

/// A session. It is a run, which there needn't be before the first prompt.
pub(crate) struct Session {
    pub(crate) run: RunId,
    /// Where a new run works.
    folder: PathBuf,
    pub(crate) options: Arc<AcpOptions>,
    pub(crate) editor: Arc<dyn Editor>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    follower: Option<AbortHandle>,
    waiting: Vec<WaitingPrompt>,
    next: u64,
    /// Prompts that the editor shows already.
    shown: Vec<String>,
    /// The outcome of a run that waits for an answer which the editor still asks for.
    held: Option<Outcome>,
}

/// A prompt that has no end.
struct WaitingPrompt {
    number: u64,
    /// Only an outcome behind this place is its own; absent until the place is known.
    after: Option<RunPosition>,
    /// Whether a process works for it.
    is_begun: bool,
    /// Whether it is to be cancelled as soon as a process works for it.
    is_cancelled: bool,
    end: oneshot::Sender<Result<Ending, Trouble>>,
}

impl Session {
    pub(crate) fn new(
        run: RunId,
        folder: PathBuf,
        options: Arc<AcpOptions>,
        editor: Arc<dyn Editor>,
    ) -> Self {
        Self { run, folder, options, editor, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.options.backend
    }

    pub(crate) fn control(&self) -> Control {
        Control::new(self.options.backend.clone(), self.run, &self.options.by)
    }

    pub(crate) async fn status(&self) -> Result<Option<RunStatus>, BackendError> {
        Ok(self.backend().get(self.run).await?.map(|run| run.status))
    }

    /// The outcome of the run's last segment; `None` while another is worked on. A process may still be about to leave a
    /// run that has one.
    pub(crate) async fn outcome(&self) -> Result<Option<Outcome>, BackendError> {
        Ok(run_state(self.backend(), self.run).await?.and_then(|state| state.outcome().cloned()))
    }

    /// Whether a task reads the log.
    pub(crate) fn is_followed(&self) -> bool {
        self.state().follower.is_some()
    }

    pub(crate) fn set_follower(&self, follower: AbortHandle) {
        if let Some(before) = self.state().follower.replace(follower) {
            before.abort();
        }
    }

    /// Nothing is shown any more, and prompts that wait have no end here.
    pub(crate) fn leave(&self) {
        let mut state = self.state();
        if let Some(follower) = state.follower.take() {
            follower.abort();
        }
        state.waiting.clear();
    }

    /// Sends a prompt to the run: as a message if it is worked on, else with another segment. `follow` makes sure that
    /// the log is read as soon as there is one. Returns how the run's work on it ended.
    ///
    /// # Errors
    /// When it can't be sent, or the run failed.
    ///
    /// # Cancellation
    /// The run goes on.
    pub(crate) async fn prompt(&self, text: String, follow: impl FnOnce()) -> Result<Ending, Trouble> {
        let text = text.trim().to_owned();
        if text.is_empty() {
            return Err(Trouble::unfit("the prompt has no text"));
        }
        if text.len() > PROMPT_BYTES_MAX {
            let bytes = text.len();
            let words = format!(
                "the prompt has {bytes} bytes, and at most {PROMPT_BYTES_MAX} can be sent: name the file instead, \
                 which the agent can read"
            );
            return Err(Trouble::unfit(words));
        }
        // A cancel may come at once.
        let (number, ended) = self.wait(&text)?;
        if let Err(trouble) = self.begin(number, text.clone()).await {
            self.forget(number, &text);
            return Err(trouble);
        }
        follow();
        if self.has_begun(number) {
            self.control().cancel(None).await?;
        }
        ended.await.unwrap_or_else(|_| Err(Trouble::failed("the session was closed; its run may go on")))
    }

    fn wait(&self, text: &str) -> Result<(u64, oneshot::Receiver<Result<Ending, Trouble>>), Trouble> {
        let mut state = self.state();
        if state.waiting.len() >= WAITING_MAX {
            return Err(Trouble::unfit(format!("{WAITING_MAX} prompts of this session wait already")));
        }
        let (end, ended) = oneshot::channel();
        let number = state.next;
        state.next += 1;
        state.shown.push(text.to_owned());
        state.waiting.push(WaitingPrompt { number, after: None, is_begun: false, is_cancelled: false, end });
        Ok((number, ended))
    }

    fn forget(&self, number: u64, text: &str) {
        let mut state = self.state();
        state.waiting.retain(|prompt| prompt.number != number);
        if let Some(at) = state.shown.iter().position(|shown| shown == text) {
            state.shown.remove(at);
        }
    }

    /// A process works for a prompt. Returns whether it was cancelled before.
    fn has_begun(&self, number: u64) -> bool {
        let mut state = self.state();
        let prompt = state.waiting.iter_mut().find(|prompt| prompt.number == number);
        prompt.is_some_and(|prompt| {
            prompt.is_begun = true;
            prompt.is_cancelled
        })
    }

    async fn begin(&self, number: u64, text: String) -> Result<(), Trouble> {
        let head = self.backend().run_head(self.run).await?;
        if let Some(prompt) = self.state().waiting.iter_mut().find(|prompt| prompt.number == number) {
            prompt.after = Some(head);
        }
        match self.status().await? {
            None => {
                let start = StartRun {
                    goal: text,
                    folder: self.folder.clone(),
                    condition: None,
                    judges: Vec::new(),
                    model: None,
                    max_agents: None,
                    limits: WorkLimits::default(),
                };
                Ok(self.options.starts.work(self.run, &Work::Start(start)).await?)
            }
            Some(RunStatus::Running) => {
                if !self.control().say(0, text.clone()).await? {
                    return self.resume(Some(text)).await;
                }
                // It may have been suspended shortly before: the message waits for another segment then.
                if self.outcome().await?.is_some() { self.resume(None).await } else { Ok(()) }
            }
            Some(_) => self.resume(Some(text)).await,
        }
    }

    /// Has a process go on with the run, once the one that worked on it has left it.
    pub(crate) async fn resume(&self, text: Option<String>) -> Result<(), Trouble> {
        for _ in 0..LEAVE_LOOKS_MAX {
            if self.status().await? != Some(RunStatus::Running) {
                break;
            }
            tokio::time::sleep(LEAVE_LOOK_EVERY).await;
        }
        let resume = Work::Resume(ResumeRun { text, ..ResumeRun::default() });
        Ok(self.options.starts.work(self.run, &resume).await?)
    }

    /// Cancels the run's work. A prompt whose run is only being started is cancelled as soon as it is.
    pub(crate) async fn cancel(&self) -> Result<(), Trouble> {
        for prompt in &mut self.state().waiting {
            prompt.is_cancelled = !prompt.is_begun;
        }
        if self.status().await?.is_some() {
            self.control().cancel(None).await?;
        }
        Ok(())
    }

    /// Whether the editor shows this message already, because it sent it.
    pub(crate) fn is_shown(&self, text: &str) -> bool {
        let mut state = self.state();
        let at = state.shown.iter().position(|shown| shown == text.trim());
        at.map(|at| state.shown.remove(at)).is_some()
    }

    /// The run has this outcome since the entry at `place`.
    pub(crate) fn ended(&self, place: RunPosition, outcome: &Outcome) {
        let is_over = |prompt: &WaitingPrompt| prompt.after.is_some_and(|after| after < place);
        self.end(is_over, || ending(self.run, outcome));
    }

    /// Prompts that wait don't get this outcome before [`Session::release`]: the editor still asks for what it waits for.
    pub(crate) fn hold(&self, outcome: &Outcome) {
        self.state().held = Some(outcome.clone());
    }

    /// Nothing is asked for any more.
    pub(crate) fn release(&self, now: Released) {
        let held = self.state().held.take();
        if let (Some(outcome), Released::StaysSuspended) = (held, now) {
            self.end(|prompt| prompt.is_begun, || ending(self.run, &outcome));
        }
    }

    /// All prompts for which a process worked have this trouble.
    pub(crate) fn fail(&self, trouble: &Trouble) {
        self.end(|prompt| prompt.is_begun, || Err(trouble.clone()));
    }

    /// Whether a prompt waits for a process that works for it.
    pub(crate) fn waits(&self) -> bool {
        let state = self.state();
        state.held.is_none() && state.waiting.iter().any(|prompt| prompt.is_begun)
    }

    /// Whether a prompt of this connection has no end.
    pub(crate) fn has_prompts(&self) -> bool {
        !self.state().waiting.is_empty()
    }

    fn end(&self, which: impl Fn(&WaitingPrompt) -> bool, result: impl Fn() -> Result<Ending, Trouble>) {
        let mut state = self.state();
        let (over, waiting) = state.waiting.drain(..).partition::<Vec<_>, _>(which);
        state.waiting = waiting;
        drop(state);
        for prompt in over {
            // Who waited may have gone.
            let _ = prompt.end.send(result());
        }
    }
}

/// What becomes of a run whose questions have their answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Released {
    GoesOn,
    StaysSuspended,
}
