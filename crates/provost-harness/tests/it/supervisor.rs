//! A judge called over a real connection: its answers, and all of its failures.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{
    Certainty, ErrorClass, JudgeAnswer, ModelFailure, Outcome, PauseReason, RunId, SessionId,
    SupervisorError, Timestamp, Usage,
};
use provost_harness::{
    Action, DeltaSink, Evidence, GoalSupervisor, Inquiry, Judgement, Model, ModelRequest, SimulatedClock,
};
use provost_llm::{ModelLimits, Provider, ProviderModel, ProviderOptions, WireFormat};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::goals_stage::{JUDGE, Stage, text};

const DEADLINE: Duration = Duration::from_secs(20);
const YES: &str = r#"{"achieved": true, "reasoning": "The tests pass.", "confidence": 0.9}"#;
/// Sun, 06 Nov 1994 08:49:37 GMT
const NOW: Timestamp = Timestamp(784_111_777_000);
const OK: &str = "200 OK\r\ncontent-type: text/event-stream";
const START: &str = r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-test","content":[],"stop_reason":null,"usage":{"input_tokens":20,"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

// ---- the provider -------------------------------------------------------------------------------------------------

/// A provider's reaction to a request.
#[derive(Clone)]
enum Reply {
    /// Answers, and closes the connection.
    Full(String, String),
    /// Begins to answer, and keeps the connection open.
    Held(String, String),
}

fn events(events: &[String]) -> String {
    let line = |event: &String| {
        let kind: Value = serde_json::from_str(event).unwrap();
        format!("event: {}\ndata: {event}\n\n", kind["type"].as_str().unwrap())
    };
    events.iter().map(line).collect()
}

fn block(index: usize, kind: &str, text: &str) -> [String; 3] {
    let text = serde_json::to_string(text).unwrap();
    [
        format!(
            r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"{kind}","{kind}":""}}}}"#
        ),
        format!(
            r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}_delta","{kind}":{text}}}}}"#
        ),
        format!(r#"{{"type":"content_block_stop","index":{index}}}"#),
    ]
}

/// A whole answer of blocks, each with its kind.
fn answer(blocks: &[(&str, &str)], stop: &str) -> Reply {
    let mut all = vec![START.to_owned()];
    all.extend(blocks.iter().enumerate().flat_map(|(index, (kind, text))| block(index, kind, text)));
    all.push(format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{stop}"}},"usage":{{"output_tokens":9}}}}"#
    ));
    all.push(STOP.to_owned());
    Reply::Full(OK.to_owned(), events(&all))
}

fn says(text: &str) -> Reply {
    answer(&[("text", text)], "end_turn")
}

fn refuses(status: &str, kind: &str, message: &str) -> Reply {
    let body = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}"#);
    Reply::Full(status.to_owned(), body)
}

/// What a provider has received so far.
#[derive(Default)]
struct Seen {
    requests: Vec<Value>,
    /// Connections that the client closed while they were held open.
    closed: usize,
}

async fn serve(listener: TcpListener, mut replies: VecDeque<Reply>, seen: watch::Sender<Seen>) {
    let mut held = JoinSet::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        let request = read_request(&mut stream).await;
        seen.send_modify(|seen| seen.requests.push(request));
        let none = || refuses("418 Teapot", "none", "no answer is left");
        let (Reply::Full(head, body) | Reply::Held(head, body)) =
            &replies.front().cloned().unwrap_or_else(none);
        let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n");
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(body.as_bytes()).await;
        match replies.pop_front() {
            Some(Reply::Held(..)) => {
                let seen = seen.clone();
                held.spawn(async move {
                    while stream.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
                    seen.send_modify(|seen| seen.closed += 1);
                });
            }
            Some(Reply::Full(..)) | None => {
                let _ = stream.shutdown().await;
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Value {
    let mut request = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return serde_json::from_str(body).unwrap();
            }
        }
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return Value::Null,
            Ok(read) => request.extend_from_slice(&chunk[..read]),
        }
    }
}

/// A judge behind a provider with these replies.
struct Court {
    supervisor: GoalSupervisor,
    clock: Arc<SimulatedClock>,
    seen: watch::Receiver<Seen>,
    _server: JoinSet<()>,
}

impl Court {
    async fn with(replies: impl Into<VecDeque<Reply>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, seen) = watch::channel(Seen::default());
        let mut server = JoinSet::new();
        server.spawn(serve(listener, replies.into(), sender));
        let clock = Arc::new(SimulatedClock::at(NOW));
        let model = ProviderModel::new(ProviderOptions {
            provider: Provider::new("anthropic", WireFormat::Anthropic, base_url),
            model: "claude-test".to_owned(),
            key: Some("a-key".into()),
            reasoning: None,
            limits: ModelLimits::default(),
            clock: clock.clone(),
        });
        let supervisor = GoalSupervisor::new(Arc::new(model.unwrap()), clock.clone());
        Self { supervisor, clock, seen, _server: server }
    }

    async fn verify(&self) -> Result<provost_event::SupervisorVerdict, SupervisorError> {
        let cancel = CancellationToken::new();
        let verify = self.supervisor.verify("The tests pass.", "It was asked for tests.", actions(), &cancel);
        timeout(DEADLINE, verify).await.expect("it ends")
    }

    async fn ask(&self) -> Judgement {
        ask(&self.supervisor, &CancellationToken::new()).await
    }

    fn calls(&self) -> usize {
        self.seen.borrow().requests.len()
    }

    async fn until(&self, wanted: impl Fn(&Seen) -> bool) {
        let mut seen = self.seen.clone();
        timeout(DEADLINE, seen.wait_for(|seen| wanted(seen))).await.expect("it comes to that").unwrap();
    }
}

async fn ask(supervisor: &GoalSupervisor, cancel: &CancellationToken) -> Judgement {
    let evidence = Evidence::default();
    let session = SessionId::root(RunId::from_entropy(1));
    let condition = "The tests pass.";
    let inquiry = Inquiry { session, turn: 3, asked_before: 2, condition, evidence: &evidence, again: false };
    timeout(DEADLINE, supervisor.ask(&inquiry, cancel)).await.expect("it ends")
}

fn actions() -> Vec<Action> {
    Vec::new()
}

fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, ..Usage::default() }
}

#[track_caller]
fn error(judgement: &Judgement) -> SupervisorError {
    match &judgement.answer {
        JudgeAnswer::Failed(error) => error.clone(),
        JudgeAnswer::Verdict(verdict) => panic!("{verdict:?}"),
    }
}

#[track_caller]
fn class(error: &SupervisorError) -> (ErrorClass, &str) {
    match error {
        SupervisorError::Llm { class, message, .. } => (*class, message),
        other => panic!("{other:?}"),
    }
}

// ---- what it says -------------------------------------------------------------------------------------------------

#[tokio::test]
async fn a_judge_has_no_tools_and_no_memory_and_one_call_is_enough() {
    let court = Court::with([says(YES)]).await;
    let verdict = court.verify().await.unwrap();
    assert!(verdict.achieved);
    assert_eq!(verdict.reasoning, "The tests pass.");
    let seen = court.seen.borrow();
    let [request] = seen.requests.as_slice() else { panic!("{} calls", seen.requests.len()) };
    assert!(request.get("tools").is_none_or(|tools| tools.as_array().unwrap().is_empty()), "{request}");
    assert_eq!(request["messages"].as_array().unwrap().len(), 1);
    assert_eq!(request["max_tokens"], 2_048);
    assert!(request["system"].to_string().contains("judge"), "{request}");
    assert!(request["messages"].to_string().contains("It was asked for tests."), "{request}");
}

#[tokio::test]
async fn what_a_question_took_and_who_answered_is_told() {
    let court = Court::with([says(YES)]).await;
    let judgement = court.ask().await;
    assert!(matches!(judgement.answer, JudgeAnswer::Verdict(_)));
    assert_eq!((judgement.usage, judgement.model.as_str()), (usage(20, 9), "claude-test"));
}

#[tokio::test]
async fn what_a_judge_thinks_is_not_what_it_says() {
    let court = Court::with([
        answer(&[("thinking", YES), ("text", &YES.replace("true", "false"))], "end_turn"),
        answer(&[("text", &YES[..20]), ("text", &YES[20..])], "end_turn"),
        answer(&[("thinking", YES)], "end_turn"),
        answer(&[("thinking", YES), ("text", "Yes.")], "end_turn"),
    ])
    .await;
    let JudgeAnswer::Verdict(verdict) = court.ask().await.answer else { panic!("it has said something") };
    assert!(!verdict.achieved);
    assert!(matches!(court.ask().await.answer, JudgeAnswer::Verdict(verdict) if verdict.achieved));
    assert_eq!(error(&court.ask().await), SupervisorError::Parse(String::new()));
    assert_eq!(error(&court.ask().await), SupervisorError::Parse("Yes.".to_owned()));
}

#[tokio::test]
async fn an_answer_that_is_no_verdict_is_asked_for_once_more_and_no_further() {
    let court = Court::with([says("It is done."), says(YES)]).await;
    assert!(court.verify().await.unwrap().achieved);
    assert_eq!(court.calls(), 2);
    let [first, second] = &court.seen.borrow().requests[..] else { panic!("two calls") };
    assert_ne!(first["messages"], second["messages"], "it is told once more what a verdict looks like");
    assert_eq!(first["system"], second["system"]);

    let court = Court::with([says("It is done."), says("I said that it is done."), says(YES)]).await;
    assert_eq!(court.verify().await, Err(SupervisorError::Parse("I said that it is done.".to_owned())));
    assert_eq!(court.calls(), 2);
}

#[tokio::test]
async fn nothing_said_is_no_verdict() {
    let court =
        Court::with([answer(&[], "end_turn"), answer(&[("text", " \n")], "end_turn"), says(YES)]).await;
    assert_eq!(court.verify().await, Err(SupervisorError::Parse(String::new())));
    assert_eq!(court.calls(), 2);
}

#[tokio::test]
async fn an_answer_cut_off_at_the_cap_is_no_verdict_even_if_one_stands_in_it() {
    let court =
        Court::with([answer(&[("text", &YES[..40])], "max_tokens"), answer(&[("text", YES)], "max_tokens")])
            .await;
    let judgement = court.ask().await;
    assert_eq!(error(&judgement), SupervisorError::Parse(YES[..40].to_owned()));
    assert_eq!((judgement.usage, judgement.model.as_str()), (usage(20, 9), "claude-test"));
    assert_eq!(error(&court.ask().await), SupervisorError::Parse(YES.to_owned()));
}

#[tokio::test]
async fn a_judge_that_refuses_has_given_no_verdict_whatever_it_said_before() {
    let court = Court::with([answer(&[("text", YES)], "refusal"), says(YES)]).await;
    let refused = court.verify().await.unwrap_err();
    assert_eq!(class(&refused), (ErrorClass::Refusal, YES));
    assert_eq!(court.calls(), 1);
}

// ---- how it fails -------------------------------------------------------------------------------------------------

#[tokio::test]
async fn a_429_says_for_how_long_and_is_not_asked_again() {
    for (header, retry_after_ms) in [
        ("", None),
        ("\r\nretry-after: 17", Some(17_000)),
        ("\r\nretry-after: 0", Some(0)),
        ("\r\nretry-after: Sun, 06 Nov 1994 08:50:07 GMT", Some(30_000)),
        ("\r\nretry-after: soon", None),
    ] {
        let head = format!("429 Too Many Requests{header}");
        // Regardless of the text.
        let court = Court::with([refuses(&head, "api_error", "this is fine"), says(YES)]).await;
        assert_eq!(court.verify().await, Err(SupervisorError::RateLimited { retry_after_ms }), "{header}");
        assert_eq!(court.calls(), 1);
    }
}

#[tokio::test]
async fn a_rate_limit_that_is_only_talked_of_is_none() {
    let court = Court::with([refuses("400 Bad Request", "rate_limit_error", "rate limited (429)")]).await;
    assert_eq!(class(&court.verify().await.unwrap_err()), (ErrorClass::RateLimited, "rate limited (429)"));

    let words = "429: rate limited, retry after 5 s";
    let court = Court::with([says(words), says(words)]).await;
    assert_eq!(court.verify().await, Err(SupervisorError::Parse(words.to_owned())));
}

#[tokio::test]
async fn a_call_that_fails_says_how_and_is_not_asked_again() {
    let cut = match says(YES) {
        Reply::Full(head, body) => Reply::Full(head, body[..body.len() / 2].to_owned()),
        held @ Reply::Held(..) => held,
    };
    let nonsense = Reply::Full(OK.to_owned(), "event: message_start\ndata: {nonsense\n\n".to_owned());
    for (reply, expected) in [
        (refuses("500 Internal Server Error", "api_error", "oops"), ErrorClass::Server),
        (refuses("529 Overloaded", "overloaded_error", "full"), ErrorClass::Overloaded),
        (refuses("401 Unauthorized", "authentication_error", "invalid x-api-key"), ErrorClass::Unauthorized),
        (refuses("400 Bad Request", "invalid_request_error", "no such thing"), ErrorClass::InvalidRequest),
        (Reply::Full("200 OK".to_owned(), YES.to_owned()), ErrorClass::MalformedResponse),
        (nonsense, ErrorClass::MalformedResponse),
        (cut, ErrorClass::Cut),
    ] {
        let court = Court::with([reply, says(YES)]).await;
        assert_eq!(class(&court.verify().await.unwrap_err()).0, expected);
        assert_eq!(court.calls(), 1, "{expected:?}");
    }
}

#[tokio::test]
async fn what_a_cut_answer_took_is_told() {
    let Reply::Full(head, body) = says(YES) else { panic!("it is whole") };
    let middle = body.find("content_block_delta").unwrap() + 30;
    let court = Court::with([Reply::Full(head, body[..middle].to_owned())]).await;
    let judgement = court.ask().await;
    assert_eq!(class(&error(&judgement)).0, ErrorClass::Cut);
    // There was no final report.
    assert_eq!(judgement.usage, Usage { certainty: Certainty::Estimated, ..usage(20, 1) });
}

#[tokio::test]
async fn evidence_that_is_too_long_says_what_helps() {
    let too_long = "prompt is too long: 210000 tokens > 200000 maximum";
    let court = Court::with([refuses("400 Bad Request", "invalid_request_error", too_long)]).await;
    let error = court.verify().await.unwrap_err();
    let (class, message) = class(&error);
    assert_eq!(class, ErrorClass::ContextTooLong);
    assert!(message.starts_with("show the judge less evidence") && message.contains(too_long), "{message}");
}

#[tokio::test]
async fn what_a_provider_says_of_a_failure_is_kept_in_short() {
    let court = Court::with([refuses("500 Internal Server Error", "api_error", &"é".repeat(10_000))]).await;
    let error = court.verify().await.unwrap_err();
    let length = class(&error).1.chars().count();
    assert!((100..=501).contains(&length), "{length}");
}

// ---- when it takes too long ---------------------------------------------------------------------------------------

fn hanging() -> Reply {
    let mut begun = vec![START.to_owned()];
    begun.extend(block(0, "text", YES));
    Reply::Held(OK.to_owned(), events(&begun))
}

/// Waits for the request, and then until this time has passed.
async fn time_passes(court: &Court, ms: u64) {
    court.until(|seen| !seen.requests.is_empty()).await;
    court.clock.advance_ms(ms);
}

#[tokio::test]
async fn a_judge_that_takes_too_long_is_let_go_and_its_connection_is_closed() {
    let court = Court::with([hanging()]).await;
    let cancel = CancellationToken::new();
    let supervisor = court.supervisor.clone().with_timeout(Duration::from_millis(7_500));
    let (judgement, ()) = tokio::join!(ask(&supervisor, &cancel), time_passes(&court, 7_500));
    assert_eq!(error(&judgement), SupervisorError::Timeout(7_500));
    court.until(|seen| seen.closed == 1).await;
}

#[tokio::test]
async fn a_judge_has_all_of_its_time() {
    let (supervisor, clock) = answering(Answers::AtHalfPastNever);
    let cancel = CancellationToken::new();
    let mut asked = std::pin::pin!(ask(&supervisor, &cancel));
    assert!(futures::poll!(&mut asked).is_pending());
    clock.advance_ms(59_999);
    assert!(futures::poll!(&mut asked).is_pending());
    clock.advance_ms(1);
    // It ignores its cancellation, so it is waited for, but not forever.
    assert!(futures::poll!(&mut asked).is_pending());
    clock.advance_ms(1_999);
    assert!(futures::poll!(&mut asked).is_pending());
    clock.advance_ms(1);
    let judgement = asked.await;
    assert_eq!(error(&judgement), SupervisorError::Timeout(60_000));
    assert_eq!(judgement.usage, Usage::unconfirmed());
}

#[tokio::test]
async fn an_answer_that_comes_after_its_time_counts_for_what_it_took_alone() {
    for (answers, used) in [(Answers::WhenStopped, usage(50, 5)), (Answers::FailsWhenStopped, usage(50, 0))] {
        let (supervisor, clock) = answering(answers);
        let cancel = CancellationToken::new();
        let mut asked = std::pin::pin!(ask(&supervisor, &cancel));
        assert!(futures::poll!(&mut asked).is_pending());
        clock.advance_ms(60_000);
        let judgement = asked.await;
        assert_eq!(error(&judgement), SupervisorError::Timeout(60_000));
        assert_eq!(judgement.usage, used);
    }
}

#[tokio::test]
async fn a_judge_that_was_told_to_stop_and_answers_all_the_same_is_heard() {
    let stopped = async |answers| {
        let (supervisor, clock) = answering(answers);
        let cancel = CancellationToken::new();
        let mut asked = std::pin::pin!(ask(&supervisor, &cancel));
        assert!(futures::poll!(&mut asked).is_pending());
        cancel.cancel();
        let polled = futures::poll!(&mut asked);
        clock.advance_ms(2_000);
        match polled {
            std::task::Poll::Ready(judgement) => judgement,
            std::task::Poll::Pending => asked.await,
        }
    };
    let judgement = stopped(Answers::WhenStopped).await;
    assert!(matches!(judgement.answer, JudgeAnswer::Verdict(verdict) if verdict.achieved));
    assert_eq!(judgement.usage, usage(50, 5));
    let judgement = stopped(Answers::FailsWhenStopped).await;
    assert_eq!(class(&error(&judgement)).0, ErrorClass::Aborted);
    assert_eq!(judgement.usage, usage(50, 0));
    let judgement = stopped(Answers::AtHalfPastNever).await;
    assert_eq!(class(&error(&judgement)).0, ErrorClass::Aborted);
    assert_eq!(judgement.usage, Usage::unconfirmed());
}

#[tokio::test]
async fn what_a_panicking_judge_took_is_estimated() {
    let judgement = ask(&answering(Answers::Panics).0, &CancellationToken::new()).await;
    assert_eq!(class(&error(&judgement)).0, ErrorClass::MalformedResponse);
    assert_eq!(judgement.usage.certainty, Certainty::Estimated);
    assert!(judgement.usage.input_tokens > 100, "{:?}", judgement.usage);
}

#[tokio::test]
async fn a_judge_that_is_told_to_stop_stops_at_once() {
    let court = Court::with([hanging(), says(YES)]).await;
    let cancel = CancellationToken::new();
    let stop = async {
        court.until(|seen| !seen.requests.is_empty()).await;
        cancel.cancel();
    };
    let verify = court.supervisor.verify("The tests pass.", "", actions(), &cancel);
    let (verdict, ()) = timeout(DEADLINE, async { tokio::join!(verify, stop) }).await.expect("it stops");
    assert_eq!(class(&verdict.unwrap_err()).0, ErrorClass::Aborted);
    court.until(|seen| seen.closed == 1).await;
    assert_eq!(court.calls(), 1);
}

#[tokio::test]
async fn no_judge_is_asked_after_a_stop() {
    // This one would answer yes at once.
    let (supervisor, _) = answering(Answers::WhenStopped);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let judgement = ask(&supervisor, &cancel).await;
    assert_eq!(class(&error(&judgement)).0, ErrorClass::Aborted);
    assert_eq!(judgement.usage, Usage::default());
}

#[tokio::test]
async fn a_question_that_is_no_longer_needed_is_closed() {
    let court = Court::with([hanging()]).await;
    let cancel = CancellationToken::new();
    tokio::select! {
        _ = ask(&court.supervisor, &cancel) => panic!("it hangs"),
        () = court.until(|seen| !seen.requests.is_empty()) => {}
    }
    court.until(|seen| seen.closed == 1).await;
}

/// A model of an embedding program that breaks the rules of cancellation.
#[derive(Clone, Copy)]
enum Answers {
    /// Never, cancelled or not.
    AtHalfPastNever,
    /// With a verdict, once it is cancelled.
    WhenStopped,
    /// With its usage, once it is cancelled.
    FailsWhenStopped,
    Panics,
}

#[async_trait]
impl Model for Answers {
    async fn answer(
        &self,
        _: ModelRequest<'_>,
        _: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        match self {
            Self::AtHalfPastNever => futures::future::pending().await,
            Self::WhenStopped => {
                cancel.cancelled().await;
                let content = vec![provost_event::Block::Text(YES.to_owned())];
                let (model, stop) = ("late".to_owned(), provost_event::StopReason::EndTurn);
                Ok(Answer { cost: None, content, usage: usage(50, 5), model, stop })
            }
            Self::FailsWhenStopped => {
                cancel.cancelled().await;
                let failure = ModelFailure::new(ErrorClass::Transport, "stopped");
                Err(ModelFailure { usage: usage(50, 0), ..failure })
            }
            Self::Panics => panic!("no judge today"),
        }
    }
}

fn answering(answers: Answers) -> (GoalSupervisor, Arc<SimulatedClock>) {
    let clock = Arc::new(SimulatedClock::at(NOW));
    (GoalSupervisor::new(Arc::new(answers), clock.clone()), clock)
}

// ---- in a run -----------------------------------------------------------------------------------------------------

#[tokio::test]
async fn a_run_whose_judge_panics_or_isn_t_there_rests_and_says_so() {
    for (stage, words) in [
        (Stage::new().model(JUDGE, Arc::new(Answers::Panics)), "the model's adapter panicked"),
        (Stage::new(), "no model `judge` is configured here"),
    ] {
        let stage = stage.agent([text("Done.")]);
        let mut run = stage.start(|policy| policy.agent.goal.as_mut().unwrap().failures_max = 1).await;
        let outcome = run.goes().await;
        let Outcome::Paused { why: PauseReason::JudgeUnreachable { times: 1, error } } = &outcome else {
            panic!("{outcome:?}")
        };
        assert!(error.contains(words), "{error}");
    }
}
