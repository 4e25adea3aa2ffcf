//! The least that a client can do: keep the messages, send them all each turn, read the answer.

use std::path::Path;

use anyhow::{Context as _, ensure};
use provost_harness::system_prompt;
use reqwest::Client;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::agent::{GOAL, TOOL, TOOL_DESCRIPTION, TOOL_SCHEMA, tool_output};
use crate::measure::Start;
use crate::sample::Sample;

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    system: &'a str,
    tools: &'a [Tool],
    stream: bool,
    messages: &'a [Message],
    max_tokens: u32,
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    description: &'static str,
    input_schema: Box<RawValue>,
}

#[derive(Serialize)]
struct Message {
    role: &'static str,
    content: Vec<Block>,
}

#[derive(Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text { text: String },
    ToolUse { id: String, name: String, input: Box<RawValue> },
    ToolResult { tool_use_id: String, content: String },
}

/// Any event; only what is needed of it.
#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    content_block: Option<BlockStart>,
    #[serde(default)]
    delta: Option<Delta>,
}

#[derive(Deserialize)]
struct BlockStart {
    id: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
    partial_json: Option<String>,
}

/// A conversation with `calls` tool calls.
pub(super) async fn converse(calls: usize, base_url: &str) -> anyhow::Result<Sample> {
    let client = Client::builder().no_proxy().tcp_nodelay(true).build()?;
    let system = system_prompt(Path::new("/workspace"), "");
    let schema = RawValue::from_string(TOOL_SCHEMA.to_owned())?;
    let tools = [Tool { name: TOOL, description: TOOL_DESCRIPTION, input_schema: schema }];
    let mut messages = vec![user(Block::Text { text: GOAL.to_owned() })];
    let (mut turns, mut sent_bytes) = (0, 0);
    let start = Start::now()?;
    loop {
        let body = serde_json::to_vec(&Request {
            model: "claude-sonnet-4-5",
            system: &system,
            tools: &tools,
            stream: true,
            messages: &messages,
            max_tokens: 8192,
        })?;
        sent_bytes += body.len();
        let answer = ask(&client, base_url, body).await?;
        turns += 1;
        let called = answer.iter().find_map(|block| match block {
            Block::ToolUse { id, .. } => Some(id.clone()),
            Block::Text { .. } | Block::ToolResult { .. } => None,
        });
        messages.push(Message { role: "assistant", content: answer });
        let Some(tool_use_id) = called else { break };
        messages.push(user(Block::ToolResult { tool_use_id, content: tool_output() }));
    }
    ensure!(turns == calls + 1, "{turns} turns");
    Ok(Sample { sent_bytes, ..start.sample(turns)? })
}

fn user(block: Block) -> Message {
    Message { role: "user", content: vec![block] }
}

async fn ask(client: &Client, base_url: &str, body: Vec<u8>) -> anyhow::Result<Vec<Block>> {
    let mut response = client
        .post(format!("{base_url}/v1/messages"))
        .header("content-type", "application/json")
        .header("x-api-key", "bench")
        .header("anthropic-version", "2023-06-01")
        .body(body)
        .send()
        .await?
        .error_for_status()?;
    let mut received = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        received.extend_from_slice(&chunk);
    }
    let text = std::str::from_utf8(&received).context("the answer isn't text")?;
    let (mut said, mut call, mut arguments) = (String::new(), None, String::new());
    for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event = serde_json::from_str::<Event>(data)?;
        if let Some(BlockStart { id: Some(id), name: Some(name) }) = event.content_block {
            call = Some((id, name));
        }
        if let Some(delta) = event.delta {
            said.push_str(&delta.text.unwrap_or_default());
            arguments.push_str(&delta.partial_json.unwrap_or_default());
        }
    }
    let mut blocks = vec![Block::Text { text: said }];
    if let Some((id, name)) = call {
        blocks.push(Block::ToolUse { id, name, input: RawValue::from_string(arguments)? });
    }
    Ok(blocks)
}
