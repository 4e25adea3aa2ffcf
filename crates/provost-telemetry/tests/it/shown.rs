//! Spans and metrics as text.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use opentelemetry_proto::tonic::trace::v1::Span;

/// A trace as a tree; each span with its times in milliseconds.
pub(crate) fn tree(spans: &[Span]) -> String {
    let mut spans = spans.to_vec();
    spans.sort_by_key(|span| (span.start_time_unix_nano, std::cmp::Reverse(span.end_time_unix_nano)));
    let is_known = |id: &[u8]| spans.iter().any(|span| span.span_id == id);
    let mut out = String::new();
    for span in spans.iter().filter(|span| !is_known(&span.parent_span_id)) {
        grow(&mut out, span, &spans, 0);
    }
    out
}

fn grow(out: &mut String, span: &Span, all: &[Span], depth: usize) {
    let indent = "  ".repeat(depth);
    let status = span.status.as_ref().map_or(0, |status| status.code);
    let status = if status == 2 { " ERROR" } else { "" };
    let kind = if span.kind == 3 { " client" } else { "" };
    let (from, to) = (ms(span.start_time_unix_nano), ms(span.end_time_unix_nano));
    out.push_str(&format!("{indent}{} {from}-{to}{kind}{status}\n", span.name));
    for line in pairs(&span.attributes) {
        out.push_str(&format!("{indent}  . {line}\n"));
    }
    for event in &span.events {
        let pairs = pairs(&event.attributes).join(" ");
        out.push_str(&format!("{indent}  ! {} {} {pairs}\n", ms(event.time_unix_nano), event.name));
    }
    for child in all.iter().filter(|child| child.parent_span_id == span.span_id) {
        grow(out, child, all, depth + 1);
    }
}

pub(crate) fn metrics(metrics: &[Metric]) -> String {
    let mut lines = Vec::new();
    for metric in metrics {
        let name = format!("{} [{}]", metric.name, metric.unit);
        match metric.data.as_ref().expect("data") {
            Data::Histogram(histogram) => {
                for point in &histogram.data_points {
                    let (count, sum) = (point.count, point.sum.unwrap_or_default());
                    lines.push(format!("{name} {{{}}} {count} {sum}", pairs(&point.attributes).join(" ")));
                }
            }
            Data::Sum(sum) => {
                for point in &sum.data_points {
                    let value = match point.value.expect("a value") {
                        number_data_point::Value::AsDouble(value) => value.to_string(),
                        number_data_point::Value::AsInt(value) => value.to_string(),
                    };
                    lines.push(format!("{name} {{{}}} {value}", pairs(&point.attributes).join(" ")));
                }
            }
            other => panic!("{other:?}"),
        }
    }
    lines.sort();
    lines.join("\n")
}

pub(crate) fn attribute(span: &Span, key: &str) -> Option<String> {
    span.attributes.iter().find(|pair| pair.key == key).map(|pair| text(pair.value.as_ref()))
}

fn pairs(attributes: &[KeyValue]) -> Vec<String> {
    let mut pairs = attributes
        .iter()
        .map(|pair| format!("{}={}", pair.key, text(pair.value.as_ref())))
        .collect::<Vec<_>>();
    pairs.sort();
    pairs
}

fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        Some(Value::BoolValue(flag)) => flag.to_string(),
        Some(Value::ArrayValue(array)) => {
            format!("[{}]", array.values.iter().map(|value| text(Some(value))).collect::<Vec<_>>().join(","))
        }
        other => format!("{other:?}"),
    }
}

fn ms(nanos: u64) -> u64 {
    nanos / 1_000_000
}
