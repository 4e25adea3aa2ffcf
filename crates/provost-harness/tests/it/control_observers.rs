//! Faulty observers of all kinds with one run: it doesn't wait for them, and the counts of each add up.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use provost_event::Outcome;
use provost_harness::{
    Observer, ObserverError, ObserverEvent, ObserverOptions, ObserverReport, ObserverState, Observers,
    observe_with,
};
use tokio_util::sync::CancellationToken;

use crate::observers_harness::{RUN, harness, policy};

/// 60 turns with a tool call and a text of many pieces each.
fn long_script() -> String {
    let text = "word ".repeat(400);
    let turns = (0..60).map(|_| format!("  - {{ text: '{text}', tools: [nothing: {{}}] }}\n"));
    format!("answers:\n{}  - text: done\n", turns.collect::<String>())
}

/// Awaits a future that never completes.
struct Waits;

#[async_trait]
impl Observer for Waits {
    async fn observe(&mut self, _: &Arc<ObserverEvent>) -> Result<(), ObserverError> {
        std::future::pending().await
    }
}

struct HangsAtTheEnd;

#[async_trait]
impl Observer for HangsAtTheEnd {
    async fn observe(&mut self, _: &Arc<ObserverEvent>) -> Result<(), ObserverError> {
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), ObserverError> {
        std::future::pending().await
    }
}

/// Runs the long script; its duration, and the statistics of each observer.
async fn watched(observers: Observers) -> (Duration, Vec<ObserverReport>) {
    let (harness, _backend) = harness(&long_script(), observers);
    let mut policy = policy();
    policy.agent.limits.turns_max = 100;
    policy.agent.limits.stuck_turns = 0;
    policy.agent.limits.repeated_call_notice_at = 1_000;
    policy.agent.limits.repeated_call_max = 1_000;
    policy.agent.model.window_tokens = Some(10_000_000);
    let began = Instant::now();
    let mut run = harness.start(RUN, "the goal", policy).await.expect("it starts");
    let outcome = run.run(&CancellationToken::new()).await.expect("it ends");
    assert_eq!(outcome, Outcome::UNVERIFIED);
    (began.elapsed(), run.observer_reports())
}

fn small(queue_max: usize) -> ObserverOptions {
    ObserverOptions { queue_max, hung_after: Duration::from_millis(50) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_observer_holds_a_run_up_and_their_counts_add_up() {
    let (alone, _) = watched(Observers::new()).await;
    let (release, released) = channel::<()>();
    let released = std::sync::Mutex::new(Some(released));
    let observers = Observers::new()
        .with("good", ObserverOptions { queue_max: 1_000_000, ..small(1) }, |_| observe_with(|_| Ok(())))
        .with("panics", small(100_000), |_| observe_with(|_| std::panic::resume_unwind(Box::new("boom"))))
        .with("fails", small(100_000), |_| observe_with(|_| Err("no".into())))
        .with("slow", small(8), |_| {
            observe_with(|_| {
                std::thread::sleep(Duration::from_millis(2));
                Ok(())
            })
        })
        .with("waits", small(16), |_| Box::new(Waits))
        .with("blocks", small(0), move |_| {
            let released = released.lock().unwrap().take();
            observe_with(move |_| {
                let _ = released.as_ref().map(std::sync::mpsc::Receiver::recv);
                Ok(())
            })
        })
        .with("last words", small(100_000), |_| Box::new(HangsAtTheEnd))
        .with("unmade", small(4), |_| std::panic::resume_unwind(Box::new("no such observer")))
        .finish_within(Duration::from_secs(2));
    let (beside, reports) = watched(observers).await;
    drop(release);
    assert!(beside < alone * 4 + Duration::from_millis(2_700), "{beside:?}, alone {alone:?}");
    let of = |name: &str| reports.iter().find(|report| report.name == name).unwrap();
    let all = of("good").delivered;
    assert!(all > 2_000, "{all}");
    for report in &reports {
        let told = report.delivered + report.lost + report.waiting;
        assert_eq!(told, all, "{report:?}");
    }
    assert_eq!((of("good").lost, of("good").state), (0, ObserverState::Finished));
    assert_eq!((of("panics").panicked, of("panics").state), (all, ObserverState::Finished));
    assert_eq!(of("fails").failed, all);
    assert!(of("slow").lost > 0, "{:?}", of("slow"));
    for name in ["waits", "blocks", "last words"] {
        assert_eq!((of(name).state, of(name).hung), (ObserverState::LeftBehind, 1), "{:?}", of(name));
    }
    assert_eq!((of("unmade").lost, of("unmade").delivered, of("unmade").panicked), (all, 0, 1));
}
