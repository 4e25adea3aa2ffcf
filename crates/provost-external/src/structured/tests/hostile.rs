//! Names that are made to look like others: what a rule sees of them, on both typed channels.

use serde_json::{Value, json};

use super::super::app_server::AppServer;
use super::super::format::Format;
use super::super::stream_item::StreamItem;
use super::OPENING;
use super::acp::at_work;

/// The subject and the question of a change of `path`, as each channel asks for it.
fn asked_of(path: &str) -> [(Option<String>, String); 2] {
    let mut acp = at_work();
    let call =
        json!({"toolCallId": "c", "title": "Edit a file", "kind": "edit", "locations": [{"path": path}]});
    let options = json!([{"optionId": "y", "name": "Allow", "kind": "allow_once"}]);
    let params = json!({"sessionId": "s", "toolCall": call, "options": options});
    let line = json!({"jsonrpc": "2.0", "id": 9, "method": "session/request_permission", "params": params});
    let by_acp = question(&mut acp, &line);

    let mut codex = AppServer::new(OPENING);
    codex.open();
    codex.read(r#"{"id":1,"result":{}}"#);
    codex.read(r#"{"id":2,"result":{}}"#);
    codex.read(r#"{"id":3,"result":{"thread":{"id":"t"}}}"#);
    codex.prompt("do it");
    let change = json!({"path": path, "kind": {"type": "add"}, "diff": ""});
    let item = json!({"type": "fileChange", "id": "f", "changes": [change]});
    codex.read(&json!({"method": "item/started", "params": {"threadId": "t", "item": item}}).to_string());
    let params = json!({"threadId": "t", "turnId": "u", "itemId": "f"});
    let line = json!({"id": 1, "method": "item/fileChange/requestApproval", "params": params});
    [by_acp, question(&mut codex, &line)]
}

fn question(reader: &mut dyn Format, line: &Value) -> (Option<String>, String) {
    let heard = reader.read(&line.to_string());
    let asked = heard.said.into_iter().find_map(|said| match said {
        StreamItem::Ask(ask) => Some((ask.subject, ask.question)),
        _ => None,
    });
    asked.expect("a question")
}

#[test]
fn a_name_that_is_all_seen_is_what_a_rule_judges_whatever_it_looks_like() {
    let names = [
        "ok.txt",
        "ok.txt' important data",
        "a \"b\".txt",
        "it's",
        "--force",
        "$(rm -rf x)",
        "`id`",
        "a;b",
        "a|b",
        "*",
        "a\\nb",
        "1. Yes",
        "(y/n)",
        "ok.txt ... (3 more)",
        "\u{43e}k.txt",
        "о\u{301}k",
        "名前.txt",
        "a  b",
        "~/x",
        "../x",
    ];
    for name in names {
        for (subject, _) in asked_of(name) {
            assert_eq!(subject.as_deref(), Some(name));
        }
    }
}

#[test]
fn a_name_with_what_is_not_seen_is_no_subject_and_is_written_out_for_a_person() {
    let names = [
        ("ok.txt\nsecret", "\n"),
        ("ok.txt\r", "\\u{d}"),
        ("\u{1b}[2Kok.txt", "\\u{1b}"),
        ("ok\u{8}\u{8}no", "\\u{8}"),
        ("ok.txt\u{202e}txt.exe", "\\u{202e}"),
        ("ok\u{200b}.txt", "\\u{200b}"),
        ("ok\u{feff}.txt", "\\u{feff}"),
        ("ok.txt\u{a0}", "\\u{a0}"),
        ("ok\u{2028}x", "\\u{2028}"),
        ("ok\u{ad}x", "\\u{ad}"),
        ("ok\u{fe0f}x", "\\u{fe0f}"),
        ("ok\u{3164}x", "\\u{3164}"),
        ("ok\u{9b}2K", "\\u{9b}"),
        ("\u{7}ok", "\\u{7}"),
        ("a\tb", "\\u{9}"),
        ("ok.txt ", "ok.txt "),
        (" ok.txt", " ok.txt"),
        ("ok\u{2066}x\u{2069}", "\\u{2066}"),
        ("ok\u{e0101}", "\\u{e0101}"),
        ("ok\u{0}", "\\u{0}"),
    ];
    for (name, shown) in names {
        for (subject, question) in asked_of(name) {
            assert_eq!(subject, None, "{name:?}");
            assert!(question.contains(shown) && !question.contains('\u{1b}'), "{name:?}: {question:?}");
        }
    }
}

#[test]
fn a_name_that_no_one_reads_to_its_end_is_no_subject_and_says_how_long_it_is() {
    let long = format!("ok.txt{}", "x".repeat(20_000));
    for (subject, question) in asked_of(&long) {
        assert_eq!(subject, None);
        assert!(question.contains("(20006 bytes in all)") && question.len() < 3_000, "{}", question.len());
    }
}

#[test]
fn an_option_that_says_more_than_yes_is_chosen_by_no_rule() {
    let asked = |label: &str| {
        let call = json!({"toolCallId": "c", "title": "ls", "kind": "execute"});
        let options = json!([{"optionId": "y", "name": label, "kind": "allow_once"}]);
        let params = json!({"sessionId": "s", "toolCall": call, "options": options});
        let line =
            json!({"jsonrpc": "2.0", "id": 9, "method": "session/request_permission", "params": params});
        question(&mut at_work(), &line).0
    };
    assert_eq!(asked("Allow once").as_deref(), Some("ls"));
    assert_eq!(asked("Yes, delete everything else too"), None);
}

#[test]
fn options_with_the_same_id_are_no_consent() {
    let mut acp = at_work();
    acp.read(
        r#"{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"y","name":"Allow","kind":"allow_once"},{"optionId":"y","name":"Always","kind":"allow_always"}],"toolCall":{"toolCallId":"c","title":"ls","kind":"execute"}}}"#,
    );
    assert!(acp.approve("acp-7-1").is_err());
}
