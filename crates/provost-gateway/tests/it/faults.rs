//! Failures of the provider pass to the program, once each, and are recorded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use provost_event::{ErrorClass, ExternalCallEnd};
use tokio::sync::Notify;

use crate::answers::{ANTHROPIC_STREAM, ASK_ANTHROPIC};
use crate::stage::{Stage, broken_sse, json, sse};

#[tokio::test]
async fn each_failure_of_the_provider_passes_as_it_is_and_nothing_is_retried() {
    let faults = [
        (401, "authentication_error", ErrorClass::Unauthorized),
        (403, "permission_error", ErrorClass::Forbidden),
        (404, "not_found_error", ErrorClass::NotFound),
        (429, "rate_limit_error", ErrorClass::RateLimited),
        (500, "api_error", ErrorClass::Server),
        (529, "overloaded_error", ErrorClass::Overloaded),
    ];
    for (status, kind, class) in faults {
        let body = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"not now"}}}}"#);
        let sent = body.clone();
        let stage = Stage::new(move |_| json(status, &sent)).await;
        let response = stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await;
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(response.text().await.unwrap(), body);
        let answered = stage.answered(1).await;
        let message = "not now".to_owned();
        assert_eq!(answered[0].end, ExternalCallEnd::Failed { class, message });
        assert_eq!((answered[0].status, answered[0].request_id.as_deref()), (Some(status), Some("req_7")));
        assert_eq!(answered[0].usage.total(), 0, "nothing was answered");
        assert_eq!(stage.seen().len(), 1);
        let failure = stage.activity().failure.expect("who drives the program sees it");
        assert_eq!((failure.class, failure.status), (class, Some(status)));
    }
}

#[tokio::test]
async fn an_error_in_the_stream_passes_and_is_recorded() {
    let stream = format!(
        "{}event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"overloaded_error\",\"message\":\"busy\"}}}}\n\n",
        &ANTHROPIC_STREAM[..ANTHROPIC_STREAM.find("event: content").unwrap()]
    );
    let sent = stream.clone();
    let stage = Stage::new(move |_| sse(&sent)).await;
    let response = stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await;
    assert_eq!(response.text().await.unwrap(), stream);
    let answered = stage.answered(1).await;
    let ExternalCallEnd::Failed { class, .. } = answered[0].end else { panic!("{answered:?}") };
    assert_eq!(class, ErrorClass::Overloaded);
}

#[tokio::test]
async fn a_stream_without_its_end_is_a_failure() {
    let cut = ANTHROPIC_STREAM.find("event: message_delta").unwrap();
    let stage = Stage::new(move |_| sse(&ANTHROPIC_STREAM[..cut])).await;
    stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await.text().await.unwrap();
    let answered = stage.answered(1).await;
    assert!(
        matches!(answered[0].end, ExternalCallEnd::Failed { class: ErrorClass::Cut, .. }),
        "{answered:?}"
    );
    assert!(stage.activity().failure.is_some());
}

#[tokio::test]
async fn a_call_that_fails_beside_an_answered_one_is_no_failure_of_the_program() {
    let breaks = Arc::new(Notify::new());
    let (first, is_first) = (Arc::clone(&breaks), AtomicBool::new(true));
    let stage = Stage::new(move |_| match is_first.swap(false, Ordering::Relaxed) {
        true => broken_sse(&ANTHROPIC_STREAM[..120], Arc::clone(&first)),
        false => sse(ANTHROPIC_STREAM),
    })
    .await;
    let background = stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await;
    stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await.text().await.unwrap();
    breaks.notify_one();
    background.text().await.unwrap_err();
    stage.answered(2).await;
    assert_eq!(stage.activity().failure, None);
    assert_eq!((stage.activity().open, stage.activity().begun, stage.activity().answered), (0, 2, 1));
}
