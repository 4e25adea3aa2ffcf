//! Requests that a provider, or a proxy before it, refuses: the same classes for all.

use provost_event::{ErrorClass, ModelFailure};
use provost_llm::ModelLimits;

use crate::matrix::*;
use crate::server::{Reply, plain};
use crate::speaker::*;
use crate::support::KEY;

const STATUSES: [u16; 13] = [400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 529];

for_every_provider! {
    every_status_has_its_class_and_the_providers_own_words,
    statuses_alone_are_enough,
    a_page_of_a_proxy_is_shown,
    a_conversation_that_is_too_long_is_told_from_other_wrong_requests,
    a_wish_to_wait_is_passed_on,
    an_error_message_and_its_body_have_a_largest_size,
    a_redirect_isnt_followed_and_names_where_it_leads,
    the_key_is_in_no_error_and_no_debug_text,
}

/// The failures of requests with these responses, one after the other over one connection.
async fn failures(speaker: &dyn Speaker, replies: Vec<Vec<u8>>) -> Vec<ModelFailure> {
    let count = replies.len();
    let scene = Scene::new(speaker, replies.into_iter().map(Reply::Whole)).await;
    let mut failures = Vec::new();
    for _ in 0..count {
        failures.push(scene.ask().await.unwrap_err());
    }
    assert_eq!(scene.server.seen().accepted, 1);
    failures
}

async fn every_status_has_its_class_and_the_providers_own_words(speaker: &dyn Speaker) {
    let id = request_id_line(speaker);
    let reply = |&status: &u16| plain(status, &id, &speaker.refusal(status, "Own words."));
    let failures = failures(speaker, STATUSES.iter().map(reply).collect()).await;
    for (status, failure) in STATUSES.into_iter().zip(failures) {
        assert!(classes(status).contains(&failure.class), "{status}: {failure:?}");
        let expected = ModelFailure {
            status: Some(status),
            request_id: request_id(speaker),
            ..ModelFailure::new(failure.class, "Own words.")
        };
        assert_eq!(failure, expected);
    }
}

async fn statuses_alone_are_enough(speaker: &dyn Speaker) {
    let id = request_id_line(speaker);
    let failures = failures(speaker, STATUSES.iter().map(|&status| plain(status, &id, "")).collect()).await;
    for (status, failure) in STATUSES.into_iter().zip(failures) {
        assert!(classes(status).contains(&failure.class), "{status}: {failure:?}");
        assert_eq!((failure.status, failure.request_id), (Some(status), request_id(speaker)));
        assert_eq!(failure.message, format!("HTTP {status} without a message"));
    }
}

async fn a_page_of_a_proxy_is_shown(speaker: &dyn Speaker) {
    let page = format!("<html>\n  <h1>Bad   gateway</h1>\n{}", "x".repeat(5000));
    let reply = |&status: &u16| plain(status, "content-type: text/html\r\n", &page);
    let failures = failures(speaker, STATUSES.iter().map(reply).collect()).await;
    for (status, failure) in STATUSES.into_iter().zip(failures) {
        assert!(classes(status).contains(&failure.class), "{status}: {failure:?}");
        let beginning = format!("HTTP {status}: <html> <h1>Bad gateway</h1> xxx");
        assert!(failure.message.starts_with(&beginning), "{}", failure.message);
        assert!(failure.message.chars().count() < 220);
    }
    for body in ["{}", "[]", "null", "{\"error\": null}", "{\"error\": {}}", "{\"error\": \"\"}", "[{}]"] {
        let failure = self::failures(speaker, vec![plain(500, "", body)]).await.remove(0);
        assert_eq!(failure.class, ErrorClass::Server);
        assert!(!failure.message.trim().is_empty(), "{body}");
    }
}

async fn a_conversation_that_is_too_long_is_told_from_other_wrong_requests(speaker: &dyn Speaker) {
    for failure in failures(speaker, vec![plain(400, "", &speaker.too_long())]).await {
        assert_eq!((failure.class, failure.status), (ErrorClass::ContextTooLong, Some(400)));
    }
}

async fn a_wish_to_wait_is_passed_on(speaker: &dyn Speaker) {
    for (headers, expected) in [
        ("", None),
        ("retry-after: 7\r\n", Some(7_000)),
        ("Retry-After: Sun, 06 Nov 1994 08:50:07 GMT\r\n", Some(30_000)),
        ("retry-after: soon\r\n", None),
    ] {
        let reply = Reply::Whole(plain(429, headers, &speaker.refusal(429, "Slow down.")));
        let (scene, _clock) = Scene::timed(speaker, reply).await;
        let failure = scene.ask().await.unwrap_err();
        assert_eq!((failure.class, failure.retry_after_ms), (ErrorClass::RateLimited, expected), "{headers}");
    }
}

async fn an_error_message_and_its_body_have_a_largest_size(speaker: &dyn Speaker) {
    let reply = || Reply::Whole(plain(400, "", &speaker.refusal(400, &"ü".repeat(900))));
    let limits = ModelLimits { message_chars_max: 899, ..ModelLimits::default() };
    let failure = Scene::limited(speaker, [reply()], limits).await.ask().await.unwrap_err();
    assert_eq!(failure.message, format!("{}…", "ü".repeat(899)));
    let limits = ModelLimits { error_body_bytes_max: 100, ..ModelLimits::default() };
    let failure = Scene::limited(speaker, [reply()], limits).await.ask().await.unwrap_err();
    assert!(failure.message.starts_with("HTTP 400: {"), "{}", failure.message);
}

async fn a_redirect_isnt_followed_and_names_where_it_leads(speaker: &dyn Speaker) {
    let location = "location: http://me:secret@elsewhere.test:8080/v1?key=secret\r\n";
    let failure = failures(speaker, vec![plain(307, location, "")]).await.remove(0);
    assert_eq!(failure.class, ErrorClass::Redirected);
    let message = "HTTP 307: requests are sent on to http://elsewhere.test:8080; the key isn't sent there";
    assert_eq!(failure.message, message);
}

async fn the_key_is_in_no_error_and_no_debug_text(speaker: &dyn Speaker) {
    let echo = format!("Bad key {KEY}, I say: {KEY}!");
    let id = speaker.request_id_header().unwrap_or("x-request-id");
    let refusal = speaker.refusal(401, &echo);
    let trouble = speaker.trouble(Trouble::InvalidRequest, &echo);
    let broken = format!("data: {echo}\n\n");
    for reply in [
        plain(401, &format!("{id}: {KEY}\r\n"), &refusal),
        plain(401, &format!("{id}: {KEY}\r\n"), &echo),
        plain(401, "", &format!("{}{echo}", "x".repeat(180))),
        plain(307, &format!("location: http://elsewhere.test/{KEY}\r\n"), ""),
        streamed(speaker, [trouble.as_bytes()]),
        streamed(speaker, [broken.as_bytes()]),
    ] {
        let failure = failures(speaker, vec![reply]).await.remove(0);
        let shown = format!("{failure:?} {}", serde_json::to_string(&failure).unwrap());
        assert!(!shown.contains("secret") && !shown.contains("sk-ant"), "{shown}");
    }
    let scene = Scene::new(speaker, [Reply::Reset]).await;
    let shown = format!("{:?}", scene.model);
    assert!(shown.contains(&scene.server.port.to_string()), "{shown}");
    assert!(!shown.contains("secret") && !shown.contains("sk-ant"), "{shown}");
    scene.ask().await.unwrap_err();
    // It is sent anyway, in a header and nowhere else.
    let asked = &scene.server.seen().asked[0];
    let line = asked.head.lines().next().unwrap();
    assert!(asked.head.contains(KEY) && !line.contains(KEY), "{}", asked.head);
    assert!(!String::from_utf8_lossy(&asked.body).contains(KEY));
}
