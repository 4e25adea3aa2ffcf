//! Starts the program, and resumes its session.

use std::time::Duration;

use provost_event::{Channel, ErrorClass, ModelFailure, TerminalEvent, TerminalNoted, TerminalState};
use provost_harness::Exchange;
use provost_process::{Launch, OpenPipes, PipedChild, PipedCommand, PipedEnding, SpawnError};
use tokio_util::sync::CancellationToken;

use crate::boxed::{Starting, surroundings};

use super::format::{self, Life, Opening};
use super::live::{Came, LINE_BYTES_MAX, Live, STDERR_BYTES_MAX};
use super::stream_item::StreamItem;
use super::{StructuredDriver, exchange};

/// How long a program may take until it accepts a prompt.
const READY_MAX: Duration = Duration::from_secs(60);

/// How long a one-prompt process may take to end by itself: Codex takes 5 s.
const LEAVES_OWN: Duration = Duration::from_secs(8);

/// How long it may take after the request to end.
const LEAVES_GRACE: Duration = Duration::from_secs(5);

const LEAVES: PipedEnding = PipedEnding { own: LEAVES_OWN, grace: LEAVES_GRACE };

impl StructuredDriver {
    /// Ensures a running program that accepts a prompt.
    pub(super) async fn make_ready(
        &mut self,
        exchange: &mut Exchange<'_>,
        cancel: &CancellationToken,
    ) -> Result<(), ModelFailure> {
        if self.live.as_ref().is_some_and(|live| live.life == Life::Prompt || live.exit().is_some()) {
            self.retire(LEAVES, cancel).await;
        }
        if self.live.is_none() {
            self.start(exchange).await?;
        }
        while self.live.as_ref().is_some_and(|live| !live.reader.is_ready()) {
            let limit = Some(READY_MAX);
            match self.hear(limit, cancel).await? {
                Some(Came::Said(said)) => self.take_opening(said, exchange).await?,
                Some(Came::Stirred) => {}
                Some(Came::Ended(exit)) => {
                    return Err(self.ended(exit, exchange, "before it could be told anything").await);
                }
                None => {
                    let message = format!(
                        "`{}` wasn't ready for a prompt within {} s of its start{}",
                        exchange.policy.program,
                        READY_MAX.as_secs(),
                        self.last_output(exchange)
                    );
                    return Err(ModelFailure::new(ErrorClass::Program, message));
                }
            }
        }
        Ok(())
    }

    async fn start(&mut self, exchange: &mut Exchange<'_>) -> Result<(), ModelFailure> {
        let policy = exchange.policy;
        let arguments = format::arguments(&self.channel, self.kept.session.as_deref());
        let starting =
            Starting { session: self.session, policy, profile: &self.profile, sandbox: &exchange.sandbox };
        let pointed = surroundings(&self.options, starting).await?;
        let args: Vec<String> = policy.args.iter().cloned().chain(arguments).collect();
        let args = pointed.before(policy, &self.profile, &args);
        let command = PipedCommand {
            launch: Launch {
                program: policy.program.clone().into(),
                args: args.iter().map(Into::into).collect(),
                env: pointed
                    .over(self.options.environment(policy))
                    .into_iter()
                    .map(|(name, value)| (name.into(), value.into()))
                    .collect(),
                cwd: exchange.workspace.to_owned(),
                stdio: OpenPipes,
                confinement: exchange.sandbox.confinement(),
            },
            line_bytes_max: LINE_BYTES_MAX,
            stderr_bytes_max: STDERR_BYTES_MAX,
        };
        let child = PipedChild::spawn(command).await.map_err(|error| not_started(&error))?;
        let pid = child.pid();
        let folder = exchange.workspace.to_string_lossy();
        let opening = Opening { folder: &folder, session: self.kept.session.as_deref(), pid };
        let reader = format::reader(self.channel.format, opening);
        self.meter.forget_process();
        self.kept.starts = self.kept.starts.saturating_add(1);
        self.live = Some(Live::new(child, reader, format::life(self.channel.format)));
        let words = std::iter::once(policy.program.as_str()).chain(args.iter().map(String::as_str));
        let started = TerminalEvent::Started {
            command: words.map(|word| exchange.redactor.redact(word).into_owned()).collect(),
            pid,
            channel: Channel::Structured,
            recording: None,
        };
        exchange
            .log
            .note(TerminalNoted::certain(started))
            .await
            .map_err(|error| exchange::storage(&error))?;
        self.state = TerminalState::Starting;
        if !format::asks(&self.channel) {
            let text =
                "nothing is asked by this stream: what it does, the program decides by itself".to_owned();
            let noted = TerminalNoted::certain(TerminalEvent::Notification { text });
            exchange.log.note(noted).await.map_err(|error| exchange::storage(&error))?;
        }
        if let Some(live) = self.live.as_mut() {
            let lines = live.reader.open();
            live.tell(lines).await;
        }
        Ok(())
    }

    async fn take_opening(
        &mut self,
        said: StreamItem,
        exchange: &mut Exchange<'_>,
    ) -> Result<(), ModelFailure> {
        match said {
            StreamItem::Session(name) => {
                self.kept.session = Some(name);
                self.keep().await;
                Ok(())
            }
            StreamItem::Lost(why) => self.lost(&why, exchange).await,
            StreamItem::Unfit(why) => {
                let message = format!("`{}` can't be driven: {why}", exchange.policy.program);
                Err(ModelFailure::new(ErrorClass::Program, message))
            }
            StreamItem::Error(line) => self.note_error(&line, exchange).await,
            _ => Ok(()),
        }
    }

    /// The program has lost its session, and with it all earlier prompts.
    pub(super) async fn lost(&mut self, why: &str, exchange: &mut Exchange<'_>) -> Result<(), ModelFailure> {
        self.kept.session = None;
        self.meter.forget_session();
        exchange.words.start_over();
        self.note_error(&format!("its earlier session is gone, another begins: {why}"), exchange).await
    }
}

fn not_started(error: &SpawnError) -> ModelFailure {
    let hint = match error {
        SpawnError::ProgramNotFound { .. } => ": install it, or give its whole path",
        SpawnError::FolderNotFound { .. } | SpawnError::Failed { .. } => "",
    };
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    ModelFailure::new(ErrorClass::Program, format!("{error}{cause}{hint}"))
}
