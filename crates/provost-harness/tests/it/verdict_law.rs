//! Invariants of every answer that is parsed as a verdict; also the oracle of the fuzz target. It searches for
//! verdicts differently from the parser: at every brace.

use provost_event::{SupervisorError, SupervisorVerdict};
use provost_harness::parse_verdict;
use serde_json::Value;

/// Parses `text` and checks the result.
///
/// # Panics
/// If an invariant is violated.
pub(crate) fn check(text: &str) -> Result<SupervisorVerdict, SupervisorError> {
    let read = parse_verdict(text);
    match &read {
        Ok(verdict) => {
            is_bounded(verdict);
            is_the_only_one(text, verdict);
            reads_back(verdict);
        }
        Err(SupervisorError::Parse(raw)) => {
            let beginning = raw.strip_suffix('…').unwrap_or(raw);
            assert!(beginning.chars().count() <= 500, "{raw}");
            assert!(text.trim().starts_with(beginning), "{raw}");
        }
        Err(other) => panic!("{other:?}"),
    }
    read
}

fn is_bounded(verdict: &SupervisorVerdict) {
    assert!(verdict.reasoning.contains(char::is_alphanumeric), "{verdict:?}");
    assert!(verdict.reasoning.chars().count() <= 4_001);
    assert!((0.0..=1.0).contains(&verdict.confidence.fraction()));
    assert!(verdict.suggestions.len() <= 20);
    for suggestion in &verdict.suggestions {
        assert!(!suggestion.trim().is_empty() && suggestion.chars().count() <= 501);
    }
}

/// Whatever else the text contains, it has exactly one object that says whether it is achieved, and that says so.
fn is_the_only_one(text: &str, verdict: &SupervisorVerdict) {
    let objects = text.match_indices('{').filter_map(|(at, _)| {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        let value = values.next()?.ok()?;
        Some((value.get("achieved")?.clone(), values.byte_offset() + at))
    });
    let objects = objects.collect::<Vec<_>>();
    let [(achieved, end)] = objects.as_slice() else { panic!("{objects:?} in {text}") };
    assert_eq!(*achieved, Value::Bool(verdict.achieved), "{text}");
    let fields = text.split("\"achieved\"").skip(1).filter(|rest| rest.trim_start().starts_with(':'));
    assert!(fields.count() <= 1, "{text}");
    if verdict.achieved {
        let after = text[*end..].trim_matches(|c: char| c.is_whitespace() || "}`~".contains(c));
        assert_eq!(after, "", "{text}");
    }
}

fn reads_back(verdict: &SupervisorVerdict) {
    let text = serde_json::to_string(verdict).expect("a verdict is JSON");
    let again = parse_verdict(&text).expect("it reads back");
    // A cut text has its mark at the end, and is cut there again.
    assert_eq!(again.achieved, verdict.achieved);
    assert_eq!(again.confidence, verdict.confidence);
    assert_eq!(again.suggestions.len(), verdict.suggestions.len());
}
