//! The port's implementation: selects hooks, asks them, and reads their answers.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use provost_event::{HookContract, HookDecision, HookPoint, HookPolicy, HookProgram, HookWaiting, SessionId};
use provost_harness::{Clock, HookAnswer, HookPrograms, HookQuestion, HookTranscript, HookUrgency, Redactor};
use provost_process::MAYBE_LEFT;
use tokio_util::sync::CancellationToken;

use crate::background::{Background, RUNNING_MAX};
use crate::command::Command;
use crate::condition;
use crate::contract::{of_body, of_command, of_cut};
use crate::face::FACES_MAX;
use crate::http::{Address, Body, Poster};
use crate::ids::session_name;
use crate::matcher::Matchers;
use crate::meaning::{Meaning, not_run, refusal};
use crate::model;
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
/// it, or when the session's time limit is over, the command is killed. Processes that it leaves behind when it exits may
/// go on for 30 s, and end with its session. 1 MiB is kept of each of its streams, and 1 MiB read of a server's response.
///
/// A hook that the turn doesn't wait for runs in the background, and so does what others leave behind: at most 16 at a time, ended with its session. What it
/// says reaches the model with its next call.
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
    background: Arc<Background>,
}

impl ProgramHooks {
    /// A runner for these options.
    #[must_use]
    pub fn new(options: ProgramHooksOptions) -> Self {
        let background = Arc::<Background>::default();
        let asking = Asking {
            poster: Poster::new(options.clock, options.header_env),
            matchers: Matchers::default(),
            spill: options.spill,
            redactor: options.redactor,
            extra_env: options.extra_env,
            background: Arc::clone(&background),
        };
        Self { asking: Arc::new(asking), background }
    }

    /// Starts a hook that the turn doesn't wait for.
    fn start(&self, hook: &HookPolicy, question: &HookQuestion, point: HookPoint) -> HookAnswer {
        let session = HookQuery::by(hook, question, point).session();
        let asking = Arc::clone(&self.asking);
        let later = (hook.clone(), question.clone());
        let is_started = self.background.start(session, hook.setup.waiting, async move {
            let (hook, question) = later;
            let answer = asking.ask(&hook, &question, point, &CancellationToken::new()).await;
            said_later(&hook, &question, answer).await;
        });
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
        // It allows the call only if it was asked about all of it.
        let unasked = (chosen.len() < faces.len()).then(Meaning::nothing);
        let answers = chosen.into_iter().map(|asked| self.run_program(hook, asked, cancel));
        let answers = join_all(answers).await;
        Meaning::strictest(answers.into_iter().chain(unasked), hook.on_failure)
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
            None | Some(HookProgram::Model(_)) => Meaning::failed("its policy names no program"),
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
                match command.ask(asked, question, &self.background, cancel).await {
                    Ok(finished) if finished.is_all_ended => of_command(hook, asked, &finished),
                    Ok(finished) => of_command(hook, asked, &finished).note(MAYBE_LEFT),
                    Err(why) => not_run(asked, hook, &why),
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

/// Passes on what a hook says that no turn waits for: its texts, and the reason of a refusal, which wakes the agent
/// where the hook may.
async fn said_later(hook: &HookPolicy, question: &HookQuestion, answer: HookAnswer) {
    let Some(voice) = question.voice.as_ref().filter(|_| hook.may_remind) else { return };
    let wakes = hook.setup.waiting == HookWaiting::Wakes;
    let HookAnswer { decision, reminders, note, .. } = answer;
    let refused = match decision {
        HookDecision::Deny(reason) | HookDecision::Pause(reason) | HookDecision::Abort(reason) if wakes => {
            Some(reason)
        }
        _ => None,
    };
    // Where a refusal can only be told it is a text already.
    let urgency = if wakes { HookUrgency::Wakes } else { HookUrgency::Reminds };
    for body in refused.into_iter().chain(reminders) {
        voice.say(&hook.name, body, urgency).await;
    }
    if let Some(note) = note {
        voice.say(&hook.name, note, HookUrgency::Reminds).await;
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
        match hook.setup.waiting {
            HookWaiting::Waits => self.asking.ask(hook, question, point, cancel).await,
            HookWaiting::Background | HookWaiting::Wakes => self.start(hook, question, point),
        }
    }

    fn prompt(&self, hook: &HookPolicy, question: &HookQuestion, point: HookPoint) -> Result<String, String> {
        let asked = HookQuery::by(hook, question, point);
        self.asking.chosen(hook, asked)?;
        match &hook.program {
            Some(HookProgram::Model(model)) => Ok(model::filled(&model.prompt, &asked.json())),
            _ => Err("it is no model".to_owned()),
        }
    }

    fn read(&self, hook: &HookPolicy, question: &HookQuestion, point: HookPoint, text: &str) -> HookAnswer {
        let asked = HookQuery::by(hook, question, point);
        let mut answer = match &hook.program {
            Some(HookProgram::Model(model)) => model::of_model(hook, model, asked, text).into_answer(),
            _ => HookAnswer::only(model::is_no_model()),
        };
        texts(&mut answer).into_iter().for_each(|text| self.asking.redactor.mask_known(text));
        answer
    }

    fn session_over(&self, session: SessionId) {
        self.background.session_over(session);
    }

    async fn waking_over(&self, session: SessionId) {
        self.background.waking_over(session).await;
    }

    fn session_name(&self, contract: HookContract, session: SessionId) -> String {
        session_name(contract, session)
    }

    fn transcript(&self, contract: HookContract, session: SessionId) -> Box<dyn HookTranscript> {
        transcript(contract, session)
    }
}
