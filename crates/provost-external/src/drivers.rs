//! One driver per session, from its first exchange until it is closed.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{
    CallId, Channel, ErrorClass, Exit, ExternalPolicy, Metering, ModelFailure, SessionId, TerminalEvent,
    TerminalNoted,
};
use provost_harness::{Exchange, ExternalAgents, MaskedPaths, ModelGateway, ToolOutput};
use provost_process::end_leftovers;
use provost_terminal::{Profile, ProgramChannel};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::boxed::PrivatePlaces;
use crate::driver::{Beginning, Came, Ended, TerminalDriver, ledger_of, profile_of, start};
use crate::gateway;
use crate::passed::{PassedDriver, PassedStreams};
use crate::structured::{StructuredDriver, channels};

/// Maximum starts of a program within one exchange, in case it ends at once each time.
const STARTS_MAX: u32 = 3;
/// Maximum sessions whose driver is remembered; beyond that, those whose program has ended are forgotten.
const PLACES_MAX: usize = 4_096;

/// The options of [`Drivers`].
#[derive(Clone)]
pub struct DriversOptions {
    /// The folder for state that must survive a crash, for the sockets to attach by, and for recordings. It is
    /// made with access for its owner only.
    pub folder: PathBuf,
    /// Whether terminals are recorded.
    pub records: bool,
    /// The environment of programs; the variables of their policy override it. Never pass the keys of providers.
    pub env: Vec<(String, String)>,
    /// Variables, with their values, that a program gets only if its policy names them.
    pub passed: Vec<(String, String)>,
    /// The user's own profiles; one with the name of a shipped profile replaces it.
    pub profiles: Vec<Profile>,
    /// Where programs call models, if their policy says so.
    pub gateway: Option<Arc<dyn ModelGateway>>,
    /// The files that no pattern lets a program read or change: a person is asked.
    pub masked: Arc<MaskedPaths>,
    /// Folders in which programs have servers of their own.
    pub private: Arc<PrivatePlaces>,
    /// The standard streams of this process, for a program whose policy has [`Channel::Streams`].
    pub streams: Option<PassedStreams>,
}

/// Leaves out the values of variables: they may be secrets.
impl fmt::Debug for DriversOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |variables: &[(String, String)]| {
            variables.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        f.debug_struct("DriversOptions")
            .field("folder", &self.folder)
            .field("records", &self.records)
            .field("env", &names(&self.env))
            .field("passed", &names(&self.passed))
            .field("profiles", &self.profiles.iter().map(|profile| &profile.name).collect::<Vec<_>>())
            .field("has_gateway", &self.gateway.is_some())
            .field("streams", &self.streams)
            .finish()
    }
}

impl DriversOptions {
    /// The variables of a program with this policy, besides those that its profile adds.
    pub(crate) fn environment(&self, policy: &ExternalPolicy) -> Vec<(String, String)> {
        let passed = self.passed.iter().filter(|(name, _)| policy.passes.contains(name));
        let given = self.env.iter().chain(passed).filter(|(name, _)| !policy.env.contains_key(name));
        let all = given.map(|(name, value)| (name, value)).chain(policy.env.iter());
        all.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// The programs of external agents. Dropping it kills those that still run.
pub struct Drivers {
    options: DriversOptions,
    places: Arc<Places>,
}

/// The drivers that aren't in use.
#[derive(Default)]
struct Places {
    held: Mutex<HashMap<SessionId, DriverSlot>>,
    changed: Notify,
}

/// A driver, by the channel of its program.
enum Driver {
    Terminal(Box<TerminalDriver>),
    Passed(PassedDriver),
    Structured(Box<StructuredDriver>),
}

enum DriverSlot {
    /// In use.
    Taken,
    Here(Driver),
    /// The program has ended by itself; its driver is gone. Kept until the session is closed.
    Ended(Exit),
}

/// A session's driver, in exclusive use; dropping this returns it.
struct InHand {
    places: Arc<Places>,
    session: SessionId,
    driver: Option<Driver>,
    ended: Option<Exit>,
}

impl Drivers {
    /// A registry without drivers.
    #[must_use]
    pub fn new(options: DriversOptions) -> Self {
        Self { options, places: Arc::default() }
    }

    /// Takes a session's driver for exclusive use; waits while another task uses it.
    async fn take(&self, session: SessionId) -> InHand {
        loop {
            let changed = self.places.changed.notified();
            let place = {
                let mut held = self.places.lock();
                match held.get(&session) {
                    Some(DriverSlot::Taken) => None,
                    Some(DriverSlot::Here(_) | DriverSlot::Ended(_)) | None => {
                        Some(held.insert(session, DriverSlot::Taken))
                    }
                }
            };
            let Some(place) = place else {
                changed.await;
                continue;
            };
            let (driver, ended) = match place {
                Some(DriverSlot::Here(driver)) => (Some(driver), None),
                Some(DriverSlot::Ended(exit)) => (None, Some(exit)),
                Some(DriverSlot::Taken) | None => (None, None),
            };
            return InHand { places: self.places.clone(), session, driver, ended };
        }
    }

    /// The driver of the session's program by the first channel that is left, after ending what an earlier process of
    /// Provost left running.
    async fn begin(
        &self,
        exchange: &mut Exchange<'_>,
        beginning: Beginning,
        channels: &mut VecDeque<ProgramChannel>,
    ) -> Result<Driver, ModelFailure> {
        self.end_leftovers(exchange.session).await;
        if let Some(streams) = &self.options.streams
            && exchange.policy.channel == Channel::Streams
        {
            return PassedDriver::start(&self.options, streams, exchange).await.map(Driver::Passed);
        }
        match channels.front() {
            Some(ProgramChannel::Stream(stream)) => {
                let profile = profile_of(&self.options, exchange.policy)?;
                let driver = StructuredDriver::new(stream.clone(), &profile, &self.options, exchange.session);
                Ok(Driver::Structured(Box::new(driver)))
            }
            Some(ProgramChannel::Terminal) | None => {
                let driver = start(&self.options, exchange, beginning).await?;
                Ok(Driver::Terminal(Box::new(driver)))
            }
        }
    }

    /// Ends what an earlier process of Provost left running; returns the number of processes.
    async fn end_leftovers(&self, session: SessionId) -> usize {
        let folder = ledger_of(&self.options.folder, session);
        match spawn_blocking(move || end_leftovers(&folder)).await {
            Ok(Ok(count)) => count,
            Ok(Err(error)) => {
                tracing::warn!(%error, "what an earlier process has left running couldn't be looked for");
                0
            }
            Err(_) => 0,
        }
    }
}

/// Records that the program is driven by another channel from now on.
async fn note_unfit(exchange: &mut Exchange<'_>, why: &str) -> Result<(), ModelFailure> {
    let text = format!("its structured stream can't be used, so that it is driven otherwise: {why}");
    let noted = exchange.log.note(TerminalNoted::certain(TerminalEvent::Notification { text })).await;
    noted.map_err(|error| ModelFailure::new(ErrorClass::Storage, error.to_string()))
}

impl Places {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, DriverSlot>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        let place = match (self.driver.take(), self.ended.take()) {
            (Some(driver), _) => Some(DriverSlot::Here(driver)),
            (None, Some(exit)) => Some(DriverSlot::Ended(exit)),
            (None, None) => None,
        };
        let mut held = self.places.lock();
        match place {
            Some(place) => {
                if held.len() >= PLACES_MAX {
                    held.retain(|_, place| !matches!(place, DriverSlot::Ended(_)));
                }
                held.insert(self.session, place)
            }
            None => held.remove(&self.session),
        };
        drop(held);
        self.places.changed.notify_waiters();
    }
}

impl Drivers {
    async fn drive(
        &self,
        mut exchange: Exchange<'_>,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let mut hand = self.take(exchange.session).await;
        let mut beginning = if exchange.words.has_begun() { Beginning::Again } else { Beginning::New };
        if let Some(exit) = hand.ended {
            let profile = profile_of(&self.options, exchange.policy)?;
            let ended = Ended::of(&profile, exit);
            if !ended.goes_on(&exchange) {
                return Err(ended.cant_be_told(&exchange));
            }
            beginning = Beginning::Again;
        }
        let profile = profile_of(&self.options, exchange.policy)?;
        let mut channels = VecDeque::from(channels(exchange.policy, &profile)?);
        for _ in 0..STARTS_MAX {
            let driver = match &mut hand.driver {
                Some(driver) => driver,
                empty => empty.insert(self.begin(&mut exchange, beginning, &mut channels).await?),
            };
            let came = match driver {
                Driver::Terminal(driver) => driver.exchange(&mut exchange, cancel).await?,
                Driver::Passed(driver) => driver.exchange(cancel).await?,
                Driver::Structured(driver) => {
                    let came = driver.exchange(&mut exchange, cancel).await;
                    let Some(why) = came.as_ref().err().filter(|_| driver.is_unfit() && channels.len() > 1)
                    else {
                        return came;
                    };
                    driver.close(cancel).await;
                    note_unfit(&mut exchange, &why.message).await?;
                    channels.pop_front();
                    hand.driver = None;
                    continue;
                }
            };
            match came {
                Came::Answer(answer) => return Ok(answer),
                Came::Ended => {}
            }
            let ended = match hand.driver.take() {
                Some(Driver::Terminal(driver)) => driver.finish(cancel).await?,
                Some(Driver::Passed(driver)) => driver.finish(cancel).await?,
                Some(Driver::Structured(_)) | None => break,
            };
            hand.ended = Some(ended.exit);
            if !(ended.is_success() && ended.goes_on(&exchange)) {
                let came = ended.comes_to(&exchange);
                if came.is_err() {
                    // A session that is restarted or resumed starts its program again.
                    hand.ended = None;
                }
                return came;
            }
            beginning = Beginning::Again;
        }
        let program = &exchange.policy.program;
        let message = format!("`{program}` ended {STARTS_MAX} times without taking what it was to be told");
        Err(ModelFailure::new(ErrorClass::Program, message))
    }

    /// After a failure of the session's model calls: the next exchange goes on, if need be with a new start.
    async fn try_again(&self, session: SessionId) {
        let mut hand = self.take(session).await;
        match &mut hand.driver {
            Some(Driver::Terminal(driver)) => driver.try_again(),
            Some(Driver::Structured(driver)) => driver.try_again(),
            Some(Driver::Passed(_)) | None => hand.ended = None,
        }
    }

    /// Whether the session's program is running.
    async fn is_running(&self, session: SessionId) -> bool {
        match &self.take(session).await.driver {
            Some(Driver::Terminal(_) | Driver::Passed(_)) => true,
            Some(Driver::Structured(driver)) => driver.is_running(),
            None => false,
        }
    }
}

#[async_trait]
impl ExternalAgents for Drivers {
    async fn exchange(
        &self,
        exchange: Exchange<'_>,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        if exchange.policy.metering != Metering::Gateway {
            return self.drive(exchange, cancel).await;
        }
        let session = exchange.session;
        let before = gateway::activity(&self.options, session);
        let kind = profile_of(&self.options, exchange.policy)?.kind;
        let came = self.drive(exchange, cancel).await;
        let after = gateway::activity(&self.options, session);
        if !self.is_running(session).await {
            // Each of its calls is charged before its session may stop.
            gateway::withdraw(&self.options, session).await;
        }
        match gateway::ModelTrouble::of(kind, &before, &after) {
            Some(trouble) => {
                let came = trouble.judge(came);
                if came.as_ref().is_err_and(|failure| failure.class.may_retry()) {
                    self.try_again(session).await;
                }
                came
            }
            None => came,
        }
    }

    async fn answer(&self, session: SessionId, call: &CallId, cancel: &CancellationToken) -> ToolOutput {
        match &mut self.take(session).await.driver {
            Some(Driver::Terminal(driver)) => driver.answer(call, cancel).await,
            Some(Driver::Structured(driver)) => driver.answer(call, cancel).await,
            Some(Driver::Passed(_)) | None => ToolOutput::error("The program that asked this is gone."),
        }
    }

    async fn close(&self, session: SessionId, cancel: &CancellationToken) -> Option<Exit> {
        let mut hand = self.take(session).await;
        let ended = hand.ended.take();
        let exit = match hand.driver.take() {
            Some(Driver::Terminal(driver)) => Some(driver.close(cancel).await),
            Some(Driver::Structured(mut driver)) => driver.close(cancel).await,
            Some(Driver::Passed(driver)) => Some(driver.close(cancel).await),
            None => {
                let left = self.end_leftovers(session).await;
                ended.or((left > 0).then_some(Exit::Unseen))
            }
        };
        gateway::withdraw(&self.options, session).await;
        self.options.private.remove(session);
        exit
    }
}
