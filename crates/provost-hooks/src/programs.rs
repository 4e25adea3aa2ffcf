//! The port's implementation: selects hooks, asks them, and reads their answers.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use provost_event::{HookContract, HookDecision, HookPoint, HookPolicy, HookProgram, HookWaiting, SessionId};
use provost_harness::{Clock, HookAnswer, HookPrograms, HookQuestion, HookTranscript, Redactor};
use provost_process::MAYBE_LEFT;
use tokio_util::sync::CancellationToken;

use crate::background::{Background, RUNNING_MAX};
use crate::command::Command;
use crate::condition;
use crate::contract::{of_body, of_command, of_cut};
use crate::face::FACES_MAX;
use crate::http::{Address, Body, Poster};
use crate::matcher::Matchers;
use crate::meaning::{Meaning, not_run, refusal};
use crate::question::HookQuery;
use crate::spill::{capped, texts};
use crate::transcript::transcript;

/// Options for running hook programs.
pub struct ProgramHooksOptions {
    /// Measures the time of requests to servers.
    pub clock: Arc<dyn Clock>,
    /// The folder for the full text of texts over 10,000 characters, one file each; created on demand. Without it
    /// only their beginning is kept.
    pub spill: Option<PathBuf>,
    /// Values of the variables that a server's headers may name, if the hook's policy allows the name too.
    pub header_env: HashMap<String, String>,
    /// Removes keys from hooks' answers before any of it is stored.
    pub redactor: Arc<Redactor>,
    /// Variables that commands see besides those of every child process, with their values: this process may have hidden
    /// its own. `OTEL_…` is never passed.
    pub extra_env: Vec<(String, String)>,
}

/// Runs hook programs: commands below `provost-process`'s guard, and requests to servers.
///
/// A command gets the question as one JSON object on its standard input, which it needn't read, in the agent's
/// current folder, in a session of its own, without a terminal. The hook's timeout starts with the process; half a second after
/// it, or when the session's time limit is over, the command is killed, and so are processes that it leaves behind
/// when it exits. 1 MiB is kept of each of its streams, and 1 MiB read of a server's response.
///
/// A hook that the turn doesn't wait for runs in the background: at most 16 at a time, ended with its session. What it
/// says reaches the model with the next answer of a hook of that session.
pub struct ProgramHooks {
    asking: Arc<Asking>,
    background: Arc<Background>,
}

/// What is needed to ask a hook.
struct Asking {
    poster: Poster,
    matchers: Matchers,
    spill: Option<PathBuf>,
    redactor: Arc<Redactor>,
    extra_env: Vec<(String, String)>,
}

impl ProgramHooks {
    /// A runner for these options.
    #[must_use]
    pub fn new(options: ProgramHooksOptions) -> Self {
        let asking = Asking {
            poster: Poster::new(options.clock, options.header_env),
            matchers: Matchers::default(),
            spill: options.spill,
            redactor: options.redactor,
            extra_env: options.extra_env,
        };
        Self { asking: Arc::new(asking), background: Arc::default() }
    }

    /// Starts a hook that the turn doesn't wait for.
    fn start(&self, hook: &HookPolicy, question: &HookQuestion, point: HookPoint) -> HookAnswer {
        let session = HookQuery::by(hook, question, point).session();
        let (asking, hook, question) = (Arc::clone(&self.asking), hook.clone(), question.clone());
        let is_started = self
            .background
            .start(session, |cancel| async move { asking.ask(&hook, &question, point, &cancel).await });
        let note = (!is_started).then(|| format!("it isn't run: {RUNNING_MAX} hooks run in the background"));
        HookAnswer { note, ..HookAnswer::only(HookDecision::Continue) }
    }
}

impl Asking {
    /// Whether matcher and condition select the question.
    ///
    /// # Errors
    /// When one of them is invalid or undecidable, in words.
    fn chosen(&self, hook: &HookPolicy, asked: HookQuery<'_>) -> Result<bool, String> {
        if let (Some(matcher), Some(names)) = (&hook.matcher, asked.names(hook.contract)) {
            let matcher = self.matchers.get(asked.point, matcher);
            if !matcher.as_ref().as_ref().map_err(Clone::clone)?.hits(&names)? {
                return Ok(false);
            }
        }
        hook.condition.as_deref().map_or(Ok(true), |condition| condition::holds(condition, asked))
    }

    /// Whether it selects the question, or one about a face of its call.
    fn chosen_in_any(&self, hook: &HookPolicy, asked: HookQuery<'_>) -> bool {
        let faces = asked.faces();
        let chosen = |asked| self.chosen(hook, asked).unwrap_or(true);
        if faces.is_empty() { chosen(asked) } else { faces.iter().any(|face| chosen(asked.about_face(face))) }
    }

    /// Asks about each face of the call at the same time; the strictest answer counts.
    async fn faced(&self, hook: &HookPolicy, asked: HookQuery<'_>, cancel: &CancellationToken) -> Meaning {
        let faces = asked.faces();
        if faces.is_empty() {
            return self.run_program(hook, asked, cancel).await;
        }
        if faces.len() > FACES_MAX {
            let why = format!(
                "a call that changes more than {FACES_MAX} files is too large for hooks: make several calls"
            );
            return refusal(asked, hook.contract, why);
        }
        let chosen = faces.iter().map(|face| asked.about_face(face));
        let chosen = chosen.filter(|asked| self.chosen(hook, *asked).unwrap_or(true)).collect::<Vec<_>>();
        let is_all = chosen.len() == faces.len();
        let answers = chosen.into_iter().map(|asked| self.run_program(hook, asked, cancel));
        Meaning::strictest(join_all(answers).await, hook.on_failure, is_all)
    }

    async fn run_program(
        &self,
        hook: &HookPolicy,
        asked: HookQuery<'_>,
        cancel: &CancellationToken,
    ) -> Meaning {
        if let Err(words) = self.chosen(hook, asked) {
            return Meaning::failed(words);
        }
        let question = match serde_json::to_vec(&asked.json()) {
            Ok(question) => question,
            Err(error) => return Meaning::failed(format!("its question can't be written: {error}")),
        };
        let timeout = Duration::from_millis(hook.timeout_ms);
        match &hook.program {
            None => Meaning::failed("its policy names no program"),
            Some(HookProgram::Http { url, headers, allowed_env }) => {
                let address = Address { url, headers, allowed_env, timeout };
                match self.poster.ask(address, question, cancel).await {
                    Ok(Body::Whole(body)) => of_body(hook, asked, &body),
                    Ok(Body::TooLong(why)) => of_cut(hook, asked, why),
                    Err(why) => Meaning::failed(why),
                }
            }
            Some(program) => {
                let setup = &hook.setup;
                let command = Command { program, setup, timeout, extra_env: &self.extra_env };
                match command.ask(asked, question, cancel).await {
                    Ok(finished) if finished.is_all_ended => of_command(hook, asked, &finished),
                    Ok(finished) => of_command(hook, asked, &finished).note(MAYBE_LEFT),
                    Err(why) => not_run(asked, hook.contract, &why),
                }
            }
        }
    }

    async fn ask(
        &self,
        hook: &HookPolicy,
        question: &HookQuestion,
        point: HookPoint,
        cancel: &CancellationToken,
    ) -> HookAnswer {
        let meaning = self.faced(hook, HookQuery::by(hook, question, point), cancel).await;
        let mut answer = meaning.into_answer();
        texts(&mut answer).into_iter().for_each(|text| self.redactor.mask_known(text));
        capped(answer, self.spill.as_deref()).await
    }
}

#[async_trait]
impl HookPrograms for ProgramHooks {
    /// A hook with an invalid matcher or condition is asked, so that the problem is reported: its answer is that
    /// it has none.
    fn wants(&self, hook: &HookPolicy, question: &HookQuestion, point: HookPoint) -> bool {
        self.asking.chosen_in_any(hook, HookQuery::by(hook, question, point))
    }

    async fn ask(
        &self,
        hook: &HookPolicy,
        question: &HookQuestion,
        point: HookPoint,
        cancel: &CancellationToken,
    ) -> HookAnswer {
        let mut answer = match hook.setup.waiting {
            HookWaiting::Waits => self.asking.ask(hook, question, point, cancel).await,
            HookWaiting::Background => self.start(hook, question, point),
        };
        let session = HookQuery::by(hook, question, point).session();
        if hook.may_remind {
            answer.reminders.extend(self.background.heard(session));
        }
        answer
    }

    fn session_over(&self, session: SessionId) {
        self.background.session_over(session);
    }

    fn transcript(&self, contract: HookContract, session: SessionId) -> Box<dyn HookTranscript> {
        transcript(contract, session)
    }
}
