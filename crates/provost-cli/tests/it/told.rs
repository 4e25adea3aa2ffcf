//! Messages to the user: how to resume a run, uncertain amounts, invisible characters, and text that is too long.

use crate::approvals::{asks, killed};
use crate::support::{Scene, json, line_in, sealed, until};

#[track_caller]
fn has(text: &str, words: &str) {
    assert!(text.contains(words), "`{words}` isn't in {text}");
}

#[test]
fn every_end_says_how_to_go_on_and_what_makes_a_difference() {
    let failing = "answers: [{ expect: { contains: never said }, text: x }]";
    let scene = Scene::scripted(failing);
    let failed = scene.provost(&["run", "x"]);
    let run = scene.last_run();
    assert_eq!(failed.status, 1, "{failed:?}");
    let on = format!("provost resume {run}  (once the script is right; or --model NAME)");
    has(&failed.stderr, &format!("\ngo on with: {on}\n"));
    has(&scene.provost(&["show", "last"]).stdout, &format!("\ngo on with  {on}\n"));

    let hook = "[[hooks]]\nname = \"guard\"\nevent = \"pre_tool_call\"\ncommand = \"exit 3\"\n";
    let scene = Scene::scripted("answers: [{ tools: [list_dir] }]").with_settings(hook).trusted();
    let aborted = scene.provost(&["run", "x"]);
    assert_eq!(aborted.status, 5, "{aborted:?}");
    let run = scene.last_run();
    let on = format!(
        "go on with: provost resume {run} \"what to do otherwise\"  (hook guard is asked again; once it is changed in the \
         settings: --with-settings)\n"
    );
    has(&aborted.stderr, &on);

    let scene = Scene::scripted("answers: [{ text: done }, { text: more }]");
    let completed = scene.provost(&["run", "x"]);
    has(&completed.stderr, &format!("go on with: provost resume {} \"and now …\"\n", scene.last_run()));
}

#[test]
fn a_settings_file_that_was_named_is_named_again_where_it_is_to_be_taken() {
    let scene = Scene::scripted("answers: [{ text: done }, { text: again }]");
    let check = "[[stop_hooks]]\nname = \"tests\"\ncommand = \"echo no; exit 2\"\n";
    scene.write("other/its own.toml", &format!("[agent]\nmodel = \"script:../work/agent.yaml\"\n{check}"));
    let blocked = scene.provost(&["run", "x", "--config", "../other/its own.toml"]);
    assert_eq!(blocked.status, 4, "{blocked:?}");
    let stable = scene.stable(&blocked.stderr);
    has(
        &stable,
        "(--config '/FOLDER/work/../other/its own.toml' --with-settings takes checks that were changed",
    );
}

#[test]
fn what_cant_be_seen_is_spelled_out_wherever_a_goal_is_shown() {
    let scene = Scene::scripted("answers: [{ text: \"user\\u202Egpj.exe\" }]");
    let ran = scene.provost(&["run", "open user\u{202e}gpj.exe"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    for args in [&["ps"][..], &["show", "last"], &["logs", "last"]] {
        let shown = scene.provost(args).stdout;
        has(&shown, "open user\\u{202e}gpj.exe");
        assert!(!shown.contains('\u{202e}'), "{args:?}: {shown}");
    }
    has(&ran.stdout, "user\\u{202e}gpj.exe");
}

#[test]
fn a_long_goal_is_shown_by_its_beginning_and_where_all_of_it_is() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    let goal = format!("Read this.\n{}the end", "words ".repeat(20_000));
    scene.write("work/goal.txt", &goal);
    let ran = scene.provost(&["run", "--file", "goal.txt"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let run = scene.last_run();
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.len() < 3_000, "{} bytes: {shown}", shown.len());
    has(&shown, &format!("… (117 KB in all; all of it: provost logs {run} --entry 1)"));
    has(&scene.provost(&["logs", &run, "--entry", "1"]).stdout, "words the end");
}

#[test]
fn an_agent_that_isnt_there_is_said_to_be_none_also_where_the_run_has_ended() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    scene.provost(&["run", "x"]);
    for command in ["resume", "pause", "cancel"] {
        let done = scene.provost(&[command, "last.7"]);
        assert_eq!(done.status, 2, "{done:?}");
        has(&done.stderr, &format!("run {} has no agent 7; its one agent, 0, is done", scene.last_run()));
    }
}

#[test]
fn a_final_summary_that_is_a_tool_call_is_said_to_be_none() {
    let call = "[{ shell: { command: true } }]";
    let scene =
        Scene::scripted(&format!("answers: [{{ tools: {call} }}]\nfinal_summary: {{ tools: {call} }}\n"));
    let ran = scene.provost(&["run", "x", "--max-turns", "1"]);
    assert_eq!(ran.status, 3, "{ran:?}");
    has(&ran.stderr, "\nno final summary: the model answered with a tool call instead of text");
    let shown = scene.provost(&["show", "last"]).stdout;
    has(&shown, "no final summary at the limit: the model answered with a tool call instead of text");
}

#[test]
fn a_check_that_floods_is_told_with_all_that_it_printed_and_in_few_lines() {
    let check = "[[stop_hooks]]\nname = \"flood\"\ncommand = \"yes abc | head -c 5000000; exit 1\"\n";
    let scene = Scene::scripted("answers: [{ text: done }, { text: again }]").with_settings(check).trusted();
    let ran = scene.provost(&["run", "x"]);
    has(&ran.stderr, "[5,000,000 bytes printed, of which the last 4,095 are kept]");
    has(&ran.stderr, " --json` has as much of it as is kept)");
    assert!(ran.stderr.len() < 3_000, "{} bytes", ran.stderr.len());
    assert!(scene.provost(&["show", "last"]).stdout.len() < 3_000);
}

/// The log of a run whose process wrote all of it an hour ahead of the current clock.
fn an_hour_ahead(log: &str) -> String {
    let lines = log.lines().map(|line| {
        let mut entry = json(line);
        entry.as_object_mut().unwrap().remove("chain");
        for field in ["at_ms", "due"] {
            if let Some(at) = entry[field].as_u64() {
                entry[field] = (at + 3_600_000).into();
            }
        }
        format!("{entry}\n")
    });
    sealed(&lines.collect::<String>())
}

#[test]
fn with_the_clock_set_back_a_question_has_no_more_time_than_it_was_given() {
    let scene = asks("answers: [{ tools: [{ shell: { command: 'true' } }] }, { text: done }]");
    killed(&scene);
    let log = scene.provost(&["export", "last"]).stdout;
    let there = Scene::new();
    there.write("work/set.jsonl", &an_hour_ahead(&log));
    assert_eq!(there.provost(&["import", "set.jsonl"]).status, 0);
    let shown = there.provost(&["approvals"]).stdout;
    has(&shown, "  left    at most 1h00m; the run is interrupted\n");
    has(&shown, "  asked   not known when: the clock was set since\n");
    has(&there.provost(&["show", "last", "--global"]).stdout, "left: at most 1h00m; the run is interrupted");
    let listed = there.provost(&["ps"]).stdout;
    assert!(!listed.contains(" 1h"), "{listed}");
}

#[test]
fn todays_settings_are_told_in_their_own_words() {
    let scene = Scene::scripted("answers: [{ text: done }, { text: more }]");
    scene.write("work/provost.toml", "[agent]\nmodel = \"script:agent.yaml\"\nmax_turns = 9\n");
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let settings = "[agent]\nmodel = \"script:agent.yaml\"\n[budget]\ntokens = 500_000\nwall_time = \"2h\"\n[spawn]\nmax_agents = 1\n\
                    [permissions]\nallow = [\"read_file\"]\n[[hooks]]\nname = \"h\"\nevent = \"pre_tool_call\"\ncommand = \"true\"\n";
    scene.write("work/provost.toml", settings);
    let scene = scene.trusted();
    let resumed = scene.provost(&["resume", "last", "--with-settings", "more"]);
    assert_eq!(resumed.status, 0, "{resumed:?}");
    has(&resumed.stderr, "agent.max_turns: 9 → no limit\n");
    has(&resumed.stderr, "budget.tokens: no limit → 500,000\n");
    has(&resumed.stderr, "budget.wall_time: no limit → 2h\n");
    has(&resumed.stderr, "tools: without spawn_agent\n");
    has(&resumed.stderr, "permissions.allow: (not set) → read_file\n");
    has(&resumed.stderr, "hooks.h: (not set) → true\n");
    let internals = ["input_schema", "4294967295", "{\""];
    assert!(internals.iter().all(|word| !resumed.stderr.contains(word)), "{resumed:?}");
}

#[test]
fn at_a_limit_that_is_used_up_the_command_that_goes_on_adds_to_it() {
    let scene = Scene::scripted("answers: [{ text: done }, { text: more }]");
    let completed = scene.provost(&["run", "x", "--max-turns", "1"]);
    assert_eq!(completed.status, 0, "{completed:?}");
    let run = scene.last_run();
    has(&completed.stderr, &format!("go on with: provost resume {run} --max-turns 1 \"and now …\"\n"));
    let resumed = scene.provost(&["resume", &run, "--max-turns", "1", "and now more"]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "more\n"), "{resumed:?}");
}

/// The log of a run all of which happened within one millisecond of its elapsed time.
fn within_a_millisecond(log: &str) -> String {
    let lines = log.lines().map(|line| {
        let mut entry = json(line);
        entry.as_object_mut().unwrap().remove("chain");
        if entry["elapsed_ms"].is_u64() {
            entry["elapsed_ms"] = 7.into();
        }
        format!("{entry}\n")
    });
    sealed(&lines.collect::<String>())
}

#[test]
fn each_log_is_shown_in_its_order_also_over_segments() {
    let scene = Scene::scripted("answers: [{ text: done }, { text: more }]");
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    assert_eq!(scene.provost(&["resume", "last", "more"]).status, 0);
    let there = Scene::new();
    there.write("work/fast.jsonl", &within_a_millisecond(&scene.provost(&["export", "last"]).stdout));
    let imported = there.provost(&["import", "fast.jsonl"]);
    assert_eq!(imported.status, 0, "{imported:?}");
    for (scene, args) in [&scene, &there].into_iter().flat_map(|scene| {
        [&["logs", "last", "--json"][..], &["logs", "last", "--json", "--agent", "run"]]
            .map(|args| (scene, args))
    }) {
        let shown = scene.provost(args).stdout;
        let mut last = std::collections::HashMap::new();
        for entry in shown.lines().map(json) {
            let seq = entry["seq"].as_u64().unwrap();
            let before = last.insert(entry["actor"].to_string(), seq).unwrap_or_default();
            assert_eq!(before + 1, seq, "{args:?}: {shown}");
        }
    }
}

#[test]
fn what_a_killed_call_may_have_taken_is_told_before_it_is_known() {
    let scene = Scene::scripted("answers: [{ text: done, delay_ms: 600000 }]");
    let running = scene.start(&["run", "x", "--tokens", "50000"]);
    until("the model is called", || {
        let log = scene.provost(&["logs", "last"]);
        log.stdout.contains("model_called").then_some(())
    });
    running.kill();
    let cost = scene.provost(&["cost", "last"]).stdout;
    has(&cost, "no provider has reported anything yet\nnot in it: at most $0.00 and ");
    has(&scene.provost(&["ps"]).stdout, " ~0 ");
    has(&scene.provost(&["show", "last"]).stdout, " more for calls without a report\n");
}

#[test]
fn a_resumed_run_waits_for_its_provider_as_long_as_its_own_settings_say() {
    let scene = Scene::new();
    scene.write(
        "home/.config/provost/config.toml",
        "[providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"\n",
    );
    scene.write("work/provost.toml", "[limits]\nmodel_patience = \"1s\"\noutage_max = \"1s\"\n");
    let ran = scene.provost(&["run", "x", "--model", "mine/big", "--allow-unpriced", "--usd", "1"]);
    assert_eq!(ran.status, 4, "{ran:?}");
    let resumed = scene.provost(&["resume", "last"]);
    assert_eq!(resumed.status, 4, "{resumed:?}");
    let log = scene.provost(&["logs", "last", "--json"]).stdout;
    assert!(!log.contains("outage_wait_changed"), "{log}");
}

#[test]
fn a_call_that_was_begun_before_the_resume_is_shown_with_its_arguments() {
    let scene = Scene::scripted(
        "answers: [{ tools: [{ shell: { command: 'echo $$ > pid; sleep 600' } }] }, { text: done }]",
    );
    let running = scene.start(&["run", "x"]);
    line_in(&scene.path("work/pid"));
    running.kill();
    let resumed = scene.provost(&["resume", "last"]);
    let line = resumed.stderr.lines().find(|line| line.contains("shell")).unwrap_or_default();
    assert!(line.contains("sleep 600"), "{resumed:?}");
}

#[test]
fn a_suspended_agent_whose_result_was_delivered_says_so() {
    let scene = Scene::scripted(
        "answers: [{ tools: [{ reader: { goal: read it } }] }, { text: done }]\nagents:\n  - goal: read it\n    answers: [{ tools: [list_dir] }, { tools: [list_dir] }]\n",
    )
    .with_settings("[[agents]]\nname = \"reader\"\ndescription = \"reads\"\nmax_turns = 1\n");
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let log = scene.provost(&["logs", "last.1"]).stdout;
    let words = "cancelled by its run: it was suspended, and what it had come to was delivered";
    assert!(log.contains(words) && !log.contains("agent that asked"), "{log}");
}
