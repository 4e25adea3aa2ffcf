//! Hooks that are servers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use provost_event::{HookContract, HookPolicy, HookProgram, Timestamp};
use provost_harness::{HookPrograms as _, SimulatedClock, SystemClock};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::stage::{Stage, claude, shown};

/// A server that answers one request with `answer` and returns the request; it never closes by itself.
async fn serve(answer: Vec<u8>) -> (String, oneshot::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let (tell, told) = oneshot::channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let mut request = Vec::new();
        let mut buffer = [0; 4096];
        while !is_whole(&request) {
            let read = stream.read(&mut buffer).await.expect("bytes");
            request.extend_from_slice(&buffer[..read]);
        }
        let _ = tell.send(String::from_utf8_lossy(&request).into_owned());
        let _ = stream.write_all(&answer).await;
        // Until the client closes the connection.
        let _ = stream.read(&mut buffer).await;
    });
    (url, told)
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let head = head.to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    length.is_some_and(|length| length.parse() == Ok(body.len()))
}

fn answer(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn hook(url: &str) -> HookPolicy {
    let program = HookProgram::Http { url: url.to_owned(), headers: Vec::new(), allowed_env: Vec::new() };
    HookPolicy { program: Some(program), ..claude("PreToolUse", "") }
}

/// The answers by both contracts, without the server's port.
async fn asked(status: &str, body: &str) -> [String; 2] {
    let mut all = Vec::new();
    for contract in [HookContract::Claude, HookContract::Provost] {
        let (url, _) = serve(answer(status, body)).await;
        let port = url.split([':', '/']).nth(4).expect("a port").to_owned();
        let hook = HookPolicy { contract, ..hook(&url) };
        all.push(shown(&Stage::new().ask(&hook).await).replace(&port, "PORT"));
    }
    all.try_into().expect("two")
}

#[tokio::test]
async fn only_json_decides() {
    assert_eq!(asked("200 OK", "").await, ["continue", "continue"]);
    assert_eq!(asked("204 No Content", "").await, ["continue", "continue"]);
    let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#;
    assert_eq!(asked("200 OK", deny).await, ["deny: no", "deny: no"]);
    let text = "its answer is no JSON object";
    assert_eq!(
        asked("200 OK", "fine").await,
        [format!("continue | note: {text}"), format!("failed: {text}")]
    );
    assert_eq!(asked("200 OK", "[]").await, [format!("continue | note: {text}"), format!("failed: {text}")]);
    let misfit = "its JSON answer counts for nothing: unknown variant `no`, expected `approve` or `block`";
    assert_eq!(
        asked("200 OK", r#"{"decision":"no"}"#).await,
        [format!("continue | note: {misfit}"), format!("failed: {misfit}")]
    );
    for (status, words) in
        [("500 Internal Server Error", "500 Internal Server Error"), ("404 Not Found", "404 Not Found")]
    {
        let failed = format!("failed: 127.0.0.1:PORT answered with HTTP {words}");
        assert_eq!(
            asked(status, deny).await,
            [failed.clone(), failed],
            "a decision counts only with success"
        );
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (elsewhere, told) = serve(answer("200 OK", "")).await;
    let answer =
        format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n");
    let (url, _) = serve(answer.into_bytes()).await;
    let answer = shown(&Stage::new().ask(&hook(&url)).await);
    assert!(answer.ends_with("answered with HTTP 307 Temporary Redirect"), "{answer}");
    let mut told = told;
    assert!(told.try_recv().is_err());
}

#[tokio::test]
async fn the_question_is_posted_and_headers_name_only_allowed_variables() {
    let (url, told) = serve(answer("200 OK", "")).await;
    let variables =
        [("TOKEN", "sk-1"), ("HIDDEN", "sk-2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let stage = Stage::with(Arc::new(SystemClock), &[], HashMap::from(variables));
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let program = HookProgram::Http {
        url,
        headers: vec![
            header("Authorization", "Bearer $TOKEN"),
            header("X-Other", "[${HIDDEN}${TOKEN}$NOT_SET]"),
        ],
        allowed_env: vec!["TOKEN".to_owned(), "NOT_SET".to_owned()],
    };
    let hook = HookPolicy { program: Some(program), ..claude("PreToolUse", "") };
    assert_eq!(shown(&stage.ask(&hook).await), "continue");
    let request = told.await.expect("a request");
    let (head, body) = request.split_once("\r\n\r\n").expect("head and body");
    assert!(head.starts_with("POST /hook HTTP/1.1\r\n"), "{head}");
    for line in ["content-type: application/json", "authorization: bearer sk-1", "x-other: [sk-1]"] {
        assert!(head.to_lowercase().lines().any(|one| one == line), "{line} in {head}");
    }
    let question: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(question["tool_name"], "Bash");
    assert_eq!(question["hook_event_name"], "PreToolUse");
}

#[tokio::test]
async fn what_goes_wrong_is_told_without_headers_and_passwords() {
    let port =
        TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address").port();
    let variables = HashMap::from([("TOKEN".to_owned(), "sk-1\n".to_owned())]);
    let stage = Stage::with(Arc::new(SystemClock), &[], variables);
    let refused = shown(&stage.ask(&hook(&format!("http://user:pw@127.0.0.1:{port}/secret"))).await);
    assert!(refused.starts_with(&format!("failed: 127.0.0.1:{port}: ")), "{refused}");
    assert!(refused.to_lowercase().contains("refused"), "{refused}");
    assert!(!refused.contains("pw") && !refused.contains("secret"), "{refused}");

    let program = HookProgram::Http {
        url: format!("http://127.0.0.1:{port}"),
        headers: vec![("Authorization".to_owned(), "Bearer $TOKEN".to_owned())],
        allowed_env: vec!["TOKEN".to_owned()],
    };
    let bad = shown(&stage.ask(&HookPolicy { program: Some(program), ..claude("PreToolUse", "") }).await);
    assert!(
        bad.starts_with("failed: the header `Authorization` can't be sent") && !bad.contains("sk-1"),
        "{bad}"
    );

    let no_address = shown(&stage.ask(&hook("file:///etc/passwd")).await);
    assert_eq!(no_address, "failed: its `url` doesn't begin with http:// or https://");
}

#[tokio::test]
async fn a_server_that_says_nothing_has_its_time_and_no_more() {
    for stalls in [Vec::new(), b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{".to_vec()] {
        let (url, told) = serve(stalls).await;
        let clock = Arc::new(SimulatedClock::at(Timestamp(0)));
        let stage = Stage::with(Arc::<SimulatedClock>::clone(&clock), &[], HashMap::new());
        let hook = HookPolicy { timeout_ms: 600_000, ..hook(&url) };
        let late = async {
            told.await.expect("a request");
            clock.advance_to_next_sleeper().await;
        };
        let (answer, ()) = tokio::join!(stage.ask(&hook), late);
        assert_eq!(shown(&answer), "failed: no answer within 600 s");
    }
}

#[tokio::test]
async fn cancelling_lets_go_of_a_server_at_once() {
    let (url, told) = serve(Vec::new()).await;
    let (stage, cancel) = (Stage::new(), CancellationToken::new());
    let hook = hook(&url);
    let question = stage.question(hook.point, false);
    let asked = stage.hooks.ask(&hook, &question, hook.point, &cancel);
    let stop = async {
        told.await.expect("a request");
        cancel.cancel();
    };
    let answer = tokio::time::timeout(Duration::from_secs(5), async { tokio::join!(asked, stop).0 }).await;
    assert_eq!(shown(&answer.expect("in time")), "failed: cancelled");
}

#[tokio::test]
async fn an_answer_without_end_is_none() {
    let fits = format!("{{\"systemMessage\":\"{}\"}}", "x".repeat(9_000));
    assert!(asked("200 OK", &fits).await[0].starts_with("continue | note: xxx"));
    let body = "x".repeat(1024 * 1024 + 1);
    let long = "the answer of 127.0.0.1:PORT is longer than 1048576 bytes";
    let denied = format!("deny: it can't be known what the hook decides: {long}");
    assert_eq!(asked("200 OK", &body).await, [denied, format!("failed: {long}")]);
}
