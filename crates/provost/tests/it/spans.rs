//! Spans for `tracing`.

#![expect(clippy::expect_used, reason = "what fails here is the test")]

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use provost::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

use crate::script;

/// A span: its name, that of its parent, and its fields but those with ids and numbers of tokens.
#[derive(Default)]
struct Seen {
    id: u64,
    name: &'static str,
    parent: Option<&'static str>,
    fields: Vec<String>,
}

/// Keeps all spans of Provost in the order in which they began.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Seen>>>);

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if !["run", "input_tokens", "output_tokens"].contains(&field.name()) {
            self.fields.push(format!("{}={value:?}", field.name()));
        }
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Kept {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if attributes.metadata().target() != "provost" {
            return;
        }
        let parent = context.span(id).and_then(|span| span.parent()).map(|parent| parent.name());
        let mut seen =
            Seen { id: id.into_u64(), name: attributes.metadata().name(), parent, fields: Vec::new() };
        attributes.record(&mut seen);
        self.0.lock().expect("no panic").push(seen);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut all = self.0.lock().expect("no panic");
        if let Some(seen) = all.iter_mut().rev().find(|seen| seen.id == id.into_u64()) {
            values.record(seen);
        }
    }
}

impl Kept {
    fn lines(&self) -> Vec<String> {
        let all = self.0.lock().expect("no panic");
        let line = |seen: &Seen| {
            let parent = seen.parent.map(|parent| format!("{parent} > ")).unwrap_or_default();
            format!("{parent}{} {}", seen.name, seen.fields.join(" "))
        };
        all.iter().map(line).collect()
    }
}

/// Says nothing.
#[provost::tool]
async fn nothing(_text: String) -> &'static str {
    "the-result"
}

const SCRIPT: &str = "
answers:
  - tools: [{ nothing: { _text: the-argument } }]
  - text: 'the-answer. VERDICT: PASS'
verdicts:
  - { achieved: true, confidence: 0.9, reasoning: the-reasoning }
";

async fn run() -> Finished {
    Agent::builder(script(SCRIPT))
        .tool(nothing)
        .hook::<PreToolCall>("before", |_| PreToolCallAction::Continue)
        .stop_hook_fn("tests", |_| StopHookVerdict::Allow)
        .goal("the-condition")
        .build()
        .expect("an agent")
        .run("the-prompt")
        .await
        .expect("it runs")
}

#[tokio::test]
async fn spans_say_what_an_agent_does_and_none_of_what_is_said() {
    let kept = Kept::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(kept.clone()));
    assert!(run().await.is_completed());
    let lines = kept.lines();
    assert_eq!(
        lines,
        [
            "agent.turn agent=0 turn=1",
            "agent.turn > model.call turn=1 purpose=Turn model=\"scripted\"",
            "agent.turn > hook.call hook=\"before\" point=\"pre_tool_call\" decision=\"continue\"",
            "agent.turn > tool.call tool=\"nothing\" status=Ok",
            "agent.turn agent=0 turn=2",
            "agent.turn > model.call turn=2 purpose=Turn model=\"scripted\"",
            "agent.turn > stop_hook.call hook=\"tests\" decision=\"continue\"",
            "agent.turn > goal.supervisor.verify turn=2 again=false achieved=true",
            "goal.supervisor.verify > model.call turn=2 purpose=Judge model=\"scripted\"",
        ]
    );
    for text in ["the-prompt", "the-argument", "the-result", "the-answer", "the-condition", "the-reasoning"] {
        assert!(!lines.iter().any(|line| line.contains(text)), "{text}: {lines:#?}");
    }
}

/// Keeps the texts of Provost's events.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0.lock().expect("no panic").push(format!("{value:?}"));
        }
    }
}

impl<S: tracing::Subscriber> Layer<S> for Told {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "provost" {
            event.record(&mut self.clone());
        }
    }
}

#[tokio::test]
async fn a_cost_tracker_says_the_sum_of_a_run_at_its_end() {
    let told = Told::default();
    // Observers have threads of their own.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(told.clone()));
    let costs = CostTracker::new();
    let agent = Agent::builder(script(SCRIPT)).tool(nothing).observer("costs", costs.observer());
    let finished = agent.build().expect("an agent").run("the-prompt").await.expect("it runs");
    let sum = costs.run(finished.run);
    assert_eq!((sum.calls, sum.usage.total()), (2, finished.tokens));
    assert_eq!(*told.0.lock().expect("no panic"), [sum.to_string()]);
    assert!(sum.to_string().starts_with("model calls: 2, tokens in: "), "{sum}");
}
