//! `provost fork`: a run that continues another's conversation, and the output about both.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use crate::support::{Scene, json, line_in, sealed};

const LOOKS: &str = "
answers:
  - text: I look.
    tools: [list_dir, { read_file: { path: a.txt } }]
  - text: It says hello.
  - text: The second answer is the fork's.
  - text: The third one too.
  - text: The fourth.
";

/// A scene with a completed run, and its id. Its log: 3 is the first answer, 6 and 7 are the results, 10 is the last
/// answer, 12 the end.
fn completed() -> (Scene, String) {
    let scene = Scene::scripted(LOOKS);
    scene.write("work/a.txt", "hello\n");
    assert_eq!(scene.provost(&["run", "look around"]).status, 0);
    let run = scene.last_run();
    (scene, run)
}

fn messages(scene: &Scene, run: &str) -> Vec<serde_json::Value> {
    let view = scene.provost(&["logs", run, "--view", "--json"]);
    assert_eq!(view.status, 0, "{view:?}");
    json(view.stdout.trim())["messages"].as_array().unwrap().clone()
}

fn kinds(scene: &Scene, run: &str) -> Vec<(u64, String)> {
    let log = scene.provost(&["logs", run, "--agent", "0", "--json"]).stdout;
    let entries = log.lines().map(json);
    entries
        .map(|entry| (entry["seq"].as_u64().unwrap(), entry["type"].as_str().unwrap().to_owned()))
        .collect()
}

fn cost(scene: &Scene, run: &str) -> (u64, u64) {
    let cost = json(scene.provost(&["cost", run, "--json"]).stdout.trim());
    let total = &cost["total"];
    (total["calls"].as_u64().unwrap(), total["usage"]["input_tokens"].as_u64().unwrap_or_default())
}

#[test]
fn a_fork_goes_on_with_the_whole_conversation_and_is_paid_for_alone() {
    let (scene, run) = completed();
    let before = messages(&scene, &run);
    let paid = cost(&scene, &run);
    let log = scene.provost(&["logs", &run, "--agent", "0", "--json"]).stdout;
    let forked = scene.provost(&["fork", &run, "and", "now the docs"]);
    assert_eq!(
        (forked.status, forked.stdout.as_str()),
        (0, "The second answer is the fork's.\n"),
        "{forked:?}"
    );
    let fork = scene.last_run();
    assert_ne!(fork, run);
    let after = messages(&scene, &fork);
    assert_eq!(after[..before.len()], before, "what the model sees begins with the same messages");
    let news = after[before.len()..].iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(news.len(), 2, "{news:?}");
    assert!(news[0].contains("and now the docs") && news[1].contains("The second answer"), "{news:?}");
    // Nothing is copied: its own entries continue the numbers of the origin.
    assert_eq!(
        kinds(&scene, &fork)[..2],
        [(13, "session_started".to_owned()), (14, "user_message".to_owned())]
    );
    assert_eq!(cost(&scene, &fork).0, 1, "only its own call is charged");
    assert_eq!(cost(&scene, &run), paid, "the other's spending is as before");
    assert_eq!(
        scene.provost(&["logs", &run, "--agent", "0", "--json"]).stdout,
        log,
        "the other goes on as it was"
    );
}

#[test]
fn both_runs_name_each_other() {
    let (scene, run) = completed();
    scene.provost(&["fork", &run, "more"]);
    let fork = scene.last_run();
    let shown = scene.provost(&["show", &fork]).stdout;
    assert!(shown.contains(&format!("forked from {run} at entry 12\n")), "{shown}");
    let shown = scene.provost(&["show", &run]).stdout;
    assert!(shown.contains(&format!("forks       {fork} at entry 12\n")), "{shown}");
    let lineage = json(scene.provost(&["show", &fork, "--json"]).stdout.trim())["forked_from"].clone();
    assert_eq!(
        (lineage["from"].as_str(), lineage["at"].as_u64()),
        (Some(format!("{run}.0").as_str()), Some(12))
    );
    assert_eq!(json(scene.provost(&["show", &run, "--json"]).stdout.trim())["forks"][0], lineage);
    for one in [&run, &fork] {
        let log = scene.provost(&["logs", one, "--agent", "run", "--json"]).stdout;
        let entry = log.lines().map(json).find(|entry| entry["type"] == "forked").expect("an entry");
        assert_eq!((&entry["hash"], &entry["to"]), (&lineage["hash"], &lineage["to"]));
    }
}

#[test]
fn a_call_without_a_result_at_the_entry_gets_one_that_says_so() {
    let (scene, run) = completed();
    for (at, without) in [("3", 2), ("6", 1), ("7", 0)] {
        let forked = scene.provost(&["fork", &run, "--at", at, "go on"]);
        assert_eq!(forked.status, 0, "{forked:?}");
        let after = messages(&scene, &scene.last_run());
        assert_eq!(after[..2], messages(&scene, &run)[..2], "at {at}");
        let results = after[2].to_string();
        assert_eq!(results.matches("\"tool_result\"").count(), 2, "each call has its result: {results}");
        assert_eq!(results.matches("was forked before this call had a result").count(), without, "{results}");
        assert!(results.contains("go on"), "{results}");
    }
}

#[test]
fn a_fork_without_a_text_is_asked_to_go_on_only_where_nothing_is_left_to_answer() {
    let (scene, run) = completed();
    let forked = scene.provost(&["fork", &run, "--at", "7"]);
    assert_eq!(forked.status, 0, "{forked:?}");
    let after = messages(&scene, &scene.last_run());
    assert_eq!(after[..3], messages(&scene, &run)[..3], "it goes on from the results as the other did");
    assert_eq!(after.len(), 4, "{after:?}");
    let forked = scene.provost(&["fork", &run]);
    assert_eq!(forked.status, 0, "{forked:?}");
    let after = messages(&scene, &scene.last_run());
    assert!(after[4].to_string().contains("been asked to go on from here"), "{after:?}");
}

#[test]
fn a_fork_of_a_fork_names_the_run_that_has_the_entry() {
    let (scene, run) = completed();
    scene.provost(&["fork", &run, "one"]);
    let first = scene.last_run();
    scene.provost(&["fork", &first, "two"]);
    let second = scene.last_run();
    let view = messages(&scene, &second);
    assert_eq!(view[..6], messages(&scene, &first)[..6]);
    assert!(view[6].to_string().contains("two"), "{view:?}");
    let shown = scene.provost(&["show", &second]).stdout;
    assert!(shown.contains(&format!("forked from {first} at entry 18\n")), "{shown}");
    // An entry of the conversation in the oldest log.
    let forked = scene.provost(&["fork", &second, "--at", "10", "three"]);
    assert_eq!(forked.status, 0, "{forked:?}");
    let third = scene.last_run();
    let shown = scene.provost(&["show", &third]).stdout;
    assert!(shown.contains(&format!("forked from {run} at entry 10\n")), "{shown}");
    let entry = scene.provost(&["logs", &second, "--entry", "7"]).stdout;
    assert!(entry.contains("hello"), "an entry is found under its number: {entry}");
    // Resumed, it continues the whole conversation.
    let resumed = scene.provost(&["resume", &second, "and more"]);
    assert_eq!(resumed.status, 0, "{resumed:?}");
    assert_eq!(messages(&scene, &second)[..view.len()], view);
}

#[test]
fn wrong_entries_and_runs_are_told_and_leave_nothing() {
    let (scene, run) = completed();
    // The table's ages grow meanwhile.
    let listed = scene.provost(&["ps", "--all", "--json"]).stdout;
    for (args, words) in [
        (
            vec!["zzzz-zzzz"],
            "error: there is no run `zzzz-zzzz`\nhint: `provost ps --all` lists them\n".to_owned(),
        ),
        (
            vec![&run, "--at", "13"],
            "error: the log of agent 0 of run RUN has no entry 13: its last is 12\n\
             hint: `provost logs RUN --agent 0` lists the entries with their numbers\n"
                .to_owned(),
        ),
        (
            vec![&run, "--at", "9"],
            "error: --at: entry 9 is `model_called`, which is no part of the conversation\n\
             hint: --at 8 is the last before it that is\n"
                .to_owned(),
        ),
    ] {
        let forked = scene.provost(&[&["fork"], &args[..]].concat());
        assert_eq!((forked.status, scene.stable(&forked.stderr)), (2, words), "{args:?}");
    }
    let zero = scene.provost(&["fork", &run, "--at", "0"]);
    assert_eq!(zero.status, 2, "{zero:?}");
    let nowhere = scene.provost(&["fork", &run, "--dir", "nowhere"]);
    assert_eq!(nowhere.status, 2, "{nowhere:?}");
    assert_eq!(scene.provost(&["ps", "--all", "--json"]).stdout, listed);
}

#[test]
fn a_fork_that_was_pruned_is_told_so_by_its_origin() {
    let scene = Scene::scripted("answers: [{ tools: [list_dir] }, { text: two }]");
    assert_eq!(scene.provost(&["run", "count", "--max-turns", "1"]).status, 3);
    let run = scene.last_run();
    assert_eq!(scene.provost(&["fork", &run, "go on"]).status, 0);
    let fork = scene.last_run();
    let forks = || {
        let page = scene.provost(&["show", &run]).stdout;
        page.lines().find(|line| line.starts_with("forks")).unwrap().to_owned()
    };
    assert!(forks().contains(&format!("{fork} at entry")) && !forks().contains("pruned"), "{}", forks());
    let pruned = scene.provost(&["prune", "--keep", "0", "--yes"]);
    assert_eq!(scene.provost(&["show", &fork]).status, 2, "{pruned:?}");
    assert!(forks().ends_with(" (pruned)"), "{}", forks());
    let whole = json(&scene.provost(&["show", &run, "--json"]).stdout);
    assert_eq!(whole["pruned_forks"][0], fork);
}

#[test]
fn a_fork_elsewhere_works_there_and_is_told_so() {
    let scene = Scene::scripted(
        "answers: [{ tools: [{ shell: { command: pwd } }] }, { text: done }, \
         { tools: [{ shell: { command: pwd } }] }, { text: done there }]",
    );
    assert_eq!(scene.provost(&["run", "where"]).status, 0);
    let run = scene.last_run();
    fs::create_dir(scene.path("other")).unwrap();
    let other = scene.path("other");
    let forked = scene.provost(&["fork", &run, "--dir", other.to_str().unwrap(), "again"]);
    assert_eq!((forked.status, forked.stdout.as_str()), (0, "done there\n"), "{forked:?}");
    let view = messages(&scene, &scene.last_run());
    assert_eq!(view[..4], messages(&scene, &run)[..4]);
    let told = view[4].to_string();
    assert!(told.contains("goes on in another folder") && told.contains("again"), "{told}");
    assert!(view[6].to_string().contains(other.canonicalize().unwrap().to_str().unwrap()), "{view:?}");
}

#[test]
fn a_run_that_is_worked_on_is_forked_without_being_disturbed() {
    let scene = Scene::scripted(
        "answers: [{ tools: [{ shell: { command: 'echo $$ > child; while [ ! -e go ]; do sleep 0.05; done' } }] }, \
         { text: done }]",
    );
    let running = scene.start(&["run", "wait"]);
    line_in(&scene.path("work/child"));
    let run = scene.last_run();
    let forked = scene.provost(&["fork", &run, "never mind"]);
    assert_eq!((forked.status, forked.stdout.as_str()), (0, "done\n"), "{forked:?}");
    let view = messages(&scene, &scene.last_run());
    assert!(view[2].to_string().contains("was forked before this call had a result"), "{view:?}");
    scene.write("work/go", "");
    let ended = running.end();
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "done\n"), "{ended:?}");
}

/// An export of `run` in the file `name` of the scene's folder.
fn export(scene: &Scene, run: &str, name: &str) -> String {
    let file = scene.path(name).to_str().unwrap().to_owned();
    let exported = scene.provost(&["export", run, "-o", &file]);
    assert_eq!(exported.status, 0, "{exported:?}");
    file
}

#[test]
fn an_export_takes_along_what_a_fork_goes_on_from() {
    let (scene, run) = completed();
    scene.provost(&["fork", &run, "one"]);
    let first = scene.last_run();
    scene.provost(&["fork", &first, "two"]);
    let fork = scene.last_run();
    let view = messages(&scene, &fork);
    let file = export(&scene, &fork, "fork.jsonl");
    fs::remove_dir_all(scene.path("state")).unwrap();
    let imported = scene.provost(&["import", &file]);
    assert_eq!((imported.status, imported.stdout), (0, format!("{fork}\n")), "{}", imported.stderr);
    assert_eq!(messages(&scene, &fork), view);
    let shown = scene.provost(&["show", &run]).stdout;
    assert!(shown.contains(&format!("forks       {first} at entry 12\n")), "{shown}");
    assert_eq!(scene.provost(&["resume", &fork, "and more"]).stdout, "The fourth.\n");
}

#[test]
fn what_a_fork_goes_on_from_must_be_what_was_forked() {
    let (scene, run) = completed();
    scene.provost(&["fork", &run, "one"]);
    let file = export(&scene, &scene.last_run(), "fork.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::remove_dir_all(scene.path("state")).unwrap();
    let changed = text.replace("It says hello.", "It says nothing.");
    for (text, expected) in
        [(changed.clone(), "isn't what was exported"), (sealed(&changed), "isn't what was forked")]
    {
        fs::write(&file, text).unwrap();
        let imported = scene.provost(&["import", &file]);
        assert_eq!(imported.status, 1, "{imported:?}");
        assert!(imported.stderr.contains(expected), "{}", imported.stderr);
    }
    let alone = text.lines().filter(|line| !line.contains(&format!("\"actor\":\"{run}")));
    fs::write(&file, sealed(&alone.map(|line| format!("{line}\n")).collect::<String>())).unwrap();
    let imported = scene.provost(&["import", &file]);
    assert_eq!(imported.status, 1, "{imported:?}");
    assert!(imported.stderr.contains("which a fork goes on from, isn't in it"), "{}", imported.stderr);
    assert!(!scene.provost(&["ps", "--all"]).stdout.contains(&run));
}

#[test]
fn a_longer_log_extends_a_known_run_and_another_history_is_refused() {
    let (scene, run) = completed();
    let short = export(&scene, &run, "short.jsonl");
    scene.provost(&["resume", &run, "one way"]);
    let long = export(&scene, &run, "long.jsonl");
    fs::rename(scene.path("state"), scene.path("here")).unwrap();
    fs::create_dir(scene.path("state")).unwrap();
    assert_eq!(scene.provost(&["import", &short]).status, 0);
    let grown = scene.provost(&["import", &long]);
    assert_eq!((grown.status, grown.stdout), (0, format!("{run}\n")), "{}", grown.stderr);
    assert!(
        grown.stderr.contains(" was there already: ") && grown.stderr.contains(" entries added\n"),
        "{}",
        grown.stderr
    );
    let log = scene.provost(&["logs", &run, "--json"]).stdout;
    assert!(log.contains("one way"), "{log}");
    for file in [&short, &long] {
        let known = scene.provost(&["import", file]);
        assert_eq!((known.status, known.stdout), (0, format!("{run}\n")), "{}", known.stderr);
        assert!(known.stderr.ends_with("with all that the file has: nothing changed\n"), "{}", known.stderr);
    }
    assert_eq!(scene.provost(&["logs", &run, "--json"]).stdout, log);
    assert_eq!(scene.provost(&["resume", &run, "on"]).status, 0, "it goes on");
    // The same run with a different continuation in another store.
    fs::remove_dir_all(scene.path("state")).unwrap();
    fs::create_dir(scene.path("state")).unwrap();
    scene.provost(&["import", &short]);
    scene.provost(&["resume", &run, "another way"]);
    let log = scene.provost(&["logs", &run, "--json"]).stdout;
    let refused = scene.provost(&["import", &long]);
    assert_eq!(refused.status, 1, "{refused:?}");
    let words = format!("run {run} is there already, and differs from entry ");
    assert!(
        refused.stderr.contains(&words) && refused.stderr.contains(&format!(" of {run}")),
        "{}",
        refused.stderr
    );
    assert_eq!(scene.provost(&["logs", &run, "--json"]).stdout, log, "nothing has changed");
}

#[test]
fn a_fork_that_is_killed_is_there_as_a_whole_or_not_at_all() {
    let (scene, run) = completed();
    let (mut whole, mut none) = (0, 0);
    for delay in (0..120).step_by(6) {
        let before = scene.provost(&["ps", "--all"]).stdout.lines().count();
        let forking = scene.start(&["fork", &run, "one"]);
        sleep(Duration::from_millis(delay));
        forking.kill();
        let forks = json(scene.provost(&["show", &run, "--json"]).stdout.trim())["forks"].clone();
        let named = forks.as_array().map_or(0, Vec::len);
        let listed = scene.provost(&["ps", "--all"]).stdout.lines().count();
        assert_eq!(listed - before + whole, named, "killed after {delay} ms: {forks}");
        if listed == before {
            none += 1;
            continue;
        }
        whole += 1;
        let fork = forks[named - 1]["to"].as_str().unwrap().to_owned();
        assert_eq!(scene.last_run(), fork);
        assert_eq!(messages(&scene, &fork)[..4], messages(&scene, &run)[..4]);
        let log = scene.provost(&["logs", &fork, "--json"]).stdout;
        if !log.contains("\"type\":\"ended\"") {
            assert_eq!(scene.provost(&["resume", &fork]).status, 0);
        }
        assert_eq!(messages(&scene, &fork).len(), 6, "what was said is said once");
    }
    assert_eq!(whole + none, 20);
}

fn git(scene: &Scene, folder: &str, args: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]).args(args);
    let output = command.current_dir(scene.path(folder)).env("HOME", scene.path("home")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_fork_of_an_agent_with_a_worktree_gets_one_of_its_own_from_the_commit_then() {
    let commit = "git -c user.name=a -c user.email=a@b -c commit.gpgsign=false commit -qam work";
    let scene = Scene::scripted(&format!(
        "answers: [{{ tools: [{{ helper: {{ goal: help }} }}] }}, {{ text: done }}, \
         {{ tools: [{{ shell: {{ command: 'cat a.txt; pwd; echo three > a.txt' }} }}] }}, {{ text: helped again }}]\n\
         agents:\n  - goal: help\n    answers: [{{ tools: [{{ shell: {{ command: 'echo two > a.txt; {commit}' }} }}] }}, \
         {{ text: helped }}]\n"
    ))
    .with_settings("\n[[agents]]\nname = \"helper\"\ndescription = \"Helps.\"\nisolation = \"worktree\"\n");
    scene.write("work/a.txt", "one\n");
    git(&scene, "work", &["init", "-qb", "main"]);
    git(&scene, "work", &["add", "-A"]);
    git(&scene, "work", &["commit", "-qm", "first"]);
    let ran = scene.provost(&["run", "look"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let run = scene.last_run();
    let forked = scene.provost(&["fork", &format!("{run}.1"), "and again"]);
    assert!(forked.stdout.starts_with("helped again"), "{forked:?}");
    let fork = scene.last_run();
    let view = messages(&scene, &fork);
    let result =
        view.iter().rev().find(|message| message.to_string().contains("tool_result")).unwrap().to_string();
    assert!(result.contains("two") && result.contains(&format!("{fork}-0")), "{result}");
    let told = format!("a git worktree of your own on the branch provost/{fork}-0");
    assert!(view.iter().any(|message| message.to_string().contains(&told)), "{view:?}");
    assert_eq!(fs::read_to_string(scene.path("work/a.txt")).unwrap(), "one\n");
    let branches = git(&scene, "work", &["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
    assert!(
        branches.contains(&format!("provost/{fork}-0")) && branches.contains(&format!("provost/{run}-1")),
        "{branches}"
    );
    assert_eq!(
        git(&scene, "work", &["show", &format!("provost/{run}-1:a.txt")]),
        "two\n",
        "the other's is as it was"
    );
}
