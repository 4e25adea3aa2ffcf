//! The tools by which agents request other agents.

use provost_event::{Access, Json, ToolSpec};
use serde_json::json;

/// The tool that requests an agent like the calling one.
pub const SPAWN_TOOL: &str = "spawn_agent";
/// Its names in the hook scripts of other agent programs.
pub const SPAWN_ALIASES: [&str; 2] = ["Agent", "Task"];

/// The description of the argument that names an agent.
const AGAIN: &str = "Goes on with an earlier agent of this tool (`RUN.2` in its result).";

/// Maximum bytes of an agent's final text in its report to the requesting agent.
const REPORT_BYTES_MAX: usize = 32 * 1024;
/// The tool by which an agent requests another agent like itself.
#[must_use]
pub fn spawn_tool() -> ToolSpec {
    spawn_tool_with(&spawn_schema())
}

/// The same, for a policy with judges that can verify a sub-agent's goal.
#[must_use]
pub fn judged_spawn_tool() -> ToolSpec {
    let mut schema = spawn_schema();
    if let Some(properties) = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut) {
        let words = "What must be true before it counts as done: an independent judge checks that against the evidence.";
        properties.insert("done_when".to_owned(), json!({"type": "string", "description": words}));
    }
    spawn_tool_with(&schema)
}

fn spawn_schema() -> serde_json::Value {
    json!({
        "type": "object",
        "properties": {
            "goal": {
                "type": "string",
                "description": "What the agent is to reach, with all it needs to know: it sees nothing of this conversation."
            },
            "agent": {"type": "string", "description": AGAIN},
            "name": {"type": "string", "description": "A short label for it."},
            "instructions": {"type": "string", "description": "What it is told besides, as part of its system prompt."},
            "tools": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The tools it may use, of those you have. All of them if left out."
            },
            "priority": {"type": "string", "enum": ["background", "low", "normal"]},
            "max_turns": {"type": "integer", "minimum": 1},
            "isolation": {
                "type": "string",
                "enum": ["shared", "worktree"],
                "description": "`worktree`: it works in a git worktree of its own, on a branch of its own; `shared`, the default: in your folder."
            }
        },
        "required": ["goal"],
        "additionalProperties": false
    })
}

fn spawn_tool_with(schema: &serde_json::Value) -> ToolSpec {
    let description = "Has another agent work on a part of your task, and returns what it said last. It has your \
                       model and tools, and works in your folder unless you say otherwise. Several calls in one \
                       answer run side by side.";
    let aliases = SPAWN_ALIASES.map(str::to_owned).to_vec();
    ToolSpec { aliases, ..tool(SPAWN_TOOL, description, schema) }
}

/// The tool by which an agent requests the configured sub-agent `name`.
#[must_use]
pub fn agent_tool(name: &str, description: &str) -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {
            "goal": {
                "type": "string",
                "description": "What it is to reach, with all it needs to know: it sees nothing of this conversation."
            },
            "agent": {"type": "string", "description": AGAIN}
        },
        "required": ["goal"],
        "additionalProperties": false
    });
    tool(name, description, &schema)
}

fn tool(name: &str, description: &str, schema: &serde_json::Value) -> ToolSpec {
    let schema = Json::parse(schema.to_string()).unwrap_or_else(|_| Json::empty_object());
    ToolSpec {
        access: Access::Delegates,
        freeform: None,
        summary_field: Some("goal".to_owned()),
        timeout_ms: 0,
        output_bytes_max: REPORT_BYTES_MAX,
        ..ToolSpec::new(name, description, schema)
    }
}
