//! Collectors that are down, slow or not collectors.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use provost_telemetry::{Telemetry, TelemetryHealth, TelemetryOptions};
use secrecy::SecretString;

use crate::collector::{Collector, Manner};
use crate::log::{observe, whole_run};

const TIMEOUT: Duration = Duration::from_millis(300);

fn telemetry(endpoint: String) -> Arc<Telemetry> {
    let options = TelemetryOptions { timeout: TIMEOUT, ..TelemetryOptions::new(endpoint) };
    Arc::new(Telemetry::new(options).expect("telemetry"))
}

/// Observing a run with `endpoint` takes less than `limit`, with this many failed requests and lost spans.
fn check(endpoint: String, limit: Duration, exports_failed: u64, spans_lost: u64) {
    let telemetry = telemetry(endpoint);
    let begun = Instant::now();
    observe(&telemetry, whole_run());
    let took = begun.elapsed();
    assert!(took < limit, "{took:?}");
    assert_eq!(telemetry.health(), TelemetryHealth { exports_failed, spans_lost });
}

/// The number of requests with spans. Metrics are sent once more at the end, which isn't waited for.
fn asked_for_spans(collector: &Collector) -> usize {
    collector.got().iter().filter(|one| one.path == "/v1/traces").count()
}

#[test]
fn a_collector_that_is_down_costs_a_count() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    check(format!("http://{free}"), Duration::from_millis(1900), 2, 7);
}

#[test]
fn a_collector_that_refuses_is_not_asked_again() {
    for manner in [Manner::Status(500), Manner::Status(401), Manner::Page, Manner::Redirects] {
        let collector = Collector::start(manner);
        check(collector.endpoint(), Duration::from_secs(1), 2, 7);
        assert_eq!(asked_for_spans(&collector), 1, "{manner:?}");
    }
}

#[test]
fn a_collector_that_is_busy_is_asked_again() {
    let collector = Collector::start(Manner::StatusOnce(503));
    check(collector.endpoint(), Duration::from_secs(1), 0, 0);
    assert_eq!(asked_for_spans(&collector), 2);
}

#[test]
fn a_collector_that_stalls_is_given_up_after_the_timeout() {
    let collector = Collector::start(Manner::Stalls);
    check(collector.endpoint(), Duration::from_millis(1900), 2, 7);
}

#[test]
fn finishing_doesnt_wait_longer_than_its_bound() {
    let collector = Collector::start(Manner::Stalls);
    let options = TelemetryOptions::new(collector.endpoint());
    let telemetry = Arc::new(Telemetry::new(options).expect("telemetry"));
    let begun = Instant::now();
    observe(&telemetry, whole_run());
    let dropped = Instant::now();
    drop(telemetry);
    assert!(begun.elapsed() < Duration::from_millis(1900), "{:?}", begun.elapsed());
    assert!(dropped.elapsed() < Duration::from_millis(100), "{:?}", dropped.elapsed());
}

#[test]
fn an_answer_that_is_no_message_is_taken_for_success() {
    check(Collector::start(Manner::Malformed).endpoint(), Duration::from_secs(1), 0, 0);
}

#[test]
fn spans_beyond_the_queue_are_lost_and_counted() {
    let collector = Collector::start(Manner::Stalls);
    let telemetry = telemetry(collector.endpoint());
    let mut log = crate::log::Log::default();
    crate::log::begin(&mut log);
    for call in 0..3_000_u64 {
        let finished = crate::log::tool_finished("c", "shell", provost_event::ToolStatus::Rejected);
        log.root(2_000 + call, finished);
    }
    observe(&telemetry, log.take());
    let lost = telemetry.health().spans_lost;
    assert!((1_000..=3_002).contains(&lost), "{lost}");
}

#[test]
fn headers_are_sent_and_shown_nowhere() {
    let collector = Collector::start(Manner::Good);
    let mut options = TelemetryOptions::new(format!("http://me:hidden-too@{}/base/", collector.address));
    let value = SecretString::from("very-hidden-key");
    options.headers = vec![("x-api-key".to_owned(), value.clone())];
    options.timeout = TIMEOUT;
    let shown = format!("{options:?}");
    let telemetry = Arc::new(Telemetry::new(options).expect("telemetry"));
    observe(&telemetry, whole_run());
    let shown = format!("{shown} {telemetry:?}");
    assert!(shown.contains("x-api-key") && !shown.contains("hidden"), "{shown}");
    let got = collector.got();
    assert_eq!(got.len(), 2);
    for one in got {
        assert!(one.path.starts_with("/base/v1/"), "{}", one.path);
        assert!(one.headers.contains(&("x-api-key".to_owned(), "very-hidden-key".to_owned())));
        let mut names = one.headers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
        names.sort_unstable();
        assert_eq!(names, ["accept", "authorization", "content-length", "content-type", "host", "x-api-key"]);
    }
}

#[test]
fn addresses_and_headers_that_make_no_sense_are_refused_without_their_secrets() {
    let with = |endpoint: &str, header: &str, value: &str| {
        let mut options = TelemetryOptions::new(endpoint);
        options.headers = vec![(header.to_owned(), SecretString::from(value))];
        Telemetry::new(options).expect_err("no telemetry")
    };
    let good = "http://127.0.0.1:4318";
    let cases = [
        (with("ftp://me:hidden@host", "a", "b"), "it doesn't begin with http:// or https://"),
        (with("http://me:hidden@host/?x=1", "a", "b"), "it has a query or a fragment"),
        (with("nonsense", "a", "b"), "it isn't a URL"),
        (with(good, "a", "hid\nden"), "its value has characters"),
        (with(good, "a b", "hidden"), "its name has characters"),
    ];
    for (error, words) in cases {
        let shown = format!("{error} {error:?}");
        assert!(shown.contains(words) && !shown.contains("hid"), "{shown}");
    }
}
