//! What a command stands for: the run that it works on, or the program of that run, which it then ends as.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use provost_event::{Channel, Outcome, RunId, RunPolicy};
use provost_external::PassedStreams;
use provost_harness::Backend;
use provost_process::{OwnOutput, PtySignal};
use provost_view::{RunFacts, run_state};

use crate::cli::ShownArgs;
use crate::exit::Exit;
use crate::output;
use crate::render::{Detail, Progress};
use crate::signals::{Caught, Signals};
use crate::unattended::works_for_server;

/// How many signals that ask for an end the program gets. The next one ends the run.
const ENDINGS_MAX: u32 = 2;

/// What a command stands for.
#[derive(Debug, Clone)]
pub(crate) enum StandsFor {
    /// The run.
    Run,
    /// The program of its first agent, at a terminal.
    Program,
    /// That program, which has the streams of this command and gets its signals.
    ProgramWithStreams(PassedStreams),
}

impl StandsFor {
    /// What a run's program is given of this command by the run's policy.
    pub(crate) fn of(policy: &RunPolicy, shown: ShownArgs) -> Self {
        let channel = policy.agent.external.as_ref().map(|external| external.channel);
        // What a server starts has no streams of its own.
        if channel != Some(Channel::Streams) || works_for_server() {
            return Self::Run;
        }
        let output = if shown.json { OwnOutput::Errors } else { OwnOutput::Output };
        Self::ProgramWithStreams(PassedStreams::new(output))
    }

    /// The streams that the program gets.
    pub(crate) fn streams(&self) -> Option<PassedStreams> {
        match self {
            Self::ProgramWithStreams(streams) => Some(streams.clone()),
            Self::Run | Self::Program => None,
        }
    }

    /// What interrupts this command, and what the program gets of that.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn signals(&self) -> anyhow::Result<Signals> {
        let listening = match self {
            Self::ProgramWithStreams(_) => Signals::listen().and_then(Signals::with_forwarded),
            Self::Run | Self::Program => Signals::listen(),
        };
        listening.context("can't listen for Ctrl-C")
    }

    /// How the run is shown. What a program writes isn't mixed with anything that wasn't asked for.
    pub(crate) fn progress(&self, shown: ShownArgs) -> Progress {
        if !matches!(self, Self::ProgramWithStreams(_)) {
            return Progress::choose(shown);
        }
        if !shown.verbose && !std::io::stderr().is_terminal() {
            output::hold_notes();
        }
        match shown {
            ShownArgs { json: true, .. } => Progress::Json,
            ShownArgs { verbose: true, .. } => Progress::Plain(Detail::Everything),
            _ => Progress::Passed,
        }
    }

    /// Forwards a signal; returns whether that was all there is to do.
    pub(crate) fn takes(&self, caught: Caught, endings: &mut u32) -> bool {
        let Self::ProgramWithStreams(streams) = self else { return false };
        if !asks_to_end(caught.signal) {
            // Without a program nothing is meant by it.
            let _ = streams.signal(caught.signal);
            return true;
        }
        *endings = endings.saturating_add(1);
        *endings <= ENDINGS_MAX && streams.signal(caught.signal)
    }

    /// The exit status of the program, where it has ended by itself and not with success.
    pub(crate) async fn status(
        &self,
        backend: &dyn Backend,
        run: RunId,
        outcome: &Outcome,
    ) -> anyhow::Result<Option<Exit>> {
        let is_by_itself = matches!(outcome, Outcome::Completed { .. } | Outcome::Failed { .. });
        if matches!(self, Self::Run) || !is_by_itself {
            return Ok(None);
        }
        let Some(state) = run_state(backend, run).await? else { return Ok(None) };
        let facts = RunFacts::read(backend, run, &state).await?;
        Ok(facts.program.and_then(|program| program.exit).and_then(Exit::of_program))
    }
}

const fn asks_to_end(signal: PtySignal) -> bool {
    !matches!(signal, PtySignal::User1 | PtySignal::User2)
}
