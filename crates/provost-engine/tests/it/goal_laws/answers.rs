//! The answers of models, tools, hooks and judges in a random case, by two bytes of it.

use provost_engine::{Answer, StopCheckResult, ToolResult};
use provost_event::{
    Block, CallId, Confidence, ErrorClass, HookPoint, HookReport, Json, JudgeAnswer, ModelFailure, Plan,
    PlanItem, PlanStatus, StopHookVerdict, StopReason, SupervisorError, SupervisorVerdict, ToolCall,
    ToolStatus, Usage,
};

pub(super) fn answer(kind: u8, salt: u8, serial: usize) -> Answer {
    let text = |text: &str| Block::Text(text.to_owned());
    let call = |place: usize, name: &str| {
        Block::ToolCall(ToolCall {
            id: CallId::from(format!("{serial}-{place}").as_str()),
            name: name.to_owned(),
            input: Json::parse(format!("{{\"path\":\"{}\"}}", salt % 3)).expect("JSON"),
            malformed: None,
        })
    };
    let names = ["read", "edit", "shell", "nothing"];
    let (content, stop) = match kind % 16 {
        0..6 => (vec![text("done")], StopReason::EndTurn),
        6 => (vec![], StopReason::EndTurn),
        7 => (vec![text("cut")], StopReason::OutputCap),
        8 if salt < 40 => (vec![text("no")], StopReason::Refusal),
        n => {
            let count = usize::from(n % 2) + 1;
            let calls = (0..count).map(|place| call(place, names[(usize::from(salt) + place) % 4]));
            (calls.collect(), StopReason::ToolUse)
        }
    };
    let usage = Usage { input_tokens: 20, output_tokens: 30, ..Usage::default() };
    Answer { cost: None, content, usage, model: "m".to_owned(), stop }
}

pub(super) fn tool_result(kind: u8) -> ToolResult {
    let status = match kind % 16 {
        0 => ToolStatus::Error,
        1 => ToolStatus::TimedOut,
        2 => ToolStatus::Cancelled,
        _ => ToolStatus::Ok,
    };
    let plan = kind.is_multiple_of(7).then(|| {
        let status = [PlanStatus::Pending, PlanStatus::InProgress, PlanStatus::Done][usize::from(kind % 3)];
        let item = |text: u8| PlanItem { text: format!("step {text}"), status };
        Box::new(Plan { items: (0..kind % 4).map(item).collect() })
    });
    ToolResult {
        tools: Vec::new(),
        asks: None,
        plan,
        status,
        output: format!("{} passed in {kind}ms", kind / 16 % 2),
        images: Vec::new(),
        whole: None,
        duration_ms: 1,
        memory: None,
        facts: provost_event::CallFacts::default(),
    }
}

pub(super) fn stop_result(kind: u8) -> StopCheckResult {
    let verdict = match kind % 8 {
        0..4 => StopHookVerdict::Allow,
        4 if kind > 200 => StopHookVerdict::Halt("h".to_owned()),
        5 => StopHookVerdict::Error("e".to_owned()),
        _ => StopHookVerdict::Block(format!("r{}", kind % 2)),
    };
    let reports = vec![HookReport::new("tests", HookPoint::Stop, verdict)];
    StopCheckResult { reports, evidence: evidence(kind) }
}

pub(super) fn evidence(kind: u8) -> String {
    if kind.is_multiple_of(5) { String::new() } else { format!("tree {}", kind / 128) }
}

pub(super) fn judgement(kind: u8, salt: u8) -> JudgeAnswer {
    let failed = |error| JudgeAnswer::Failed(error);
    match kind % 16 {
        0..8 => JudgeAnswer::Verdict(SupervisorVerdict {
            achieved: kind % 16 < 4,
            reasoning: format!("reason {salt}"),
            confidence: Confidence::hundredths(salt % 120),
            suggestions: (0..salt % 3).map(|line| format!("do {line}")).collect(),
        }),
        8 | 9 => failed(SupervisorError::Parse("no JSON".to_owned())),
        10 => failed(SupervisorError::RateLimited { retry_after_ms: None }),
        11 => {
            let waits = [100, 30_000, 600_000, 600_001];
            let retry_after_ms = Some(waits[usize::from(salt) % 4]);
            failed(SupervisorError::RateLimited { retry_after_ms })
        }
        12 | 13 => failed(SupervisorError::Timeout(60_000)),
        _ => failed(SupervisorError::Llm {
            class: ErrorClass::Server,
            message: "m".to_owned(),
            hint: String::new(),
        }),
    }
}

pub(super) fn convinced() -> JudgeAnswer {
    let (reasoning, suggestions) = ("the tests pass".to_owned(), Vec::new());
    JudgeAnswer::Verdict(SupervisorVerdict {
        achieved: true,
        reasoning,
        confidence: Confidence::FULL,
        suggestions,
    })
}

pub(super) fn failure(kind: u8) -> ModelFailure {
    let classes = [ErrorClass::Cut, ErrorClass::RateLimited, ErrorClass::Server];
    let class = if kind > 250 { ErrorClass::Unauthorized } else { classes[usize::from(kind) % 3] };
    ModelFailure::new(class, "m")
}
