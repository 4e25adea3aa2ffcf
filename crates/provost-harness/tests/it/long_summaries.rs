//! Summaries that fail, are empty, or free nothing, and providers that reject a request as too long.

use provost_engine::Answer;
use provost_event::{
    Block, CallId, Certainty, CompactionKind, Entry, ErrorClass, Json, ModelEntry, ModelFailure, Outcome,
    PauseReason, Purpose, RetryCause, StopReason, ToolCall, Usage,
};

use super::long_job::Job;
use super::long_provider::{Counting, Interference, MODEL};
use super::long_trial::{Ran, Trial};

const WINDOW: u64 = 14_000;
/// The usage of a call without an answer.
const USAGE: Usage = Usage {
    input_tokens: 700,
    output_tokens: 7,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    reasoning_tokens: 0,
    certainty: Certainty::Reported,
};

/// A job whose conversation is mostly the model's answers, so that only a summary frees tokens.
fn trial() -> Trial {
    Trial {
        bound: |policy| policy.agent.tools.iter_mut().for_each(|tool| tool.output_bytes_max = 200),
        ..Trial::new(Job::of(48).talking(500), Counting::fair(WINDOW))
    }
}

/// The job with this answer to every summary request.
async fn ran_with(says: impl Fn() -> Result<Answer, ModelFailure> + Send + Sync + 'static) -> Ran {
    let interference: Interference =
        Box::new(move |_, request| (request.purpose == Purpose::Summary).then(&says));
    Trial { interference: Some(interference), ..trial() }.run().await
}

fn answer(content: Vec<Block>, stop: StopReason) -> Result<Answer, ModelFailure> {
    Ok(Answer { cost: None, content, usage: USAGE, model: MODEL.to_owned(), stop })
}

fn text(text: &str) -> Vec<Block> {
    vec![Block::Text(text.to_owned())]
}

#[tokio::test]
async fn a_good_summary_stands_for_what_it_sums_up() {
    let ran = trial().run().await;
    ran.went_well();
    assert!(ran.compactions(CompactionKind::Summary) >= 2, "{}", ran.seen.figures());
    assert_eq!(ran.compactions(CompactionKind::Emergency), 0);
    assert_eq!(ran.useless(), [""; 0]);
}

/// The compaction by rule has replaced the summary.
#[track_caller]
fn went_on_by_rule(ran: &Ran, what: &str) {
    println!("{what}: {:?}", ran.useless());
    ran.went_well();
    assert_eq!(ran.compactions(CompactionKind::Summary), 0, "{what}");
    assert!(ran.compactions(CompactionKind::Emergency) >= 1, "{what}");
    assert_eq!(ran.seen.refused, 0, "{what}");
}

/// The job with this failure of every summary request.
async fn failed_with(class: ErrorClass) {
    let ran = ran_with(move || {
        let failure = ModelFailure::new(class, "no summary today");
        Err(ModelFailure { retry_after_ms: Some(1), usage: USAGE, ..failure })
    });
    went_on_by_rule(&ran.await, class.words());
}

#[tokio::test]
async fn a_summary_call_that_is_turned_down_is_done_without() {
    for class in
        [ErrorClass::InvalidRequest, ErrorClass::ContextTooLong, ErrorClass::Refusal, ErrorClass::Aborted]
    {
        failed_with(class).await;
    }
}

#[tokio::test]
async fn a_summary_that_is_none_is_done_without() {
    let call = Block::ToolCall(ToolCall {
        id: CallId("s1".into()),
        name: "look".to_owned(),
        input: Json::empty_object(),
        malformed: None,
    });
    let cases = [
        ("empty", Vec::new(), StopReason::EndTurn),
        ("blank", text(" \n "), StopReason::EndTurn),
        ("a tool call", vec![call.clone()], StopReason::ToolUse),
        ("words and a tool call", [text("So far: "), vec![call]].concat(), StopReason::ToolUse),
        ("cut off", text("So far: all of the"), StopReason::OutputCap),
        ("declined", text("I won't."), StopReason::Refusal),
        ("as long as all of it", text(&"word after word ".repeat(6_000)), StopReason::EndTurn),
    ];
    for (what, content, stop) in cases {
        let ran = ran_with(move || answer(content.clone(), stop)).await;
        went_on_by_rule(&ran, what);
        assert!(!ran.useless().is_empty(), "{what}");
    }
}

#[tokio::test]
async fn a_summary_that_fails_now_and_then_is_asked_for_again_later() {
    let failing = std::sync::atomic::AtomicU32::new(0);
    let ran = ran_with_some(move || {
        let nth = failing.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        (nth == 0).then(|| answer(Vec::new(), StopReason::EndTurn))
    });
    let ran = ran.await;
    ran.went_well();
    assert_eq!(ran.useless().len(), 1);
    assert!(ran.compactions(CompactionKind::Summary) >= 1 && ran.compactions(CompactionKind::Emergency) >= 1);
}

async fn ran_with_some(
    says: impl Fn() -> Option<Result<Answer, ModelFailure>> + Send + Sync + 'static,
) -> Ran {
    let interference: Interference =
        Box::new(move |_, request| if request.purpose == Purpose::Summary { says() } else { None });
    Trial { interference: Some(interference), ..trial() }.run().await
}

/// The job with the first requests for its answer 10 rejected as too long.
async fn refused_as_too_long(times: u32) -> Ran {
    let left = std::sync::atomic::AtomicU32::new(times);
    let interference: Interference = Box::new(move |_, request| {
        let is_it = request.purpose == Purpose::Turn && request.answers_before == 10;
        let refuses = is_it
            && left
                .try_update(
                    std::sync::atomic::Ordering::Relaxed,
                    std::sync::atomic::Ordering::Relaxed,
                    |left| left.checked_sub(1),
                )
                .is_ok();
        refuses.then(|| {
            Err(ModelFailure { usage: USAGE, ..ModelFailure::new(ErrorClass::ContextTooLong, "too long") })
        })
    });
    Trial { interference: Some(interference), ..trial() }.run().await
}

#[tokio::test]
async fn a_request_that_is_refused_as_too_long_is_made_once_more_shortened() {
    let ran = refused_as_too_long(1).await;
    ran.went_well();
    let overflows = ran
        .entries()
        .filter(|entry| matches!(entry, Entry::Model(ModelEntry::Retried(retry)) if retry.cause == RetryCause::Compacted));
    assert_eq!(overflows.count(), 1);
    assert_eq!(ran.compactions(CompactionKind::Emergency), 1);
    let asked = ran.seen.asked.iter().filter(|asked| **asked == (Purpose::Turn, 10)).count();
    assert_eq!(asked, 2);
}

#[tokio::test]
async fn a_request_that_is_refused_as_too_long_twice_suspends() {
    let ran = refused_as_too_long(2).await;
    ran.kept_the_laws();
    let Outcome::Paused { why: PauseReason::Model(trouble) } = &ran.outcome else {
        panic!("{:?}", ran.outcome)
    };
    assert_eq!(trouble.class, ErrorClass::ContextTooLong);
    let asked = ran.seen.asked.iter().filter(|asked| **asked == (Purpose::Turn, 10)).count();
    assert_eq!(asked, 2);
}
