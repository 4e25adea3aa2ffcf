//! A session's log in the form that existing scripts parse, read as such scripts read it.

use std::fmt::Write as _;
use std::process::Command;

use provost_event::{
    Access, AgentPolicy, AssistantMessage, Block, CallFacts, Compacted, CompactionKind, Elapsed, Entry,
    HookContract, ItemKind, Json, ModelPolicy, Origin, Record, RunId, Seq, SessionId, SessionStarted,
    StopReason, SystemItem, Timestamp, ToolCall, ToolFinished, ToolSpec, ToolStarted, ToolStatus,
    ToolSubject, Usage, UserMessage,
};
use provost_harness::HookPrograms as _;
use serde_json::{Value, json};

use crate::stage::Stage;

fn tool(name: &str, alias: &str, access: Access) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        input_schema: Json::of(&json!({})).expect("JSON"),
        access,
        subject: match name {
            "shell" => ToolSubject::command("command"),
            _ => ToolSubject::Opaque,
        },
        aliases: vec![alias.to_owned()],
        forms: Vec::new(),
        freeform: None,
        summary_field: None,
        idempotent: false,
        timeout_ms: 1_000,
        output_bytes_max: 1_000,
    }
}

pub(crate) fn begun() -> Entry {
    let mut policy = AgentPolicy::new(ModelPolicy::new("a/b", 1_000), "/w".into());
    policy.tools = vec![
        tool("shell", "Bash", Access::Anything),
        tool("update_plan", "TodoWrite", Access::Reads),
        tool("spawn_agent", "Agent", Access::Delegates),
    ];
    SessionStarted {
        goal: "make it pass".to_owned(),
        images: Vec::new(),
        policy,
        parent: None,
        depth: 0,
        call: None,
        agent: None,
        worktree: None,
        fork: None,
        reminder_id: String::new(),
    }
    .into()
}

pub(crate) fn answer(content: Vec<Block>) -> Entry {
    let usage = Usage { input_tokens: 10, output_tokens: 20, cache_read_tokens: 30, ..Usage::default() };
    let stop = if content.iter().any(|block| matches!(block, Block::ToolCall(_))) {
        StopReason::ToolUse
    } else {
        StopReason::EndTurn
    };
    AssistantMessage { turn: 1, call: 1, content, usage, cost: None, model: "b-1".to_owned(), stop }.into()
}

pub(crate) fn call(id: &str, name: &str, input: &Value) -> Block {
    let input = Json::of(input).expect("JSON");
    Block::ToolCall(ToolCall { id: id.into(), name: name.to_owned(), input, malformed: None })
}

pub(crate) fn finished(id: &str, tool: &str, status: ToolStatus, output: &str) -> Entry {
    let exit_status = (status == ToolStatus::Error).then_some(3);
    ToolFinished {
        call: id.into(),
        tool: tool.to_owned(),
        status,
        output: output.to_owned(),
        images: Vec::new(),
        whole: None,
        duration_ms: 1,
        memory: None,
        plan: None,
        facts: CallFacts { exit_status, ..CallFacts::default() },
    }
    .into()
}

pub(crate) fn text(text: &str) -> Block {
    Block::Text(text.to_owned())
}

fn a_session() -> Vec<Entry> {
    let steps =
        json!({ "items": [{ "text": "one", "status": "done" }, { "text": "two", "status": "pending" }] });
    let plan = call("c2", "update_plan", &steps);
    let replaced = Json::of(&json!({ "command": "pnpm test" })).expect("JSON");
    let mut summary = Compacted::new(CompactionKind::Summary);
    summary.summary = "so far".to_owned();
    vec![
        begun(),
        answer(vec![
            text("I test."),
            call("c1", "shell", &json!({ "command": "npm test", "timeout_secs": 5 })),
            plan,
        ]),
        ToolStarted {
            call: "c1".into(),
            tool: "shell".to_owned(),
            input: replaced,
            again: false,
            outside: false,
            replaced_by: None,
        }
        .into(),
        finished("c1", "shell", ToolStatus::Error, "red\nexit status 3"),
        finished("c2", "update_plan", ToolStatus::Ok, "noted"),
        SystemItem {
            item: ItemKind::StopBlocked,
            body: "go on".to_owned(),
            origin: Origin::Engine,
            rules: Vec::new(),
        }
        .into(),
        UserMessage { content: vec![text("and the docs")], by: "alice".to_owned() }.into(),
        summary.into(),
        answer(vec![call("c3", "spawn_agent", &json!({ "goal": "read", "name": "reader" }))]),
        finished("c3", "spawn_agent", ToolStatus::Ok, "read"),
        answer(vec![text("All green.\n<done/>")]),
    ]
}

pub(crate) fn session() -> SessionId {
    SessionId::root(RunId::from_entropy(7))
}

/// The transcript of `session` for hooks of `contract`, as text.
pub(crate) fn written(contract: HookContract, session: SessionId, entries: Vec<Entry>) -> String {
    let mut transcript = Stage::new().hooks.transcript(contract, session);
    let mut lines = String::new();
    for (seq, entry) in (1..).zip(entries) {
        let at = Timestamp(1_700_000_000_123 + seq);
        let record = Record { actor: session.into(), seq: Seq(seq), at, elapsed: Elapsed(0), entry };
        transcript.add(&record, &mut lines);
    }
    lines
}

fn claude(entries: Vec<Entry>) -> Vec<Value> {
    let lines = written(HookContract::Claude, session(), entries);
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// What a script prints that gets the transcript's path as its first argument.
fn script(transcript: &str, script: &str) -> String {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), transcript).expect("written");
    let ran = Command::new("sh").args(["-c", script, "sh"]).arg(file.path()).output().expect("it runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).trim_end().to_owned()
}

#[test]
fn each_line_has_the_fields_that_scripts_know_and_follows_the_one_before() {
    let lines = claude(a_session());
    let mut parent = Value::Null;
    let mut kinds = String::new();
    for line in &lines {
        assert_eq!(line["parentUuid"], parent);
        parent = line["uuid"].clone();
        assert!(parent.as_str().is_some_and(|id| id.len() == 36), "{line}");
        assert_eq!(line["sessionId"], "70704c3d-e0a7-4852-8a07-397036fb52d4");
        assert_eq!((&line["cwd"], &line["isSidechain"]), (&json!("/w"), &json!(false)));
        assert!(
            line["version"].is_string() && line["timestamp"].as_str().is_some_and(|at| at.ends_with('Z'))
        );
        let meta = ["isMeta", "isCompactSummary", "subtype"].iter().find(|name| line.get(**name).is_some());
        let _ = write!(kinds, "{}{} ", line["type"].as_str().unwrap(), meta.map_or("", |_| "*"));
    }
    assert_eq!(
        kinds.trim_end(),
        "user assistant user user user* user system* user* assistant user assistant"
    );
    assert_eq!(lines[0]["message"], json!({ "role": "user", "content": "make it pass" }));
    assert_eq!(lines[0]["timestamp"], "2023-11-14T22:13:20.124Z");
    assert_eq!(lines[5]["message"]["content"], "and the docs");
}

#[test]
fn calls_and_results_have_the_names_and_forms_of_the_contract() {
    let lines = claude(a_session());
    let content = &lines[1]["message"]["content"];
    assert_eq!(
        content[1],
        json!({ "type": "tool_use", "id": "c1", "name": "Bash",
            "input": { "command": "npm test", "timeout": 5000, "run_in_background": false } })
    );
    assert_eq!(content[2]["name"], "TodoWrite");
    let failed = &lines[2];
    let block = &failed["message"]["content"][0];
    assert_eq!(
        (&block["type"], &block["tool_use_id"], &block["is_error"]),
        (&json!("tool_result"), &json!("c1"), &json!(true))
    );
    assert_eq!(failed["toolUseResult"], "Error: Exit code 3\nred");
    let todos = &lines[3]["toolUseResult"];
    assert_eq!(todos["oldTodos"], json!([]));
    assert_eq!(todos["newTodos"][1]["status"], "pending");
    assert_eq!(lines[8]["message"]["content"][0]["name"], "Agent");
    assert_eq!(lines[9]["toolUseResult"]["content"][0]["text"], "read");
    let usage = &lines[10]["message"]["usage"];
    assert_eq!((&usage["input_tokens"], &usage["cache_read_input_tokens"]), (&json!(10), &json!(30)));
    assert_eq!(
        (&lines[10]["message"]["model"], &lines[10]["message"]["stop_reason"]),
        (&json!("b-1"), &json!("end_turn"))
    );
}

#[test]
fn scripts_find_the_last_text_the_open_steps_and_the_tokens() {
    let transcript = written(HookContract::Claude, session(), a_session());
    let last = r#"grep '"role":"assistant"' "$1" | tail -1 | jq -r '.message.content | map(select(.type == "text")) | map(.text) | join("\n")'"#;
    assert_eq!(script(&transcript, last), "All green.\n<done/>");
    let open = r#"jq -s '[.[] | .toolUseResult? | objects | .newTodos? // empty] | last | map(select(.status != "completed")) | length' "$1""#;
    assert_eq!(script(&transcript, open), "1");
    let tokens = r#"jq -s '[.[] | select(.type == "assistant") | .message.usage | .input_tokens + .output_tokens + .cache_read_input_tokens] | add' "$1""#;
    assert_eq!(script(&transcript, tokens), "180");
    let prompts = r#"grep '"type":"user"' "$1" | jq -r 'select(.isMeta != true and (.message.content | type) == "string") | .message.content'"#;
    assert_eq!(script(&transcript, prompts), "make it pass\nand the docs\nso far");
    let used = r#"jq -r 'select(.type == "assistant") | .message.content[] | select(.type == "tool_use") | .name' "$1""#;
    assert_eq!(script(&transcript, used), "Bash\nTodoWrite\nAgent");
}

#[test]
fn a_sub_agents_lines_stand_beside_the_conversation_of_the_session_that_a_person_started() {
    let child = SessionId { agent: 3, ..session() };
    let transcript = written(HookContract::Claude, child, a_session());
    let first: Value = serde_json::from_str(transcript.lines().next().expect("a line")).expect("JSON");
    for line in transcript.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")) {
        assert_eq!(line["sessionId"], "70704c3d-e0a7-4852-8a07-397036fb52d4");
        assert_eq!((&line["isSidechain"], &line["agentId"]), (&json!(true), &first["agentId"]));
        assert_ne!(line["agentId"], line["sessionId"]);
    }
}

#[test]
fn writing_it_anew_gives_the_same_bytes() {
    let once = written(HookContract::Claude, session(), a_session());
    assert_eq!(once, written(HookContract::Claude, session(), a_session()));
}

#[test]
fn codex_finds_its_own_form() {
    let transcript = written(HookContract::Codex, session(), a_session());
    let kinds = r#"jq -r '.type + " " + (.payload.type // "")' "$1" | sort | uniq -c | sed 's/^ *//'"#;
    assert_eq!(
        script(&transcript, kinds),
        "1 compacted \n2 event_msg agent_message\n3 event_msg token_count\n3 response_item function_call\n\
         3 response_item function_call_output\n5 response_item message\n1 session_meta"
    );
    let last = r#"jq -rs '[.[] | .payload | select(.type == "message" and .role == "assistant") | .content[0].text] | last' "$1""#;
    assert_eq!(script(&transcript, last), "All green.\n<done/>");
    let tokens = r#"jq -s '[.[] | .payload | select(.type == "token_count")] | last | .info.total_token_usage.total_tokens' "$1""#;
    assert_eq!(script(&transcript, tokens), "180");
    let arguments = r#"jq -r 'select(.payload.type == "function_call") | .payload.arguments | fromjson | .command // empty' "$1""#;
    assert_eq!(script(&transcript, arguments), "npm test");
}
