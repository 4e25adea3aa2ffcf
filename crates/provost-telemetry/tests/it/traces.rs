//! Runs as a collector sees them.

use std::collections::HashSet;
use std::sync::Arc;

use expect_test::{expect, expect_file};
use provost_event::*;
use provost_telemetry::{Telemetry, TelemetryHealth, TelemetryOptions};

use crate::collector::{Collector, Manner};
use crate::log::{
    Log, aside, begin, called, charged, completed, long_run, observe, observe_knowing, root, run,
    tool_finished, tool_started, whole_run, work,
};
use crate::shown::{attribute, metrics, tree};

fn telemetry(collector: &Collector) -> Arc<Telemetry> {
    Arc::new(Telemetry::new(TelemetryOptions::new(collector.endpoint())).expect("telemetry"))
}

/// What a collector receives for `records`, in one trace.
fn traced(records: Vec<Record>) -> Collector {
    traced_knowing(&[], records)
}

/// The same for a process that resumes a run, and knows its agents' positions.
fn traced_knowing(first: &[Record], records: Vec<Record>) -> Collector {
    let collector = Collector::start(Manner::Good);
    let telemetry = telemetry(&collector);
    observe_knowing(&telemetry, first, records);
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
    let paused = Outcome::Paused { why: PauseReason::Asked { by: "alice".to_owned(), awaited: None } };
    log.root(6_000, Paused { outcome: paused.clone() }).run(6_001, Paused { outcome: paused });
    let collector = Collector::start(Manner::Good);
    observe(&telemetry(&collector), log.take());
    let cause = ResumeCause::Asked { by: "alice".to_owned() };
    let resumed = Resumed { cause, budget: Budget::default(), turns_max: None, reopens: false };
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
    let first = later.iter().find(|span| span.name == "provost.run").expect("the second segment");
    assert!(ids.contains(&first.parent_span_id));
    expect![[r#"
        provost.run 9000-9601
          . gen_ai.usage.input_tokens=10
          . gen_ai.usage.output_tokens=2
          . provost.chain.depth=0
          . provost.chain.id=k3x9m2p7q4ab
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
            . provost.chain.depth=0
            . provost.chain.id=k3x9m2p7q4ab
            . provost.cost_usd=0.000005
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
              . provost.chain.depth=0
              . provost.chain.id=k3x9m2p7q4ab
              . provost.cost_usd=0.000005
              . provost.purpose=turn
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
    // The charge comes after the agent's end, and still counts for the agent.
    let agent = spans.iter().find(|span| span.name == "invoke_agent root").expect("the agent");
    assert_eq!(agent.end_time_unix_nano, 1_200_000_000);
    assert_eq!(attribute(agent, "gen_ai.usage.input_tokens").as_deref(), Some("3"));
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
        depth: 1,
        parent: Some(root()),
        call: None,
        agent: None,
        worktree: None,
        fork: None,
        reminder_id: String::new(),
    };
    let below = SessionId { run: run(), agent: 1 };
    let deeper = SessionStarted { depth: 2, parent: Some(below), ..started.clone() };
    log.agent(1, 1_100, started)
        .agent(2, 1_150, deeper)
        .agent(2, 1_160, called(1, 1))
        .agent(2, 1_170, tool_started("c1", "shell"))
        .agent(2, 1_190, completed())
        .agent(1, 1_200, completed())
        .root(1_300, completed())
        .run(1_300, completed());
    let spans = traced(log.take()).spans();
    let tree = tree(&spans);
    let lines = tree.lines().filter(|line| !line.trim_start().starts_with('.') || line.contains(".chain."));
    expect![[r#"
        provost.run 1000-1300
          . provost.chain.depth=0
          . provost.chain.id=k3x9m2p7q4ab
          invoke_agent root 1001-1300
            . provost.chain.depth=0
            . provost.chain.id=k3x9m2p7q4ab
            invoke_agent agent-1 1100-1200
              . provost.chain.depth=1
              . provost.chain.id=k3x9m2p7q4ab
              . provost.chain.parent=k3x9m2p7q4ab.0
              invoke_agent agent-2 1150-1190
                . provost.chain.depth=2
                . provost.chain.id=k3x9m2p7q4ab
                . provost.chain.parent=k3x9m2p7q4ab.1
                chat roofer-1 1160-1190 client ERROR
                  . provost.chain.depth=2
                  . provost.chain.id=k3x9m2p7q4ab
                  . provost.chain.parent=k3x9m2p7q4ab.1
                execute_tool shell 1170-1190
                  . provost.chain.depth=2
                  . provost.chain.id=k3x9m2p7q4ab
                  . provost.chain.parent=k3x9m2p7q4ab.1
    "#]]
    .assert_eq(&lines.map(|line| format!("{line}\n")).collect::<String>());
}

/// An agent that the second entry of the root's log starts.
fn holder() -> (AgentSpawned, SessionStarted) {
    let goal = "hold the ladder".to_owned();
    let child = SessionId { run: run(), agent: 1 };
    let brief = Brief {
        done_when: None,
        name: "holder".to_owned(),
        goal: goal.clone(),
        agent: Some("holder".to_owned()),
        instructions: None,
        tools: None,
        budget: Budget::default(),
        turns_max: None,
        ask_timeout_ms: None,
        isolation: Isolation::Shared,
    };
    let call = Some(Seq(2));
    let spawned = AgentSpawned {
        child,
        parent: Some(root()),
        call,
        depth: 1,
        brief,
        priority: Priority::High,
        slot: SlotAssignment::Free,
    };
    let started = SessionStarted {
        goal,
        images: Vec::new(),
        policy: crate::log::policy().agent,
        depth: 1,
        parent: Some(root()),
        call,
        agent: Some("holder".to_owned()),
        worktree: None,
        fork: None,
        reminder_id: String::new(),
    };
    (spawned, started)
}

#[test]
fn an_agent_s_span_is_below_the_call_that_asked_for_it_also_after_a_rest_and_in_another_process() {
    let mut log = Log::default();
    begin(&mut log);
    let (spawned, started) = holder();
    let child = spawned.child;
    let rest = Outcome::Paused { why: PauseReason::Preempted { by: None } };
    let paused = || Paused { outcome: rest.clone() };
    let resumed = |cause| Resumed { cause, budget: Budget::default(), turns_max: None, reopens: false };
    log.root(1_010, tool_started("c1", "holder"))
        .run(1_011, spawned)
        .agent(1, 1_020, started.clone())
        .root(1_030, paused())
        .agent(1, 1_040, paused())
        .agent(1, 1_050, resumed(ResumeCause::SlotFree))
        .agent(1, 1_055, called(1, 1))
        .agent(1, 1_060, completed())
        .run(1_061, AgentFinished { child, outcome: completed().outcome, restarts: 0 })
        .root(1_062, tool_finished("c1", "holder", ToolStatus::Ok))
        .root(1_070, resumed(ResumeCause::SlotFree))
        .root(1_100, completed())
        .run(1_101, completed());
    let records = log.take();
    let spans = traced(records.clone()).spans();
    let tree = tree(&spans);
    let lines = tree.lines().filter(|line| !line.trim_start().starts_with('.'));
    expect![[r#"
        provost.run 1000-1101
          ! 1011 provost.handoff provost.agent.kind=holder provost.child=k3x9m2p7q4ab.1 provost.depth=1 provost.parent=k3x9m2p7q4ab.0 provost.priority=high provost.state=asked
          ! 1061 provost.handoff provost.child=k3x9m2p7q4ab.1 provost.outcome=completed provost.state=done
          invoke_agent root 1001-1100
            execute_tool holder 1010-1062
              invoke_agent agent-1 1020-1060
                chat roofer-1 1055-1060 client ERROR
    "#]].assert_eq(&lines.map(|line| format!("{line}\n")).collect::<String>());
    let run_span = spans.iter().find(|span| span.name == "provost.run").expect("the run");
    let told = run_span.events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>();
    assert_eq!(told, ["provost.handoff", "provost.handoff"]);
    let tool =
        spans.iter().find(|span| span.name == "execute_tool holder").expect("the call").span_id.clone();
    // A process that resumes the run only knows the agents' positions.
    let of_child = |record: &&Record| record.actor == child.into();
    let of_child = records.iter().filter(of_child).cloned();
    let (first, later) = of_child.partition::<Vec<_>, _>(|one| one.at.0 < 1_050);
    let later = traced_knowing(&first, later).spans();
    let agent = later.iter().find(|span| span.name == "invoke_agent agent-1").expect("the agent");
    assert_eq!(agent.parent_span_id, tool);
}

#[test]
fn calls_beside_the_conversation_are_told_with_their_purpose_and_what_they_took() {
    let call = Some(aside(4, "roofer-1-20260101"));
    let said = FinalSummaryFinished { text: "half of it is mended".to_owned(), call, problem: None };
    let collector = traced(long_run(said));
    expect_file!["long_run.txt"].assert_eq(&tree(&collector.spans()));
}

#[test]
fn nothing_is_left_open_when_final_summary_fail() {
    let problem = Some("no connection to the provider: no answer".to_owned());
    for (model, call, error) in [("", true, "_OTHER"), ("roofer-1", true, "empty_answer"), ("", false, "")] {
        let call = call.then(|| aside(4, model));
        let calls = if call.is_some() { 4 } else { 3 };
        let spans =
            traced(long_run(FinalSummaryFinished { text: String::new(), call, problem: problem.clone() }))
                .spans();
        let chats = spans.iter().filter(|span| span.name == "chat roofer-1").collect::<Vec<_>>();
        assert_eq!(chats.len(), calls);
        let last =
            chats.iter().find(|span| attribute(span, "provost.purpose").as_deref() == Some("final_summary"));
        assert_eq!(last.and_then(|span| attribute(span, "error.type")).unwrap_or_default(), error);
        let agent = spans.iter().find(|span| span.name == "invoke_agent root").expect("the agent");
        let mut events = agent.events.iter();
        let words =
            events.find(|event| event.name == "provost.final_summary").map(|event| event.attributes.len());
        // Without a budget for them there was no call, and the run's span has the limit that was reached.
        assert_eq!(words, (calls == 4).then_some(1));
        for span in &spans {
            assert_eq!(attribute(span, "provost.unfinished"), None, "{}", span.name);
        }
    }
}

#[test]
fn an_agent_and_its_run_took_what_their_calls_took() {
    for records in
        [whole_run(), long_run(FinalSummaryFinished { text: String::new(), call: None, problem: None })]
    {
        let spans = traced(records).spans();
        for key in ["provost.cost_usd", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"] {
            let of = |name: &str| {
                let spans = spans.iter().filter(|span| span.name.starts_with(name));
                let values = spans.filter_map(|span| attribute(span, key)?.parse::<f64>().ok());
                (values.sum::<f64>() * 1e6).round()
            };
            assert!(of("chat") > 0.0);
            assert_eq!((of("invoke_agent"), of("provost.run")), (of("chat"), of("chat")), "{key}");
        }
    }
}

#[test]
fn a_run_s_log_may_be_told_ahead_of_its_agent_s() {
    let said =
        FinalSummaryFinished { text: "half".to_owned(), call: Some(aside(4, "roofer-1")), problem: None };
    for records in [whole_run(), long_run(said)] {
        let expected = tree(&traced(records.clone()).spans());
        let (of_run, of_agent) =
            records.into_iter().partition::<Vec<_>, _>(|record| matches!(record.actor, ActorKey::Run(_)));
        let ahead = tree(&traced(of_run.into_iter().chain(of_agent).collect()).spans());
        assert_eq!(ahead, expected);
    }
}

#[test]
fn an_agent_s_beginning_may_be_told_before_its_run_s() {
    let mut records = whole_run();
    let expected = tree(&traced(records.clone()).spans());
    records.swap(0, 1);
    assert_eq!(tree(&traced(records).spans()), expected);
    let mut log = Log::default();
    begin(&mut log);
    let cause = ResumeCause::Asked { by: "alice".to_owned() };
    let resumed = Resumed { cause, budget: Budget::default(), turns_max: None, reopens: false };
    log.take();
    log.run(9_000, resumed).root(9_010, called(4, 1)).root(9_600, completed()).run(9_601, completed());
    let mut records = log.take();
    let expected = tree(&traced(records.clone()).spans());
    assert!(expected.contains("\n  invoke_agent root"), "{expected}");
    records.swap(0, 1);
    assert_eq!(tree(&traced(records).spans()), expected);
}
