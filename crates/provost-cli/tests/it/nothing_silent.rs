//! Warnings before or while a run works, in one line each.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use crate::support::{Done, Scene, done, json, line_in, until};

const DONE: &str = "answers: [{ text: done }]";
const WAITS: &str = "answers:\n  - tools: [{ shell: { command: \"touch started; until test -e go; do sleep 0.02; done\" } }]\n  - text: done\n";
const UNREAD: &str = "note: standard input isn't read";

/// The result of a command with `input` in a pipe before it starts.
fn piped(scene: &Scene, args: &[&str], input: &str) -> Done {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(input.as_bytes()).unwrap();
    drop(writer);
    done(&scene.command(args).stdin(reader).output().unwrap())
}

fn goal(scene: &Scene) -> String {
    let last = scene.provost(&["ps", "--json", "-n", "1"]).stdout;
    json(last.trim())["goal"].as_str().unwrap().to_owned()
}

#[test]
fn standard_input_is_read_where_it_is_asked_for() {
    let scene = Scene::scripted(DONE);
    for (args, expected) in [
        (&["run", "-"][..], "from the pipe"),
        (&["run", "--stdin"], "from the pipe"),
        (&["run", "Explain this", "--stdin"], "Explain this\n\nfrom the pipe"),
    ] {
        let ran = piped(&scene, args, "from the pipe\n");
        assert_eq!((ran.status, ran.stderr.contains(UNREAD)), (0, false), "{args:?}: {ran:?}");
        assert_eq!(goal(&scene), expected, "{args:?}");
    }
}

#[test]
fn a_run_without_a_goal_doesn_t_wait_for_one() {
    let scene = Scene::scripted(DONE);
    let (reader, _writer) = std::io::pipe().unwrap();
    let ran = done(&scene.command(&["run"]).stdin(reader).output().unwrap());
    assert_eq!(ran.status, 2);
    assert_eq!(
        ran.stderr,
        "error: there is no goal\nhint: e.g. provost run \"Make the tests pass\"; `provost run -` reads it from standard input\n"
    );
}

#[test]
fn piped_input_without_a_flag_is_mentioned_once_and_left_unread() {
    let scene = Scene::scripted(DONE);
    let ran = piped(&scene, &["run", "x"], "never read");
    assert_eq!(ran.status, 0, "{ran:?}");
    let line = "note: standard input isn't read; `provost run -` takes it as the goal, --stdin adds it to the goal\n";
    assert_eq!(ran.stderr.matches(UNREAD).count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains(line), "{}", ran.stderr);
    assert_eq!(goal(&scene), "x");
    scene.write("input", "some text");
    let file = fs::File::open(scene.path("input")).unwrap();
    let ran = done(&scene.command(&["run", "x"]).stdin(file).output().unwrap());
    assert!(ran.stderr.contains(line), "a file: {}", ran.stderr);
}

#[test]
fn nothing_is_said_of_an_input_without_anything_in_it() {
    let scene = Scene::scripted(DONE);
    scene.write("empty", "");
    let (open, _writer) = std::io::pipe().unwrap();
    let inputs: Vec<Stdio> =
        vec![Stdio::null(), open.into(), fs::File::open(scene.path("empty")).unwrap().into()];
    for input in inputs {
        let ran = done(&scene.command(&["run", "x"]).stdin(input).output().unwrap());
        assert_eq!((ran.status, ran.stderr.contains(UNREAD)), (0, false), "{ran:?}");
    }
    assert!(!piped(&scene, &["run", "x"], "").stderr.contains(UNREAD));
}

#[test]
fn the_first_run_without_rules_says_what_it_may_do() {
    let scene = Scene::scripted(DONE);
    let line = format!(
        "note: no rules are set: agents may change files in {} and run any command with your rights, without asking; \
         [permissions] in provost.toml limits that\n",
        scene.path("work").canonicalize().unwrap().display()
    );
    assert!(scene.provost(&["run", "x"]).stderr.contains(&line));
    assert!(!scene.provost(&["run", "x"]).stderr.contains("no rules are set"), "once is enough");
    let ruled = Scene::scripted(DONE).with_settings("[permissions]\ndefault = \"allow\"\n");
    assert!(!ruled.provost(&["run", "x"]).stderr.contains("no rules are set"));
}

#[test]
fn a_key_that_is_missing_is_an_error_of_check_wherever_it_is_needed() {
    let scene = Scene::new();
    scene.write("work/agent.yaml", DONE);
    for (settings, key) in [
        ("[agent]\nmodel = \"anthropic/claude-sonnet-4-5\"\n", "agent.model"),
        (
            "[agent]\nmodel = \"script:agent.yaml\"\n[goal]\ncondition = \"done\"\njudges = [\"anthropic/claude-sonnet-4-5\"]\n",
            "goal.judges",
        ),
        (
            "[agent]\nmodel = \"script:agent.yaml\"\n[[agents]]\nname = \"a\"\ndescription = \"d\"\nmodel = \"anthropic/claude-sonnet-4-5\"\n",
            "agents.model",
        ),
    ] {
        scene.write("work/provost.toml", settings);
        let checked = scene.provost(&["check"]);
        assert_eq!(checked.status, 2, "{key}: {checked:?}");
        let errors = checked.stdout.lines().filter(|line| line.starts_with("error: ")).collect::<Vec<_>>();
        assert_eq!(errors.len(), 1, "{checked:?}");
        assert!(errors[0].contains(key) && errors[0].contains("ANTHROPIC_API_KEY"), "{errors:?}");
        let mut with_key = scene.command(&["check"]);
        let checked = done(&with_key.env("ANTHROPIC_API_KEY", "sk-test").output().unwrap());
        assert_eq!(checked.status, 0, "{checked:?}");
    }
}

#[test]
fn two_runs_in_one_folder_are_told_of_each_other() {
    let scene = Scene::scripted(WAITS);
    let first = scene.start(&["run", "the first"]);
    until("the first works", || scene.path("work/started").exists().then_some(()));
    let run = scene.last_run();
    scene.write("work/quick.yaml", DONE);
    scene.write("work/below/quick.yaml", DONE);
    scene.write("home/quick.yaml", DONE);
    let folder = scene.path("work").canonicalize().unwrap();
    let line = format!(
        "note: run {run} works in {} too, and both may change the same files: the first\n",
        folder.display()
    );
    let quick = ["run", "x", "--model", "script:quick.yaml"];
    assert!(scene.provost(&quick).stderr.contains(&line));
    let below = scene.provost(&["run", "x", "-C", "below", "--model", "script:quick.yaml"]);
    assert!(below.stderr.contains(&line), "{below:?}");
    let beside = scene.command(&["run", "x", "-C", "../home", "--model", "script:quick.yaml"]).output();
    let beside = done(&beside.unwrap());
    assert_eq!((beside.status, beside.stderr.contains("works in")), (0, false), "{beside:?}");
    scene.write("work/go", "");
    assert_eq!(first.end().status, 0);
    assert!(!scene.provost(&quick).stderr.contains("works in"), "it is over");
}

#[test]
fn resuming_beside_another_run_is_told_too() {
    let scene = Scene::scripted(WAITS);
    scene.write("work/two.yaml", "answers: [{ tools: [list_dir] }, { text: done }]");
    assert_eq!(scene.provost(&["run", "x", "--model", "script:two.yaml", "--max-turns", "1"]).status, 3);
    let suspended = scene.last_run();
    let first = scene.start(&["run", "the first"]);
    until("the first works", || scene.path("work/started").exists().then_some(()));
    let run = scene.last_run();
    let resumed = scene.provost(&["resume", &suspended, "--max-turns", "3"]);
    assert_eq!(resumed.status, 0, "{resumed:?}");
    assert!(resumed.stderr.contains(&format!("note: run {run} works in ")), "{resumed:?}");
    scene.write("work/go", "");
    assert_eq!(first.end().status, 0);
}

#[test]
fn the_sender_of_a_message_that_a_hook_refuses_is_told() {
    let hook = "[[hooks]]\nname = \"guard\"\nevent = \"prompt_submit\"\ncommand = \"\"\"grep -q secret && { echo no secrets here; exit 2; }; exit 0\"\"\"\n";
    let scene = Scene::scripted(WAITS).with_settings(hook).trusted();
    let running = scene.start(&["run", "x"]);
    until("the agent works", || scene.path("work/started").exists().then_some(()));
    let run = scene.last_run();
    let refused = scene.provost(&["say", "last", "the", "secret", "word"]);
    assert_eq!((refused.status, refused.stdout.as_str()), (1, ""), "{refused:?}");
    assert_eq!(
        refused.stderr,
        format!("error: run {run} doesn't get it: the hook guard refused: no secrets here\n")
    );
    let agent = scene.provost(&["say", "last.0", "another secret"]);
    assert_eq!(agent.status, 1, "{agent:?}");
    let heard = scene.provost(&["say", "last", "all is well"]);
    assert_eq!(heard.status, 0, "{heard:?}");
    assert!(heard.stdout.contains("the agent gets it before its next model call"), "{heard:?}");
    scene.write("work/go", "");
    assert_eq!(running.end().status, 0);
    let conversation = scene.provost(&["logs", "last", "--view"]).stdout;
    assert!(conversation.contains("all is well") && !conversation.contains("secret"), "{conversation}");
}

#[test]
fn a_resume_whose_words_a_hook_refuses_says_so_and_repeats_no_answer() {
    let hook = "[[hooks]]\nname = \"guard\"\nevent = \"prompt_submit\"\ncommand = \"\"\"grep -q secret && { echo no secrets here; exit 2; }; exit 0\"\"\"\n";
    let scene =
        Scene::scripted("answers: [{ text: claim }, { text: another }]").with_settings(hook).trusted();
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let run = scene.last_run();
    let refused = scene.provost(&["resume", "last", "a secret thing"]);
    assert_eq!((refused.status, refused.stdout.as_str()), (1, ""), "{refused:?}");
    let words = format!("error: run {run} doesn't get it: the hook guard refused: no secrets here\n");
    assert!(refused.stderr.ends_with(&words) && !refused.stderr.contains("completed"), "{refused:?}");
    assert!(scene.provost(&["ps"]).stdout.contains("  completed, not verified  "));
    let heard = scene.provost(&["resume", "last", "all is well"]);
    assert_eq!((heard.status, heard.stdout.as_str()), (0, "another\n"), "{heard:?}");
}

const ASKS: &str = "answers: [{ tools: [{ shell: { command: echo published } }] }, { text: done }]";

/// The word for the run's state in every output.
#[track_caller]
fn stands(scene: &Scene, run: &str, word: &str) {
    let row = scene.provost(&["ps"]).stdout;
    assert!(
        row.lines().any(|line| line.starts_with(run) && line.contains(&format!("  {word}  "))),
        "ps: {row}"
    );
    let shown = scene.provost(&["show", run]).stdout;
    assert!(shown.contains(&format!("\nstatus      {word}\n")), "show: {shown}");
    let explained = scene.provost(&["explain", run]).stdout;
    assert!(explained.lines().any(|line| line.trim() == format!("status  {word}")), "explain: {explained}");
    for (args, key) in [
        (&["ps", "--json"][..], "status"),
        (&["show", run, "--json"], "status"),
        (&["explain", run, "--json"], "status"),
        (&["approvals", "--json"], "run_status"),
    ] {
        let said = scene.provost(args).stdout;
        let said = said.lines().next().unwrap_or_else(|| panic!("{args:?} says nothing"));
        assert_eq!(json(said)[key], word, "{args:?}");
    }
}

#[test]
fn how_a_run_stands_is_the_same_word_everywhere() {
    let asks = "[permissions]\nask = [\"shell\"]\nunanswered = \"pause\"\n";
    let scene = Scene::scripted(ASKS).with_settings(asks);
    let running = scene.start(&["run", "x"]);
    until("it asks", || scene.provost(&["approvals"]).stdout.contains("shell").then_some(()));
    let run = scene.last_run();
    stands(&scene, &run, "needs approval");
    running.kill();
    stands(&scene, &run, "interrupted, needs approval");
    assert_eq!(scene.provost(&["pause", &run]).status, 0);
    stands(&scene, &run, "paused, needs approval");

    let soon = "[permissions]\nask = [\"shell\"]\nunanswered = \"pause\"\napproval_timeout = \"1s\"\n";
    let scene = Scene::scripted(ASKS).with_settings(soon);
    assert_eq!(scene.provost(&["run", "x"]).status, 4);
    stands(&scene, &scene.last_run(), "needs approval");
}

/// Reports only what is visible by then.
#[test]
fn what_is_piped_in_while_the_run_works_is_told_at_its_end() {
    let scene = Scene::scripted(
        "answers:\n  - tools: [{ shell: { command: \"echo > started; until test -e go; do sleep 0.02; done\" } }]\n  - text: done\n",
    );
    let mut command = scene.command(&["run", "x"]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    line_in(&scene.path("work/started"));
    child.stdin.as_mut().unwrap().write_all(b"late").unwrap();
    scene.write("work/go", "");
    let input = child.stdin.take();
    let ran = done(&child.wait_with_output().unwrap());
    drop(input);
    assert_eq!((ran.status, ran.stderr.matches(UNREAD).count()), (0, 1), "{ran:?}");
}

/// `-q` leaves out progress; a script's mail with only an exit status would say nothing.
#[test]
fn a_quiet_run_that_isnt_done_says_how_it_ended() {
    for (script, status, words) in [
        ("answers: [{ text: 'I could not. VERDICT: FAIL' }]", 1, "verdict FAIL"),
        ("answers: [{ text: x, tools: [list_dir] }]", 1, "the script doesn't fit the conversation"),
    ] {
        let ran = Scene::scripted(script).provost(&["run", "x", "-q"]);
        assert_eq!(ran.status, status, "{ran:?}");
        assert!(ran.stderr.contains(words), "{ran:?}");
    }
    let done = Scene::scripted("answers: [{ text: 'VERDICT: PASS' }]").provost(&["run", "x", "-q"]);
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
}

/// A folder's name is shown on the line that it belongs to.
#[cfg(unix)]
#[test]
fn a_line_break_in_a_folders_name_forges_no_line() {
    let scene = Scene::scripted("answers: [{ fault: unauthorized }]");
    let folder = scene.path("work/ws\nstatus      completed, verified");
    std::fs::create_dir_all(&folder).unwrap();
    let script = format!("script:{}", scene.path("work/agent.yaml").display());
    let ran = scene.provost(&["run", "x", "-C", folder.to_str().unwrap(), "-m", &script]);
    let shown = scene.provost(&["show", "last"]);
    for text in [&ran.stderr, &shown.stdout] {
        assert!(text.contains("ws\\nstatus      completed"), "{text}");
        assert!(!text.lines().any(|line| line.starts_with("status      completed")), "{text}");
    }
}
