//! The tools of a run change while it lives.

use provost_engine::RunEvent;
use provost_event::{
    Access, ActorKey, Entry, HookPoint, PermissionPolicy, RunPolicy, Seq, ToolEntry, ToolSpec, ToolStatus,
    ToolsChanged,
};

use crate::tree_world::{Tree, key, policy as policy_of_tree, sub_agent};
use crate::world::{ROOT, World, guard, without_hooks};

fn tool(name: &str) -> ToolSpec {
    crate::world::tool(name, Access::Reads, true)
}

fn changed(added: &[ToolSpec], removed: &[&str]) -> RunEvent {
    let removed = removed.iter().map(|name| (*name).to_owned()).collect();
    RunEvent::ChangeTools(Box::new(ToolsChanged { added: added.to_vec(), removed, by: "ann".to_owned() }))
}

fn names(tools: &[ToolSpec]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn tools(world: &World) -> Vec<&str> {
    names(&world.session().policy().expect("a policy").tools)
}

fn changes(log: &[provost_event::Record]) -> usize {
    log.iter().filter(|record| matches!(record.entry, Entry::Tool(ToolEntry::Changed(_)))).count()
}

fn results(world: &World) -> Vec<(ToolStatus, String)> {
    let result = |record: &provost_event::Record| match &record.entry {
        Entry::Tool(ToolEntry::Finished(done)) => Some((done.status, done.output.clone())),
        _ => None,
    };
    world.session_log().iter().filter_map(result).collect()
}

fn policy_of_call(tree: &Tree, agent: u32) -> Seq {
    tree.model_call(agent).expect("a model call").1.policy_since
}

#[test]
fn a_change_applies_to_the_next_model_call_and_to_the_fold_of_the_log() {
    let mut world = World::start(without_hooks());
    world.run_event(changed(&[tool("extra")], &["edit"]));
    assert_eq!(tools(&world), ["read", "shell", "extra"], "new tools come last");
    world.take_snapshot(ROOT.into());
    world.read_back();
    assert_eq!(tools(&world), ["read", "shell", "extra"]);
    world.call(&[("extra", "{}")]);
    assert_eq!(world.tools().len(), 1, "the new tool is called");
    world.finish_first("found");
    world.call(&[("edit", "{}")]);
    let (status, output) = results(&world).pop().expect("a result");
    assert_eq!(status, ToolStatus::Rejected);
    assert_eq!(output, "The tool `edit` was removed: you no longer have it. There are: read, shell, extra.");
}

#[test]
fn the_calls_of_an_answer_are_made_with_the_tools_that_it_was_given_with() {
    let mut world = World::start(without_hooks());
    world.call(&[("shell", r#"{"command":"one"}"#), ("shell", r#"{"command":"two"}"#)]);
    world.run_event(changed(&[], &["shell"]));
    assert_eq!(tools(&world), ["edit", "read", "shell"], "the turn isn't over");
    world.take_snapshot(ROOT.into());
    world.read_back();
    world.finish_first("first");
    world.finish_first("second");
    assert_eq!(results(&world).into_iter().map(|it| it.1).collect::<Vec<_>>(), ["first", "second"]);
    assert_eq!(tools(&world), ["edit", "read"]);
}

#[test]
fn nothing_is_recorded_if_nothing_changes() {
    let mut world = World::start(without_hooks());
    let same = without_hooks().agent.tools;
    world.run_event(changed(&same[..1], &["never-there"]));
    assert_eq!((changes(world.run_log()), changes(world.session_log())), (0, 0));
    world.run_event(changed(&[tool("extra")], &[]));
    world.run_event(changed(&[tool("extra")], &[]));
    assert_eq!((changes(world.run_log()), changes(world.session_log())), (1, 1));
    world.run_event(changed(&[], &["extra"]));
    assert_eq!((changes(world.run_log()), changes(world.session_log())), (2, 2));
    assert_eq!(tools(&world), ["edit", "read", "shell"]);
}

#[test]
fn a_model_call_names_the_entry_since_which_the_tools_are_what_they_are() {
    let mut tree = Tree::start(policy_of_tree(2));
    assert_eq!(policy_of_call(&tree, 0), Seq::START);
    tree.run_event(changed(&[tool("extra")], &[]));
    tree.fail(0, provost_event::ErrorClass::Server);
    tree.tick();
    let at =
        tree.log(key(0)).iter().find(|record| matches!(record.entry, Entry::Tool(ToolEntry::Changed(_))));
    assert_eq!(policy_of_call(&tree, 0), at.expect("a change").seq);
}

#[test]
fn permissions_and_hooks_apply_to_a_new_tool_by_its_subject_and_names() {
    let denies = |rule: &str| {
        let mut policy = without_hooks();
        policy.agent.tools.clear();
        policy.agent.permissions =
            PermissionPolicy { deny: vec![rule.to_owned()], ..PermissionPolicy::default() };
        policy
    };
    let call = |policy: RunPolicy| {
        let mut world = World::start(policy);
        let runs = ToolSpec { name: "remote__run".to_owned(), ..tool("shell") };
        world.run_event(changed(&[runs], &[]));
        world.call(&[("remote__run", r#"{"command":"rm -rf x"}"#)]);
        world
    };
    assert_eq!(results(&call(denies("shell(rm *)")))[0].0, ToolStatus::Denied, "by what its calls are about");
    assert_eq!(results(&call(denies("remote__run")))[0].0, ToolStatus::Denied, "by its name");
    let mut guarded = without_hooks();
    let matcher = Some("remote__run".to_owned());
    guarded.agent.hooks = vec![provost_event::HookPolicy { matcher, ..guard(HookPoint::PreToolCall) }];
    assert_eq!(call(guarded).hook_calls().len(), 1);
}

#[test]
fn sub_agents_have_the_tools_of_the_run_and_configured_ones_keep_their_own() {
    let mut policy = policy_of_tree(4);
    let mut own = policy.agent.clone();
    own.tools.retain(|tool| tool.name == "read");
    policy.agents.push(sub_agent("reader", provost_event::Priority::Normal, &own));
    policy.agent.tools.push(crate::world::tool("reader", Access::Delegates, false));
    let mut tree = Tree::start(policy);
    tree.spawn(0, &["spawn_agent", "reader"]);
    tree.run_event(changed(&[tool("extra")], &[]));
    let has = |tree: &Tree, agent: u32| {
        let policy = tree.session(agent).and_then(|session| session.policy()).expect("a policy").clone();
        policy.tools.iter().any(|tool| tool.name == "extra")
    };
    assert!(has(&tree, 1), "a copy of the run's own agent");
    assert!(!has(&tree, 2), "a configured agent has its own tools");
    assert!(!has(&tree, 0), "its turn isn't over");
    tree.say(1, "one");
    tree.say(2, "two");
    assert!(has(&tree, 0));
    tree.spawn(0, &["spawn_agent"]);
    assert!(has(&tree, 3), "spawned after the change");
    tree.run_event(changed(&[], &["read", "extra"]));
    let left = tree.session(3).and_then(|session| session.policy()).expect("a policy");
    assert!(!names(&left.tools).contains(&"read") && !names(&left.tools).contains(&"extra"));
}

#[test]
fn a_suspended_run_and_one_that_has_ended_go_on_with_the_changed_tools() {
    let mut world = World::start(without_hooks());
    world.say("done");
    world.run_event(changed(&[tool("extra")], &["shell"]));
    assert_eq!(tools(&world), ["edit", "read", "extra"]);
    let (by, budget) = ("ann".to_owned(), provost_event::Budget::default());
    world.run_event(RunEvent::Resume { agent: None, by, budget, turns_max: None, text: Some("more".into()) });
    world.call(&[("extra", "{}")]);
    assert_eq!(world.tools().len(), 1);
    let of_run = world.run_log().iter().filter(|record| matches!(record.actor, ActorKey::Run(_)));
    assert!(of_run.count() > 0);
}
