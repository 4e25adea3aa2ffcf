//! A client of a command that speaks JSON-RPC on standard input and output, a message a line.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct StdioClient {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// What came and wasn't waited for.
    kept: VecDeque<Value>,
    next: u64,
}

impl StdioClient {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, lines, kept: VecDeque::new(), next: 0 }
    }

    /// Sends a line as it is.
    pub(crate) fn line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Sends a request, and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Answers a request of the other end.
    pub(crate) fn answer(&mut self, request: &Value, result: &Value) {
        self.line(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string());
    }

    /// The next message for which `is_it` holds; all others are kept in their order.
    #[track_caller]
    pub(crate) fn wait(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        let mut seen = 0;
        loop {
            if let Some(at) = self.kept.iter().skip(seen).position(&is_it) {
                return self.kept.remove(seen + at).unwrap();
            }
            seen = self.kept.len();
            let left = DEADLINE.saturating_sub(begun.elapsed());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("waited {DEADLINE:?} for {what}, and got {:#?}", self.kept)
            };
            let message = serde_json::from_str(&line);
            self.kept.push_back(message.unwrap_or_else(|error| panic!("no JSON ({error}): {line}")));
        }
    }

    /// The answer to a request.
    #[track_caller]
    pub(crate) fn answer_to(&mut self, id: u64) -> Value {
        self.wait(&format!("the answer to request {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    /// Sends a request and returns its result.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer_to(id);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Sends a request and returns its error.
    #[track_caller]
    pub(crate) fn refused(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer_to(id);
        assert!(answer.get("error").is_some(), "{answer}");
        answer["error"].clone()
    }

    /// What came and wasn't waited for.
    pub(crate) fn kept(&mut self) -> Vec<Value> {
        self.kept.drain(..).collect()
    }

    /// Kills it without a chance to do anything.
    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends the connection; returns the command's exit status.
    pub(crate) fn end(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for StdioClient {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
