//! Posts of this process: those to one run that come while a request is on its way go together in the next one. The
//! object decides on them one by one, and writes once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use provost_event::RunId;
use provost_harness::BackendError;
use tokio::sync::oneshot;

use super::RestateBackend;
use crate::api::Target;
use crate::engine::run_key;
use crate::wire::{Decided, PostDone, PostRequest, Reply};

/// Posts in one request. An event has at most 256 KiB there, and a message of the engine 32 MiB.
const TOGETHER_MAX: usize = 64;

type Answer = Result<Reply<PostDone>, BackendError>;

/// Posts that wait, by run. A run is in the map while a task sends its posts.
#[derive(Default)]
pub(crate) struct Posts(Mutex<HashMap<RunId, Vec<Waiting>>>);

struct Waiting {
    request: PostRequest,
    answer: oneshot::Sender<Answer>,
}

impl Posts {
    fn all(&self) -> MutexGuard<'_, HashMap<RunId, Vec<Waiting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a post. Returns whether a task must be started that sends it.
    fn add(&self, run: RunId, waiting: Waiting) -> bool {
        match self.all().entry(run) {
            Entry::Occupied(mut others) => {
                others.get_mut().push(waiting);
                false
            }
            Entry::Vacant(first) => {
                first.insert(vec![waiting]);
                true
            }
        }
    }

    /// The next posts to send, in the order in which they came; none ends the task.
    fn next(&self, run: RunId) -> Vec<Waiting> {
        let mut all = self.all();
        let Entry::Occupied(mut waiting) = all.entry(run) else { return Vec::new() };
        if waiting.get().is_empty() {
            waiting.remove();
            return Vec::new();
        }
        let count = waiting.get().len().min(TOGETHER_MAX);
        waiting.get_mut().drain(..count).collect()
    }
}

impl RestateBackend {
    /// Has the run's object decide on a post. What is sent is decided on, also when this future is dropped.
    pub(crate) async fn have_decided(&self, run: RunId, request: PostRequest) -> Answer {
        let (answer, answered) = oneshot::channel();
        if self.inner.posts.add(run, Waiting { request, answer }) {
            tokio::spawn(self.clone().send_posts(run));
        }
        answered.await.map_err(|_| BackendError::Closed)?
    }

    async fn send_posts(self, run: RunId) {
        let (service, key) = (self.inner.names.run(), run_key(run));
        let target = Target { service: &service, key: Some(&key), handler: "post" };
        loop {
            let posts = self.inner.posts.next(run);
            if posts.is_empty() {
                return;
            }
            let (requests, answers): (Vec<_>, Vec<_>) =
                posts.into_iter().map(|waiting| (waiting.request, waiting.answer)).unzip();
            let decided: Result<Decided, _> = self.inner.api.call(target, &requests).await;
            match decided {
                Ok(Decided { replies, entries }) => {
                    self.inner.feeds.learn(run, entries);
                    answers.into_iter().zip(replies).for_each(|(answer, reply)| drop(answer.send(Ok(reply))));
                }
                Err(error) => answers.into_iter().for_each(|answer| drop(answer.send(Err(error.clone())))),
            }
        }
    }
}
