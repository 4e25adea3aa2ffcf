//! Loops that are stopped, and work that is no loop: the real program with a real shell.

use crate::support::{Done, Scene, json};

/// A script whose answers call the shell, one after the other, and then say that they are done.
fn shell_script(commands: impl IntoIterator<Item = String>) -> String {
    let answer = |command: String| format!("  - tools: [{{ shell: {{ command: {} }} }}]\n", quoted(&command));
    let answers = commands.into_iter().map(answer).collect::<String>();
    format!("answers:\n{answers}  - text: all done\n")
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn run(scene: &Scene) -> Done {
    scene.provost(&["run", "reach the goal", "--max-turns", "200"])
}

#[test]
fn ten_tests_of_files_in_one_answer_suspend_nothing() {
    let call = "{ shell: { command: 'test -e missing' } }";
    let script = format!("answers:\n  - tools: [{}]\n  - text: all done\n", [call; 10].join(", "));
    let ran = run(&Scene::scripted(&script));
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "all done\n"), "{ran:?}");
}

#[test]
fn commands_that_exit_with_a_status_are_no_failures() {
    let ran = run(&Scene::scripted(&shell_script((0..15).map(|n| format!("grep -q word{n} /dev/null")))));
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "all done\n"), "{ran:?}");
}

#[test]
fn five_polls_of_a_terminal_suspend_nothing() {
    let start = "  - tools: [{ terminal: { action: start, command: 'sleep 100', wait_ms: 50 } }]\n";
    let read = "  - tools: [{ terminal: { action: read, wait_ms: 50 } }]\n";
    let script = format!("answers:\n{start}{}  - text: all done\n", read.repeat(12));
    let ran = run(&Scene::scripted(&script));
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "all done\n"), "{ran:?}");
}

#[test]
fn polls_with_a_short_sleep_suspend_nothing_but_a_sleep_of_no_time_is_none() {
    let polls = |command: &str| run(&Scene::scripted(&shell_script((0..12).map(|_| command.to_owned()))));
    let ran = polls("sleep 0.05; test -e missing");
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "all done\n"), "{ran:?}");
    for loops in ["sleep 0; echo same", "false && sleep 0.5", "echo 'sleep 5'"] {
        let ran = polls(loops);
        assert!(ran.status == 4 && ran.stderr.contains("repeated call"), "{loops}: {ran:?}");
    }
}

#[test]
fn the_same_call_is_told_at_three_and_suspended_at_ten() {
    let scene = Scene::scripted(&shell_script((0..12).map(|_| "echo same".to_owned())));
    let ran = run(&scene);
    assert_eq!(ran.status, 4, "{ran:?}");
    let words = "repeated call: the same `shell` call gave the same result 10 times in a row";
    assert!(ran.stderr.contains(words), "{ran:?}");
    assert_eq!(json(&scene.provost(&["show", "last", "--json"]).stdout)["tool_calls"], 10);
}

#[test]
fn calls_that_all_fail_as_tools_are_told_at_five_turns_and_suspended_at_twelve() {
    let call = "  - tools: [{ no_such_tool: {} }]\n";
    let script = format!("answers:\n{}  - text: all done\n", call.repeat(14));
    let ran = run(&Scene::scripted(&script).with_settings("[limits]\nrepeated_call = 100\n"));
    assert_eq!(ran.status, 4, "{ran:?}");
    assert!(ran.stderr.contains("no tool call succeeded in 12 turns in a row"), "{ran:?}");
}

/// Loops whose output varies. Each is one command, made again and again; `@` is the number of the turn.
const DOOM_LOOPS: [&str; 16] = [
    "date +%N",
    "date +%T.%N",
    "echo $RANDOM",
    "head -c 4 /dev/urandom | od -An -tu4",
    "mktemp -u",
    "echo attempt @",
    "echo attempt @ of 1000; date +%s",
    "cat /proc/uptime",
    "echo took 0.$RANDOM s",
    "od -An -N8 -tx8 /dev/urandom",
    "cat /proc/sys/kernel/random/uuid",
    "echo @ > counter; cat counter",
    "date +%T.%N | tee -a log.txt",
    "echo x > out-$RANDOM.tmp; echo done in $RANDOM ms",
    "d=$(mktemp -d); echo built in $d; rmdir $d",
    "echo \"[$(printf '#%.0s' $(seq @))] @%\"; exit 1",
];

#[test]
fn a_new_file_a_turn_is_work_though_only_numbers_differ() {
    let chapters = (1..=60).map(|n| format!("printf '<h1>Chapter {n}</h1>' > chapter{n}.html"));
    let ran = run(&Scene::scripted(&shell_script(chapters)));
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "all done\n"), "{ran:?}");
}

#[test]
fn a_loop_whose_output_varies_is_stuck_after_twenty_turns_and_is_told_before() {
    for command in DOOM_LOOPS {
        let commands = (1..60).map(|turn| command.replace('@', &turn.to_string()));
        let scene = Scene::scripted(&shell_script(commands));
        let ran = run(&scene);
        assert_eq!(ran.status, 4, "{command}: {ran:?}");
        assert!(ran.stderr.contains("stuck: 20 turns without measurable progress"), "{command}: {ran:?}");
        let shown = json(&scene.provost(&["show", "last", "--json"]).stdout);
        let calls = shown["tool_calls"].as_u64().unwrap();
        // Random words are new ones, of which thirty turns in a row count.
        assert!((21..=52).contains(&calls), "{command}: {calls} calls");
        assert_eq!(shown["progress"]["state"], "busy", "{command}: {}", shown["progress"]);
        assert_eq!(shown["progress"]["idle_turns"], 20, "{command}");
    }
}

/// Commands that look for what isn't there; `W` is another word each turn.
const VAIN_SEARCHES: [&str; 6] = [
    "ls W",
    "cat src/W.rs",
    "grep -rn W .",
    "find . -name W; echo no W here",
    "command -v W",
    "python3 -c 'import W'",
];

#[test]
fn searches_for_ever_new_names_that_find_nothing_are_stuck() {
    let search = |pattern: String| format!("  - tools: [{{ search: {{ pattern: {pattern} }} }}]\n");
    let searches = (1..60).map(|turn| search(word(turn))).collect::<String>();
    let by_tool = format!("answers:\n{searches}  - text: all done\n");
    let by_shell = VAIN_SEARCHES
        .map(|command| shell_script((1..60).map(|turn| command.replace('W', &format!("x{}", word(turn))))));
    for script in [by_tool].iter().chain(&by_shell) {
        let scene = Scene::scripted(script);
        scene.write("work/notes.md", "some text\n");
        let ran = run(&scene);
        assert_eq!(ran.status, 4, "{script}: {ran:?}");
        assert!(ran.stderr.contains("stuck: 20 turns without measurable progress"), "{script}: {ran:?}");
    }
}

/// Long work; `@` is the number of the turn, `W` a unique word.
const LEGIT_WORK: [&str; 9] = [
    "cat big.txt | sed -n '@p'",
    "cat file-W.txt",
    "grep -c W big.txt",
    "echo 'W is done' >> notes.md",
    "mkdir -p W && echo ok",
    "echo \"$((40 - @)) failed, @ passed\"; exit 1",
    "sed -i 's/start/W/' work.txt; echo start >> work.txt",
    "echo compiling W",
    "ls W* 2>&1; true",
];

#[test]
fn work_that_brings_something_new_is_not_stopped() {
    for command in LEGIT_WORK {
        let commands =
            (1..30_usize).map(|turn| command.replace('@', &turn.to_string()).replace('W', &word(turn)));
        let scene = Scene::scripted(&shell_script(commands));
        let lines = (0..40).map(|line| format!("this line is about {}\n", word(line))).collect::<String>();
        scene.write("work/big.txt", &lines);
        scene.write("work/work.txt", "start\n");
        (0..40).for_each(|file| scene.write(&format!("work/file-{}.txt", word(file)), &word(file + 7)));
        let ran = run(&scene);
        assert_eq!((ran.status, ran.stdout.as_str()), (0, "all done\n"), "{command}: {ran:?}");
    }
}

/// A word of letters for a number.
fn word(number: usize) -> String {
    let letter = |n: usize| char::from(b'a' + u8::try_from(n % 26).unwrap());
    [letter(number), letter(number / 26 + 3), letter(number * 7)].iter().collect()
}

#[test]
fn turns_that_wait_are_not_counted_and_are_told_as_such() {
    let settings = "stuck_turns = 2\n";
    let scene = Scene::scripted(&shell_script((0..5).map(|_| "sleep 1; echo still there".to_owned())))
        .with_settings(settings);
    let ran = run(&scene);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "all done\n"), "{ran:?}");
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains("5 of 6 turns waited for work that goes on"), "{shown}");
    // Zero turns it off.
    let off = Scene::scripted(&shell_script((0..25).map(|n| format!("echo {n}"))))
        .with_settings("stuck_turns = 0\n");
    assert_eq!(run(&off).status, 0);
}

#[test]
fn files_that_others_edit_between_the_calls_are_no_progress_of_the_agent() {
    // A hook stands for a person: it edits after each answer's calls, and before the next ones.
    let edits = "head -c 9 /dev/urandom | od -An -tx1 | tr -d ' \\n' | tr 0-9 g-p >> notes.md";
    let hook = format!("[[hooks]]\nevent = \"pre_llm_request\"\ncommand = \"{edits}\"\n");
    let commands = (1..60).map(|_| "date +%N".to_owned());
    let scene = Scene::scripted(&shell_script(commands)).with_settings(&hook).trusted();
    let ran = run(&scene);
    assert_eq!(ran.status, 4, "{ran:?}");
    assert!(ran.stderr.contains("stuck: 20 turns without measurable progress"), "{ran:?}");
    assert!(std::fs::metadata(scene.path("work/notes.md")).unwrap().len() > 18 * 19, "it was edited");
}

#[test]
fn provosts_own_output_in_the_workspace_is_no_progress_of_the_agent() {
    let commands = (1..60).map(|_| "date +%N".to_owned());
    let scene = Scene::scripted(&shell_script(commands));
    let file = |name| std::fs::File::create(scene.path("work").join(name)).unwrap();
    let status = scene.command(&["run", "x"]).stdout(file("out")).stderr(file("messages")).status().unwrap();
    assert_eq!(status.code(), Some(4));
    let said = std::fs::read_to_string(scene.path("work/messages")).unwrap();
    assert!(
        said.contains("stuck: 20 turns without measurable progress") && said.contains("21 turns"),
        "{said}"
    );
}
