//! Observers by themselves: real queues and threads, and events from tests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use provost_event::{Elapsed, Record, RunId, Seq, SessionId, Timestamp, TurnEnded};
use provost_harness::{
    ObservedBody, Observer, ObserverError, ObserverEvent, ObserverOptions, ObserverReport, ObserverState,
    Observers, RunObservers, observe_with,
};

const RUN: RunId = RunId::from_entropy(7);
/// Generous, for slow machines.
const DEADLINE: Duration = Duration::from_secs(20);

fn record(seq: u64) -> Arc<Record> {
    let entry = TurnEnded { turn: u32::try_from(seq).expect("few"), tool_calls: 0 }.into();
    Arc::new(Record {
        actor: SessionId::root(RUN).into(),
        seq: Seq(seq),
        at: Timestamp(seq),
        elapsed: Elapsed::default(),
        entry,
    })
}

fn tell(run: &RunObservers, seqs: std::ops::RangeInclusive<u64>) {
    seqs.for_each(|seq| run.record(&record(seq)));
}

fn seq(event: &ObserverEvent) -> u64 {
    match &event.body {
        ObservedBody::Entry(record) => record.seq.0,
        _ => 0,
    }
}

fn options(queue_max: usize) -> ObserverOptions {
    ObserverOptions { queue_max, ..ObserverOptions::default() }
}

fn only(run: &RunObservers) -> ObserverReport {
    let mut reports = run.reports();
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

/// An observer's records, in words.
type Told = Arc<Mutex<Vec<String>>>;

fn said(told: &Told) -> String {
    told.lock().expect("told").join(" ")
}

/// Records its events; at its first event it reports that and waits for the gate.
struct Gated {
    told: Told,
    gate: Option<(Sender<()>, Receiver<()>)>,
}

#[async_trait]
impl Observer for Gated {
    async fn observe(&mut self, event: &Arc<ObserverEvent>) -> Result<(), ObserverError> {
        self.told.lock().expect("told").push(seq(event).to_string());
        if let Some((there, gate)) = self.gate.take() {
            there.send(()).expect("a receiver");
            let _ = gate.recv();
        }
        Ok(())
    }

    async fn lost(&mut self, count: u64) {
        self.told.lock().expect("told").push(format!("lost:{count}"));
    }

    async fn finish(&mut self) -> Result<(), ObserverError> {
        self.told.lock().expect("told").push("finish".into());
        Ok(())
    }
}

type Make = Box<dyn Fn(RunId) -> Box<dyn Observer> + Send + Sync>;

/// An observer behind a gate, its records, the sign that it waits, and the gate.
fn gated() -> (Make, Told, Receiver<()>, Sender<()>) {
    let told = Told::default();
    let (there, is_there) = channel();
    let (open, gate) = channel();
    let gate = Mutex::new(Some((there, gate)));
    let seen = told.clone();
    let make = move |_| -> Box<dyn Observer> {
        Box::new(Gated { told: seen.clone(), gate: gate.lock().expect("gate").take() })
    };
    (Box::new(make), told, is_there, open)
}

/// An observer that records its events.
fn witness() -> (Make, Told) {
    let told = Told::default();
    let seen = told.clone();
    (Box::new(move |_| Box::new(Gated { told: seen.clone(), gate: None })), told)
}

#[tokio::test]
async fn a_slow_observer_loses_its_oldest_and_is_told_how_many() {
    let (make, told, is_there, open) = gated();
    let run = Observers::new().with("slow", options(4), make).of_run(RUN);
    tell(&run, 1..=1);
    is_there.recv_timeout(DEADLINE).expect("it's in its first event");
    tell(&run, 2..=11);
    let report = only(&run);
    assert_eq!((report.delivered, report.lost, report.waiting), (1, 6, 4));
    open.send(()).expect("it waits");
    run.finish().await;
    assert_eq!(said(&told), "1 lost:6 8 9 10 11 finish");
    let report = only(&run);
    assert_eq!((report.delivered, report.lost, report.waiting), (5, 6, 0));
    assert_eq!(report.state, ObserverState::Finished);
}

#[tokio::test]
async fn a_full_queue_loses_nothing_and_one_event_more_loses_one() {
    for (last, lost) in [(5, 0), (6, 1)] {
        let (make, _, is_there, open) = gated();
        let run = Observers::new().with("slow", options(4), make).of_run(RUN);
        tell(&run, 1..=1);
        is_there.recv_timeout(DEADLINE).expect("it's in its first event");
        tell(&run, 2..=last);
        open.send(()).expect("it waits");
        run.finish().await;
        assert_eq!(only(&run).lost, lost);
    }
}

#[tokio::test]
async fn one_that_panics_or_fails_is_counted_and_told_on() {
    let (make, told) = witness();
    let run = Observers::new()
        .with("panics", options(9), |_| observe_with(|event| panic!("at {}", seq(event))))
        .with("fails", options(9), |_| {
            observe_with(|event| if seq(event) == 2 { Ok(()) } else { Err("no".into()) })
        })
        .with("fine", options(9), make)
        .of_run(RUN);
    tell(&run, 1..=3);
    run.finish().await;
    assert_eq!(said(&told), "1 2 3 finish");
    let counts = run.reports().into_iter().map(|one| (one.name, one.delivered, one.failed, one.panicked));
    let expected = [("panics".into(), 3, 0, 3), ("fails".into(), 3, 2, 0), ("fine".into(), 3, 0, 0)];
    assert_eq!(counts.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn one_that_panics_while_it_is_made_loses_everything() {
    let run = Observers::new().with("unborn", options(9), |_| panic!("it falls over")).of_run(RUN);
    tell(&run, 1..=3);
    run.finish().await;
    let report = only(&run);
    assert_eq!((report.state, report.delivered, report.lost), (ObserverState::Unable, 0, 3));
    assert_eq!((report.panicked, report.waiting), (1, 0));
}

#[tokio::test]
async fn one_that_panics_while_it_is_dropped_has_finished_all_the_same() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("it falls over");
        }
    }
    let make = |_| {
        let bomb = Bomb;
        observe_with(move |_| {
            let _ = &bomb;
            Ok(())
        })
    };
    let run = Observers::new().with("bomb", options(9), make).of_run(RUN);
    tell(&run, 1..=3);
    run.finish().await;
    let report = only(&run);
    assert_eq!((report.state, report.delivered, report.panicked), (ObserverState::Finished, 3, 1));
}

#[tokio::test]
async fn one_that_hangs_is_left_behind_and_the_others_have_seen_all() {
    let (hanging, told, is_there, open) = gated();
    let (fine, seen) = witness();
    let limit = ObserverOptions { hung_after: Duration::ZERO, ..options(9) };
    let run = Observers::new()
        .finish_within(Duration::from_millis(50))
        .with("hangs", limit, hanging)
        .with("fine", options(9), fine)
        .of_run(RUN);
    tell(&run, 1..=1);
    is_there.recv_timeout(DEADLINE).expect("it's in its first event");
    tell(&run, 2..=4);
    let hung = &run.reports()[0];
    assert_eq!((hung.hung, hung.waiting, hung.lost), (1, 3, 0), "the rest of the queue stays");
    run.finish().await;
    assert_eq!(said(&seen), "1 2 3 4 finish");
    let left = &run.reports()[0];
    assert_eq!((left.state, left.delivered, left.lost), (ObserverState::LeftBehind, 1, 3));
    assert_eq!(left.hung, 1, "one call is counted once");
    assert_eq!(said(&told), "1");
    // When it continues, it gets the number of missed events and the end.
    open.send(()).expect("it waits");
    wait_until(|| said(&told) == "1 lost:3 finish").await;
}

#[tokio::test]
async fn one_that_hangs_counts_as_hung_at_the_end_however_long_it_may_take() {
    let (hanging, _, is_there, open) = gated();
    let patient = ObserverOptions { hung_after: Duration::from_secs(3_600), ..options(9) };
    let run =
        Observers::new().finish_within(Duration::from_millis(10)).with("hangs", patient, hanging).of_run(RUN);
    tell(&run, 1..=1);
    is_there.recv_timeout(DEADLINE).expect("it's in its first event");
    assert_eq!(only(&run).hung, 0);
    run.finish().await;
    assert_eq!((only(&run).hung, only(&run).state), (1, ObserverState::LeftBehind));
    drop(open);
}

async fn wait_until(is_so: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + DEADLINE;
    while !is_so() {
        assert!(std::time::Instant::now() < deadline, "it never came");
        tokio::task::yield_now().await;
    }
}

/// Sends a question at each event, and waits for the answer.
struct Asks(tokio::sync::mpsc::Sender<tokio::sync::oneshot::Sender<u64>>, Told);

#[async_trait]
impl Observer for Asks {
    async fn observe(&mut self, event: &Arc<ObserverEvent>) -> Result<(), ObserverError> {
        let (ask, answer) = tokio::sync::oneshot::channel();
        self.0.send(ask).await?;
        let answer = answer.await?;
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.1.lock().expect("told").push(format!("{}:{answer}", seq(event)));
        Ok(())
    }
}

#[tokio::test]
async fn one_that_awaits_is_driven() {
    let (asks, mut asked) = tokio::sync::mpsc::channel(1);
    let told = Told::default();
    let seen = told.clone();
    let make = move |_| -> Box<dyn Observer> { Box::new(Asks(asks.clone(), seen.clone())) };
    let run = Observers::new().with("asks", options(9), make).of_run(RUN);
    tell(&run, 1..=3);
    let answering = async {
        for answer in 10..13 {
            asked.recv().await.expect("it asks").send(answer).expect("it waits");
        }
    };
    tokio::join!(run.finish(), answering);
    assert_eq!(said(&told), "1:10 2:11 3:12");
    assert_eq!(only(&run).failed, 0);
}

#[tokio::test]
async fn what_was_lost_and_what_was_told_is_all_there_was_and_in_order() {
    const EVENTS: u64 = 100_000;
    let last = Arc::new(Mutex::new((0, 0_u64, true)));
    let seen = last.clone();
    let make = move |_| {
        let seen = seen.clone();
        observe_with(move |event| {
            let mut seen = seen.lock().expect("seen");
            seen.2 &= seq(event) > seen.0;
            *seen = (seq(event), seen.1 + 1, seen.2);
            Ok(())
        })
    };
    let run = Observers::new().with("drains", ObserverOptions::default(), make).of_run(RUN);
    tell(&run, 1..=EVENTS);
    run.finish().await;
    let report = only(&run);
    assert_eq!(report.delivered + report.lost, EVENTS);
    assert_eq!(*last.lock().expect("seen"), (EVENTS, report.delivered, true));
}

#[tokio::test]
async fn each_segment_of_work_has_observers_of_its_own_and_nothing_happens_without_events() {
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let observers = Observers::new().with("counted", options(9), move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        observe_with(|_| Ok(()))
    });
    let run = observers.of_run(RUN);
    run.finish().await;
    assert_eq!((made.load(Ordering::SeqCst), only(&run).state), (0, ObserverState::Finished));
    run.begin();
    tell(&run, 1..=2);
    run.begin();
    run.finish().await;
    assert_eq!((made.load(Ordering::SeqCst), only(&run).delivered), (1, 2));
    tell(&run, 3..=3);
    assert_eq!(only(&run).delivered, 2, "no event anything after the end");
    run.begin();
    tell(&run, 3..=3);
    run.finish().await;
    assert_eq!((made.load(Ordering::SeqCst), only(&run).delivered), (2, 1));
}

#[tokio::test]
async fn runs_that_are_given_up_finish_their_observers_without_waiting() {
    let (make, told, is_there, open) = gated();
    let run = Observers::new().with("slow", options(9), make).of_run(RUN);
    tell(&run, 1..=3);
    is_there.recv_timeout(DEADLINE).expect("it's in its first event");
    drop(run);
    open.send(()).expect("it waits");
    wait_until(|| said(&told) == "1 2 3 finish").await;
}

#[tokio::test]
async fn each_observer_has_a_thread_with_its_name() {
    let (name, named) = channel();
    let name = Mutex::new(name);
    let make = move |_| {
        let name = name.lock().expect("name").clone();
        observe_with(move |_| Ok(name.send(std::thread::current().name().map(str::to_owned))?))
    };
    let run = Observers::new().with("a\0b", options(9), make).of_run(RUN);
    tell(&run, 1..=1);
    assert_eq!(named.recv_timeout(DEADLINE).expect("a name").as_deref(), Some("observer ab"));
}

#[tokio::test]
async fn one_that_holds_back_is_told_when_nothing_waits() {
    struct HoldsBack(Told);
    #[async_trait]
    impl Observer for HoldsBack {
        async fn observe(&mut self, _: &Arc<ObserverEvent>) -> Result<(), ObserverError> {
            Ok(())
        }
        async fn idle(&mut self) -> Result<(), ObserverError> {
            self.0.lock().expect("told").push("idle".into());
            Ok(())
        }
    }
    let told = Told::default();
    let seen = told.clone();
    let run = Observers::new()
        .with("holds back", options(9), move |_| Box::new(HoldsBack(seen.clone())))
        .of_run(RUN);
    tell(&run, 1..=1);
    wait_until(|| said(&told) == "idle").await;
    // There is no signal that its thread sleeps; if it doesn't yet, this tests less.
    tokio::time::sleep(Duration::from_millis(20)).await;
    tell(&run, 2..=2);
    wait_until(|| said(&told) == "idle idle").await;
}
