//! A plain program with the standard streams of the command that runs it: in a pipe or a script it reads, writes and ends
//! as it does without Provost.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use provost_event::{Channel, ErrorClass, Exit, ModelFailure, TerminalEvent, TerminalNoted, TerminalState};
use provost_harness::{Exchange, TerminalLog};
use provost_process::{Launch, MAYBE_LEFT, OwnOutput, OwnStreams, OwnStreamsChild, PipedEnding, PtySignal};
use provost_terminal::Profile;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::boxed::{Starting, surroundings};
use crate::driver::{Came, Ended, command_shown, not_started, profile_of, storage};
use crate::drivers::DriversOptions;

/// The time between the request to end and the kill.
const GRACE: Duration = Duration::from_secs(5);

/// Signals that wait until the program's driver sends them; further ones are dropped.
const SIGNALS_MAX: usize = 16;

/// The standard streams of this process, for the one program that gets them, and the way to it for signals.
#[derive(Debug, Clone)]
pub struct PassedStreams {
    output: OwnOutput,
    signals: Arc<Mutex<Option<mpsc::Sender<PtySignal>>>>,
}

impl PassedStreams {
    /// The streams of this process; the program's standard output goes to `output`.
    #[must_use]
    pub fn new(output: OwnOutput) -> Self {
        Self { output, signals: Arc::default() }
    }

    /// Forwards a signal to the program. Returns whether one is running.
    #[must_use]
    pub fn signal(&self, signal: PtySignal) -> bool {
        let signals = self.signals.lock().unwrap_or_else(PoisonError::into_inner);
        signals.as_ref().is_some_and(|signals| signals.try_send(signal).is_ok())
    }

    fn listen(&self) -> mpsc::Receiver<PtySignal> {
        let (sender, receiver) = mpsc::channel(SIGNALS_MAX);
        *self.signals.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    fn forget(&self) {
        *self.signals.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Such a program, from its start to its end.
pub(crate) struct PassedDriver {
    child: OwnStreamsChild,
    streams: PassedStreams,
    signals: mpsc::Receiver<PtySignal>,
    profile: Arc<Profile>,
    program: String,
    log: TerminalLog,
}

impl PassedDriver {
    /// Starts the program of `exchange`.
    pub(crate) async fn start(
        options: &DriversOptions,
        streams: &PassedStreams,
        exchange: &mut Exchange<'_>,
    ) -> Result<Self, ModelFailure> {
        let policy = exchange.policy;
        let profile = profile_of(options, policy)?;
        let pointed = surroundings(options, Starting::of(exchange, &profile)).await?;
        let args = pointed.before(policy, &profile, &policy.args);
        let env = pointed.over(options.environment(policy));
        let launch = Launch {
            program: policy.program.clone().into(),
            args: args.iter().map(Into::into).collect(),
            env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: exchange.workspace.to_owned(),
            stdio: OwnStreams { output: streams.output },
            confinement: exchange.sandbox.confinement(),
        };
        let signals = streams.listen();
        let child = OwnStreamsChild::spawn(launch).await.map_err(|error| {
            streams.forget();
            not_started(&error)
        })?;
        let driver = Self {
            child,
            streams: streams.clone(),
            signals,
            profile,
            program: policy.program.clone(),
            log: exchange.log.clone(),
        };
        let command = command_shown(&policy.program, &args, &exchange.redactor);
        let pid = driver.child.pid();
        let started = TerminalEvent::Started { command, pid, channel: Channel::Streams, recording: None };
        driver.note(started).await?;
        driver.note(TerminalEvent::State(TerminalState::Working)).await?;
        Ok(driver)
    }

    /// Waits for the program's end; it is neither told nor asked anything.
    pub(crate) async fn exchange(&mut self, cancel: &CancellationToken) -> Result<Came, ModelFailure> {
        loop {
            let Self { child, signals, program, .. } = self;
            let signal = tokio::select! {
                biased;
                _ = child.exited() => return Ok(Came::Ended),
                () = cancel.cancelled() => {
                    let message = format!("`{program}` was told to stop");
                    return Err(ModelFailure::new(ErrorClass::Aborted, message));
                }
                Some(signal) = signals.recv() => signal,
            };
            self.child.signal(signal).await;
        }
    }

    /// It has ended by itself: ends its remaining processes, and records that.
    pub(crate) async fn finish(mut self, cancel: &CancellationToken) -> Result<Ended, ModelFailure> {
        let exit = self.end(cancel).await;
        self.note(TerminalEvent::Exited { exit }).await?;
        self.note_what_is_left().await;
        Ok(Ended::of(&self.profile, exit))
    }

    /// Ends the program; returns when none of its processes is left. When `cancel` fires, the remaining time is over.
    pub(crate) async fn close(mut self, cancel: &CancellationToken) -> Exit {
        let exit = self.end(cancel).await;
        // What the caller records tells of the end too.
        if let Err(error) = self.note(TerminalEvent::Exited { exit }).await {
            tracing::warn!(?error, "the end of a program could not be noted");
        }
        self.note_what_is_left().await;
        exit
    }

    async fn end(&mut self, cancel: &CancellationToken) -> Exit {
        self.streams.forget();
        self.child.end(PipedEnding { own: Duration::ZERO, grace: GRACE }, cancel).await
    }

    async fn note_what_is_left(&self) {
        if !self.child.is_all_ended()
            && let Err(error) = self.note(TerminalEvent::Error { line: MAYBE_LEFT.to_owned() }).await
        {
            tracing::warn!(?error, "what a program has left running could not be noted");
        }
    }

    async fn note(&self, event: TerminalEvent) -> Result<(), ModelFailure> {
        self.log.note(TerminalNoted::certain(event)).await.map_err(|error| storage(&error))
    }
}
