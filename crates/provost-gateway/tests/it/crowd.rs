//! What the gateway costs: not part of the usual runs. Measured in one process with client and provider, each number paired
//! with the same without the gateway.

use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::StreamExt as _;
use futures::future::join_all;

use crate::answers::{ANTHROPIC_STREAM, ASK_ANTHROPIC};
use crate::stage::{Stage, Staged, open_sse, sse};

/// Streams that are open at once.
const STREAMS: usize = 1_000;
/// Requests one after the other.
const REQUESTS: usize = 1_000;
/// A second of a stream: 1 MB in pieces of 10 KB, one every 10 ms.
const PIECES: usize = 100;
const PIECE_BYTES: usize = 10_000;
const PIECE_PAUSE: Duration = Duration::from_millis(10);
/// Streams of 1 MB/s, one after the other.
const SECONDS: usize = 10;

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or_default()
}

/// User and system time of this process, in ticks of 10 ms.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks = after.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// The way of a request.
#[derive(Debug, Clone, Copy)]
enum Way {
    Direct,
    Gateway,
}

const WAYS: [(usize, Way); 2] = [(0, Way::Direct), (1, Way::Gateway)];

async fn send(stage: &Stage, way: Way) -> reqwest::Response {
    match way {
        Way::Gateway => stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await,
        Way::Direct => {
            let url = format!("{}/v1/messages", stage.provider_url());
            stage.client.post(url).body(ASK_ANTHROPIC).send().await.unwrap()
        }
    }
}

async fn open_streams(stage: &Stage, way: Way) -> (Vec<reqwest::Response>, u64, Duration) {
    let (before, began) = (resident_kib(), Instant::now());
    let open = join_all((0..STREAMS).map(|_| async {
        let mut response = send(stage, way).await;
        assert_eq!(response.status(), 200);
        response.chunk().await.unwrap();
        response
    }))
    .await;
    (open, resident_kib().saturating_sub(before), began.elapsed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "opens some 4,000 sockets: cargo nextest run -p provost-gateway --run-ignored only"]
async fn a_thousand_streams_are_open_at_once_and_all_are_charged() {
    let stage = Stage::with(Staged::default(), |_| open_sse(&[&ANTHROPIC_STREAM[..300]])).await;
    let (straight, straight_kib, straight_time) = open_streams(&stage, Way::Direct).await;
    let (open, kib, time) = open_streams(&stage, Way::Gateway).await;
    assert_eq!(stage.activity().open, u32::try_from(STREAMS).unwrap());
    println!("{STREAMS} streams: direct {straight_kib} KiB, open after {straight_time:?}");
    println!("{STREAMS} streams: gateway {kib} KiB, open after {time:?}");
    println!("a stream: {} KiB more through the gateway", kib.saturating_sub(straight_kib) / STREAMS as u64);
    let began = Instant::now();
    drop((open, straight));
    stage.answered(STREAMS).await;
    assert_eq!(stage.activity().open, 0);
    println!("all aborted and charged after {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures: cargo nextest run -p provost-gateway --run-ignored only --no-capture"]
async fn a_request_through_the_gateway_and_directly() {
    let stage = Stage::with(Staged::default(), |_| sse(ANTHROPIC_STREAM)).await;
    for (_, way) in WAYS {
        send(&stage, way).await.text().await.unwrap();
    }
    // In turns, so that both see the same machine.
    let (mut times, mut used) = ([Vec::new(), Vec::new()], [Duration::ZERO; 2]);
    for _ in 0..REQUESTS / 50 {
        for (which, way) in WAYS {
            let before = cpu();
            for _ in 0..50 {
                let began = Instant::now();
                send(&stage, way).await.text().await.unwrap();
                times[which].push(began.elapsed());
            }
            used[which] += cpu() - before;
        }
    }
    for (which, way) in WAYS {
        let times = &mut times[which];
        times.sort();
        let (p50, p99) = (times[REQUESTS / 2], times[REQUESTS * 99 / 100]);
        let cpu = used[which] / u32::try_from(REQUESTS).unwrap();
        println!("{way:?}: p50 {p50:?}, p99 {p99:?}, CPU {cpu:?} a request (client and provider included)");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures: cargo nextest run -p provost-gateway --run-ignored only --no-capture"]
async fn a_stream_of_a_megabyte_a_second_through_the_gateway_and_directly() {
    let stage = Stage::with(Staged::default(), |_| paced()).await;
    let (mut gaps, mut used) = ([Vec::new(), Vec::new()], [Duration::ZERO; 2]);
    for _ in 0..SECONDS {
        for (which, way) in WAYS {
            let before = cpu();
            let mut response = send(&stage, way).await;
            let (mut bytes, mut last) = (0, Instant::now());
            while let Some(piece) = response.chunk().await.unwrap() {
                bytes += piece.len();
                gaps[which].push(last.elapsed());
                last = Instant::now();
            }
            assert!(bytes > PIECES * PIECE_BYTES, "{bytes}");
            used[which] += cpu() - before;
        }
    }
    for (which, way) in WAYS {
        let gaps = &mut gaps[which];
        gaps.sort();
        let (p50, p99) = (gaps[gaps.len() / 2], gaps[gaps.len() * 99 / 100]);
        let cpu = used[which] / u32::try_from(SECONDS).unwrap();
        println!("{way:?}: CPU {cpu:?} a MB, gaps between pieces p50 {p50:?}, p99 {p99:?}");
    }
}

/// A stream of text at 1 MB/s.
fn paced() -> Response {
    let (begin, end) = ANTHROPIC_STREAM.split_at(ANTHROPIC_STREAM.find("event: content_block_stop").unwrap());
    let text = "x".repeat(PIECE_BYTES);
    let delta = format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"input_json_delta\",\"partial_json\":\"{text}\"}}}}\n\n"
    );
    let (begin, end, delta) =
        (Bytes::from(begin.to_owned()), Bytes::from(end.to_owned()), Bytes::from(delta));
    let pieces = futures::stream::iter(0..PIECES).then(move |_| {
        let delta = delta.clone();
        async move {
            tokio::time::sleep(PIECE_PAUSE).await;
            delta
        }
    });
    let all = futures::stream::iter([begin]).chain(pieces).chain(futures::stream::iter([end]));
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(Body::from_stream(all.map(Ok::<_, std::io::Error>))).unwrap()
}
