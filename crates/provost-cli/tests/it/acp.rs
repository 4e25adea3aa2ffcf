//! `provost acp`: an editor whose sessions are runs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stdio_client::StdioClient;
use crate::support::{Scene, json as read, until};

pub(crate) const ASKS: &str = "
answers:
  - thinking: I must publish it.
    text: Publishing.
    tools: [{ shell: { command: echo published >> effects } }]
  - text: done
";
pub(crate) const ASK: &str = "[permissions]\nask = [\"shell\"]\n";

pub(crate) fn asks() -> Scene {
    Scene::scripted(ASKS).with_settings(ASK)
}

pub(crate) fn editor(scene: &Scene) -> StdioClient {
    let mut editor = StdioClient::start(scene.command(&["acp"]));
    let params = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    assert_eq!(editor.call("initialize", &params)["protocolVersion"], 1);
    editor
}

pub(crate) fn new_session(editor: &mut StdioClient, scene: &Scene) -> String {
    let params = json!({ "cwd": scene.path("work"), "mcpServers": [] });
    editor.call("session/new", &params)["sessionId"].as_str().unwrap().to_owned()
}

pub(crate) fn load(editor: &mut StdioClient, scene: &Scene, session: &str) {
    let params = json!({ "sessionId": session, "cwd": scene.path("work"), "mcpServers": [] });
    editor.call("session/load", &params);
}

pub(crate) fn prompt(editor: &mut StdioClient, session: &str, text: &str) -> u64 {
    let prompt = json!([{ "type": "text", "text": text }]);
    editor.send("session/prompt", &json!({ "sessionId": session, "prompt": prompt }))
}

#[track_caller]
pub(crate) fn question(editor: &mut StdioClient) -> Value {
    editor.wait("a question", |message| message["method"] == "session/request_permission")
}

pub(crate) fn choose(editor: &mut StdioClient, question: &Value, option: &str) {
    editor.answer(question, &json!({ "outcome": { "outcome": "selected", "optionId": option } }));
}

#[track_caller]
pub(crate) fn stop_reason(editor: &mut StdioClient, prompt: u64) -> String {
    let answer = editor.answer_to(prompt);
    answer["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// The updates that came, the pieces of a message joined: how many there are depends on the time.
pub(crate) fn updates(editor: &mut StdioClient) -> Vec<Value> {
    let messages = editor.kept().into_iter().filter(|message| message["method"] == "session/update");
    let mut joined: Vec<Value> = Vec::new();
    for update in messages.map(|message| message["params"]["update"].clone()) {
        let same = |last: &&mut Value| {
            update.get("messageId").is_some()
                && ["sessionUpdate", "messageId"].iter().all(|field| last[field] == update[field])
        };
        match joined.last_mut().filter(same) {
            Some(last) => {
                let text = format!("{}{}", text_of(last), text_of(&update));
                last["content"]["text"] = text.into();
            }
            None => joined.push(update),
        }
    }
    joined
}

pub(crate) fn text_of(update: &Value) -> &str {
    update["content"]["text"].as_str().unwrap_or_default()
}

pub(crate) fn kinds(updates: &[Value]) -> Vec<&str> {
    updates.iter().map(|update| update["sessionUpdate"].as_str().unwrap()).collect()
}

pub(crate) fn effects(scene: &Scene) -> String {
    std::fs::read_to_string(scene.path("work/effects")).unwrap_or_default()
}

#[test]
fn a_prompt_starts_a_run_and_shows_what_it_does() {
    let script = "
answers:
  - thinking: Let me see.
    text: I look.
    tools:
      - update_plan: { items: [{ text: look, status: done }, { text: report, status: in_progress }] }
      - shell: { command: cat note }
  - tools: [{ edit_file: { path: note, old_text: old, new_text: new } }]
  - text: It says old.
";
    let scene = Scene::scripted(script);
    scene.write("work/note", "old\n");
    let mut editor = editor(&scene);
    let session = new_session(&mut editor, &scene);
    let asked = prompt(&mut editor, &session, "what does the note say?");
    let ended = editor.answer_to(asked);
    assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");
    assert!(ended["result"]["_meta"]["outcome"].as_str().unwrap().starts_with("completed"), "{ended}");
    let shown = updates(&mut editor);
    assert_eq!(
        kinds(&shown),
        [
            "session_info_update",
            "agent_thought_chunk",
            "agent_message_chunk",
            "tool_call",
            "tool_call",
            "tool_call_update",
            "usage_update",
            "tool_call_update",
            "plan",
            "tool_call_update",
            "tool_call_update",
            "tool_call",
            "tool_call_update",
            "usage_update",
            "tool_call_update",
            "agent_message_chunk",
            "usage_update",
        ],
        "{shown:#?}"
    );
    let of = |kind: &str| shown.iter().filter(|update| update["sessionUpdate"] == kind).collect::<Vec<_>>();
    let call = of("tool_call")[1];
    assert_eq!((call["title"].as_str(), call["kind"].as_str()), (Some("shell cat note"), Some("execute")));
    assert_eq!(call["rawInput"]["command"], "cat note");
    let edit = of("tool_call")[2];
    assert_eq!(edit["kind"], "edit");
    assert_eq!(edit["locations"][0]["path"], scene.path("work/note").to_str().unwrap());
    let changed = of("tool_call_update");
    assert_eq!(
        (changed[0]["status"].as_str(), changed[3]["status"].as_str()),
        (Some("in_progress"), Some("completed"))
    );
    assert!(changed[3]["content"][0]["content"]["text"].as_str().unwrap().contains("old"), "{changed:#?}");
    let diff = &changed[5]["content"][0];
    assert_eq!(
        (diff["oldText"].as_str(), diff["newText"].as_str()),
        (Some("old\n"), Some("new\n")),
        "{diff}"
    );
    assert_eq!(of("plan")[0]["entries"][1]["status"], "in_progress");
    let used = of("usage_update")[0];
    assert!(used["used"].as_u64() > Some(0) && used["size"] == 200_000 && used["cost"]["currency"] == "USD");
    assert_eq!(scene.last_run(), session);
    assert_eq!(read(scene.provost(&["ps", "--json"]).stdout.trim())["status"], "completed");
    assert_eq!(editor.end(), 0);
}

#[test]
fn an_answer_is_shown_while_it_is_written_and_once() {
    let script = "answers: [{ thinking: [so, ' so'], text: [I, \" am\", ' slow'], chunk_delay_ms: 700 }]";
    let scene = Scene::scripted(script);
    let mut editor = editor(&scene);
    let session = new_session(&mut editor, &scene);
    let asked = prompt(&mut editor, &session, "speak");
    let of = |kind: &'static str| move |message: &Value| message["params"]["update"]["sessionUpdate"] == kind;
    let first = editor.wait("its first piece", of("agent_message_chunk"));
    assert!(
        scene.provost(&["logs", "last"]).stdout.lines().all(|line| !line.contains("I am slow")),
        "{first}"
    );
    assert_eq!(stop_reason(&mut editor, asked), "end_turn");
    let first = text_of(&first["params"]["update"]).to_owned();
    let shown = updates(&mut editor);
    let rest = shown.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk").map(text_of);
    assert_eq!(format!("{first}{}", rest.collect::<String>()), "I am slow");
    let thought = shown.iter().filter(|update| update["sessionUpdate"] == "agent_thought_chunk").map(text_of);
    assert_eq!(thought.collect::<String>(), "so so");
}

#[test]
fn a_question_is_asked_in_the_editor_and_an_allowed_call_is_made() {
    let scene = asks();
    let mut editor = editor(&scene);
    let session = new_session(&mut editor, &scene);
    let asked = prompt(&mut editor, &session, "publish it");
    let question = question(&mut editor);
    let params = &question["params"];
    assert_eq!(params["sessionId"], *session);
    assert_eq!(params["toolCall"]["title"], "shell echo published >> effects");
    assert_eq!(params["toolCall"]["rawInput"]["command"], "echo published >> effects");
    let why = params["toolCall"]["content"][0]["content"]["text"].as_str().unwrap();
    assert!(why.contains("requires approval") && why.contains("provost approve"), "{why}");
    let kinds = params["options"].as_array().unwrap().iter().map(|option| option["kind"].as_str().unwrap());
    assert_eq!(kinds.collect::<Vec<_>>(), ["allow_once", "allow_always", "allow_always", "reject_once"]);
    let call = editor.wait("the call", |message| message["params"]["update"]["sessionUpdate"] == "tool_call");
    assert_eq!(call["params"]["update"]["toolCallId"], params["toolCall"]["toolCallId"]);
    assert!(scene.provost(&["approvals"]).stdout.contains("echo published"), "others see it too");
    choose(&mut editor, &question, "allow_once");
    assert_eq!(stop_reason(&mut editor, asked), "end_turn");
    assert_eq!(effects(&scene), "published\n");
    let log = scene.provost(&["logs", "last"]).stdout;
    assert!(log.contains("(provost acp)"), "{log}");
}

#[test]
fn a_denial_and_its_reason_reach_the_agent() {
    let script = "
answers:
  - tools: [{ shell: { command: echo published >> effects } }]
  - expect: { tool_result: { tool: shell, is_error: true, contains: too risky } }
    text: as you wish
";
    let scene = Scene::scripted(script).with_settings(ASK);
    let mut editor = editor(&scene);
    let session = new_session(&mut editor, &scene);
    let asked = prompt(&mut editor, &session, "publish it");
    let question = question(&mut editor);
    let outcome = json!({ "outcome": "selected", "optionId": "deny", "_meta": { "reason": "too risky" } });
    editor.answer(&question, &json!({ "outcome": outcome }));
    assert_eq!(stop_reason(&mut editor, asked), "end_turn");
    let shown = updates(&mut editor);
    let failed = shown.iter().find(|update| update["status"] == "failed").unwrap();
    assert!(failed["content"][0]["content"]["text"].as_str().unwrap().contains("too risky"), "{failed}");
    assert_eq!(failed["rawOutput"]["status"], "denied");
    assert_eq!(effects(&scene), "");
}

#[test]
fn what_is_allowed_for_always_is_kept_in_the_users_settings() {
    let scene = asks();
    let mut editor = editor(&scene);
    let session = new_session(&mut editor, &scene);
    let asked = prompt(&mut editor, &session, "publish it");
    let question = question(&mut editor);
    choose(&mut editor, &question, "allow_always");
    assert_eq!(stop_reason(&mut editor, asked), "end_turn");
    assert!(scene.provost(&["check"]).stdout.contains("shell(echo published >> effects)"));
}

#[test]
fn a_cancel_ends_the_work_within_a_second_and_another_prompt_goes_on() {
    let scene = Scene::scripted("answers: [{ delay_ms: 60000, text: late }, { text: and now }]");
    let mut editor = editor(&scene);
    let session = new_session(&mut editor, &scene);
    let asked = prompt(&mut editor, &session, "take your time");
    until("it works", || scene.provost(&["ps", "--json"]).stdout.contains("\"running\"").then_some(()));
    let begun = Instant::now();
    editor.notify("session/cancel", &json!({ "sessionId": session }));
    assert_eq!(stop_reason(&mut editor, asked), "cancelled");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(read(scene.provost(&["ps", "--json"]).stdout.trim())["status"], "cancelled");
}

#[test]
fn a_cancel_that_comes_before_the_run_is_there_counts() {
    let scene = Scene::scripted("answers: [{ delay_ms: 60000, text: late }]");
    let mut editor = editor(&scene);
    let session = new_session(&mut editor, &scene);
    let asked = prompt(&mut editor, &session, "take your time");
    editor.notify("session/cancel", &json!({ "sessionId": session }));
    assert_eq!(stop_reason(&mut editor, asked), "cancelled");
}

#[test]
fn a_loaded_session_shows_what_it_showed_before() {
    let scene = asks();
    let mut first = editor(&scene);
    let session = new_session(&mut first, &scene);
    let asked = prompt(&mut first, &session, "publish it");
    let question = question(&mut first);
    choose(&mut first, &question, "allow_once");
    assert_eq!(stop_reason(&mut first, asked), "end_turn");
    let live = updates(&mut first);
    let mut second = editor(&scene);
    load(&mut second, &scene, &session);
    let replayed = updates(&mut second);
    // The editor that sent a message shows it by itself.
    let (said, shown): (Vec<_>, Vec<_>) =
        replayed.into_iter().partition(|update| update["sessionUpdate"] == "user_message_chunk");
    assert_eq!(shown, live);
    assert_eq!(said.len(), 1);
    assert_eq!(said[0]["content"]["text"], "publish it");
    // What the log has as the agent's words, and nothing else.
    let logged = scene.provost(&["logs", "last", "--json"]).stdout;
    let logged = logged.lines().map(read).filter(|entry| entry["type"] == "assistant_message");
    let logged = logged.flat_map(|entry| entry["content"].as_array().unwrap().clone());
    let logged = logged.filter_map(|block| Some(block.get("text")?.as_str()?.to_owned())).collect::<String>();
    let texts = shown.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    let texts = texts.map(|update| update["content"]["text"].as_str().unwrap()).collect::<String>();
    assert_eq!(texts, logged);
    // Another prompt is another segment of the same run.
    scene.write("work/agent.yaml", &format!("{ASKS}  - text: more\n"));
    let again = prompt(&mut second, &session, "and more");
    assert_eq!(stop_reason(&mut second, again), "end_turn");
    assert_eq!(scene.last_run(), session);
    assert!(updates(&mut second).iter().any(|update| update["content"]["text"] == "more"));
}

#[test]
fn an_editor_that_is_killed_while_a_question_waits_is_asked_it_again() {
    let scene = asks();
    let mut first = editor(&scene);
    let session = new_session(&mut first, &scene);
    prompt(&mut first, &session, "publish it");
    let asked = question(&mut first);
    first.kill();
    let mut second = editor(&scene);
    load(&mut second, &scene, &session);
    let again = question(&mut second);
    assert_eq!(again["params"], asked["params"]);
    choose(&mut second, &again, "allow_once");
    until("it is published", || (effects(&scene) == "published\n").then_some(()));
    second.wait("the end", |message| message["params"]["update"]["content"]["text"] == "done");
}

#[test]
fn an_answer_from_another_terminal_withdraws_the_question() {
    let scene = asks();
    let mut editor = editor(&scene);
    let session = new_session(&mut editor, &scene);
    let asked = prompt(&mut editor, &session, "publish it");
    let question = question(&mut editor);
    assert_eq!(scene.provost(&["approve"]).status, 0);
    let withdrawn = editor.wait("it is withdrawn", |message| message["method"] == "$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    assert_eq!(stop_reason(&mut editor, asked), "end_turn");
    // It comes too late, and changes nothing.
    choose(&mut editor, &question, "deny");
    assert_eq!(effects(&scene), "published\n");
    assert_eq!(editor.call("session/list", &json!({}))["sessions"][0]["sessionId"], *session);
}

#[test]
fn two_sessions_of_one_editor_work_side_by_side() {
    let scene = asks();
    let mut editor = editor(&scene);
    let sessions = [new_session(&mut editor, &scene), new_session(&mut editor, &scene)];
    let asked = sessions.clone().map(|session| prompt(&mut editor, &session, "publish it"));
    let mut questions = [question(&mut editor), question(&mut editor)];
    questions.sort_by_key(|question| question["params"]["sessionId"] != *sessions[0]);
    choose(&mut editor, &questions[1], "allow_once");
    assert_eq!(stop_reason(&mut editor, asked[1]), "end_turn");
    choose(&mut editor, &questions[0], "deny");
    assert_eq!(stop_reason(&mut editor, asked[0]), "end_turn");
    assert_eq!(effects(&scene), "published\n");
}

#[test]
fn a_run_of_another_terminal_is_shown_spoken_to_and_answered() {
    let scene = Scene::scripted(
        "
answers:
  - tools: [{ shell: { command: echo published >> effects } }]
  - expect: { contains: be careful }
    text: I am
",
    )
    .with_settings(ASK);
    let running = scene.start(&["run", "publish it"]);
    until("it asks", || scene.provost(&["approvals", "--json"]).stdout.contains("shell").then_some(()));
    let session = scene.last_run();
    let mut editor = editor(&scene);
    load(&mut editor, &scene, &session);
    let question = question(&mut editor);
    let asked = prompt(&mut editor, &session, "be careful");
    until("it is said", || scene.provost(&["logs", "last"]).stdout.contains("be careful").then_some(()));
    choose(&mut editor, &question, "allow_once");
    assert_eq!(stop_reason(&mut editor, asked), "end_turn");
    assert_eq!(running.end().status, 0);
    // The editor shows its own message by itself.
    let said =
        updates(&mut editor).iter().filter(|update| update["sessionUpdate"] == "user_message_chunk").count();
    assert_eq!(said, 1, "the goal");
}

#[test]
fn a_question_of_a_sub_agent_has_its_name_in_the_title() {
    let script = "
answers:
  - tools: [{ spawn_agent: { name: \"re\\e[31mviewer\", goal: look } }]
  - text: done
agents:
  - goal: look
    answers:
      - tools: [{ shell: { command: echo published >> effects } }]
      - text: looked
";
    let scene = Scene::scripted(script).with_settings(&format!("{ASK}[spawn]\nmax_agents = 2\n"));
    let mut editor = editor(&scene);
    let session = new_session(&mut editor, &scene);
    let asked = prompt(&mut editor, &session, "publish it");
    let question = question(&mut editor);
    assert_eq!(question["params"]["sessionId"], *session);
    let title = question["params"]["toolCall"]["title"].as_str().unwrap();
    assert_eq!(title, "agent 1 re[31mviewer: shell echo published >> effects");
    choose(&mut editor, &question, "allow_once");
    assert_eq!(stop_reason(&mut editor, asked), "end_turn");
    assert_eq!(effects(&scene), "published\n");
}
