//! What a run says of the limit that suspended it: whose it is, what the next call needs, how much more is enough.

use crate::support::{Done, Scene};

fn suspended(scene: &Scene, args: &[&str]) -> Done {
    let done = scene.provost(args);
    assert_eq!(done.status, 3, "{done:?}");
    done
}

/// The number that follows `words` in `text`.
#[track_caller]
fn number_after(text: &str, words: &str) -> f64 {
    let (_, rest) = text.split_once(words).unwrap_or_else(|| panic!("`{words}` isn't in {text}"));
    let digits = rest.chars().take_while(|c| c.is_ascii_digit() || ",.".contains(*c)).collect::<String>();
    digits.replace(',', "").trim_end_matches('.').parse().unwrap_or_else(|_| panic!("{words}: {text}"))
}

#[test]
fn the_suggested_limit_is_about_twice_what_the_next_call_needs() {
    let scene = Scene::scripted("answers: [{ tools: [list_dir] }, { tools: [list_dir] }, { text: done }]");
    let done = suspended(&scene, &["run", "look", "--tokens", "9000"]);
    let needed =
        number_after(&done.stderr, "the next call needs about ") + number_after(&done.stderr, " tokens, ");
    let used = number_after(&done.stderr, "too small to go on: ");
    let more = number_after(&done.stderr, "--tokens ");
    let room = 9000.0 + more - used;
    assert!((needed..=2.2 * needed).contains(&room), "{room} for {needed}: {done:?}");
    let resumed = scene.provost(&["resume", "last", "--tokens", &more.to_string()]);
    assert!(resumed.stderr.contains("ok: list_dir"), "it is enough for the next call: {resumed:?}");
}

#[test]
fn an_agent_that_never_answered_has_no_final_summary_and_the_outcome_says_so() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    let done = suspended(&scene, &["run", "look", "--tokens", "100"]);
    let words = "; no final summary: the agent hasn't answered once";
    assert!(done.stderr.contains(words), "{done:?}");
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains(words), "{shown}");
}

#[test]
fn a_limit_of_an_agent_is_told_from_what_the_run_used() {
    let scene = Scene::scripted(
        "answers: [{ text: none }]\nagents:\n  - goal: plan it\n    answers: [{ text: planned }]\n  - goal: build it\n    answers: [{ tools: [list_dir] }, { tools: [list_dir] }, { text: built }]\n",
    );
    scene.write("work/flow.toml", "[flow]\nname = \"f\"\n[[flow.steps]]\nname = \"plan\"\ngoal = \"plan it\"\n[[flow.steps]]\nname = \"build\"\nneeds = [\"plan\"]\ngoal = \"build it\"\nbudget.tokens = 9000\n");
    let done = scene.provost(&["flow", "run", "flow.toml"]);
    let last =
        done.stderr.lines().find(|line| line.starts_with("a step of the workflow has failed")).unwrap();
    assert!(
        last.contains("`build`: Token budget of the agent too small")
            && last.contains(" · the whole run: 2 turns · "),
        "{last}"
    );
}
