//! `/metrics`, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use provost_harness::{RunQuery, RunStatus};
use provost_view::open_approvals;

use crate::app::{App, STREAMS_MAX};
use crate::problem::Problem;

/// What the server counts of itself.
#[derive(Default)]
pub(crate) struct Counters {
    answers: Mutex<BTreeMap<u16, u64>>,
    pub(crate) refused: AtomicU64,
}

impl Counters {
    pub(crate) fn answered(&self, status: u16) {
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner).entry(status).or_default() += 1;
    }
}

/// One metric.
struct Metric<'a> {
    name: &'a str,
    kind: &'a str,
    help: &'a str,
}

impl Metric<'_> {
    fn write(&self, out: &mut String, samples: &[(String, String)]) {
        let Self { name, kind, help } = self;
        // Writing to a String can't fail.
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(out, "{name}{labels} {value}");
        }
    }
}

pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Result<impl IntoResponse, Problem> {
    let began = Instant::now();
    let runs = app.backend.list(RunQuery::newest(usize::MAX)).await?;
    let listed = began.elapsed();
    let questions =
        open_approvals(&*app.backend).await?.runs.iter().map(|run| run.questions.len()).sum::<usize>();
    let mut by_status = BTreeMap::<&str, u64>::new();
    let (mut turns, mut tokens, mut cost) = Default::default();
    for run in &runs {
        let word = match &run.status {
            RunStatus::Running => "running",
            RunStatus::Interrupted => "interrupted",
            RunStatus::Stopped(outcome) => outcome.word(),
        };
        *by_status.entry(word).or_default() += 1;
        add(&mut turns, u64::from(run.turns));
        add(&mut tokens, run.tokens);
        add(&mut cost, run.cost.0);
    }
    let mut out = String::new();
    let one = |value: String| vec![(String::new(), value)];
    let gauge = |name, help| Metric { name, kind: "gauge", help };
    let counter = |name, help| Metric { name, kind: "counter", help };
    let statuses =
        by_status.iter().map(|(word, count)| (format!("{{status=\"{word}\"}}"), count.to_string()));
    gauge("provost_runs", "Runs in the store by status.").write(&mut out, &statuses.collect::<Vec<_>>());
    gauge("provost_approvals_waiting", "Questions that wait for an answer.")
        .write(&mut out, &one(questions.to_string()));
    gauge("provost_store_turns", "Turns of all runs in the store.").write(&mut out, &one(turns.to_string()));
    gauge("provost_store_tokens", "Tokens of all runs in the store.")
        .write(&mut out, &one(tokens.to_string()));
    gauge(
        "provost_store_cost_micro_usd",
        "Known cost of all runs in the store, in millionths of a US dollar.",
    )
    .write(&mut out, &one(cost.to_string()));
    gauge("provost_store_list_seconds", "Time to list all runs just now.")
        .write(&mut out, &one(format!("{:.6}", listed.as_secs_f64())));
    let open = STREAMS_MAX.saturating_sub(app.streams.available_permits());
    gauge("provost_server_streams", "Open streams of events.").write(&mut out, &one(open.to_string()));
    let answers = app.counters.answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let answers =
        answers.iter().map(|(status, count)| (format!("{{status=\"{status}\"}}"), count.to_string()));
    counter("provost_server_answers_total", "Answers by status.")
        .write(&mut out, &answers.collect::<Vec<_>>());
    let refused = app.counters.refused.load(Ordering::Relaxed);
    counter("provost_server_refused_total", "Requests without a valid host, origin, token or cookie.")
        .write(&mut out, &one(refused.to_string()));
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], out))
}

const fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
