//! The tools: what a model reads of them.

use std::path::PathBuf;

use provost_harness::StartRun;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::wait::SECONDS_MAX;

/// The argument of `run_start` under which a request counts once.
pub(crate) const KEY: &str = "idempotency_key";
/// The argument of `run_start` with the folder.
pub(crate) const FOLDER: &str = "folder";

/// A tool.
pub(crate) struct ToolText {
    pub(crate) tool: RunTool,
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) effect: Effect,
}

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunTool {
    Start,
    Wait,
    Status,
    Result,
    Say,
    Pause,
    Cancel,
    Cost,
    List,
}

/// What a call may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    Adds,
    Ends,
}

/// All of them.
pub(crate) const TOOLS: [ToolText; 9] = [
    ToolText {
        tool: RunTool::Start,
        name: "run_start",
        description: "Starts an autonomous agent on a goal, in a process of its own, and returns the run's id at once. \
                      The goal must say all that the agent needs to know. Then use run_wait.",
        effect: Effect::Adds,
    },
    ToolText {
        tool: RunTool::Wait,
        name: "run_wait",
        description: "Waits while a run is `running`, at most 55 seconds, and returns its status. If it is still \
                      `running`, call this again. A run that needs approval waits for a person: tell yours; you can't \
                      approve.",
        effect: Effect::Reads,
    },
    ToolText {
        tool: RunTool::Status,
        name: "run_status",
        description: "Returns a run's status, with its open questions, turns, tokens and cost.",
        effect: Effect::Reads,
    },
    ToolText {
        tool: RunTool::Result,
        name: "run_result",
        description: "Returns how a run ended, whether anything verified that, and the agent's last message.",
        effect: Effect::Reads,
    },
    ToolText {
        tool: RunTool::Say,
        name: "run_say",
        description: "Sends a message to an agent of a run; it gets the message before its next model call.",
        effect: Effect::Adds,
    },
    ToolText {
        tool: RunTool::Pause,
        name: "run_pause",
        description: "Suspends a run, or one of its agents; a person can resume it.",
        effect: Effect::Adds,
    },
    ToolText {
        tool: RunTool::Cancel,
        name: "run_cancel",
        description: "Ends a run, or one of its agents with those below it.",
        effect: Effect::Ends,
    },
    ToolText {
        tool: RunTool::Cost,
        name: "run_cost",
        description: "Returns what a run has spent: calls, tokens and money by agent and model.",
        effect: Effect::Reads,
    },
    ToolText {
        tool: RunTool::List,
        name: "run_list",
        description: "Lists runs, the newest first.",
        effect: Effect::Reads,
    },
];

/// A run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OneRun {
    /// The run's id, or the beginning of one.
    pub(crate) run: String,
}

/// For how long to wait.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wait {
    /// The run's id, or the beginning of one.
    pub(crate) run: String,
    /// Return as soon as the status is another than this one; after `needs approval`, give that.
    #[serde(default = "running")]
    pub(crate) known_status: String,
    /// At most this long; more than 55 is 55.
    #[serde(default = "seconds_max")]
    pub(crate) seconds: u64,
}

fn running() -> String {
    "running".to_owned()
}

const fn seconds_max() -> u64 {
    SECONDS_MAX
}

/// A message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Say {
    /// The run's id, or the beginning of one.
    pub(crate) run: String,
    /// The message.
    #[schemars(length(min = 1, max = 32768))]
    pub(crate) text: String,
    /// The agent's number; 0 is the first one.
    #[serde(default)]
    pub(crate) agent: u32,
}

/// A run or one of its agents.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WholeOrAgent {
    /// The run's id, or the beginning of one.
    pub(crate) run: String,
    /// The agent's number; the whole run if absent.
    pub(crate) agent: Option<u32>,
}

/// Which runs to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// Only those that a process works on.
    #[serde(default)]
    pub(crate) running: bool,
    /// Only those whose first agent works in exactly this folder: an absolute path.
    pub(crate) folder: Option<PathBuf>,
    /// At most this many.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 100))]
    pub(crate) limit: usize,
    /// `next_cursor` of the answer before.
    pub(crate) cursor: Option<String>,
}

const fn limit_default() -> usize {
    20
}

impl RunTool {
    /// The JSON Schema of its arguments.
    pub(crate) fn schema(self) -> Map<String, Value> {
        match self {
            Self::Start => start_schema(),
            Self::Wait => schema_of::<Wait>(),
            Self::Status | Self::Result | Self::Cost => schema_of::<OneRun>(),
            Self::Say => schema_of::<Say>(),
            Self::Pause | Self::Cancel => schema_of::<WholeOrAgent>(),
            Self::List => schema_of::<List>(),
        }
    }
}

/// The body of the API's request, with the key, and a folder that may be left out.
fn start_schema() -> Map<String, Value> {
    let mut schema = schema_of::<StartRun>();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let key = json!({
            "type": "string",
            "description": "A name for this request: when it comes again within a day, the same run is returned.",
        });
        properties.insert(KEY.to_owned(), key);
        let folder = json!({
            "type": "string",
            "description": "The folder to work in: an absolute path; that of this server if absent.",
        });
        properties.insert(FOLDER.to_owned(), folder);
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name != FOLDER);
    }
    schema
}

fn schema_of<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = match Value::from(schema) {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    // They say nothing to a model.
    schema.remove("title");
    schema.remove("description");
    schema
}
