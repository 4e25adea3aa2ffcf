//! The least that a client can do: keep the messages, send them all each turn, read the answer.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use std::path::Path;

use anyhow::{Context as _, ensure};
use provost_harness::system_prompt;
use provost_llm::WireFormat;
use reqwest::Client;
use serde_json::value::RawValue;

use crate::agent::{GOAL, TOOL_SCHEMA, tool_output};
use crate::measure::Start;
use crate::sample::Sample;

/// A call of the tool.
struct Call {
    id: String,
    name: String,
    arguments: String,
}

/// An answer as it comes.
#[derive(Default)]
struct Answer {
    text: String,
    call: Option<Call>,
}

impl Answer {
    fn argue(&mut self, arguments: &str) {
        if let Some(call) = &mut self.call {
            call.arguments.push_str(arguments);
        }
    }
}

/// One wire format.
trait Speech {
    const PATH: &'static str;
    const KEY_HEADER: &'static str;
    type Message;

    fn goal(text: &str) -> Self::Message;
    fn answered(messages: &mut Vec<Self::Message>, answer: &Answer) -> anyhow::Result<()>;
    fn result(call: &Call, output: String) -> Self::Message;
    fn body(&self, messages: &[Self::Message]) -> serde_json::Result<Vec<u8>>;
    fn take(answer: &mut Answer, data: &str) -> serde_json::Result<()>;
}

/// A conversation with `calls` tool calls.
pub(super) async fn converse(wire: WireFormat, calls: usize, base_url: &str) -> anyhow::Result<Sample> {
    let system = system_prompt(Path::new("/workspace"), "");
    let schema = RawValue::from_string(TOOL_SCHEMA.to_owned())?;
    match wire {
        WireFormat::Anthropic => talk(&anthropic::Anthropic { system, schema }, calls, base_url).await,
        WireFormat::OpenaiResponses => talk(&responses::Responses { system, schema }, calls, base_url).await,
        WireFormat::OpenaiChat => talk(&chat::Chat { system, schema }, calls, base_url).await,
        WireFormat::Gemini => talk(&gemini::Gemini { system, schema }, calls, base_url).await,
    }
}

async fn talk<S: Speech>(speech: &S, calls: usize, base_url: &str) -> anyhow::Result<Sample> {
    let client = Client::builder().no_proxy().tcp_nodelay(true).build()?;
    let url = format!("{base_url}{}", S::PATH);
    let mut messages = vec![S::goal(GOAL)];
    let mut turns = 0;
    let start = Start::now()?;
    loop {
        let answer = ask::<S>(&client, &url, speech.body(&messages)?).await?;
        turns += 1;
        S::answered(&mut messages, &answer)?;
        let Some(call) = answer.call else { break };
        messages.push(S::result(&call, tool_output()));
    }
    ensure!(turns == calls + 1, "{turns} turns");
    start.sample(turns)
}

async fn ask<S: Speech>(client: &Client, url: &str, body: Vec<u8>) -> anyhow::Result<Answer> {
    let request = client.post(url).header("content-type", "application/json").header(S::KEY_HEADER, "bench");
    let mut response = request.body(body).send().await?.error_for_status()?;
    let mut received = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        received.extend_from_slice(&chunk);
    }
    let text = std::str::from_utf8(&received).context("the answer isn't text")?;
    let mut answer = Answer::default();
    for data in text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]") {
        S::take(&mut answer, data)?;
    }
    Ok(answer)
}
