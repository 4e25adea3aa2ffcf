//! Notifications: an observer that tells the user when a run needs them, or has stopped. Each at most once, whichever
//! process works on the run, since what was told is written down before it is told.

mod news;
mod told;
mod ways;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use provost_config::NotifySettings;
use provost_event::RunId;
use provost_harness::{
    Backend, ObservedBody, Observer, ObserverError, ObserverEvent, ObserverOptions, Observers, Redactor,
};
use secrecy::SecretString;

use self::news::News;
use self::told::Told;
use self::ways::{Way, ways};
use crate::{Notice, Variables};

/// The observer's name in reports.
const NAME: &str = "notify";
/// How long one way may take for one notification.
const WITHIN: Duration = Duration::from_secs(5);
/// A call of the observer hangs after this: all ways one after the other, and a moment.
const HUNG_AFTER: Duration = Duration::from_secs(20);
/// The last notification comes when the run stops: the process waits for it.
const FINISH_WITHIN: Duration = Duration::from_secs(12);

/// Writes a sequence that paints nothing to the user's terminal.
pub type Bell = Arc<dyn Fn(&str) + Send + Sync>;

/// How the user is told.
pub(crate) struct Notifying {
    pub(crate) settings: NotifySettings,
    /// Headers of the webhook.
    pub(crate) headers: Vec<(String, SecretString)>,
    /// The terminal, if there is one.
    pub(crate) bell: Option<Bell>,
}

impl Notifying {
    /// By the settings; the webhook's headers are in the environment.
    pub(crate) fn new(settings: &NotifySettings, variables: &Variables) -> Self {
        let headers = settings.webhook_headers_env.as_ref().and_then(|name| variables.get(name));
        let headers = headers.and_then(|text| crate::observers::headers(text)).unwrap_or_default();
        Self { settings: settings.clone(), headers, bell: None }
    }

    /// `observers`, with the one that notifies if anything is to be told.
    pub(crate) fn observed(
        self,
        observers: Observers,
        backend: Arc<dyn Backend>,
        (folder, redactor, report): (PathBuf, Arc<Redactor>, fn(&Notice)),
    ) -> Observers {
        if !self.settings.is_on() {
            return observers;
        }
        let failures = Arc::new(Failures { report, said: Mutex::default() });
        let shared =
            Arc::new(Shared { settings: self.settings.clone(), redactor, backend, folder, failures });
        let ways = Arc::new(ways(self));
        let options = ObserverOptions { hung_after: HUNG_AFTER, ..ObserverOptions::default() };
        observers.finish_within(FINISH_WITHIN).with(NAME, options, move |run| {
            Box::new(Notifier {
                run,
                told: Told::of(&shared.folder, run),
                news: None,
                shared: Arc::clone(&shared),
                ways: Arc::clone(&ways),
            })
        })
    }
}

struct Shared {
    settings: NotifySettings,
    redactor: Arc<Redactor>,
    backend: Arc<dyn Backend>,
    folder: PathBuf,
    failures: Arc<Failures>,
}

/// What couldn't be told, each cause once.
struct Failures {
    report: fn(&Notice),
    said: Mutex<Vec<String>>,
}

impl Failures {
    fn note(&self, why: String) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if !said.contains(&why) {
            said.push(why);
        }
    }

    fn report(&self) {
        let said = std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner));
        said.into_iter().for_each(|why| (self.report)(&Notice::NotNotified(why)));
    }
}

/// Tells of one run.
struct Notifier {
    run: RunId,
    told: Told,
    news: Option<News>,
    shared: Arc<Shared>,
    ways: Arc<Vec<Way>>,
}

#[async_trait]
impl Observer for Notifier {
    async fn observe(&mut self, event: &Arc<ObserverEvent>) -> Result<(), ObserverError> {
        let ObservedBody::Entry(record) = &event.body else { return Ok(()) };
        if !News::concerns(record) {
            return Ok(());
        }
        if self.news.is_none() {
            self.news = News::begin(&*self.shared.backend, self.run, &self.shared.redactor).await?;
        }
        let Some(news) = &mut self.news else { return Ok(()) };
        let mut failed = None;
        for notice in news.take(record, &self.shared.redactor) {
            if !self.shared.settings.tells_of(notice.event) || !self.told.is_new(&notice.key)? {
                continue;
            }
            for way in &*self.ways {
                if let Err(why) = way.tell(&notice, news.workspace()).await {
                    let why = self.shared.redactor.redact(&why).into_owned();
                    self.shared.failures.note(why.clone());
                    failed = Some(why);
                }
            }
        }
        failed.map_or(Ok(()), |why| Err(why.into()))
    }

    async fn finish(&mut self) -> Result<(), ObserverError> {
        self.shared.failures.report();
        Ok(())
    }
}

/// The file with what was told of a run.
fn file(folder: &Path, run: RunId) -> PathBuf {
    folder.join(format!("{run}.told"))
}
