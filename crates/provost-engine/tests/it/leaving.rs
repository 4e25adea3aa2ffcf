//! Calls that are to run outside of the sandbox: only a person lets them, each one alone.

use std::path::Path;

use provost_engine::Permissions;
use provost_event::{
    Access, AgentPolicy, Json, Permission, PermissionPolicy, SandboxMode, SandboxPolicy, ToolSpec,
    ToolSubject,
};

use crate::permissions::policy as permissions_of;
use crate::world::{tool, without_hooks};

fn agent(permissions: PermissionPolicy, mode: SandboxMode) -> AgentPolicy {
    let leaves = Some("outside".to_owned());
    let subject = ToolSubject::Command { field: "command".to_owned(), keeps: None, leaves };
    let shell = ToolSpec { subject, ..tool("shell", Access::Anything, false) };
    let sandbox = SandboxPolicy { mode, ..SandboxPolicy::default() };
    AgentPolicy { permissions, sandbox, tools: vec![shell], ..without_hooks().agent }
}

fn ruling(agent: &AgentPolicy, input: serde_json::Value) -> Permission {
    let permissions = Permissions::of_agent(agent, Path::new("/srv/project"));
    let input = Json::of(&input).unwrap();
    if permissions.leaves_sandbox("shell", &input) {
        assert!(permissions.concern("shell", &input));
    }
    permissions.judge("shell", &input).permission
}

#[test]
fn no_pattern_lets_a_call_leave_the_sandbox_and_without_a_person_it_is_denied() {
    use Permission::{Allow, Ask, Deny};
    let leaves = || serde_json::json!({ "command": "make install", "outside": true });
    let rows: [(&[&str], Permission); 5] = [
        (&[], Ask),
        (&["allow shell"], Ask),
        (&["approved shell(make *)", "allow *"], Ask),
        (&["deny shell(make *)"], Deny),
        (&["default deny"], Deny),
    ];
    for (rules, expected) in rows {
        let attended = PermissionPolicy { leaving: Ask, ..permissions_of(rules) };
        assert_eq!(ruling(&agent(attended, SandboxMode::Workspace), leaves()), expected, "{rules:?}");
        let alone = agent(permissions_of(rules), SandboxMode::Workspace);
        assert_eq!(ruling(&alone, leaves()), Deny, "{rules:?}");
    }
    let open = PermissionPolicy::default();
    let inside = serde_json::json!({ "command": "make install", "outside": false });
    assert_eq!(ruling(&agent(open.clone(), SandboxMode::Workspace), inside), Allow);
    assert_eq!(ruling(&agent(open.clone(), SandboxMode::Off), leaves()), Allow, "there is nothing to leave");
    let always = PermissionPolicy { leaving: Allow, ..open };
    assert_eq!(ruling(&agent(always, SandboxMode::Strict), leaves()), Ask, "it is never allowed unasked");
}
