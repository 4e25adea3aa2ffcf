//! The instruments.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};
use provost_event::{MicroDollars, Usage};

use crate::names;
use crate::span::dollars;

/// The bucket bounds of the conventions for tokens: powers of four.
const TOKEN_BOUNDS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// Their bucket bounds for durations, in seconds: powers of two.
const SECOND_BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// The instruments. Each keeps at most 2000 sets of attributes, which is the SDK's limit; further sets count
/// together.
#[derive(Debug, Clone)]
pub(crate) struct Instruments {
    tokens: Histogram<u64>,
    calls: Histogram<f64>,
    tools: Histogram<f64>,
    cost: Counter<f64>,
    trips: Counter<u64>,
    approvals: Counter<u64>,
    verdicts: Counter<u64>,
}

impl Instruments {
    pub(crate) fn new(meter: &Meter) -> Self {
        let seconds = |name: &'static str| {
            meter.f64_histogram(name).with_unit("s").with_boundaries(SECOND_BOUNDS.to_vec())
        };
        Self {
            tokens: meter
                .u64_histogram("gen_ai.client.token.usage")
                .with_unit("{token}")
                .with_boundaries(TOKEN_BOUNDS.to_vec())
                .with_description("Tokens of model calls, discarded ones included")
                .build(),
            calls: seconds("gen_ai.client.operation.duration")
                .with_description("How long model calls took")
                .build(),
            tools: seconds("provost.tool.duration").with_description("How long tools ran").build(),
            cost: meter
                .f64_counter("provost.cost")
                .with_unit("{USD}")
                .with_description("What model calls cost, where the price is known")
                .build(),
            trips: meter
                .u64_counter("provost.guardrail.trips")
                .with_unit("{trip}")
                .with_description(
                    "Times that a hook, the permissions, a stop hook or the judges of a goal said no",
                )
                .build(),
            approvals: meter
                .u64_counter("provost.approvals")
                .with_unit("{approval}")
                .with_description("Questions whether a tool call may be made, and their answers")
                .build(),
            verdicts: meter
                .u64_counter("provost.goal.verdicts")
                .with_unit("{verdict}")
                .with_description("What verifications of goals came to")
                .build(),
        }
    }

    /// Records a model call's usage, with the attributes `of`; kinds without tokens aren't recorded.
    pub(crate) fn consumed(&self, usage: Usage, cost: Option<MicroDollars>, of: &[KeyValue]) {
        for (kind, tokens) in [("input", usage.prompt_tokens()), ("output", usage.output_tokens)] {
            if tokens > 0 {
                self.tokens.record(tokens, &with(of, names::TOKEN_TYPE, kind));
            }
        }
        if let Some(cost) = cost {
            self.cost.add(dollars(cost), of);
        }
    }

    pub(crate) fn call_took(&self, ms: u64, of: &[KeyValue]) {
        self.calls.record(seconds(ms), of);
    }

    pub(crate) fn tool_took(&self, ms: u64, of: &[KeyValue]) {
        self.tools.record(seconds(ms), of);
    }

    pub(crate) fn tripped(&self, source: &'static str) {
        self.trips.add(1, &[KeyValue::new("provost.guardrail.source", source)]);
    }

    pub(crate) fn verified(&self, finding: &'static str) {
        self.verdicts.add(1, &[KeyValue::new(names::GOAL_FINDING, finding)]);
    }

    pub(crate) fn approval(&self, state: &'static str) {
        self.approvals.add(1, &[KeyValue::new("provost.approval.state", state)]);
    }
}

fn with(of: &[KeyValue], key: &'static str, value: &'static str) -> Vec<KeyValue> {
    of.iter().cloned().chain([KeyValue::new(key, value)]).collect()
}

#[expect(clippy::cast_precision_loss, reason = "exact for longer than any wait")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}
