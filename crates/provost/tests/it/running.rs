//! Runs: their ends, hooks and observers of one agent, approvals, reopening.

use std::sync::{Arc, Mutex};

use provost::prelude::*;
use provost::{ObserverEvent, ObserverEventKind, Verification};

use crate::script;
use crate::whole::whole;

#[tokio::test]
async fn an_end_is_questioned_where_the_builder_says_so() {
    let answers = "answers: [{ text: It is done }, { text: 'VERDICT: PASS' }]";
    let plain = Agent::builder(script(answers)).build().expect("an agent");
    assert_eq!(plain.run("Do it.").await.expect("it runs").text, "It is done");
    let checked = Agent::builder(script(answers)).final_check().build().expect("an agent");
    assert_eq!(checked.run("Do it.").await.expect("it runs").text, "VERDICT: PASS");
}

/// Takes pieces from the stock.
#[derive(Deserialize, JsonSchema)]
struct Take {
    /// How many.
    number: u32,
}

#[tokio::test]
async fn the_whole_example_ends_as_its_checks_say_and_goes_on_after_it_was_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let [first, second] = whole(&folder.path().join("runs.db")).await.expect("it runs");
    assert_eq!(first.outcome.verification(), Some(&Verification::Passed), "{}", first.outcome);
    assert_eq!(
        (first.text.as_str(), second.text.as_str()),
        ("Four are taken. VERDICT: PASS", "They are still four. VERDICT: PASS")
    );
    assert_eq!(first.run, second.run);
    assert!(second.tokens > first.tokens, "a resumed run goes on with what it has spent");
}

#[tokio::test]
async fn a_function_gets_only_arguments_that_fit_and_its_error_is_the_models() {
    let taken = Arc::new(Mutex::new(Vec::new()));
    let stock = Arc::clone(&taken);
    let take = tool(move |take: Take| {
        stock.lock().expect("no panic").push(take.number);
        async move { if take.number > 10 { Err("there are only ten") } else { Ok("taken") } }
    });
    let model = script(
        "
answers:
  - tools: [{ take: { number: many } }]
  - expect: { tool_result: [{ contains: 'the arguments of take' }] }
    tools: [{ take: { number: 11 } }]
  - expect: { tool_result: [{ contains: there are only ten }] }
    text: 'VERDICT: PASS'
",
    );
    let finished =
        Agent::builder(model).tool(take).build().expect("an agent").run("Take.").await.expect("it runs");
    assert!(finished.is_completed(), "{}", finished.outcome);
    assert_eq!(*taken.lock().expect("no panic"), [11]);
}

#[tokio::test]
async fn hooks_and_observers_of_a_sub_agent_are_for_it_alone() {
    let model = script(
        "
answers:
  - tools: [{ take: { number: 1 } }, { careful: { goal: Take one. } }]
  - expect: { tool_result: [{ contains: 1 taken }, { contains: I may not }] }
    text: 'VERDICT: PASS'
agents:
  - goal: Take one
    answers:
      - tools: [{ take: { number: 1 } }]
      - { expect: { tool_result: [{ contains: not you }] }, text: 'I may not. VERDICT: FAIL' }
",
    );
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (by_all, by_one) = (Arc::clone(&seen), Arc::clone(&seen));
    let careful = SubAgent::new("careful", "Takes nothing.")
        .hook::<PreToolCall>("none", |_| PreToolCallAction::Deny("not you".to_owned()))
        .observe("its", move |event| by_one.lock().expect("no panic").push(("one", event.actor.to_string())));
    let agent = Agent::builder(model)
        .tool(tool(|take: Take| async move { format!("{} taken", take.number) }))
        .sub_agent(careful)
        .observe("all", move |event| by_all.lock().expect("no panic").push(("all", event.actor.to_string())))
        .build()
        .expect("an agent");
    let finished = agent.run("Take one, and have one taken.").await.expect("it runs");
    assert!(finished.is_completed(), "{}", finished.outcome);
    let seen = seen.lock().expect("no panic");
    let run = finished.run.to_string();
    let by = |who| seen.iter().filter(move |(by, _)| *by == who).map(|(_, actor)| actor.clone());
    assert!(by("one").next().is_some() && by("one").all(|actor| actor == format!("{run}.1")), "{seen:?}");
    assert!(by("all").any(|actor| actor == run) && by("all").any(|actor| actor == format!("{run}.1")));
}

#[tokio::test]
async fn a_call_waits_for_the_answer_of_the_program() {
    let model = script(
        "
answers:
  - tools: [{ take: { number: 1 } }]
  - { expect: { tool_result: [{ contains: 1 taken }] }, tools: [{ take: { number: 2 } }] }
  - { expect: { tool_result: [{ contains: one is enough }] }, text: 'VERDICT: PASS' }
",
    );
    let take = tool(|take: Take| async move { format!("{} taken", take.number) });
    let (asked, mut questions) = tokio::sync::mpsc::unbounded_channel();
    let asks = move |event: &ObserverEvent| {
        if event.kind == ObserverEventKind::Approval {
            asked.send(()).expect("the test listens");
        }
    };
    let agent = Agent::builder(model).tool(take).ask("take").observe("asks", asks).build().expect("an agent");
    let mut run = agent.start("Take.").await.expect("it starts");
    let control = run.control("the test");
    let answering = async {
        let mut answered = 0;
        while answered < 2 {
            for approval in control.approvals().await.expect("the log can be read") {
                let is_first = approval.question.input.text().contains('1');
                let counts = match is_first {
                    true => control.approve(&approval).await,
                    false => control.deny(&approval, "one is enough").await,
                };
                answered += u32::from(counts.expect("it is recorded"));
                assert!(
                    !control.approve(&approval).await.expect("it is recorded"),
                    "a second answer counts for nothing"
                );
            }
            if answered < 2 {
                questions.recv().await.expect("a question");
            }
        }
    };
    let (finished, ()) = tokio::join!(run.finish(), answering);
    assert!(finished.expect("it runs").is_completed());
}

/// The tools of a run are in its log: another process has those that were there last.
#[tokio::test]
async fn tools_that_were_added_and_removed_stay_so_after_the_run_was_dropped() {
    /// Counts what is left.
    #[derive(Deserialize, JsonSchema)]
    struct Count {}
    let folder = tempfile::tempdir().expect("a folder");
    let model = || {
        script(
            "
answers:
  - tools: [{ take: { number: 1 } }]
  - { expect: { tool_result: [{ contains: 1 taken }] }, text: 'VERDICT: PASS' }
  - tools: [{ count: {} }, { take: { number: 2 } }]
  - { expect: { tool_result: [{ contains: nine are left }, { contains: was removed }] }, text: 'Nine. VERDICT: PASS' }
",
        )
    };
    let take = || tool(|take: Take| async move { format!("{} taken", take.number) });
    let count = || tool(|_: Count| async { "nine are left" });
    let agent = |with_count: bool| {
        let builder = Agent::builder(model()).tool(take()).sqlite(folder.path().join("runs.db"));
        if with_count { builder.tool(count()) } else { builder }.build().expect("an agent")
    };
    let first = agent(false);
    let mut run = first.start("Take one.").await.expect("it starts");
    assert!(run.finish().await.expect("it runs").is_completed());
    run.harness()
        .tools()
        .change(vec![Arc::new(count())], &["take"], "the test")
        .await
        .expect("it is recorded");
    let id = run.id();
    drop((run, first));
    let mut run = agent(true).open(id).await.expect("it opens");
    run.resume(Some("How many are left?"), Budget::default()).await.expect("it is recorded");
    let finished = run.finish().await.expect("it runs");
    assert_eq!(
        (finished.is_completed(), finished.text.as_str()),
        (true, "Nine. VERDICT: PASS"),
        "{}",
        finished.outcome
    );
}
