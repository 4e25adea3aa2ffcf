//! Content and secrets.

use std::sync::Arc;

use expect_test::expect;
use provost_event::*;
use provost_telemetry::{Content, Telemetry, TelemetryOptions};

use crate::collector::{Collector, Manner};
use crate::log::{
    Log, answer, aside, begin, called, charged, completed, long_run, observe, tool_finished, tool_started,
    whole_run,
};
use crate::shown::tree;

/// Everything that was sent to a collector for `records`, as text.
fn sent(records: Vec<Record>, change: impl FnOnce(&mut TelemetryOptions)) -> (Collector, String) {
    let collector = Collector::start(Manner::Good);
    let mut options = TelemetryOptions::new(collector.endpoint());
    change(&mut options);
    let telemetry = Arc::new(Telemetry::new(options).expect("telemetry"));
    observe(&telemetry, records);
    let bodies = collector.got().into_iter().map(|one| String::from_utf8_lossy(&one.body).into_owned());
    let bodies = bodies.collect();
    (collector, bodies)
}

#[test]
fn nothing_that_was_said_is_sent_unless_asked_for() {
    let (_, sent) = sent(whole_run(), |_| {});
    assert!(sent.contains("roofer-1"));
    let words = [
        "mend",
        "You are",
        "nail",
        "slippery",
        "slow down",
        "not to be written",
        "is high",
        "alice",
        "drips",
        "too hot",
        "mended",
        "roofs and tiles",
    ];
    for word in words {
        assert!(!sent.contains(word), "{word}");
    }
}

#[test]
fn summaries_and_final_summary_are_sent_where_asked_for_and_only_there() {
    let call = Some(aside(4, "roofer-1"));
    let said =
        || FinalSummaryFinished { text: "half is mended".to_owned(), call: call.clone(), problem: None };
    let (_, closed) = sent(long_run(said()), |_| {});
    for word in ["roofs and tiles", "cellars", "half is mended", "slippery"] {
        assert!(!closed.contains(word), "{word}");
    }
    let (collector, _) = sent(long_run(said()), |options| options.content = Content::On);
    let shown = tree(&collector.spans());
    let lines = shown.lines().filter(|line| line.contains("messages=") || line.contains("compaction"));
    expect![[r#"
        ! 2500 provost.compaction provost.compaction.kind=summary provost.compaction.summary=roofs and tiles provost.compaction.tokens_after=300 provost.compaction.tokens_before=900
        ! 3501 provost.compaction provost.compaction.kind=emergency provost.compaction.summary=roofs and tiles provost.compaction.tokens_after=300 provost.compaction.tokens_before=900
        . gen_ai.input.messages=[{"role":"user","parts":[{"type":"text","content":"mend the roof"}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"tiles are slippery"}]}]
        . gen_ai.input.messages=[{"role":"user","parts":[{"type":"text","content":"mend the roof"}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"tiles are slippery"}]}]
        . gen_ai.input.messages=[{"role":"user","parts":[{"type":"text","content":"mend the roof"}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"tiles are slippery"}]}]
        . gen_ai.output.messages=[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"shell","arguments":{"command":"nail the tiles"}}],"finish_reason":"tool_calls"}]
        . gen_ai.output.messages=[{"role":"assistant","parts":[{"type":"text","content":"half is mended"}]}]
    "#]].assert_eq(&lines.map(|line| format!("{}\n", line.trim_start())).collect::<String>());
    let problem = Some("no connection".to_owned());
    let failed = FinalSummaryFinished { text: String::new(), call, problem };
    let (_, open) = sent(long_run(failed.clone()), |options| options.content = Content::On);
    let (_, closed) = sent(long_run(failed), |_| {});
    assert!(open.contains("no connection") && !closed.contains("no connection"));
}

#[test]
fn what_was_said_is_sent_where_asked_for() {
    let (collector, _) = sent(whole_run(), |options| options.content = Content::On);
    let shown = tree(&collector.spans());
    let said = ["messages=", "arguments=", "result=", "instructions=", "goal=", "reason"];
    let lines = shown
        .lines()
        .filter(|line| said.iter().any(|word| line.contains(word)) && !line.contains("finish_reasons="));
    expect![[r#"
        . gen_ai.usage.reasoning.output_tokens=8
        . provost.goal=mend the roof
        . provost.outcome.reason=completed, not verified
        . gen_ai.system_instructions=[{"type":"text","content":"You are a roofer."}]
        . gen_ai.usage.reasoning.output_tokens=8
        . provost.outcome.reason=completed, not verified
        ! 3010 provost.guardrail.trip gen_ai.tool.call.id=c2 provost.guardrail.decision=deny provost.guardrail.name=deny write_file provost.guardrail.reason=roofs are not to be written on provost.guardrail.source=permission
        ! 5500 provost.guardrail.trip provost.guardrail.decision=block provost.guardrail.name=rain provost.guardrail.reason=it still drips provost.guardrail.source=stop_hook
        ! 5500 provost.guardrail.failed provost.guardrail.decision=failed provost.guardrail.name=sun provost.guardrail.reason=too hot provost.guardrail.source=stop_hook
        . gen_ai.input.messages=[{"role":"user","parts":[{"type":"text","content":"mend the roof"}]}]
        . gen_ai.output.messages=[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"shell","arguments":{"command":"nail the tiles"}},{"type":"tool_call","id":"c2","name":"write_file","arguments":{"command":"nail the tiles"}}],"finish_reason":"tool_calls"}]
        . gen_ai.usage.reasoning.output_tokens=4
        . gen_ai.tool.call.arguments={"command":"nail the tiles"}
        . gen_ai.tool.call.result=tiles are slippery
        . gen_ai.tool.call.result=tiles are slippery
        . gen_ai.input.messages=[{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"tiles are slippery"}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"c2","response":"tiles are slippery"}]}]
        . gen_ai.output.messages=[{"role":"assistant","parts":[{"type":"text","content":"the roof is mended"}],"finish_reason":"stop"}]
        . gen_ai.usage.reasoning.output_tokens=4
    "#]].assert_eq(&lines.map(|line| format!("{}\n", line.trim_start())).collect::<String>());
}

#[test]
fn secrets_are_taken_out_of_what_is_sent() {
    let known = "correct-horse-battery";
    let shaped = format!("sk-{}", "ant-api03-abcdefghijklmnopqrstuvwxyz0123456789");
    let mut log = Log::default();
    begin(&mut log);
    let text = format!("use {known} or {shaped}");
    let usage = Usage::default();
    let mut started = tool_started("c1", "shell");
    started.input = Json::of(&serde_json::json!({ "command": text })).expect("JSON");
    let mut finished = tool_finished("c1", &format!("shell {known}"), ToolStatus::Error);
    finished.output = text.clone();
    log.root(1_010, called(1, 1))
        .root(1_100, answer(1, StopReason::ToolUse, vec![Block::Text(text)], usage))
        .run(1_100, charged(1, usage, 1))
        .root(1_200, started)
        .root(1_300, finished)
        .root(1_400, called(2, 1))
        .root(1_500, completed())
        .run(1_500, completed());
    let (_, sent) = sent(log.take(), |options| {
        options.content = Content::On;
        options.secrets = vec![known.to_owned().into()];
    });
    assert!(sent.contains("use [secret] or [secret]"));
    assert!(!sent.contains(known) && !sent.contains(&shaped));
}

#[test]
fn long_words_are_cut_before_they_are_sent() {
    let mut log = Log::default();
    begin(&mut log);
    let mut finished = tool_finished("c1", &"n".repeat(5_000), ToolStatus::Rejected);
    finished.output = "ä".repeat(100_000);
    log.root(1_300, finished).root(1_400, called(1, 1)).root(1_500, completed()).run(1_500, completed());
    let (collector, _) = sent(log.take(), |options| options.content = Content::On);
    let bytes = collector.got().iter().map(|one| one.body.len()).max().expect("requests");
    assert!(bytes < 3 * 16 * 1024, "{bytes}");
    let tool =
        collector.spans().into_iter().find(|span| span.name.starts_with("execute_tool n")).expect("a span");
    assert!(tool.name.len() < 160, "{}", tool.name);
}
