//! Requests to Google's models, byte for byte.

use expect_test::{Expect, expect};
use provost_event::{Block, Effort, Json, ToolCall};
use provost_harness::{ImageData, Part, Role, ToolChoice};
use provost_llm::{ProviderModel, ProviderOptions, Reasoning};
use serde_json::json;

use crate::gemini_support::*;
use crate::server::{Reply, Server, streamed};
use crate::support::{Conversation, KEY, image};

async fn check_contents(conversation: &Conversation, name: &str, expected: Expect) {
    expected.assert_eq(&contents(conversation, name).await);
}

fn thinking(text: &str, signature: Option<&str>, wire: Option<&str>) -> Part {
    let (signature, wire) = (signature.map(str::to_owned), wire.map(str::to_owned));
    Part::Block(Block::Thinking { text: text.to_owned(), signature, wire, prefix: None })
}

fn own(signature: &str) -> Part {
    thinking("hm", Some(signature), Some("gemini"))
}

fn text(text: &str) -> Part {
    Part::Block(Block::Text(text.to_owned()))
}

fn call(id: &str) -> Part {
    let input = Json::parse(r#"{"n": 1.50}"#.to_owned()).unwrap();
    Part::Block(Block::ToolCall(ToolCall { id: id.into(), name: "shell".to_owned(), input, malformed: None }))
}

fn opaque(wire: &str, json: &str) -> Part {
    Part::Block(Block::Opaque {
        wire: wire.to_owned(),
        json: Json::parse(json.to_owned()).unwrap(),
        prefix: None,
    })
}

fn shown(id: &str, output: &str, images: Vec<ImageData>, is_error: bool) -> Part {
    Part::ToolResult {
        call: id.into(),
        tool: "shell".to_owned(),
        output: output.to_owned(),
        images,
        is_error,
    }
}

#[tokio::test]
async fn a_request_says_who_asks_what() {
    let asked = asked(&Conversation::new("Fix \"add\"."), FLASH_2, None).await;
    let line = "POST /v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse HTTP/1.1\r\n";
    assert!(asked.head.starts_with(line), "{}", asked.head);
    for header in [&format!("x-goog-api-key: {KEY}"), "content-type: application/json"] {
        assert!(asked.head.contains(&format!("{header}\r\n")), "{header} in {}", asked.head);
    }
    expect![[r#"{"systemInstruction":{"parts":[{"text":"You are careful."}]},"tools":[{"functionDeclarations":[{"name":"search","description":"Does search.","parametersJsonSchema":{"type":"object","properties":{"pattern":{"type":"string"}}}},{"name":"shell","description":"Does shell.","parametersJsonSchema":{"type":"object","properties":{"pattern":{"type":"string"}}}}]}],"contents":[{"role":"user","parts":[{"text":"Fix \"add\"."}]}],"generationConfig":{"maxOutputTokens":1024}}"#]]
        .assert_eq(&String::from_utf8(asked.body).unwrap());
}

#[tokio::test]
async fn the_bases_version_and_how_the_model_is_named_dont_matter() {
    for (path, name, expected) in [
        ("", "gemini-x", "/v1beta/models/gemini-x:"),
        ("/v1", "gemini-x", "/v1beta/models/gemini-x:"),
        ("/v1beta/", "gemini-x", "/v1beta/models/gemini-x:"),
        ("/gateway/v1beta", "models/gemini-x", "/gateway/v1beta/models/gemini-x:"),
        ("/gateway", "google/x y?%", "/gateway/v1beta/models/google%2Fx%20y%3F%25:"),
    ] {
        let stream = sse(&[last(r#"{"text": "a"}"#, "STOP")]);
        let server = Server::start([Reply::Whole(streamed([stream.as_bytes()]))]).await;
        let mut options = ProviderOptions { model: name.to_owned(), key: None, ..options(&server) };
        options.provider.base_url.push_str(path);
        Conversation::new("go").ask(&ProviderModel::new(options).unwrap()).await.unwrap();
        let head = server.seen().asked.remove(0).head;
        assert!(head.starts_with(&format!("POST {expected}streamGenerateContent?alt=sse ")), "{head}");
        assert!(!head.contains("x-goog-api-key"), "{head}");
    }
}

#[tokio::test]
async fn nothing_is_said_of_tools_and_system_where_there_are_none() {
    let mut conversation = Conversation::new("go");
    conversation.system = " \n".to_owned();
    conversation.tools = Vec::new().into();
    conversation.tool_choice = ToolChoice::Required;
    expect![[r#"{"contents":[{"role":"user","parts":[{"text":"go"}]}],"generationConfig":{"maxOutputTokens":1024}}"#]]
        .assert_eq(&String::from_utf8(asked(&conversation, FLASH_2, None).await.body).unwrap());
}

#[tokio::test]
async fn a_model_may_must_or_must_not_call_tools() {
    let mut conversation = Conversation::new("go");
    for (choice, expected) in [(ToolChoice::Required, "ANY"), (ToolChoice::None, "NONE")] {
        conversation.tool_choice = choice;
        let sent = asked(&conversation, FLASH_2, None).await.json();
        assert_eq!(sent["toolConfig"]["functionCallingConfig"]["mode"], expected);
    }
}

#[tokio::test]
async fn what_the_provider_would_refuse_isnt_sent() {
    let mut conversation = Conversation::new("go");
    conversation.push(Role::Assistant, vec![thinking("hm", None, Some("gemini")), text("\n")]);
    conversation.push(
        Role::Assistant,
        vec![
            thinking("hm", Some("foreign"), None),
            thinking("hm", Some("foreign"), Some("openai-responses")),
            opaque("anthropic", r#"{"type":"redacted_thinking"}"#),
            text("Well."),
        ],
    );
    conversation.push(
        Role::User,
        vec![
            shown("a", "", vec![], false),
            shown("b", " ", vec![], true),
            shown("c", "no such file", vec![], true),
            text(" "),
        ],
    );
    check_contents(
        &conversation,
        FLASH_2,
        expect![[r#"
            [{"role":"user","parts":[{"text":"go"}]},
            {"role":"model","parts":[{"text":"Well."}]},
            {"role":"user","parts":[{"functionResponse":{"id":"a","name":"shell","response":{"output":""}}},{"functionResponse":{"id":"b","name":"shell","response":{"error":"failed without output"}}},{"functionResponse":{"id":"c","name":"shell","response":{"error":"no such file"}}}]}]"#]],
    )
    .await;
}

#[tokio::test]
async fn a_seal_goes_back_with_the_part_it_came_with() {
    let mut conversation = Conversation::new("go");
    conversation.push(Role::Assistant, vec![own("on-call=="), call("a"), call("b")]);
    conversation.push(Role::Assistant, vec![text("1"), own("on-text"), text("2"), text("3"), own("alone")]);
    conversation.push(Role::Assistant, vec![own("x"), own("y"), text(" \n"), call("c")]);
    conversation.push(
        Role::Assistant,
        vec![opaque("gemini", r#"{"text": "hm", "thought": true, "thoughtSignature": "z"}"#), call("d")],
    );
    check_contents(
        &conversation,
        PRO_3,
        expect![[r#"
            [{"role":"user","parts":[{"text":"go"}]},
            {"role":"model","parts":[{"functionCall":{"id":"a","name":"shell","args":{"n": 1.50}},"thoughtSignature":"on-call=="},{"functionCall":{"id":"b","name":"shell","args":{"n": 1.50}}}]},
            {"role":"model","parts":[{"text":"1"},{"text":"2","thoughtSignature":"on-text"},{"text":"3"},{"text":"","thoughtSignature":"alone"}]},
            {"role":"model","parts":[{"text":"","thoughtSignature":"x"},{"text":" \n","thoughtSignature":"y"},{"functionCall":{"id":"c","name":"shell","args":{"n": 1.50}}}]},
            {"role":"model","parts":[{"text": "hm", "thought": true, "thoughtSignature": "z"},{"functionCall":{"id":"d","name":"shell","args":{"n": 1.50}}}]}]"#]],
    )
    .await;
}

#[tokio::test]
async fn calls_of_others_have_a_stand_in_for_the_seal_that_newer_models_want() {
    let mut conversation = Conversation::new("go");
    let foreign = thinking("hm", Some("foreign"), None);
    conversation.push(Role::Assistant, vec![foreign, text("So."), call("toolu_1"), call("toolu_2")]);
    conversation
        .push(Role::User, vec![shown("toolu_1", "x", vec![], false), shown("toolu_2", "y", vec![], false)]);
    let newer = contents(&conversation, PRO_3).await;
    let stand_in = r#","thoughtSignature":"skip_thought_signature_validator""#;
    assert_eq!(newer.matches("thoughtSignature").count(), 1);
    assert!(
        newer.contains(&format!(r#"{{"id":"toolu_1","name":"shell","args":{{"n": 1.50}}}}{stand_in}}}"#)),
        "{newer}"
    );
    assert_eq!(contents(&conversation, FLASH_2).await, newer.replace(stand_in, ""));
}

#[tokio::test]
async fn an_id_that_the_provider_didnt_give_isnt_sent() {
    let mut conversation = Conversation::new("go");
    let stream = sse(&[last(r#"{"functionCall": {"name": "shell","args": {"n":1}}}"#, "STOP")]);
    let server = Server::start([Reply::Whole(streamed([stream.as_bytes()]))]).await;
    let model = named(&server, FLASH_2, None);
    for _ in 0..2 {
        let answer = conversation.ask(&model).await.unwrap();
        conversation.answered(&answer, "done");
    }
    check_contents(
        &conversation,
        FLASH_2,
        expect![[r#"
            [{"role":"user","parts":[{"text":"go"}]},
            {"role":"model","parts":[{"functionCall":{"name":"shell","args":{"n":1}}}]},
            {"role":"user","parts":[{"functionResponse":{"name":"shell","response":{"output":"done"}}}]},
            {"role":"model","parts":[{"functionCall":{"name":"shell","args":{"n":1}}}]},
            {"role":"user","parts":[{"functionResponse":{"name":"shell","response":{"output":"done"}}}]}]"#]],
    )
    .await;
}

#[tokio::test]
async fn pictures_stand_where_the_models_generation_takes_them() {
    let mut conversation = Conversation::new("go");
    conversation.push(Role::User, vec![text("Look:"), Part::Image(png()), Part::Image(image())]);
    conversation.push(Role::Assistant, vec![own("s"), call("a"), call("b")]);
    conversation.push(
        Role::User,
        vec![shown("a", "two", vec![png(), image()], false), shown("b", "", vec![png()], true), text("And?")],
    );
    check_contents(
        &conversation,
        PRO_3,
        expect![[r#"
            [{"role":"user","parts":[{"text":"go"}]},
            {"role":"user","parts":[{"text":"Look:"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgou"}},{"text":"[image/gif of 7 bytes, which can't be shown to you]"}]},
            {"role":"model","parts":[{"functionCall":{"id":"a","name":"shell","args":{"n": 1.50}},"thoughtSignature":"s"},{"functionCall":{"id":"b","name":"shell","args":{"n": 1.50}}}]},
            {"role":"user","parts":[{"functionResponse":{"id":"a","name":"shell","response":{"output":"two\n[image/gif of 7 bytes, which can't be shown to you]"},"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgou"}}]}},{"functionResponse":{"id":"b","name":"shell","response":{"error":"failed without output"},"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgou"}}]}},{"text":"And?"}]}]"#]],
    )
    .await;
    let older = contents(&conversation, FLASH_2).await;
    expect![[r#"
        {"role":"user","parts":[{"functionResponse":{"id":"a","name":"shell","response":{"output":"two\n[image/gif of 7 bytes, which can't be shown to you]"}}},{"functionResponse":{"id":"b","name":"shell","response":{"error":"failed without output"}}},{"text":"[what shell shows:]"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgou"}},{"text":"[what shell shows:]"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgou"}},{"text":"And?"}]}]"#]]
        .assert_eq(older.lines().last().unwrap());
}

async fn check_thinking(
    name: &str,
    reasoning: Option<Reasoning>,
    effort: Option<Effort>,
    output_tokens_max: u32,
    expected: serde_json::Value,
) {
    let mut conversation = Conversation::new("go");
    (conversation.effort, conversation.output_tokens_max) = (effort, output_tokens_max);
    let sent = asked(&conversation, name, reasoning).await.json();
    let config = &sent["generationConfig"];
    assert_eq!(config["thinkingConfig"], expected, "{name} {effort:?}");
    assert_eq!(config["maxOutputTokens"], output_tokens_max);
}

#[tokio::test]
async fn unknown_models_are_not_asked_to_think() {
    check_thinking("gemini-2.0-flash", None, None, 64_000, json!(null)).await;
    let shown = json!({"includeThoughts": true});
    check_thinking("gemini-2.5-pro", Some(Reasoning::Budget), None, 64_000, shown.clone()).await;
    check_thinking(PRO_3, Some(Reasoning::Effort), None, 64_000, shown).await;
}

#[tokio::test]
async fn a_model_thinks_by_a_budget_that_it_takes() {
    let budget = Some(Reasoning::Budget);
    for (name, reasoning, effort, output_tokens_max, expected) in [
        ("gemini-2.5-pro", budget, Effort::Minimal, 64_000, 128),
        ("gemini-2.5-flash", budget, Effort::Minimal, 64_000, 0),
        ("gemini-2.5-flash", None, Effort::Low, 64_000, 4_096),
        ("gemini-2.5-flash", budget, Effort::Medium, 64_000, 16_384),
        ("gemini-2.5-flash", budget, Effort::High, 64_000, 24_576),
        ("gemini-2.5-flash", budget, Effort::High, 8_000, 4_000),
        ("gemini-2.5-flash-lite", budget, Effort::High, 100, 512),
    ] {
        let expected = json!({"includeThoughts": true, "thinkingBudget": expected});
        check_thinking(name, reasoning, Some(effort), output_tokens_max, expected).await;
    }
}

#[tokio::test]
async fn a_model_thinks_by_a_word_that_it_takes() {
    let word = Some(Reasoning::Effort);
    for (name, reasoning, effort, expected) in [
        (PRO_3, word, Effort::Minimal, "LOW"),
        ("gemini-3.8-flash", word, Effort::Minimal, "LOW"),
        ("gemini-3.5-flash", word, Effort::Minimal, "MINIMAL"),
        ("gemini-3.1-flash-lite", word, Effort::Minimal, "MINIMAL"),
        ("gemini-3.8-flash", word, Effort::Low, "LOW"),
        ("gemini-3.8-flash", None, Effort::Medium, "MEDIUM"),
        ("gemini-3-pro-preview", word, Effort::Medium, "HIGH"),
        ("a-model", None, Effort::High, "HIGH"),
    ] {
        let expected = json!({"includeThoughts": true, "thinkingLevel": expected});
        check_thinking(name, reasoning, Some(effort), 64_000, expected).await;
    }
}

#[tokio::test]
async fn a_turns_request_begins_with_the_last_turns_up_to_the_end_of_its_messages() {
    let turn = |n: u32| {
        sse(&[
            parts(&format!(r#"{{"text": "thought {n} \"quoted\" ü","thought": true}}"#)),
            parts(r#"{"text": "so"}"#),
            last(
                &format!(
                    r#"{{"functionCall": {{"name": "search","args": {{"pattern": "{n}"}},"id": "id{n}"}},"thoughtSignature": "sig{n}=="}}"#
                ),
                "STOP",
            ),
        ])
    };
    let replies = (1..=4).map(|n| Reply::Whole(streamed([turn(n).as_bytes()]))).collect::<Vec<_>>();
    let server = Server::start(replies).await;
    let (model, mut conversation) = (named(&server, PRO_3, None), Conversation::new("go"));
    for n in 0..4 {
        let answer = conversation.ask(&model).await.unwrap();
        conversation.answered(&answer, "found\n\"it\"");
        conversation.output_tokens_max += 1;
        conversation.effort = [Some(Effort::Low), None][n % 2];
        conversation.tool_choice = [ToolChoice::None, ToolChoice::Auto][n % 2];
    }
    let asked = server.seen().asked;
    for (turn, pair) in asked.windows(2).enumerate() {
        let before = String::from_utf8(pair[0].body.clone()).unwrap();
        let messages = before.rsplit_once("],\"generationConfig\"").unwrap().0;
        assert!(pair[1].body.starts_with(messages.as_bytes()), "turn {turn}");
        assert_eq!(pair[1].body[messages.len()], b',', "turn {turn}");
    }
    let last = asked[3].json();
    assert_eq!(last["contents"].as_array().unwrap().len(), 7);
    assert_eq!(
        last["contents"][3]["parts"].to_string(),
        r#"[{"text":"so"},{"functionCall":{"id":"id2","name":"search","args":{"pattern":"2"}},"thoughtSignature":"sig2=="}]"#
    );
}
