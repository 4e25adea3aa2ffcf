//! Posts to a run that another backend holds.

use std::sync::Arc;
use std::time::Duration;

use provost_engine::RunEvent;
use provost_event::{Budget, ConversationEntry, Elapsed, Entry};
use tokio::task::JoinHandle;

use super::BackendMaker;
use super::bench::{Bench, kinds, log, ok, post, root, run, serve, soon, start};
use provost_harness::{Backend, BackendError, Posted};

/// How long a backend waits for the decision of another one.
const DECISION_MAX_MS: u64 = 5_000;

pub(super) async fn a_post_is_decided_on_where_the_run_is_held(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let backend = bench.open().await;
    let other = bench.open().await;
    let mut served = serve(&backend, run(1)).await;
    post(&backend, run(1), start(Budget::default())).await;
    let _call = served.call().await;
    bench.clock.advance_ms(7_000);
    let first = say_once(&other, "hello").await;
    assert!(first.changed);
    assert_eq!(first.head, log(&other, run(1)).await.last().map(|last| last.seq).unwrap_or_default());
    let said = log(&other, root(1)).await;
    let said = said
        .iter()
        .find(|record| matches!(record.entry, Entry::Conversation(ConversationEntry::UserMessage(_))));
    let elapsed = said.map(|record| record.elapsed).unwrap_or_default();
    assert!(
        elapsed >= Elapsed(7_000),
        "only the holder knows the run's elapsed time, and this is {elapsed:?}"
    );
    let before = kinds(&backend, root(1)).await;
    for backend in [&other, &backend] {
        assert!(!say_once(backend, "hello").await.changed, "a doubled post changed something");
    }
    assert_eq!(kinds(&backend, root(1)).await, before);
}

pub(super) async fn a_post_that_is_not_decided_on_in_time_never_counts(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let backend = bench.open().await;
    post(&backend, run(1), start(Budget::default())).await;
    let Some(holder) = bench.hold(run(1)).await else { return };
    let before = kinds(&backend, root(1)).await;
    let posted = spawn_say(&backend, "too late");
    let late = async {
        while !posted.is_finished() {
            bench.clock.advance_ms(DECISION_MAX_MS);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("a post is given up", late).await;
    let error = posted.await.map_err(|error| error.to_string());
    assert!(
        matches!(&error, Ok(Err(BackendError::Undecided { run: held, .. })) if *held == run(1)),
        "a post without a decision gave {error:?}"
    );
    drop(holder);
    let served = serve(&backend, run(1)).await;
    assert_eq!(said(&backend).await, Vec::<String>::new(), "what was withdrawn counted");
    assert!(kinds(&backend, root(1)).await.starts_with(&before));
    served.guard.release().await;
    assert!(say_once(&backend, "too late").await.changed, "its dedup isn't used up");
}

pub(super) async fn a_new_holder_decides_first_on_what_waits(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let backend = bench.open().await;
    let other = bench.open().await;
    post(&backend, run(1), start(Budget::default())).await;
    let Some(mut holder) = bench.hold(run(1)).await else { return };
    for (count, text) in [(1, "one"), (2, "two")] {
        let sender = spawn_say(&other, text);
        soon("a request is stored", holder.wait_for_posts(count)).await;
        // Its sender is gone.
        sender.abort();
    }
    drop((holder, other));
    let mut served = serve(&backend, run(1)).await;
    assert_eq!(said(&backend).await, ["one", "two"], "once, in order");
    let session = kinds(&backend, root(1)).await;
    let position = |kind: &str| session.iter().position(|other| *other == kind);
    assert!(
        position("user_message") < position("resumed") || position("resumed").is_none(),
        "before anything else: {session:?}"
    );
    served.call().await.done();
    for text in ["one", "two"] {
        assert!(!say_once(&backend, text).await.changed, "it counted, and its dedup didn't");
    }
}

pub(super) async fn a_post_outlives_the_holder_that_was_asked(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let backend = bench.open().await;
    let other = bench.open().await;
    post(&backend, run(1), start(Budget::default())).await;
    let Some(mut holder) = bench.hold(run(1)).await else { return };
    let posted = spawn_say(&other, "hello");
    soon("a request is stored", holder.wait_for_posts(1)).await;
    drop(holder);
    let posted = soon("a post is answered", posted).await.map_err(|error| error.to_string());
    assert!(matches!(posted, Ok(Ok(Posted { changed: true, .. }))), "{posted:?}");
    let _served = serve(&backend, run(1)).await;
    assert_eq!(said(&backend).await, ["hello"]);
}

fn hello(text: &str) -> RunEvent {
    RunEvent::Say { agent: 0, text: text.to_owned(), by: "ann".to_owned() }
}

async fn say_once(backend: &Arc<dyn Backend>, text: &str) -> Posted {
    let posted = backend.post(run(1).into(), hello(text).into(), Some(text));
    ok(soon("a post is answered", posted).await)
}

fn spawn_say(backend: &Arc<dyn Backend>, text: &'static str) -> JoinHandle<Result<Posted, BackendError>> {
    let backend = Arc::clone(backend);
    tokio::spawn(async move { backend.post(run(1).into(), hello(text).into(), Some(text)).await })
}

/// What was said to the first agent.
async fn said(backend: &Arc<dyn Backend>) -> Vec<String> {
    let texts = log(backend, root(1)).await.into_iter().filter_map(|record| match &record.entry {
        Entry::Conversation(ConversationEntry::UserMessage(message)) => Some(
            message
                .content
                .iter()
                .filter_map(|block| match block {
                    provost_event::Block::Text(text) => Some(text.clone()),
                    _ => None,
                })
                .collect::<String>(),
        ),
        _ => None,
    });
    texts.collect()
}
