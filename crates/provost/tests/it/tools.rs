//! Tools that are functions with the attribute.

use provost::ToolSubject;
use provost::prelude::*;
use serde_json::json;

use crate::script;

/// Adds two numbers.
///
/// Not more than two.
#[provost::tool(access = reads, idempotent, timeout_ms = 5_000, output_bytes_max = 100, aliases = ["Sum"])]
async fn add(
    /// The first one.
    a: i64,
    #[schemars(range(min = 1))]
    #[serde(rename = "second")]
    b: Option<i64>,
) -> Result<String, String> {
    a.checked_add(b.unwrap_or(1)).map(|sum| sum.to_string()).ok_or_else(|| "the sum is too large".to_owned())
}

/// Replaces a file.
#[provost::tool(name = "put", access = writes, subject = path(r#type, writes), summary_field = text)]
pub(crate) async fn replace(context: ToolContext, r#type: String, mut text: String) -> ToolOutput {
    text.push('!');
    match std::fs::write(context.workspace.join(r#type), &text) {
        Ok(()) => ToolOutput::ok(format!("{} bytes", text.len())),
        Err(error) => ToolOutput::error(error.to_string()),
    }
}

/// Says nothing.
#[provost::tool]
async fn nothing() -> &'static str {
    "nothing"
}

#[test]
fn a_function_says_what_its_tool_is() {
    let spec = add.spec();
    assert_eq!(
        (spec.name.as_str(), spec.description.as_str()),
        ("add", "Adds two numbers.\n\nNot more than two.")
    );
    assert_eq!(
        spec.input_schema.read::<serde_json::Value>().expect("JSON"),
        json!({
            "type": "object",
            "properties": {
                "a": { "type": "integer", "description": "The first one." },
                "second": { "type": "integer", "minimum": 1 },
            },
            "required": ["a"],
        })
    );
    assert_eq!((&spec.access, &spec.subject), (&Access::Reads, &ToolSubject::Opaque));
    assert_eq!((spec.idempotent, spec.timeout_ms, spec.output_bytes_max), (true, 5_000, 100));
    assert_eq!(spec.aliases, ["Sum"]);
    assert_eq!(nothing.spec().input_schema.read::<serde_json::Value>().expect("JSON")["type"], "object");

    let spec = replace.spec();
    assert_eq!((spec.name.as_str(), &spec.access), ("put", &Access::Writes));
    assert_eq!((&spec.subject, spec.summary_field()), (&ToolSubject::written_path("type"), Some("text")));
    assert_eq!((spec.idempotent, spec.timeout_ms), (false, 60_000));
}

#[tokio::test]
async fn a_function_answers_the_calls_of_a_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = script(
        "
answers:
  - tools: [{ add: { a: 2, second: 3 } }, { add: { a: 9223372036854775807 } }, { add: { second: 3 } }]
  - expect: { tool_result: [{ contains: '5' }, { contains: the sum is too large }, { contains: 'missing field `a`' }] }
    tools: [{ nothing: {} }, { put: { type: note, text: five } }, { put: { type: secret, text: x } }]
  - expect: { tool_result: [{ contains: nothing }, { contains: 5 bytes }, { contains: forbids }] }
    text: 'VERDICT: PASS'
",
    );
    let agent = Agent::builder(model).tool(add).tool(replace).tool(nothing).deny("put(secret)");
    let agent = agent.workspace(folder.path()).build().expect("an agent");
    let finished = agent.run("Add.").await.expect("it runs");
    assert!(finished.is_completed(), "{}", finished.outcome);
    assert_eq!(std::fs::read_to_string(folder.path().join("note")).expect("a file"), "five!");
    assert!(!folder.path().join("secret").exists());
}

#[tokio::test]
async fn a_function_can_be_called_without_a_model() {
    assert_eq!(add::invoke(1, None).await.as_deref(), Ok("2"));
}
