//! What a run looks like to a collector.

use std::collections::HashSet;
use std::sync::Arc;

use expect_test::{expect, expect_file};
use provost_event::*;
use provost_telemetry::{Telemetry, TelemetryHealth, TelemetryOptions};

use crate::collector::{Collector, Manner};
use crate::log::{Log, begin, called, charged, completed, observe, root, tool_started, whole_run, work};
use crate::shown::{attribute, metrics, tree};

fn telemetry(collector: &Collector) -> Arc<Telemetry> {
    Arc::new(Telemetry::new(TelemetryOptions::new(collector.endpoint())).expect("telemetry"))
}

/// What a collector sees of `records`, in one trace.
fn traced(records: Vec<Record>) -> Collector {
    let collector = Collector::start(Manner::Good);
    let telemetry = telemetry(&collector);
    observe(&telemetry, records);
    assert_eq!(telemetry.health(), TelemetryHealth::default());
    collector
}

#[test]
fn a_run_is_a_tree_of_spans_with_the_logs_times() {
    let collector = traced(whole_run());
    expect_file!["whole_run.txt"].assert_eq(&tree(&collector.spans()));
}

#[test]
fn a_run_is_measured() {
    let collector = traced(whole_run());
    expect![[r#"
        gen_ai.client.operation.duration [s] {error.type=rate_limited gen_ai.operation.name=chat gen_ai.provider.name=anthropic gen_ai.request.model=roofer-1} 1 0.49
        gen_ai.client.operation.duration [s] {gen_ai.operation.name=chat gen_ai.provider.name=anthropic gen_ai.request.model=roofer-1 gen_ai.response.model=roofer-1-20260101} 2 1.8
        gen_ai.client.token.usage [{token}] {gen_ai.operation.name=chat gen_ai.provider.name=anthropic gen_ai.request.model=roofer-1 gen_ai.response.model=roofer-1-20260101 gen_ai.token.type=input} 2 270
        gen_ai.client.token.usage [{token}] {gen_ai.operation.name=chat gen_ai.provider.name=anthropic gen_ai.request.model=roofer-1 gen_ai.response.model=roofer-1-20260101 gen_ai.token.type=output} 2 40
        gen_ai.client.token.usage [{token}] {gen_ai.operation.name=chat gen_ai.provider.name=anthropic gen_ai.request.model=roofer-1 gen_ai.token.type=input} 1 7
        provost.approvals [{approval}] {provost.approval.state=allowed} 1
        provost.approvals [{approval}] {provost.approval.state=requested} 1
        provost.cost [{USD}] {gen_ai.operation.name=chat gen_ai.provider.name=anthropic gen_ai.request.model=roofer-1 gen_ai.response.model=roofer-1-20260101} 0.005
        provost.cost [{USD}] {gen_ai.operation.name=chat gen_ai.provider.name=anthropic gen_ai.request.model=roofer-1} 0.000011
        provost.guardrail.trips [{trip}] {provost.guardrail.source=permission} 1
        provost.guardrail.trips [{trip}] {provost.guardrail.source=stop_hook} 1
        provost.tool.duration [s] {error.type=timed_out gen_ai.tool.name=shell} 1 0.99"#]].assert_eq(&metrics(&collector.metrics()));
}

#[test]
fn who_sends_is_told_once_and_each_signal_has_its_path() {
    let collector = traced(whole_run());
    let got = collector.got();
    let mut paths = got.iter().map(|one| one.path.as_str()).collect::<Vec<_>>();
    paths.sort_unstable();
    assert_eq!(paths, ["/v1/metrics", "/v1/traces"]);
    for one in &got {
        let kind = one.headers.iter().find(|(name, _)| name == "content-type").map(|(_, kind)| kind.as_str());
        assert_eq!(kind, Some("application/x-protobuf"));
        let body = String::from_utf8_lossy(&one.body);
        for word in ["service.name", "provost", "service.instance.id", "telemetry.sdk.language"] {
            assert!(body.contains(word), "{word}");
        }
    }
}

#[test]
fn a_run_that_goes_on_joins_its_trace_below_its_first_span() {
    let mut log = Log::default();
    begin(&mut log);
    work(&mut log);
    let paused = Outcome::Paused { why: PauseReason::Asked { by: "somebody".to_owned() } };
    log.root(6_000, Paused { outcome: paused.clone() }).run(6_001, Paused { outcome: paused });
    let collector = Collector::start(Manner::Good);
    observe(&telemetry(&collector), log.take());
    let cause = ResumeCause::Asked { by: "somebody".to_owned() };
    let resumed = Resumed { cause, budget: Budget::default(), turns_max: None };
    let usage = Usage { input_tokens: 10, output_tokens: 2, ..Usage::default() };
    let answer = crate::log::answer(4, StopReason::EndTurn, vec![Block::Text("done".to_owned())], usage);
    log.run(9_000, resumed.clone())
        .root(9_000, resumed)
        .root(9_010, called(4, 1))
        .root(9_500, answer)
        .run(9_500, charged(4, usage, 5))
        .root(9_600, completed())
        .run(9_601, completed());
    // Another process.
    observe(&telemetry(&collector), log.take());
    let spans = collector.spans();
    let traces = spans.iter().map(|span| span.trace_id.clone()).collect::<HashSet<_>>();
    let ids = spans.iter().map(|span| span.span_id.clone()).collect::<HashSet<_>>();
    assert_eq!((traces.len(), ids.len()), (1, spans.len()));
    let later =
        spans.into_iter().filter(|span| span.start_time_unix_nano >= 9_000_000_000).collect::<Vec<_>>();
    let first = later.iter().find(|span| span.name == "provost.run").expect("the second stretch");
    assert!(ids.contains(&first.parent_span_id));
    expect![[r#"
        provost.run 9000-9601
          . gen_ai.usage.input_tokens=10
          . gen_ai.usage.output_tokens=2
          . provost.cost_usd=0.000005
          . provost.outcome=completed
          . provost.run.id=k3x9m2p7q4ab
          invoke_agent root 9010-9600
            . gen_ai.agent.id=k3x9m2p7q4ab.0
            . gen_ai.agent.name=root
            . gen_ai.conversation.id=k3x9m2p7q4ab.0
            . gen_ai.operation.name=invoke_agent
            . gen_ai.provider.name=anthropic
            . gen_ai.request.model=roofer-1
            . gen_ai.usage.input_tokens=10
            . gen_ai.usage.output_tokens=2
            . provost.cost_usd=0.0025
            . provost.outcome=completed
            chat roofer-1 9010-9500 client
              . gen_ai.agent.id=k3x9m2p7q4ab.0
              . gen_ai.agent.name=root
              . gen_ai.conversation.id=k3x9m2p7q4ab.0
              . gen_ai.operation.name=chat
              . gen_ai.provider.name=anthropic
              . gen_ai.request.max_tokens=1000
              . gen_ai.request.model=roofer-1
              . gen_ai.response.finish_reasons=[stop]
              . gen_ai.response.model=roofer-1-20260101
              . gen_ai.usage.input_tokens=10
              . gen_ai.usage.output_tokens=2
              . provost.attempt=1
              . provost.cost_usd=0.000005
              . provost.turn=1
    "#]]
    .assert_eq(&tree(&later));
}

#[test]
fn what_was_cut_off_is_told_as_unfinished() {
    let mut log = Log::default();
    begin(&mut log);
    log.root(1_010, called(1, 1)).root(1_020, tool_started("c1", "shell"));
    let collector = traced(log.take());
    let spans = collector.spans();
    assert_eq!(spans.len(), 4);
    for span in spans {
        assert_eq!(attribute(&span, "provost.unfinished").as_deref(), Some("true"), "{}", span.name);
        assert_eq!(span.end_time_unix_nano, 1_020_000_000, "{}", span.name);
    }
}

#[test]
fn a_call_that_ends_the_run_is_a_failed_span_with_its_bill() {
    let mut log = Log::default();
    begin(&mut log);
    let outcome = Outcome::Failed { class: ErrorClass::Unauthorized, message: "whose roof?".to_owned() };
    let usage = Usage { input_tokens: 3, ..Usage::default() };
    log.root(1_010, called(1, 1))
        .root(1_200, Ended { outcome: outcome.clone() })
        .run(1_200, charged(1, usage, 1))
        .run(1_200, Ended { outcome });
    let spans = traced(log.take()).spans();
    let chat = spans.iter().find(|span| span.name == "chat roofer-1").expect("the call");
    assert_eq!(attribute(chat, "error.type").as_deref(), Some("unauthorized"));
    assert_eq!(attribute(chat, "gen_ai.usage.input_tokens").as_deref(), Some("3"));
    assert_eq!(attribute(chat, "provost.cost_usd").as_deref(), Some("0.000001"));
    let failed =
        spans.iter().filter(|span| span.status.as_ref().is_some_and(|status| status.code == 2)).count();
    assert_eq!(failed, 3);
}

#[test]
fn an_agent_is_below_the_one_that_asked_for_it() {
    let mut log = Log::default();
    begin(&mut log);
    let policy = crate::log::policy().agent;
    let started = SessionStarted {
        goal: "hold the ladder".to_owned(),
        images: Vec::new(),
        policy,
        depth: 0,
        parent: Some(root()),
    };
    log.agent(1, 1_100, started)
        .agent(1, 1_200, completed())
        .root(1_300, completed())
        .run(1_300, completed());
    let names = tree(&traced(log.take()).spans());
    let lines = names.lines().filter(|line| !line.trim_start().starts_with('.')).collect::<Vec<_>>();
    assert_eq!(
        lines,
        ["provost.run 1000-1300", "  invoke_agent root 1001-1300", "    invoke_agent agent-1 1100-1200"]
    );
}
