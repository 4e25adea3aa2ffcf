//! rig's own agent loop, streaming, with its Anthropic provider.

use std::convert::Infallible;
use std::path::Path;

use anyhow::{bail, ensure};
use futures::StreamExt as _;
use provost_harness::system_prompt;
use rig_agent::agent::MultiTurnStreamItem;
use rig_agent::prelude::AgentBuilder;
use rig_core::providers::anthropic::wire::AnthropicConfig;
use rig_core::tool::PortableTool;
use serde::Deserialize;

use crate::agent::{GOAL, TOOL, TOOL_DESCRIPTION, TOOL_SCHEMA, tool_output};
use crate::measure::Start;
use crate::sample::Sample;

struct Noop;

#[derive(Deserialize)]
struct Arguments {
    #[serde(rename = "n")]
    _n: u64,
}

impl PortableTool for Noop {
    const NAME: &'static str = TOOL;
    type Args = Arguments;
    type Output = String;
    type Error = Infallible;

    fn description(&self) -> String {
        TOOL_DESCRIPTION.to_owned()
    }

    fn parameters(&self) -> serde_json::Value {
        // The schema is valid JSON.
        serde_json::from_str(TOOL_SCHEMA).unwrap_or_default()
    }

    async fn call(&self, _arguments: Arguments) -> Result<String, Infallible> {
        Ok(tool_output())
    }
}

/// A conversation with `calls` tool calls.
pub(super) async fn converse(calls: usize, base_url: &str) -> anyhow::Result<Sample> {
    let client = AnthropicConfig::new("bench").with_base_url(base_url).client();
    let agent = AgentBuilder::new(client.completion("claude-sonnet-4-5"))
        .preamble(system_prompt(Path::new("/workspace"), ""))
        .max_tokens(8192)
        .tool(Noop)
        .build();
    let start = Start::now()?;
    let mut items = agent.prompt(GOAL).max_turns(calls + 1).stream();
    let (mut done, mut is_over) = (0, false);
    while let Some(item) = items.next().await {
        match item? {
            MultiTurnStreamItem::ToolCall { .. } => done += 1,
            MultiTurnStreamItem::FinalResponse(_) => is_over = true,
            _ => {}
        }
    }
    ensure!(done == calls, "{done} calls");
    if !is_over {
        bail!("the loop ended without an answer");
    }
    start.sample(calls + 1)
}
