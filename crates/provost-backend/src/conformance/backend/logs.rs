//! What is stored, and how it is read.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::join_all;
use provost_engine::{Actor, Effect, RunEvent, RunForkRequest};
use provost_event::{ActorKey, Budget, ConversationEntry, Entry, LifecycleEntry, Seq, SessionId};

use super::BackendMaker;
use super::bench::{Bench, entry, kinds, log, ok, policy, post, root, run, say, serve, soon, start};
use provost_harness::{Backend, ForkPoint};

pub(super) async fn what_is_decided_is_there_before_its_effect_is_performed(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let (backend, other) = (bench.open().await, bench.open().await);
    assert!(log(&backend, run(1)).await.is_empty() && ok(backend.actors(run(1)).await).is_empty());
    let mut served = serve(&backend, run(1)).await;
    let posted = post(&backend, run(1), start(Budget::default())).await;
    assert!(posted.changed);
    let call = served.call().await;
    assert_eq!(call.id.actor, root(1));
    assert!(matches!(call.effect, Effect::CallModel(_)), "{:?}", call.effect);
    for backend in [&backend, &other] {
        let session = log(backend, root(1)).await;
        assert!(session.iter().any(|record| record.seq == call.id.seq), "an effect without its entry");
        assert_eq!(kinds(backend, root(1)).await, ["session_started", "model_called"]);
        assert_eq!(kinds(backend, run(1)).await, ["run_started", "budget_reserved"]);
        assert_eq!(ok(backend.actors(run(1)).await), [ActorKey::Run(run(1)), root(1)]);
    }
    call.done();
    entry(&backend, run(1), "ended").await;
    assert_eq!(kinds(&other, run(1)).await, ["run_started", "budget_reserved", "budget_charged", "ended"]);
    let session = ["session_started", "model_called", "assistant_message", "turn_ended", "ended"];
    assert_eq!(kinds(&other, root(1)).await, session);
    let part = ok(other.read(root(1), Seq(1), 2).await);
    assert_eq!(part.iter().map(|record| record.seq).collect::<Vec<_>>(), [Seq(2), Seq(3)]);
    served.no_call();
    served.guard.release().await;
}

pub(super) async fn a_fork_is_named_by_its_origin(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let backend = bench.open().await;
    post(&backend, run(1), start(Budget::default())).await;
    let point = ForkPoint::find(&*backend, SessionId::root(run(1)), None).await;
    let point = point.unwrap_or_else(|error| panic!("{error}"));
    let request = RunForkRequest {
        goal: "more".to_owned(),
        agent_goal: point.goal.clone(),
        policy: policy(Budget::default()),
        fork: Box::new(point.into_fork()),
        worktree: None,
        baseline: None,
        text: None,
        by: "ann".to_owned(),
    };
    assert!(post(&backend, run(2), RunEvent::Fork(Box::new(request))).await.changed);
    // Each run has its own log: the fork's has no entry of its origin.
    assert_eq!(kinds(&backend, run(1)).await, ["run_started", "budget_reserved", "forked"]);
    assert!(kinds(&backend, run(2)).await.starts_with(&["run_started"]));
    let Actor::Run(origin) = ok(backend.state(run(1).into()).await) else { panic!("it is a run") };
    assert_eq!(origin.forks().iter().map(|fork| fork.to).collect::<Vec<_>>(), [run(2)]);
}

pub(super) async fn a_doubled_post_does_nothing(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let backend = bench.open().await;
    let again = || backend.post(run(1).into(), start(Budget::default()).into(), Some("start"));
    let first = ok(again().await);
    assert!(first.changed);
    let said = || RunEvent::Say { agent: 0, text: "hello".to_owned(), by: "ann".to_owned() };
    ok(backend.post(run(1).into(), said().into(), Some("hello")).await);
    let before = kinds(&backend, root(1)).await;
    let second = ok(backend.post(run(1).into(), said().into(), Some("hello")).await);
    assert!(!second.changed, "a doubled post changed something");
    assert_eq!(second.head, log(&backend, run(1)).await.last().map(|last| last.seq).unwrap_or_default());
    drop(backend);
    let backend = bench.open().await;
    assert!(!ok(backend.post(run(1).into(), said().into(), Some("hello")).await).changed, "after a restart");
    assert_eq!(kinds(&backend, root(1)).await, before);
    let third = ok(backend.post(run(1).into(), said().into(), Some("hello again")).await);
    assert!(third.changed && kinds(&backend, root(1)).await.len() == before.len() + 1);
}

pub(super) async fn posts_to_one_actor_are_serial(maker: &impl BackendMaker) {
    const POSTS: usize = 100;
    let bench = Bench::new(maker).await;
    let (backend, other) = (bench.open().await, bench.open().await);
    post(&backend, run(1), start(Budget::default())).await;
    let posts = (0..POSTS).map(|number| {
        let backend = if number % 3 == 0 { &other } else { &backend };
        say(backend, 1, number.to_string())
    });
    join_all(posts).await;
    for backend in [&backend, &other] {
        let session = log(backend, root(1)).await;
        let numbers = session.iter().map(|record| record.seq.0).collect::<Vec<_>>();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "a gap or a repeat");
        let said = session
            .iter()
            .filter(|record| matches!(record.entry, Entry::Conversation(ConversationEntry::UserMessage(_))))
            .count();
        assert_eq!(said, POSTS, "a post was lost or doubled");
    }
}

pub(super) async fn subscribers_get_every_entry_once(maker: &impl BackendMaker) {
    const POSTS: u64 = 400;
    let bench = Bench::new(maker).await;
    let (backend, other) = (bench.open().await, bench.open().await);
    let early = tokio::spawn(collect(Arc::clone(&backend), 0, POSTS));
    let mut served = serve(&backend, run(1)).await;
    post(&backend, run(1), start(Budget::default())).await;
    let _call = served.call().await;
    let elsewhere = tokio::spawn(collect(Arc::clone(&other), 2, POSTS));
    let posts = (0..POSTS).map(|number| {
        let backend = if number % 4 == 0 { &other } else { &backend };
        say(backend, 1, number.to_string())
    });
    let late = async {
        entry(&backend, root(1), "user_message").await;
        collect(Arc::clone(&backend), 3, POSTS).await
    };
    let (_, late) = tokio::join!(join_all(posts), late);
    let expected = |after: u64| (after + 1..=POSTS + 2).collect::<Vec<_>>();
    assert_eq!(early.await.ok(), Some(expected(0)), "subscribed before the first entry");
    assert_eq!(elsewhere.await.ok(), Some(expected(2)), "subscribed at another backend");
    assert_eq!(late, expected(3), "subscribed in the middle");
}

/// The numbers of a subscription's entries, up to the last of all.
async fn collect(backend: Arc<dyn Backend>, after: u64, posts: u64) -> Vec<u64> {
    let records = backend.subscribe(root(1), Seq(after));
    let wanted = usize::try_from(posts + 2 - after).unwrap_or(usize::MAX);
    let numbers = records.map(|record| ok(record).seq.0).take(wanted).collect::<Vec<_>>();
    soon("a subscription gives everything", numbers).await
}

pub(super) async fn a_long_log_is_read_back_as_a_whole_one(maker: &impl BackendMaker) {
    const POSTS: u64 = 2_100;
    let bench = Bench::new(maker).await;
    let backend = bench.open().await;
    assert_eq!(ok(backend.newest_snapshot(root(1)).await), None, "of an unknown log");
    let mut served = serve(&backend, run(1)).await;
    post(&backend, run(1), start(Budget::default())).await;
    let _call = served.call().await;
    join_all((0..POSTS).map(|number| say(&backend, 1, number.to_string()))).await;
    let other = bench.open().await;
    for backend in [&backend, &other] {
        let all = log(backend, root(1)).await;
        let snapshots = || {
            all.iter().filter(|record| matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Snapshot(_))))
        };
        assert!(snapshots().count() > 1, "the actor takes snapshots");
        let found = ok(backend.newest_snapshot(root(1)).await);
        assert!(found.is_none() || found.as_ref() == snapshots().next_back(), "not the newest: {found:?}");
        let mut whole = Actor::new(root(1));
        for record in &all {
            assert_eq!(whole.replay(record), Ok(()), "entry {} doesn't follow", record.seq);
        }
        assert!(ok(backend.state(root(1)).await) == whole, "read back it stands otherwise");
    }
}

pub(super) async fn bodies_are_kept_by_their_hash(maker: &impl BackendMaker) {
    let bench = Bench::new(maker).await;
    let backend = bench.open().await;
    let body = (0..=255_u8).cycle().take(1 << 20).collect::<Vec<_>>();
    let id = ok(backend.put_blob(body.clone()).await);
    assert_eq!(&*id.0, blake3::hash(&body).to_hex().as_str());
    assert_eq!(ok(backend.put_blob(body.clone()).await), id, "the same body has the same name");
    drop(backend);
    let backend = bench.open().await;
    assert_eq!(ok(backend.get_blob(&id).await), Some(body));
    assert_eq!(ok(backend.get_blob(&provost_event::BlobId("0".repeat(64).into())).await), None);
}
