//! A provider on loopback that answers as it is told, in the order of the requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use provost_llm::{ModelFacts, Provider, ProviderSettings, WireFormat};
use secrecy::SecretString;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const BEGIN: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude\",\"usage\":",
    "{\"input_tokens\":20,\"output_tokens\":1}}}\n\n",
);
const END: &str = concat!(
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},",
    "\"usage\":{\"output_tokens\":9}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

/// What the provider does with a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reply {
    /// A stream that pauses for this long after its first event.
    Streams(Duration),
    /// A failure with this status and message.
    Fails(u16, &'static str),
}

pub(crate) const AT_ONCE: Reply = Reply::Streams(Duration::ZERO);

/// Settings with a provider `a` that gives these replies; one more than these is refused.
pub(crate) async fn provider(replies: impl IntoIterator<Item = Reply>) -> ProviderSettings {
    let replies = Arc::new(Mutex::new(replies.into_iter().collect::<VecDeque<_>>()));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let reply = replies.lock().expect("replies").pop_front();
            tokio::spawn(answer(stream, reply.unwrap_or(Reply::Fails(418, "no more answers"))));
        }
    });
    let mut settings = ProviderSettings::new("/");
    let url = format!("http://{address}");
    let provider = Provider { key_required: true, ..Provider::new("a", WireFormat::Anthropic, url) };
    settings.providers = settings.providers.with(provider);
    settings.keys.insert("a".to_owned(), SecretString::from("sk-canary-0123456789"));
    settings.catalog =
        settings.catalog.with(ModelFacts { name: "a/claude".to_owned(), ..ModelFacts::default() });
    settings
}

async fn answer(mut stream: TcpStream, reply: Reply) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !is_whole(&request) {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    match reply {
        Reply::Streams(pause) => {
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_owned();
            stream.write_all((head + BEGIN).as_bytes()).await?;
            stream.flush().await?;
            tokio::time::sleep(pause).await;
            stream.write_all(END.as_bytes()).await?;
        }
        Reply::Fails(status, message) => {
            let kind = match status {
                400 => "invalid_request_error",
                401 => "authentication_error",
                _ => "api_error",
            };
            let body = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}"#);
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all((head + &body).as_bytes()).await?;
        }
    }
    stream.shutdown().await
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    body.len() >= length.unwrap_or_default()
}
