//! Schemas of tools' arguments: bounded, and without what would have them fetched or followed for ever.

use serde_json::Value;

use crate::shown::without_hidden;

/// How deep a schema may nest.
const DEPTH_MAX: usize = 32;
/// Values in a schema, of any kind.
const VALUES_MAX: usize = 5_000;

/// Keys whose value leads to a schema elsewhere.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Why a schema isn't taken; `None` if it is.
pub(crate) fn objection(schema: &Value) -> Option<String> {
    let Value::Object(fields) = schema else {
        return Some("the schema of its arguments isn't an object".to_owned());
    };
    if fields.get("type").is_some_and(|kind| kind != "object") {
        return Some("the schema of its arguments isn't that of an object".to_owned());
    }
    let mut values = 0;
    bounded(schema, 0, &mut values)
}

fn bounded(value: &Value, depth: usize, values: &mut usize) -> Option<String> {
    *values = values.saturating_add(1);
    if depth > DEPTH_MAX {
        return Some(format!("the schema of its arguments nests deeper than {DEPTH_MAX} levels"));
    }
    if *values > VALUES_MAX {
        return Some(format!("the schema of its arguments has more than {VALUES_MAX} values"));
    }
    let below = depth.saturating_add(1);
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let target = value.as_str().filter(|_| REFERENCES.contains(&name.as_str()));
            match target {
                Some(target) if !target.starts_with('#') => {
                    Some(format!("the schema of its arguments refers to {target:.80}, which is elsewhere"))
                }
                _ => bounded(value, below, values),
            }
        }),
        Value::Array(items) => items.iter().find_map(|item| bounded(item, below, values)),
        _ => None,
    }
}

/// The schema for models: its texts without hidden characters, and without what only programs read.
pub(crate) fn for_models(schema: &Value) -> Value {
    match schema {
        Value::String(text) => Value::String(without_hidden(text)),
        Value::Array(items) => Value::Array(items.iter().map(for_models).collect()),
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| !matches!(name.as_str(), "$schema" | "$id"));
            Value::Object(kept.map(|(name, value)| (without_hidden(name), for_models(value))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::objection;

    #[test]
    fn a_schema_that_is_too_much_or_leads_elsewhere_is_refused() {
        let mut deep = json!({ "type": "string" });
        for _ in 0..40 {
            deep = json!({ "properties": { "a": deep } });
        }
        let wide = Value::Array((0..6_000).map(Value::from).collect());
        let cases = [
            (json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/a" } } }), None),
            (json!({}), None),
            (json!([]), Some("isn't an object")),
            (json!({ "type": "string" }), Some("isn't that of an object")),
            (
                json!({ "properties": { "a": { "$ref": "https://evil.example/s.json" } } }),
                Some("which is elsewhere"),
            ),
            (json!({ "properties": { "a": { "$ref": "file:///etc/passwd" } } }), Some("which is elsewhere")),
            (deep, Some("nests deeper than 32 levels")),
            (json!({ "enum": wide }), Some("more than 5000 values")),
        ];
        for (schema, expected) in cases {
            let found = objection(&schema);
            match expected {
                None => assert_eq!(found, None),
                Some(part) => assert!(found.as_ref().is_some_and(|text| text.contains(part)), "{found:?}"),
            }
        }
    }
}
