//! The chain of agents, from outside.

use provost_event::{ChainContext, RunId, SessionId};

const RUN: RunId = RunId::from_entropy(7);

fn agent(agent: u32) -> SessionId {
    SessionId { run: RUN, agent }
}

#[test]
fn a_chain_goes_down_a_level_at_a_time_until_it_is_refused() {
    let mut place = ChainContext::root(RUN);
    for depth in 1..=4 {
        place = place.child_of(agent(depth - 1), 4).expect("allowed");
        assert_eq!(place, ChainContext { parent: Some(agent(depth - 1)), depth, ..ChainContext::root(RUN) });
    }
    let refused = place.child_of(agent(4), 4).expect_err("too deep");
    assert_eq!((refused.depth, refused.depth_max), (5, 4));
    assert_eq!(refused.to_string(), "this agent would be 5 levels below the root, and at most 4 are allowed");
    assert!(ChainContext::root(RUN).child_of(agent(0), 0).is_err());
    assert!(ChainContext::root(RUN).within(0).is_ok());
    let deepest = ChainContext { depth: u32::MAX, ..place };
    assert!(deepest.child_of(agent(5), u32::MAX).is_ok(), "a count that can't be larger stays");
}

#[test]
fn its_fields_have_the_names_that_traces_have() {
    let child = ChainContext::root(RUN).child_of(agent(0), 1).expect("allowed");
    let json = serde_json::to_string(&child).expect("JSON");
    assert_eq!(json, r#"{"chain_id":"000000000007","parent":"000000000007.0","depth":1,"agent_name":null}"#);
    assert_eq!(serde_json::from_str::<ChainContext>(&json).expect("a chain"), child);
    let root = serde_json::to_string(&ChainContext::root(RUN)).expect("JSON");
    assert_eq!(root, r#"{"chain_id":"000000000007","parent":null,"depth":0,"agent_name":null}"#);
}
