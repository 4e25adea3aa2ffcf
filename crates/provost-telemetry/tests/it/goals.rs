//! Goals and their judges, as a collector sees them.

use std::sync::Arc;

use expect_test::{Expect, expect};
use provost_event::*;
use provost_telemetry::{Content, Telemetry, TelemetryOptions};

use crate::collector::{Collector, Manner};
use crate::log::{Log, answer, begin, called, charged, completed, observe, root};
use crate::shown::{metrics, tree};

const JUDGE: &str = "openai/inspector-1";

fn traced(records: Vec<Record>, content: Content) -> Collector {
    let collector = Collector::start(Manner::Good);
    let options = TelemetryOptions { content, ..TelemetryOptions::new(collector.endpoint()) };
    observe(&Arc::new(Telemetry::new(options).expect("telemetry")), records);
    collector
}

/// Shows the agent's span and those of the calls, with their distinguishing attributes.
#[track_caller]
fn check(collector: &Collector, expected: Expect) {
    let told = [
        "provider.name",
        "request.model",
        "finish_reasons",
        "usage.input",
        "provost.purpose",
        "provost.goal",
        "provost.cost",
        "error.type",
        "output.messages",
        "unfinished",
    ];
    let tree = tree(&collector.spans());
    let lines = tree
        .lines()
        .filter(|line| !line.trim_start().starts_with(". ") || told.iter().any(|name| line.contains(name)));
    expected.assert_eq(&lines.map(|line| format!("{line}\n")).collect::<String>());
}

fn usage(input_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens: 10, ..Usage::default() }
}

fn asked(call: u32) -> ModelCalled {
    ModelCalled { purpose: Purpose::Judge, ..called(call, 1) }
}

fn judged(call: u32, answer: JudgeAnswer) -> GoalJudged {
    let model = match &answer {
        JudgeAnswer::Verdict(_) => "inspector-1-20260101".to_owned(),
        JudgeAnswer::Failed(_) => String::new(),
    };
    GoalJudged {
        generation: 1,
        judge: JUDGE.to_owned(),
        answer,
        call: AsideCall { call, usage: usage(1_000), cost: Some(MicroDollars(100)), model },
        duration_ms: 90,
        evidence: String::new(),
        wait_ms: None,
        stale: false,
    }
}

fn said(achieved: bool, reasoning: &str) -> JudgeAnswer {
    JudgeAnswer::Verdict(SupervisorVerdict {
        achieved,
        reasoning: reasoning.to_owned(),
        confidence: Confidence::hundredths(85),
        suggestions: Vec::new(),
    })
}

fn failed(error: SupervisorError) -> JudgeAnswer {
    JudgeAnswer::Failed(error)
}

fn bill(call: u32) -> BudgetCharged {
    BudgetCharged {
        session: root(),
        call,
        turn: 1,
        model: JUDGE.to_owned(),
        usage: usage(1_000),
        cost: Some(MicroDollars(100)),
        purpose: provost_event::Purpose::Turn,
    }
}

fn verdict(trigger: GoalTrigger, finding: GoalFinding) -> GoalVerdict {
    GoalVerdict { trigger, turn: 1, generation: 1, finding }
}

fn not_achieved() -> GoalFinding {
    GoalFinding::NotAchieved {
        reasoning: "the ridge is open".to_owned(),
        suggestions: Vec::new(),
        confidence: Some(Confidence::hundredths(85)),
    }
}

fn achieved() -> GoalFinding {
    GoalFinding::Achieved { confidence: Confidence::hundredths(85), reasoning: "it is dry".to_owned() }
}

/// The agent claims to be done.
fn claims(log: &mut Log, call: u32, at: u64) {
    let words = vec![Block::Text("done".to_owned())];
    log.root(at, called(call, 1))
        .root(at + 50, answer(call, StopReason::EndTurn, words, usage(5)))
        .run(at + 50, charged(call, usage(5), 2_500))
        .root(at + 60, GoalCheckStarted { trigger: GoalTrigger::Claim, turn: 1, generation: 1 });
}

/// Two claims: for the first the judge's answer is malformed and then no; for the second it is too slow, and then
/// yes.
fn verified_run() -> Vec<Record> {
    let mut log = Log::default();
    begin(&mut log);
    claims(&mut log, 1, 1_100);
    log.root(1_200, asked(2))
        .root(1_290, judged(2, failed(SupervisorError::Parse("the inspector hums".to_owned()))))
        .run(1_290, bill(2))
        .root(1_300, asked(3))
        // A charge may be passed first.
        .run(1_390, bill(3))
        .root(1_390, judged(3, said(false, "the ridge is open")))
        .root(1_391, verdict(GoalTrigger::Claim, not_achieved()));
    claims(&mut log, 4, 2_100);
    log.root(2_200, asked(5))
        .root(2_290, judged(5, failed(SupervisorError::Timeout(90))))
        .run(2_290, bill(5))
        .root(7_300, asked(6))
        .root(7_390, judged(6, said(true, "it is dry")))
        .run(7_390, bill(6))
        .root(7_391, verdict(GoalTrigger::Claim, achieved()))
        .root(7_400, completed())
        .run(7_401, completed());
    log.take()
}

#[test]
fn a_judge_s_calls_are_told_with_what_it_said_and_the_agent_with_what_was_found() {
    check(
        &traced(verified_run(), Content::Off),
        expect![[r#"
            provost.run 1000-7401
              . gen_ai.usage.input_tokens=4010
              . provost.cost_usd=0.0054
              invoke_agent root 1001-7400
                . gen_ai.provider.name=anthropic
                . gen_ai.request.model=roofer-1
                . gen_ai.usage.input_tokens=4010
                . provost.cost_usd=0.0054
                . provost.goal.confidence=0.85
                . provost.goal.finding=achieved
                . provost.goal.rounds=1
                ! 1391 provost.goal.verdict provost.goal.confidence=0.85 provost.goal.finding=not_achieved provost.goal.generation=1 provost.goal.trigger=claim
                ! 7400 provost.goal.verdict provost.goal.confidence=0.85 provost.goal.finding=achieved
                chat roofer-1 1100-1150 client
                  . gen_ai.provider.name=anthropic
                  . gen_ai.request.model=roofer-1
                  . gen_ai.response.finish_reasons=[stop]
                  . gen_ai.usage.input_tokens=5
                  . provost.cost_usd=0.0025
                  . provost.purpose=turn
                chat inspector-1 1200-1290 client ERROR
                  . error.type=no_verdict
                  . gen_ai.provider.name=openai
                  . gen_ai.request.model=inspector-1
                  . gen_ai.usage.input_tokens=1000
                  . provost.cost_usd=0.0001
                  . provost.goal.generation=1
                  . provost.purpose=judge
                chat inspector-1 1300-1390 client
                  . gen_ai.provider.name=openai
                  . gen_ai.request.model=inspector-1
                  . gen_ai.response.finish_reasons=[stop]
                  . gen_ai.usage.input_tokens=1000
                  . provost.cost_usd=0.0001
                  . provost.goal.achieved=false
                  . provost.goal.confidence=0.85
                  . provost.goal.generation=1
                  . provost.purpose=judge
                chat roofer-1 2100-2150 client
                  . gen_ai.provider.name=anthropic
                  . gen_ai.request.model=roofer-1
                  . gen_ai.response.finish_reasons=[stop]
                  . gen_ai.usage.input_tokens=5
                  . provost.cost_usd=0.0025
                  . provost.purpose=turn
                chat inspector-1 2200-2290 client ERROR
                  . error.type=timed_out
                  . gen_ai.provider.name=openai
                  . gen_ai.request.model=inspector-1
                  . gen_ai.usage.input_tokens=1000
                  . provost.cost_usd=0.0001
                  . provost.goal.generation=1
                  . provost.purpose=judge
                chat inspector-1 7300-7390 client
                  . gen_ai.provider.name=openai
                  . gen_ai.request.model=inspector-1
                  . gen_ai.response.finish_reasons=[stop]
                  . gen_ai.usage.input_tokens=1000
                  . provost.cost_usd=0.0001
                  . provost.goal.achieved=true
                  . provost.goal.confidence=0.85
                  . provost.goal.generation=1
                  . provost.purpose=judge
        "#]],
    );
}

#[test]
fn verdicts_are_counted() {
    let collector = traced(verified_run(), Content::Off);
    let shown = metrics(&collector.metrics());
    let lines = shown.lines().filter(|line| {
        line.contains("provost.goal") || line.contains("guardrail") || line.contains("provost.cost")
    });
    expect![[r#"
        provost.cost [{USD}] {gen_ai.operation.name=chat gen_ai.provider.name=anthropic gen_ai.request.model=roofer-1 gen_ai.response.model=roofer-1-20260101} 0.005
        provost.cost [{USD}] {gen_ai.operation.name=chat gen_ai.provider.name=openai gen_ai.request.model=inspector-1 gen_ai.response.model=inspector-1-20260101} 0.0002
        provost.cost [{USD}] {gen_ai.operation.name=chat gen_ai.provider.name=openai gen_ai.request.model=inspector-1} 0.0002
        provost.goal.verdicts [{verdict}] {provost.goal.finding=achieved} 1
        provost.goal.verdicts [{verdict}] {provost.goal.finding=not_achieved} 1
        provost.guardrail.trips [{trip}] {provost.guardrail.source=judge} 1"#]].assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn what_a_judge_says_is_sent_only_where_asked_for() {
    let sent = |content| {
        let got = traced(verified_run(), content).got();
        got.into_iter().map(|one| String::from_utf8_lossy(&one.body).into_owned()).collect::<String>()
    };
    let (closed, open) = (sent(Content::Off), sent(Content::On));
    for word in ["the ridge is open", "it is dry", "the inspector hums"] {
        assert!(open.contains(word) && !closed.contains(word), "{word}");
    }
}

#[test]
fn a_verdict_that_comes_too_late_is_told_as_such_and_finds_nothing() {
    let mut log = Log::default();
    begin(&mut log);
    claims(&mut log, 1, 1_100);
    let outcome = Outcome::Paused { why: PauseReason::GoalCleared { by: "alice".to_owned() } };
    let late = GoalJudged { stale: true, ..judged(2, said(true, "it is dry")) };
    log.root(1_200, asked(2))
        .root(1_250, GoalCleared { by: "alice".to_owned() })
        .root(1_290, late)
        .run(1_290, bill(2))
        .root(1_300, Paused { outcome: outcome.clone() })
        .run(1_301, Paused { outcome });
    let collector = traced(log.take(), Content::Off);
    check(
        &collector,
        expect![[r#"
        provost.run 1000-1301
          . gen_ai.usage.input_tokens=1005
          . provost.cost_usd=0.0026
          invoke_agent root 1001-1301
            . gen_ai.provider.name=anthropic
            . gen_ai.request.model=roofer-1
            . gen_ai.usage.input_tokens=1005
            . provost.cost_usd=0.0026
            chat roofer-1 1100-1150 client
              . gen_ai.provider.name=anthropic
              . gen_ai.request.model=roofer-1
              . gen_ai.response.finish_reasons=[stop]
              . gen_ai.usage.input_tokens=5
              . provost.cost_usd=0.0025
              . provost.purpose=turn
            chat inspector-1 1200-1290 client
              . gen_ai.provider.name=openai
              . gen_ai.request.model=inspector-1
              . gen_ai.response.finish_reasons=[stop]
              . gen_ai.usage.input_tokens=1000
              . provost.cost_usd=0.0001
              . provost.goal.achieved=true
              . provost.goal.confidence=0.85
              . provost.goal.generation=1
              . provost.goal.stale=true
              . provost.purpose=judge
    "#]],
    );
    let bodies = collector.got().into_iter().map(|one| String::from_utf8_lossy(&one.body).into_owned());
    assert!(!bodies.collect::<String>().contains("alice"));
}

#[test]
fn an_agent_isn_t_of_its_judge_s_model_where_another_process_goes_on_with_a_claim() {
    let mut log = Log::default();
    begin(&mut log);
    claims(&mut log, 1, 1_100);
    log.take();
    let cause = ResumeCause::Asked { by: "alice".to_owned() };
    let resumed = Resumed { cause, budget: Budget::default(), turns_max: None, reopens: false };
    log.run(9_000, resumed.clone())
        .root(9_000, resumed)
        .root(9_010, asked(2))
        .root(9_100, judged(2, said(true, "it is dry")))
        .run(9_100, bill(2))
        .root(9_101, verdict(GoalTrigger::Claim, achieved()))
        .root(9_102, completed())
        .run(9_103, completed());
    check(
        &traced(log.take(), Content::Off),
        expect![[r#"
            provost.run 9000-9103
              . gen_ai.usage.input_tokens=1000
              . provost.cost_usd=0.0001
              invoke_agent root 9010-9102
                . gen_ai.usage.input_tokens=1000
                . provost.cost_usd=0.0001
                . provost.goal.confidence=0.85
                . provost.goal.finding=achieved
                . provost.goal.rounds=0
                ! 9102 provost.goal.verdict provost.goal.confidence=0.85 provost.goal.finding=achieved
                chat inspector-1 9010-9100 client
                  . gen_ai.provider.name=openai
                  . gen_ai.request.model=inspector-1
                  . gen_ai.response.finish_reasons=[stop]
                  . gen_ai.usage.input_tokens=1000
                  . provost.cost_usd=0.0001
                  . provost.goal.achieved=true
                  . provost.goal.confidence=0.85
                  . provost.goal.generation=1
                  . provost.purpose=judge
        "#]],
    );
}
