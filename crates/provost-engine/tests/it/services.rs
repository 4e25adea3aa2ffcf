//! Services in an agent's log, the permission that they need, and the rules of folders that an agent is told.

use std::path::Path;

use provost_engine::{FolderRules, Permissions, RunEvent, SessionEvent};
use provost_event::{
    Access, Budget, ConversationEntry, Entry, ItemKind, Json, Permission, PermissionPolicy, ProcessStamp,
    RunPolicy, ServiceEvent, ServiceKept, ServiceNoted, Timestamp, ToolEntry, ToolSpec, ToolSubject,
};

use crate::permissions::policy as permissions_of;
use crate::world::{World, tool, without_hooks};

const WEB: ProcessStamp = ProcessStamp { pid: 12, started: 34 };

fn kept(name: &str) -> ServiceKept {
    ServiceKept {
        name: name.to_owned(),
        command: format!("serve {name}"),
        supervisor: WEB,
        log: "/state/web.log".to_owned(),
        expires: Timestamp(99),
    }
}

fn noted(name: &str, supervisor: ProcessStamp, event: ServiceEvent) -> SessionEvent {
    SessionEvent::ServiceNoted(Box::new(ServiceNoted { name: name.to_owned(), supervisor, event }))
}

fn found(name: &str) -> SessionEvent {
    noted(name, WEB, ServiceEvent::Found(Box::new(kept(name))))
}

fn ended(name: &str, by_agent: bool) -> SessionEvent {
    noted(name, WEB, ServiceEvent::Ended { how: "has ended".to_owned(), by_agent })
}

fn notes(world: &World) -> usize {
    let is_note = |entry: &Entry| matches!(entry, Entry::Tool(ToolEntry::ServiceNoted(_)));
    world.session_log().iter().filter(|record| is_note(&record.entry)).count()
}

fn told(world: &World, kind: ItemKind) -> Vec<String> {
    let items = world.session_log().iter().filter_map(|record| match &record.entry {
        Entry::Conversation(ConversationEntry::SystemItem(item)) if item.item == kind => {
            Some(item.body.clone())
        }
        _ => None,
    });
    items.collect()
}

fn resume(world: &mut World) {
    world.run_event(RunEvent::Resume {
        agent: None,
        by: "ann".into(),
        budget: Budget::default(),
        turns_max: None,
        text: None,
    });
}

#[test]
fn what_is_seen_of_a_service_counts_once_and_only_of_the_same_process() {
    let mut world = World::start(without_hooks());
    world.session_event(ended("web", false));
    assert_eq!(notes(&world), 0, "it isn't known");
    world.session_event(found("web"));
    world.session_event(found("web"));
    assert_eq!(notes(&world), 1);
    let other = ProcessStamp { pid: 12, started: 35 };
    world.session_event(noted("web", other, ServiceEvent::Ended { how: "x".to_owned(), by_agent: false }));
    assert_eq!((notes(&world), world.session().services().count()), (1, 1), "another process of that name");
    world.session_event(ended("web", false));
    world.session_event(ended("web", false));
    assert_eq!((notes(&world), world.session().services().count()), (2, 0));
    assert_eq!(told(&world, ItemKind::ServiceEnded), ["The service `web` has ended."]);
    world.session_event(found("own"));
    world.session_event(ended("own", true));
    assert_eq!(told(&world, ItemKind::ServiceEnded).len(), 1, "the agent knows what it did itself");
    world.read_back();
}

#[test]
fn a_service_may_end_after_its_run_and_the_agent_is_told_when_it_is_worked_on_again() {
    let mut world = World::start(without_hooks());
    world.session_event(found("web"));
    world.session_event(found("db"));
    world.say("done");
    assert!(world.outcome().is_some());
    world.session_event(ended("web", false));
    assert_eq!(told(&world, ItemKind::ServiceEnded).len(), 0);
    resume(&mut world);
    let resumed = told(&world, ItemKind::Resumed);
    let expected = "Services that you started still run: db (`serve db`). `jobs` shows and ends them. Services that have \
                    ended meanwhile: web (`serve web`) has ended.";
    assert_eq!(resumed[0], expected, "{resumed:?}");
    world.say("done");
    resume(&mut world);
    let again = told(&world, ItemKind::Resumed);
    assert!(again.iter().any(|text| text.ends_with("`jobs` shows and ends them.")), "{again:?}");
    world.read_back();
}

fn shell() -> ToolSpec {
    let subject = ToolSubject::Command {
        field: "command".to_owned(),
        keeps: Some("keep_running".to_owned()),
        leaves: None,
    };
    ToolSpec { subject, ..tool("shell", Access::Anything, false) }
}

fn ruling(policy: &PermissionPolicy, input: serde_json::Value) -> Permission {
    let permissions = Permissions::new(policy, Path::new("/srv/project"), &[shell()]).unwrap();
    let input = Json::of(&input).unwrap();
    assert_eq!(permissions.concern("shell", &input), !permissions.is_open() || input.text().contains("keep"));
    permissions.judge("shell", &input).permission
}

#[test]
fn to_keep_a_command_running_needs_a_pattern_that_names_it_and_the_stricter_ruling_counts() {
    use Permission::{Allow, Ask, Deny};

    let rows: [(&[&str], &str, Permission); 11] = [
        (&[], "npm start", Deny),
        (&["allow *"], "npm start", Deny),
        (&["approved shell(npm *)"], "npm start", Deny),
        (&["allow keep_running"], "npm start", Allow),
        (&["allow keep_running(npm *)"], "npm start", Allow),
        (&["allow keep_running(npm *)"], "npm start; rm -rf x", Deny),
        (&["allow keep_running(npm *)"], "node x", Deny),
        (&["ask keep_running", "allow keep_running"], "npm start", Ask),
        (&["deny keep_running(npm *)", "allow keep_running"], "npm start", Deny),
        (&["deny shell(npm *)", "allow keep_running"], "npm start", Deny),
        (&["default deny", "allow keep_running"], "npm start", Deny),
    ];
    for (rules, command, expected) in rows {
        let policy = permissions_of(rules);
        let kept = serde_json::json!({ "command": command, "keep_running": true });
        assert_eq!(ruling(&policy, kept), expected, "{rules:?}: {command}");
    }
    let attended = PermissionPolicy { keeping: Ask, ..PermissionPolicy::default() };
    assert_eq!(ruling(&attended, serde_json::json!({ "command": "npm start", "keep_running": true })), Ask);
    for off in
        [serde_json::json!({ "command": "ls" }), serde_json::json!({ "command": "ls", "keep_running": null })]
    {
        let policy = PermissionPolicy::default();
        let permissions = Permissions::new(&policy, Path::new("/srv/project"), &[shell()]).unwrap();
        assert_eq!(permissions.judge("shell", &Json::of(&off).unwrap()).permission, Allow, "{off}");
    }
    let odd = serde_json::json!({ "command": "ls", "keep_running": "yes" });
    assert_eq!(ruling(&PermissionPolicy::default(), odd), Deny, "what isn't a truth value may mean it");
}

fn rules(file: &str, bytes: u64) -> FolderRules {
    FolderRules { file: file.to_owned(), bytes, body: format!("rules of {file}") }
}

fn with_rules(bytes: u64) -> RunPolicy {
    let mut policy = without_hooks();
    policy.agent.folder_rules_bytes = bytes;
    policy
}

#[test]
fn the_rules_of_a_folder_are_told_once_and_no_more_than_there_is_room_for() {
    let mut world = World::start(with_rules(100));
    world.session_event(SessionEvent::RulesFound(vec![rules("a/AGENTS.md", 60), rules("a/AGENTS.md", 60)]));
    world.session_event(SessionEvent::RulesFound(vec![rules("a/AGENTS.md", 60), rules("b/AGENTS.md", 60)]));
    world.session_event(SessionEvent::RulesFound(vec![rules("c/AGENTS.md", 40)]));
    world.session_event(SessionEvent::RulesFound(vec![rules("d/AGENTS.md", 1)]));
    let expected = ["rules of a/AGENTS.md", "rules of c/AGENTS.md"];
    assert_eq!(told(&world, ItemKind::FolderRules), expected);
    world.read_back();
    let mut off = World::start(with_rules(0));
    off.session_event(SessionEvent::RulesFound(vec![rules("a/AGENTS.md", 1)]));
    assert_eq!(told(&off, ItemKind::FolderRules).len(), 0);
}
