//! The Agent Client Protocol, version 1: JSON-RPC 2.0 by lines over standard input and output
//! (<https://agentclientprotocol.com>). Provost is the client; it offers neither files nor terminals, so the agent
//! uses its own tools and asks with `session/request_permission`.
//!
//! The official crate isn't used, for three reasons. Its types are those of one schema release, while real agents
//! differ from it (usage in `_meta`, null fields), and a message that doesn't fit ends a call. Its connection owns
//! the reading and its tasks, while this has to be a pure reader that can be dropped between two lines, limits
//! line lengths and tolerates foreign lines. A supervisor needs a seventh of the protocol, for a
//! compile time of 33 s.
//!
//! A refusal has no text here: the reason is the next prompt. Consent is for one time: the question of an agent that only
//! offers "always" can't be approved. Two open questions with the same id can't be told apart by their answers: both are
//! refused.

mod asking;
mod updates;

use std::collections::BTreeMap;

use provost_event::ErrorClass;
use serde_json::{Value, json};

use super::format::{Format, NoReply, Opening, Reply};
use super::rpc::{self, RpcReader};
use super::stream_item::{Done, Failing, ParsedLine, StreamItem, Used, class_of_status};
use super::value::{first_text, text};
use asking::{AskedCall, OpenAsk};
use updates::{ToolCalls, usage};

/// The protocol version.
const PROTOCOL_VERSION: u64 = 1;

/// The protocol's error codes.
const METHOD_NOT_FOUND: i64 = -32_601;
const AUTH_REQUIRED: i64 = -32_000;

/// Maximum open questions; further ones are refused at once.
const ASKS_MAX: usize = 64;

pub(super) struct Acp {
    folder: String,
    wanted: Option<String>,
    pid: u32,
    last_id: u64,
    stage: Stage,
    session: String,
    /// The request id of the present prompt.
    prompt: Option<u64>,
    asks: BTreeMap<String, OpenAsk>,
    /// The number of questions so far.
    asked: u64,
    calls: ToolCalls,
    message: Option<String>,
    command_titles: bool,
}

/// The responses to wait for before a prompt can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Greeted(u64),
    Opens(u64),
    Loads(u64),
    Ready,
}

impl Acp {
    pub(super) fn new(opening: Opening<'_>) -> Self {
        Self {
            folder: opening.folder.to_owned(),
            wanted: opening.session.map(str::to_owned),
            pid: opening.pid,
            last_id: 0,
            stage: Stage::Greeted(1),
            session: String::new(),
            prompt: None,
            asks: BTreeMap::new(),
            asked: 0,
            calls: ToolCalls::default(),
            message: None,
            command_titles: opening.command_titles,
        }
    }

    fn call(&mut self, method: &str, params: &Value) -> (u64, String) {
        self.last_id = self.last_id.saturating_add(1);
        let request = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        (self.last_id, request.to_string())
    }

    fn new_session(&mut self) -> String {
        let (id, line) = self.call("session/new", &json!({"cwd": self.folder, "mcpServers": []}));
        self.stage = Stage::Opens(id);
        line
    }

    fn greeted(&mut self, answer: &Value) -> ParsedLine {
        if let Some(failing) = failure(answer) {
            return unopened(failing);
        }
        let version = answer.pointer("/result/protocolVersion").and_then(Value::as_u64);
        if version != Some(PROTOCOL_VERSION) {
            let theirs = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
            let why = format!("it speaks version {theirs} of the Agent Client Protocol, Provost version 1");
            return StreamItem::Unfit(why).into();
        }
        let loads = answer.pointer("/result/agentCapabilities/loadSession").and_then(Value::as_bool);
        match (self.wanted.clone(), loads == Some(true)) {
            (None, _) => ParsedLine::reply(self.new_session()),
            (Some(session), true) => {
                let params = json!({"sessionId": session, "cwd": self.folder, "mcpServers": []});
                let (id, line) = self.call("session/load", &params);
                self.stage = Stage::Loads(id);
                ParsedLine::reply(line)
            }
            (Some(_), false) => self.lost("it can't take up a session again".to_owned()),
        }
    }

    fn lost(&mut self, why: String) -> ParsedLine {
        ParsedLine {
            said: vec![StreamItem::Lost(why)],
            replies: vec![self.new_session()],
            is_nonsense: false,
        }
    }

    fn opened(&mut self, answer: &Value) -> ParsedLine {
        if let Some(failing) = failure(answer) {
            return unopened(failing);
        }
        let Some(session) = text(answer, "/result/sessionId") else {
            return StreamItem::Unfit("it opened a session without a name".to_owned()).into();
        };
        session.clone_into(&mut self.session);
        self.stage = Stage::Ready;
        StreamItem::Session(self.session.clone()).into()
    }

    fn loaded(&mut self, answer: &Value) -> ParsedLine {
        if let Some(failing) = failure(answer) {
            return if is_locked(&failing) { unopened(failing) } else { self.lost(failing.why) };
        }
        self.session = self.wanted.clone().unwrap_or_default();
        self.stage = Stage::Ready;
        StreamItem::Session(self.session.clone()).into()
    }

    fn done(&mut self, answer: &Value) -> ParsedLine {
        self.prompt = None;
        self.calls = ToolCalls::default();
        self.message = None;
        // It no longer waits for answers to its open questions.
        let asks = std::mem::take(&mut self.asks);
        let mut said: Vec<StreamItem> = asks.into_keys().map(StreamItem::Withdrawn).collect();
        if let Some(failing) = failure(answer) {
            said.push(StreamItem::Done(Done::Failed(failing)));
            return said.into_iter().collect();
        }
        let result = answer.get("result").unwrap_or(&Value::Null);
        let figures = ["/usage", "/_meta/usage", "/_meta/quota/token_count"];
        let used = figures.iter().find_map(|at| result.pointer(at).and_then(usage));
        said.extend(used.map(|usage| StreamItem::Used(Used::Prompt(usage))));
        said.extend(
            text(result, "/_meta/quota/model_usage/0/model").map(|model| StreamItem::Model(model.to_owned())),
        );
        said.push(StreamItem::Done(stopped(text(result, "/stopReason"))));
        said.into_iter().collect()
    }
}

impl RpcReader for Acp {
    fn requested(&mut self, id: &Value, method: &str, params: &Value) -> ParsedLine {
        if method != "session/request_permission" {
            let error = json!({"code": METHOD_NOT_FOUND, "message": "not offered"});
            return ParsedLine::reply(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
        }
        let options = params.get("options").unwrap_or(&Value::Null);
        let open = OpenAsk::new(id.clone(), options);
        if self.prompt.is_none() || self.asks.len() >= ASKS_MAX {
            return ParsedLine::reply(open.cancelled());
        }
        let same: Vec<String> =
            self.asks.iter().filter(|(_, ask)| ask.id == *id).map(|(name, _)| name.clone()).collect();
        if !same.is_empty() {
            self.asks.retain(|name, _| !same.contains(name));
            let said = same.into_iter().map(StreamItem::Withdrawn).collect();
            return ParsedLine { said, ..ParsedLine::reply(open.cancelled()) };
        }
        self.asked = self.asked.saturating_add(1);
        let fingerprint = format!("acp-{}-{}", self.pid, self.asked);
        let call = self.calls.asked(params.get("toolCall").unwrap_or(&Value::Null));
        self.asks.insert(fingerprint.clone(), open);
        let ask = asking::ask(AskedCall {
            fingerprint,
            call: &call,
            options,
            folder: &self.folder,
            command_titles: self.command_titles,
        });
        [StreamItem::Begun, StreamItem::Ask(ask.settled())].into_iter().collect()
    }

    fn notified(&mut self, method: &str, params: &Value) -> ParsedLine {
        // Before a prompt, updates repeat the history of an earlier process.
        if method != "session/update" || self.prompt.is_none() {
            return ParsedLine::default();
        }
        let update = params.get("update").unwrap_or(&Value::Null);
        let mut heard = updates::read(update, &mut self.calls, &self.folder);
        let message = text(update, "/messageId");
        if message.is_some() && message != self.message.as_deref() {
            self.message = message.map(str::to_owned);
            heard.said.insert(0, StreamItem::Break);
        }
        heard
    }

    fn answered(&mut self, id: u64, answer: &Value) -> ParsedLine {
        match self.stage {
            Stage::Greeted(waits) if waits == id => self.greeted(answer),
            Stage::Opens(waits) if waits == id => self.opened(answer),
            Stage::Loads(waits) if waits == id => self.loaded(answer),
            _ if self.prompt == Some(id) => self.done(answer),
            _ => ParsedLine::default(),
        }
    }
}

impl Format for Acp {
    fn open(&mut self) -> Vec<String> {
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
            "clientInfo": {"name": "provost", "title": "Provost", "version": env!("CARGO_PKG_VERSION")},
        });
        let (id, line) = self.call("initialize", &params);
        self.stage = Stage::Greeted(id);
        vec![line]
    }

    fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    fn read(&mut self, line: &str) -> ParsedLine {
        rpc::read(self, line)
    }

    fn prompt(&mut self, text: &str) -> Vec<String> {
        let prompt = json!([{"type": "text", "text": text}]);
        let (id, line) = self.call("session/prompt", &json!({"sessionId": self.session, "prompt": prompt}));
        self.prompt = Some(id);
        vec![line]
    }

    fn approve(&mut self, fingerprint: &str) -> Result<Reply, NoReply> {
        let ask = self.asks.get(fingerprint).ok_or(NoReply::NotAsked)?;
        let reply = ask.approval().ok_or(NoReply::NotOffered)?;
        self.asks.remove(fingerprint);
        Ok(reply)
    }

    fn refuse(&mut self, fingerprint: &str, _: &str) -> Result<Reply, NoReply> {
        let ask = self.asks.remove(fingerprint).ok_or(NoReply::NotAsked)?;
        Ok(ask.refusal())
    }

    fn interrupt(&mut self) -> Vec<String> {
        if self.prompt.is_none() {
            return Vec::new();
        }
        let params = json!({"sessionId": self.session});
        let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}).to_string();
        let asks = std::mem::take(&mut self.asks);
        std::iter::once(cancel).chain(asks.into_values().map(|ask| ask.cancelled())).collect()
    }
}

/// How it is done with a prompt. Without a reason of its own nothing shows that it is done.
fn stopped(reason: Option<&str>) -> Done {
    match reason {
        Some("end_turn") => Done::Whole,
        Some("max_tokens") => Done::Cut("its answer was cut off by the output limit".to_owned()),
        Some("max_turn_requests") => Done::Cut("it has reached its own limit of requests".to_owned()),
        Some("cancelled") => Done::Cancelled,
        Some("refusal") => Done::Failed(Failing::of(ErrorClass::Refusal, "its model refuses to go on")),
        Some(reason) => Done::Failed(Failing::said(format!(
            "it has stopped before it was done: {}",
            reason.replace('_', " ")
        ))),
        None => Done::Failed(Failing::said("it has ended its turn without a reason")),
    }
}

/// The session can't be opened.
fn unopened(failing: Failing) -> ParsedLine {
    let locked = is_locked(&failing);
    if locked { StreamItem::Locked(failing.why).into() } else { StreamItem::Unfit(failing.why).into() }
}

fn is_locked(failing: &Failing) -> bool {
    failing.class == Some(ErrorClass::Unauthorized)
}

/// Why a request failed, if it did.
fn failure(answer: &Value) -> Option<Failing> {
    let error = answer.get("error")?;
    let words = first_text(error, &["/message"]).unwrap_or("it gave no reason");
    // The provider's message may be quoted as JSON, or be in the details.
    let quoted = serde_json::from_str::<Value>(words).ok();
    let words = quoted.as_ref().and_then(|quoted| text(quoted, "/error/message")).unwrap_or(words);
    let details = first_text(error, &["/data/details", "/data/message", "/data"]);
    let mut why = words.to_owned();
    if let Some(details) = details.filter(|details| !words.contains(details)) {
        why = format!("{why}: {details}");
    }
    let code = error.get("code").and_then(Value::as_i64);
    if code == Some(AUTH_REQUIRED) {
        let why = format!("{why} (log in with the program itself first)");
        return Some(Failing::of(ErrorClass::Unauthorized, why));
    }
    // Some agents hand the status of their provider's answer on.
    let class = code.and_then(|code| u64::try_from(code).ok()).and_then(class_of_status);
    Some(Failing { why, class })
}
