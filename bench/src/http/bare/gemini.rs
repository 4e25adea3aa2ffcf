//! Google's Gemini API.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Answer, Call, Speech};
use crate::agent::{TOOL, TOOL_DESCRIPTION};

pub(super) struct Gemini {
    pub(super) system: String,
    pub(super) schema: Box<RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    system_instruction: Instruction<'a>,
    tools: [Tools<'a>; 1],
    contents: &'a [Message],
    generation_config: Config,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: [TextPart<'a>; 1],
}

#[derive(Serialize)]
struct TextPart<'a> {
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: [Tool<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    name: &'static str,
    description: &'static str,
    parameters_json_schema: &'a RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    max_output_tokens: u32,
}

#[derive(Serialize)]
pub(super) struct Message {
    role: &'static str,
    parts: Vec<Part>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Part {
    Text(String),
    FunctionCall { name: String, args: Box<RawValue> },
    FunctionResponse { name: String, response: Output },
}

#[derive(Serialize)]
struct Output {
    output: String,
}

/// Any chunk; only what is needed of it.
#[derive(Deserialize)]
struct Chunk {
    candidates: Vec<Candidate>,
}

#[derive(Deserialize)]
struct Candidate {
    content: Content,
}

#[derive(Deserialize)]
struct Content {
    parts: Vec<Given>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    text: Option<String>,
    function_call: Option<GivenCall>,
}

#[derive(Deserialize)]
struct GivenCall {
    name: String,
    args: Box<RawValue>,
}

impl Speech for Gemini {
    const PATH: &'static str = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
    const KEY_HEADER: &'static str = "x-goog-api-key";
    type Message = Message;

    fn goal(text: &str) -> Message {
        Message { role: "user", parts: vec![Part::Text(text.to_owned())] }
    }

    fn answered(messages: &mut Vec<Message>, answer: &Answer) -> anyhow::Result<()> {
        let mut parts = vec![Part::Text(answer.text.clone())];
        if let Some(Call { name, arguments, .. }) = &answer.call {
            let args = RawValue::from_string(arguments.clone())?;
            parts.push(Part::FunctionCall { name: name.clone(), args });
        }
        messages.push(Message { role: "model", parts });
        Ok(())
    }

    fn result(call: &Call, output: String) -> Message {
        let response = Part::FunctionResponse { name: call.name.clone(), response: Output { output } };
        Message { role: "user", parts: vec![response] }
    }

    fn body(&self, messages: &[Message]) -> serde_json::Result<Vec<u8>> {
        let tool = Tool { name: TOOL, description: TOOL_DESCRIPTION, parameters_json_schema: &self.schema };
        serde_json::to_vec(&Request {
            system_instruction: Instruction { parts: [TextPart { text: &self.system }] },
            tools: [Tools { function_declarations: [tool] }],
            contents: messages,
            generation_config: Config { max_output_tokens: 8192 },
        })
    }

    fn take(answer: &mut Answer, data: &str) -> serde_json::Result<()> {
        for part in serde_json::from_str::<Chunk>(data)?.candidates.into_iter().flat_map(|c| c.content.parts)
        {
            answer.text.push_str(&part.text.unwrap_or_default());
            if let Some(call) = part.function_call {
                let arguments = call.args.get().to_owned();
                answer.call = Some(Call { id: String::new(), name: call.name, arguments });
            }
        }
        Ok(())
    }
}
