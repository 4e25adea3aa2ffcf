//! The thread that has locks taken while the machine is wanted awake, and says what came of it.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::lock::Lock;
use crate::shared::Shared;

/// A lock that was asked for. Dropping this releases it, or has it released as soon as the system gives it.
struct Asked {
    _release: Sender<Infallible>,
}

/// Works until [`Shared::end`].
pub(crate) fn keep(shared: &Arc<Shared>, answer_max: Duration) {
    let mut told = String::new();
    while let Some(reason) = shared.wait_until_wanted() {
        let due = Instant::now().checked_add(answer_max);
        let asked = Lock::ALL.iter().filter_map(|lock| ask(shared, *lock, &reason)).collect::<Vec<_>>();
        let answers = shared.wait_for_answers(due);
        tell(&answers, due, &mut told);
        shared.wait_until_unwanted();
        drop(asked);
    }
}

/// Asks for `lock` on a thread of its own: no call to the system can be ended from outside. There is at most one such
/// thread a lock that waits for an answer.
fn ask(shared: &Arc<Shared>, lock: Lock, reason: &str) -> Option<Asked> {
    if !shared.ask(lock) {
        return None;
    }
    let (release, released) = channel();
    let (reason, answers) = (reason.to_owned(), Answers { shared: Arc::clone(shared), lock });
    let thread = thread::Builder::new().name(format!("keep-awake-{lock}"));
    let spawned = thread.spawn(move || hold(&answers, &reason, &released));
    if let Err(error) = spawned {
        shared.answer(lock, Err(format!("no thread for it: {error}")));
    }
    Some(Asked { _release: release })
}

fn hold(answers: &Answers, reason: &str, released: &Receiver<Infallible>) {
    match answers.lock.take(reason) {
        Ok(taken) => {
            answers.say(Ok(()));
            // Nothing is ever sent: it ends when the other side is dropped.
            let _ = released.recv();
            drop(taken);
        }
        Err(why) => answers.say(Err(why)),
    }
}

struct Answers {
    shared: Arc<Shared>,
    lock: Lock,
}

impl Answers {
    fn say(&self, answer: Result<(), String>) {
        self.shared.answer(self.lock, answer);
    }
}

/// Says what came of asking in one line, unless it was the same the last time.
fn tell(answers: &[(Lock, Result<(), String>)], due: Option<Instant>, told: &mut String) {
    let is_late = due.is_some_and(|due| Instant::now() >= due);
    let mut missing = Vec::new();
    for lock in Lock::ALL {
        match answers.iter().find(|(answered, _)| answered == lock) {
            Some((_, Ok(()))) => {}
            Some((_, Err(why))) => missing.push(format!("{lock}: {why}")),
            None if is_late => missing.push(format!("{lock}: the system doesn't answer")),
            None => missing.push(format!("{lock}: no longer needed when the system had not answered")),
        }
    }
    let why = missing.join("; ");
    ...
}
