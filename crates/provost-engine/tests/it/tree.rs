//! A run with several agents, by scripts: who works, who waits, who makes way, who hears of what.

use expect_test::expect;
use provost_event::{Entry, Outcome, Priority, ToolStatus};

use crate::tree_world::{Tree, key, policy};

fn check(news: String, expected: &expect_test::Expect) {
    expected.assert_eq(&news);
}

#[test]
fn an_agent_has_another_work_and_gets_what_it_said_last() {
    let mut tree = Tree::start(policy(2));
    tree.spawn(0, &["spawn_agent"]);
    tree.say(1, "it is done");
    tree.say(0, "all is done");
    check(tree.news(), &expect![[r#""#]]);
    println!("{:?}", tree.results(0));
}
