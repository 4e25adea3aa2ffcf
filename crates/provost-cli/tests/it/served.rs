//! A server of `provost serve`, and a client that sends exactly what a test wants.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::{Scene, json, until};

const DEADLINE: Duration = Duration::from_secs(20);

pub(crate) struct Served {
    child: Child,
    pub(crate) port: u16,
    /// The page's own host name, with the port.
    pub(crate) page: String,
    /// The path of the one-time link.
    pub(crate) link: String,
    pub(crate) token: String,
}

impl Served {
    /// The first question that waits for a person, once there is one.
    pub(crate) fn question(&self) -> Value {
        until("it asks", || self.get("/v1/approvals").json().as_array().unwrap().first().cloned())
    }

    pub(crate) fn start(scene: &Scene) -> Self {
        let file = scene.path("token");
        let mut command = scene.command(&["serve", "--port", "0", "--token-file", file.to_str().unwrap()]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (page, path) = line.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
        let port = page.rsplit_once(':').unwrap().1.parse().unwrap();
        let token = std::fs::read_to_string(&file).unwrap().trim().to_owned();
        Self { child, port, page: page.to_owned(), link: format!("/{path}"), token }
    }

    /// Kills it without a chance to do anything.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// A request as a program sends it.
    pub(crate) fn get(&self, path: &str) -> Answered {
        self.send("GET", path, &[], "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answered {
        self.send("POST", path, &[("content-type", "application/json")], body)
    }

    /// The same with more headers.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        let token = format!("Bearer {}", self.token);
        let host = format!("127.0.0.1:{}", self.port);
        let mut all = vec![("host", host.as_str()), ("authorization", token.as_str())];
        all.extend(headers);
        self.exact(method, path, &all, body)
    }

    /// Exactly these headers, besides those for the length and the end.
    pub(crate) fn exact(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        let mut stream = self.open(method, path, headers, body);
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).unwrap_or_default().parse().unwrap_or_default();
        Answered { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    pub(crate) fn open(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let headers = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<String>();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        stream
    }

    /// Signs a browser in, and returns its cookie.
    pub(crate) fn enter(&self) -> Answered {
        self.exact("GET", &self.link, &[("host", &self.page)], "")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    /// In small letters.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answered {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")))
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        json(&self.body)
    }
}
