//! Reading outside of the workspace: what permissions cover it, and what doesn't.

use std::path::{Path, PathBuf};

use provost_engine::Permissions;
use provost_event::{
    Access, Entry, GateEntry, Json, Permission, PermissionPolicy, ToolEntry, ToolSpec, ToolSubject,
};
use serde_json::json;

use crate::world::{World, known_tools, without_hooks};

const HERE: &str = "/srv/place";

fn rules(text: &str) -> PermissionPolicy {
    let roots = vec![PathBuf::from("/opt/shared")];
    let elsewhere = Permission::Ask;
    let mut policy = PermissionPolicy { roots, elsewhere, ..PermissionPolicy::default() };
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
fn elsewhere_a_pattern_must_begin_at_a_folder() {
    for allowed in [
        "allow read_file(**)",
        "allow read_file(*.txt)",
        "allow read_file(a.txt)",
        "allow read_file(**/a.txt)",
    ] {
        assert_eq!(permission(allowed, "read_file", "/etc/a.txt"), Permission::Ask, "{allowed}");
        assert_eq!(permission(allowed, "read_file", "../a.txt"), Permission::Ask, "{allowed}");
        assert_eq!(permission(allowed, "read_file", "a.txt"), Permission::Allow, "{allowed}");
    }
    for allowed in ["allow read_file(/etc/*.txt)", "allow read_file(/**)", "allow read_file(../../etc/**)"] {
        assert_eq!(permission(allowed, "read_file", "/etc/a.txt"), Permission::Allow, "{allowed}");
    }
    assert_eq!(permission("deny read_file(a.txt)", "read_file", "/etc/a.txt"), Permission::Deny);
}

#[test]
fn what_a_program_changes_elsewhere_is_judged_as_what_is_read_there() {
    let edits = ToolSpec {
        subject: ToolSubject::path_written_anywhere("path"),
        ..known_tools().into_iter().find(|tool| tool.name == "edit_file").expect("a tool")
    };
    let judge = |rules_text: &str, path: &str| {
        let permissions = Permissions::new(&rules(rules_text), Path::new(HERE), std::slice::from_ref(&edits));
        let input = Json::of(&json!({ "path": path })).expect("JSON");
        permissions.expect("patterns").judge("edit_file", &input).permission
    };
    for allowed in ["", "allow edit_file", "allow edit_file(**)", "allow edit_file(*.txt)"] {
        assert_eq!(judge(allowed, "/etc/a.txt"), Permission::Ask, "{allowed}");
        assert_eq!(judge(allowed, "a.txt"), Permission::Allow, "{allowed}");
    }
    assert_eq!(judge("allow edit_file(/etc/**)", "/etc/a.txt"), Permission::Allow);
    assert_eq!(judge("allow edit_file", "/opt/shared/a.txt"), Permission::Allow);
}

#[test]
fn where_nobody_is_asked_it_is_denied() {
    let judge = |default| {
        let policy = PermissionPolicy { default, ..PermissionPolicy::default() };
        let permissions = Permissions::new(&policy, Path::new(HERE), &known_tools()).expect("patterns");
        permissions.judge("read_file", &Json::of(&json!({ "path": "/etc/hosts" })).expect("JSON")).permission
    };
    assert_eq!(judge(Permission::Allow), Permission::Deny);
    assert_eq!(judge(Permission::Ask), Permission::Ask, "what is asked about anyway");
    assert_eq!(judge(Permission::Deny), Permission::Deny);
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
    policy.bounds = vec![PermissionPolicy { elsewhere: Permission::Ask, ..PermissionPolicy::default() }];
    policy.tools = known_tools();
    let permissions = Permissions::of_agent(&policy, Path::new(HERE));
    let input = Json::of(&json!({ "path": "/opt/shared/a" })).expect("JSON");
    assert_eq!(permissions.judge("read_file", &input).permission, Permission::Ask);
}

#[test]
fn without_any_rule_a_read_elsewhere_is_asked_about_and_one_here_is_not() {
    let mut policy = without_hooks();
    policy.agent.tools = vec![crate::world::tool("read_file", Access::Reads, false)];
    policy.agent.permissions.elsewhere = Permission::Ask;
    let mut world = World::start(policy);
    world.call(&[("read_file", r#"{"path": "/etc/hosts"}"#), ("read_file", r#"{"path": "a"}"#)]);
    let asked = |record: &&provost_event::Record| matches!(&record.entry, Entry::Gate(GateEntry::ApprovalRequested(asked)) if asked.pattern == "read_file(/etc/hosts)");
    assert_eq!(world.session_log().iter().filter(asked).count(), 1);
    let started = |record: &&provost_event::Record| matches!(&record.entry, Entry::Tool(ToolEntry::Started(started)) if started.input.text().contains("\"a\""));
    assert_eq!(world.session_log().iter().filter(started).count(), 1);
}

fn patching(rules: PermissionPolicy) -> Permissions {
    let tool = provost_event::ToolSpec {
        subject: provost_event::ToolSubject::Patch { field: "input".to_owned() },
        aliases: ["edit_file", "write_file"].map(str::to_owned).to_vec(),
        ..crate::world::tool("apply_patch", Access::Writes, false)
    };
    Permissions::new(&rules, Path::new(HERE), &[tool]).expect("patterns")
}

fn patch_permission(text: &str, patch: &str) -> Permission {
    let input = Json::of(&json!({ "input": patch })).expect("JSON");
    patching(rules(text)).judge("apply_patch", &input).permission
}

#[test]
fn each_path_that_a_patch_names_needs_its_permission() {
    let patch = "*** Begin Patch\n*** Add File: src/new.rs\n+x\n*** Update File: src/a.rs\n*** Move to: lib/b.rs\n@@\n-x\n+y\n*** Delete File: old.rs\n*** End Patch";
    let all = "default ask, allow apply_patch(src/**), allow edit_file(lib/**), allow write_file(./old.rs)";
    assert_eq!(patch_permission(all, patch), Permission::Allow);
    for lacking in [
        "default ask, allow edit_file(lib/**), allow write_file(./old.rs)",
        "default ask, allow apply_patch(src/**), allow write_file(./old.rs)",
        "default ask, allow apply_patch(src/**), allow edit_file(lib/**)",
    ] {
        assert_eq!(patch_permission(lacking, patch), Permission::Ask, "{lacking}");
    }
    for denied in ["src/new.rs", "src/a.rs", "lib/b.rs", "./old.rs", "old.rs", "LIB/B.RS", "lib/"] {
        for tool in ["apply_patch", "edit_file", "write_file"] {
            let rule = format!("deny {tool}({denied})");
            assert_eq!(patch_permission(&rule, patch), Permission::Deny, "{rule}");
        }
    }
    assert_eq!(patch_permission("deny edit_file", patch), Permission::Deny);
    assert_eq!(patch_permission("ask edit_file(src/a.rs)", patch), Permission::Ask);
    assert_eq!(patch_permission("deny edit_file(other.rs)", patch), Permission::Allow);
}

#[test]
fn headers_of_a_patch_count_however_they_are_written() {
    for header in [
        "*** Update File: .env",
        "  *** Delete File:   .env  ",
        "*** Add File:.env",
        "*** Move to: ./x/../.env",
    ] {
        let patch = format!("*** Begin Patch\n{header}\n*** End Patch");
        assert_eq!(patch_permission("deny write_file(.env)", &patch), Permission::Deny, "{header}");
    }
    let none = "*** Begin Patch\n*** End Patch";
    assert_eq!(patch_permission("default ask, allow edit_file(src/**)", none), Permission::Ask);
}
