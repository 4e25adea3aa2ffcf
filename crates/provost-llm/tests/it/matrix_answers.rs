//! Every kind of answer means the same from each provider, and for any cuts of its bytes.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use provost_event::{DeltaKind, Usage};
use tokio_util::sync::CancellationToken;

use crate::matrix::*;
use crate::server::Reply;
use crate::speaker::*;
use crate::support::DeltaRecorder;

for_every_provider! {
    text_comes_in_pieces_and_as_a_whole,
    a_bit_of_everything_is_understood,
    a_call_alone_and_many_at_once_are_understood,
    what_it_took_is_told_without_overlap,
    unreported_usage_is_estimated,
    a_refusal_is_one_and_has_its_words,
    an_answer_at_the_cap_is_one,
    an_empty_answer_is_an_answer,
    it_doesnt_matter_where_the_stream_is_cut_into_chunks,
}

async fn check(speaker: &dyn Speaker, spoken: &Spoken) -> provost_engine::Answer {
    let scene = Scene::new(speaker, [whole(speaker, &speaker.events(spoken))]).await;
    let answer = scene.ask().await.unwrap();
    assert_eq!(said(&answer), spoken.blocks());
    assert_eq!(answer.stop, spoken.stop());
    assert_eq!(answer.usage, speaker.tells(spoken.usage));
    answer
}

async fn text_comes_in_pieces_and_as_a_whole(speaker: &dyn Speaker) {
    let spoken = Spoken::text(&["Hel", "lo, ", "wörld"]);
    let scene = Scene::new(speaker, [whole(speaker, &speaker.events(&spoken))]).await;
    let heard = DeltaRecorder::default();
    let answer = scene.hear(&heard, &CancellationToken::new()).await.unwrap();
    assert_eq!(said(&answer), [Neutral::Text("Hello, wörld".to_owned())]);
    assert_eq!(answer.model, SPEAKING);
    let pieces = spoken.text.into_iter().map(|piece| (DeltaKind::Text, piece)).collect::<Vec<_>>();
    assert_eq!(heard.pieces(), pieces);
}

async fn a_bit_of_everything_is_understood(speaker: &dyn Speaker) {
    let spoken = Spoken::everything();
    let scene = Scene::new(speaker, [whole(speaker, &speaker.events(&spoken))]).await;
    let heard = DeltaRecorder::default();
    let answer = scene.hear(&heard, &CancellationToken::new()).await.unwrap();
    assert_eq!(said(&answer), spoken.blocks());
    assert_eq!(heard.text(DeltaKind::Thinking), "Hm… \"so\"\n");
    assert_eq!(heard.text(DeltaKind::Text), spoken.whole_text());
    check(speaker, &spoken).await;
}

async fn a_call_alone_and_many_at_once_are_understood(speaker: &dyn Speaker) {
    let everything = Spoken::everything();
    check(speaker, &Spoken { calls: everything.calls[..1].to_vec(), ..Spoken::default() }).await;
    let call = |n: usize| Called {
        id: format!("call_{n}"),
        name: "shell".to_owned(),
        pieces: vec![format!("{{\"n\": {n}, \"deep\":"), " {\"a\":[1.50,null]}}".to_owned()],
    };
    let calls = (1..=12).map(call).collect();
    check(speaker, &Spoken { calls, ..Spoken::default() }).await;
    let nothing = Called { pieces: vec!["{}".to_owned()], ..call(1) };
    check(speaker, &Spoken { calls: vec![nothing], ..everything }).await;
}

async fn what_it_took_is_told_without_overlap(speaker: &dyn Speaker) {
    let answer = check(speaker, &Spoken::text(&["a"])).await;
    let usage = usage();
    assert_eq!(answer.usage.prompt_tokens(), usage.prompt_tokens());
    assert_eq!(answer.usage.cache_read_tokens, usage.cache_read_tokens);
    assert_eq!(answer.usage.output_tokens, usage.output_tokens);
    assert!(answer.usage.reasoning_tokens <= usage.reasoning_tokens);
}

/// A stream without usage reports.
fn uncounted(stream: &str) -> String {
    stream.replace("\"usage\":", "\"something\":").replace("\"usageMetadata\":", "\"something\":")
}

async fn unreported_usage_is_estimated(speaker: &dyn Speaker) {
    let spoken = Spoken::everything();
    let events = speaker.events(&spoken);
    let reply = Reply::Whole(streamed(speaker, [uncounted(&stream(&events)).as_bytes()]));
    let scene = Scene::new(speaker, [reply]).await;
    let last = Event { usage: Usage::default(), ..events.last().unwrap().clone() };
    let answer = scene.ask().await.unwrap();
    assert_eq!(answer.usage, counted(&last, &scene.conversation));
}

async fn a_refusal_is_one_and_has_its_words(speaker: &dyn Speaker) {
    let words = Spoken { end: End::Refused, ..Spoken::text(&["I can't ", "do that."]) };
    check(speaker, &words).await;
}

async fn an_answer_at_the_cap_is_one(speaker: &dyn Speaker) {
    check(speaker, &Spoken { end: End::Cap, ..Spoken::text(&["and ", "then"]) }).await;
    check(speaker, &Spoken { end: End::Cap, ..Spoken::default() }).await;
    let mut spoken = Spoken { end: End::Cap, ..Spoken::everything() };
    check(speaker, &spoken).await;
    // Gemini sends calls as a whole.
    if speaker.wire() != provost_llm::WireFormat::Gemini {
        spoken.calls[1].pieces = owned(&["{\"comm"]);
        let scene = Scene::new(speaker, [whole(speaker, &speaker.events(&spoken))]).await;
        let answer = scene.ask().await.unwrap();
        assert_eq!(said(&answer), spoken.blocks()[..3]);
        assert_eq!(answer.stop, spoken.stop());
    }
}

async fn an_empty_answer_is_an_answer(speaker: &dyn Speaker) {
    check(speaker, &Spoken::default()).await;
    check(speaker, &Spoken::text(&[])).await;
    check(speaker, &Spoken::text(&[""])).await;
}

/// Bytes between two cuts: enough for any line end, and any character, to be on one side.
const APART: usize = 61;

async fn it_doesnt_matter_where_the_stream_is_cut_into_chunks(speaker: &dyn Speaker) {
    let stream = stream(&speaker.events(&Spoken::everything()));
    let stream = stream.replacen("\n\n", "\r\n\r\n: comment\n\n", 3);
    let bytes = stream.as_bytes();
    let mut replies = vec![vec![bytes], bytes.chunks(1).collect(), bytes.chunks(2).collect()];
    // Every byte is once the first of a chunk.
    replies.extend((0..APART).map(|start| {
        let (first, rest) = bytes.split_at(start);
        std::iter::once(first).filter(|first| !first.is_empty()).chain(rest.chunks(APART)).collect()
    }));
    let count = replies.len();
    let replies = replies.into_iter().map(|chunks| Reply::Whole(streamed(speaker, chunks)));
    let scene = Scene::new(speaker, replies.chain([Reply::Reset])).await;
    let whole = scene.ask().await.unwrap();
    assert_eq!(said(&whole), Spoken::everything().blocks());
    for place in 1..count {
        assert_eq!(scene.ask().await.unwrap(), whole, "reply {place}");
    }
    assert_eq!(scene.server.seen().accepted, 1);
}

/// `text` in pieces that end before the characters at `cuts`.
fn cut(text: &str, cuts: &[prop::sample::Index]) -> Vec<String> {
    let chars = text.chars().collect::<Vec<_>>();
    let mut ends =
        cuts.iter().map(|cut| cut.index(chars.len() + 1)).chain([0, chars.len()]).collect::<Vec<_>>();
    ends.sort_unstable();
    ends.windows(2).map(|ends| chars[ends[0]..ends[1]].iter().collect()).collect()
}

fn pieces(text: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<String>> {
    (text, prop::collection::vec(any::<prop::sample::Index>(), 0..4))
        .prop_map(|(text, cuts)| cut(&text, &cuts))
}

fn arguments() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        any::<String>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        Just(serde_json::json!({"a": [null, true, {}]})),
    ];
    prop::collection::btree_map("\\PC{0,8}", value, 0..4).prop_map(|map| serde_json::to_string(&map).unwrap())
}

fn spoken() -> impl Strategy<Value = Spoken> {
    let thought = (pieces(".{1,40}".boxed()), "[A-Za-z0-9+/=]{1,40}")
        .prop_map(|(pieces, seal)| Thought { pieces, seal });
    let called = ("[a-z_]{1,12}", pieces(arguments().boxed()));
    let calls = prop::collection::vec(called, 0..4).prop_map(|calls| {
        let call = |(n, (name, pieces))| Called { id: format!("call_{n}"), name, pieces };
        calls.into_iter().enumerate().map(call).collect::<Vec<_>>()
    });
    let text = pieces(any::<String>().boxed());
    (prop::option::of(thought), text, calls, any::<bool>(), 0..100_000_u64).prop_map(
        |(thought, text, calls, is_cap, output)| {
            let output_tokens = output + 1_000;
            let end = if is_cap { End::Cap } else { End::Done };
            Spoken { thought, text, calls, usage: Usage { output_tokens, ..usage() }, end }
        },
    )
}

#[test]
fn any_answer_in_any_pieces_is_understood() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases: 48, failure_persistence: None, ..Config::default() };
    let given = (spoken(), prop::collection::vec(any::<prop::sample::Index>(), 0..8), 0..SPEAKERS.len());
    TestRunner::new(config)
        .run(&given, |(spoken, cuts, of)| {
            let speaker = SPEAKERS[of];
            let stream = stream(&speaker.events(&spoken)).into_bytes();
            let mut ends = cuts.iter().map(|cut| cut.index(stream.len())).collect::<Vec<_>>();
            ends.extend([0, stream.len()]);
            ends.sort_unstable();
            ends.dedup();
            let chunks = ends.windows(2).map(|ends| &stream[ends[0]..ends[1]]);
            let reply = Reply::Whole(streamed(speaker, chunks));
            let answer = runtime.block_on(async { Scene::new(speaker, [reply]).await.ask().await }).unwrap();
            prop_assert_eq!(said(&answer), spoken.blocks());
            prop_assert_eq!(answer.stop, spoken.stop());
            prop_assert_eq!(answer.usage, speaker.tells(spoken.usage));
            Ok(())
        })
        .unwrap();
}
