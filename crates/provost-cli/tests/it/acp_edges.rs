//! `provost acp` where something is odd: other ends, refusals, what is no message, processes that are killed.

use serde_json::{Value, json};

use crate::acp::{
    ASK, ASKS, asks, choose, editor, effects, kinds, new_session, prompt, question, stop_reason, updates,
};
use crate::mcp::{tool, with_server};
use crate::support::{Scene, until};

#[test]
fn sessions_are_listed_by_folder_resumed_and_closed() {
    let scene = Scene::scripted("answers: [{ text: one }, { text: two }]");
    assert_eq!(scene.provost(&["run", "the\u{1b}[31m goal\nof it"]).status, 0);
    let run = scene.last_run();
    let mut editor = editor(&scene);
    let work = scene.path("work").canonicalize().unwrap();
    let listed = editor.call("session/list", &json!({ "cwd": work }));
    let session = &listed["sessions"][0];
    assert_eq!((session["sessionId"].as_str(), session["cwd"].as_str()), (Some(run.as_str()), work.to_str()));
    assert_eq!(session["title"], "the\\u{1b}[31m goal …");
    assert!(session["updatedAt"].as_str().unwrap().ends_with('Z'), "{session}");
    assert_eq!(editor.call("session/list", &json!({ "cwd": "/nowhere" }))["sessions"], json!([]));
    let params = json!({ "sessionId": run, "cwd": work, "mcpServers": [] });
    editor.call("session/resume", &params);
    assert_eq!(updates(&mut editor), Vec::<Value>::new(), "nothing is shown again");
    let asked = prompt(&mut editor, &run, "go on");
    assert_eq!(stop_reason(&mut editor, asked), "end_turn");
    assert_eq!(kinds(&updates(&mut editor)), ["agent_message_chunk", "usage_update"]);
    editor.call("session/close", &json!({ "sessionId": run }));
    assert_eq!(editor.refused("session/prompt", &json!({ "sessionId": run, "prompt": [] }))["code"], -32002);
}

#[test]
fn a_prompt_ends_as_its_run_does() {
    let reason = |script: &str, settings: &str| {
        let scene = Scene::scripted(script).with_settings(settings);
        let mut editor = editor(&scene);
        let session = new_session(&mut editor, &scene);
        let asked = prompt(&mut editor, &session, "try");
        let answer = editor.answer_to(asked);
        let reason = answer["result"]["stopReason"].as_str();
        reason.map_or_else(|| answer["error"]["message"].as_str().unwrap().to_owned(), str::to_owned)
    };
    let calls = "answers: [{ tools: [list_dir] }, { tools: [list_dir] }, { tools: [list_dir] }]";
    assert_eq!(reason(calls, "max_turns = 2\n"), "max_turn_requests");
    let costly = "answers: [{ tools: [list_dir], usage: { input: 9000, output: 10 } }, { text: x }]";
    assert_eq!(reason(costly, "[budget]\ntokens = 9000\n"), "max_tokens");
    assert_eq!(reason("answers: [{ text: I won't, stop: refusal }]", ""), "refusal");
    let failed = reason("answers: [{ fault: { class: unauthorized, message: bad key } }, { text: x }]", "");
    assert!(failed.contains("is suspended") && failed.contains("bad key"), "{failed}");
    let mismatch = reason("answers: [{ expect: { contains: xyzzy }, text: x }]", "");
    assert!(mismatch.contains("ended: "), "{mismatch}");
}

#[test]
fn what_the_user_has_not_agreed_to_is_refused_with_the_remedy() {
    let scene = Scene::scripted("answers: [{ text: x }]")
        .with_settings("[[stop_hooks]]\nname = \"tests\"\ncommand = \"true\"\n");
    let mut editor = editor(&scene);
    let session = new_session(&mut editor, &scene);
    let asked = prompt(&mut editor, &session, "try");
    let error = editor.answer_to(asked)["error"]["message"].as_str().unwrap().to_owned();
    assert!(error.contains("provost trust"), "{error}");
    let server = json!({ "name": "git", "command": "/bin/git-mcp", "args": [], "env": [] });
    let params = json!({ "cwd": scene.path("work"), "mcpServers": [server] });
    let error = editor.refused("session/new", &params)["message"].as_str().unwrap().to_owned();
    for said in ["git", "provost mcp add", "provost mcp trust"] {
        assert!(error.contains(said), "{error}");
    }
    for cwd in ["work", "/nowhere"] {
        let error = editor.refused("session/new", &json!({ "cwd": cwd, "mcpServers": [] }));
        assert_eq!(error["code"], -32602, "{error}");
    }
    assert_eq!(scene.provost(&["ps", "--json"]).stdout, "");
}

#[test]
fn a_server_of_tools_that_agents_have_anyway_may_be_named_and_no_other() {
    let scene = with_server("answers: [{ text: x }]", &json!({ "lists": [[tool("look")]] }), "");
    let args = ["server.py", "script.json", "record"].map(|name| scene.path(name).display().to_string());
    let named = |name: &str, args: &[String]| {
        let server = json!({ "name": name, "command": "python3", "args": args, "env": [] });
        json!({ "cwd": scene.path("work"), "mcpServers": [server] })
    };
    let mut editor = editor(&scene);
    assert!(editor.call("session/new", &named("s", &args))["sessionId"].is_string());
    for other in [named("t", &args), named("s", &args[..2])] {
        let error = editor.refused("session/new", &other)["message"].as_str().unwrap().to_owned();
        assert!(error.contains("provost mcp trust"), "{error}");
    }
}

#[test]
fn what_is_no_message_of_the_protocol_is_answered_and_ends_nothing() {
    let scene = Scene::scripted("answers: [{ text: \"\\e[2Jdone\\e]0;title\\a\" }]");
    let mut editor = editor(&scene);
    editor.line("this is no JSON \u{1b}[2J");
    assert_eq!(editor.wait("an error", |message| message["error"]["code"] == -32700)["id"], Value::Null);
    editor.line("[1]");
    editor.wait("an error", |message| message["error"]["code"] == -32600);
    editor.line("");
    editor.line(&format!("{{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"{}\"}}", "x".repeat(9 * 1024 * 1024)));
    editor.wait("an error", |message| message["error"]["code"] == -32600);
    assert_eq!(editor.refused("session/odd", &json!({}))["code"], -32601);
    assert_eq!(editor.refused("session/new", &json!({ "cwd": 7 }))["code"], -32602);
    assert_eq!(
        editor.refused("session/load", &json!({ "sessionId": "\u{1b}[2J", "cwd": "/", "mcpServers": [] }))["code"],
        -32002
    );
    editor.notify("session/cancel", &json!({ "sessionId": "nobody" }));
    let session = new_session(&mut editor, &scene);
    let long = "x".repeat(70 * 1024);
    let asked = prompt(&mut editor, &session, &long);
    assert!(editor.answer_to(asked)["error"]["message"].as_str().unwrap().contains("name the file"));
    let picture = json!([{ "type": "image", "data": "", "mimeType": "image/png" }]);
    let error = editor.refused("session/prompt", &json!({ "sessionId": session, "prompt": picture }));
    assert!(error["message"].as_str().unwrap().contains("pictures"), "{error}");
    let link = json!([{ "type": "text", "text": "read " }, { "type": "resource_link", "uri": "file:///x/note", "name": "note" }]);
    let asked = editor.send("session/prompt", &json!({ "sessionId": session, "prompt": link }));
    assert_eq!(stop_reason(&mut editor, asked), "end_turn");
    let shown = updates(&mut editor);
    assert!(shown.iter().any(|update| update["content"]["text"] == "done"), "{shown:#?}");
    assert!(scene.provost(&["show", "last"]).stdout.contains("read [note](/x/note)"));
    assert_eq!(editor.end(), 0);
}

#[test]
fn a_prompt_whose_process_is_killed_ends_with_the_remedy() {
    let scene = asks();
    let mut editor = editor(&scene);
    let session = new_session(&mut editor, &scene);
    let asked = prompt(&mut editor, &session, "publish it");
    let first = question(&mut editor);
    let worker = worker_of(&session);
    assert!(std::process::Command::new("kill").args(["-9", &worker.to_string()]).status().unwrap().success());
    let error = editor.answer_to(asked)["error"]["message"].as_str().unwrap().to_owned();
    assert!(error.contains("is gone") && error.contains("another prompt"), "{error}");
    // The question is still open, and its answer goes on with the run.
    choose(&mut editor, &first, "allow_once");
    until("it is published", || (effects(&scene) == "published\n").then_some(()));
}

/// The process that works on a run for the editor.
fn worker_of(run: &str) -> u32 {
    until("its process", || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes.filter_map(|process| process.file_name().to_str()?.parse().ok()).find(|process: &u32| {
            let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains("work-unattended") && line.contains(run)
        })
    })
}

#[test]
fn an_editor_that_ends_all_below_the_agent_doesnt_end_the_run() {
    let scene = asks();
    let mut editor = editor(&scene);
    let session = new_session(&mut editor, &scene);
    prompt(&mut editor, &session, "publish it");
    question(&mut editor);
    let worker = worker_of(&session);
    let agent = editor.id();
    let above = std::iter::successors(Some(worker), |pid| parent_of(*pid)).collect::<Vec<_>>();
    assert!(!above.contains(&agent), "{above:?} descend from {agent}");
    editor.kill();
    let approved = scene.provost(&["approve"]);
    assert_eq!(approved.status, 0, "{approved:?}");
    until("it is published", || (effects(&scene) == "published\n").then_some(()));
}

fn parent_of(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok().filter(|pid| *pid > 0)
}

#[test]
fn a_question_that_outlasts_its_time_is_answered_later_and_the_run_goes_on() {
    let scene = Scene::scripted(ASKS)
        .with_settings(&format!("{ASK}approval_timeout = \"1s\"\nunanswered = \"pause\"\n"));
    let mut editor = editor(&scene);
    let session = new_session(&mut editor, &scene);
    let asked = prompt(&mut editor, &session, "publish it");
    let question = question(&mut editor);
    until("it is suspended", || scene.provost(&["ps", "--json"]).stdout.contains("paused").then_some(()));
    choose(&mut editor, &question, "allow_once");
    assert_eq!(stop_reason(&mut editor, asked), "end_turn");
    assert_eq!(effects(&scene), "published\n");
}

#[test]
fn what_a_run_has_started_is_no_editor() {
    let script = "answers: [{ tools: [{ shell: { command: \"PROVOST acp < /dev/null; PROVOST mcp serve < /dev/null\" } }] }, { text: x }]";
    let program = env!("CARGO_BIN_EXE_provost");
    let scene = Scene::scripted(&script.replace("PROVOST", program));
    let done = scene.provost(&["run", "x", "--json"]);
    for command in ["provost acp", "provost mcp serve"] {
        assert!(done.stdout.contains(&format!("{command}: this was started by run")), "{}", done.stdout);
    }
}
