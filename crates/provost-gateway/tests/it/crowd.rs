//! A thousand streams at once: not part of the usual runs.

use std::time::Instant;

use futures::future::join_all;

use crate::answers::{ANTHROPIC_STREAM, ASK_ANTHROPIC};
use crate::stage::{Stage, Staged, open_sse, sse};

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "opens some 4,000 sockets: cargo nextest run -p provost-gateway --run-ignored only"]
async fn a_thousand_streams_are_open_at_once_and_all_are_charged() {
    const STREAMS: usize = 1_000;
    let stage = Stage::with(Staged::default(), |_| open_sse(&[&ANTHROPIC_STREAM[..300]])).await;
    let before = resident_kib();
    let began = Instant::now();
    let open = join_all((0..STREAMS).map(|_| async {
        let mut response = stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await;
        assert_eq!(response.status(), 200);
        response.chunk().await.unwrap();
        response
    }))
    .await;
    assert_eq!(stage.activity().open, u32::try_from(STREAMS).unwrap());
    let kib = resident_kib().saturating_sub(before);
    println!(
        "{STREAMS} streams open after {:?}; {kib} KiB, of client, gateway and provider together",
        began.elapsed()
    );
    drop(open);
    stage.answered(STREAMS).await;
    assert_eq!(stage.activity().open, 0);
    println!("all charged after {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures: cargo nextest run -p provost-gateway --run-ignored only --no-capture"]
async fn a_request_through_the_gateway_and_directly() {
    const REQUESTS: usize = 300;
    let stage = Stage::with(Staged::default(), |_| sse(ANTHROPIC_STREAM)).await;
    let direct = stage.provider_url();
    let (mut through, mut straight) = (Vec::new(), Vec::new());
    for _ in 0..REQUESTS {
        let began = Instant::now();
        stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await.text().await.unwrap();
        through.push(began.elapsed());
        let began = Instant::now();
        let request = stage.client.post(format!("{direct}/v1/messages")).body(ASK_ANTHROPIC);
        request.send().await.unwrap().text().await.unwrap();
        straight.push(began.elapsed());
    }
    for (name, times) in [("gateway", &mut through), ("direct", &mut straight)] {
        times.sort();
        println!("{name}: p50 {:?}, p99 {:?}", times[REQUESTS / 2], times[REQUESTS * 99 / 100]);
    }
}
