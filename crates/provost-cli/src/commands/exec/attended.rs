//! A person at the program: this terminal is a client of the process that works on the run, which goes on without it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use provost_config::DetachKey;
use provost_event::{ActorKey, Entry, LifecycleEntry, Record, RunId, SessionId};
use provost_external::Role;
use provost_harness::{Backend, HarnessCallback as _, RunPosition};
use provost_process::{BackgroundProcess, Confinement, Launch, OpeningLine, start_in_background};
use provost_view::run_state;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::{AttendedWork, IN_BACKGROUND, PersonsTerminal};
use crate::attached::{Asides, Attaching, Left, is_not_there};
use crate::cli::{ExecArgs, ShownArgs};
use crate::commands::follow::Following;
use crate::commands::run::Ready;
use crate::drive::Report;
use crate::exit::Exit;
use crate::output::tell;
use crate::render::{Attached, Progress};
use crate::reports::reporting;
use crate::signals::Signals;
use crate::stands_for::StandsFor;
use crate::unattended::{Said, new_run};
use crate::watcher::{Asks, Watcher};
use crate::wiring::variables;

/// How often to look for a program that can be attached to: at first, and later, when stop hooks or judges work.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS: u32 = 300;
const LATER_LOOK: Duration = Duration::from_millis(100);
/// How long the end of a run's output, and of its log, may take once its process has ended.
const END_WITHIN: Duration = Duration::from_secs(2);
const LOG_END_WITHIN: Duration = Duration::from_millis(500);

/// Starts a process that works on the run, and is its terminal until the run stops or the terminal is detached.
pub(super) async fn attend(args: ExecArgs) -> anyhow::Result<Exit> {
    let ready = Ready::new(&args.work(), args.flags())?;
    let shown = args.shown;
    let key = ready.settled.settings.exec.detach_key;
    let mut signals = Signals::listen().context("can't listen for Ctrl-C")?;
    if !shown.quiet {
        tell(&format!("{key} detaches this terminal from the program; it goes on"));
    }
    let run = new_run();
    let mut worker = start_in_background(launch(run, args)?).context("can't start the run's process")?;
    let begun = tokio::select! {
        line = worker.line() => line.context("can't read from the run's process")?,
        signal = signals.next() => {
            // Without a terminal it goes on, as it does later.
            if signal != HANGUP {
                let _ = worker.process().ask_to_end();
            }
            return Ok(Exit::Cancelled);
        }
    };
    if !matches!(serde_json::from_str(&begun), Ok(Said::Begun)) {
        // It has said why, on this terminal.
        return Ok(worker.wait().await?.map_or(Exit::Failed, status));
    }
    let asides = Asides::default();
    let folder = ready.place.terminals();
    let progress = if shown.quiet { Progress::Silent } else { Progress::Attended };
    let view = reporting(progress.view(None), &ready.settled.settings, Some(asides.clone()));
    let watcher = Arc::new(Watcher::new(view, Asks::Elsewhere, HashMap::new()));
    let backend = ready.place.open().await?;
    let (over, is_over) = watch::channel(false);
    let person = Person { folder, key, asides, run, watcher: watcher.clone(), is_over };
    let client = Client { ready, backend, run, shown, worker, watcher, signals, over };
    client.work(person).await
}

const HANGUP: &str = "SIGHUP";

/// This program again, which works on the run.
fn launch(run: RunId, args: ExecArgs) -> anyhow::Result<Launch<OpeningLine>> {
    let variables = variables();
    let work = AttendedWork { args, terminal: PersonsTerminal::here(&variables) };
    Ok(Launch {
        program: std::env::current_exe().context("can't tell which program this is")?.into(),
        args: vec![IN_BACKGROUND.into(), run.to_string().into()],
        env: variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        cwd: crate::commands::current_dir()?,
        stdio: OpeningLine { input: serde_json::to_vec(&work)? },
        confinement: Confinement::Strongest,
    })
}

fn status(code: i32) -> Exit {
    u8::try_from(code).map_or(Exit::Failed, Exit::Status)
}

/// The terminal's side of a run that another process works on.
struct Client {
    ready: Ready,
    backend: Arc<dyn Backend>,
    run: RunId,
    shown: ShownArgs,
    worker: BackgroundProcess,
    watcher: Arc<Watcher>,
    signals: Signals,
    over: watch::Sender<bool>,
}

/// How it ended here.
enum Came {
    /// The process that works on the run has ended, with this exit status unless it was killed.
    Ended(Option<i32>),
    /// The run goes on.
    Detached,
}

impl Client {
    async fn work(mut self, person: Person) -> anyhow::Result<Exit> {
        let mut records = Following::new(&*self.backend, self.run, RunPosition::START, HashMap::new());
        let came = self.attend(person, &mut records).await?;
        let Came::Ended(code) = came else {
            self.watcher.close();
            let run = self.run;
            tell(&format!(
                "detached; the run goes on: provost attach {run} comes back to it, from any terminal"
            ));
            return Ok(Exit::Done);
        };
        // Its last entries may still be on their way here.
        while let Ok(record) = timeout(LOG_END_WITHIN, records.next()).await {
            let record = record?;
            self.watcher.on_record(&record);
            if is_end(&record, self.run) {
                break;
            }
        }
        self.watcher.close();
        self.report(code).await
    }

    /// Passes the terminal's keys and signals on, and shows what the program shows, until it is detached or the run
    /// stops.
    async fn attend(&mut self, person: Person, records: &mut Following) -> anyhow::Result<Came> {
        let mut person = pin!(person.work());
        let code = loop {
            tokio::select! {
                code = self.worker.wait() => break code?,
                () = &mut person => return Ok(Came::Detached),
                record = records.next() => self.watcher.on_record(&record?),
                signal = self.signals.next() => {
                    if signal == HANGUP {
                        return Ok(Came::Detached);
                    }
                    self.pass_on(signal);
                }
            }
        };
        // What the program has shown last is shown.
        self.over.send_replace(true);
        let _ = timeout(END_WITHIN, person).await;
        Ok(Came::Ended(code))
    }

    /// The process that works on the run stops it as it would at a terminal of its own.
    fn pass_on(&self, signal: &'static str) {
        self.watcher.stopping(signal);
        let process = self.worker.process();
        // One that has ended needs no signal.
        let _ = if signal == "Ctrl-C" { process.interrupt() } else { process.ask_to_end() };
    }

    async fn report(&self, code: Option<i32>) -> anyhow::Result<Exit> {
        let run = self.run;
        let outcome = run_state(&*self.backend, run).await?.and_then(|state| state.outcome().cloned());
        let (Some(code), Some(outcome)) = (code, outcome) else {
            let how =
                if code.is_some() { "stopped at once" } else { "the process that worked on it was killed" };
            tell(&format!("{how}, in the middle of what it did\ngo on with: provost resume {run}"));
            return Ok(code.map_or(Exit::Waiting, status));
        };
        let place = &self.ready.place;
        let backend = &*self.backend;
        let shown = self.shown;
        let stands_for = &StandsFor::Run;
        let report = Report { backend, run, place, shown, progress: Progress::Attended, stands_for };
        report.tell(&outcome).await?;
        // For its words; the status is that of the process.
        let _ = report.exit(&outcome);
        Ok(status(code))
    }
}

/// Whether it is the last entry of a run that is suspended or has ended.
fn is_end(record: &Record, run: RunId) -> bool {
    let ends = matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Ended(_) | LifecycleEntry::Paused(_)));
    ends && record.actor == ActorKey::Run(run)
}

/// A person at the terminal of this process.
struct Person {
    folder: PathBuf,
    key: DetachKey,
    asides: Asides,
    run: RunId,
    watcher: Arc<Watcher>,
    /// No program will be started any more.
    is_over: watch::Receiver<bool>,
}

impl Person {
    /// Connects the terminal with the program each time that it is started, until it is detached or none will be.
    async fn work(self) {
        let folder = self.folder.as_path();
        let asides = self.asides.clone();
        let session = SessionId::root(self.run);
        let attaching = Attaching { folder, session, role: Role::Control, key: self.key, asides };
        let mut looks = 0;
        loop {
            let joined = match attaching.join().await {
                Err(error) if is_not_there(&error) => {
                    if *self.is_over.borrow() {
                        return;
                    }
                    sleep(if looks < LOOKS { LOOK } else { LATER_LOOK }).await;
                    looks += 1;
                    continue;
                }
                joined => joined,
            };
            self.watcher.view().attached(Attached::Here);
            let left = match joined {
                Ok(joined) => joined.converse().await,
                Err(error) => Err(error),
            };
            self.watcher.view().attached(Attached::Gone);
            match left {
                // Stop hooks may have it started again.
                Ok(Left::Gone(_) | Left::Lost) => {}
                Ok(Left::Detached) => return,
                Err(error) => {
                    self.watcher.view().note(&format!("this terminal can't be attached: {error:#}"));
                    return std::future::pending().await;
                }
            }
        }
    }
}
