//! What is sent, byte for byte.

use expect_test::expect;
use provost_event::{Block, Json};
use provost_harness::{Part, Role};
use serde_json::json;

use crate::server::{Reply, Server, streamed};
use crate::support::*;

fn answers(streams: &[String]) -> Vec<Reply> {
    streams.iter().map(|stream| Reply::Whole(streamed([stream.as_bytes()]))).collect()
}

async fn sent(conversation: &Conversation) -> String {
    let server = Server::start(answers(&[stream(&[], "end_turn")])).await;
    conversation.ask(&model(&server)).await.unwrap();
    String::from_utf8(server.seen().asked[0].body.clone()).unwrap()
}

#[tokio::test]
async fn a_request_says_who_asks_what() {
    let server = Server::start(answers(&[stream(&[], "end_turn")])).await;
    Conversation::new("Fix \"add\".").ask(&model(&server)).await.unwrap();
    let asked = server.seen().asked[0].clone();
    assert!(asked.head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{}", asked.head);
    for header in
        [&format!("x-api-key: {KEY}"), "anthropic-version: 2023-06-01", "content-type: application/json"]
    {
        assert!(asked.head.contains(&format!("{header}\r\n")), "{header} in {}", asked.head);
    }
    expect![[r#"{"model":"claude-test","system":[{"type":"text","text":"You are careful.","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"search","description":"Does search.","input_schema":{"type":"object","properties":{"pattern":{"type":"string"}}}},{"name":"shell","description":"Does shell.","input_schema":{"type":"object","properties":{"pattern":{"type":"string"}}},"cache_control":{"type":"ephemeral"}}],"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Fix \"add\"."}]}],"max_tokens":1024,"cache_control":{"type":"ephemeral"}}"#]]
        .assert_eq(&String::from_utf8(asked.body).unwrap());
}

#[tokio::test]
async fn nothing_is_said_of_tools_and_system_where_there_are_none() {
    let mut conversation = Conversation::new("go");
    conversation.system = " \n".to_owned();
    conversation.tools = Vec::new().into();
    expect![[r#"{"model":"claude-test","stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"go"}]}],"max_tokens":1024,"cache_control":{"type":"ephemeral"}}"#]]
        .assert_eq(&sent(&conversation).await);
}

#[tokio::test]
async fn what_the_provider_would_refuse_isnt_sent() {
    let mut conversation = Conversation::new("go");
    let thinking = |signature: Option<&str>| {
        Part::Block(Block::Thinking { text: "hm".to_owned(), signature: signature.map(str::to_owned) })
    };
    let opaque = |wire: &str| {
        let json = Json::parse(r#"{"type":"redacted_thinking", "data":"x"}"#.to_owned()).unwrap();
        Part::Block(Block::Opaque { wire: wire.to_owned(), json })
    };
    conversation.push(Role::Assistant, vec![thinking(None), Part::Block(Block::Text("\n".to_owned()))]);
    conversation.push(Role::Assistant, vec![thinking(Some("sig")), opaque("anthropic"), opaque("openai")]);
    conversation.push(
        Role::User,
        vec![
            result(&"a".into(), "shell", "", false),
            result(&"b".into(), "shell", " ", true),
            result(&"c".into(), "shell", "no such file", true),
        ],
    );
    let sent = sent(&conversation).await;
    let messages = sent.split_once("\"messages\":").unwrap().1.split_once(",\"max_tokens\"").unwrap().0;
    expect![[r#"[{"role":"user","content":[{"type":"text","text":"go"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"redacted_thinking", "data":"x"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"b","content":"failed without output","is_error":true},{"type":"tool_result","tool_use_id":"c","content":"no such file","is_error":true}]}]"#]]
        .assert_eq(messages);
}

#[tokio::test]
async fn a_turns_request_begins_with_the_last_turns_up_to_the_end_of_its_messages() {
    let signed = |n: u32| {
        block(
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            &[
                json!({"type": "thinking_delta", "thinking": format!("thought {n} \"quoted\" ü")}),
                json!({"type": "signature_delta", "signature": format!("sig{n}==")}),
            ],
        )
    };
    let turn = |n: u32| {
        let call = tool_block(2, &format!("toolu_{n}"), "search", &["{\"pattern\": ", &format!("\"{n}\"}}")]);
        stream(&[signed(n), text_block(1, &["so"]), call], "tool_use")
    };
    let server = Server::start(answers(&[turn(1), turn(2), turn(3), turn(4)])).await;
    let (model, mut conversation) = (model(&server), Conversation::new("go"));
    for _ in 0..4 {
        let answer = conversation.ask(&model).await.unwrap();
        conversation.answered(&answer, "found\n\"it\"");
        conversation.output_tokens_max += 1;
    }
    let asked = server.seen().asked;
    for (turn, pair) in asked.windows(2).enumerate() {
        let before = String::from_utf8(pair[0].body.clone()).unwrap();
        let messages = before.rsplit_once("],\"max_tokens\"").unwrap().0;
        assert!(pair[1].body.starts_with(messages.as_bytes()), "turn {turn}");
        assert_eq!(pair[1].body[messages.len()], b',', "turn {turn}");
    }
    let last = asked[3].json();
    assert_eq!(last["messages"].as_array().unwrap().len(), 7);
    assert_eq!(
        last["messages"][3]["content"],
        json!([
            {"type": "thinking", "thinking": "thought 2 \"quoted\" ü", "signature": "sig2=="},
            {"type": "text", "text": "so"},
            {"type": "tool_use", "id": "toolu_2", "name": "search", "input": {"pattern": "2"}},
        ])
    );
}
