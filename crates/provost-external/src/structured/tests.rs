//! Readers as scripts: lines in, events and replies out. The lines are those of real programs, shortened.

mod acp;
mod app_server;
mod hostile;
mod meter;
mod stream_json;

use expect_test::Expect;
use provost_event::Usage;
use provost_terminal::{StreamFormat, StructuredChannel};

use super::app_server::AppServer;
use super::format::{Format, Opening, arguments};
use super::stream_item::{StreamItem, Used};
use super::stream_json::StreamJson;
use acp::{ASKED, GREETED, at_work};

const OPENING: Opening<'_> = Opening { folder: "/w", session: None, pid: 7, command_titles: true };

/// The results of the lines: `<` events, `>` replies.
fn script(reader: &mut dyn Format, lines: &str) -> String {
    let mut told = String::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let heard = reader.read(line);
        for said in heard.said {
            told.push_str(&format!("< {}\n", shown(&said)));
        }
        for reply in heard.replies {
            told.push_str(&format!("> {reply}\n"));
        }
        if heard.is_nonsense {
            told.push_str("malformed\n");
        }
    }
    told
}

fn shown(said: &StreamItem) -> String {
    match said {
        StreamItem::Ask(ask) => {
            let options: Vec<_> =
                ask.options.iter().map(|option| format!("{}={:?}", option.label, option.meaning)).collect();
            let subject = ask.subject.as_deref().unwrap_or("-");
            format!(
                "Ask {} {:?} `{subject}` ({}) {}",
                ask.fingerprint,
                ask.kind,
                ask.question,
                options.join(", ")
            )
        }
        StreamItem::Used(used) => {
            let (what, usage) = match used {
                Used::Call(usage) => ("call", usage),
                Used::Prompt(usage) => ("prompt", usage),
                Used::Session(usage) => ("session", usage),
            };
            let Usage {
                input_tokens,
                output_tokens,
                cache_read_tokens,
                cache_write_tokens,
                reasoning_tokens,
                certainty: _,
            } = usage;
            format!(
                "Used by {what} {input_tokens} {output_tokens} {cache_read_tokens} {cache_write_tokens} {reasoning_tokens}"
            )
        }
        other => format!("{other:?}"),
    }
}

fn check(reader: &mut dyn Format, lines: &str, expected: Expect) {
    expected.assert_eq(&script(reader, lines));
}

#[test]
fn arguments_take_the_session_up_again_where_that_is_done_by_arguments() {
    let of = |format, session| {
        let channel = StructuredChannel::new(format, vec!["speak".to_owned()]);
        arguments(&channel, session).join(" ")
    };
    assert_eq!(of(StreamFormat::CodexAppServer, Some("a")), "speak");
    assert_eq!(of(StreamFormat::StreamJson, None), "speak");
    assert_eq!(of(StreamFormat::StreamJson, Some("a")), "speak --resume a");
    assert_eq!(of(StreamFormat::Acp, Some("a")), "speak");
}

/// Readers survive lines that are cut, mangled or left out.
#[test]
fn no_piece_of_a_line_stops_a_reader() {
    let lines = [
        ASKED,
        GREETED,
        r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":-1,"outputTokens":1e99}}}"#,
        r#"{"type":"result","subtype":"success","total_cost_usd":-1e300,"usage":{"input_tokens":"many"}}"#,
        r#"{"method":"item/completed","params":{"threadId":"t","item":{"id":"m","type":"agentMessage","text":"ä€𝄞"}}}"#,
        r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":7,"status":"failed","error":[{}]}}}"#,
        r#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","input":[1]}}"#,
    ];
    for line in lines {
        let mut readers: [Box<dyn Format>; 3] =
            [Box::new(at_work()), Box::new(AppServer::new(OPENING)), Box::new(StreamJson::new())];
        for reader in &mut readers {
            for (at, _) in line.char_indices() {
                reader.read(&line[..at]);
                reader.read(&line[at..]);
                reader.read(&format!("{} {}", &line[..at], &line[at..]));
            }
            reader.read(line);
        }
    }
}
