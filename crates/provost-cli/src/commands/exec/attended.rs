//! A person at the program: this terminal is the program's, and Provost observes.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use provost_config::DetachKey;
use provost_event::{Entry, Record, RunId, RunPolicy, Seq, SessionId, TerminalEntry, TerminalEvent};
use provost_external::Role;
use provost_harness::{Backend, BackendError, Goal, Models};

use crate::attached::{Asides, Attaching, Left, is_not_there};
use crate::commands::run::{Ready, Shape};
use crate::exit::Exit;
use crate::output::tell;
use crate::render::{Attached, Progress};
use crate::stands_for::StandsFor;
use crate::watcher::Watcher;

/// How often to check whether a program that was started can be attached to.
const LOOK: Duration = Duration::from_millis(10);
/// How often at most.
const LOOKS_MAX: u32 = 500;

pub(super) async fn work(
    ready: Ready,
    goal: Goal,
    policy: RunPolicy,
    (models, stands_for): (Models, StandsFor),
) -> anyhow::Result<Exit> {
    let (folder, key) = (ready.place.terminals(), ready.settled.settings.exec.detach_key);
    let asides = Asides::default();
    let shape = Shape { progress: Progress::Attended, asides: Some(asides.clone()), stands_for };
    tell(&format!("{key} detaches this terminal from the program; it goes on"));
    let work = ready.begin(goal, policy, models, shape).await?;
    let (backend, run, watcher) = (work.backend.clone(), work.harness.run_id(), work.watcher.clone());
    let person = Person { folder, key, asides, backend, run, watcher };
    work.finish_beside(person.work()).await
}

/// A person at the terminal of this process.
struct Person {
    folder: PathBuf,
    key: DetachKey,
    asides: Asides,
    backend: Arc<dyn Backend>,
    run: RunId,
    watcher: Arc<Watcher>,
}

impl Person {
    /// Connects the terminal with the program each time that it is started, until it is detached.
    async fn work(self) -> anyhow::Result<Infallible> {
        let session = SessionId::root(self.run);
        let mut records = self.backend.subscribe(session.into(), Seq::START);
        loop {
            started(&mut records).await?;
            let left = self.attach(session).await;
            self.watcher.view().attached(Attached::Gone);
            match left {
                // Stop hooks may have it started again.
                Ok(Left::Gone(_) | Left::Lost) => {}
                Ok(Left::Detached) => {
                    self.watcher.view().note(&format!(
                        "detached; the run goes on in this process, which Ctrl-C pauses\nback to it from any terminal: \
                         provost attach {}",
                        self.run
                    ));
                    return std::future::pending().await;
                }
                Err(error) => {
                    self.watcher.view().note(&format!("this terminal can't be attached: {error:#}"));
                    return std::future::pending().await;
                }
            }
        }
    }

    async fn attach(&self, session: SessionId) -> anyhow::Result<Left> {
        let (folder, key, asides) = (self.folder.as_path(), self.key, self.asides.clone());
        let attaching = Attaching { folder, session, role: Role::Control, key, asides };
        self.watcher.view().attached(Attached::Here);
        let mut looks = 0;
        loop {
            match attaching.converse().await {
                Err(error) if is_not_there(&error) && looks < LOOKS_MAX => {
                    looks += 1;
                    tokio::time::sleep(LOOK).await;
                }
                left => return left,
            }
        }
    }
}

/// Waits until a program was started.
async fn started(
    records: &mut BoxStream<'static, Result<Arc<Record>, BackendError>>,
) -> Result<(), BackendError> {
    while let Some(record) = records.next().await {
        if let Entry::Terminal(TerminalEntry::Noted(noted)) = &record?.entry
            && matches!(noted.event, TerminalEvent::Started { .. })
        {
            return Ok(());
        }
    }
    Err(BackendError::Closed)
}
