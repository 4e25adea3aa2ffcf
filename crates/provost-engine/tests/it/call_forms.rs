//! Calls in the forms of other programs: what is decided on and executed is the agent's own tool's.

use provost_event::{
    Access, ApprovalAnswer, CallForm, ConversationEntry, Entry, FieldForm, GateEntry, HookPoint, Json,
    PermissionPolicy, RunPolicy, ToolEntry, ToolSpec, ToolStatus, ValueForm,
};
use serde_json::json;

use crate::world::{World, guard, without_hooks};

fn field(field: &str, names: &[&str], value: ValueForm) -> FieldForm {
    FieldForm { field: field.to_owned(), names: names.iter().map(|&name| name.to_owned()).collect(), value }
}

fn form(names: &[&str], fields: Vec<FieldForm>) -> CallForm {
    CallForm { names: names.iter().map(|&name| name.to_owned()).collect(), fields, ..CallForm::default() }
}

fn with_forms(name: &str, access: Access, forms: Vec<CallForm>) -> ToolSpec {
    ToolSpec { forms, ..crate::world::tool(name, access, false) }
}

fn shell() -> ToolSpec {
    let fields = vec![field("command", &["cmd"], ValueForm::Words)];
    with_forms("shell", Access::Anything, vec![form(&["bash"], fields)])
}

fn reader() -> ToolSpec {
    let fields = vec![field("path", &["file_path"], ValueForm::Same)];
    with_forms("read_file", Access::Reads, vec![form(&["cat"], fields)])
}

fn policy(permissions: PermissionPolicy) -> RunPolicy {
    let mut policy = without_hooks();
    policy.agent.tools = vec![shell(), reader()];
    policy.agent.permissions = permissions;
    policy
}

fn denying(rule: &str) -> RunPolicy {
    policy(PermissionPolicy { deny: vec![rule.to_owned()], ..PermissionPolicy::default() })
}

fn started(world: &World) -> Vec<(String, String)> {
    let start = |record: &provost_event::Record| match &record.entry {
        Entry::Tool(ToolEntry::Started(started)) => {
            Some((started.tool.clone(), started.input.text().to_owned()))
        }
        _ => None,
    };
    world.session_log().iter().filter_map(start).collect()
}

fn results(world: &World) -> Vec<(ToolStatus, String)> {
    let result = |record: &provost_event::Record| match &record.entry {
        Entry::Tool(ToolEntry::Finished(done)) => Some((done.status, done.output.clone())),
        _ => None,
    };
    world.session_log().iter().filter_map(result).collect()
}

fn started_by(policy: RunPolicy, calls: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut world = World::start(policy);
    world.call(calls);
    started(&world)
}

fn open() -> RunPolicy {
    policy(PermissionPolicy::default())
}

#[test]
fn the_log_has_what_the_model_sent_and_what_is_executed() {
    let mut world = World::start(open());
    world.call(&[("cat", r#"{"file_path": "a.rs"}"#)]);
    let sent = world.session_log().iter().find_map(|record| match &record.entry {
        Entry::Conversation(ConversationEntry::AssistantMessage(answer)) => Some(answer.content.clone()),
        _ => None,
    });
    let sent = format!("{sent:?}");
    assert!(sent.contains(r#""cat""#) && sent.contains("file_path"), "{sent}");
    assert_eq!(started(&world), [("read_file".to_owned(), r#"{"path":"a.rs"}"#.to_owned())]);
    world.finish_first("text");
    assert_eq!(results(&world), [(ToolStatus::Ok, "text".to_owned())]);
}

#[test]
fn a_call_in_the_tool_s_own_form_keeps_its_exact_text() {
    let exact = r#"{ "path":"a.rs",   "limit": 1.50 }"#;
    assert_eq!(started_by(open(), &[("read_file", exact)]), [("read_file".to_owned(), exact.to_owned())]);
}

#[test]
fn deny_rules_hold_for_every_form_of_a_call() {
    let forms = [
        ("shell", r#"{"command": "rm -rf x"}"#),
        ("Bash", r#"{"command": "rm -rf x"}"#),
        ("bash", r#"{"command": "rm -rf x"}"#),
        ("bash", r#"{"cmd": "rm -rf x"}"#),
        ("shell", r#"{"command": ["rm", "-rf", "x"]}"#),
        ("shell", r#"{"cmd": ["bash", "-lc", "rm -rf x"]}"#),
        ("shell", r#"{"command": ["/bin/sh", "-c", "true; rm -rf x"]}"#),
        ("shell", r#"{"command": ["env", "rm", "-rf", "x"]}"#),
        ("shell", r#"{"command": null, "cmd": "rm -rf x"}"#),
    ];
    for (name, input) in forms {
        for rule in ["shell(rm *)", "Bash(rm *)", "shell"] {
            let mut world = World::start(denying(rule));
            world.call(&[(name, input)]);
            assert_eq!(started(&world), [], "{rule}: {name} {input}");
            assert_eq!(results(&world)[0].0, ToolStatus::Denied, "{rule}: {name} {input}");
        }
    }
    let forms = [
        ("read_file", r#"{"path": "secret/a"}"#),
        ("Read", r#"{"file_path": "secret/a"}"#),
        ("cat", r#"{"file_path": "./x/../secret/a"}"#),
        ("cat", r#"{"path": "secret/a", "file_path": "secret/a"}"#),
    ];
    for (name, input) in forms {
        let mut world = World::start(denying("read_file(secret/)"));
        world.call(&[(name, input)]);
        assert_eq!((started(&world), results(&world)[0].0), (vec![], ToolStatus::Denied), "{name} {input}");
    }
}

#[test]
fn words_of_an_argument_list_stay_words() {
    let list = json!({ "command": ["grep", "-r", "a b; rm -rf /", "$HOME", "it's", "", "*"] }).to_string();
    let quoted = r#"{"command":"grep -r 'a b; rm -rf /' '$HOME' 'it'\\''s' '' '*'"}"#;
    assert_eq!(started_by(open(), &[("shell", &list)]), [("shell".to_owned(), quoted.to_owned())]);
    let mut world = World::start(denying("shell(rm *)"));
    world.call(&[("shell", &list)]);
    assert_eq!(started(&world).len(), 1, "a word isn't a command");
}

#[test]
fn an_approval_shows_and_binds_what_is_executed() {
    let asks = PermissionPolicy { ask: vec!["shell".to_owned()], ..PermissionPolicy::default() };
    let mut world = World::start(policy(asks));
    world.call(&[("bash", r#"{"cmd": ["ls", "all"]}"#)]);
    let asked = world.session_log().iter().find_map(|record| match &record.entry {
        Entry::Gate(GateEntry::ApprovalRequested(asked)) => Some(asked.clone()),
        _ => None,
    });
    let asked = asked.expect("a question");
    assert_eq!((asked.tool.as_str(), asked.input.text()), ("shell", r#"{"command":"ls all"}"#));
    assert_eq!(asked.pattern, "shell(ls all)");
    world.resolve(ApprovalAnswer::Allow { scope: provost_event::ApprovalScope::Once, pattern: None });
    assert_eq!(started(&world), [("shell".to_owned(), r#"{"command":"ls all"}"#.to_owned())]);
}

#[test]
fn hooks_see_the_tool_s_own_form() {
    let mut policy = open();
    let matcher = Some("shell".to_owned());
    policy.agent.hooks = vec![provost_event::HookPolicy { matcher, ..guard(HookPoint::PreToolCall) }];
    let mut world = World::start(policy);
    world.call(&[("bash", r#"{"cmd": "ls"}"#)]);
    let calls = world.hook_calls();
    let seen = format!("{calls:?}");
    assert_eq!(calls.len(), 1);
    assert!(seen.contains(r#"{\"command\":\"ls\"}"#) || seen.contains(r#"{"command":"ls"}"#), "{seen}");
}

#[test]
fn two_values_for_one_argument_are_rejected_and_the_right_name_is_told() {
    let mut world = World::start(open());
    world.call(&[("read_file", r#"{"path": "a", "file_path": "b"}"#)]);
    let told = "`path` and `file_path` both stand for the argument `path` of read_file, and they differ: give only \
                `path`.";
    assert_eq!((started(&world), results(&world)), (vec![], vec![(ToolStatus::Rejected, told.to_owned())]));
    let same = started_by(open(), &[("read_file", r#"{"path": "a", "file_path": "a"}"#)]);
    assert_eq!(same, [("read_file".to_owned(), r#"{"path":"a"}"#.to_owned())]);
}

#[test]
fn a_tool_of_the_very_name_is_always_the_one_that_is_meant() {
    let mut policy = open();
    policy.agent.tools.push(with_forms("bash", Access::Anything, Vec::new()));
    let input = r#"{"cmd": "ls"}"#;
    assert_eq!(started_by(policy, &[("bash", input)]), [("bash".to_owned(), input.to_owned())]);
}

#[test]
fn a_name_that_several_tools_have_is_rejected_and_they_are_named() {
    let mut policy = open();
    policy.agent.tools.push(with_forms("view", Access::Reads, vec![form(&["cat"], Vec::new())]));
    let mut world = World::start(policy);
    world.call(&[("cat", r#"{"path": "a"}"#)]);
    let told = "There is no tool `cat`, and it may mean `read_file` or `view`: call the one that you mean.";
    assert_eq!(results(&world), [(ToolStatus::Rejected, told.to_owned())]);
}

#[test]
fn a_name_of_a_tool_that_the_agent_lacks_stays_unknown() {
    let mut policy = open();
    policy.agent.tools.remove(0);
    let mut world = World::start(policy);
    world.call(&[("bash", r#"{"cmd": "ls"}"#)]);
    assert_eq!(results(&world)[0].0, ToolStatus::Rejected);
}

#[test]
fn texts_become_what_the_schema_demands_and_nothing_else() {
    let schema = json!({ "type": "object", "properties": {
        "limit": { "type": "integer" }, "whole": { "type": "boolean" }, "path": { "type": "string" },
        "list": { "type": "array", "items": { "type": "object", "properties": { "at": { "type": "integer" } } } },
    } });
    let mut policy = open();
    policy.agent.tools[1].input_schema = Json::of(&schema).expect("JSON");
    let input = r#"{"path": "12", "limit": "30", "whole": "true", "list": "[{\"at\": \"4\"}]"}"#;
    let own = r#"{"path":"12","limit":30,"whole":true,"list":[{"at":4}]}"#;
    assert_eq!(started_by(policy.clone(), &[("read_file", input)])[0].1, own);
    for kept in [r#"{"limit":"many"}"#, r#"{"limit":1.5}"#, r#"{"whole":"maybe"}"#, r#"{"list":"[1"}"#] {
        assert_eq!(started_by(policy.clone(), &[("read_file", kept)])[0].1, kept);
    }
    assert_eq!(started_by(policy, &[("read_file", r#"{"limit": 4.0}"#)])[0].1, r#"{"limit":4}"#);
}

#[test]
fn calls_in_another_form_are_the_same_after_a_snapshot_is_read_back() {
    let mut world = World::start(open());
    world.call(&[("bash", r#"{"cmd": "ls"}"#), ("cat", r#"{"file_path": "a"}"#)]);
    world.take_snapshot(crate::world::ROOT.into());
    world.read_back();
    world.finish_first("listed");
    let tools = started(&world).into_iter().map(|(tool, _)| tool).collect::<Vec<_>>();
    assert_eq!(tools, ["shell", "read_file"]);
}
