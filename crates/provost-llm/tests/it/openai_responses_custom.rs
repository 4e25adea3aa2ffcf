//! Custom tools of Responses: a model writes the one argument as it is.

use std::sync::Arc;

use expect_test::expect;
use provost_engine::Answer;
use provost_event::{Block, Freeform, Json, StopReason, ToolSpec};
use provost_harness::{Message, Part, Role};
use provost_llm::{Deviations, Provider, ProviderModel, ProviderOptions, WireFormat};
use serde_json::{Value, json};

use crate::openai_responses_support::*;
use crate::server::{Reply, Server, streamed};
use crate::support::{self, Conversation, result};

const PATCH: &str = "*** Begin Patch\n*** Add File: \"a\\b\".txt\n+ü\t\"x\"\n*** End Patch\n";

fn patcher() -> ToolSpec {
    let schema = json!({"type":"object","properties":{"input":{"type":"string"}},"required":["input"]});
    let schema = Json::of(&schema).unwrap();
    let freeform = Some(Freeform { grammar: "start: \"x\"".to_owned() });
    ToolSpec { freeform, ..ToolSpec::new("apply_patch", "Patches.", schema) }
}

fn conversation() -> Conversation {
    let mut conversation = Conversation::new("go");
    conversation.tools = vec![patcher()].into();
    conversation
}

/// OpenAI's own server, which has custom tools.
fn openai(server: &Server) -> ProviderModel {
    let deviations = Deviations { custom_tools: true, ..Deviations::default() };
    let options = options(server);
    let provider = Provider { deviations, ..options.provider };
    ProviderModel::new(ProviderOptions { provider, ..options }).unwrap()
}

fn item(input: &str) -> Value {
    json!({"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"call_1","name":"apply_patch","input":input})
}

/// A custom call from its beginning to its end.
fn custom_item(pieces: &[&str]) -> Vec<Value> {
    let place = json!({"item_id":"ctc_1","output_index":0});
    let with = |kind: &str, field: &str, value: &str| {
        let mut fields = place.clone();
        fields[field] = value.into();
        event(kind, fields)
    };
    let mut events = vec![added(0, item(""))];
    events.extend(pieces.iter().map(|piece| with("response.custom_tool_call_input.delta", "delta", piece)));
    events.push(with("response.custom_tool_call_input.done", "input", &pieces.concat()));
    events.push(done(0, item(&pieces.concat())));
    events
}

async fn answered(events: &[Value]) -> Answer {
    let server = Server::start(vec![Reply::Whole(streamed([stream(&[events.to_vec()]).as_bytes()]))]).await;
    conversation().ask(&openai(&server)).await.unwrap()
}

/// The body that a model of this kind is sent after the answer and the call's result.
async fn sent_back(answer: Answer, model: impl FnOnce(&Server) -> ProviderModel, last: String) -> String {
    let server = Server::start(vec![Reply::Whole(streamed([last.as_bytes()]))]).await;
    let mut conversation = conversation();
    let said = answer.content.into_iter().map(Part::Block).collect();
    conversation.messages.push(Arc::new(Message::new(Role::Assistant, said)));
    conversation.messages.push(Arc::new(Message::new(
        Role::User,
        vec![result(&"call_1".into(), "apply_patch", "done", false)],
    )));
    let model = model(&server);
    conversation.ask(&model).await.unwrap();
    String::from_utf8(server.seen().asked[0].clone().body).unwrap()
}

fn input(body: &str) -> Value {
    serde_json::from_str::<Value>(body).unwrap()["input"].clone()
}

#[tokio::test]
async fn a_tool_with_a_grammar_is_offered_as_a_custom_tool_and_as_a_function_elsewhere() {
    for (has_custom, offered) in [
        (
            true,
            expect![[
                r#"[{"type":"custom","name":"apply_patch","description":"Patches.","format":{"type":"grammar","syntax":"lark","definition":"start: \"x\""}}]"#
            ]],
        ),
        (
            false,
            expect![[
                r#"[{"type":"function","name":"apply_patch","description":"Patches.","parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]},"strict":false}]"#
            ]],
        ),
    ] {
        let server = Server::start(vec![Reply::Whole(streamed([stream(&[]).as_bytes()]))]).await;
        let model = if has_custom { openai(&server) } else { model(&server) };
        conversation().ask(&model).await.unwrap();
        let body: Value = serde_json::from_slice(&server.seen().asked[0].body).unwrap();
        offered.assert_eq(&body["tools"].to_string());
    }
}

#[tokio::test]
async fn a_custom_call_is_a_call_with_its_one_argument_and_goes_back_as_it_came() {
    let answer = answered(&custom_item(&[&PATCH[..20], &PATCH[20..]])).await;
    assert_eq!(answer.stop, StopReason::ToolUse);
    let Some(Block::ToolCall(call)) = answer.content.last() else { panic!("{answer:?}") };
    assert_eq!((call.name.as_str(), call.malformed.as_deref()), ("apply_patch", None));
    assert_eq!(call.input.read::<Value>().unwrap(), json!({ "input": PATCH }));

    // As the log keeps it, and a process after the next reads it.
    let kept = serde_json::to_string(&answer.content).unwrap();
    let answer = Answer { content: serde_json::from_str(&kept).unwrap(), ..answer };
    let items = input(&sent_back(answer, openai, stream(&[])).await);
    let call = json!({"type":"custom_tool_call","call_id":"call_1","name":"apply_patch","input":PATCH});
    let output = json!({"type":"custom_tool_call_output","call_id":"call_1","output":"done"});
    assert_eq!((&items[1], &items[2]), (&call, &output), "{items}");
}

#[tokio::test]
async fn a_server_without_custom_tools_and_other_formats_get_the_call_as_json() {
    let answer = answered(&custom_item(&[PATCH])).await;
    let arguments = json!({ "input": PATCH });
    let items = input(&sent_back(answer.clone(), model, stream(&[])).await);
    assert_eq!(
        (&items[1]["type"], &items[2]["type"]),
        (&json!("function_call"), &json!("function_call_output"))
    );
    let sent: Value = serde_json::from_str(items[1]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(sent, arguments, "{items}");

    let chat = |server: &Server| {
        ProviderModel::new(ProviderOptions {
            model: "m".to_owned(),
            ..support::options(WireFormat::OpenaiChat, server.url())
        })
        .unwrap()
    };
    let last = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let body = sent_back(answer, chat, last.to_owned()).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    let call = &body["messages"][2]["tool_calls"][0]["function"];
    let sent: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
    assert_eq!((&call["name"], &sent), (&json!("apply_patch"), &arguments), "{body}");
    assert!(!body.to_string().contains("custom"), "{body}");
}

#[tokio::test]
async fn a_custom_call_that_the_cap_cuts_off_is_left_out() {
    let mut events = custom_item(&[PATCH]);
    events.truncate(2);
    let cut = event(
        "response.incomplete",
        json!({"response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}),
    );
    events.push(cut);
    let server = Server::start(vec![Reply::Whole(streamed([sse(&events).as_bytes()]))]).await;
    let answer = conversation().ask(&openai(&server)).await.unwrap();
    assert_eq!((answer.stop, answer.content), (StopReason::OutputCap, Vec::new()));
}
