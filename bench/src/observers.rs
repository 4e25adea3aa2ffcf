//! (g) What observers cost the run that they watch: the time of sending the events, and lost events.

use std::sync::Arc;
use std::time::{Duration, Instant};

use provost_event::{Elapsed, Record, RunId, Seq, SessionId, Timestamp, TurnEnded};
use provost_harness::{ObserverOptions, Observers, RunObservers, observe_with};
use serde::{Deserialize, Serialize};

use crate::Options;
use crate::case::Case;
use crate::measure::{Start, thread_cpu};
use crate::sample::{Sample, count, repeated};
use crate::table::{self, Target};

const RUN: RunId = RunId::from_entropy(1);
/// Nanoseconds that an event may cost for each observer.
const TARGET_NS: f64 = 1_000.0;
const EVENTS_A_SECOND: f64 = 100_000.0;
/// Events at once, which all fit a queue.
const BURST: usize = 1_000;
/// Events at a time of a steady stream.
const PIECE: usize = 50;

/// How events come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EventRate {
    /// Some at once, then a wait until all have been received.
    Bursts,
    /// This many a second, a few each millisecond.
    Steady,
}

/// Measures and prints.
pub(crate) fn report(options: &Options) -> anyhow::Result<()> {
    table::head("Observers that do next to nothing: CPU and wall time of the thread that tells them");
    for observers in [0, 1, 10] {
        let events = options.sized(200_000, 2_000_000);
        let samples = repeated(
            &Case::Observers { rate: EventRate::Bursts, observers, events },
            options.dir(),
            options.runs,
        )?;
        row(observers, &format!("bursts of {BURST}"), &samples);
    }
    for observers in [1, 10] {
        let seconds = options.sized(3, 30);
        let case = Case::Observers { rate: EventRate::Steady, observers, events: seconds * 100_000 };
        let samples = repeated(&case, options.dir(), options.runs)?;
        let size = format!("{EVENTS_A_SECOND} a second for {seconds} s");
        row(observers, &size, &samples);
        let per_second = samples.iter().map(Sample::per_second).collect::<Vec<_>>();
        table::row(&format!("{observers} observers: events told"), &size, "/s", &per_second, Target::None);
        let lost = samples.iter().map(|sample| f64::from(u32::try_from(sample.lost).unwrap_or(u32::MAX)));
        let lost = lost.collect::<Vec<_>>();
        table::row(&format!("{observers} observers: lost"), &size, "events", &lost, Target::AtMost(0.0));
    }
    Ok(())
}

/// Prints nanoseconds of an event, for each observer if there are any.
fn row(observers: usize, size: &str, samples: &[Sample]) {
    let each = count(observers.max(1));
    let values = samples.iter().map(|sample| sample.cpu_us() * 1_000.0 / each).collect::<Vec<_>>();
    let target = if observers == 0 { Target::None } else { Target::AtMost(TARGET_NS) };
    table::row(&format!("{observers} observers: CPU of an event, each"), size, "ns", &values, target);
    let wall = |sample: &Sample| sample.each(sample.telling.as_secs_f64() * 1e9) / each;
    let values = samples.iter().map(wall).collect::<Vec<_>>();
    table::row(&format!("{observers} observers: time of an event, each"), size, "ns", &values, target);
}

/// One run.
pub(crate) async fn case(rate: EventRate, observers: usize, events: usize) -> anyhow::Result<Sample> {
    let mut all = Observers::new();
    for number in 0..observers {
        let make = |_| {
            let mut seen = 0_u64;
            observe_with(move |event| {
                seen = seen.wrapping_add(event.at.0);
                Ok(())
            })
        };
        all = all.with(format!("observer {number}"), ObserverOptions::default(), make);
    }
    let run = all.of_run(RUN);
    let records = (0..BURST).map(record).collect::<anyhow::Result<Vec<_>>>()?;
    // The threads have started by then.
    tell(&run, &records, &mut Took::default());
    drain(&run);
    let start = Start::now()?;
    let took = match rate {
        EventRate::Bursts => bursts(&run, &records, events),
        EventRate::Steady => steady(&run, &records, events),
    };
    let mut sample = start.sample(events)?;
    run.finish().await;
    (sample.cpu, sample.telling) = (took.cpu, took.wall);
    sample.lost = run.reports().iter().map(|report| report.lost).sum();
    Ok(sample)
}

fn record(number: usize) -> anyhow::Result<Arc<Record>> {
    let entry = TurnEnded { turn: u32::try_from(number)?, tool_calls: 0 }.into();
    let seq = Seq(u64::try_from(number)?);
    Ok(Arc::new(Record {
        actor: SessionId::root(RUN).into(),
        seq,
        at: Timestamp(seq.0),
        elapsed: Elapsed::default(),
        entry,
    }))
}

/// The time of sending.
#[derive(Default)]
struct Took {
    cpu: Duration,
    wall: Duration,
}

fn tell(run: &RunObservers, records: &[Arc<Record>], took: &mut Took) {
    let (cpu, wall) = (thread_cpu(), Instant::now());
    records.iter().for_each(|record| run.record(record));
    took.wall += wall.elapsed();
    took.cpu += thread_cpu().saturating_sub(cpu);
}

fn drain(run: &RunObservers) {
    while run.reports().iter().any(|report| report.waiting > 0) {
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn bursts(run: &RunObservers, records: &[Arc<Record>], events: usize) -> Took {
    let mut took = Took::default();
    for _ in 0..events / BURST {
        tell(run, records, &mut took);
        drain(run);
    }
    took
}

fn steady(run: &RunObservers, records: &[Arc<Record>], events: usize) -> Took {
    let (start, mut told, mut took) = (Instant::now(), 0, Took::default());
    while told < events {
        std::thread::sleep(Duration::from_millis(1));
        let due = (start.elapsed().as_secs_f64() * EVENTS_A_SECOND).min(count(events));
        while count(told) < due {
            let some = records.get(..PIECE).unwrap_or_default();
            tell(run, some, &mut took);
            told += some.len();
        }
    }
    took
}
