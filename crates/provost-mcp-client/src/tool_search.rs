//! The tool by which a model finds tools of servers, where there are too many to show.

use async_trait::async_trait;
use provost_event::{Access, Json, ToolSpec, ToolSubject};
use provost_harness::{Tool, ToolContext, ToolOutput};
use serde::Deserialize;
use serde_json::json;

use crate::catalog::{ServerTools, TOOL_SEARCH, known_name};
use crate::shown::without_hidden;

/// Bytes of all names in the description: with them, the tools of servers cost a request less than 2,000 tokens.
const NAMES_BYTES_MAX: usize = 5_000;
/// Tools that a search loads, unless the call says otherwise.
const FOUND: usize = 5;
/// The most that a search loads.
const FOUND_MAX: usize = 20;
/// Characters of a description in a result.
const DESCRIPTION_CHARS_MAX: usize = 300;

/// Finds tools and has the agent given them.
pub(crate) struct ToolSearch {
    spec: ToolSpec,
    servers: Vec<ServerTools>,
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    query: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    limit: Option<usize>,
}

/// The tool for a model, with the names of the tools that it finds.
pub(crate) fn search_spec(servers: &[ServerTools]) -> ToolSpec {
    let description = format!(
        "Gives you tools of MCP servers, which you don't have until you search for them: from your next turn on you have \
         those that it finds, by the names mcp__SERVER__TOOL. Search by words of what you want to do, or by names. The \
         servers and their tools:\n{}",
        names_of(servers)
    );
    let schema = json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "description": "Words of what the tool does." },
            "names": {
                "type": "array", "items": { "type": "string" },
                "description": "Names of tools, as listed or whole."
            },
            "limit": { "type": "integer", "minimum": 1, "maximum": FOUND_MAX, "description": "The most results. Default: 5." }
        },
        "additionalProperties": false
    });
    let schema = Json::of(&schema).unwrap_or_else(|_| Json::empty_object());
    ToolSpec {
        access: Access::Reads,
        subject: ToolSubject::Own,
        summary_field: Some("query".to_owned()),
        idempotent: true,
        ..ToolSpec::new(TOOL_SEARCH, description, schema)
    }
}

/// The tool for models, where there is nothing to find: for programs that list what tools there are.
#[must_use]
pub fn search_tool() -> ToolSpec {
    search_spec(&[])
}

/// The names by server. Each server gets a share of the room; those that need less leave it to the others.
fn names_of(servers: &[ServerTools]) -> String {
    let mut lines = Vec::new();
    let mut room = NAMES_BYTES_MAX;
    let mut by_need = servers.iter().collect::<Vec<_>>();
    by_need.sort_by_key(|server| server.tools.iter().map(|tool| tool.name.len()).sum::<usize>());
    for (index, server) in by_need.iter().enumerate() {
        let share = room / by_need.len().saturating_sub(index).max(1);
        let line = line_of(server, share);
        room = room.saturating_sub(line.len());
        lines.push(line);
    }
    lines.sort();
    lines.join("\n")
}

fn line_of(server: &ServerTools, bytes_max: usize) -> String {
    let mut line = format!("{}:", server.setup.name);
    for (index, tool) in server.tools.iter().enumerate() {
        let gap = if index == 0 { " " } else { ", " };
        if line.len().saturating_add(gap.len()).saturating_add(tool.name.len()) > bytes_max {
            line.push_str(&format!("{gap}and {} more", server.tools.len().saturating_sub(index)));
            break;
        }
        line.push_str(gap);
        line.push_str(&tool.name);
    }
    line
}

/// A tool that may be found.
struct Candidate {
    spec: ToolSpec,
    score: u32,
}

impl ToolSearch {
    pub(crate) fn new(servers: Vec<ServerTools>) -> Self {
        Self { spec: search_spec(&servers), servers }
    }

    fn found(&self, arguments: &Arguments) -> Vec<ToolSpec> {
        let words = words_of(&arguments.query);
        let mut found = Vec::new();
        for server in &self.servers {
            for tool in &server.tools {
                let name = known_name(server, tool);
                let is_named = arguments.names.iter().any(|wanted| {
                    let wanted = wanted.trim();
                    wanted == name || wanted == tool.name
                });
                let score = if is_named { u32::MAX } else { score(&words, &name, &tool.description) };
                if score > 0 {
                    found.push(Candidate { spec: tool.spec(&server.setup), score });
                }
            }
        }
        found.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.spec.name.cmp(&b.spec.name)));
        let limit = arguments.limit.unwrap_or(FOUND.max(arguments.names.len())).clamp(1, FOUND_MAX);
        found.into_iter().take(limit).map(|candidate| candidate.spec).collect()
    }
}

fn words_of(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 1);
    words.map(str::to_lowercase).collect()
}

/// How well a tool fits: words of its name count more than those of its description.
fn score(wanted: &[String], name: &str, description: &str) -> u32 {
    let name = words_of(&name.replace('_', " "));
    let text = words_of(description);
    let alike = |one: &str, other: &str| {
        one == other
            || (one.len() > 3 && other.len() > 3 && (one.starts_with(other) || other.starts_with(one)))
    };
    let of_word = |word: &String| {
        if name.iter().any(|known| known == word) {
            6
        } else if name.iter().any(|known| alike(known, word)) {
            4
        } else if text.iter().any(|known| known == word) {
            2
        } else {
            u32::from(text.iter().any(|known| alike(known, word)))
        }
    };
    wanted.iter().map(of_word).sum()
}

#[async_trait]
impl Tool for ToolSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Json, _context: &ToolContext) -> ToolOutput {
        let arguments = match input.read::<Arguments>() {
            Ok(arguments) => arguments,
            Err(error) => {
                return ToolOutput::rejected(format!("The arguments don't fit `{TOOL_SEARCH}`: {error}"));
            }
        };
        if arguments.query.trim().is_empty() && arguments.names.is_empty() {
            return ToolOutput::rejected("Give a `query` with words of what you want to do, or `names`.");
        }
        let found = self.found(&arguments);
        if found.is_empty() {
            return ToolOutput::ok(
                "No tool fits. Try other words, or a name of the list in this tool's description.",
            );
        }
        let mut text = "You have these tools from your next turn on:".to_owned();
        for spec in &found {
            let about = without_hidden(&spec.description);
            let about = about.chars().take(DESCRIPTION_CHARS_MAX).collect::<String>();
            text.push_str(&format!("\n- {}: {about}", spec.name));
        }
        ToolOutput { tools: found, ..ToolOutput::ok(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::score;

    fn best(query: &str) -> &'static str {
        let tools = [
            ("mcp__git__git_log", "Shows the commit logs"),
            ("mcp__git__git_create_branch", "Creates a new branch from an optional base branch"),
            ("mcp__time__convert_time", "Convert time between timezones"),
            ("mcp__fs__write_file", "Create a new file or overwrite an existing one"),
        ];
        let words = super::words_of(query);
        tools
            .into_iter()
            .max_by_key(|(name, about)| score(&words, name, about))
            .map(|(name, _)| name)
            .unwrap()
    }

    #[test]
    fn words_of_a_task_find_the_tool_for_it() {
        assert_eq!(best("git log of the last commits"), "mcp__git__git_log");
        assert_eq!(best("create a branch"), "mcp__git__git_create_branch");
        assert_eq!(best("time zones"), "mcp__time__convert_time");
        assert_eq!(best("writing files"), "mcp__fs__write_file");
    }
}
