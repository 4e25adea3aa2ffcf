//! Requests over Chat Completions, byte for byte.

use expect_test::{Expect, expect};
use provost_event::{Block, Effort, Json, ToolCall};
use provost_harness::{Part, Role, ToolChoice};
use provost_llm::{
    Deviations, EffortField, LeastEffort, OutputCapField, Provider, ProviderModel, ProviderOptions,
    Providers, Reasoning, ReasoningBack,
};

use crate::openai_chat_support::*;
use crate::server::{ReceivedRequest, Reply, Server, streamed};
use crate::support::{self, Conversation, KEY, image, result};

async fn asked(conversation: &Conversation, model: impl FnOnce(&Server) -> ProviderModel) -> ReceivedRequest {
    let server = Server::start([Reply::Whole(streamed([text("a").as_bytes()]))]).await;
    // The answer doesn't matter.
    let _ = conversation.ask(&model(&server)).await;
    server.seen().asked[0].clone()
}

async fn sent(conversation: &Conversation, name: &str, deviations: Deviations) -> String {
    let asked = asked(conversation, |server| deviating(server, name, deviations)).await;
    String::from_utf8(asked.body).unwrap()
}

/// The messages after the first user message, one per line.
async fn messages(conversation: &Conversation, back: ReasoningBack) -> String {
    let deviations = Deviations { reasoning_back: back, ..Deviations::default() };
    let sent = sent(conversation, "m", deviations).await;
    let messages = sent.split_once(r#"{"role":"user","content":"go"},"#).unwrap().1;
    let messages = messages.split_once("],\"max_tokens\"").unwrap().0;
    messages.replace("},{\"role\"", "},\n{\"role\"") + "\n"
}

fn bare() -> Conversation {
    let mut conversation = Conversation::new("go");
    conversation.system = " \n".to_owned();
    conversation.tools = Vec::new().into();
    conversation
}

fn call(id: &str, input: &str) -> Part {
    let input = Json::parse(input.to_owned()).unwrap();
    Part::Block(Block::ToolCall(ToolCall {
        id: id.into(),
        name: "search".to_owned(),
        input,
        malformed: None,
    }))
}

fn thought(text: &str, signature: Option<&str>, wire: Option<&str>) -> Part {
    Part::Block(Block::Thinking {
        prefix: None,
        text: text.to_owned(),
        signature: signature.map(str::to_owned),
        wire: wire.map(str::to_owned),
    })
}

fn said(text: &str) -> Part {
    Part::Block(Block::Text(text.to_owned()))
}

#[tokio::test]
async fn a_request_says_who_asks_what() {
    let asked = asked(&Conversation::new("Fix \"add\"."), model).await;
    assert!(asked.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", asked.head);
    for header in [&format!("authorization: Bearer {KEY}"), "content-type: application/json"] {
        assert!(asked.head.contains(&format!("{header}\r\n")), "{header} in {}", asked.head);
    }
    expect![[r#"{"model":"a-model","tools":[{"type":"function","function":{"name":"search","description":"Does search.","parameters":{"type":"object","properties":{"pattern":{"type":"string"}}}}},{"type":"function","function":{"name":"shell","description":"Does shell.","parameters":{"type":"object","properties":{"pattern":{"type":"string"}}}}}],"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"You are careful."},{"role":"user","content":"Fix \"add\"."}],"max_tokens":1024}"#]]
        .assert_eq(&String::from_utf8(asked.body).unwrap());
}

#[tokio::test]
async fn nothing_is_said_of_tools_and_system_where_there_are_none_nor_of_a_key() {
    let mut conversation = bare();
    conversation.tool_choice = ToolChoice::Required;
    let asked = asked(&conversation, |server| {
        let options = ProviderOptions { key: None, ..support::options(WIRE, server.url()) };
        ProviderModel::new(options).unwrap()
    });
    let asked = asked.await;
    assert!(!asked.head.to_lowercase().contains("authorization"), "{}", asked.head);
    expect![[r#"{"model":"a-model","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"go"}],"max_tokens":1024}"#]]
        .assert_eq(&String::from_utf8(asked.body).unwrap());
}

#[tokio::test]
async fn requests_go_below_the_base_urls_path() {
    for (path, expected) in [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("/api/paas/v4", "/api/paas/v4/chat/completions"),
        ("/openai/v1/chat/completions", "/openai/v1/chat/completions"),
    ] {
        let conversation = bare();
        let asked = asked(&conversation, |server| {
            ProviderModel::new(support::options(WIRE, format!("{}{path}", server.url()))).unwrap()
        });
        let head = asked.await.head;
        assert!(head.starts_with(&format!("POST {expected} HTTP/1.1\r\n")), "{path}: {head}");
    }
}

#[tokio::test]
async fn a_servers_own_ways_are_followed() {
    let mut conversation = bare();
    conversation.effort = Some(Effort::Minimal);
    let check = async |conversation: &Conversation, deviations, expected: Expect| {
        let sent = sent(conversation, "m", deviations).await;
        expected.assert_eq(&sent.replace(r#""messages":[{"role":"user","content":"go"}]"#, "…"));
    };
    let openai = Deviations {
        output_cap: OutputCapField::MaxCompletionTokens,
        least_effort: LeastEffort::Minimal,
        cache_key: true,
        ..Deviations::default()
    };
    check(
        &conversation,
        openai,
        expect![[r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"prompt_cache_key":"000000000007.0",…,"max_completion_tokens":1024,"reasoning_effort":"minimal"}"#]],
    )
    .await;
    let mistral = Deviations { no_stream_options: true, effort: EffortField::None, ..Deviations::default() };
    check(&conversation, mistral, expect![[r#"{"model":"m","stream":true,…,"max_tokens":1024}"#]]).await;
    let openrouter = Deviations { effort: EffortField::Reasoning, ..Deviations::default() };
    check(&conversation, openrouter, expect![[r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},…,"max_tokens":1024,"reasoning":{"effort":"low"}}"#]]).await;
    let deepseek = Deviations { effort: EffortField::ThinkingAndEffort, ..Deviations::default() };
    check(&conversation, deepseek, expect![[r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},…,"max_tokens":1024,"thinking":{"type":"disabled"}}"#]]).await;
    conversation.effort = Some(Effort::High);
    check(&conversation, deepseek, expect![[r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},…,"max_tokens":1024,"thinking":{"type":"enabled"},"reasoning_effort":"high"}"#]]).await;
    let zai = Deviations { effort: EffortField::Thinking, ..Deviations::default() };
    check(&conversation, zai, expect![[r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},…,"max_tokens":1024,"thinking":{"type":"enabled"}}"#]]).await;
}

#[tokio::test]
async fn a_model_that_must_call_a_tool_isnt_let_think_where_that_is_refused() {
    let mut conversation = Conversation::new("go");
    let mut end = async |choice, effort| {
        (conversation.tool_choice, conversation.effort) = (choice, effort);
        let deviations = Deviations { effort: EffortField::ThinkingAndEffort, ..Deviations::default() };
        let sent = sent(&conversation, "m", deviations).await;
        sent.split_once("\"max_tokens\":1024").unwrap().1.to_owned()
    };
    assert_eq!(end(ToolChoice::None, None).await, r#","tool_choice":"none"}"#);
    let forced = r#","thinking":{"type":"disabled"},"tool_choice":"required"}"#;
    assert_eq!(end(ToolChoice::Required, None).await, forced);
    assert_eq!(end(ToolChoice::Required, Some(Effort::High)).await, forced);
}

#[tokio::test]
async fn openrouter_is_told_what_to_cache_of_models_that_want_to_be_told() {
    let deviations = Deviations { cache_control: true, ..Deviations::default() };
    let mut conversation = bare();
    conversation.system = "You are careful.".to_owned();
    expect![[r#"{"model":"anthropic/claude-x","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":[{"type":"text","text":"You are careful.","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":"go"}],"max_tokens":1024,"cache_control":{"type":"ephemeral"}}"#]]
        .assert_eq(&sent(&conversation, "anthropic/claude-x", deviations).await);
    expect![[r#"{"model":"openai/gpt-x","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"You are careful."},{"role":"user","content":"go"}],"max_tokens":1024}"#]]
        .assert_eq(&sent(&conversation, "openai/gpt-x", deviations).await);
}

#[tokio::test]
async fn results_come_first_and_pictures_follow_in_a_message_of_their_own() {
    let mut conversation = bare();
    conversation.push(Role::Assistant, vec![said("\n"), call("a", r#"{"pattern": "x"}"#), call("b", "{}")]);
    let with_picture = |call: &str, output: &str| Part::ToolResult {
        call: call.into(),
        tool: "look".to_owned(),
        output: output.to_owned(),
        images: vec![image()],
        is_error: false,
    };
    conversation.push(
        Role::User,
        vec![
            result(&"a".into(), "search", "found\n\"it\"", false),
            result(&"b".into(), "search", "", false),
            result(&"c".into(), "search", " ", true),
            result(&"d".into(), "search", "no such file", true),
            with_picture("e", "as asked"),
            with_picture("f", ""),
            said("And now?"),
            said(" "),
            Part::Image(image()),
        ],
    );
    conversation.push(Role::User, vec![said("One."), said("Two.")]);
    expect![[r#"
        {"role":"assistant","content":null,"tool_calls":[{"type":"function","id":"a","function":{"name":"search","arguments":"{\"pattern\": \"x\"}"}},{"type":"function","id":"b","function":{"name":"search","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"a","content":"found\n\"it\""},
        {"role":"tool","tool_call_id":"b","content":"(no output)"},
        {"role":"tool","tool_call_id":"c","content":"failed without output"},
        {"role":"tool","tool_call_id":"d","content":"The tool failed:\nno such file"},
        {"role":"tool","tool_call_id":"e","content":"as asked"},
        {"role":"tool","tool_call_id":"f","content":"(only pictures, which follow)"},
        {"role":"user","content":[{"type":"text","text":"Pictures of the result of look (e):"},{"type":"image_url","image_url":{"url":"data:image/gif;base64,R0lGODlhLg=="}},{"type":"text","text":"Pictures of the result of look (f):"},{"type":"image_url","image_url":{"url":"data:image/gif;base64,R0lGODlhLg=="}},{"type":"text","text":"And now?"},{"type":"image_url","image_url":{"url":"data:image/gif;base64,R0lGODlhLg=="}}]},
        {"role":"user","content":"One.\n\nTwo."}
    "#]]
        .assert_eq(&messages(&conversation, ReasoningBack::None).await);
}

#[tokio::test]
async fn reasoning_goes_back_where_the_server_wants_it_and_only_its_own() {
    let mut conversation = bare();
    let own = Some("openai-chat");
    let opaque = Json::parse(r#"{"type":"x"}"#.to_owned()).unwrap();
    conversation.push(
        Role::Assistant,
        vec![
            thought("hm", Some(r#"[{"type":"reasoning.text","text":"hm", "signature":"s"}]"#), own),
            thought("no", Some("sig"), Some("anthropic")),
            thought("no", Some("sig"), None),
            Part::Block(Block::Opaque { wire: "openai-responses".to_owned(), json: opaque, prefix: None }),
            said("So."),
            thought("and", Some(r#"[{"type":"reasoning.encrypted","data":"d"}]"#), own),
            call("a", "{}"),
        ],
    );
    conversation.push(Role::User, vec![result(&"a".into(), "search", "x", false)]);
    conversation.push(Role::Assistant, vec![thought("no", Some("sig"), Some("anthropic")), call("b", "{}")]);
    conversation.push(Role::User, vec![result(&"b".into(), "search", "x", false)]);
    conversation.push(Role::Assistant, vec![thought("only", None, own)]);
    conversation.push(Role::Assistant, vec![said("Done.")]);
    let mut shown = String::new();
    for back in [
        ReasoningBack::None,
        ReasoningBack::ReasoningContent,
        ReasoningBack::Reasoning,
        ReasoningBack::ReasoningDetails,
    ] {
        let messages = messages(&conversation, back).await;
        let assistant = messages.lines().filter(|line| line.contains("assistant"));
        shown += &format!("{back:?}\n{}\n", assistant.collect::<Vec<_>>().join("\n"));
    }
    let shown = shown.replace(
        r#","tool_calls":[{"type":"function","id":"a","function":{"name":"search","arguments":"{}"}}]"#,
        " A",
    );
    let shown = shown.replace(
        r#","tool_calls":[{"type":"function","id":"b","function":{"name":"search","arguments":"{}"}}]"#,
        " B",
    );
    expect![[r#"
        None
        {"role":"assistant","content":"So." A},
        {"role":"assistant","content":null B},
        {"role":"assistant","content":"Done."}
        ReasoningContent
        {"role":"assistant","content":"So.","reasoning_content":"hm\n\nand" A},
        {"role":"assistant","content":null,"reasoning_content":"" B},
        {"role":"assistant","content":"Done."}
        Reasoning
        {"role":"assistant","content":"So.","reasoning":"hm\n\nand" A},
        {"role":"assistant","content":null B},
        {"role":"assistant","content":"Done."}
        ReasoningDetails
        {"role":"assistant","content":"So.","reasoning_details":[{"type":"reasoning.text","text":"hm", "signature":"s"},{"type":"reasoning.encrypted","data":"d"}] A},
        {"role":"assistant","content":null B},
        {"role":"assistant","content":"Done."}
    "#]]
    .assert_eq(&shown);
}

#[tokio::test]
async fn a_turns_request_begins_with_the_last_turns_up_to_the_end_of_its_messages() {
    let turn = |n: u32| {
        let thought = format!(
            r#"{{"reasoning":"thought {n} \"quoted\" ü","reasoning_details":[{{"type":"reasoning.text","text":"thought {n} \"quoted\" ü","signature":"s{n}==","index":0}}]}}"#
        );
        let call = format!(
            r#"{{"content":"so","tool_calls":[{{"index":0,"id":"call_{n}","function":{{"name":"search","arguments":"{{\"pattern\": \"{n}\"}}"}}}}]}}"#
        );
        stream(&[&thought, &call], "tool_calls")
    };
    let replies = [1, 2, 3, 4].map(|n| Reply::Whole(streamed([turn(n).as_bytes()])));
    let server = Server::start(replies).await;
    let deviations = Deviations {
        reasoning_back: ReasoningBack::ReasoningDetails,
        cache_control: true,
        cache_key: true,
        ..Deviations::default()
    };
    let (model, mut conversation) = (deviating(&server, "anthropic/x", deviations), Conversation::new("go"));
    for effort in [None, Some(Effort::Low), Some(Effort::High), None] {
        conversation.effort = effort;
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
    assert_eq!(last["messages"].as_array().unwrap().len(), 8);
    expect![[r#"{"role":"assistant","content":"so","reasoning_details":[{"type":"reasoning.text","text":"thought 2 \"quoted\" ü","signature":"s2==","index":0}],"tool_calls":[{"type":"function","id":"call_2","function":{"name":"search","arguments":"{\"pattern\": \"2\"}"}}]}"#]]
        .assert_eq(&last["messages"][4].to_string());
}

#[test]
fn the_built_in_providers_are_asked_as_their_documentation_says() {
    let providers = Providers::built_in();
    let ways = providers.iter().filter(|provider| provider.wire == WIRE).map(|provider| {
        let Deviations {
            output_cap,
            effort,
            least_effort,
            reasoning_back,
            no_stream_options,
            cache_key,
            custom_tools,
            cache_control,
        } = provider.deviations;
        let more = [
            (no_stream_options, "no_stream_options"),
            (cache_key, "cache_key"),
            (custom_tools, "custom_tools"),
            (cache_control, "cache_control"),
        ];
        let more =
            more.iter().filter(|(is_so, _)| *is_so).map(|(_, name)| format!(" {name}")).collect::<String>();
        format!("{}: {output_cap:?} {effort:?} {least_effort:?} {reasoning_back:?}{more}\n", provider.name)
    });
    expect![[r#"
        openai-chat: MaxCompletionTokens ReasoningEffort Openai None cache_key
        openrouter: MaxTokens Reasoning Minimal ReasoningDetails cache_control
        deepseek: MaxTokens ThinkingAndEffort Low ReasoningContent
        mistral: MaxTokens None Low None no_stream_options cache_key
        groq: MaxCompletionTokens ReasoningEffort Low None
        xai: MaxCompletionTokens ReasoningEffort Low None
        moonshot: MaxCompletionTokens None Low ReasoningContent cache_key
        zai: MaxTokens Thinking Low ReasoningContent no_stream_options
        fireworks: MaxTokens ReasoningEffort Low ReasoningContent cache_key
        cerebras: MaxCompletionTokens ReasoningEffort Low None
        together: MaxTokens ReasoningEffort Low None
        nvidia: MaxTokens None Low None
        ollama: MaxTokens ReasoningEffort None Reasoning
        vllm: MaxTokens ReasoningEffort Low Reasoning
        llamacpp: MaxTokens ReasoningEffort Low ReasoningContent
        lmstudio: MaxTokens ReasoningEffort Low None
        litellm: MaxTokens ReasoningEffort Low None
    "#]]
    .assert_eq(&ways.collect::<String>());
}

#[tokio::test]
async fn openais_newer_models_take_tools_over_responses_at_openais_address_and_elsewhere_without_an_effort() {
    let ways = Deviations { least_effort: LeastEffort::Openai, ..Deviations::default() };
    let mut conversation = Conversation::new("go");
    conversation.effort = Some(Effort::High);
    for (name, effort) in [
        ("gpt-5", Some("high")),
        ("gpt-5.2", Some("high")),
        ("gpt-5.4", None),
        ("gpt-5.5-2026-04-23", None),
        ("gpt-5.6-terra", Some("none")),
        ("gpt-6.1-sol", Some("none")),
        ("o3", Some("high")),
    ] {
        let sent: serde_json::Value = serde_json::from_str(&sent(&conversation, name, ways).await).unwrap();
        assert_eq!(sent["reasoning_effort"].as_str(), effort, "{name}");
    }
    conversation.tools = Vec::new().into();
    let alone: serde_json::Value = serde_json::from_str(&sent(&conversation, "gpt-5.6", ways).await).unwrap();
    assert_eq!(alone["reasoning_effort"], "high");
    conversation.effort = Some(Effort::Minimal);
    for (name, effort) in [("gpt-5", "minimal"), ("gpt-5.1", "none"), ("gpt-6-sol", "none"), ("o3", "low")] {
        let sent: serde_json::Value = serde_json::from_str(&sent(&conversation, name, ways).await).unwrap();
        assert_eq!(sent["reasoning_effort"], effort, "{name}");
    }

    for (name, path) in
        [("gpt-5.2", "/v1/chat/completions"), ("gpt-5.4", "/v1/responses"), ("o3", "/v1/chat/completions")]
    {
        let conversation = Conversation::new("go");
        let asked = asked(&conversation, |server| {
            let base_url = format!("{}/v1", server.url());
            let provider = Provider {
                responses_at: Some(base_url.clone()),
                deviations: ways,
                ..Provider::new("x", WIRE, base_url)
            };
            let options = support::options(WIRE, server.url());
            ProviderModel::new(ProviderOptions { provider, model: name.to_owned(), ..options }).unwrap()
        });
        let head = asked.await.head;
        assert!(head.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{name}: {head}");
    }
}

#[tokio::test]
async fn a_model_that_doesnt_think_isnt_told_how_much() {
    let mut conversation = bare();
    conversation.effort = Some(Effort::High);
    for wire in provost_llm::WireFormat::ALL {
        let asked = asked(&conversation, |server| {
            let options = support::options(wire, server.url());
            ProviderModel::new(ProviderOptions { reasoning: Some(Reasoning::None), ..options }).unwrap()
        });
        let body = String::from_utf8(asked.await.body).unwrap();
        for word in ["effort", "thinking", "reasoning"] {
            assert!(!body.contains(word), "{wire}: {body}");
        }
    }
}
