//! `provost resume`: which run, whether it can be resumed, and with which limits.

use crate::support::{Scene, json, line_in};

const TWO_TURNS: &str = "answers: [{ text: looking, tools: [list_dir] }, { text: done }]";

/// A scene with a run that is suspended because its turns are used up.
fn suspended() -> (Scene, String) {
    let scene = Scene::scripted(TWO_TURNS);
    assert_eq!(scene.provost(&["run", "look", "--max-turns", "1"]).status, 3);
    let run = scene.last_run();
    (scene, run)
}

#[track_caller]
fn refused(scene: &Scene, args: &[&str], status: i32, words: &str) {
    let before = scene.provost(&["logs", "last", "--json"]).stdout;
    let resumed = scene.provost(&[&["resume"], args].concat());
    assert_eq!(resumed.status, status, "{resumed:?}");
    assert_eq!(scene.stable(&resumed.stderr), words);
    assert_eq!(scene.provost(&["logs", "last", "--json"]).stdout, before, "nothing has changed");
}

#[test]
fn a_run_is_found_by_its_id_by_a_beginning_and_as_the_last() {
    for word in ["last".to_owned(), suspended().1] {
        let (scene, run) = suspended();
        let word = if word == "last" { word } else { run[..8].to_owned() };
        let resumed = scene.provost(&["resume", &word, "--max-turns", "5"]);
        assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "done\n"), "{resumed:?}");
    }
}

#[test]
fn unknown_and_ambiguous_ids_are_told() {
    let scene = Scene::scripted(TWO_TURNS);
    let none = scene.provost(&["resume", "last"]);
    assert_eq!(none.status, 2);
    assert_eq!(none.stderr, "error: there are no runs yet\nhint: start one with `provost run`\n");
    // 33 runs, 32 letters: two begin with the same.
    for _ in 0..33 {
        scene.provost(&["run", "look", "--max-turns", "1", "--quiet"]);
    }
    refused(
        &scene,
        &["zzzz-zzzz"],
        2,
        "error: there is no run `zzzz-zzzz`\nhint: `provost ps --all` lists them\n",
    );
    refused(&scene, &[""], 2, "error: there is no run ``\nhint: `provost ps --all` lists them\n");
    let listed = scene.provost(&["ps", "--all"]).stdout;
    let mut firsts = listed.lines().skip(1).map(|line| line[..1].to_owned()).collect::<Vec<_>>();
    firsts.sort_unstable();
    let twice = firsts.windows(2).find(|pair| pair[0] == pair[1]).unwrap();
    let ambiguous = scene.provost(&["resume", &twice[0]]);
    assert_eq!(ambiguous.status, 2);
    assert!(ambiguous.stderr.contains(&format!("runs begin with `{}`:\n", twice[0])), "{}", ambiguous.stderr);
    assert!(ambiguous.stderr.ends_with("look\nhint: write more of the id\n"), "{}", ambiguous.stderr);
}

/// The agent's view of the conversation now.
fn view(scene: &Scene) -> String {
    scene.provost(&["logs", "last", "--view"]).stdout
}

#[test]
fn a_completed_run_goes_on_with_what_is_said_and_its_whole_conversation() {
    let scene = Scene::scripted("answers: [{ text: the code is done }, { text: so are the docs }]");
    assert_eq!(scene.provost(&["run", "write the code"]).stdout, "the code is done\n");
    let say = scene.provost(&["say", "last", "and now the docs"]);
    assert_eq!(say.status, 2, "{say:?}");
    assert_eq!(
        scene.stable(&say.stderr),
        "error: run RUN has ended: completed, not verified\nhint: go on with: provost resume RUN \"and now …\"\n"
    );
    let resumed = scene.provost(&["resume", "last", "and now", "the docs"]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "so are the docs\n"), "{resumed:?}");
    let view = view(&scene);
    let places = ["write the code", "the code is done", "and now the docs", "so are the docs"];
    let places = places.map(|words| view.find(words).unwrap_or_else(|| panic!("{words}: {view}")));
    assert!(places.is_sorted(), "{view}");
    // Both segments are charged, once.
    let cost = scene.provost(&["cost", "last"]).stdout;
    assert!(cost.lines().last().unwrap().split_whitespace().nth(1) == Some("2"), "{cost}");
}

#[test]
fn after_a_failure_and_after_a_cancel_it_goes_on_too() {
    let scene = Scene::scripted("answers: [{ expect: { contains: nothing like it }, text: done }]");
    assert_eq!(scene.provost(&["run", "look"]).status, 1);
    scene.write("work/agent.yaml", "answers: [{ text: done }]");
    let resumed = scene.provost(&["resume", "last", "try again"]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "done\n"), "{resumed:?}");
    let view = view(&scene);
    assert!(view.contains("Your work had ended (") && view.contains("try again"), "{view}");

    let (scene, _) = suspended();
    assert_eq!(scene.provost(&["cancel", "last"]).status, 0);
    let resumed = scene.provost(&["resume", "last", "--max-turns", "3", "go on"]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "done\n"), "{resumed:?}");
    let log = scene.provost(&["logs", "last", "--json"]).stdout;
    let is_resumed = |line: &&str| line.contains(r#""type":"resumed""#);
    let (to_end, resumed) =
        log.lines().filter(is_resumed).partition::<Vec<_>, _>(|line| line.contains(r#""cause":"to_end""#));
    assert_eq!(to_end.len(), 2, "the cancelled suspension ends in a segment of its own: {to_end:?}");
    assert!(resumed.iter().all(|line| line.contains(r#""reopens":true"#)), "{resumed:?}");
}

/// How a segment ends: settings, the model's answers, the exit status and a word of the outcome.
const ENDS: [(&str, &str, i32, &str); 9] = [
    ("", "text: the code is done", 0, "completed, not verified"),
    ("", "{ expect: { contains: nothing like it }, text: done }", 1, "fit the conversation"),
    ("[budget]\nturns = 1\n", "tools: [list_dir]", 3, "Turn budget"),
    ("[budget]\ntokens = 15000\n", "tools: [list_dir]", 3, "Token budget"),
    ("[limits]\nrepeated_call = 4\n", "tools: [{ shell: { command: echo same } }]", 4, "repeated call"),
    ("[limits]\nfailed_turns = 6\n", "tools: [{ no_such_tool: {} }]", 4, "no tool call succeeded"),
    ("stuck_turns = 3\n", "tools: [{ shell: { command: date +%N } }]", 4, "stuck"),
    (
        "[limits]\nstop_blocks = 1\n[[stop_hooks]]\nname = 'docs'\ncommand = 'test -e docs || { echo no docs; exit 2; }'\n",
        "text: the code is done",
        4,
        "blocked",
    ),
    ("[limits]\nmodel_patience = '1s'\n", "fault: unauthorized", 4, "key"),
];

#[test]
fn after_each_kind_of_end_the_model_hears_what_is_said_behind_all_that_was() {
    for (settings, answer, status, words) in ENDS {
        let answers = format!("answers:\n{}", format!("  - {answer}\n").repeat(30));
        let scene = Scene::scripted(&answers).with_settings(settings).trusted();
        let ran = scene.provost(&["run", "write the code"]);
        assert_eq!(ran.status, status, "{words}: {ran:?}");
        assert!(ran.stderr.contains(words), "{words}: {ran:?}");
        let seen = view(&scene);
        scene.write("work/agent.yaml", &format!("answers:\n{}", "  - text: so are the docs\n".repeat(60)));
        scene.write("work/docs", "");
        let amounts = ["--max-turns", "5", "--tokens", "90000"];
        let amounts = if status == 3 { &amounts[..] } else { &[] };
        let resumed = scene.provost(&[&["resume", "last", "and now the docs"], amounts].concat());
        assert_eq!(
            (resumed.status, resumed.stdout.as_str()),
            (0, "so are the docs\n"),
            "{words}: {resumed:?}"
        );
        let view = view(&scene);
        assert!(view.contains("write the code") && view.len() > seen.len(), "{words}: {view}");
        let said = view.find("and now the docs").unwrap_or_else(|| panic!("{words}: {view}"));
        assert!(view[said..].contains("so are the docs"), "{words}: {view}");
    }
}

#[test]
fn an_ended_run_goes_on_with_another_model_and_its_log_can_be_read() {
    let scene = Scene::scripted("answers: [{ text: one }]");
    scene.write("work/other.yaml", "answers: [{ text: one }, { text: two }]");
    scene.provost(&["run", "look"]);
    let resumed = scene.provost(&["resume", "last", "--model", "script:other.yaml", "more"]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "two\n"), "{resumed:?}");
    // Another process folds the whole log.
    let shown = scene.provost(&["show", "last"]);
    assert_eq!(shown.status, 0, "{shown:?}");
    assert!(view(&scene).contains("more"), "{}", view(&scene));
}

#[test]
fn an_ended_run_is_exported_and_imported_with_all_its_segments() {
    let scene = Scene::scripted("answers: [{ text: one }, { text: two }, { text: three }]");
    scene.provost(&["run", "look"]);
    scene.provost(&["resume", "last", "more"]);
    let file = scene.path("run.jsonl");
    let file = file.to_str().unwrap();
    let exported = scene.provost(&["export", "last", "-o", file]);
    assert_eq!(exported.status, 0, "{exported:?}");
    std::fs::remove_dir_all(scene.path("state")).unwrap();
    let imported = scene.provost(&["import", file]);
    assert_eq!(imported.status, 0, "{imported:?}");
    assert_eq!(scene.provost(&["resume", "last", "again"]).stdout, "three\n");
}

#[test]
fn amounts_are_added_and_nothing_left_is_told() {
    let (scene, _) = suspended();
    let words = "error: run RUN has 0 turns left: limit 1 turn, used 1 turn\n\
                 hint: provost resume RUN --max-turns 1\n";
    refused(&scene, &["last"], 2, words);
    let with_tokens = words.replace("--max-turns 1", "--max-turns 1 --tokens 100000");
    refused(&scene, &["last", "--tokens", "100000"], 2, &with_tokens);
    let words = "error: run RUN has 0 turns left: limit 1 turn, used 1 turn\n\
                 hint: provost resume RUN 'and it'\\''s docs' --max-turns 1\n";
    refused(&scene, &["last", "and it's docs"], 2, words);
    let words = "error: --max-turns: budget.turns: must be at least 1 (is 0); e.g. --max-turns 100\n";
    refused(&scene, &["last", "--max-turns", "0"], 2, words);
    let resumed = scene.provost(&["resume", "last", "--max-turns", "1"]);
    assert_eq!(resumed.status, 0, "{resumed:?}");
    assert!(resumed.stderr.contains("turns: limit now 2 turns, used 1 turn\n"), "{}", resumed.stderr);
}

#[test]
fn a_call_that_does_not_fit_says_how_much_it_needs() {
    let scene = Scene::scripted(TWO_TURNS);
    assert_eq!(scene.provost(&["run", "look", "--tokens", "2000"]).status, 3);
    let refused = scene.provost(&["resume", "last"]);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.stderr.contains("the next call needs about "), "{}", refused.stderr);
    let refused = scene.provost(&["resume", "last", "--tokens", "1"]);
    assert!(refused.stderr.contains("--tokens isn't enough for run"), "{}", refused.stderr);
}

#[test]
fn what_a_run_says_to_add_is_what_resume_says_and_takes() {
    let scene = Scene::scripted(TWO_TURNS);
    let ran = scene.provost(&["run", "look", "--tokens", "2000"]);
    let offered = ran.stderr.lines().find_map(|line| line.strip_prefix("go on with: provost ")).unwrap();
    let refused = scene.provost(&["resume", "last"]);
    assert!(refused.stderr.contains(&format!("hint: provost {offered}\n")), "{offered}: {}", refused.stderr);
    let resumed = scene.provost(&offered.split(' ').collect::<Vec<_>>());
    assert_eq!(resumed.status, 0, "{resumed:?}");
}

#[test]
fn the_command_that_say_names_after_a_limit_works() {
    let scene = Scene::scripted(TWO_TURNS);
    assert_eq!(scene.provost(&["run", "look", "--max-turns", "1"]).status, 3);
    let said = scene.provost(&["say", "last", "psst"]);
    let command = said.stdout.trim_end().rsplit("gets it with: provost ").next().unwrap();
    let resumed = scene.provost(&command.split(' ').collect::<Vec<_>>());
    assert_eq!(resumed.status, 0, "{command}: {resumed:?}");
    assert!(view(&scene).contains("psst"));
}

#[test]
fn the_command_that_is_proposed_works() {
    for flags in [["--max-turns", "1"], ["--tokens", "2000"]] {
        let scene = Scene::scripted(TWO_TURNS);
        let ran = scene.provost(&[&["run", "look"][..], &flags].concat());
        assert_eq!(ran.status, 3, "{ran:?}");
        let mut status = 3;
        let mut said = ran.stderr;
        for _ in 0..5 {
            let command =
                said.lines().last().unwrap().strip_prefix("go on with: provost ").unwrap().to_owned();
            let resumed = scene.provost(&command.split(' ').collect::<Vec<_>>());
            (status, said) = (resumed.status, resumed.stderr);
            if status == 0 {
                break;
            }
        }
        assert_eq!(status, 0, "{said}");
    }
}

#[test]
fn a_run_in_the_hands_of_another_process_stays_there() {
    let scene =
        Scene::scripted("answers: [{ tools: [{ shell: { command: 'echo $$ > child; sleep 600' } }] }]");
    let running = scene.start(&["run", "sleep"]);
    line_in(&scene.path("work/child"));
    let resumed = scene.provost(&["resume", "last"]);
    assert_eq!(resumed.status, 1, "{resumed:?}");
    let run = scene.last_run();
    let begin = format!("error: run {run} is being worked on by process {} since ", running.id());
    assert!(resumed.stderr.starts_with(&begin), "{}", resumed.stderr);
    let end = format!("hint: follow it with `provost logs {run} -f`, or stop that process\n");
    assert!(resumed.stderr.ends_with(&end), "{}", resumed.stderr);
    assert!(scene.provost(&["ps"]).stdout.contains("running"));
}

#[test]
fn limits_of_an_interrupted_run_cant_be_changed_silently() {
    let scene =
        Scene::scripted("answers: [{ tools: [{ shell: { command: 'echo $$ > child; sleep 600' } }] }]");
    let running = scene.start(&["run", "sleep"]);
    line_in(&scene.path("work/child"));
    running.kill();
    let words = "error: run RUN isn't suspended and goes on with its own limits; --tokens can't change them\n\
                 hint: `provost pause RUN` suspends it, or `provost resume RUN` goes on if its process is gone; when it is suspended the limits can be changed\n";
    refused(&scene, &["last", "--tokens", "5000000"], 2, words);
}

#[test]
fn the_model_stays_the_one_of_the_start() {
    let (scene, _) = suspended();
    scene.write("work/provost.toml", "[agent]\nmodel = \"unknown/else\"\n");
    let elsewhere = scene
        .command(&["resume", "last", "--global", "--max-turns", "5"])
        .current_dir(scene.path("home"))
        .output();
    let elsewhere = elsewhere.unwrap();
    assert_eq!(elsewhere.status.code(), Some(0), "{}", String::from_utf8_lossy(&elsewhere.stderr));
}

#[test]
fn a_model_that_is_gone_is_told_before_anything_changes() {
    let (scene, _) = suspended();
    std::fs::remove_file(scene.path("work/agent.yaml")).unwrap();
    let resumed = scene.provost(&["resume", "last", "--max-turns", "5"]);
    assert_eq!(resumed.status, 2, "{resumed:?}");
    assert!(resumed.stderr.starts_with("error: can't read the script "), "{}", resumed.stderr);
}

#[test]
fn what_each_segment_cost_is_told_alone_and_adds_up() {
    let scene = Scene::scripted(
        "answers: [{ text: one, usage: { input: 1000, output: 10 } }, { text: two, usage: { input: 2000, output: 20 } }, \
         { text: three, usage: { input: 3000, output: 30 } }]",
    );
    scene.provost(&["run", "look"]);
    let one = scene.provost(&["show", "last"]).stdout;
    assert!(!one.contains("segments"), "one segment is the run: {one}");
    scene.provost(&["resume", "last", "more"]);
    scene.provost(&["resume", "last", "and more"]);
    let shown = scene.provost(&["show", "last"]).stdout;
    let lines = "segments    1 completed: 1 call, 1,010 tokens, $0.00\n            2 completed: 1 call, 2,020 tokens, \
                 $0.00\n            3 completed: 1 call, 3,030 tokens, $0.00\n";
    assert!(shown.contains(lines), "{shown}");
    let whole = json(scene.provost(&["show", "last", "--json"]).stdout.trim());
    let segments = whole["segments"].as_array().unwrap();
    let told = segments.iter().map(|segment| (segment["segment"].as_u64(), segment["tokens"].as_u64()));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [(Some(1), Some(1010)), (Some(2), Some(2020)), (Some(3), Some(3030))]
    );
    let cost = json(scene.provost(&["cost", "last", "--by", "segment", "--json"]).stdout.trim());
    let groups = cost["groups"].as_array().unwrap();
    let told = groups.iter().map(|group| (group["segment"].as_u64(), group["input_tokens"].as_u64()));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [(Some(1), Some(1000)), (Some(2), Some(2000)), (Some(3), Some(3000))]
    );
    assert_eq!(cost["total"]["calls"], 3);
}

#[test]
fn sub_agents_rest_at_the_turn_limit_of_the_run_and_go_on_when_it_gets_more() {
    let looks = "answers: [{ tools: [list_dir] }, { tools: [list_dir] }, { text: looked }]";
    let agents = format!("agents:\n  - goal: do one\n    {looks}\n  - goal: do two\n    {looks}\n");
    let spawns = "{ tools: [{ spawn_agent: { goal: do one } }, { spawn_agent: { goal: do two } }] }";
    let scene = Scene::scripted(&format!("answers: [{spawns}, {{ text: all done }}]\n{agents}"));
    let ran = scene.provost(&["run", "count", "--max-turns", "4"]);
    assert_eq!(ran.status, 3, "{ran:?}");
    assert!(!ran.stderr.contains("failed") && !ran.stderr.contains("It said nothing"), "{ran:?}");
    let resumed = scene.provost(&["resume", "last", "--max-turns", "10"]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "all done\n"), "{resumed:?}");
    let log = scene.provost(&["logs", "last", "--json"]).stdout;
    let looked = log.lines().filter(|line| line.contains("\"type\":\"assistant_message\"")).count();
    assert_eq!(looked, 2 + 2 * 3, "each answer once");
}
