//! `resume --with-settings` and `resume --goal`: the policy of a run from its next segment on, from the user's
//! side.

use crate::support::{Done, Scene, json, line_in};

const DONE: &str = "answers: [{ text: one }, { text: two }, { text: three }, { text: four }, { text: five }, { text: six }, { text: seven }, \
                    { text: eight }]";

fn check(name: &str, command: &str) -> String {
    format!("[[stop_hooks]]\nname = \"{name}\"\ncommand = \"{command}\"\n")
}

/// A run that is suspended, since its check can't be run.
fn blocked() -> Scene {
    let scene = Scene::scripted(DONE).with_settings(&check("tests", "no-such-checker")).trusted();
    let done = scene.provost(&["run", "do it"]);
    assert_eq!(done.status, 4, "{done:?}");
    scene
}

fn settings(scene: &Scene, more: &str) {
    scene.write("work/provost.toml", &format!("[agent]\nmodel = \"script:agent.yaml\"\n{more}"));
}

#[track_caller]
fn says(done: &Done, status: i32, words: &[&str]) {
    assert_eq!(done.status, status, "{done:?}");
    for word in words {
        assert!(done.stderr.contains(word), "`{word}` isn't in {}", done.stderr);
    }
}

#[track_caller]
fn shows(scene: &Scene, args: &[&str], words: &[&str]) {
    let shown = scene.provost(args);
    assert_eq!(shown.status, 0, "{shown:?}");
    for word in words {
        assert!(shown.stdout.contains(word), "{args:?}: `{word}` isn't in {}", shown.stdout);
    }
}

#[test]
fn a_broken_check_is_replaced_by_that_of_todays_settings() {
    let scene = blocked();
    settings(&scene, &check("tests", "true"));
    // Without the flag the broken hook is still used.
    says(&scene.provost(&["resume", "last"]), 4, &["the check `tests` is broken"]);
    let scene = scene.trusted();
    let resumed = scene.provost(&["resume", "last", "--with-settings"]);
    let difference = "stop_hooks.tests.command: no-such-checker → true";
    says(&resumed, 0, &["the current settings bind the run from here on", difference, "completed, verified"]);
    shows(&scene, &["show", "last"], &["changed", difference]);
    shows(&scene, &["logs", "last"], &["run_policy_changed", difference]);
    shows(&scene, &["explain", "last"], &["changed", difference]);
    let shown = json(&scene.provost(&["show", "last", "--json"]).stdout);
    let changes = shown["segments"].as_array().unwrap().iter().filter(|one| !one["changes"].is_null());
    assert_eq!(changes.count(), 1, "{shown}");
    // From then on the new settings apply.
    let again = scene.provost(&["resume", "last", "--with-settings", "more"]);
    says(&again, 0, &["the current settings bind the run already"]);
}

#[test]
fn a_run_that_its_checks_hold_back_says_how_a_changed_check_is_taken() {
    let scene = Scene::scripted(DONE).with_settings(&check("tests", "no-such-checker")).trusted();
    let done = scene.provost(&["run", "do it"]);
    let on = " --with-settings  (after the check `tests` is repaired in the settings)";
    let on = format!("provost resume {}{on}", scene.last_run());
    says(&done, 4, &[&format!("\ngo on with: {on}\n")]);
    shows(&scene, &["show", "last"], &[&format!("\ngo on with  {on}\n")]);

    settings(&scene, &format!("{}[limits]\nstop_blocks = 1\n", check("tests", "echo no >&2; exit 2")));
    let scene = scene.trusted();
    let done = scene.provost(&["run", "do it"]);
    let on = "(--with-settings takes checks that were changed in the settings)";
    let on = format!("provost resume {}  {on}", scene.last_run());
    says(&done, 4, &[&format!("\ngo on with: {on}\n")]);
    shows(&scene, &["show", "last"], &[&format!("\ngo on with  {on}\n")]);
}

#[test]
fn todays_settings_of_a_project_count_only_once_they_are_trusted() {
    let scene = blocked();
    settings(&scene, &check("tests", "touch was-run"));
    let before = scene.provost(&["logs", "last", "--json"]).stdout;
    let resumed = scene.provost(&["resume", "last", "--with-settings"]);
    says(&resumed, 2, &["trust"]);
    assert_eq!(scene.provost(&["logs", "last", "--json"]).stdout, before, "nothing has changed");
    assert!(!scene.path("work/was-run").exists());
}

#[test]
fn a_named_file_that_is_not_taken_is_said_in_one_line() {
    let scene = blocked();
    scene.write(
        "work/other.toml",
        &format!("agent.model = \"script:agent.yaml\"\n{}", check("tests", "true")),
    );
    let resumed = scene.provost(&["resume", "last", "--config", "other.toml"]);
    let note = "note: other.toml differs from what the run was started with (stop_hooks.tests.command); \
                --with-settings takes it";
    says(&resumed, 4, &[note]);
    let resumed = scene.provost(&["resume", "last", "--config", "other.toml", "--with-settings"]);
    says(&resumed, 0, &["completed, verified"]);
    // Equal settings aren't mentioned.
    let resumed = scene.provost(&["resume", "last", "--config", "other.toml", "more"]);
    assert!(!resumed.stderr.contains("differs"), "{resumed:?}");
}

#[test]
fn a_named_file_is_compared_also_where_its_model_cannot_be_asked() {
    let scene = Scene::scripted(DONE);
    assert_eq!(scene.provost(&["run", "do it"]).status, 0);
    let rules = format!("[permissions]\ndeny = [\"shell(rm *)\"]\n{}", check("tests", "true"));
    scene.write("work/none.toml", &rules);
    scene.write("work/other.toml", &format!("[agent]\nmodel = \"unknown:model\"\n{rules}"));
    for file in ["none.toml", "other.toml"] {
        let note = format!(
            "note: {file} differs from what the run was started with (permissions, stop_hooks.tests), and \
             --with-settings can't take it as it is: "
        );
        says(&scene.provost(&["resume", "last", "more", "--config", file]), 0, &[&note, "agent.model: "]);
        let note = note.replace("the run", &format!("run {}", scene.last_run()));
        says(&scene.provost(&["fork", "last", "more", "--config", file]), 0, &[&note]);
    }
    scene.write("work/none.toml", "");
    let same = scene.provost(&["resume", "last", "more", "--config", "none.toml"]);
    says(&same, 0, &["note: none.toml can't be compared whole with what the run was started with"]);
}

#[test]
fn what_a_file_sets_is_named_before_what_follows_from_it() {
    let scene = Scene::scripted(DONE);
    assert_eq!(scene.provost(&["run", "do it"]).status, 0);
    let more = "[budget]\nusd = 3\n[permissions]\ndeny = [\"shell(rm *)\"]\n[goal]\njudge = \"script:agent.yaml\"\n\
                [limits]\nstop_blocks = 3\n";
    let file = format!("agent.model = \"script:agent.yaml\"\n{}{more}", check("tests", "true"));
    scene.write("work/other.toml", &file);
    let resumed = scene.provost(&["resume", "last", "more", "--config", "other.toml"]);
    says(&resumed, 0, &["(permissions, stop_hooks.tests, limits.stop_blocks, budget.usd); --with-settings"]);
}

#[test]
fn the_goal_of_an_ended_run_can_be_taken_away_for_what_comes_next() {
    let scene = judged(DONE, &[YES]);
    assert_eq!(scene.provost(&["run", "make a"]).status, 0);
    let run = scene.last_run();
    let clear = scene.provost(&["goal", "clear", "last"]);
    says(
        &clear,
        2,
        &["has ended, and keeps its goal", &format!("`provost resume {run} --no-goal` goes on without it")],
    );
    let both = scene.provost(&["resume", "last", "--no-goal", "--goal", "b"]);
    says(&both, 2, &["cannot be used with"]);
    let resumed = scene.provost(&["resume", "last", "--no-goal", "and now rest"]);
    says(&resumed, 0, &["the goal is taken away by", "completed, not verified"]);
    assert!(!scene.provost(&["show", "last"]).stdout.contains("condition"));
    shows(&scene, &["logs", "last", "--view"], &["The condition for being done is taken away"]);
    shows(&scene, &["logs", "last"], &["told that its goal is taken away"]);
    assert!(!scene.provost(&["logs", "last"]).stdout.contains("told of the goal"));
    says(&scene.provost(&["goal", "show", "last"]), 2, &["has no goal that judges verify"]);
    says(&scene.provost(&["resume", "last", "--no-goal"]), 2, &["has no goal that judges verify"]);
}

#[test]
fn flags_of_the_start_still_count_and_a_limit_below_what_is_used_changes_nothing() {
    let scene = Scene::scripted("answers: [{ text: no }]");
    scene.write("work/other.yaml", "answers: [{ text: one, tools: [list_dir] }, { text: two }]");
    let done = scene.provost(&["run", "look", "--model", "script:other.yaml", "--max-turns", "1"]);
    assert_eq!(done.status, 3, "{done:?}");
    settings(&scene, "[budget]\ntokens = 1\n");
    let before = scene.provost(&["logs", "last", "--json"]).stdout;
    let resumed = scene.provost(&["resume", "last", "--with-settings", "--max-turns", "2"]);
    says(&resumed, 2, &["limit 1 token, used "]);
    assert_eq!(scene.provost(&["logs", "last", "--json"]).stdout, before, "nothing has changed");
    settings(&scene, "[budget]\ntokens = 500_000\n");
    let resumed = scene.provost(&["resume", "last", "--with-settings", "--max-turns", "2"]);
    says(&resumed, 0, &["budget.tokens: no limit → 500,000"]);
    assert_eq!(resumed.stdout, "two\n", "the model is the one that --model named");
}

/// The output of resuming a run that reached the limit `before`, with the limit `after`.
fn raised(before: &str, after: &str, flags: &[&str]) -> Done {
    // A time limit stops the run during the command.
    let command = if before.contains("wall_time") { "sleep 600" } else { "true" };
    let call = format!("{{ usage: {{ input: 5000 }}, tools: [{{ shell: {{ command: {command} }} }}] }}");
    let scene = Scene::scripted(&format!("answers: [{call}, {{ text: end }}]"));
    settings(&scene, before);
    let done = scene.provost(&["run", "look"]);
    assert_eq!(done.status, 3, "{done:?}");
    settings(&scene, after);
    scene.provost(&[&["resume", "last", "--with-settings"], flags].concat())
}

#[test]
fn a_limit_that_todays_settings_raise_lets_the_run_go_on() {
    let turns = raised("[budget]\nturns = 1\n", "[budget]\nturns = 9\n", &[]);
    says(&turns, 0, &["budget.turns: 1 → 9", "completed"]);
    let own = raised("max_turns = 1\n", "max_turns = 9\n", &[]);
    says(&own, 0, &["agent.max_turns: 1 → 9", "completed"]);
    let tokens = raised("[budget]\ntokens = 9000\n", "[budget]\ntokens = 900_000\n", &[]);
    says(&tokens, 0, &["budget.tokens: 9,000 → 900,000", "completed"]);
    let time = raised("[budget]\nwall_time = \"1s\"\n", "[budget]\nwall_time = \"1h\"\n", &[]);
    says(&time, 0, &["budget.wall_time: ", "completed"]);
    let none = raised("[budget]\nturns = 1\n", "", &[]);
    says(&none, 0, &["budget.turns: 1 → no limit", "completed"]);
}

#[test]
fn a_flag_is_added_to_the_limit_of_today_and_a_hint_repeats_what_was_given() {
    let turns = raised("[budget]\nturns = 1\n", "[budget]\nturns = 2\n", &["--max-turns", "3"]);
    says(&turns, 0, &["turns: limit now 5 turns, used 1 turn"]);
    let less = raised("[budget]\ntokens = 9000\n", "[budget]\ntokens = 10\n", &["go on"]);
    says(&less, 2, &["limit 10 tokens, used ", " --with-settings 'go on' --tokens "]);
    let same = raised("[budget]\nturns = 1\n", "[budget]\nturns = 1\n", &[]);
    says(&same, 2, &["has 0 turns left: limit 1 turn, used 1 turn", " --with-settings --max-turns 1"]);
}

#[test]
fn rules_of_today_bind_tools_at_once_and_after_the_process_is_gone() {
    let call = "tools: [{ shell: { command: touch made } }]";
    let scene = Scene::scripted(&format!(
        "answers: [{{ text: one }}, {{ {call} }}, {{ text: two }}, {{ {call} }}, {{ text: three }}]"
    ));
    assert_eq!(scene.provost(&["run", "look"]).status, 0);
    settings(&scene, "[permissions]\ndeny = [\"shell(touch *)\"]\n");
    says(&scene.provost(&["resume", "last", "--with-settings", "go"]), 0, &["permissions"]);
    assert!(!scene.path("work/made").exists());
    // Another process reads the settings from the log.
    assert_eq!(scene.provost(&["resume", "last", "again"]).status, 0);
    assert!(!scene.path("work/made").exists());
}

#[test]
fn a_fork_says_what_it_does_not_take_and_takes_todays_settings_if_told() {
    let scene = blocked();
    scene.write(
        "work/other.toml",
        &format!("agent.model = \"script:agent.yaml\"\n{}", check("tests", "true")),
    );
    let forked = scene.provost(&["fork", "last", "--config", "other.toml", "more"]);
    says(
        &forked,
        4,
        &["note: other.toml differs from what run", "(stop_hooks.tests.command); --with-settings"],
    );
    let forked = scene.provost(&["fork", "last", "--config", "other.toml", "--with-settings", "more"]);
    says(&forked, 0, &["settings: stop_hooks.tests.command: no-such-checker → true", "completed, verified"]);
}

#[test]
fn no_key_is_in_what_is_shown_of_a_difference() {
    let scene = Scene::scripted(DONE);
    assert_eq!(scene.provost(&["run", "do it"]).status, 0);
    settings(&scene, &check("tests", "echo thisisaverysecretkey0123456789 >/dev/null"));
    let scene = scene.trusted();
    let mut command = scene.command(&["resume", "last", "--with-settings", "more"]);
    let output = command.env("MY_API_KEY", "thisisaverysecretkey0123456789").output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    assert!(told.contains("stop_hooks: ") || told.contains("stop_hooks.tests: "), "{told}");
    assert!(!told.contains("secretkey"), "{told}");
    assert!(!scene.provost(&["show", "last"]).stdout.contains("secretkey"));
}

const YES: &str = "{ achieved: true, confidence: 0.95, reasoning: It is there. }";
const NO: &str = "{ achieved: false, confidence: 0.9, reasoning: It is not there. }";

fn judged(answers: &str, verdicts: &[&str]) -> Scene {
    let scene = Scene::scripted(answers);
    scene.write("work/judge.yaml", &format!("verdicts: [{}]", verdicts.join(", ")));
    settings(&scene, "[goal]\ncondition = \"a is there\"\njudge = \"script:judge.yaml\"\nmax_rounds = 1\n");
    scene
}

#[test]
fn another_goal_is_told_verified_and_shown_everywhere() {
    let scene = judged(DONE, &[NO, NO, YES]);
    says(&scene.provost(&["run", "make a"]), 4, &["blocked"]);
    let resumed = scene.provost(&["resume", "last", "--goal", "b is there"]);
    says(&resumed, 4, &["goal.condition: a is there → b is there", "the goal isn't reached"]);
    shows(&scene, &["show", "last"], &["condition   b is there", "1 of 1 claims"]);
    shows(&scene, &["goal", "show", "last"], &["b is there"]);
    // The task stays the same.
    shows(&scene, &["show", "last"], &["goal        make a"]);
    shows(&scene, &["ps"], &["make a"]);
    shows(&scene, &["logs", "last", "--view"], &["another goal, in place of the one before", "b is there"]);
    // A later segment uses the new goal, read from the log.
    says(&scene.provost(&["resume", "last", "go on"]), 0, &["the goal is reached", "completed, verified"]);
    let prompt = scene.provost(&["logs", "last", "--agent", "0", "--json"]).stdout;
    let changed = prompt.lines().map(json).find(|entry| entry["type"] == "agent_policy_changed").unwrap();
    let prompt = changed["policy"]["system_prompt"].as_str().unwrap().to_owned();
    assert!(prompt.ends_with("b is there") && !prompt.contains("a is there"), "{prompt}");
}

#[test]
fn a_completed_run_without_a_goal_gets_one() {
    let scene = Scene::scripted("answers: [{ text: one }, { tools: [list_dir] }, { text: two }]");
    assert_eq!(scene.provost(&["run", "look"]).status, 0);
    scene.write("work/judge.yaml", &format!("verdicts: [{YES}]"));
    settings(&scene, "[goal]\njudge = \"script:judge.yaml\"\n");
    let resumed = scene.provost(&["resume", "last", "--goal", "it is looked at"]);
    says(
        &resumed,
        0,
        &["the goal is reached", "completed, verified", "  goal: (not set) → it is looked at\n"],
    );
    assert!(!resumed.stderr.contains("  goal: it is looked at"), "it is told once: {resumed:?}");
    shows(&scene, &["show", "last"], &["condition   it is looked at"]);
    shows(&scene, &["logs", "last", "--view"], &["You are given a goal."]);
}

#[test]
fn a_goal_that_was_cleared_is_replaced() {
    let scene = judged(DONE, &[NO, YES]);
    assert_eq!(scene.provost(&["run", "make a"]).status, 4);
    assert_eq!(scene.provost(&["goal", "clear", "last"]).status, 0);
    let resumed = scene.provost(&["goal", "resume", "last", "--goal", "b is there"]);
    assert_eq!(resumed.status, 2, "without a goal `goal resume` has nothing to go on with: {resumed:?}");
    says(&scene.provost(&["resume", "last", "--goal", "b is there"]), 0, &["the goal is reached"]);
}

#[test]
fn an_empty_goal_and_a_run_that_was_interrupted_are_refused() {
    let scene = Scene::scripted("answers: [{ tools: [{ shell: { command: echo $$ > pid; sleep 600 } }] }]");
    let running = scene.start(&["run", "look"]);
    line_in(&scene.path("work/pid"));
    running.kill();
    let goal = scene.provost(&["resume", "last", "--goal", "b"]);
    says(&goal, 2, &["isn't suspended and goes on as it was; --goal can't change what is in flight"]);
    let settings = scene.provost(&["resume", "last", "--with-settings"]);
    says(&settings, 2, &["--with-settings can't change what is in flight"]);

    let scene = blocked();
    let empty = scene.provost(&["resume", "last", "--goal", "  "]);
    says(&empty, 2, &["--goal is empty", "--no-goal takes the goal away"]);
    says(&scene.provost(&["resume", "last.1", "--goal", "b"]), 2, &["has no agent 1"]);
}
