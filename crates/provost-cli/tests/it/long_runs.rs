//! The output about conversations that outgrow their model's window, and about the final summary at limits.

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::on_terminal::{on_terminal, raw_on_terminal};
use crate::support::{Scene, json};

/// A scene whose token counts are nearly the same on every machine.
fn scripted(script: &str) -> Scene {
    Scene::scripted(script).with_settings("environment = false\n")
}

/// A conversation that fills its window with the agent's own text, which can't be cut to a line.
fn chapters(count: usize, more: &str) -> Scene {
    let content = "All is well that ends well. ".repeat(100);
    let mut script = "window_tokens: 9500\noutput_tokens_max: 1000\nanswers:\n".to_owned();
    for chapter in 1..=count {
        script.push_str(&format!(
            "  - text: Chapter {chapter}.\n    tools: [{{ write_file: {{ path: c{chapter}, content: \"{content}\" }} }}]\n"
        ));
    }
    script.push_str("  - text: All is written.\n");
    scripted(&format!("{script}{more}"))
}

/// A conversation with long results, which can.
fn readings(count: usize) -> Scene {
    let mut script = "window_tokens: 9500\noutput_tokens_max: 1000\nanswers:\n".to_owned();
    for part in 1..=count {
        script.push_str(&format!("  - tools: [{{ shell: {{ command: \"seq {part}000 {part}700\" }} }}]\n"));
    }
    scripted(&format!("{script}  - text: All is read.\n"))
}

const SUMMARIES: &str = "summaries:\n  - text: The first chapters are written.\n  - fault: empty\n";

/// The lines of the run's output that begin with one of `of`.
fn shown(scene: &Scene, text: &str, of: &[&str]) -> String {
    let lines = text.lines().filter(|line| of.iter().any(|words| line.starts_with(words)));
    scene.stable(&lines.map(|line| format!("{line}\n")).collect::<String>())
}

/// Numbers of tokens become `Nk`, since the name of the workspace is a part of each request; that a conversation got
/// shorter is checked.
#[track_caller]
fn check(scene: &Scene, args: &[&str], of: &[&str], expected: Expect) {
    let ran = scene.provost(args);
    let thousands = |word: &str| word.strip_suffix('k').and_then(|number| number.parse::<f64>().ok());
    let mut text = String::new();
    for line in shown(scene, &ran.stderr, of).lines() {
        let numbers = line.split(' ').filter_map(thousands).collect::<Vec<f64>>();
        if let [before, after] = numbers[..] {
            assert!(after < before, "{line}");
        }
        let words = line.split(' ').map(|word| if thousands(word).is_some() { "Nk" } else { word });
        text.push_str(&words.collect::<Vec<&str>>().join(" "));
        text.push('\n');
    }
    expected.assert_eq(&text);
}

/// The fields of the newest run's entries of a kind.
fn entries(scene: &Scene, kind: &str) -> Vec<Value> {
    let log = scene.provost(&["logs", "last", "--json"]).stdout;
    log.lines().map(json).filter(|entry| entry["type"] == kind).collect()
}

#[test]
fn a_run_tells_how_its_conversation_was_shortened() {
    let scene = chapters(14, SUMMARIES);
    check(
        &scene,
        &["run", "Write"],
        &["provost", "retry", "completed"],
        expect![[r#"
            provost: summed up by the agent: entries 1 to 22, Nk → Nk tokens
            retry: no summary to be had: it is empty
            provost: shortened by rule: entries 1 to 49 left out, Nk → Nk tokens
            completed, not verified · 15 turns · Nk tokens · $0.00 · TIME
        "#]],
    );
    assert!(shown(&scene, &scene.provost(&["show", "last"]).stdout, &["calls"]).contains("compactions ("));
    let run = json(&scene.provost(&["show", "last", "--json"]).stdout);
    assert_eq!(run["compactions_by_kind"], json(r#"{"trim":0,"summary":1,"emergency":1}"#));
    assert_eq!((&run["compactions"], &run["retries"]), (&2.into(), &0.into()));
    let scene = readings(9);
    check(
        &scene,
        &["run", "Read"],
        &["provost", "completed"],
        expect![[r#"
            provost: shortened: results up to entry 15 are a line each, Nk → Nk tokens
            provost: shortened: results up to entry 31 are a line each, Nk → Nk tokens
            completed, not verified · 10 turns · Nk tokens · $0.00 · TIME
        "#]],
    );
}

#[test]
fn the_log_shows_an_entry_as_it_was_and_the_conversation_as_it_is() {
    let scene = chapters(6, SUMMARIES);
    assert_eq!(scene.provost(&["run", "Write"]).status, 0);
    let compacted = &entries(&scene, "compacted")[0];
    let number = compacted["seq"].to_string();
    let entry = scene.provost(&["logs", "last", "--entry", &number]);
    assert_eq!(entry.status, 0, "{entry:?}");
    let (head, rest) = entry.stdout.split_once("what stands for it:\n\n").unwrap();
    assert!(head.contains(&format!("entry {number} of agent 0 · compacted · ")), "{head}");
    assert_eq!(rest.trim_end(), compacted["summary"].as_str().unwrap());
    assert_eq!(&json(&scene.provost(&["logs", "last", "--entry", &number, "--json"]).stdout), compacted);

    let first = &entries(&scene, "assistant_message")[0];
    let shown = scene.provost(&["logs", "last", "--entry", &first["seq"].to_string()]).stdout;
    assert!(shown.contains(&format!("the agent no longer sees it: entry {number} stands for it")), "{shown}");
    assert!(
        shown.contains("Chapter 1.\n\n→ write_file {\"path\":\"c1\",\"content\":\"All is well"),
        "{shown}"
    );

    let view = scene.provost(&["logs", "last", "--view"]).stdout;
    assert!(view.contains(&format!("entry {number} stands for entries 1 to ")), "{view}");
    assert!(view.contains("The first chapters are written.") && view.contains("\n── the agent\nChapter 6."));
    assert!(!view.contains("Chapter 1."), "{view}");
    let view = json(&scene.provost(&["logs", "last", "--view", "--json"]).stdout);
    assert_eq!(view["summed_up_at"].to_string(), number);
    assert_eq!(view["messages"][0]["role"], "user");
    let parts = view["messages"][0]["parts"].as_array().unwrap();
    let announced = parts[0]["text"].as_str().unwrap();
    assert!(announced.starts_with("<system-reminder id="), "{announced}");
    assert_eq!(parts[1]["text"], compacted["summary"]);
    let tokens = view["estimated_tokens"].as_u64().unwrap();
    assert!((2_000..7_000).contains(&tokens), "{tokens}");
}

#[test]
fn results_that_became_a_line_are_a_line_in_the_view_and_whole_in_the_log() {
    let scene = readings(9);
    assert_eq!(scene.provost(&["run", "Read"]).status, 0);
    let view = scene.provost(&["logs", "last", "--view"]).stdout;
    assert!(view.contains("← shell\n[left out: ") && view.contains("they begin: 1000 1001"), "{view}");
    let first = &entries(&scene, "tool_finished")[0];
    let entry = scene.provost(&["logs", "last", "--entry", &first["seq"].to_string()]).stdout;
    assert!(entry.contains("\nthe agent now sees a line that stands for it\n"), "{entry}");
    assert!(entry.contains("\n1000\n1001\n") && entry.contains("\n1700\n"), "{entry}");
}

#[test]
fn an_output_that_was_cut_is_shown_as_a_whole() {
    let script = "answers:\n  - tools: [{ shell: { command: seq 1 20000 } }]\n  - text: Done.\n";
    let scene = scripted(script);
    assert_eq!(scene.provost(&["run", "Count"]).status, 0);
    let finished = &entries(&scene, "tool_finished")[0];
    assert!(!finished["output"].as_str().unwrap().contains("\n10000\n"));
    let entry = scene.provost(&["logs", "last", "--entry", &finished["seq"].to_string()]).stdout;
    assert!(entry.contains("; all of the output, of which the agent saw beginning and end)"), "{entry}");
    assert!(entry.contains("\n10000\n") && entry.contains("\n20000\n"));
}

#[test]
fn what_isnt_there_is_said_with_what_is() {
    let scene = scripted("answers: [{text: Done.}]");
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let wrong = [
        &["logs", "last", "--entry", "99"][..],
        &["logs", "last", "--entry", "99", "--agent", "run"],
        &["logs", "last", "--agent", "4"],
        &["logs", "last", "--view", "--agent", "4"],
        &["logs", "last", "--view", "--agent", "run"],
    ];
    let errors = wrong.map(|args| {
        let done = scene.provost(args);
        assert_eq!(done.status, 2, "{args:?} {done:?}");
        scene.stable(&done.stderr)
    });
    expect![[r#"
        error: the log of agent 0 of run RUN has no entry 99: its last is 5
        hint: `provost logs RUN` lists the entries with their numbers
        error: the log of run RUN itself has no entry 99: its last is 4
        hint: `provost logs RUN` lists the entries with their numbers
        error: run RUN has no log of an agent 4
        hint: it has 0
        error: run RUN has no log of an agent 4
        hint: it has 0
        error: the run itself has no conversation
        hint: leave --agent out, or give it an agent's number
    "#]]
    .assert_eq(&errors.concat());
    for args in [
        &["logs", "last", "--entry", "0"][..],
        &["logs", "last", "--entry", "x"],
        &["logs", "last", "--agent", "x"],
        &["logs", "last", "--entry", "1", "--follow"],
        &["logs", "last", "--view", "--follow"],
        &["logs", "last", "--view", "--entry", "1"],
    ] {
        assert_eq!(scene.provost(args).status, 2, "{args:?}");
    }
}

#[test]
fn one_agents_log_or_the_runs_own_can_be_had_alone() {
    let scene = scripted("answers: [{text: Done.}]");
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let lines = |args: &[&str]| scene.provost(args).stdout.lines().map(str::to_owned).collect::<Vec<_>>();
    let all = lines(&["logs", "last"]);
    let (run, agent) =
        (lines(&["logs", "last", "--agent", "run"]), lines(&["logs", "last", "--agent", "0", "-f"]));
    assert_eq!(run.len() + agent.len(), all.len());
    assert!(run.iter().all(|line| line[22..].starts_with("run ")), "{run:?}");
    assert!(agent.iter().all(|line| line[22..].starts_with("0 ")), "{agent:?}");
}

const FINAL_SUMMARY: &str = "final_summary: { text: \"It isn't done yet.\\n\\nNext: the rest.\" }\n";

#[test]
fn at_a_limit_the_final_summary_are_the_runs_text() {
    let limits = [&["--max-turns", "3"][..], &["--tokens", "18000"], &["--wall-time", "10s"]];
    for limit in limits {
        let scene = chapters(20, FINAL_SUMMARY);
        if limit[0] == "--wall-time" {
            let slow = "answers:\n  - tools: [{ shell: { command: 'sleep 600' } }]\n";
            scene.write("work/agent.yaml", &format!("{slow}{FINAL_SUMMARY}"));
        }
        let limit = if limit[0] == "--wall-time" { &["--wall-time", "1s"][..] } else { limit };
        let ran = scene.provost(&[&["run", "Write"], limit].concat());
        assert_eq!(
            (ran.status, ran.stdout.as_str()),
            (3, "It isn't done yet.\n\nNext: the rest.\n"),
            "{ran:?}"
        );
        let words = entries(&scene, "final_summary_finished");
        assert_eq!(words.len(), 1, "{limit:?}");
        assert_eq!(words[0]["text"], "It isn't done yet.\n\nNext: the rest.");
        let run = json(&scene.provost(&["show", "last", "--json"]).stdout);
        assert_eq!(run["last_text"], words[0]["text"]);
        assert!(
            scene
                .provost(&["show", "last"])
                .stdout
                .ends_with("final answer\n  It isn't done yet.\n\n  Next: the rest.\n")
        );
        let spent = run["tokens"].as_u64().unwrap();
        assert!(limit[0] != "--tokens" || spent <= 18_000, "{spent}");
    }
}

#[test]
fn json_tells_the_final_summary_too_and_quiet_says_nothing_else() {
    let scene = chapters(5, FINAL_SUMMARY);
    let ran = scene.provost(&["run", "Write", "--max-turns", "2", "--json"]);
    let words = ran.stdout.lines().map(json).filter(|entry| entry["type"] == "final_summary_finished");
    assert_eq!(words.count(), 1);
    let ran = scene.provost(&["run", "Write", "--max-turns", "2", "--quiet"]);
    assert_eq!(ran.stdout, "It isn't done yet.\n\nNext: the rest.\n");
    assert!(!ran.stderr.contains("words"), "{ran:?}");
}

/// A resumed agent doesn't see the final summary, which doesn't count as a turn.
#[test]
fn final_summary_are_no_turn() {
    let scene = chapters(5, FINAL_SUMMARY);
    assert_eq!(scene.provost(&["run", "Write", "--max-turns", "3"]).status, 3);
    let run = json(&scene.provost(&["show", "last", "--json"]).stdout);
    assert_eq!((&run["turns"], &run["turns_max"]), (&3.into(), &3.into()));
    assert!(!scene.provost(&["logs", "last", "--view"]).stdout.contains("isn't done yet"));
    let explained = json(&scene.provost(&["explain", "last", "--json"]).stdout);
    let turns = &explained["agents"][0]["limits"][0];
    assert_eq!(
        (&turns["name"], &turns["most"], &turns["consulted"]),
        (&"turns".into(), &3.into(), &4.into())
    );
    let resumed = scene.provost(&["resume", "last", "--max-turns", "10"]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "All is written.\n"), "{resumed:?}");
    let run = json(&scene.provost(&["show", "last", "--json"]).stdout);
    assert_eq!(run["turns"], 6);
}

#[test]
fn summaries_are_counted_as_what_they_are() {
    let scene = chapters(14, SUMMARIES);
    assert_eq!(scene.provost(&["run", "Write", "--tokens", "200000", "--usd", "1"]).status, 0);
    let explained = json(&scene.provost(&["explain", "last", "--json"]).stdout);
    let limits = explained["limits"].as_array().unwrap();
    assert!(limits.iter().all(|limit| limit["lowered"].as_u64().unwrap_or(0) == 0), "{limits:?}");
    let turns = &explained["agents"][0]["limits"][0];
    assert_eq!((&turns["most"], &turns["consulted"]), (&15.into(), &15.into()), "{turns}");
}

/// Without a final summary the reason is shown.
#[test]
fn a_script_without_final_summary_has_none_and_a_failure_is_told() {
    let scene = chapters(5, "");
    check(
        &scene,
        &["run", "Write", "--max-turns", "2"],
        &["agent", "provost", "Turn"],
        expect![[r#"
            agent: Chapter 1.
            provost: told that this is its last turn
            agent: Chapter 2.
            provost: stopping: Turn budget of the run used up: 2 of 2
            Turn budget of the run used up: 2 of 2 · 2 turns · Nk tokens · $0.00 · TIME
        "#]],
    );
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains("\nno final summary at the limit: the model's answer was empty\n"), "{shown}");
    let scene = chapters(5, "final_summary: { fault: unauthorized }\n");
    check(
        &scene,
        &["run", "Write", "--max-turns", "2"],
        &["no final summary"],
        expect![[r#"
            no final summary: the provider refused the key: the provider refused the key (scripted)
        "#]],
    );
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains("final answer\n  Chapter 2.\n\nno final summary at the limit: "), "{shown}");
}

#[test]
fn a_limit_that_ends_work_early_says_why() {
    let script = "answers:\n  - tools: [{ shell: { command: 'sleep 600' } }]\n";
    let scene = scripted(script);
    // Enough is kept to end the tool also on a busy machine.
    let ran = scene.provost(&["run", "x", "--wall-time", "4s"]);
    assert_eq!(ran.status, 3);
    let says =
        "Time budget used up: 3.6 s of 4.0 s (the rest is kept to end what runs, and for a final summary) · ";
    assert!(ran.stderr.lines().any(|line| line.starts_with(says)), "{ran:?}");
}

#[test]
fn what_an_agent_no_longer_sees_is_dim_on_a_terminal_with_colours() {
    let scene = chapters(6, SUMMARIES);
    assert_eq!(scene.provost(&["run", "Write"]).status, 0);
    let shown = |command: &str| raw_on_terminal(&scene, &["sh", "-c", command], &[]).stdout;
    let log = shown("\"$PROVOST\" logs last --agent 0");
    let is_dim = |words: &str| {
        let line = log.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}: {log}"));
        line.starts_with("\u{1b}[2m")
    };
    assert!(is_dim("Chapter 1.") && !is_dim("session_started") && !is_dim("Chapter 6."), "{log}");
    assert!(!is_dim("summed up by the agent"), "{log}");
    let colourless = shown("NO_COLOR=1 \"$PROVOST\" logs last --agent 0");
    assert_eq!(colourless, scene.provost(&["logs", "last", "--agent", "0"]).stdout);
}

#[test]
fn the_status_line_says_that_it_sums_up_and_how_far_it_is() {
    let slow = "summaries: [{ text: Chapters are written., delay_ms: 400 }]\n";
    let words = "final_summary: { text: Not yet., delay_ms: 400 }\n";
    let scene = chapters(9, &format!("{slow}{words}"));
    let shown = on_terminal(&scene, &["run", "Write", "--max-turns", "7"], &[]).stdout;
    for words in ["summing up ", "· summed up by the agent: ", "saying how far it is "] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let (_, end) = shown.rsplit_once("saying how far it is").unwrap();
    assert_eq!(end.matches("Not yet.").count(), 1, "{shown}");
}
