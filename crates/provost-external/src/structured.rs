//! Drives programs by a structured stream instead of a terminal: the same log entries, without interpreting a
//! screen.
//!
//! | file | what lives there |
//! |---|---|
//! | `said.rs` | the events of a stream, independent of its format |
//! | `format.rs` | the trait of a format's reader; the arguments that make a program use the format |
//! | `codex.rs`, `acp.rs`, `stream_json.rs` | one format each: pure readers |
//! | `live.rs` | a program with its reader |
//! | `turn.rs` | the present prompt and its results so far |
//! | `exchange.rs` | one exchange: prompt, events, log entries |
//! | `opening.rs` | starts the program, resumes its session |
//! | `kept.rs` | state that survives the process |
//! | `meter.rs` | usage, and how much of it was charged |
//!
//! A line that isn't of the format is counted and skipped, and so is one beyond [`live::LINE_BYTES_MAX`]. What the
//! program writes between two exchanges stays in its pipe: the withdrawal of a question in that time is noticed
//! when its answer arrives.

mod acp;
mod codex;
mod exchange;
mod format;
mod kept;
mod live;
mod meter;
mod opening;
mod stream_item;
mod stream_json;
#[cfg(test)]
mod tests;
mod turn;
mod value;

use std::path::PathBuf;
use std::time::Duration;

use provost_event::{
    CallId, Channel, ErrorClass, EvidenceSource, Exit, ExternalPolicy, ModelFailure, SessionId,
    TerminalEvent, TerminalEvidence, TerminalNoted, TerminalState,
};
use provost_harness::{BackendError, TerminalLog, ToolOutput};
use provost_process::{MAYBE_LEFT, PipedEnding};
use provost_terminal::{Profile, StreamFormat, StructuredChannel};
use tokio_util::sync::CancellationToken;

use crate::DriversOptions;
use format::NoReply;
use kept::Kept;
use live::Live;
use meter::Meter;
use turn::Turn;

/// How long a program may take to end by itself once its input is closed; a program that is at work gets the
/// request to end at once.
const CLOSE_OWN: Duration = Duration::from_secs(4);

/// How long it may take after the request to end.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// The channel of `policy`'s program. `Auto` is the structured stream if `profile` has one with consent requests,
/// the goal is the first prompt (arguments that hold a goal are for the terminal), and no person works at the
/// program.
///
/// # Errors
/// `Program`: the structured stream is required, and the profile has none.
pub(crate) fn channel(policy: &ExternalPolicy, profile: &Profile) -> Result<Channel, ModelFailure> {
    let is_there = profile.channel.is_some();
    let asks = profile.channel.as_ref().is_some_and(format::asks);
    match policy.channel {
        // Only a command that passes its streams on has them, and drives the program by them.
        Channel::Terminal | Channel::Streams => Ok(Channel::Terminal),
        Channel::Auto if asks && policy.submits_goal && !policy.attended => Ok(Channel::Structured),
        Channel::Auto => Ok(Channel::Terminal),
        Channel::Structured if is_there => Ok(Channel::Structured),
        Channel::Structured => {
            let message = format!(
                "profile `{}` names no structured stream to speak to `{}` by: take the terminal, \
                 or give the profile a [channel]",
                profile.name, policy.program
            );
            Err(ModelFailure::new(ErrorClass::Program, message))
        }
    }
}

/// Drives one session's program by its structured stream.
pub struct StructuredDriver {
    session: SessionId,
    channel: StructuredChannel,
    profile: Profile,
    options: DriversOptions,
    live: Option<Live>,
    /// How the last process ended.
    exit: Option<Exit>,
    kept: Kept,
    meter: Meter,
    turn: Turn,
    log: Option<TerminalLog>,
    model: Option<String>,
    state: TerminalState,
    /// It was given a prompt by this driver.
    was_told: bool,
    /// The number of questions passed on.
    asks: u64,
    /// Text from Provost itself for the next prompt.
    own_words: Option<String>,
}

impl StructuredDriver {
    /// Makes the driver of `session`; `None` if `profile` has no structured stream. Starts nothing. Reads the
    /// small file that an earlier process may have left for the session.
    #[must_use]
    pub fn new(profile: &Profile, options: &DriversOptions, session: SessionId) -> Option<Self> {
        let kept = Kept::read(&options.folder, session);
        Some(Self {
            session,
            channel: profile.channel.clone()?,
            profile: profile.clone(),
            options: options.clone(),
            live: None,
            exit: None,
            meter: Meter::from(kept.used, kept.spent),
            turn: Turn::default(),
            log: None,
            model: None,
            state: TerminalState::Starting,
            was_told: false,
            asks: 0,
            own_words: None,
            kept,
        })
    }

    /// Consents to the question of `call`, if it is still asked.
    ///
    /// # Cancellation
    /// Only waits for space in the program's pipe.
    pub async fn answer(&mut self, call: &CallId, cancel: &CancellationToken) -> ToolOutput {
        let asked = self.turn.asked.as_ref().filter(|asked| asked.call == *call);
        let Some(fingerprint) = asked.map(|asked| asked.ask.fingerprint.clone()) else {
            return ToolOutput::error("The program doesn't ask that, or no longer.");
        };
        let Some(live) = self.live.as_mut() else { return ToolOutput::error("The program is gone.") };
        live.catch_up();
        if let Some(exit) = live.exit() {
            return ToolOutput::error(format!("The program has ended ({exit}) before it was answered."));
        }
        let reply = match live.withdraws(&fingerprint) {
            true => Err(NoReply::NotAsked),
            false => live.reader.approve(&fingerprint),
        };
        let reply = match reply {
            Ok(reply) => reply,
            Err(NoReply::NotAsked) => {
                self.turn.asked = None;
                return ToolOutput::error("The program no longer asks that.");
            }
            Err(NoReply::NotOffered) => {
                return ToolOutput::error(
                    "The program offers no consent for this one time, only for good: it wasn't answered.",
                );
            }
        };
        match cancel.run_until_cancelled(live.say([reply.line])).await {
            None => return ToolOutput::error("Stopped before the program was answered."),
            Some(Err(closed)) => return ToolOutput::error(format!("It couldn't be answered: {closed}.")),
            Some(Ok(())) => self.turn.asked = None,
        }
        match self.noted_answer(fingerprint, &reply.choice).await {
            Ok(()) => ToolOutput::ok(format!("Answered: {}", reply.choice)),
            Err(error) => ToolOutput::error(format!("It was answered, but that couldn't be noted: {error}")),
        }
    }

    /// Whether its program is running.
    pub(crate) fn is_running(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.exit().is_none())
    }

    /// Ends the program and all its processes. Returns how it ended, if it was running.
    ///
    /// # Cancellation
    /// When `cancel` fires the program is killed at once.
    pub async fn close(&mut self, cancel: &CancellationToken) -> Option<Exit> {
        let own = if self.turn.is_going() { Duration::ZERO } else { CLOSE_OWN };
        self.turn = Turn::default();
        self.retire(PipedEnding { own, grace: CLOSE_GRACE }, cancel).await;
        self.exit.take()
    }

    async fn retire(&mut self, ending: PipedEnding, cancel: &CancellationToken) {
        if let Some(mut live) = self.live.take() {
            self.exit = Some(live.child.end(ending, cancel).await);
            if !live.child.is_all_ended()
                && let Err(error) = self.note(TerminalEvent::Error { line: MAYBE_LEFT.to_owned() }).await
            {
                tracing::warn!(%error, "what a program has left running could not be noted");
            }
        }
    }

    async fn noted_answer(&mut self, fingerprint: String, choice: &str) -> Result<(), BackendError> {
        self.note(TerminalEvent::Answered { fingerprint, choice: choice.to_owned() }).await?;
        self.note_state(TerminalState::Working).await
    }

    async fn note_state(&mut self, state: TerminalState) -> Result<(), BackendError> {
        if self.state == state {
            return Ok(());
        }
        self.state = state;
        self.note(TerminalEvent::State(state)).await
    }

    /// Records an event of the program or of Provost.
    async fn note(&self, event: TerminalEvent) -> Result<(), BackendError> {
        let Some(log) = &self.log else { return Ok(()) };
        let what = match self.channel.format {
            StreamFormat::CodexExec => "codex exec --json",
            StreamFormat::Acp => "Agent Client Protocol",
            StreamFormat::StreamJson => "stream-json",
        };
        let evidence = TerminalEvidence { source: EvidenceSource::Signal, what: what.to_owned() };
        log.note(TerminalNoted { event, confidence: 100, evidence: vec![evidence] }).await
    }

    /// Saves the state that must survive this process; without it the session can only start from the beginning.
    async fn keep(&mut self) {
        (self.kept.used, self.kept.spent) = self.meter.session();
        let (kept, folder, session): (Kept, PathBuf, _) =
            (self.kept.clone(), self.options.folder.clone(), self.session);
        let written = tokio::task::spawn_blocking(move || kept.write(&folder, session)).await;
        let written = written.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        if let Err(error) = written {
            tracing::warn!(%error, %session, "a program's session can't be taken up again after a crash");
        }
    }
}
