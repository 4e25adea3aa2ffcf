//! Events as a stream.

use provost::ObserverEventKind;
use provost::event::{Entry, LifecycleEntry, Seq};
use provost::prelude::*;

use crate::script;

#[tokio::test]
async fn events_come_in_order_and_the_end_comes_last() {
    let agent =
        Agent::builder(script("answers: [{ text: 'Hello. VERDICT: PASS' }]")).build().expect("an agent");
    let items = agent.stream("Say hello.").map(|item| item.expect("it runs")).collect::<Vec<_>>().await;
    let kinds = items.iter().filter_map(|item| match item {
        StreamItem::Event(event) => Some(event.kind),
        _ => None,
    });
    let kinds = kinds.collect::<Vec<_>>();
    assert_eq!(kinds.first(), Some(&ObserverEventKind::RunStart));
    assert_eq!(kinds.last(), Some(&ObserverEventKind::RunEnd));
    let place = |kind| kinds.iter().position(|one| *one == kind);
    let calls =
        [ObserverEventKind::LlmStart, ObserverEventKind::LlmDelta, ObserverEventKind::LlmEnd].map(place);
    assert!(calls.iter().all(Option::is_some) && calls.is_sorted(), "{kinds:?}");
    let Some(StreamItem::Finished(finished)) = items.last() else { panic!("the end is missing: {items:?}") };
    assert!(finished.is_completed() && finished.text.starts_with("Hello"));
}

#[tokio::test]
async fn a_stream_that_is_dropped_pauses_its_run() {
    let model = script(
        "
answers:
  - { tools: [{ wait: {} }] }
  - text: 'VERDICT: PASS'
",
    );
    /// Waits.
    #[derive(Deserialize, JsonSchema)]
    struct Wait {}
    let wait = tool(|_: Wait| std::future::pending::<&str>());
    let agent = Agent::builder(model).tool(wait).build().expect("an agent");
    let mut events = agent.stream("Wait.");
    let started = async {
        loop {
            match events.next().await {
                Some(Ok(StreamItem::Event(event))) if event.kind == ObserverEventKind::ToolStart => {
                    return event;
                }
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    let started = started.await;
    drop(events);
    let run = started.chain.chain;
    let mut records = agent.backend().subscribe(run.into(), Seq::START);
    while let Some(record) = records.next().await {
        if let Entry::Lifecycle(LifecycleEntry::Paused(paused)) = &record.expect("the log can be read").entry
        {
            assert!(matches!(paused.outcome, Outcome::Paused { .. }), "{}", paused.outcome);
            return;
        }
    }
}

#[tokio::test]
async fn an_error_at_the_start_is_the_only_item() {
    let model = ModelChoice::own("own", script("answers: [{ text: ok }]"));
    let agent = Agent::builder(model).budget(Budget::default().dollars(1.0)).build().expect("an agent");
    let items = agent.stream("Say ok.").collect::<Vec<_>>().await;
    assert!(matches!(items.as_slice(), [Err(_)]), "{items:?}");
}
