//! The JSON-RPC of `codex app-server`, by lines over standard input and output, as its version 0.171.0 speaks it
//! (`codex app-server generate-ts` writes its types). Messages have no `jsonrpc` field.
//!
//! A thread is a session, a turn is a prompt. The server asks for consent by requests of its own. A refusal has no text: the
//! reason follows as input to the running turn (`turn/steer`). Other threads are those of sub-agents: their questions are
//! passed on, the rest isn't part of the answer.
//!
//! Usage is counted from the thread's beginning, over all processes.

mod asking;
mod items;
mod shell_words;

use std::collections::BTreeMap;

use provost_event::{Certainty, ErrorClass, Usage};
use serde_json::{Value, json};

use super::format::{Format, NoReply, Opening, Reply};
use super::rpc::{self, RpcReader};
use super::stream_item::{Done, Failing, ParsedLine, StreamItem, Used, class_of_status};
use super::value::{count, first_text, text};
use asking::{Consent, OpenAsk};
use items::{Items, plan};

/// JSON-RPC's code for a method that doesn't exist.
const METHOD_NOT_FOUND: i64 = -32_601;

/// Maximum open questions; further ones are refused at once.
const ASKS_MAX: usize = 64;

/// Reasons of refusals on their way.
const STEERS_MAX: usize = 64;

/// The server's names of failures, without those that have an HTTP status of their own.
const CLASSES: [(&str, ErrorClass); 13] = [
    ("contextWindowExceeded", ErrorClass::ContextExhausted),
    ("sessionBudgetExceeded", ErrorClass::QuotaUsedUp),
    ("usageLimitExceeded", ErrorClass::QuotaUsedUp),
    ("rateLimitExceeded", ErrorClass::RateLimited),
    ("serverOverloaded", ErrorClass::Overloaded),
    ("modelNotFound", ErrorClass::NotFound),
    ("internalServerError", ErrorClass::Server),
    ("unauthorized", ErrorClass::Unauthorized),
    ("badRequest", ErrorClass::InvalidRequest),
    ("cyberPolicy", ErrorClass::Refusal),
    ("bioPolicy", ErrorClass::Refusal),
    ("misalignmentPolicyViolation", ErrorClass::Refusal),
    ("responseStreamDisconnected", ErrorClass::Transport),
];

pub(super) struct AppServer {
    folder: String,
    wanted: Option<String>,
    pid: u32,
    last_id: u64,
    stage: Stage,
    thread: String,
    work: Work,
    asks: BTreeMap<String, OpenAsk>,
    /// The number of questions so far.
    asked: u64,
    items: Items,
    /// Reasons on their way to the running turn, by the request that carries them.
    steers: BTreeMap<u64, String>,
}

/// The responses to wait for before a prompt can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Greeted(u64),
    Account(u64),
    Starts(u64),
    Resumes(u64),
    Ready,
}

/// The present prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Work {
    None,
    /// Given by this request, which isn't answered yet.
    Begins(u64),
    /// The name of its turn.
    Turn(String),
    /// Its turn has ended, and a command that it began still runs.
    Lingers,
}

impl AppServer {
    pub(super) fn new(opening: Opening<'_>) -> Self {
        Self {
            folder: opening.folder.to_owned(),
            wanted: opening.session.map(str::to_owned),
            pid: opening.pid,
            last_id: 0,
            stage: Stage::Greeted(1),
            thread: String::new(),
            work: Work::None,
            asks: BTreeMap::new(),
            asked: 0,
            items: Items::default(),
            steers: BTreeMap::new(),
        }
    }

    fn call(&mut self, method: &str, params: &Value) -> (u64, String) {
        self.last_id = self.last_id.saturating_add(1);
        (self.last_id, json!({"id": self.last_id, "method": method, "params": params}).to_string())
    }

    fn start(&mut self) -> String {
        let (id, line) = self.call("thread/start", &json!({"cwd": self.folder}));
        self.stage = Stage::Starts(id);
        line
    }

    fn greeted(&mut self, answer: &Value) -> ParsedLine {
        if let Some(why) = refusal(answer) {
            return StreamItem::Unfit(why).into();
        }
        let initialized = json!({"method": "initialized"}).to_string();
        let (id, account) = self.call("account/read", &json!({"refreshToken": false}));
        self.stage = Stage::Account(id);
        ParsedLine { replies: vec![initialized, account], ..ParsedLine::default() }
    }

    /// Without an account that its provider needs, every turn would fail after some time. An older server doesn't know the
    /// question.
    fn may_work(&mut self, answer: &Value) -> ParsedLine {
        let needs_account = answer.pointer("/result/requiresOpenaiAuth") == Some(&Value::Bool(true));
        if needs_account && answer.pointer("/result/account").is_none_or(Value::is_null) {
            let why = "it has no account (log in with the program itself first)";
            return StreamItem::Locked(why.to_owned()).into();
        }
        let Some(thread) = self.wanted.clone() else { return ParsedLine::reply(self.start()) };
        let params = json!({"threadId": thread, "cwd": self.folder, "excludeTurns": true});
        let (id, line) = self.call("thread/resume", &params);
        self.stage = Stage::Resumes(id);
        ParsedLine::reply(line)
    }

    fn opened(&mut self, answer: &Value) -> ParsedLine {
        if let Some(why) = refusal(answer) {
            return StreamItem::Unfit(why).into();
        }
        let Some(thread) = text(answer, "/result/thread/id") else {
            return StreamItem::Unfit("it opened a thread without a name".to_owned()).into();
        };
        thread.clone_into(&mut self.thread);
        self.stage = Stage::Ready;
        let model = text(answer, "/result/model").map(|model| StreamItem::Model(model.to_owned()));
        std::iter::once(StreamItem::Session(self.thread.clone())).chain(model).collect()
    }

    fn resumed(&mut self, answer: &Value) -> ParsedLine {
        match refusal(answer) {
            None => self.opened(answer),
            Some(why) => ParsedLine { said: vec![StreamItem::Lost(why)], ..ParsedLine::reply(self.start()) },
        }
    }

    fn begun(&mut self, answer: &Value) -> ParsedLine {
        if let Some(why) = refusal(answer) {
            self.work = Work::None;
            return StreamItem::Done(Done::Failed(Failing::said(why))).into();
        }
        let Some(turn) = text(answer, "/result/turn/id").map(str::to_owned) else {
            self.work = Work::None;
            let why = "it has begun a turn without a name";
            return StreamItem::Done(Done::Failed(Failing::said(why))).into();
        };
        self.work = Work::Turn(turn);
        ParsedLine::default()
    }

    /// The question of this request is open no longer.
    fn resolved(&mut self, id: &Value) -> Option<StreamItem> {
        let name = self.asks.iter().find(|(_, ask)| ask.id == *id).map(|(name, _)| name.clone())?;
        self.asks.remove(&name);
        Some(StreamItem::Withdrawn(name))
    }

    fn completed(&mut self, params: &Value) -> ParsedLine {
        let turn = params.get("turn").unwrap_or(&Value::Null);
        let is_present = match (&self.work, text(turn, "/id")) {
            (Work::Turn(present), Some(id)) => present == id,
            (Work::Begins(_), _) => true,
            (Work::Turn(_) | Work::Lingers | Work::None, _) => false,
        };
        if !is_present {
            return ParsedLine::default();
        }
        let done = match text(turn, "/status") {
            Some("completed") if self.items.are_running() => {
                self.work = Work::Lingers;
                return ParsedLine::default();
            }
            Some("completed") => Done::Whole,
            Some("interrupted") => Done::Cancelled,
            Some("failed") => Done::Failed(failing(turn.get("error").unwrap_or(&Value::Null))),
            Some("inProgress") | None => return ParsedLine::default(),
            Some(status) => {
                Done::Failed(Failing::said(format!("it has stopped before it was done: {status}")))
            }
        };
        self.finished(done).into_iter().collect()
    }

    /// The events of a prompt's end: it no longer waits for answers to its open questions.
    fn finished(&mut self, done: Done) -> Vec<StreamItem> {
        self.work = Work::None;
        self.items = Items::default();
        let asks = std::mem::take(&mut self.asks);
        let untold = std::mem::take(&mut self.steers).into_values().map(StreamItem::Untold);
        let withdrawn = asks.into_keys().map(StreamItem::Withdrawn);
        untold.chain(withdrawn).chain([StreamItem::Done(done)]).collect()
    }

    /// The line that gives the running turn the reason of a refusal.
    fn steer(&mut self, reason: &str) -> Option<String> {
        let Work::Turn(turn) = &self.work else { return None };
        if self.steers.len() >= STEERS_MAX {
            return None;
        }
        let params = json!({"threadId": self.thread, "expectedTurnId": turn, "input": input(reason)});
        let (id, line) = self.call("turn/steer", &params);
        self.steers.insert(id, reason.to_owned());
        Some(line)
    }
}

impl RpcReader for AppServer {
    fn requested(&mut self, id: &Value, method: &str, params: &Value) -> ParsedLine {
        let refused = |message: &str| {
            let error = json!({"code": METHOD_NOT_FOUND, "message": message});
            ParsedLine::reply(json!({"id": id, "error": error}).to_string())
        };
        let Some(consent) = Consent::of(method, params) else { return refused("not offered") };
        let open = OpenAsk::new(id.clone(), consent, params);
        if self.work == Work::None || self.asks.len() >= ASKS_MAX {
            return ParsedLine::reply(open.refusal());
        }
        let withdrawn = self.resolved(id);
        if withdrawn.is_some() {
            // The answer to one of them would count for both.
            return ParsedLine { said: withdrawn.into_iter().collect(), ..ParsedLine::reply(open.refusal()) };
        }
        self.asked = self.asked.saturating_add(1);
        let fingerprint = format!("codex-{}-{}", self.pid, self.asked);
        let item = text(params, "/itemId").and_then(|item| self.items.get(item));
        let ask = asking::ask(fingerprint.clone(), consent, params, item, &self.folder);
        self.asks.insert(fingerprint, open);
        [StreamItem::Begun, StreamItem::Ask(ask.settled())].into_iter().collect()
    }

    fn notified(&mut self, method: &str, params: &Value) -> ParsedLine {
        let is_ours = text(params, "/threadId").is_none_or(|thread| thread == self.thread);
        match method {
            "item/started" | "item/fileChange/patchUpdated" => {
                self.items.note(params);
                if is_ours && method == "item/started" {
                    self.items.begun(params);
                }
                StreamItem::Begun.into()
            }
            "item/completed" => {
                let mut parsed = self.items.completed(params, is_ours && self.work != Work::None);
                if self.work == Work::Lingers && !self.items.are_running() {
                    parsed.said.extend(self.finished(Done::Whole));
                }
                parsed
            }
            "serverRequest/resolved" => {
                self.resolved(params.get("requestId").unwrap_or(&Value::Null)).into_iter().collect()
            }
            "thread/tokenUsage/updated" if is_ours => {
                usage(params).map(|usage| StreamItem::Used(Used::Session(usage))).into_iter().collect()
            }
            "turn/started" | "item/agentMessage/delta" if is_ours => StreamItem::Begun.into(),
            "turn/plan/updated" if is_ours => plan(params).into(),
            "turn/completed" if is_ours => self.completed(params),
            "error" if is_ours && params.get("willRetry") == Some(&Value::Bool(true)) => {
                StreamItem::Error(words(params.get("error").unwrap_or(&Value::Null))).into()
            }
            "model/rerouted" if is_ours => text(params, "/toModel")
                .map(|model| StreamItem::Model(model.to_owned()))
                .into_iter()
                .collect(),
            "warning" | "configWarning" | "guardianWarning" => {
                let words = first_text(params, &["/message", "/summary"]);
                words.map(|words| StreamItem::Notice(words.to_owned())).into_iter().collect()
            }
            _ => ParsedLine::default(),
        }
    }

    fn answered(&mut self, id: u64, answer: &Value) -> ParsedLine {
        if let Some(reason) = self.steers.remove(&id) {
            let is_told = answer.get("error").is_none();
            return if is_told { ParsedLine::default() } else { StreamItem::Untold(reason).into() };
        }
        match (self.stage, &self.work) {
            (Stage::Greeted(waits), _) if waits == id => self.greeted(answer),
            (Stage::Account(waits), _) if waits == id => self.may_work(answer),
            (Stage::Starts(waits), _) if waits == id => self.opened(answer),
            (Stage::Resumes(waits), _) if waits == id => self.resumed(answer),
            (_, Work::Begins(waits)) if *waits == id => self.begun(answer),
            _ => ParsedLine::default(),
        }
    }
}

impl Format for AppServer {
    fn open(&mut self) -> Vec<String> {
        let client = json!({"name": "provost", "title": "Provost", "version": env!("CARGO_PKG_VERSION")});
        let (id, line) = self.call("initialize", &json!({"clientInfo": client, "capabilities": null}));
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
        let params = json!({"threadId": self.thread, "input": input(text)});
        let (request, line) = self.call("turn/start", &params);
        self.work = Work::Begins(request);
        vec![line]
    }

    fn approve(&mut self, fingerprint: &str) -> Result<Reply, NoReply> {
        let ask = self.asks.remove(fingerprint).ok_or(NoReply::NotAsked)?;
        Ok(Reply::new(ask.approval(), ask.approval_name()))
    }

    fn refuse(&mut self, fingerprint: &str, reason: &str) -> Result<Reply, NoReply> {
        let ask = self.asks.remove(fingerprint).ok_or(NoReply::NotAsked)?;
        let steer = self.steer(reason);
        let mut reply = Reply::new(ask.refusal(), asking::DECLINE);
        reply.tells_reason = steer.is_some();
        reply.lines.extend(steer);
        Ok(reply)
    }

    fn interrupt(&mut self) -> Vec<String> {
        match self.work.clone() {
            Work::None | Work::Begins(_) | Work::Lingers => Vec::new(),
            Work::Turn(turn) => {
                let params = json!({"threadId": self.thread, "turnId": turn});
                let (_, line) = self.call("turn/interrupt", &params);
                let asks = std::mem::take(&mut self.asks);
                asks.into_values().map(|ask| ask.cancelled()).chain([line]).collect()
            }
        }
    }
}

fn input(text: &str) -> Value {
    json!([{"type": "text", "text": text, "text_elements": []}])
}

/// Why a request was refused, if it was.
fn refusal(answer: &Value) -> Option<String> {
    let error = answer.get("error")?;
    Some(first_text(error, &["/message"]).unwrap_or("it gave no reason").to_owned())
}

/// The words of a failure, with the details that its message leaves out.
fn words(error: &Value) -> String {
    let message = first_text(error, &["/message"]).unwrap_or("it gave no reason");
    // The provider's answer may be quoted as JSON.
    let quoted = serde_json::from_str::<Value>(message).ok();
    let message = quoted.as_ref().and_then(|quoted| text(quoted, "/error/message")).unwrap_or(message);
    match first_text(error, &["/additionalDetails"]).filter(|details| !message.contains(details)) {
        Some(details) => format!("{message} ({details})"),
        None => message.to_owned(),
    }
}

fn failing(error: &Value) -> Failing {
    let info = error.get("codexErrorInfo").unwrap_or(&Value::Null);
    // A name, or a name with what is known of the provider's answer.
    let detail = info.as_object().and_then(|info| info.iter().next());
    let name = info.as_str().or(detail.map(|(name, _)| name.as_str())).unwrap_or_default();
    let status = detail.and_then(|(_, about)| about.get("httpStatusCode")).and_then(Value::as_u64);
    let named = CLASSES.iter().find(|(known, _)| *known == name).map(|(_, class)| *class);
    Failing { why: words(error), class: status.and_then(class_of_status).or(named) }
}

fn usage(params: &Value) -> Option<Usage> {
    let total = params.pointer("/tokenUsage/total").filter(|total| total.is_object())?;
    let cached = count(total, "/cachedInputTokens");
    let written = count(total, "/cacheWriteInputTokens");
    Some(Usage {
        // Both are included in the input tokens here.
        input_tokens: count(total, "/inputTokens").saturating_sub(cached).saturating_sub(written),
        output_tokens: count(total, "/outputTokens"),
        cache_read_tokens: cached,
        cache_write_tokens: written,
        reasoning_tokens: count(total, "/reasoningOutputTokens"),
        certainty: Certainty::Reported,
    })
}
