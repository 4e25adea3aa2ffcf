//! Drives programs by a structured stream instead of a terminal: the same log entries, without interpreting a
//! screen.
//!
//! | file | what lives there |
//! |---|---|
//! | `stream_item.rs` | the events of a stream, independent of its format |
//! | `format.rs` | the trait of a format's reader; the arguments that make a program use the format |
//! | `acp.rs`, `app_server.rs`, `stream_json.rs` | one format each: pure readers |
//! | `subject.rs` | what a question is about, beyond doubt or not at all |
//! | `live.rs` | a program with its reader |
//! | `turn.rs` | the present prompt and its results so far |
//! | `exchange.rs` | one exchange: prompt, events, log entries |
//! | `ending.rs` | how a prompt ends: done, cut off, failed, interrupted |
//! | `opening.rs` | starts the program, resumes its session |
//! | `kept.rs` | state that survives the process |
//! | `meter.rs` | usage, and how much of it was charged |
//!
//! A line that isn't of the format is counted and skipped, and so is one beyond [`live::LINE_BYTES_MAX`]. What the
//! program writes between two exchanges stays in its pipe: the withdrawal of a question in that time is noticed
//! when its answer arrives.

mod acp;
mod app_server;
mod ending;
mod exchange;
mod format;
mod kept;
mod live;
mod meter;
mod opening;
mod rpc;
mod stream_item;
mod stream_json;
mod subject;
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
use provost_terminal::{Profile, ProgramChannel, StructuredChannel};
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

/// The channels to try with `policy`'s program, in this order. `Auto` is the order of `profile`, without the streams that
/// have no consent requests, or on which one of the program's arguments has no effect; only the terminal where the goal isn't
/// the first prompt (arguments that hold a goal are for the terminal), and where a person works at the program.
///
/// # Errors
/// `Program`: a structured stream is required, and the profile has none that takes the arguments.
pub(crate) fn channels(
    policy: &ExternalPolicy,
    profile: &Profile,
) -> Result<Vec<ProgramChannel>, ModelFailure> {
    let terminal = || Ok(vec![ProgramChannel::Terminal]);
    match policy.channel {
        // Only a command that passes its streams on has them, and drives the program by them.
        Channel::Terminal | Channel::Streams => terminal(),
        Channel::Auto if policy.attended || !policy.submits_goal => terminal(),
        Channel::Auto => {
            let suits = |channel: &&ProgramChannel| match channel {
                ProgramChannel::Terminal => true,
                ProgramChannel::Stream(stream) => {
                    format::asks(stream) && stream_args(stream, policy, profile).is_ok()
                }
            };
            let before_terminal = |channel: &&ProgramChannel| **channel != ProgramChannel::Terminal;
            let streams = profile.channels.iter().take_while(before_terminal).filter(suits).cloned();
            Ok(streams.chain([ProgramChannel::Terminal]).collect())
        }
        Channel::Structured => {
            let stream = profile.streams().next().ok_or_else(|| {
                let message = format!(
                    "profile `{}` names no structured stream to speak to `{}` by: take the terminal, \
                     or give the profile a [[channels]]",
                    profile.name, policy.program
                );
                ModelFailure::new(ErrorClass::Program, message)
            })?;
            stream_args(stream, policy, profile)?;
            Ok(vec![ProgramChannel::Stream(stream.clone())])
        }
    }
}

/// The program's arguments on `stream`, without those that select it.
///
/// # Errors
/// `Program`: one of them has no effect there.
fn stream_args(
    stream: &StructuredChannel,
    policy: &ExternalPolicy,
    profile: &Profile,
) -> Result<Vec<String>, ModelFailure> {
    let (runner, own) = policy.args.split_at(profile.own_args_from(&policy.program, &policy.args));
    let own = stream.taken(own).map_err(|arg| {
        let message = format!(
            "`{arg}` has no effect on the structured stream of `{}` ({}): leave it out, or take the terminal",
            policy.program,
            stream.format.name()
        );
        ModelFailure::new(ErrorClass::Program, message)
    })?;
    Ok(runner.iter().cloned().chain(own).collect())
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
    /// What it said to a prompt whose answer was followed by another prompt of the same exchange.
    said_before: String,
    /// The program can't be driven by this stream, and was told nothing yet.
    is_unfit: bool,
}

impl StructuredDriver {
    /// Makes the driver of `session` for `profile`'s `channel`. Starts nothing. Reads the small file that an earlier
    /// process may have left for the session.
    #[must_use]
    pub fn new(
        channel: StructuredChannel,
        profile: &Profile,
        options: &DriversOptions,
        session: SessionId,
    ) -> Self {
        let kept = Kept::read(&options.folder, session);
        Self {
            session,
            channel,
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
            said_before: String::new(),
            is_unfit: false,
            kept,
        }
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
        match cancel.run_until_cancelled(live.say(reply.lines)).await {
            None => return ToolOutput::error("Stopped before the program was answered."),
            Some(Err(closed)) => return ToolOutput::error(format!("It couldn't be answered: {closed}.")),
            Some(Ok(())) => self.turn.asked = None,
        }
        match self.noted_answer(fingerprint, &reply.choice).await {
            Ok(()) => ToolOutput::ok(format!("Answered: {}", reply.choice)),
            Err(error) => ToolOutput::error(format!("It was answered, but that couldn't be noted: {error}")),
        }
    }

    /// Whether the program can't be driven by this stream, and was told nothing by it: another channel may do.
    pub(crate) const fn is_unfit(&self) -> bool {
        self.is_unfit
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
        let what = self.channel.format.name().to_owned();
        let evidence = TerminalEvidence { source: EvidenceSource::Signal, what };
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
