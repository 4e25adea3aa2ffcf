//! Agents in git worktrees of their own: made before they begin, inspected before they end, and reported to their
//! parents.

use provost_engine::{AgentState, CleanWorktree, Effect, SessionEvent, WorktreeOrder, WorktreeResult};
use provost_event::{
    ConversationEntry, Entry, ErrorClass, HookDecision, HookPoint, LifecycleEntry, Outcome, PauseReason,
    RemoteRepository, RunPolicy, Seq, ToolEntry, ToolStatus, WorktreeLeft, WorktreeMade,
};

use crate::tree_world::{self, Tree, key};
use crate::world::{RUN, guard, report};

const SPAWN: (&str, &str) = ("spawn_agent", r#"{"goal":"g","isolation":"worktree"}"#);

/// Plays all scenarios of this file.
pub(crate) fn play_all() {
    let all: &[fn()] = &[
        a_worktree_is_made_before_anything_else,
        the_root_of_a_run_with_a_remote_repository_gets_one_from_its_copy,
        an_agent_hears_what_its_worktree_lacks,
        an_agents_own_agents_start_from_its_worktree,
        no_agent_gets_one_where_there_is_no_folder_for_them,
        an_agent_that_gets_none_fails_and_says_why,
        what_is_in_it_is_told_to_the_agent_that_asked,
        one_that_nothing_was_done_to_may_go_at_the_end_only,
        one_of_an_agent_at_its_limit_is_looked_at_and_stays,
        a_process_that_dies_while_one_is_made_makes_it_again_under_a_new_name,
        a_process_that_dies_while_it_is_inspected_inspects_it_again,
        cancelled_while_it_is_made_an_agent_ends_when_that_has_stopped,
        one_that_is_made_all_the_same_is_looked_at_too,
        paused_while_it_is_made_an_agent_makes_it_when_it_goes_on,
        a_second_cancel_waits_for_no_inspection,
        cancelled_while_it_rests_it_ends_at_once,
        an_agent_that_shall_make_way_does_so_when_it_is_made,
        hooks_hear_of_the_end_before_it_is_looked_at_and_never_without_a_folder,
    ];
    all.iter().for_each(|play| play());
}

fn policy() -> RunPolicy {
    let mut policy = tree_world::policy(4);
    policy.worktrees = Some("/trees".into());
    policy
}

fn made(uncommitted: u32) -> WorktreeResult {
    WorktreeResult::Made(WorktreeMade {
        repository: "/w/.git".into(),
        commit: "c0ffee".to_owned(),
        uncommitted,
        unfiltered: 0,
    })
}

fn failed() -> WorktreeResult {
    WorktreeResult::Failed { message: "no room: free some".to_owned() }
}

fn changed() -> WorktreeLeft {
    WorktreeLeft::Changed {
        branch: Some(format!("provost/{RUN}-1")),
        commits: 2,
        summary: "1 file changed, 3 insertions(+)".to_owned(),
        uncommitted: 1,
        pushed: None,
        unpushed: None,
    }
}

/// The open effects of `agent`, as text.
fn open(tree: &Tree, agent: u32) -> Vec<String> {
    let of_it = tree.open.iter().filter(|(id, _)| id.0 == key(agent));
    of_it
        .map(|((_, seq), effect)| {
            let what = match effect {
                Effect::MakeWorktree(_) => "make worktree".to_owned(),
                Effect::CheckWorktree(check) => match check.when_clean {
                    CleanWorktree::Stays => "check worktree".to_owned(),
                    CleanWorktree::Goes => "check worktree, which may go".to_owned(),
                },
                Effect::CallModel(_) => "call model".to_owned(),
                Effect::AskHooks(asked) => format!("ask hooks: {}", asked.about.points()[0].name()),
                other => format!("{other:?}"),
            };
            format!("#{seq} {what}")
        })
        .collect()
}

fn order(tree: &Tree, agent: u32) -> (Seq, WorktreeOrder) {
    let wanted = |effect: &Effect| match effect {
        Effect::MakeWorktree(order) => Some(order.clone()),
        _ => None,
    };
    let found = tree.open.iter().filter(|(id, _)| id.0 == key(agent));
    let found = found.filter_map(|(id, effect)| Some((id.1, wanted(effect)?))).next();
    found.expect("a worktree is made")
}

fn ready(tree: &mut Tree, agent: u32, result: WorktreeResult) {
    let (seq, _) = order(tree, agent);
    tree.event(agent, SessionEvent::WorktreeReady { seq, result });
}

fn checked(tree: &mut Tree, agent: u32, left: WorktreeLeft) {
    let found = tree
        .open
        .iter()
        .find(|(id, effect)| id.0 == key(agent) && matches!(effect, Effect::CheckWorktree(_)));
    let seq = found.expect("an inspection").0.1;
    tree.event(agent, SessionEvent::WorktreeChecked { seq, left });
}

/// A run whose root has requested agent 1, which gets a worktree.
fn begun() -> Tree {
    begun_with(policy())
}

fn begun_with(policy: RunPolicy) -> Tree {
    let mut tree = Tree::start(policy);
    tree.call(0, &[SPAWN]);
    tree
}

/// The same with the worktree made.
fn working() -> Tree {
    let mut tree = begun();
    ready(&mut tree, 1, made(0));
    tree
}

/// The whole result of the root's first call.
fn result(tree: &Tree) -> Option<(ToolStatus, String)> {
    tree.log(key(0)).iter().find_map(|record| match &record.entry {
        Entry::Tool(ToolEntry::Finished(done)) => Some((done.status, done.output.clone())),
        _ => None,
    })
}

#[test]
fn the_root_of_a_run_with_a_remote_repository_gets_one_from_its_copy() {
    let mut policy = policy();
    policy.agent.workspace = format!("/trees/{RUN}-0").into();
    policy.remote = Some(RemoteRepository {
        url: "git@host:shop.git".to_owned(),
        commit: "c0ffee".to_owned(),
        copy: "/trees/shop".into(),
        project: "/home/ann/shop".into(),
    });
    let mut tree = Tree::start(policy);
    let (seq, asked) = order(&tree, 0);
    assert_eq!(open(&tree, 0), [format!("#{seq} make worktree")]);
    assert_eq!(asked.from, std::path::Path::new("/trees/shop"));
    assert_eq!(asked.path, std::path::PathBuf::from(format!("/trees/{RUN}-0")));
    assert_eq!((asked.branch, asked.commit), (format!("provost/{RUN}-0"), Some("c0ffee".to_owned())));
    ready(&mut tree, 0, made(0));
    assert!(open(&tree, 0)[0].ends_with("call model"), "{:?}", open(&tree, 0));
}

#[test]
fn a_worktree_is_made_before_anything_else() {
    let mut tree = begun();
    assert_eq!(open(&tree, 1), ["#1 make worktree"]);
    let (_, order) = order(&tree, 1);
    assert_eq!(order.from.to_str(), Some("/w"));
    assert_eq!(order.path.to_str(), Some(format!("/trees/{RUN}-1").as_str()));
    assert_eq!(order.branch, format!("provost/{RUN}-1"));
    let Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) = &tree.log(key(1))[0].entry else {
        panic!("it begins")
    };
    assert_eq!(started.policy.workspace, order.path);
    assert!(started.policy.system_prompt.contains(&format!("yours is /trees/{RUN}-1")));
    ready(&mut tree, 1, made(0));
    assert_eq!(open(&tree, 1), ["#3 call model"]);
}

#[test]
fn an_agent_hears_what_its_worktree_lacks() {
    let mut tree = begun();
    ready(&mut tree, 1, made(3));
    assert!(tree.has(1, |entry| matches!(entry, Entry::Conversation(ConversationEntry::SystemItem(item)) if item.body.contains("some: 3."))));
    tree.say(1, "done");
    checked(&mut tree, 1, WorktreeLeft::Removed);
    assert!(result(&tree).expect("an answer").1.contains("weren't committed when it began: 3."));
}

#[test]
fn an_agents_own_agents_start_from_its_worktree() {
    let mut tree = working();
    tree.call(1, &[SPAWN, ("spawn_agent", r#"{"goal":"g"}"#)]);
    let (_, order) = order(&tree, 2);
    assert_eq!(order.from.to_str(), Some(format!("/trees/{RUN}-1").as_str()));
    assert_eq!(order.path.to_str(), Some(format!("/trees/{RUN}-2").as_str()));
    let Entry::Lifecycle(LifecycleEntry::SessionStarted(shares)) = &tree.log(key(3))[0].entry else {
        panic!("it begins")
    };
    assert_eq!(shares.policy.workspace, order.from, "one that shares works where the one that asked does");
    assert_eq!(shares.worktree, None);
}

#[test]
fn no_agent_gets_one_where_there_is_no_folder_for_them() {
    let tree = begun_with(tree_world::policy(4));
    let (status, text) = result(&tree).expect("an answer");
    assert_eq!(status, ToolStatus::Rejected);
    assert!(text.contains("no folder for them"), "{text}");
}

#[test]
fn an_agent_that_gets_none_fails_and_says_why() {
    let mut tree = begun();
    ready(&mut tree, 1, failed());
    let message = "no room: free some".to_owned();
    let outcome = Outcome::Failed { class: ErrorClass::Workspace, message };
    assert_eq!(tree.standing(1), AgentState::Finished(outcome));
    let (status, text) = result(&tree).expect("an answer");
    assert_eq!(status, ToolStatus::Error);
    assert!(text.contains("the agent's workspace can't be made: no room: free some"), "{text}");
}

#[test]
fn what_is_in_it_is_told_to_the_agent_that_asked() {
    let mut tree = working();
    tree.say(1, "done");
    assert_eq!(tree.standing(1), AgentState::Working);
    checked(&mut tree, 1, changed());
    let (status, text) = result(&tree).expect("an answer");
    assert_eq!(status, ToolStatus::Ok);
    let wanted = format!(
        "done\n\n[Its work is in the git worktree /trees/{RUN}-1, branch provost/{RUN}-1. Commits: 2 (1 file"
    );
    assert!(text.starts_with(&wanted), "{text}");
}

#[test]
fn one_that_nothing_was_done_to_may_go_at_the_end_only() {
    let mut tree = working();
    tree.say(1, "done");
    assert_eq!(open(&tree, 1), ["#6 check worktree, which may go"]);
    checked(&mut tree, 1, WorktreeLeft::Removed);
    assert!(result(&tree).expect("an answer").1.contains("which is removed"));
}

#[test]
fn one_of_an_agent_at_its_limit_is_looked_at_and_stays() {
    let mut tree = Tree::start(policy());
    tree.call(0, &[("spawn_agent", r#"{"goal":"g","isolation":"worktree","max_turns":1}"#)]);
    ready(&mut tree, 1, made(0));
    tree.call(1, &[("read", "{}")]);
    tree.finish(1, ToolStatus::Ok, "read");
    tree.say(1, "I got so far");
    assert!(open(&tree, 1)[0].ends_with("check worktree"), "{:?}", open(&tree, 1));
    assert_eq!(result(&tree), None);
    checked(&mut tree, 1, changed());
    let (status, text) = result(&tree).expect("an answer");
    assert_eq!(status, ToolStatus::Error);
    assert!(text.starts_with("I got so far\n\n[Its work is in the git worktree"), "{text}");
    assert!(open(&tree, 1).is_empty());
}

#[test]
fn a_process_that_dies_while_one_is_made_makes_it_again_under_a_new_name() {
    for fresh in [false, true] {
        let mut tree = begun();
        tree.crash(|_| fresh);
        assert_eq!(open(&tree, 1), ["#2 make worktree"]);
        tree.event(1, SessionEvent::WorktreeReady { seq: Seq(1), result: failed() });
        assert_eq!(open(&tree, 1), ["#2 make worktree"], "the old one is not waited for");
        ready(&mut tree, 1, made(0));
        assert_eq!(open(&tree, 1), ["#4 call model"]);
    }
}

#[test]
fn a_process_that_dies_while_it_is_inspected_inspects_it_again() {
    for fresh in [false, true] {
        let mut tree = working();
        tree.say(1, "done");
        tree.take_snapshot(key(1));
        tree.crash(|_| fresh);
        assert_eq!(open(&tree, 1), ["#6 check worktree, which may go"]);
        checked(&mut tree, 1, WorktreeLeft::Removed);
        assert!(matches!(tree.standing(1), AgentState::Finished(Outcome::Completed { .. })));
    }
}

#[test]
fn cancelled_while_it_is_made_an_agent_ends_when_that_has_stopped() {
    let mut tree = begun();
    tree.cancel(Some(1));
    assert!(tree.is_aborted(1));
    assert_eq!(tree.standing(1), AgentState::Working);
    ready(&mut tree, 1, failed());
    assert_eq!(tree.standing(1), AgentState::Finished(Outcome::Cancelled { by: "c".to_owned() }));
    assert_eq!(result(&tree).expect("an answer").0, ToolStatus::Cancelled);
}

#[test]
fn one_that_is_made_all_the_same_is_looked_at_too() {
    let mut tree = begun();
    tree.cancel(Some(1));
    ready(&mut tree, 1, made(0));
    assert!(open(&tree, 1)[0].ends_with("check worktree, which may go"), "{:?}", open(&tree, 1));
    checked(&mut tree, 1, WorktreeLeft::Removed);
    assert_eq!(tree.standing(1), AgentState::Finished(Outcome::Cancelled { by: "c".to_owned() }));
}

#[test]
fn paused_while_it_is_made_an_agent_makes_it_when_it_goes_on() {
    let mut tree = begun();
    tree.pause(None);
    ready(&mut tree, 1, failed());
    let asked = Outcome::Paused { why: PauseReason::Asked { by: "p".to_owned(), awaited: None } };
    assert_eq!(tree.suspended(1), Some(asked));
    tree.resume(None);
    assert!(open(&tree, 1)[0].ends_with("make worktree"), "{:?}", open(&tree, 1));
    ready(&mut tree, 1, made(0));
    assert_eq!(tree.thinking(), [1]);
}

#[test]
fn a_second_cancel_waits_for_no_inspection() {
    let mut tree = working();
    tree.cancel(Some(1));
    let (seq, _) = tree.model_call(1).expect("it thinks");
    let failure = provost_event::ModelFailure::new(ErrorClass::Aborted, "stopped");
    tree.event(1, SessionEvent::ModelFailed { seq, failure });
    assert!(open(&tree, 1)[0].ends_with("check worktree, which may go"), "{:?}", open(&tree, 1));
    tree.cancel(Some(1));
    assert!(tree.is_aborted(1));
    checked(&mut tree, 1, WorktreeLeft::Unknown { why: "it was told to stop".to_owned() });
    assert_eq!(tree.standing(1), AgentState::Finished(Outcome::Cancelled { by: "c".to_owned() }));
}

#[test]
fn cancelled_while_it_rests_it_ends_at_once() {
    let mut tree = working();
    tree.pause(None);
    let (seq, _) = tree.model_call(1).expect("it thinks");
    let failure = provost_event::ModelFailure::new(ErrorClass::Aborted, "stopped");
    tree.event(1, SessionEvent::ModelFailed { seq, failure });
    assert!(open(&tree, 1).is_empty(), "a pause is not judged");
    tree.cancel(None);
    assert_eq!(tree.outcome(), Some(Outcome::Cancelled { by: "c".to_owned() }));
}

#[test]
fn an_agent_that_shall_make_way_does_so_when_it_is_made() {
    let mut policy = policy();
    policy.spawn.max_agents = 3;
    let mut tree = Tree::start(policy);
    let low = ("spawn_agent", r#"{"goal":"g","isolation":"worktree","priority":"low"}"#);
    tree.call(0, &[low, ("normal", r#"{"goal":"g"}"#)]);
    tree.spawn(2, &["high"]);
    assert!(!tree.is_aborted(1));
    ready(&mut tree, 1, made(0));
    assert!(tree.suspended(1).is_some_and(|outcome| outcome.is_preempted()));
    assert!(open(&tree, 1).is_empty(), "it goes on by itself");
    tree.say(3, "done");
    assert_eq!(open(&tree, 1), ["#6 call model"]);
}

#[test]
fn hooks_hear_of_the_end_before_it_is_looked_at_and_never_without_a_folder() {
    let mut policy = policy();
    policy.agent.hooks = vec![guard(HookPoint::SessionStart), guard(HookPoint::SessionEnd)];
    policy.agent.hooks[1].name = "end".to_owned();
    let answer_hook = |tree: &mut Tree, agent: u32, point: HookPoint| {
        let asks = |effect: &Effect| matches!(effect, Effect::AskHooks(_));
        let seq =
            tree.open.iter().find(|(id, effect)| id.0 == key(agent) && asks(effect)).expect("asked").0.1;
        let reports = vec![report(point, HookDecision::Continue)];
        tree.event(agent, SessionEvent::HooksAnswered { seq, reports, scripts: None });
    };
    let mut tree = Tree::start(policy);
    answer_hook(&mut tree, 0, HookPoint::SessionStart);
    tree.call(0, &[SPAWN, SPAWN]);
    assert_eq!(open(&tree, 1), ["#1 make worktree"], "before any hook");
    ready(&mut tree, 1, made(0));
    answer_hook(&mut tree, 1, HookPoint::SessionStart);
    tree.say(1, "done");
    assert!(open(&tree, 1)[0].contains("ask hooks"), "{:?}", open(&tree, 1));
    answer_hook(&mut tree, 1, HookPoint::SessionEnd);
    assert!(open(&tree, 1)[0].contains("check worktree"), "{:?}", open(&tree, 1));
    checked(&mut tree, 1, changed());
    ready(&mut tree, 2, failed());
    assert!(matches!(tree.standing(2), AgentState::Finished(Outcome::Failed { .. })));
}
