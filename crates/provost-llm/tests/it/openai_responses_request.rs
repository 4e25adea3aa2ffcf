//! Requests to Responses, byte for byte.

use expect_test::expect;
use provost_event::{Block, CallId, Effort, Json, ToolCall};
use provost_harness::{Part, Role, ToolChoice};
use provost_llm::{Provider, ProviderModel, ProviderOptions, WireFormat};

use crate::openai_responses_support::*;
use crate::server::{ReceivedRequest, Reply, Server, streamed};
use crate::support::{self, Conversation, KEY, image, result};

fn answers(streams: &[String]) -> Vec<Reply> {
    streams.iter().map(|stream| Reply::Whole(streamed([stream.as_bytes()]))).collect()
}

async fn asked(conversation: &Conversation, model: impl FnOnce(&Server) -> ProviderModel) -> ReceivedRequest {
    let server = Server::start(answers(&[stream(&[])])).await;
    conversation.ask(&model(&server)).await.unwrap();
    server.seen().asked[0].clone()
}

async fn sent(conversation: &Conversation) -> String {
    String::from_utf8(asked(conversation, model).await.body).unwrap()
}

/// The input's items, one per line.
async fn items(conversation: &Conversation) -> String {
    let sent = sent(conversation).await;
    let input = sent.split_once("\"input\":[").unwrap().1.rsplit_once("],\"max_output_tokens\"").unwrap().0;
    // A picture's part isn't an item.
    let lines = input.replace("},{\"type\":\"", "}\n{\"type\":\"");
    format!("{}\n", lines.replace("}\n{\"type\":\"input_", "},{\"type\":\"input_"))
}

fn text(text: &str) -> Part {
    Part::Block(Block::Text(text.to_owned()))
}

fn thinking(signature: Option<&str>, wire: Option<&str>) -> Part {
    let (signature, wire) = (signature.map(str::to_owned), wire.map(str::to_owned));
    Part::Block(Block::Thinking { text: "hm".to_owned(), signature, wire, prefix: None })
}

fn opaque(wire: &str, json: &str) -> Part {
    Part::Block(Block::Opaque {
        wire: wire.to_owned(),
        json: Json::parse(json.to_owned()).unwrap(),
        prefix: None,
    })
}

fn call(id: &str, arguments: &str, malformed: Option<&str>) -> Part {
    let input = Json::parse(arguments.to_owned()).unwrap();
    let malformed = malformed.map(str::to_owned);
    Part::Block(Block::ToolCall(ToolCall { id: id.into(), name: "shell".to_owned(), input, malformed }))
}

#[tokio::test]
async fn a_request_says_who_asks_what() {
    let asked = asked(&Conversation::new("Fix \"add\"."), model).await;
    assert!(asked.head.starts_with("POST /v1/responses HTTP/1.1\r\n"), "{}", asked.head);
    for header in [&format!("authorization: Bearer {KEY}"), "content-type: application/json"] {
        assert!(asked.head.contains(&format!("{header}\r\n")), "{header} in {}", asked.head);
    }
    expect![[r#"{"model":"gpt-test","instructions":"You are careful.","tools":[{"type":"function","name":"search","description":"Does search.","parameters":{"type":"object","properties":{"pattern":{"type":"string"}}},"strict":false},{"type":"function","name":"shell","description":"Does shell.","parameters":{"type":"object","properties":{"pattern":{"type":"string"}}},"strict":false}],"store":false,"stream":true,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Fix \"add\"."}]}],"max_output_tokens":1024}"#]].assert_eq(&String::from_utf8(asked.body).unwrap());
}

#[tokio::test]
async fn nothing_is_said_of_tools_instructions_and_key_where_there_are_none() {
    let mut conversation = Conversation::new("go");
    conversation.system = " \n".to_owned();
    conversation.tools = Vec::new().into();
    conversation.tool_choice = ToolChoice::Required;
    conversation.output_tokens_max = 1;
    let keyless =
        |server: &Server| ProviderModel::new(ProviderOptions { key: None, ..options(server) }).unwrap();
    let asked = asked(&conversation, keyless).await;
    assert!(!asked.head.contains("authorization"), "{}", asked.head);
    expect![[r#"{"model":"gpt-test","store":false,"stream":true,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}],"max_output_tokens":16}"#]].assert_eq(&String::from_utf8(asked.body).unwrap());
}

#[tokio::test]
async fn only_an_address_without_a_path_gets_the_usual_one() {
    for (path, expected) in [
        ("", "/v1/responses"),
        ("/", "/v1/responses"),
        ("/v1", "/v1/responses"),
        ("/v1/", "/v1/responses"),
        ("/openai/v1", "/openai/v1/responses"),
        ("/api", "/api/responses"),
    ] {
        let at_path = |server: &Server| {
            let url = server.url() + path;
            let provider = Provider::new("x", WireFormat::OpenaiResponses, url);
            ProviderModel::new(ProviderOptions { provider, ..options(server) }).unwrap()
        };
        let asked = asked(&Conversation::new("go"), at_path).await;
        assert!(asked.head.starts_with(&format!("POST {expected} ")), "{path}: {}", asked.head);
    }
}

#[tokio::test]
async fn only_a_model_that_reasons_is_asked_to() {
    let tail = async |name: &'static str, effort: Option<Effort>, choice: ToolChoice| {
        let conversation = Conversation { effort, tool_choice: choice, ..Conversation::new("go") };
        let asked = match name {
            "" => asked(&conversation, model).await,
            name => asked(&conversation, |server| reasoning_model(server, name)).await,
        };
        let body = String::from_utf8(asked.body).unwrap();
        let tail = body.split_once("\"max_output_tokens\":1024").unwrap().1;
        format!("{name:?}: {tail}\n")
    };
    let tails = [
        tail("", None, ToolChoice::Auto).await,
        tail("", Some(Effort::High), ToolChoice::None).await,
        tail("gpt-5", None, ToolChoice::Required).await,
        tail("gpt-5-mini", Some(Effort::Medium), ToolChoice::Auto).await,
    ];
    expect![[r#"
        "": }
        "": ,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"high","summary":"auto"},"tool_choice":"none"}
        "gpt-5": ,"include":["reasoning.encrypted_content"],"reasoning":{"summary":"auto"},"tool_choice":"required"}
        "gpt-5-mini": ,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"medium","summary":"auto"}}
    "#]].assert_eq(&tails.concat());
    for (name, expected) in [
        ("gpt-5", "minimal"),
        ("gpt-5-mini-2025-08-07", "minimal"),
        ("openai/gpt-5-nano", "minimal"),
        ("gpt-5.1", "none"),
        ("gpt-5.2-2025-12-11", "none"),
        ("gpt-5-codex", "low"),
        ("gpt-5.1-codex-mini", "low"),
        ("gpt-5-pro", "high"),
        ("gpt-5.2-pro", "medium"),
        ("o3-pro", "low"),
        ("o3", "low"),
        ("gpt-oss-20b", "low"),
    ] {
        let tail = tail(name, Some(Effort::Minimal), ToolChoice::Auto).await;
        assert!(tail.contains(&format!("\"effort\":\"{expected}\"")), "{name}: {tail}");
    }
}

#[tokio::test]
async fn results_come_before_words_and_pictures_stand_among_them() {
    let mut conversation = Conversation::new("Look:");
    conversation.push(Role::User, vec![text("this"), Part::Image(image()), text(" ")]);
    conversation.push(
        Role::Assistant,
        vec![text("Right."), call("a", "{\"n\": 1}", None), call("b", "{}", Some("[1]"))],
    );
    let shown = |call: &str, output: &str| Part::ToolResult {
        call: CallId(call.into()),
        tool: "shell".to_owned(),
        output: output.to_owned(),
        images: vec![image()],
        is_error: false,
    };
    let results = vec![
        result(&"a".into(), "shell", "no such file", true),
        result(&"b".into(), "shell", " ", true),
        result(&"c".into(), "shell", "", false),
        shown("d", "a picture"),
        shown("e", "\n"),
        text("And hurry."),
    ];
    conversation.push(Role::User, results);
    expect![[r#"
        {"type":"message","role":"user","content":[{"type":"input_text","text":"Look:"}]}
        {"type":"message","role":"user","content":[{"type":"input_text","text":"this"},{"type":"input_image","image_url":"data:image/gif;base64,R0lGODlhLg==","detail":"auto"}]}
        {"type":"message","role":"assistant","content":"Right."}
        {"type":"function_call","call_id":"a","name":"shell","arguments":"{\"n\": 1}"}
        {"type":"function_call","call_id":"b","name":"shell","arguments":"{}"}
        {"type":"function_call_output","call_id":"a","output":"The tool failed:\nno such file"}
        {"type":"function_call_output","call_id":"b","output":"failed without output"}
        {"type":"function_call_output","call_id":"c","output":""}
        {"type":"function_call_output","call_id":"d","output":[{"type":"input_text","text":"a picture"},{"type":"input_image","image_url":"data:image/gif;base64,R0lGODlhLg==","detail":"auto"}]}
        {"type":"function_call_output","call_id":"e","output":[{"type":"input_image","image_url":"data:image/gif;base64,R0lGODlhLg==","detail":"auto"}]}
        {"type":"message","role":"user","content":[{"type":"input_text","text":"And hurry."}]}
    "#]].assert_eq(&items(&conversation).await);
}

#[tokio::test]
async fn what_the_provider_would_refuse_isnt_sent() {
    let own = Some("openai-responses");
    let sealed = r#"{"type":"reasoning", "id":"rs_1","summary":[],"encrypted_content":"x"}"#;
    let mut conversation = Conversation::new("go");
    conversation.push(Role::Assistant, vec![text("\n"), thinking(None, own), thinking(Some("sig"), None)]);
    conversation.push(
        Role::Assistant,
        vec![thinking(Some(sealed), Some("anthropic")), thinking(Some("torn"), own), text("a")],
    );
    // No part of the answer follows the reasoning.
    conversation.push(Role::Assistant, vec![text("b"), thinking(Some(sealed), own)]);
    let more = vec![
        opaque("anthropic", r#"{"type":"redacted_thinking","data":"x"}"#),
        thinking(Some(sealed), own),
        opaque("openai-responses", r#"{"type":"provost_message_phase","phase":"commentary"}"#),
        text("c"),
        opaque("openai-responses", r#"{"type":"custom_tool_call","call_id":"x","name":"y","input":"z"}"#),
        opaque("openai-responses", r#"{"type":"web_search_call", "id":"ws_1"}"#),
        text("d"),
        call("a", "{}", None),
    ];
    conversation.push(Role::Assistant, more);
    conversation.push(Role::User, vec![result(&"a".into(), "shell", "done", false)]);
    expect![[r#"
        {"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}
        {"type":"message","role":"assistant","content":"a"}
        {"type":"message","role":"assistant","content":"b"}
        {"type":"reasoning", "id":"rs_1","summary":[],"encrypted_content":"x"}
        {"type":"message","role":"assistant","content":"c","phase":"commentary"}
        {"type":"web_search_call", "id":"ws_1"}
        {"type":"message","role":"assistant","content":"d"}
        {"type":"function_call","call_id":"a","name":"shell","arguments":"{}"}
        {"type":"function_call_output","call_id":"a","output":"done"}
    "#]]
    .assert_eq(&items(&conversation).await);
}

#[tokio::test]
async fn a_turns_request_begins_with_the_last_turns_up_to_the_end_of_its_messages() {
    let turn = |n: u32| {
        let mut said = text_item(1, "msg_1", &["so"]);
        said.last_mut().unwrap()["item"]["phase"] = "commentary".into();
        stream(&[
            reasoning_item(0, &format!("rs_{n}"), &["thought \"quoted\" ü"], Some(&format!("seal{n}=="))),
            said,
            call_item(2, &format!("call_{n}"), "search", &["{\"pattern\": ", &format!("\"{n}\"}}")]),
        ])
    };
    let server = Server::start(answers(&[turn(1), turn(2), turn(3), turn(4)])).await;
    let (model, mut conversation) = (reasoning_model(&server, "gpt-5"), Conversation::new("go"));
    for effort in [None, Some(Effort::Low), Some(Effort::High), None] {
        conversation.effort = effort;
        let answer = conversation.ask(&model).await.unwrap();
        conversation.answered(&answer, "found\n\"it\"");
        conversation.output_tokens_max += 1;
    }
    let asked = server.seen().asked;
    for (turn, pair) in asked.windows(2).enumerate() {
        let before = String::from_utf8(pair[0].body.clone()).unwrap();
        let messages = before.rsplit_once("],\"max_output_tokens\"").unwrap().0;
        assert!(pair[1].body.starts_with(messages.as_bytes()), "turn {turn}");
        assert_eq!(pair[1].body[messages.len()], b',', "turn {turn}");
    }
    let last = asked[3].json();
    assert_eq!(last["input"].as_array().unwrap().len(), 13);
    let turn =
        last["input"].as_array().unwrap()[5..9].iter().map(|item| format!("{item}\n")).collect::<String>();
    expect![[r#"
        {"id":"rs_2","type":"reasoning","summary":[{"type":"summary_text","text":"thought \"quoted\" ü"}],"encrypted_content":"seal2=="}
        {"type":"message","role":"assistant","content":"so","phase":"commentary"}
        {"type":"function_call","call_id":"call_2","name":"search","arguments":"{\"pattern\": \"2\"}"}
        {"type":"function_call_output","call_id":"call_2","output":"found\n\"it\""}
    "#]].assert_eq(&turn);
}

#[tokio::test]
async fn another_wire_formats_answer_goes_back_as_far_as_it_can_be_read() {
    let mut conversation = Conversation::new("go");
    conversation.push(
        Role::Assistant,
        vec![thinking(Some("sig"), Some("anthropic")), text("a"), call("toolu_1", "{}", None)],
    );
    conversation.push(Role::User, vec![result(&"toolu_1".into(), "shell", "done", false)]);
    let server = Server::start(answers(&[stream(&[])])).await;
    // The message keeps the form in which it was encoded first.
    let first = support::model(WireFormat::Anthropic, &server);
    let _ = conversation.ask(&first).await;
    expect![[r#"
        {"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}
        {"type":"message","role":"assistant","content":"a"}
        {"type":"function_call","call_id":"toolu_1","name":"shell","arguments":"{}"}
        {"type":"function_call_output","call_id":"toolu_1","output":"done"}
    "#]]
    .assert_eq(&items(&conversation).await);
}
