//! Starts the program, and resumes its session.

use std::time::Duration;

use provost_event::{Channel, ErrorClass, ModelFailure, TerminalEvent, TerminalNoted, TerminalState};
use provost_harness::Exchange;
use provost_process::{Launch, OpenPipes, PipedChild, PipedCommand, PipedEnding, SpawnError};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::boxed::{Starting, surroundings};

use super::format::{self, Opening};
use super::live::{Came, LINE_BYTES_MAX, Live, STDERR_BYTES_MAX};
use super::stream_item::StreamItem;
use super::{StructuredDriver, ending, stream_args};

/// How long a program may take until it accepts a prompt.
const READY_MAX: Duration = Duration::from_secs(60);

/// The ending of a process that has ended its stream.
const LEAVES: PipedEnding = PipedEnding { own: Duration::ZERO, grace: Duration::from_secs(5) };

impl StructuredDriver {
    /// Ensures a running program that accepts a prompt.
    pub(super) async fn make_ready(
        &mut self,
        exchange: &mut Exchange<'_>,
        cancel: &CancellationToken,
    ) -> Result<(), ModelFailure> {
        if self.live.as_ref().is_some_and(|live| live.exit().is_some()) {
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
                    self.note_unfit();
                    return Err(self.ended(exit, exchange, "before it could be told anything").await);
                }
                None => {
                    self.note_unfit();
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
        let own = stream_args(&self.channel, policy, &self.profile)?;
        let args: Vec<String> = own.into_iter().chain(arguments).collect();
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
        // As programs name it: they follow links.
        let workspace = exchange.workspace.to_owned();
        let folder = spawn_blocking(move || workspace.canonicalize().unwrap_or(workspace)).await;
        let folder = folder.unwrap_or_else(|_| exchange.workspace.to_owned());
        let opening = Opening {
            folder: &folder.to_string_lossy(),
            session: self.kept.session.as_deref(),
            pid,
            command_titles: self.channel.command_titles,
        };
        let reader = format::reader(self.channel.format, opening);
        self.meter.forget_process();
        self.kept.starts = self.kept.starts.saturating_add(1);
        self.live = Some(Live::new(child, reader));
        let words = std::iter::once(policy.program.as_str()).chain(args.iter().map(String::as_str));
        let started = TerminalEvent::Started {
            command: words.map(|word| exchange.redactor.redact(word).into_owned()).collect(),
            pid,
            channel: Channel::Structured,
            recording: None,
        };
        exchange.log.note(TerminalNoted::certain(started)).await.map_err(|error| ending::storage(&error))?;
        self.state = TerminalState::Starting;
        if !format::asks(&self.channel) {
            let text =
                "nothing is asked by this stream: what it does, the program decides by itself".to_owned();
            let noted = TerminalNoted::certain(TerminalEvent::Notification { text });
            exchange.log.note(noted).await.map_err(|error| ending::storage(&error))?;
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
                self.note_unfit();
                let message = format!("`{}` can't be driven: {why}", exchange.policy.program);
                Err(ModelFailure::new(ErrorClass::Program, message))
            }
            StreamItem::Locked(why) => {
                let message = format!("`{}` can't work: {why}", exchange.policy.program);
                Err(ModelFailure::new(ErrorClass::Unauthorized, message))
            }
            StreamItem::Model(model) => {
                self.model = Some(model);
                Ok(())
            }
            StreamItem::Error(line) => self.note_error(&line, exchange).await,
            StreamItem::Notice(text) => self.note_notice(&text, exchange).await,
            _ => Ok(()),
        }
    }

    /// Another channel may do, as long as the program was told nothing by this one.
    fn note_unfit(&mut self) {
        self.is_unfit = !self.was_told && self.kept.session.is_none();
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
