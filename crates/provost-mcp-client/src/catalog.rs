//! The tools of all servers of a run, as the user has agreed to them: nothing is started to know them.

use std::sync::Arc;

use provost_engine::tokens_of;
use provost_event::ToolSpec;
use provost_harness::ToolRegistry;

use crate::oauth::tokens;
use crate::tool::McpTool;
use crate::tool_search::{ToolSearch, search_spec};
use crate::{McpServers, PinsFile, ServerSetup, ToolDefinition, tool_name};

/// The tool by which a model finds tools of servers that it isn't shown in full.
pub const TOOL_SEARCH: &str = "tool_search";

/// A server with its tools, as the user has agreed to them.
#[derive(Debug, Clone)]
pub struct ServerTools {
    /// The server.
    pub setup: Arc<ServerSetup>,
    /// Its tools that agents may have.
    pub tools: Vec<ToolDefinition>,
}

/// The tools of all servers of a run.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    servers: Vec<ServerTools>,
}

impl Catalog {
    /// What the user has agreed to of these servers, and notices about those that have no tools.
    #[must_use]
    pub fn read(setups: Vec<ServerSetup>) -> (Self, Vec<String>) {
        let mut catalog = Self::default();
        let mut notices = Vec::new();
        for setup in setups {
            match agreed(&setup) {
                Ok(tools) => {
                    let tools = fitting(&setup, tools, &mut notices);
                    catalog.servers.push(ServerTools { setup: Arc::new(setup), tools });
                }
                Err(notice) => notices.push(notice),
            }
        }
        (catalog, notices)
    }

    /// The servers with tools.
    #[must_use]
    pub fn servers(&self) -> &[ServerTools] {
        &self.servers
    }

    /// Whether there is no tool.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.servers.iter().all(|server| server.tools.is_empty())
    }

    /// The tokens of the user's logins at its servers, which no text may show.
    #[must_use]
    pub fn login_tokens(&self) -> Vec<String> {
        self.servers.iter().flat_map(|server| tokens(&server.setup.reach)).collect()
    }

    /// All tools in full.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.servers.iter().flat_map(specs_of).collect()
    }

    /// The tools that a model is shown: all in full; or, if they are estimated to take more than `tokens_max`, those of
    /// servers that are always loaded, and [`TOOL_SEARCH`] with the names of the others.
    #[must_use]
    pub fn offered(&self, tokens_max: u64) -> Vec<ToolSpec> {
        if !self.is_searched(tokens_max) {
            return self.specs();
        }
        let loaded = self.servers.iter().filter(|server| server.setup.always_load);
        let mut specs = loaded.flat_map(specs_of).collect::<Vec<_>>();
        specs.push(search_spec(&self.to_search()));
        specs
    }

    /// Whether the tools are searched for instead of shown.
    #[must_use]
    pub fn is_searched(&self, tokens_max: u64) -> bool {
        let found = self.to_search();
        !found.is_empty()
            && found.iter().flat_map(specs_of).map(|spec| estimated_tokens(&spec)).sum::<u64>() > tokens_max
    }

    fn to_search(&self) -> Vec<ServerTools> {
        self.servers
            .iter()
            .filter(|server| !server.setup.always_load && !server.tools.is_empty())
            .cloned()
            .collect()
    }

    /// All of them, to be called, and what finds them.
    #[must_use]
    pub fn registry(&self, servers: &McpServers) -> ToolRegistry {
        let mut registry = ToolRegistry::new();
        for server in &self.servers {
            for tool in &server.tools {
                registry = registry.with(McpTool::new(servers.clone(), Arc::clone(&server.setup), tool));
            }
        }
        if self.is_empty() { registry } else { registry.with(ToolSearch::new(self.to_search())) }
    }
}

fn agreed(setup: &ServerSetup) -> Result<Vec<ToolDefinition>, String> {
    let name = &setup.name;
    let pins = PinsFile::at(setup.pins.clone()).read();
    let pins = pins.map_err(|error| format!("the MCP server {name} isn't used: {error}"))?;
    let Some(pins) = pins else {
        return Err(format!(
            "the MCP server {name} isn't used: you haven't agreed to it; `provost mcp trust {name}` shows its tools and asks"
        ));
    };
    if pins.written != setup.written {
        return Err(format!(
            "the MCP server {name} isn't used: how it is reached has changed since you agreed to it; \
             `provost mcp trust {name}` shows the difference and asks"
        ));
    }
    Ok(pins.tools.into_iter().filter(|tool| setup.offers(&tool.name)).collect())
}

/// The tools without those whose subject in the settings can't be theirs: permissions would look at nothing.
fn fitting(
    setup: &ServerSetup,
    tools: Vec<ToolDefinition>,
    notices: &mut Vec<String>,
) -> Vec<ToolDefinition> {
    let server = &setup.name;
    let fits = |tool: &ToolDefinition| {
        let subject = setup.subjects.get(&tool.name);
        let Some(why) = subject.and_then(|subject| tool.objection_to_subject(subject)) else { return true };
        let name = tool_name(server, &tool.name);
        notices.push(format!("{name} isn't used: {why}, and `subjects` of [mcp.{server}] names that"));
        false
    };
    tools.into_iter().filter(fits).collect()
}

pub(crate) fn specs_of(server: &ServerTools) -> Vec<ToolSpec> {
    server.tools.iter().map(|tool| tool.spec(&server.setup)).collect()
}

/// The name under which a model knows a tool.
pub(crate) fn known_name(server: &ServerTools, tool: &ToolDefinition) -> String {
    tool_name(&server.setup.name, &tool.name)
}

/// Tokens of a tool in a request, by a conservative estimate.
#[must_use]
pub fn estimated_tokens(spec: &ToolSpec) -> u64 {
    tokens_of(&spec.name)
        .saturating_add(tokens_of(&spec.description))
        .saturating_add(tokens_of(spec.input_schema.text()))
}
