//! What all requests share.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use provost_event::{RunId, Timestamp};
use provost_harness::{
    Backend, BackendError, Clock as _, Control, KeepsApproved, RunStarts, StartsWork, SystemClock,
};
use provost_view::{GroupedRuns, KeptGroups, SeenRuns};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::access::{Access, OneTimeLink};
use crate::access_log::AccessLog;
use crate::metrics::Counters;
use crate::tls::TlsFiles;

/// Streams of events that are open at the same time.
pub(crate) const STREAMS_MAX: usize = 256;

/// What a server serves, and where.
pub struct ServerOptions {
    /// The runs.
    pub backend: Arc<dyn Backend>,
    /// Who the log names for what is done through the server.
    pub by: String,
    /// Where to listen for connections of TCP.
    pub listen: Listen,
    /// The file for a line of each request; absent: none is written.
    pub access_log: Option<PathBuf>,
    /// A Unix socket to listen on too.
    pub socket: Option<PathBuf>,
    /// Where approvals for all runs are kept; absent: there are none.
    pub approved: Option<Arc<dyn KeepsApproved>>,
    /// Starts processes that work on runs; absent: none is started.
    pub work: Option<Arc<dyn StartsWork>>,
    /// Which runs were looked at.
    pub seen: Arc<dyn SeenRuns>,
    /// The folder for idempotency keys, which needn't be there.
    pub keys: PathBuf,
    /// The folder with the sockets and recordings of external agents' terminals.
    pub terminals: PathBuf,
}

/// Where to listen, and how.
#[derive(Debug, Clone)]
pub enum Listen {
    /// On 127.0.0.1, at this port; 0 takes a free one.
    Loopback(u16),
    /// At this address, with TLS, for requests to these names. The page has the first one.
    Tls {
        /// The address.
        address: SocketAddr,
        /// The names that clients ask for, without the port; at least one.
        names: Vec<String>,
        /// The certificate.
        files: TlsFiles,
    },
}

pub(crate) struct App {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) by: String,
    pub(crate) approved: Option<Arc<dyn KeepsApproved>>,
    /// What has processes work on runs, if anything does.
    pub(crate) starts: Option<RunStarts>,
    pub(crate) terminals: PathBuf,
    pub(crate) access_log: Option<AccessLog>,
    pub(crate) access: Access,
    pub(crate) hosts: Hosts,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) counters: Counters,
    /// Ends all streams.
    pub(crate) stop: CancellationToken,
    pub(crate) seen: Arc<dyn SeenRuns>,
    kept: tokio::sync::Mutex<KeptGroups>,
}

/// By which names the server may be asked.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    /// `http` or `https`.
    pub(crate) scheme: &'static str,
    /// That of the page, with the port: nothing else knows it.
    pub(crate) page: String,
    /// Those for programs.
    pub(crate) programs: Vec<String>,
}

impl App {
    pub(crate) fn new(
        options: &ServerOptions,
        access: Access,
        hosts: Hosts,
        stop: CancellationToken,
    ) -> Self {
        Self {
            backend: options.backend.clone(),
            by: options.by.clone(),
            approved: options.approved.clone(),
            access_log: options.access_log.clone().map(AccessLog::new),
            starts: options
                .work
                .clone()
                .map(|work| RunStarts::new(options.backend.clone(), work, options.keys.clone())),
            terminals: options.terminals.clone(),
            access,
            hosts,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            counters: Counters::default(),
            stop,
            seen: options.seen.clone(),
            kept: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    pub(crate) fn control(&self, run: RunId) -> Control {
        Control::new(self.backend.clone(), run, &self.by)
    }

    /// The link with this code.
    pub(crate) fn link(&self, code: &str) -> OneTimeLink {
        let Hosts { scheme, page, .. } = &self.hosts;
        OneTimeLink(format!("{scheme}://{page}{}{code}", crate::page::ENTER))
    }

    /// All runs, in groups: of those that are finished, the ones that were looked at are idle.
    pub(crate) async fn groups(&self) -> Result<GroupedRuns, BackendError> {
        // Read by one at a time: what the last one has read of each run counts for the next.
        let mut kept = self.kept.lock().await;
        Ok(kept.read(&*self.backend, self.now()).await?.with_seen(&*self.seen))
    }
}

/// How often what can't be subscribed to is read again for a stream.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);
