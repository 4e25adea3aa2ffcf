//! Judges with a provider that fails: a real HTTP server on loopback that speaks a wire format, the real client,
//! and a clock that advances only at waits.

use std::sync::{Arc, Mutex};

use expect_test::{Expect, expect};
use provost_backend::EmbeddedBackend;
use provost_event::{Entry, GoalEntry, GoalJudged, Seq};
use provost_harness::{Log as _, SimulatedClock, SystemClock};
use provost_llm::{ModelLimits, Provider, ProviderModel, ProviderOptions, WireFormat};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::goals_stage::*;
use crate::provider_faults::{OK, START, STOP, done, events, failure, read_request, serve};

const VERDICT: &str = r#"{\"achieved\": true, \"reasoning\": \"It is there.\", \"confidence\": 0.9}"#;

/// A stream with a verdict.
fn good() -> (String, String) {
    let delta = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"VERDICT"}}"#;
    let body = events(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        &delta.replace("VERDICT", VERDICT),
        r#"{"type":"content_block_stop","index":0}"#,
        &done("end_turn"),
        STOP,
    ]);
    (OK.to_owned(), body)
}

fn judge_at(listener: &TcpListener) -> Arc<ProviderModel> {
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let options = ProviderOptions {
        provider: Provider::new("anthropic", WireFormat::Anthropic, base_url),
        model: "claude-test".to_owned(),
        key: Some("a-key".into()),
        reasoning: None,
        limits: ModelLimits::default(),
        clock: Arc::new(SystemClock),
    };
    Arc::new(ProviderModel::new(options).unwrap())
}

/// Advances the clock to the end of each wait in the log, as it begins.
async fn wait_out(backend: &EmbeddedBackend, clock: &SimulatedClock, waits: usize) {
    for wait in 1..=waits {
        let waits_for = |entry: &Entry| {
            matches!(entry, Entry::Goal(GoalEntry::Judged(GoalJudged { wait_ms: Some(_), .. })))
        };
        until(backend, ROOT, wait, waits_for).await;
        let log = backend.read(ROOT.into(), Seq::START, 1_000).await.unwrap();
        let wait_ms = log.iter().rev().find_map(|record| match &record.entry {
            Entry::Goal(GoalEntry::Judged(judged)) => judged.wait_ms,
            _ => None,
        });
        clock.advance_ms(wait_ms.unwrap());
    }
}

/// A run with one claim, whose judge gets these responses, with this many waits.
async fn run(answers: Vec<(String, String)>, waits: usize, expected: Expect) -> Playing {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (stage, clock) = Stage::simulated();
    let stage = stage.agent([text("It is done.")]).model(JUDGE, judge_at(&listener));
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(listener, Arc::new(Mutex::new(answers.into()))));
    let mut playing = stage.start(|_| {}).await;
    let backend = playing.backend.clone();
    let outcome = playing.goes_while(wait_out(&backend, &clock, waits)).await;
    assert_eq!(outcome, DONE);
    expected.assert_eq(&playing.told().await);
    playing
}

#[tokio::test]
async fn a_429_is_waited_out_as_long_as_the_provider_asks_and_counts_for_nothing() {
    let busy = failure("429 Too Many Requests\r\nretry-after: 17", "rate_limit_error", "slow down");
    let playing = run(
        vec![busy, good()],
        1,
        expect![[r#"
            the agent answers
            verify: Claim, turn 1, generation 1
              ask a judge
              judge for generation 1: failed: rate limited, for another 17 s, wait 17000 ms
              ask a judge
              judge for generation 1: yes at 0.90
              verdict on turn 1: achieved at 0.90
            turn 1 ends
            ended: completed, verified
        "#]],
    )
    .await;
    assert_eq!(playing.goal().await.failures, 0);
    assert_eq!(playing.charged().await[JUDGE], (2, 29));
}

#[tokio::test]
async fn a_500_counts_as_a_failure_and_the_judge_is_asked_again_after_a_while() {
    let broken = failure("500 Internal Server Error", "api_error", "oops");
    run(
        vec![broken.clone(), broken, good()],
        2,
        expect![[r#"
            the agent answers
            verify: Claim, turn 1, generation 1
              ask a judge
              judge for generation 1: failed: the provider failed: oops, wait 5000 ms
              ask a judge
              judge for generation 1: failed: the provider failed: oops, wait 10000 ms
              ask a judge
              judge for generation 1: yes at 0.90
              verdict on turn 1: achieved at 0.90
            turn 1 ends
            ended: completed, verified
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_verdict_that_breaks_off_is_none_and_what_it_took_is_charged() {
    let (head, body) = good();
    let cut = body.find("content_block_stop").unwrap() - 20;
    let playing = run(vec![(head, body[..cut].to_owned()), good()], 1, expect![[r#"
        the agent answers
        verify: Claim, turn 1, generation 1
          ask a judge
          judge for generation 1: failed: the answer was cut off: the stream ended before the answer did, wait 5000 ms
          ask a judge
          judge for generation 1: yes at 0.90
          verdict on turn 1: achieved at 0.90
        turn 1 ends
        ended: completed, verified
    "#]]).await;
    assert_eq!(playing.charged().await[JUDGE], (2, 21 + 29));
}

/// Sends the beginning of a verdict to the first client, and a whole one to the next.
async fn stall(listener: TcpListener, begun: oneshot::Sender<()>) {
    let (head, body) = good();
    let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n");
    let (mut first, _) = listener.accept().await.unwrap();
    begin(&mut first, &head, &body[..body.find("content_block_stop").unwrap() - 20]).await;
    begun.send(()).unwrap();
    let (mut second, _) = listener.accept().await.unwrap();
    begin(&mut second, &head, &body).await;
    second.shutdown().await.unwrap();
}

async fn begin(stream: &mut TcpStream, head: &str, body: &str) {
    read_request(stream).await;
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn a_stream_that_stalls_is_given_up_after_the_judge_s_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (stage, clock) = Stage::simulated();
    let stage = stage.agent([text("It is done.")]).model(JUDGE, judge_at(&listener));
    let mut tasks = JoinSet::new();
    let (begun, has_begun) = oneshot::channel();
    tasks.spawn(stall(listener, begun));
    let mut playing = stage.start(|_| {}).await;
    let backend = playing.backend.clone();
    let pass = async {
        has_begun.await.unwrap();
        // The judge's timeout is the first wait.
        clock.advance_to_next_sleeper().await;
        wait_out(&backend, &clock, 1).await;
    };
    let outcome = playing.goes_while(pass).await;
    assert_eq!(outcome, DONE);
    expect![[r#"
        the agent answers
        verify: Claim, turn 1, generation 1
          ask a judge
          judge for generation 1: failed: no verdict within 60 s, wait 5000 ms
          ask a judge
          judge for generation 1: yes at 0.90
          verdict on turn 1: achieved at 0.90
        turn 1 ends
        ended: completed, verified
    "#]]
    .assert_eq(&playing.told().await);
}
