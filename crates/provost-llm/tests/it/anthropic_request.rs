//! Requests, byte for byte.

use expect_test::expect;
use provost_event::{Block, Effort, Json};
use provost_harness::{Part, Role, ToolChoice};
use provost_llm::{ProviderModel, ProviderOptions, Reasoning};
use serde_json::{Value, json};

use crate::anthropic_support::*;
use crate::server::{Reply, Server, streamed};
use crate::support::{Conversation, KEY, image, result};

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
    let thinking = |signature: Option<&str>, wire: Option<&str>| {
        let (signature, wire) = (signature.map(str::to_owned), wire.map(str::to_owned));
        Part::Block(Block::Thinking { text: "hm".to_owned(), signature, wire, prefix: None })
    };
    let opaque = |wire: &str| {
        let json = Json::parse(r#"{"type":"redacted_thinking", "data":"x"}"#.to_owned()).unwrap();
        Part::Block(Block::Opaque { wire: wire.to_owned(), json, prefix: None })
    };
    conversation.push(
        Role::Assistant,
        vec![thinking(None, Some("anthropic")), Part::Block(Block::Text("\n".to_owned()))],
    );
    conversation
        .push(Role::Assistant, vec![thinking(Some("sig"), None), opaque("anthropic"), opaque("openai")]);
    conversation.push(Role::Assistant, vec![thinking(Some("theirs"), Some("gemini"))]);
    conversation.push(Role::Assistant, vec![thinking(Some("own"), Some("anthropic"))]);
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
    expect![[r#"[{"role":"user","content":[{"type":"text","text":"go"}]},{"role":"assistant","content":[{"type":"redacted_thinking", "data":"x"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"own"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"b","content":"failed without output","is_error":true},{"type":"tool_result","tool_use_id":"c","content":"no such file","is_error":true}]}]"#]]
        .assert_eq(messages);
}

#[tokio::test]
async fn pictures_go_with_the_words_they_belong_to() {
    let mut conversation = Conversation::new("go");
    let words = |text: &str| Part::Block(Block::Text(text.to_owned()));
    conversation.push(Role::User, vec![words("Look:"), Part::Image(image())]);
    let shown = |call: &str, output: &str| match result(&call.into(), "shell", output, false) {
        Part::ToolResult { call, tool, output, is_error, .. } => {
            Part::ToolResult { call, tool, output, images: vec![image()], is_error }
        }
        other => other,
    };
    conversation.push(Role::User, vec![shown("a", "a plot"), shown("b", " ")]);
    let sent: Value = serde_json::from_str(&sent(&conversation).await).unwrap();
    let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lGODlhLg=="}});
    assert_eq!(sent["messages"][1]["content"], json!([{"type": "text", "text": "Look:"}, picture]));
    assert_eq!(
        sent["messages"][2]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "a plot"}, picture]},
            {"type": "tool_result", "tool_use_id": "b", "content": [picture]},
        ])
    );
}

/// The part after the messages, and the head.
async fn told(conversation: &Conversation, reasoning: Option<Reasoning>) -> (String, String) {
    let server = Server::start(answers(&[stream(&[], "end_turn")])).await;
    let model = ProviderModel::new(ProviderOptions { reasoning, ..options(&server) }).unwrap();
    conversation.ask(&model).await.unwrap();
    let asked = server.seen().asked.remove(0);
    let body = String::from_utf8(asked.body).unwrap();
    (body.rsplit_once("],\"max_tokens\":").unwrap().1.to_owned(), asked.head)
}

#[tokio::test]
async fn effort_is_told_as_the_model_understands_it() {
    let cached = "\"cache_control\":{\"type\":\"ephemeral\"}";
    let adaptive = |word: &str| {
        format!(
            "64000,{cached},\"output_config\":{{\"effort\":\"{word}\"}},\"thinking\":{{\"type\":\"adaptive\"}}}}"
        )
    };
    let enabled = |budget: u32| {
        format!("64000,{cached},\"thinking\":{{\"type\":\"enabled\",\"budget_tokens\":{budget}}}}}")
    };
    let (words, budgets) = (Some(Reasoning::Effort), Some(Reasoning::Budget));
    for (effort, reasoning, expected) in [
        (None, words, format!("64000,{cached}}}")),
        (None, budgets, format!("64000,{cached}}}")),
        (Some(Effort::Minimal), words, adaptive("low")),
        (Some(Effort::Minimal), budgets, format!("64000,{cached}}}")),
        (Some(Effort::Low), words, adaptive("low")),
        (Some(Effort::Medium), None, adaptive("medium")),
        (Some(Effort::High), words, adaptive("high")),
        (Some(Effort::Low), budgets, enabled(4096)),
        (Some(Effort::Medium), budgets, enabled(16_384)),
        (Some(Effort::High), budgets, enabled(32_000)),
    ] {
        let conversation = Conversation { effort, output_tokens_max: 64_000, ..Conversation::new("go") };
        let (told, head) = told(&conversation, reasoning).await;
        assert_eq!(told, expected, "{effort:?}, {reasoning:?}");
        assert_eq!(head.contains("anthropic-beta: interleaved-thinking"), reasoning == budgets, "{head}");
    }
    let small =
        Conversation { effort: Some(Effort::Low), output_tokens_max: 2_047, ..Conversation::new("go") };
    assert_eq!(told(&small, budgets).await.0, format!("2047,{cached}}}"));
    let smallest = Conversation { output_tokens_max: 2_048, ..small };
    assert!(told(&smallest, budgets).await.0.contains("\"budget_tokens\":1024"));
}

#[tokio::test]
async fn a_tool_is_required_or_forbidden_behind_the_messages() {
    let cached = "\"cache_control\":{\"type\":\"ephemeral\"}";
    for (tool_choice, expected) in [
        (ToolChoice::Auto, format!("1024,{cached}}}")),
        (ToolChoice::Required, format!("1024,{cached},\"tool_choice\":{{\"type\":\"any\"}}}}")),
        (ToolChoice::None, format!("1024,{cached},\"tool_choice\":{{\"type\":\"none\"}}}}")),
    ] {
        let mut conversation = Conversation { tool_choice, ..Conversation::new("go") };
        assert_eq!(told(&conversation, None).await.0, expected);
        // Thinking and a forced tool call exclude each other.
        if tool_choice == ToolChoice::Required {
            conversation.effort = Some(Effort::High);
            assert_eq!(told(&conversation, None).await.0, expected);
        }
        conversation.tools = Vec::new().into();
        assert!(!told(&conversation, None).await.0.contains("tool_choice"));
    }
}
