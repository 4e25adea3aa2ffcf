//! OpenAI's Responses.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Answer, Call, Speech};
use crate::agent::{TOOL, TOOL_DESCRIPTION};

pub(super) struct Responses {
    pub(super) system: String,
    pub(super) schema: Box<RawValue>,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    instructions: &'a str,
    tools: [Tool<'a>; 1],
    store: bool,
    stream: bool,
    input: &'a [Message],
    max_output_tokens: u32,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'static str,
    description: &'static str,
    parameters: &'a RawValue,
    strict: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the variants are the wire's words")]
pub(super) enum Message {
    Message { role: &'static str, content: Content },
    FunctionCall { call_id: String, name: String, arguments: String },
    FunctionCallOutput { call_id: String, output: String },
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content {
    Said([Text; 1]),
    Answered(String),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Text {
    InputText { text: String },
}

/// Any event; only what is needed of it.
#[derive(Deserialize)]
struct Event {
    r#type: String,
    item: Option<Item>,
    delta: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    call_id: Option<String>,
    name: Option<String>,
}

impl Speech for Responses {
    const PATH: &'static str = "/v1/responses";
    const KEY_HEADER: &'static str = "authorization";
    type Message = Message;

    fn goal(text: &str) -> Message {
        Message::Message { role: "user", content: Content::Said([Text::InputText { text: text.to_owned() }]) }
    }

    fn answered(messages: &mut Vec<Message>, answer: &Answer) -> anyhow::Result<()> {
        let content = Content::Answered(answer.text.clone());
        messages.push(Message::Message { role: "assistant", content });
        if let Some(Call { id, name, arguments }) = &answer.call {
            let (call_id, name, arguments) = (id.clone(), name.clone(), arguments.clone());
            messages.push(Message::FunctionCall { call_id, name, arguments });
        }
        Ok(())
    }

    fn result(call: &Call, output: String) -> Message {
        Message::FunctionCallOutput { call_id: call.id.clone(), output }
    }

    fn body(&self, messages: &[Message]) -> serde_json::Result<Vec<u8>> {
        let tool = Tool {
            r#type: "function",
            name: TOOL,
            description: TOOL_DESCRIPTION,
            parameters: &self.schema,
            strict: false,
        };
        serde_json::to_vec(&Request {
            model: "gpt-5-mini",
            instructions: &self.system,
            tools: [tool],
            store: false,
            stream: true,
            input: messages,
            max_output_tokens: 8192,
        })
    }

    fn take(answer: &mut Answer, data: &str) -> serde_json::Result<()> {
        let event = serde_json::from_str::<Event>(data)?;
        match event.r#type.as_str() {
            "response.output_item.added" => {
                if let Some(Item { call_id: Some(id), name: Some(name) }) = event.item {
                    answer.call = Some(Call { id, name, arguments: String::new() });
                }
            }
            "response.output_text.delta" => answer.text.push_str(&event.delta.unwrap_or_default()),
            "response.function_call_arguments.delta" => answer.argue(&event.delta.unwrap_or_default()),
            _ => {}
        }
        Ok(())
    }
}
