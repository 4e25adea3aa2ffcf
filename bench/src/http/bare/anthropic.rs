//! Anthropic's Messages.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Answer, Call, Speech};
use crate::agent::{TOOL, TOOL_DESCRIPTION};

pub(super) struct Anthropic {
    pub(super) system: String,
    pub(super) schema: Box<RawValue>,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    system: &'a str,
    tools: [Tool<'a>; 1],
    stream: bool,
    messages: &'a [Message],
    max_tokens: u32,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'static str,
    description: &'static str,
    input_schema: &'a RawValue,
}

#[derive(Serialize)]
pub(super) struct Message {
    role: &'static str,
    content: Vec<Block>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text { text: String },
    ToolUse { id: String, name: String, input: Box<RawValue> },
    ToolResult { tool_use_id: String, content: String },
}

/// Any event; only what is needed of it.
#[derive(Deserialize)]
struct Event {
    content_block: Option<BlockStart>,
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

impl Speech for Anthropic {
    const PATH: &'static str = "/v1/messages";
    const KEY_HEADER: &'static str = "x-api-key";
    type Message = Message;

    fn goal(text: &str) -> Message {
        Message { role: "user", content: vec![Block::Text { text: text.to_owned() }] }
    }

    fn answered(messages: &mut Vec<Message>, answer: &Answer) -> anyhow::Result<()> {
        let mut content = vec![Block::Text { text: answer.text.clone() }];
        if let Some(Call { id, name, arguments }) = &answer.call {
            let input = RawValue::from_string(arguments.clone())?;
            content.push(Block::ToolUse { id: id.clone(), name: name.clone(), input });
        }
        messages.push(Message { role: "assistant", content });
        Ok(())
    }

    fn result(call: &Call, output: String) -> Message {
        let result = Block::ToolResult { tool_use_id: call.id.clone(), content: output };
        Message { role: "user", content: vec![result] }
    }

    fn body(&self, messages: &[Message]) -> serde_json::Result<Vec<u8>> {
        let tool = Tool { name: TOOL, description: TOOL_DESCRIPTION, input_schema: &self.schema };
        serde_json::to_vec(&Request {
            model: "claude-sonnet-4-5",
            system: &self.system,
            tools: [tool],
            stream: true,
            messages,
            max_tokens: 8192,
        })
    }

    fn take(answer: &mut Answer, data: &str) -> serde_json::Result<()> {
        let event = serde_json::from_str::<Event>(data)?;
        if let Some(BlockStart { id: Some(id), name: Some(name) }) = event.content_block {
            answer.call = Some(Call { id, name, arguments: String::new() });
        }
        if let Some(delta) = event.delta {
            answer.text.push_str(&delta.text.unwrap_or_default());
            answer.argue(&delta.partial_json.unwrap_or_default());
        }
        Ok(())
    }
}
