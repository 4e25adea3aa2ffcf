//! How deep a chain of agents may go.

use provost_engine::{Actor, Message, Now, RunEvent, SessionEvent, Step};
use provost_event::{
    Entry, ErrorClass, HookMoment, Outcome, RunPolicy, SessionId, SessionStarted, Timestamp,
};

use crate::world::{ROOT, RUN, guarded, without_hooks};

const CHILD: SessionId = SessionId { run: RUN, agent: 1 };

/// An agent is started so far below the root.
fn started(policy: RunPolicy, depth: u32) -> (Actor, Step) {
    let started = SessionStarted {
        goal: "a part of the goal".to_owned(),
        images: Vec::new(),
        policy: policy.agent,
        parent: Some(ROOT),
        depth,
    };
    let mut actor = Actor::new(CHILD.into());
    let now = Now { at: Timestamp(1), entropy: 0 };
    let step = actor.decide(SessionEvent::Start(Box::new(started)).into(), now);
    (actor, step)
}

fn kinds(step: &Step) -> Vec<&'static str> {
    step.entries.iter().map(Entry::kind).collect()
}

#[test]
fn an_agent_that_would_be_too_deep_fails_at_its_start_without_a_model_call() {
    let (actor, step) = started(without_hooks(), 5);
    assert_eq!(kinds(&step), ["session_started", "ended"]);
    let Some(Entry::Ended(ended)) = step.entries.last() else { panic!("{step:?}") };
    let Outcome::Failed { class, .. } = &ended.outcome else { panic!("{ended:?}") };
    assert_eq!(*class, ErrorClass::TooDeep);
    assert_eq!(
        ended.outcome.to_string(),
        "the chain of agents is too deep: this agent would be 5 levels below the root, and at most 4 are allowed"
    );
    assert!(actor.has_ended());
    assert!(step.effects.is_empty(), "{:?}", step.effects);
    let told = step.messages.as_slice();
    let outcome = ended.outcome.clone();
    let rests = RunEvent::SessionRests { session: CHILD, outcome };
    assert_eq!(told, [Message { to: RUN.into(), event: rests.into() }], "no budget is asked for");
}

#[test]
fn an_agent_as_deep_as_allowed_goes_for_its_first_model_call() {
    let (actor, step) = started(without_hooks(), 4);
    assert_eq!(kinds(&step), ["session_started"]);
    assert!(!actor.has_ended());
    let [Message { event, .. }] = step.messages.as_slice() else { panic!("{step:?}") };
    assert!(matches!(event, provost_engine::Event::Run(RunEvent::Reserve(_))), "{event:?}");
}

#[test]
fn with_a_depth_of_0_only_the_root_is_allowed() {
    let mut policy = without_hooks();
    policy.agent.limits.depth_max = 0;
    // Whoever has a parent is below somebody, whatever it says of its depth.
    for depth in [0, 1] {
        let (actor, _) = started(policy.clone(), depth);
        assert!(actor.has_ended(), "{depth}");
    }
    let mut world = crate::world::World::start(policy);
    world.say("done");
    assert_eq!(world.outcome(), Some(Outcome::Completed { verdict: None }));
}

#[test]
fn hooks_are_not_asked_about_an_agent_that_never_began() {
    let (_, step) = started(guarded(&[HookMoment::SessionStart, HookMoment::SessionEnd]), 9);
    assert_eq!(kinds(&step), ["session_started", "ended"]);
}
