//! OpenAI's Chat Completions.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Answer, Call, Speech};
use crate::agent::{TOOL, TOOL_DESCRIPTION};

pub(super) struct Chat {
    pub(super) system: String,
    pub(super) schema: Box<RawValue>,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    tools: [Tool<'a>; 1],
    stream: bool,
    stream_options: StreamOptions,
    messages: Vec<&'a Message>,
    max_completion_tokens: u32,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'static str,
    description: &'static str,
    parameters: &'a RawValue,
}

#[derive(Serialize)]
pub(super) struct Message {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

#[derive(Serialize)]
struct ToolCall {
    id: String,
    r#type: &'static str,
    function: Called,
}

#[derive(Serialize)]
struct Called {
    name: String,
    arguments: String,
}

/// Any chunk; only what is needed of it.
#[derive(Deserialize)]
struct Chunk {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Delta,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<CallDelta>,
}

#[derive(Deserialize)]
struct CallDelta {
    id: Option<String>,
    function: FunctionDelta,
}

#[derive(Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: String,
}

fn message(role: &'static str, content: String) -> Message {
    Message { role, content, tool_calls: Vec::new(), tool_call_id: None }
}

impl Speech for Chat {
    const PATH: &'static str = "/v1/chat/completions";
    const KEY_HEADER: &'static str = "authorization";
    type Message = Message;

    fn goal(text: &str) -> Message {
        message("user", text.to_owned())
    }

    fn answered(messages: &mut Vec<Message>, answer: &Answer) -> anyhow::Result<()> {
        let called = answer.call.iter().map(|call| ToolCall {
            id: call.id.clone(),
            r#type: "function",
            function: Called { name: call.name.clone(), arguments: call.arguments.clone() },
        });
        messages.push(Message { tool_calls: called.collect(), ..message("assistant", answer.text.clone()) });
        Ok(())
    }

    fn result(call: &Call, output: String) -> Message {
        Message { tool_call_id: Some(call.id.clone()), ..message("tool", output) }
    }

    fn body(&self, messages: &[Message]) -> serde_json::Result<Vec<u8>> {
        let system = message("system", self.system.clone());
        let function = Function { name: TOOL, description: TOOL_DESCRIPTION, parameters: &self.schema };
        serde_json::to_vec(&Request {
            model: "gpt-5-mini",
            tools: [Tool { r#type: "function", function }],
            stream: true,
            stream_options: StreamOptions { include_usage: true },
            messages: std::iter::once(&system).chain(messages).collect(),
            max_completion_tokens: 8192,
        })
    }

    fn take(answer: &mut Answer, data: &str) -> serde_json::Result<()> {
        for choice in serde_json::from_str::<Chunk>(data)?.choices {
            answer.text.push_str(&choice.delta.content.unwrap_or_default());
            for CallDelta { id, function } in choice.delta.tool_calls {
                if let Some((id, name)) = id.zip(function.name) {
                    answer.call = Some(Call { id, name, arguments: String::new() });
                }
                answer.argue(&function.arguments);
            }
        }
        Ok(())
    }
}
