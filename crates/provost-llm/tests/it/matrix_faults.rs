//! Connections and streams that fail: each failure has its class, keeps the usage, and leaves no connection open.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use provost_event::{ErrorClass, ModelFailure, Usage};
use provost_harness::Clock as _;
use provost_llm::ProviderModel;
use tokio_util::sync::CancellationToken;

use crate::matrix::*;
use crate::server::{Reply, chunk, plain};
use crate::speaker::*;
use crate::support::{Conversation, DeltaRecorder, in_time};

for_every_provider! {
    a_host_that_isnt_there_is_no_connection,
    a_connection_that_breaks_before_an_answer_is_no_connection,
    an_answer_that_is_no_stream_is_nonsense,
    a_stream_cut_anywhere_is_cut_and_keeps_what_was_taken,
    a_stream_without_an_event_is_cut,
    a_connection_reset_in_the_middle_may_be_tried_again,
    a_server_that_says_nothing_is_a_stall,
    a_stream_that_stops_coming_is_a_stall_that_keeps_what_was_taken,
    an_event_that_makes_no_sense_is_nonsense,
    an_error_in_the_stream_has_its_class_and_keeps_what_was_taken,
    an_answer_that_is_no_stream_may_have_cost_money,
    a_cancel_amid_a_refusal_costs_nothing,
}

async fn asked_at(speaker: &dyn Speaker, base_url: &str) -> ModelFailure {
    let model = ProviderModel::new(options(speaker, base_url)).unwrap();
    let failure = Conversation::new("go").ask(&model).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Transport, "{}", failure.message);
    assert_eq!((failure.status, failure.request_id.as_ref()), (None, None));
    // No provider took the request.
    assert_eq!(failure.usage, Usage::default());
    failure
}

async fn a_host_that_isnt_there_is_no_connection(speaker: &dyn Speaker) {
    let failure = asked_at(speaker, "http://no-such-host.invalid").await;
    assert!(failure.message.starts_with("no address is known for"), "{}", failure.message);

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let failure = asked_at(speaker, &format!("http://user:password@127.0.0.1:{port}")).await;
    assert!(
        failure.message.starts_with(&format!("127.0.0.1:{port} refuses connections")),
        "{}",
        failure.message
    );
    assert!(!failure.message.contains("password"), "{}", failure.message);

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let no_tls = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        stream.read_to_end(&mut Vec::new())
    });
    let failure = asked_at(speaker, &format!("https://127.0.0.1:{port}")).await;
    assert!(failure.message.starts_with("no trusted TLS connection to"), "{}", failure.message);
    let _ = no_tls.join().unwrap();
}

async fn a_connection_that_breaks_before_an_answer_is_no_connection(speaker: &dyn Speaker) {
    for reply in [Reply::Reset, Reply::Cut(Vec::new()), Reply::Cut(b"HTTP/1.1 200 OK\r\ncont".to_vec())] {
        let failure = Scene::new(speaker, [reply]).await.fails_and_closes().await;
        assert_eq!(failure.class, ErrorClass::Transport);
        assert!(failure.message.contains("broke before an answer began"), "{}", failure.message);
    }
}

async fn an_answer_that_is_no_stream_is_nonsense(speaker: &dyn Speaker) {
    for body in ["", "<html>hello</html>", "{\"hello\": 1}"] {
        let reply = Reply::Whole(plain(200, &request_id_line(speaker), body));
        let failure = Scene::new(speaker, [reply]).await.ask().await.unwrap_err();
        assert_eq!((failure.class, failure.status), (ErrorClass::MalformedResponse, Some(200)), "{body}");
        assert_eq!(failure.request_id, request_id(speaker));
    }
}

/// The stream up to a position, the last complete event before it, and whether that is the whole answer.
struct Piece {
    stream: String,
    last: Option<Event>,
}

/// Streams that end between any two events, and in the middle of each.
fn pieces(speaker: &dyn Speaker, spoken: &Spoken) -> Vec<Piece> {
    let events = speaker.events(spoken);
    let between = (0..=events.len()).map(|end| (end, String::new()));
    let within = (0..events.len()).map(|end| {
        let text = &events[end].text;
        let middle = (text.len() / 2..).find(|&at| text.is_char_boundary(at)).unwrap();
        (end, text[..middle].to_owned())
    });
    let piece = |(end, rest): (usize, String)| Piece {
        stream: stream(&events[..end]) + &rest,
        last: end.checked_sub(1).map(|last| events[last].clone()),
    };
    between.chain(within).map(piece).collect()
}

async fn a_stream_cut_anywhere_is_cut_and_keeps_what_was_taken(speaker: &dyn Speaker) {
    let pieces = pieces(speaker, &Spoken::everything());
    let ended = pieces.iter().map(|piece| Reply::Whole(streamed(speaker, [piece.stream.as_bytes()])));
    let broken = pieces.iter().map(|piece| Reply::Cut(begun(speaker, &piece.stream)));
    let scene = Scene::new(speaker, ended.chain(broken)).await;
    for piece in pieces.iter().chain(&pieces) {
        let outcome = scene.ask().await;
        if piece.last.as_ref().is_some_and(|last| last.is_said) {
            assert_eq!(said(&outcome.unwrap()), Spoken::everything().blocks(), "{}", piece.stream);
            continue;
        }
        let failure = outcome.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Cut, "{failure:?} after {}", piece.stream);
        assert_eq!(failure.request_id, request_id(speaker));
        assert_eq!(failure.usage, taken(piece.last.as_ref(), &scene.conversation), "after {}", piece.stream);
    }
}

async fn a_stream_without_an_event_is_cut(speaker: &dyn Speaker) {
    let empty = plain(200, "content-type: text/event-stream\r\n", "");
    let mut replies = vec![Reply::Whole(empty.clone()), Reply::Cut(empty)];
    for body in ["", "\n\n", ": nothing\n\n"] {
        replies.push(Reply::Whole(streamed(speaker, [body.as_bytes()])));
        replies.push(Reply::Cut(begun(speaker, body)));
    }
    for reply in replies {
        let failure = Scene::new(speaker, [reply]).await.ask().await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Cut, "{failure:?}");
    }
}

async fn a_connection_reset_in_the_middle_may_be_tried_again(speaker: &dyn Speaker) {
    let events = speaker.events(&Spoken::text(&["Hello", "you"]));
    for end in 0..events.len() - 1 {
        let scene = Scene::new(speaker, [Reply::Broken(begun(speaker, stream(&events[..end])))]).await;
        // Bytes that weren't read yet are lost with the reset.
        match scene.ask().await {
            Err(failure) => {
                let is_known = matches!(failure.class, ErrorClass::Cut | ErrorClass::Transport);
                assert!(is_known && failure.class.may_retry(), "{failure:?}");
            }
            Ok(_) => assert!(events[end - 1].is_said),
        }
    }
}

async fn a_server_that_says_nothing_is_a_stall(speaker: &dyn Speaker) {
    for bytes in [Vec::new(), head(speaker), begun(speaker, speaker.ping().repeat(3))] {
        let pinged = bytes.len() > head(speaker).len();
        let (scene, clock) = Scene::timed(speaker, Reply::Hold(bytes)).await;
        let began = clock.still.now();
        let (failure, at) = tokio::join!(scene.fails_and_closes(), async {
            scene.server.until(|seen| seen.asked.len() == 1).await;
            if pinged {
                // Once for the request, and again when bytes of the body arrive.
                in_time(clock.until_read(2)).await;
            }
            in_time(clock.still.advance_to_next_sleeper()).await
        });
        assert_eq!(at, began.plus_ms(120_000));
        // A ping is a keep-alive.
        let (class, words) = if pinged {
            (ErrorClass::Stalled, "the answer stopped coming for 120 s")
        } else {
            (ErrorClass::Silent, "nothing came for 120 s")
        };
        assert_eq!((failure.class, failure.message.as_str()), (class, words));
        // Without any response it is unknown whether the provider has taken the request; it may have cost money.
        assert_eq!(failure.usage, taken(None, &scene.conversation));
    }
}

async fn a_stream_that_stops_coming_is_a_stall_that_keeps_what_was_taken(speaker: &dyn Speaker) {
    let events = speaker.events(&Spoken::text(&["Hello", "you"]));
    let first = &events[..=speaker.before_text()];
    let (scene, clock) = Scene::timed(speaker, Reply::Hold(begun(speaker, stream(first)))).await;
    let (heard, cancel) = (DeltaRecorder::default(), CancellationToken::new());
    let began = clock.still.now();
    let (outcome, at) = tokio::join!(scene.hear(&heard, &cancel), async {
        in_time(heard.until_first()).await;
        in_time(clock.still.advance_to_next_sleeper()).await
    });
    let failure = outcome.unwrap_err();
    assert_eq!(at, began.plus_ms(120_000));
    assert_eq!((failure.class, failure.request_id), (ErrorClass::Stalled, request_id(speaker)));
    assert_eq!(failure.message, "the answer stopped coming for 120 s");
    assert_eq!(failure.usage, taken(first.last(), &scene.conversation));
    scene.server.until(|seen| seen.closed == 1).await;
}

/// After the first events of an answer, and before any event.
fn starts(speaker: &dyn Speaker) -> [Vec<Event>; 2] {
    let events = speaker.events(&Spoken::text(&["Hello", "you"]));
    [Vec::new(), events[..=speaker.before_text()].to_vec()]
}

async fn an_event_that_makes_no_sense_is_nonsense(speaker: &dyn Speaker) {
    for first in starts(speaker) {
        for (malformed, words) in [
            (b"data: {\"type\":\n\n".as_slice(), "can't be read"),
            (b"data: {malformed}\n\n", "can't be read"),
            (b"data: [1]\n\n", "stream"),
            (b"data: <html>\n\n", "can't be read"),
            (b"data: \xff\xfe\n\n", "the stream isn't UTF-8"),
        ] {
            let mut bytes = begun(speaker, stream(&first));
            bytes.extend(chunk(malformed));
            let scene = Scene::new(speaker, [Reply::Hold(bytes)]).await;
            let failure = scene.fails_and_closes().await;
            let shown = String::from_utf8_lossy(malformed);
            assert_eq!(
                (failure.class, failure.request_id),
                (ErrorClass::MalformedResponse, request_id(speaker)),
                "{shown}"
            );
            assert!(failure.message.contains(words), "{shown}: {}", failure.message);
            assert_eq!(failure.usage, taken(first.last(), &scene.conversation));
        }
    }
}

async fn an_error_in_the_stream_has_its_class_and_keeps_what_was_taken(speaker: &dyn Speaker) {
    for first in starts(speaker) {
        for trouble in Trouble::ALL {
            let stream = stream(&first) + &speaker.trouble(trouble, "Own words.");
            let scene = Scene::new(speaker, [Reply::Hold(begun(speaker, stream))]).await;
            let failure = scene.fails_and_closes().await;
            assert!(trouble.classes().contains(&failure.class), "{trouble:?}: {failure:?}");
            assert!(failure.message.contains("Own words."), "{}", failure.message);
            assert_eq!(failure.request_id, request_id(speaker));
            match first.last() {
                // A failure that a provider reports before it began isn't charged.
                None => assert_eq!(failure.usage, Usage::default()),
                Some(last) => {
                    let taken = taken(Some(last), &scene.conversation);
                    assert_eq!(failure.usage.total(), taken.total(), "{trouble:?}");
                }
            }
        }
    }
}

async fn an_answer_that_is_no_stream_may_have_cost_money(speaker: &dyn Speaker) {
    for body in ["", "<html>Please sign in</html>", "{}", "{\"choices\":[]}"] {
        let page = plain(200, "content-type: text/html\r\n", body);
        let scene = Scene::new(speaker, [Reply::Whole(page)]).await;
        let failure = scene.ask().await.unwrap_err();
        assert_eq!(failure.status, Some(200), "{failure:?}");
        assert_eq!(failure.usage, taken(None, &scene.conversation), "{failure:?}");
    }
}

async fn a_cancel_amid_a_refusal_costs_nothing(speaker: &dyn Speaker) {
    let mut begun = plain(429, "", &"x".repeat(1_000));
    begun.truncate(begun.len() - 500);
    let (scene, clock) = Scene::timed(speaker, Reply::Hold(begun)).await;
    let (heard, cancel) = (DeltaRecorder::default(), CancellationToken::new());
    let (outcome, ()) = tokio::join!(scene.hear(&heard, &cancel), async {
        // The first read begins the wait for a response, the second one that for the rest of its body.
        in_time(clock.until_read(2)).await;
        cancel.cancel();
    });
    let failure = outcome.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Aborted);
    assert_eq!(failure.usage, Usage::default());
}
