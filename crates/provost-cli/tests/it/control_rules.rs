//! Control from outside: permissions, stop hooks, approvals, trust, and what `provost explain` shows about them.

use serde_json::Value;

use crate::control::{
    ONE, TWO, check, decisions, effects, entries, explained, hook, lawful, log, read, refused_with, row,
    scene,
};
use crate::support::{Running, Scene, gone, json, line_in, until};

// ---- permissions ----------------------------------------------------------------------------------------------------

#[test]
fn a_denied_pattern_beats_a_hook_that_allows() {
    let allow =
        r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'"#;
    let settings = hook("PreToolUse", "yes", allow, "contract = \"claude\"")
        + "[permissions]\ndeny = [\"shell(echo *)\"]\n";
    let scene = scene(&refused_with("permissions"), &settings);
    check(&scene.provost(&["run", "x"]), 0);
    assert_eq!(effects(&scene), "");
    let log = log(&scene);
    lawful(&log);
    assert_eq!(decisions(&log, "yes"), [Value::from("allow")]);
    let agent = explained(&scene);
    assert_eq!(row(&agent, "hooks", "yes")["allowed"], 1);
}

#[test]
fn a_hooks_allow_lifts_the_default_question_but_no_pattern() {
    let allow =
        r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'"#;
    for (permissions, is_asked) in [("default = \"ask\"\n", false), ("ask = [\"shell\"]\n", true)] {
        let settings = hook("PreToolUse", "yes", allow, "contract = \"claude\"")
            + "[permissions]\napproval_timeout = \"1s\"\n"
            + permissions;
        let scene = scene(ONE, &settings);
        check(&scene.provost(&["run", "x"]), 0);
        assert_eq!(entries(&log(&scene), "approval_requested").len(), usize::from(is_asked), "{permissions}");
        assert_eq!(effects(&scene), if is_asked { "" } else { "one\n" });
    }
}

/// None of `commands` does anything where `rm` is denied.
#[track_caller]
fn nothing_is_done(commands: &[&str]) {
    for command in commands {
        let script = format!(
            "answers:\n  - tools: [{{ shell: {{ command: \"{command}\" }} }}]\n  - text: as you wish\n"
        );
        let scene = Scene::scripted(&script).with_settings("[permissions]\ndeny = [\"shell(rm *)\"]\n");
        scene.write("work/gone/file", "");
        check(&scene.provost(&["run", "x"]), 0);
        assert!(scene.path("work/gone/file").exists() && effects(&scene).is_empty(), "{command}");
    }
}

#[test]
fn a_denied_part_denies_a_chain() {
    nothing_is_done(&[
        "echo fine >> effects && rm -rf gone",
        "echo fine >> effects; rm -rf gone",
        "echo fine >> effects | rm -rf gone",
        "echo fine >> effects || rm -rf gone",
        "echo fine >> effects & rm -rf gone",
        "echo $(rm -rf gone) >> effects",
        "echo `rm -rf gone` >> effects",
        "echo \\\"$(rm -rf gone)\\\" >> effects",
        "(rm -rf gone); echo fine >> effects",
        "{ rm -rf gone; echo fine >> effects; }",
        "if true; then rm -rf gone; fi; echo fine >> effects",
        "cat <(rm -rf gone); echo fine >> effects",
        "sudo rm -rf gone; echo fine >> effects",
    ]);
}

#[test]
fn a_denied_part_denies_what_wraps_it() {
    nothing_is_done(&[
        "env A=1 rm -rf gone; echo fine >> effects",
        "A=1 rm -rf gone; echo fine >> effects",
        "sh -c 'rm -rf gone'; echo fine >> effects",
        "bash -c \\\"rm -rf gone\\\"; echo fine >> effects",
        "echo gone | xargs rm -rf; echo fine >> effects",
        "/bin/rm -rf gone; echo fine >> effects",
        "\\\\rm -rf gone; echo fine >> effects",
        "r'm' -rf gone; echo fine >> effects",
        "time rm -rf gone; echo fine >> effects",
        "! rm -rf gone; echo fine >> effects",
        "echo fine >> effects\\nrm -rf gone",
        "nohup rm -rf gone >/dev/null; echo fine >> effects",
        "find . -name gone -exec rm -rf {} +; echo fine >> effects",
    ]);
}

#[test]
fn a_denied_part_denies_what_holds_it() {
    nothing_is_done(&[
        "eval 'rm -rf gone'; echo fine >> effects",
        "rm  -rf gone; echo fine >> effects",
        "rm -rf \\\\\\ngone; echo fine >> effects",
        "f() { rm -rf gone; }; f; echo fine >> effects",
        "timeout 5 rm -rf gone; echo fine >> effects",
        "command rm -rf gone; echo fine >> effects",
        "exec rm -rf gone",
        "while true; do rm -rf gone; break; done; echo fine >> effects",
        "case a in a) rm -rf gone;; esac; echo fine >> effects",
        "cat <<EOF\\n$(rm -rf gone)\\nEOF\\necho fine >> effects",
        "echo ${x:-$(rm -rf gone)} >> effects",
    ]);
}

// ---- stop hooks -----------------------------------------------------------------------------------------------------

#[test]
fn halt_beats_block_and_reasons_come_in_their_configured_order() {
    let stop =
        |name: &str, command: &str| format!("[[stop_hooks]]\nname = \"{name}\"\ncommand = '''{command}'''\n");
    let script = "
answers:
  - text: done?
  - expect: { contains: [slow says no, quick says no] }
    text: done now
";
    let slow =
        stop("slow", "cat > slow.json; sleep 0.2; test -e go || { touch go; echo slow says no; exit 2; }");
    let quick =
        stop("quick", "cat > quick.json; test -e went || { touch went; echo quick says no; exit 2; }");
    let both = scene(script, &(slow.clone() + &quick));
    let ran = both.provost(&["run", "x"]);
    check(&ran, 0);
    let log = log(&both);
    let item = entries(&log, "system_item")[0]["body"].as_str().unwrap().to_owned();
    assert!(item.find("slow says no").unwrap() < item.find("quick says no").unwrap(), "{item}");
    assert_eq!(json(&read(&both, "slow.json"))["stop_hook_active"], true);
    let halt = scene(script, &(slow + &quick + &stop("halt", "echo no more; exit 3")));
    let ran = halt.provost(&["run", "x"]);
    check(&ran, 5);
    assert!(ran.stderr.contains("no more"), "{ran:?}");
}

#[test]
fn the_same_block_about_nothing_new_ends_as_blocked() {
    for settings in [
        "[[stop_hooks]]\nname = \"never\"\ncommand = \"echo tests fail; exit 2\"\n".to_owned(),
        hook("stop", "never", "echo tests fail; exit 2", ""),
        hook(
            "Stop",
            "never",
            r#"echo '{"decision":"block","reason":"tests fail"}'"#,
            "contract = \"claude\"",
        ),
    ] {
        let answers = (0..6).map(|n| format!("  - text: done {n}\n")).collect::<String>();
        let scene = scene(&format!("answers:\n{answers}"), &settings);
        let ran = scene.provost(&["run", "x"]);
        check(&ran, 4);
        assert!(ran.stderr.contains("tests fail"), "{ran:?}");
        let log = log(&scene);
        assert_eq!(entries(&log, "stop_verdicts").len(), 2, "{settings}");
        assert!(entries(&log, "paused").iter().all(|rest| rest["outcome"]["kind"] == "blocked"), "{log:?}");
    }
}

#[test]
fn a_stop_hook_that_is_broken_and_may_be_ignored_is_told_and_blocks_nothing() {
    let scene = scene(
        ONE,
        "[[stop_hooks]]\nname = \"broken\"\ncommand = \"/no/such/program\"\non_error = \"ignore\"\n",
    );
    let ran = scene.provost(&["run", "x"]);
    check(&ran, 0);
    assert!(ran.stderr.contains("broken"), "{ran:?}");
    assert_eq!(row(&explained(&scene), "stop_hooks", "broken")["consulted"], 1);
}

// ---- approvals ------------------------------------------------------------------------------------------------------

fn waiting(scene: &Scene, args: &[&str]) -> (Running, String) {
    let running = scene.start(args);
    let name = until("a question is asked", || {
        let listed = scene.provost(&["approvals", "--json"]).stdout;
        listed.lines().last().map(|line| json(line)["id"].as_str().unwrap().to_owned())
    });
    (running, name)
}

#[test]
fn a_hook_that_asks_waits_for_approval_or_denial() {
    let ask = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"is it wise?"}}'"#;
    for (verb, done) in [("approve", "one\n"), ("deny", "")] {
        let scene = scene(ONE, &hook("PreToolUse", "unsure", ask, "contract = \"claude\""));
        let (running, name) = waiting(&scene, &["run", "x"]);
        let listed = scene.provost(&["approvals"]).stdout;
        assert!(listed.contains("is it wise?") && listed.contains("unsure"), "{listed}");
        check(&scene.provost(&[verb, &name]), 0);
        check(&running.end(), 0);
        assert_eq!(effects(&scene), done);
        let log = log(&scene);
        lawful(&log);
        let agent = explained(&scene);
        assert_eq!(
            (&row(&agent, "hooks", "unsure")["asked"], &agent["approvals"]["asked"]),
            (&1.into(), &1.into())
        );
        let field = if verb == "approve" { "allowed_once" } else { "denied" };
        assert_eq!(agent["approvals"][field], 1, "{agent}");
    }
}

#[test]
fn one_yes_is_for_one_call_only() {
    let scene = scene(TWO, "[permissions]\nask = [\"shell\"]\n");
    let (running, first) = waiting(&scene, &["run", "x"]);
    check(&scene.provost(&["approve", &first]), 0);
    let second = until("it is asked again", || {
        let listed = scene.provost(&["approvals", "--json"]).stdout;
        listed
            .lines()
            .last()
            .map(|line| json(line)["id"].as_str().unwrap().to_owned())
            .filter(|name| *name != first)
    });
    assert_eq!(effects(&scene), "one\n");
    check(&scene.provost(&["approve", &first]), 1);
    assert_eq!(effects(&scene), "one\n", "a late yes to the first question is none to the second");
    check(&scene.provost(&["deny", &second]), 0);
    check(&running.end(), 0);
    assert_eq!(effects(&scene), "one\n");
    lawful(&log(&scene));
}

#[test]
fn the_runs_time_ends_a_question_and_a_hook_too() {
    for settings in [
        "[permissions]\nask = [\"shell\"]\n".to_owned(),
        hook("pre_tool_call", "slow", "echo $$ > hook.pid; sleep 30", "timeout_secs = 1"),
    ] {
        let scene = scene(ONE, &(settings + "[budget]\nwall_time = \"1s\"\n"));
        let ran = scene.provost(&["run", "x"]);
        check(&ran, 3);
        assert_eq!(effects(&scene), "");
        let log = log(&scene);
        assert_eq!(entries(&log, "tool_started").len(), 0);
        assert!(entries(&log, "tool_finished").len() <= 1);
    }
}

#[test]
fn a_cancel_ends_what_a_hook_runs() {
    let scene = scene(ONE, &hook("pre_tool_call", "slow", "echo $$ > hook.pid; sleep 30; true", ""));
    let running = scene.start(&["run", "x"]);
    let pid = line_in(&scene.path("work/hook.pid"));
    check(&scene.provost(&["cancel", "last"]), 0);
    check(&running.end(), 130);
    gone(&pid);
    let log = log(&scene);
    lawful(&log);
    assert_eq!((effects(&scene).as_str(), entries(&log, "tool_started").len()), ("", 0));
    let shown = scene.provost(&["explain", "last"]);
    check(&shown, 0);
}

// ---- trust ----------------------------------------------------------------------------------------------------------

#[test]
fn a_changed_byte_is_a_change_wherever_it_stands() {
    let scene = scene(ONE, &hook("stop", "mark", "echo ran >> ran", ""));
    check(&scene.provost(&["run", "x"]), 0);
    assert_eq!(read(&scene, "ran"), "ran\n");
    let settings = read(&scene, "provost.toml");
    for changed in [
        settings.clone() + "\n",
        settings.replace("ran >> ran", "ran >> ran "),
        settings.replace("mark", "Mark"),
    ] {
        scene.write("work/provost.toml", &changed);
        let ran = scene.provost(&["run", "x"]);
        check(&ran, 2);
        assert!(ran.stderr.contains("provost trust"), "{ran:?}");
        assert_eq!(read(&scene, "ran"), "ran\n");
    }
    scene.write("work/provost.toml", &settings);
    check(&scene.provost(&["run", "x"]), 0);
    assert_eq!(read(&scene, "ran"), "ran\nran\n", "what was agreed to is agreed to");
}

#[test]
fn trust_is_of_a_place_too() {
    let scene = scene(ONE, &hook("stop", "mark", "echo ran >> ran", ""));
    for name in ["provost.toml", "agent.yaml"] {
        scene.write(&format!("elsewhere/{name}"), &read(&scene, name));
    }
    let ran = scene.command(&["run", "x"]).current_dir(scene.path("elsewhere")).output().unwrap();
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
    assert!(!scene.path("elsewhere/ran").exists());
}

#[test]
fn a_projects_file_cant_loosen_what_the_user_denies() {
    let scene = Scene::scripted(&refused_with("permissions"));
    scene.write("home/.config/provost/config.toml", "[permissions]\ndeny = [\"shell(echo *)\"]\n");
    let scene = scene
        .with_settings("[permissions]\nallow = [\"shell(echo one *)\", \"shell\"]\ndefault = \"allow\"\n")
        .trusted();
    check(&scene.provost(&["run", "x"]), 0);
    assert_eq!(effects(&scene), "");
}

// ---- explain --------------------------------------------------------------------------------------------------------

#[test]
fn explain_counts_what_the_log_has() {
    let settings = hook("pre_tool_call", "odd", "grep -q two && { echo no; exit 2; }; exit 0", "")
        + &hook("post_tool_call", "after", "exit 0", "")
        + &hook("pre_tool_call", "writes", "exit 2", "matcher = \"write_file\"")
        + &hook("pre_compact", "never", "exit 2", "")
        + "[permissions]\ndeny = [\"shell(rm *)\"]\nask = [\"read_file\"]\n"
        + "[[stop_hooks]]\nname = \"tests\"\ncommand = \"exit 0\"\n";
    let scene = scene(TWO, &settings);
    check(&scene.provost(&["run", "x"]), 0);
    let (log, agent) = (log(&scene), explained(&scene));
    for name in ["odd", "after", "writes", "never"] {
        let (said, row) = (decisions(&log, name), row(&agent, "hooks", name));
        assert_eq!(row["consulted"], said.len(), "{row}");
        let denied = said.iter().filter(|decision| decision.get("deny").is_some()).count();
        assert_eq!(row["denied"], denied, "{row}");
        let continued = said.iter().filter(|decision| **decision == "continue").count();
        assert_eq!(row["continued"], continued, "{row}");
        assert_eq!(row["say"] == "consulted", !said.is_empty(), "{row}");
    }
    assert_eq!(row(&agent, "stop_hooks", "tests")["consulted"], 1);
    let text = scene.provost(&["explain", "last"]).stdout;
    for name in ["odd", "after", "writes", "never", "shell(rm *)", "read_file", "tests"] {
        assert!(text.contains(name), "{name} isn't in {text}");
    }
}
