//! Logs of every format version are kept and replayed.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use provost_engine::{Actor, Effect, RunEvent, SessionEvent, ToolResult, WorktreeResult};
use provost_event::{
    Access, ActorKey, ApprovalAnswer, ApprovalScope, BlobId, Block, Budget, CompactionKind,
    ConversationEntry, Entry, ErrorClass, GoalPolicy, HookContract, HookDecision, HookPoint, HookProgram,
    HookReport, Image, ImageKind, Isolation, Outcome, Plan, PlanItem, PlanStatus, Priority, ProcessStamp,
    Purpose, Record, RunPolicy, RunPolicyChanged, ServiceEvent, ServiceKept, ServiceNoted, StopHookVerdict,
    StopReason, SupervisorError, Timestamp, ToolStatus, ToolsChanged, Usage, WorktreeLeft, WorktreeMade,
};

use crate::external;
use crate::external_calls;
use crate::flow;
use crate::forks;
use crate::goals::{failed, judge, malformed, no, timeout, yes};
use crate::goals_tree::{judged_policy, say_of};
use crate::tree_world::{self, Tree};
use crate::world::{ROOT, RUN, World, guarded, policy, report, tool, without_hooks};

/// Plays all scenarios of this file.
pub(crate) fn play_all() {
    let worlds: [fn() -> World; 7] = [
        eventful_run,
        long_run,
        gated_run,
        pictured_run,
        outage_run,
        external::eventful,
        external_calls::eventful,
    ];
    worlds.iter().for_each(|play| drop(play()));
    let trees: [fn() -> Tree; 2] = [tree_run, goal_run];
    trees.iter().for_each(|play| drop(play()));
    let logs: [fn() -> Vec<Record>; 2] = [flow::eventful, forks::eventful];
    logs.iter().for_each(|play| drop(play()));
}

fn lines<'a>(records: impl IntoIterator<Item = &'a Record>) -> String {
    records.into_iter().map(|record| record.to_line().expect("it has a line") + "\n").collect()
}

fn lines_of(world: &World) -> String {
    lines(world.run_log().iter().chain(world.session_log()))
}

/// A run with every kind of entry.
fn eventful_run() -> World {
    let mut policy = policy();
    policy.budget.tokens = Some(2_900);
    policy.budget.wall_time_ms = Some(60_000);
    let mut world = World::start(policy);
    world.fail(ErrorClass::RateLimited, Some(2_000));
    world.tick();
    world.call(&[("read", "{\"path\":\"a\"}"), ("shell", "{\"command\":\"make\"}")]);
    world.finish_first(&"x".repeat(2_000));
    world.run_event(RunEvent::Recover { fresh: Vec::new() });
    world.run_event(RunEvent::Say { agent: 0, text: "be quick".into(), by: "a person".into() });
    world.fail(ErrorClass::ContextTooLong, None);
    world.answer(vec![], StopReason::EndTurn);
    let seal = Some("sealed".to_owned());
    let thought =
        Block::Thinking { text: "hm".into(), signature: seal, wire: Some("script".into()), prefix: None };
    world.answer(vec![thought, Block::Text("Well, ".into())], StopReason::OutputCap);
    world.say("done. VERDICT: PASS");
    world.hook(StopHookVerdict::Block("a test fails".into()), "0001");
    world.call(&[("shell", "{\"command\":\"make test\"}")]);
    world.run_event(RunEvent::Pause { agent: None, by: "a person".into() });
    let seq = world.tools()[0].0;
    world.finish(seq, ToolStatus::Cancelled, "stopped");
    let budget = Budget { tokens: Some(2_400), ..Budget::default() };
    world.run_event(RunEvent::Resume {
        agent: None,
        by: "a person".into(),
        budget,
        turns_max: Some(20),
        text: None,
    });
    while !world.calls_model_for(Purpose::FinalSummary) {
        world.call(&[("read", "{\"path\":\"b\"}")]);
        world.finish_first("b");
    }
    world.say("It is made, but a test fails.");
    let budget = Budget { tokens: Some(9_000), ..Budget::default() };
    world.run_event(RunEvent::Resume {
        agent: None,
        by: "a person".into(),
        budget,
        turns_max: None,
        text: None,
    });
    world.take_snapshot(RUN.into());
    world.take_snapshot(ROOT.into());
    world.say("Now it is. VERDICT: PASS");
    world.run_event(RunEvent::Pause { agent: None, by: "a person".into() });
    world.hook(StopHookVerdict::Error("cancelled".into()), "0002");
    world.run_event(RunEvent::Resume {
        agent: None,
        by: "a person".into(),
        budget: Budget::default(),
        turns_max: None,
        text: None,
    });
    world.hook(StopHookVerdict::Allow, "0002");
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{:?}", world.outcome());
    world.run_event(RunEvent::ProcessesLeft);
    world
}

/// A conversation that is trimmed, summarized without and with success, and shortened by rule.
fn long_run() -> World {
    let mut policy = without_hooks();
    policy.agent.model.window_tokens = Some(3_000);
    policy.agent.limits.turns_max = 100;
    let mut world = World::start(policy);
    world.usage = Usage::default();
    let words = |count| "what there is to say ".repeat(count);
    let mut answers = ["", "It is all made but the tests."].into_iter();
    let read = |world: &mut World, n: usize, output: &str| {
        world.call(&[("read", &format!("{{\"n\":{n}}}"))]);
        world.finish_first(output);
    };
    for n in 0..100 {
        if world.calls_model_for(Purpose::Summary) {
            let Some(answer) = answers.next() else { break };
            world.say(answer);
            continue;
        }
        match n {
            0..8 => read(&mut world, n, &words(50)),
            _ => {
                let text = Block::Text(words(25));
                world.answer(vec![text], StopReason::OutputCap);
                if world.calls_model_for(Purpose::Turn) {
                    read(&mut world, n, "short");
                }
            }
        }
    }
    world.fail(ErrorClass::ContextTooLong, None);
    world.say("done");
    let how = |kind| {
        let is = |entry: &Entry| matches!(entry, Entry::Conversation(ConversationEntry::Compacted(compacted)) if compacted.how == kind);
        world.session_log().iter().any(|record| is(&record.entry))
    };
    assert!(how(CompactionKind::Trim) && how(CompactionKind::Summary) && how(CompactionKind::Emergency));
    world
}

/// A run with decisions of hooks, permissions and a person.
fn gated_run() -> World {
    let mut policy = guarded(&[HookPoint::PreToolCall, HookPoint::PromptSubmit, HookPoint::SessionEnd]);
    policy.observers = vec!["trace".to_owned()];
    let (hook, permissions) = (&mut policy.agent.hooks[0], &mut policy.agent.permissions);
    hook.matcher = Some("Bash".to_owned());
    hook.condition = Some("Bash(make *)".to_owned());
    hook.program = Some(HookProgram::Shell { command: "./check.sh".to_owned() });
    hook.contract = HookContract::Claude;
    permissions.ask = vec!["shell".to_owned()];
    permissions.deny = vec!["edit".to_owned()];
    let mut world = World::start(policy);
    world.answer_hook(HookDecision::Continue);
    world.call(&[("shell", "{\"command\":\"make\"}"), ("edit", "{\"path\":\"a\"}")]);
    let (seq, _) = world.hook_calls()[0].clone();
    let reminders = vec!["use the cache".to_owned()];
    let note = Some("a note".to_owned());
    let said = HookReport { reminders, note, ..report(HookPoint::PreToolCall, HookDecision::Allow) };
    world.session_event(SessionEvent::HooksAnswered { seq, reports: vec![said], scripts: None });
    let (scope, pattern) = (ApprovalScope::Run, Some("shell(make)".to_owned()));
    world.resolve(ApprovalAnswer::Allow { scope, pattern });
    world.finish_first("made");
    world.say("done");
    world.answer_hook(HookDecision::Continue);
    world
}

/// A run with images in its goal and in a tool's result.
fn pictured_run() -> World {
    let picture = |blob: &str| Image { kind: ImageKind::Png, blob: BlobId(blob.into()), bytes: 45 };
    let mut world = World::start_with(vec![picture("a-picture")], without_hooks());
    world.call(&[("read", "{\"path\":\"b.png\"}")]);
    let seq = world.tools()[0].0;
    world.finish_with(seq, ToolStatus::Ok, "image/png", vec![picture("another-picture")]);
    world.say("done");
    world
}

/// Agents that yield, are suspended and resumed, get a higher priority, and one in a worktree of its own.
fn tree_run() -> Tree {
    let mut policy = tree_world::policy(3);
    policy.worktrees = Some("/trees".into());
    policy.agents.retain(|agent| matches!(agent.name.as_str(), "low" | "high"));
    policy.agent.tools.truncate(4);
    policy.agent.tools.extend(["low", "high"].map(|name| provost_engine::agent_tool(name, "works")));
    for sub_agent in &mut policy.agents {
        sub_agent.agent.tools.clear();
    }
    if let Some(high) = policy.agents.last_mut() {
        high.budget = Budget { tokens: Some(5_000), ..Budget::default() };
        high.ask_timeout_ms = Some(60_000);
        high.isolation = Isolation::Worktree;
    }
    let mut tree = Tree::start(policy);
    tree.spawn(0, &["low", "low", "high"]);
    tree.reprioritize(1, Priority::Normal);
    let open = |tree: &Tree, wanted: fn(&Effect) -> bool| {
        let found = tree.open.iter().find(|(_, effect)| wanted(effect));
        found.expect("agent 3 works").0.1
    };
    let seq = open(&tree, |effect| matches!(effect, Effect::MakeWorktree(_)));
    let made =
        WorktreeMade { repository: "/w/.git".into(), commit: "c0ffee".into(), uncommitted: 0, unfiltered: 0 };
    tree.event(3, SessionEvent::WorktreeReady { seq, result: WorktreeResult::Made(made) });
    tree.pause(Some(1));
    tree.fail(1, ErrorClass::Aborted);
    tree.resume(Some(1));
    tree.say(3, "third");
    let seq = open(&tree, |effect| matches!(effect, Effect::CheckWorktree(_)));
    let branch = Some(format!("provost/{RUN}-3"));
    let summary = "1 file changed, 3 insertions(+)".to_owned();
    let left =
        WorktreeLeft::Changed { branch, commits: 2, summary, uncommitted: 1, pushed: None, unpushed: None };
    tree.event(3, SessionEvent::WorktreeChecked { seq, left });
    tree.say(2, "second");
    tree.say(1, "first");
    tree.call(0, &[("low", r#"{"goal":"and the second half","agent":"2"}"#)]);
    tree.say(2, "the second half");
    tree.say(0, "done");
    assert!(matches!(tree.outcome(), Some(Outcome::Completed { .. })), "{:?}", tree.outcome());
    tree
}

/// Goals: the verdicts and failures of judges, with all consequences; and an agent that got a goal from another.
fn goal_run() -> Tree {
    let mut policy = judged_policy(2, |goal| goal.rounds_max = 1);
    let mut goal = GoalPolicy::new("the tests pass", judge("a"));
    goal.judges.push(judge("b"));
    goal.verify_every = Some(3);
    policy.agent.goal = Some(Box::new(goal));
    policy.agent.tools.truncate(4);
    policy.agents.clear();
    policy.agent.limits.turns_max = 4;
    let mut tree = Tree::start(policy);
    tree.call(0, &[("read", "{}"), ("spawn_agent", r#"{"goal":"test it","done_when":"a test exists"}"#)]);
    let seq = tree.open.keys().find(|id| id.0 == ROOT.into()).expect("a tool runs").1;
    let items = [PlanStatus::Done, PlanStatus::InProgress, PlanStatus::Pending];
    let items = items.map(|status| PlanItem { text: format!("{status:?}"), status }).to_vec();
    let noted = tree_world::result(ToolStatus::Ok, "noted");
    let result = ToolResult { plan: Some(Box::new(Plan { items })), ..noted };
    tree.event(0, SessionEvent::ToolDone { seq, result });
    tree.say(1, "tested");
    say_of(&mut tree, 1, no());
    verify_in_vain(&mut tree);
    verify_amid_stops(&mut tree);
    assert!(matches!(tree.outcome(), Some(Outcome::Completed { .. })), "{:?}", tree.outcome());
    tree
}

/// A claim, an interval and a limit, with all kinds of answers from judges.
fn verify_in_vain(tree: &mut Tree) {
    let message = "connection refused".to_owned();
    let unreachable = SupervisorError::Llm { class: ErrorClass::Transport, message, hint: String::new() };
    tree.say(0, "done");
    say_of(tree, 0, failed(SupervisorError::RateLimited { retry_after_ms: Some(2_000) }));
    tree.tick();
    say_of(tree, 0, failed(SupervisorError::RateLimited { retry_after_ms: None }));
    say_of(tree, 0, failed(unreachable));
    tree.tick();
    say_of(tree, 0, no());
    say_of(tree, 0, yes(60));
    let read = |tree: &mut Tree, input: &str| {
        tree.call(0, &[("read", input)]);
        tree.finish(0, ToolStatus::Ok, "read");
    };
    read(tree, "{\"n\":1}");
    say_of(tree, 0, malformed());
    say_of(tree, 0, malformed());
    say_of(tree, 0, timeout());
    read(tree, "{\"n\":2}");
    tree.say(0, "That is how far I came.");
    tree.run_event(RunEvent::Say { agent: 0, text: "and the docs".into(), by: "a person".into() });
    say_of(tree, 0, yes(85));
}

/// A pause and a clear while a judge is called.
fn verify_amid_stops(tree: &mut Tree) {
    let (by, budget) = ("a person".to_owned(), Budget::default());
    tree.run_event(RunEvent::Resume { agent: None, by: by.clone(), budget, turns_max: Some(10), text: None });
    tree.say(0, "now it is done");
    tree.pause(None);
    say_of(tree, 0, yes(90));
    tree.resume(None);
    tree.run_event(RunEvent::ClearGoal { agent: 0, by });
    say_of(tree, 0, no());
    tree.resume(None);
}

/// A service that goes on, and then ends.
fn see_a_service(world: &mut World) {
    let supervisor = ProcessStamp { pid: 4_711, started: 8_093_411 };
    let kept = ServiceKept {
        name: "web".to_owned(),
        command: "npm start".to_owned(),
        supervisor,
        log: "/state/services/web.log".to_owned(),
        expires: Timestamp(86_400_000),
    };
    let ended = ServiceEvent::Ended { how: "has ended with exit status 1".to_owned(), by_agent: false };
    for event in [ServiceEvent::Found(Box::new(kept)), ended] {
        let noted = ServiceNoted { name: "web".to_owned(), supervisor, event };
        world.session_event(SessionEvent::ServiceNoted(Box::new(noted)));
    }
}

/// A run whose models don't answer.
fn outage_run() -> World {
    let mut world = World::start(policy_of_outages());
    world.fail(ErrorClass::Unauthorized, None);
    world.fail(ErrorClass::QuotaUsedUp, Some(7_200_000));
    let by = "a person".to_owned();
    world.run_event(RunEvent::Retune { model: None, outage_max_ms: Some(0), by });
    world.tick();
    world.say("done");
    let mut changed = policy_of_outages();
    changed.agent.limits.stuck_turns = 7;
    let differences = policy_of_outages().differences(&changed);
    let by = "a person".to_owned();
    let changed = RunPolicyChanged { policy: changed, goal: None, differences, by };
    world.run_event(RunEvent::ChangePolicy(Box::new(changed)));
    let (added, removed) = (vec![tool("extra", Access::Reads, true)], vec!["shell".to_owned()]);
    let changed = ToolsChanged { added, removed, by: "a person".to_owned() };
    world.run_event(RunEvent::ChangeTools(Box::new(changed)));
    see_a_service(&mut world);
    world
}

fn policy_of_outages() -> RunPolicy {
    let mut policy = without_hooks();
    policy.agent.limits.outage_max_ms = 28_800_000;
    policy.agent.model.fallbacks = vec![provost_event::ModelPolicy::new("other/model", 500)];
    policy
}

fn formats() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../provost-event/formats")
}

/// When this fails the serialized form has changed: raise `FORMAT_VERSION`, keep the old folder as it is, and
/// write today's examples to a new one. If only a snapshot's state has changed, raise the layout of states
/// instead.
#[test]
fn today_s_format_is_the_stored_one() {
    expect_file!["../../../provost-event/formats/v1/eventful-run.jsonl"]
        .assert_eq(&lines_of(&eventful_run()));
    expect_file!["../../../provost-event/formats/v1/pictured-run.jsonl"]
        .assert_eq(&lines_of(&pictured_run()));
    expect_file!["../../../provost-event/formats/v1/gated-run.jsonl"].assert_eq(&lines_of(&gated_run()));
    expect_file!["../../../provost-event/formats/v1/long-run.jsonl"].assert_eq(&lines_of(&long_run()));
    let tree = lines(tree_run().logs.values().flatten());
    expect_file!["../../../provost-event/formats/v1/tree-run.jsonl"].assert_eq(&tree);
    let goal = lines(goal_run().logs.values().flatten());
    expect_file!["../../../provost-event/formats/v1/goal-run.jsonl"].assert_eq(&goal);
    expect_file!["../../../provost-event/formats/v1/external-run.jsonl"]
        .assert_eq(&lines_of(&external::eventful()));
    expect_file!["../../../provost-event/formats/v1/gateway-run.jsonl"]
        .assert_eq(&lines_of(&external_calls::eventful()));
    expect_file!["../../../provost-event/formats/v1/outage-run.jsonl"].assert_eq(&lines_of(&outage_run()));
    let flow = lines(&flow::eventful());
    expect_file!["../../../provost-event/formats/v1/flow-run.jsonl"].assert_eq(&flow);
    let forked = lines(&forks::eventful());
    expect_file!["../../../provost-event/formats/v1/fork-run.jsonl"].assert_eq(&forked);
}

#[test]
fn stored_logs_of_every_version_replay_to_their_end() {
    let mut files = 0;
    for version in std::fs::read_dir(formats()).expect("the folder of formats") {
        for file in std::fs::read_dir(version.expect("a folder").path()).expect("a version's folder") {
            let path = file.expect("a file").path();
            let mut actors: HashMap<ActorKey, Actor> = HashMap::new();
            for line in std::fs::read_to_string(&path).expect("readable").lines() {
                let record = Record::from_line(line).expect("a record");
                let actor = actors.entry(record.actor).or_insert_with(|| Actor::new(record.actor));
                actor.replay(&record).expect("it follows");
            }
            assert!(actors.values().all(Actor::has_ended), "{}", path.display());
            files += 1;
        }
    }
    assert!(files > 0, "no stored logs");
}

fn worlds_shown() -> [World; 5] {
    [eventful_run(), gated_run(), outage_run(), external::eventful(), external_calls::eventful()]
}

#[test]
fn the_stored_logs_show_every_kind_of_entry() {
    let (worlds, tree, flow) = (worlds_shown(), tree_run(), flow::eventful());
    let records = worlds.iter().flat_map(|world| world.run_log().iter().chain(world.session_log()));
    let goal = goal_run();
    let forks = forks::eventful();
    let records = records.chain(&forks);
    let records =
        records.chain(tree.logs.values().flatten()).chain(&flow).chain(goal.logs.values().flatten());
    let shown = records.map(|record| record.entry.kind()).collect::<HashSet<_>>();
    let missing = Entry::KINDS.iter().filter(|kind| !shown.contains(**kind)).collect::<Vec<_>>();
    assert!(missing.is_empty(), "{missing:?}");
}
