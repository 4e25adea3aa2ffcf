//! `provost serve`: terminals of external agents, live and recorded.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use provost_event::Exit;
use serde_json::{Value, json};

use crate::served::Served;
use crate::support::{Scene, until};
use crate::terminal::AtTerminal;

/// Reads names and greets each in colour, until the name `bye`.
const GREETER: &str = "while printf 'who? '; read who; do printf '\\033[31mhello\\033[0m %s\\n' \"$who\"; [ \"$who\" = bye ] && exit; done";

fn greeter() -> (Scene, AtTerminal, Served, String) {
    let scene = Scene::new();
    let mut running = AtTerminal::provost(&scene, &["exec", "--", "sh", "-c", GREETER]);
    running.sees("who?");
    let served = Served::start(&scene);
    let run = until("it runs", || {
        let runs = served.get("/v1/runs").json();
        Some(runs["runs"].as_array()?.first()?["run"].as_str()?.to_owned())
    });
    until("it has a screen", || {
        (served.get(&format!("/v1/runs/{run}/terminal")).status == 200).then_some(())
    });
    (scene, running, served, run)
}

fn screen_with(served: &Served, run: &str, text: &str) -> Value {
    until(text, || {
        let screen = served.get(&format!("/v1/runs/{run}/terminal")).json();
        screen["text"].to_string().contains(text).then_some(screen)
    })
}

/// A client of a WebSocket that sends and reads whole text messages (RFC 6455), and no other.
struct Socket(TcpStream);

impl Socket {
    fn open(served: &Served, path: &str, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let mut all = vec![
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        all.extend(headers);
        let mut stream = TcpStream::connect(("127.0.0.1", served.port)).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        let lines = all.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<String>();
        stream.write_all(format!("GET {path} HTTP/1.1\r\n{lines}\r\n").as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let status = String::from_utf8(head).unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        if status == 101 { Ok(Self(stream)) } else { Err(status) }
    }

    fn say(&mut self, what: &Value) {
        let text = what.to_string();
        let mut frame = vec![0x81, 0x80 | u8::try_from(text.len()).unwrap(), 0, 0, 0, 0];
        assert!(text.len() < 126);
        frame.extend(text.as_bytes());
        self.0.write_all(&frame).unwrap();
    }

    /// The next message; `None` at the end.
    fn hear(&mut self) -> Option<Value> {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).ok()?;
        let length = match head[1] {
            126 => {
                let mut bytes = [0; 2];
                self.0.read_exact(&mut bytes).unwrap();
                usize::from(u16::from_be_bytes(bytes))
            }
            127 => panic!("a message of over 64 KiB"),
            short => usize::from(short),
        };
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).unwrap();
        (head[0] == 0x81).then(|| serde_json::from_slice(&payload).unwrap())
    }

    /// Reads until a message has this text.
    #[track_caller]
    fn hears(&mut self, text: &str) -> Value {
        loop {
            let message = self.hear().unwrap_or_else(|| panic!("the end before {text}"));
            if message.to_string().contains(text) {
                return message;
            }
        }
    }
}

#[test]
fn a_screen_is_read_as_text_and_cells_and_typed_into() {
    let (_scene, mut running, served, run) = greeter();
    screen_with(&served, &run, "who?");
    let input = format!("/v1/runs/{run}/terminal/input");
    assert_eq!(served.post(&input, "{\"text\":\"\"}").status, 400);
    assert_eq!(served.post(&input, "{\"text\":\"ann\\r\"}").status, 200);
    let screen = screen_with(&served, &run, "hello ann");
    let cells = screen["cells"].as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
    let hello = cells.clone().find(|cells| cells["text"] == "hello").unwrap();
    assert_eq!(hello["fg"], 1);
    let page = served.get(&format!("/runs/{run}/terminal")).body;
    assert!(page.contains("<span class=\"c1\">hello</span>"), "{page}");
    assert_eq!(served.post(&input, "{\"text\":\"bye\\r\"}").status, 200);
    assert_eq!(running.end(), Exit::Code(0));
    let gone = served.get(&format!("/v1/runs/{run}/terminal"));
    assert_eq!(gone.status, 409, "{gone:?}");
    // Recorded, it is played back.
    let recordings = served.get(&format!("/v1/runs/{run}/recordings")).json();
    let length = recordings[0]["duration_ms"].as_u64().unwrap();
    let at = |ms: u64| served.get(&format!("/v1/runs/{run}/recordings/1?at_ms={ms}")).json();
    assert!(at(length)["screen"]["text"].to_string().contains("hello bye"), "{:?}", at(length));
    assert!(at(length)["next_ms"].is_null() && !at(0)["next_ms"].is_null());
    assert!(!at(0)["screen"]["text"].to_string().contains("hello bye"));
    assert_eq!(served.get(&format!("/v1/runs/{run}/recordings/2")).status, 404);
    let page = served.get(&format!("/runs/{run}/terminal?recording=1&at={length}")).body;
    assert!(page.contains("hello</span>") && page.contains("class=\"tl\""), "{page}");
}

#[test]
fn a_client_attaches_by_a_socket_types_and_sets_the_window() {
    let (_scene, mut running, served, run) = greeter();
    let host = format!("127.0.0.1:{}", served.port);
    let token = format!("Bearer {}", served.token);
    let signed = [("host", host.as_str()), ("authorization", token.as_str())];
    let path = format!("/v1/runs/{run}/terminal/attach");
    let mut watcher = Socket::open(&served, &path, &signed).unwrap();
    let mut person = Socket::open(&served, &format!("{path}?role=control"), &signed).unwrap();
    person.say(&json!({ "type": "resize", "rows": 30, "cols": 70 }));
    let resized = watcher.hears("\"cols\":70");
    assert_eq!(resized["rows"], 30);
    // One that only watches types nothing.
    watcher.say(&json!({ "type": "input", "text": "eve\r" }));
    person.say(&json!({ "type": "input", "text": "bob\r" }));
    watcher.hears("bob");
    assert!(!screen_with(&served, &run, "hello bob")["text"].to_string().contains("eve"));
    person.say(&json!({ "type": "input", "text": "bye\r" }));
    assert_eq!(watcher.hears("gone")["why"], "the program has ended");
    assert_eq!(running.end(), Exit::Code(0));
}

#[test]
fn a_socket_is_opened_by_programs_and_the_page_and_nobody_else() {
    let (_scene, mut running, served, run) = greeter();
    let path = format!("/v1/runs/{run}/terminal/attach?role=control");
    let host = ("host", format!("127.0.0.1:{}", served.port));
    let token = ("authorization", format!("Bearer {}", served.token));
    let status = |headers: &[(&str, &str)]| {
        Socket::open(&served, &path, headers).map_or_else(|status| status, |_| 101)
    };
    let (host, token) = ((host.0, host.1.as_str()), (token.0, token.1.as_str()));
    assert_eq!(status(&[host]), 401);
    assert_eq!(status(&[host, token, ("origin", "http://evil.example")]), 403);
    assert_eq!(status(&[host, token, ("sec-fetch-site", "cross-site")]), 403);
    assert_eq!(status(&[("host", "evil.example"), token]), 421);
    let entered = served.enter();
    let cookie = entered.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let (page, cookie) = (("host", served.page.as_str()), ("cookie", cookie.as_str()));
    // A browser says where a socket comes from.
    assert_eq!(status(&[page, cookie]), 403);
    let origin = format!("http://{}", served.page);
    assert_eq!(status(&[page, cookie, ("origin", &origin)]), 101);
    assert_eq!(status(&[page, cookie, ("origin", "http://localhost")]), 403);
    assert_eq!(served.get(&path).status, 426);
    served.post(&format!("/v1/runs/{run}/terminal/input"), "{\"text\":\"bye\\r\"}");
    running.end();
}
