//! Streams without an end: every wait and every size still has a limit.

use std::time::Duration;

use provost_event::ErrorClass;
use provost_llm::ModelLimits;

use crate::matrix::*;
use crate::server::{Flood, Reply, chunk};
use crate::speaker::*;

/// Maximum bytes in the sockets between the server and a client that stops reading.
const UNREAD_BYTES_MAX: usize = 16 * 1024 * 1024;

for_every_provider! {
    an_answer_of_a_hundred_megabytes_is_given_up_at_its_limit,
    an_event_without_an_end_is_given_up_at_its_limit,
    pings_without_an_end_are_a_stall,
    an_answer_counts_though_the_stream_never_ends_after_it,
    an_answer_of_the_largest_size_is_read_and_a_larger_one_refused,
}

fn flood(begun: Vec<u8>, again: &str, pause_ms: u64) -> Reply {
    Reply::Flood(Flood { begun, again: chunk(again.as_bytes()), pause: Duration::from_millis(pause_ms) })
}

/// The events of a stream up to its first piece of text.
fn first(speaker: &dyn Speaker) -> Vec<Event> {
    speaker.events(&Spoken::text(&["Hello"]))[..=speaker.before_text()].to_vec()
}

/// The peak memory of this process, in bytes; only on Linux.
fn memory_peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<usize>().ok()? * 1024)
}

async fn an_answer_of_a_hundred_megabytes_is_given_up_at_its_limit(speaker: &dyn Speaker) {
    let before = memory_peak();
    let text = "x".repeat(60_000);
    let reply = flood(begun(speaker, stream(&first(speaker))), &speaker.more_text(&text), 0);
    let scene = Scene::new(speaker, [reply]).await;
    let failure = scene.fails_and_closes().await;
    assert_eq!((failure.class, failure.request_id), (ErrorClass::MalformedResponse, request_id(speaker)));
    let limit = ModelLimits::default().answer_bytes_max;
    assert_eq!(failure.message, format!("the answer is longer than {limit} bytes"));
    let expected = limit.div_ceil(3) as u64;
    assert!((expected * 9 / 10..=expected).contains(&failure.usage.output_tokens), "{:?}", failure.usage);
    let flooded = scene.server.seen().flooded;
    assert!((limit..limit + UNREAD_BYTES_MAX).contains(&flooded), "{flooded} bytes were sent");
    if let (Some(before), Some(after)) = (before, memory_peak()) {
        assert!(after - before < 5 * limit, "{} bytes", after - before);
    }
}

async fn an_event_without_an_end_is_given_up_at_its_limit(speaker: &dyn Speaker) {
    let mut bytes = begun(speaker, stream(&first(speaker)));
    bytes.extend(chunk(b"data: {\"text\": \""));
    let scene = Scene::new(speaker, [flood(bytes, &"x".repeat(60_000), 0)]).await;
    let failure = scene.fails_and_closes().await;
    let limit = ModelLimits::default().event_bytes_max;
    assert_eq!(failure.message, format!("an event of the stream is longer than {limit} bytes"));
    assert_eq!(failure.class, ErrorClass::MalformedResponse);
    assert_eq!(failure.usage, taken(first(speaker).last(), &scene.conversation));
}

async fn pings_without_an_end_are_a_stall(speaker: &dyn Speaker) {
    let default = ModelLimits::default();
    let first = first(speaker);
    for (first, limits, words) in [
        (&first[..0], ModelLimits { quiet_ms: 60, ..default }, "nothing came but signs of life for 60 ms"),
        (&first[..], ModelLimits { quiet_ms: 60, ..default }, "nothing came but signs of life for 60 ms"),
    ] {
        let reply = flood(begun(speaker, stream(first)), speaker.ping(), 2);
        let scene = Scene::limited(speaker, [reply], limits).await;
        let failure = scene.fails_and_closes().await;
        assert_eq!((failure.class, failure.message.as_str()), (ErrorClass::Stalled, words));
        assert_eq!(failure.usage, taken(first.last(), &scene.conversation));
    }
}

async fn an_answer_counts_though_the_stream_never_ends_after_it(speaker: &dyn Speaker) {
    let limits = ModelLimits { drain_ms: 20, trailer_ms: 40, ..ModelLimits::default() };
    let spoken = Spoken::everything();
    let events = speaker.events(&spoken);
    let said_at = events.iter().position(|event| event.is_said).unwrap();
    for end in said_at + 1..=events.len() {
        let bytes = begun(speaker, stream(&events[..end]));
        for reply in [Reply::Hold(bytes.clone()), flood(bytes, speaker.ping(), 2)] {
            let scene = Scene::limited(speaker, [reply], limits).await;
            assert_eq!(said(&scene.ask().await.unwrap()), spoken.blocks());
            scene.server.until(|seen| seen.closed == 1).await;
        }
    }
}

async fn an_answer_of_the_largest_size_is_read_and_a_larger_one_refused(speaker: &dyn Speaker) {
    let events = speaker.events(&Spoken::text(&["a"; 200]));
    let length = stream(&events).len();
    let longest = events.iter().map(|event| event.text.trim_end().len()).max().unwrap();
    let scene = |answer_bytes_max, event_bytes_max| {
        let limits = ModelLimits { answer_bytes_max, event_bytes_max, ..ModelLimits::default() };
        Scene::limited(speaker, [whole(speaker, &events)], limits)
    };
    scene(length, longest).await.ask().await.unwrap();
    let failure = scene(length - 1, longest).await.ask().await.unwrap_err();
    assert_eq!(failure.message, format!("the answer is longer than {} bytes", length - 1));
    let failure = scene(length, longest / 4).await.ask().await.unwrap_err();
    assert_eq!(failure.message, format!("an event of the stream is longer than {} bytes", longest / 4));
}
