//! Reading outside of the workspace: what permissions cover it, and what doesn't.

use std::path::{Path, PathBuf};

use provost_engine::Permissions;
use provost_event::{Access, Entry, GateEntry, Json, Permission, PermissionPolicy, ToolEntry};
use serde_json::json;

use crate::world::{World, known_tools, without_hooks};

const HERE: &str = "/srv/place";

fn rules(text: &str) -> PermissionPolicy {
    let mut policy =
        PermissionPolicy { roots: vec![PathBuf::from("/opt/shared")], ..PermissionPolicy::default() };
    for rule in text.split(", ").filter(|rule| !rule.is_empty()) {
        let (kind, pattern) = rule.split_once(' ').expect("a kind and a pattern");
        match kind {
            "allow" => policy.allow.push(pattern.to_owned()),
            "ask" => policy.ask.push(pattern.to_owned()),
            "deny" => policy.deny.push(pattern.to_owned()),
            "approved" => policy.approved.push(pattern.to_owned()),
            _ => policy.default = if pattern == "deny" { Permission::Deny } else { Permission::Ask },
        }
    }
    policy
}

fn ruling(text: &str, tool: &str, path: &str) -> (Permission, String) {
    let permissions = Permissions::new(&rules(text), Path::new(HERE), &known_tools()).expect("patterns");
    let input = Json::of(&json!({ "path": path, "pattern": "x" })).expect("JSON");
    let ruling = permissions.judge(tool, &input);
    (ruling.permission, ruling.why)
}

fn permission(text: &str, tool: &str, path: &str) -> Permission {
    ruling(text, tool, path).0
}

#[test]
fn bare_permissions_cover_the_workspace_and_the_roots() {
    for tool in ["read_file", "search", "list_dir"] {
        for allowed in ["", "allow read_file, allow search, allow list_dir", "approved read_file"] {
            for path in [
                "a.rs",
                "/srv/place",
                "/srv/place/x/../a",
                "/opt/shared",
                "/opt/shared/lib/a.rs",
                "x/../../place/a",
            ] {
                assert_eq!(permission(allowed, tool, path), Permission::Allow, "{allowed}: {tool} {path}");
            }
        }
    }
}

#[test]
fn elsewhere_a_bare_permission_is_none() {
    let everything = [
        "",
        "allow read_file",
        "allow *",
        "allow read_file(*)",
        "approved read_file",
        "allow Read",
        "allow read_file, default ask",
    ];
    for allowed in everything {
        for path in ["/etc/hosts", "..", "../place2/a", "/opt/sharedx", "/", "/opt/shared/../x", "x/../../a"]
        {
            assert_eq!(permission(allowed, "read_file", path), Permission::Ask, "{allowed}: {path}");
        }
    }
    assert_eq!(permission("allow read_file, default deny", "read_file", "/etc/hosts"), Permission::Deny);
    assert_eq!(permission("allow search", "search", "/etc"), Permission::Ask);
    assert_eq!(permission("allow list_dir", "list_dir", "/"), Permission::Ask);
}

#[test]
fn a_permission_with_the_path_covers_it() {
    let allowed =
        "allow read_file(/etc/hosts), allow search(/usr/include/**), deny read_file(/usr/include/secret.h)";
    assert_eq!(permission(allowed, "read_file", "/etc/hosts"), Permission::Allow);
    assert_eq!(permission(allowed, "read_file", "/etc/../etc/hosts"), Permission::Allow);
    assert_eq!(permission(allowed, "read_file", "/etc/hosts2"), Permission::Ask);
    assert_eq!(permission(allowed, "search", "/usr/include/sys"), Permission::Allow);
    assert_eq!(permission(allowed, "search", "/usr"), Permission::Ask);
    assert_eq!(permission(allowed, "read_file", "/usr/include/secret.h"), Permission::Deny);
    let approved = "default ask, approved read_file(/etc/hosts)";
    assert_eq!(permission(approved, "read_file", "/etc/hosts"), Permission::Allow);
}

#[test]
fn deny_rules_hold_in_the_roots_and_elsewhere() {
    assert_eq!(
        permission("deny read_file(/opt/shared/key)", "read_file", "/opt/shared/key"),
        Permission::Deny
    );
    assert_eq!(permission("deny read_file", "read_file", "/etc/hosts"), Permission::Deny);
    assert_eq!(permission("deny search(/etc/ssl/)", "search", "/etc"), Permission::Deny);
}

#[test]
fn the_reason_names_the_way() {
    let told = "`/etc/hosts` is outside of the workspace: reading it needs the permission `read_file(/etc/hosts)`, or \
                its folder in `roots` of [tools]";
    assert_eq!(ruling("allow read_file", "read_file", "/etc/./hosts"), (Permission::Ask, told.to_owned()));
}

#[test]
fn an_agent_is_bound_by_the_roots_of_those_above_it() {
    let mut policy = without_hooks().agent;
    policy.permissions = rules("");
    policy.bounds = vec![PermissionPolicy::default()];
    policy.tools = known_tools();
    let permissions = Permissions::of_agent(&policy, Path::new(HERE));
    let input = Json::of(&json!({ "path": "/opt/shared/a" })).expect("JSON");
    assert_eq!(permissions.judge("read_file", &input).permission, Permission::Ask);
}

#[test]
fn without_any_rule_a_read_elsewhere_is_asked_about_and_one_here_is_not() {
    let mut policy = without_hooks();
    policy.agent.tools = vec![crate::world::tool("read_file", Access::Reads, false)];
    let mut world = World::start(policy);
    world.call(&[("read_file", r#"{"path": "/etc/hosts"}"#), ("read_file", r#"{"path": "a"}"#)]);
    let asked = |record: &&provost_event::Record| matches!(&record.entry, Entry::Gate(GateEntry::ApprovalRequested(asked)) if asked.pattern == "read_file(/etc/hosts)");
    assert_eq!(world.session_log().iter().filter(asked).count(), 1);
    let started = |record: &&provost_event::Record| matches!(&record.entry, Entry::Tool(ToolEntry::Started(started)) if started.input.text().contains("\"a\""));
    assert_eq!(world.session_log().iter().filter(started).count(), 1);
}
