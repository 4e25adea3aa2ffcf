//! A provider of all wire formats on loopback. Each answer takes 40 input and 100 output tokens.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The key that only the provider may see.
pub(crate) const KEY: &str = "sk-canary-0123456789abcdef0123456789";
/// What one answer takes.
pub(crate) const TOKENS: u64 = 140;

const MESSAGES: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude\",\"usage\":{\"input_tokens\":40,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"the answer\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":100}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);
const RESPONSES: &str = concat!(
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,\"delta\":\"the answer\"}\n\n",
    "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"model\":\"gpt\",\"output\":[{\"type\":\"message\",\"id\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"the answer\"}]}],\"usage\":{\"input_tokens\":40,\"output_tokens\":100,\"total_tokens\":140}}}\n\n",
);
const GEMINI: &str = "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"the answer\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":40,\"candidatesTokenCount\":100,\"totalTokenCount\":140}}\n\n";

/// The provider.
pub(crate) struct GatewayProvider {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

impl GatewayProvider {
    /// A provider that answers programs; the native agent, under `/native`, gets these chunks of Chat Completions in turn,
    /// the last again and again.
    pub(crate) fn new(native: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (all, native) = (Arc::clone(&seen), Arc::new(Mutex::new((0, native))));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, native) = (Arc::clone(&all), Arc::clone(&native));
                thread::spawn(move || answer(stream.unwrap(), &seen, &native));
            }
        });
        Self { port, seen }
    }

    /// The requests, each as it came.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Settings in which all wire formats go to it, each token of programs for 10 millionths of a dollar.
    pub(crate) fn settings(&self) -> String {
        let port = self.port;
        let mut settings = "[gateway]\nanthropic = \"na\"\nopenai = \"no\"\ngemini = \"ng\"\n".to_owned();
        for (name, wire, path) in [
            ("na", "anthropic", ""),
            ("no", "openai-responses", "/v1"),
            ("ng", "gemini", ""),
            ("nn", "openai-chat", "/native/v1"),
        ] {
            settings.push_str(&format!(
                "[providers.{name}]\nwire = \"{wire}\"\nbase_url = \"http://127.0.0.1:{port}{path}\"\n\
                 api_key_env = \"NEAR_KEY\"\n"
            ));
        }
        for (model, price) in [("na/claude", "10"), ("no/gpt", "10"), ("ng/flash", "10"), ("nn/gpt", "0.1")] {
            settings.push_str(&format!(
                "[models.\"{model}\"]\nwindow_tokens = 200_000\noutput_tokens_max = 1_000\ninput_usd = {price}\n\
                 output_usd = {price}\n"
            ));
        }
        settings
    }
}

/// Chunks that call these tools with a goal, or, without any, say that all is done.
pub(crate) fn chunks(tools: &[&str]) -> String {
    let delta = if tools.is_empty() {
        "{\"content\":\"Done.\\n\\nVERDICT: PASS\"}".to_owned()
    } else {
        let calls = tools.iter().enumerate().map(|(index, name)| {
            format!(
                "{{\"index\":{index},\"id\":\"c{index}\",\"type\":\"function\",\"function\":{{\"name\":\"{name}\",\"arguments\":\"{{\\\"goal\\\":\\\"work\\\"}}\"}}}}"
            )
        });
        format!("{{\"tool_calls\":[{}]}}", calls.collect::<Vec<_>>().join(","))
    };
    let finish = if tools.is_empty() { "stop" } else { "tool_calls" };
    format!(
        "data: {{\"model\":\"gpt\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":\"{finish}\"}}]}}\n\n\
         data: {{\"model\":\"gpt\",\"choices\":[],\"usage\":{{\"prompt_tokens\":40,\"completion_tokens\":100}}}}\n\n\
         data: [DONE]\n\n"
    )
}

fn answer(mut stream: TcpStream, seen: &Mutex<Vec<String>>, native: &Mutex<(usize, Vec<String>)>) {
    let Some(request) = read(&mut stream) else { return };
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    seen.lock().unwrap().push(request);
    let text = "data: {\"model\":\"gpt\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"the answer\"},\"finish_reason\":\"stop\"}]}\n\n\
        data: {\"model\":\"gpt\",\"choices\":[],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":100}}\n\ndata: [DONE]\n\n";
    let body = if path.starts_with("/native") {
        let mut native = native.lock().unwrap();
        let place = native.0.min(native.1.len().saturating_sub(1));
        native.0 += 1;
        native.1[place].clone()
    } else if path.contains("/messages") {
        MESSAGES.to_owned()
    } else if path.contains("/responses") {
        RESPONSES.to_owned()
    } else if path.contains(":streamGenerateContent") {
        GEMINI.to_owned()
    } else {
        text.to_owned()
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
}

fn read(stream: &mut TcpStream) -> Option<String> {
    let (mut bytes, mut part) = (Vec::new(), [0; 65_536]);
    loop {
        let count = stream.read(&mut part).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        if body.len() >= length.unwrap_or_default() {
            return Some(text.into_owned());
        }
    }
}
