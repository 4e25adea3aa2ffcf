//! `provost trust`: requests of a stranger's files have no effect until the user has trusted exactly them.

use std::os::unix::fs::PermissionsExt as _;

use expect_test::{Expect, expect};

use crate::support::{Scene, json};

const USER_FILE: &str = "home/.config/provost/config.toml";
const HOOK: &str = "[[stop_hooks]]\nname = \"mark\"\ncommand = \"touch ran\"\n";

fn scene(settings: &str) -> Scene {
    Scene::scripted("answers: [{ text: done }]").with_settings(settings)
}

/// The requests that need trust in a project with these settings, with this user's.
#[track_caller]
fn wants(user: &str, project: &str, expected: Expect) {
    let scene = scene(project);
    scene.write(USER_FILE, user);
    let trust = &json(&scene.provost(&["check", "--json"]).stdout)["trust"];
    let lines = trust["requests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|wish| format!("{}: {}\n", wish["what"].as_str().unwrap(), wish["body"].as_str().unwrap()));
    let state = trust["state"].as_str().unwrap();
    expected.assert_eq(&(lines.collect::<String>() + state + "\n"));
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status == 2, state == "needed", "{ran:?}");
}

#[test]
fn nothing_runs_before_the_user_has_agreed() {
    let scene = scene(HOOK);
    let refused = scene.provost(&["run", "x"]);
    assert_eq!((refused.status, refused.stdout.as_str()), (2, ""));
    expect![[r#"
        error: the project's files want what you haven't agreed to
            provost.toml:3:1: runs when the agent wants to stop (stop hook mark)
                touch ran
        hint: nothing of this was done; `provost trust` in /FOLDER/work shows it and asks you
    "#]]
    .assert_eq(&scene.stable(&refused.stderr));
    assert!(!scene.path("work/ran").exists() && !scene.path("state/provost.db").exists());
    let scene = scene.trusted();
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    assert!(scene.path("work/ran").exists());
}

#[test]
fn without_a_terminal_only_yes_agrees() {
    let scene = scene(HOOK);
    let refused = scene.provost(&["trust"]);
    assert_eq!(refused.status, 2);
    expect![[r#"
        The files of /FOLDER/work want this:

          provost.toml:3:1: runs when the agent wants to stop (stop hook mark)
              touch ran

        error: this is no terminal, so you can't be asked
        hint: `provost trust --yes` agrees to what is listed above, unasked
    "#]]
    .assert_eq(&scene.stable(&(refused.stdout + &refused.stderr)));
    assert!(!scene.path("state/trust.json").exists());
    let agreed = scene.provost(&["trust", "--yes"]);
    assert_eq!(agreed.status, 0);
    assert!(
        agreed.stdout.contains("touch ran") && agreed.stdout.ends_with("you are asked again.\n"),
        "{agreed:?}"
    );
    assert_eq!(scene.provost(&["trust"]).stdout, "you trust this already\n");
    let mode = std::fs::metadata(scene.path("state/trust.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_changed_byte_needs_trust_again_and_what_is_new_is_marked() {
    let scene = scene(HOOK).trusted();
    let more = "# one more\n[[hooks]]\nevent = \"stop\"\ncommand = \"echo new\"\n";
    let scene = scene.with_settings(more);
    let refused = scene.provost(&["run", "x"]);
    assert_eq!(refused.status, 2);
    expect![[r#"
        error: the project's files want what you haven't agreed to
            provost.toml has changed
            provost.toml:3:1: runs when the agent wants to stop (stop hook mark)
                touch ran
            provost.toml:7:1: new: runs at stop (hook stop: echo new)
                echo new
        hint: nothing of this was done; `provost trust` in /FOLDER/work shows it and asks you
    "#]]
    .assert_eq(&scene.stable(&refused.stderr));
    let scene = scene.trusted();
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    scene.write(
        "work/provost.toml",
        "[agent]\nmodel = \"script:agent.yaml\"\n[[hooks]]\nevent = \"stop\"\ncommand = \"true\"\n",
    );
    let asked = scene.provost(&["trust"]).stdout;
    assert!(asked.contains("no longer: runs when the agent wants to stop (stop hook mark)"), "{asked}");
}

#[test]
fn what_makes_the_agent_freer_needs_consent() {
    wants(
        "",
        "[permissions]\nallow = [\"shell(cargo *)\"]\n",
        expect![[r#"
        lets the agent do without asking: shell(cargo *)
        needed
    "#]],
    );
    wants(
        "",
        "[permissions]\ndefault = \"allow\"\n",
        expect![[r#"
        lets the agent do what no pattern matches: default = "allow"
        needed
    "#]],
    );
    wants(
        "[permissions]\ndefault = \"deny\"\n",
        "[permissions]\ndefault = \"ask\"\n",
        expect![[r#"
        lets the agent ask whether it may do what no pattern matches: default = "ask"
        needed
    "#]],
    );
    wants(
        "[permissions]\ndefault = \"deny\"\n",
        "[permissions]\nask = [\"shell\"]\n",
        expect![[r#"
        lets the agent ask whether it may do: shell
        needed
    "#]],
    );
}

#[test]
fn what_only_restricts_or_isnt_used_needs_none() {
    let restricts = "[permissions]\nask = [\"write_file\"]\ndeny = [\"shell(rm *)\"]\ndefault = \"ask\"\nunanswered = \"pause\"\n";
    wants(
        "",
        restricts,
        expect![[r#"
        not_needed
    "#]],
    );
    wants(
        "[[stop_hooks]]\nname = \"mine\"\ncommand = \"true\"\n",
        "",
        expect![[r#"
        not_needed
    "#]],
    );
}

#[test]
fn what_a_terminal_would_hide_is_shown() {
    let scene = scene("[[stop_hooks]]\nname = \"x\"\ncommand = \"true \\u001b[8m; evil\\u202e\"\n");
    let shown = scene.provost(&["trust"]).stdout;
    assert!(shown.contains(r"true \u{1b}[8m; evil\u{202e}"), "{shown}");
}

#[test]
fn an_imported_file_needs_trust_also_where_the_user_imports() {
    let scene = scene("");
    scene.write(USER_FILE, "[hooks]\nimport = [\"claude\"]\n");
    assert_eq!(scene.provost(&["run", "x"]).status, 0, "there is none");
    let with = |command: &str| {
        let text =
            format!(r#"{{"hooks":{{"Stop":[{{"hooks":[{{"type":"command","command":"{command}"}}]}}]}}}}"#);
        scene.write("work/.claude/settings.json", &text);
    };
    with("exit 0");
    let refused = scene.provost(&["run", "x"]);
    assert!(
        refused.status == 2 && refused.stderr.contains(".claude/settings.json: runs at stop"),
        "{refused:?}"
    );
    assert_eq!(scene.provost(&["trust", "--yes"]).status, 0);
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    with("exit 0 ");
    assert_eq!(scene.provost(&["run", "x"]).status, 2, "a changed byte");
}

#[test]
fn a_file_that_the_user_names_is_the_users() {
    let scene = scene(HOOK);
    assert_eq!(scene.provost(&["run", "x", "--config", "provost.toml"]).status, 0);
}

#[test]
fn a_resumed_run_has_its_own_hooks_whatever_the_files_say_now() {
    let scene =
        Scene::scripted("answers: [{ tools: [list_dir] }, { text: done }]").with_settings(HOOK).trusted();
    assert_eq!(scene.provost(&["run", "x", "--max-turns", "1"]).status, 3);
    let scene = scene.with_settings("[[stop_hooks]]\nname = \"late\"\ncommand = \"touch late\"\n");
    let resumed = scene.provost(&["resume", "last", "--max-turns", "5"]);
    assert_eq!(resumed.status, 0, "{resumed:?}");
    assert!(scene.path("work/ran").exists() && !scene.path("work/late").exists());
}

#[test]
fn trust_is_listed_and_taken_back() {
    let scene = scene(HOOK);
    assert_eq!(scene.provost(&["trust", "--list"]).stdout, "you trust no project yet\n");
    let scene = scene.trusted();
    expect![[r#"
        FOLDER                TRUSTED  FILES
        /FOLDER/work  TIME ago   provost.toml
    "#]]
    .assert_eq(&scene.stable(&scene.provost(&["trust", "--list"]).stdout));
    let scene = scene.with_settings("# changed\n");
    assert!(scene.provost(&["trust", "--list"]).stdout.contains("provost.toml (changed)"));
    std::fs::create_dir(scene.path("work/deep")).unwrap();
    let revoked =
        scene.command(&["trust", "--revoke"]).current_dir(scene.path("work/deep")).output().unwrap();
    assert_eq!(revoked.status.code(), Some(0));
    assert_eq!(scene.provost(&["run", "x"]).status, 2);
    let none = scene.provost(&["trust", "--revoke", "."]);
    assert_eq!(none.status, 2);
    assert!(none.stderr.contains("you don't trust ."), "{none:?}");
}

#[test]
fn what_is_trusted_counts_only_while_it_can_be_read() {
    let scene = scene(HOOK).trusted();
    scene.write("state/trust.json", "{");
    let refused = scene.provost(&["run", "x"]);
    assert!(refused.status == 1 && refused.stderr.contains("can't read what you trust from"), "{refused:?}");
    assert!(!scene.path("work/ran").exists());
}

/// A recording is a file that the project's author names: it could be a start-up file of the user's shell.
#[test]
fn a_project_that_has_models_recorded_needs_trust_for_it() {
    let record = "record:../home/.bash_profile=script:agent.yaml";
    for (settings, more) in [
        (format!("fallback_models = [\"{record}\"]\n"), ""),
        (format!("[goal]\ncondition = \"c\"\njudge = \"{record}\"\n"), ""),
        (format!("[[agents]]\nname = \"a\"\ndescription = \"d\"\nmodel = \"{record}\"\n"), ""),
        (format!("[[agents]]\nname = \"a\"\ndescription = \"d\"\nfallback_models = [\"{record}\"]\n"), ""),
        (format!("[agent]\nmodel = \"{record}\"\n"), "[agent]"),
    ] {
        let scene = scene("");
        if more.is_empty() {
            let own = std::fs::read_to_string(scene.path("work/provost.toml")).unwrap();
            scene.write("work/provost.toml", &format!("{own}{settings}"));
        } else {
            scene.write("work/provost.toml", &settings);
        }
        let checked = json(&scene.provost(&["check", "--json"]).stdout);
        let trust = &checked["trust"];
        assert_eq!(trust["state"], "needed", "{settings}\n{checked}");
        assert_eq!(trust["requests"][0]["body"], record, "{settings}");
        let refused = scene.provost(&["run", "x"]);
        assert_eq!(refused.status, 2, "{refused:?}");
        assert!(refused.stderr.contains("writes what a model says to a file"), "{refused:?}");
        assert!(!scene.path("home/.bash_profile").exists());
    }
}

/// A project with an imported guard and a rule, which the user has trusted.
fn guarded() -> Scene {
    let agent = "answers: [{ tools: [{ shell: { command: touch made } }] }, { text: done }]";
    let scene = Scene::scripted(agent).with_settings("[hooks]\nimport = [\"claude\"]\n");
    scene.write("work/.claude/settings.json", GUARD);
    let scene = scene.trusted();
    let ran = scene.provost(&["run", "x"]);
    assert!(
        ran.status == 0 && ran.stderr.contains("not that") && !scene.path("work/made").exists(),
        "{ran:?}"
    );
    scene
}

const GUARD: &str = r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"echo 'not that' >&2; exit 2"}]}]},"permissions":{"deny":["Bash(rm:*)"]}}"#;

#[test]
fn trusted_guards_are_not_taken_away_unasked() {
    type Change = fn(&Scene);
    let changes: [(&str, Change, &str); 7] = [
        (
            "emptied",
            |scene| scene.write("work/.claude/settings.json", "{}"),
            ".claude/settings.json has changed",
        ),
        (
            "broken",
            |scene| scene.write("work/.claude/settings.json", "{"),
            ".claude/settings.json has changed",
        ),
        (
            "deleted",
            |scene| std::fs::remove_file(scene.path("work/.claude/settings.json")).unwrap(),
            ".claude/settings.json isn't there any more, or can't be read",
        ),
        (
            "switched off",
            |scene| scene.write("work/.claude/settings.local.json", r#"{"disableAllHooks":true}"#),
            ".claude/settings.local.json is new",
        ),
        (
            "a folder",
            |scene| {
                std::fs::remove_file(scene.path("work/.claude/settings.json")).unwrap();
                std::fs::create_dir(scene.path("work/.claude/settings.json")).unwrap();
            },
            ".claude/settings.json in /FOLDER/work is no file or folder that can be read",
        ),
        (
            "a dangling link",
            |scene| {
                std::fs::remove_dir_all(scene.path("work/.claude")).unwrap();
                std::os::unix::fs::symlink("nowhere", scene.path("work/.claude")).unwrap();
            },
            ".claude in /FOLDER/work is no file or folder that can be read",
        ),
        (
            "no import",
            |scene| std::fs::remove_file(scene.path("work/provost.toml")).unwrap(),
            "provost.toml isn't there any more, or can't be read",
        ),
    ];
    for (name, change, told) in changes {
        let scene = guarded();
        change(&scene);
        let ran = scene.provost(&["run", "x"]);
        assert_eq!(ran.status, 2, "{name}: {ran:?}");
        let said = scene.stable(&ran.stderr);
        assert!(said.contains(told), "{name}: {said}");
        assert!(!scene.path("work/made").exists(), "{name}");
    }
}

#[test]
fn a_user_may_agree_to_having_no_guards_any_more() {
    let scene = guarded();
    scene.write("work/.claude/settings.json", "{}");
    let trusted = scene.provost(&["trust", "--yes"]);
    assert!(trusted.stdout.contains("  no longer: runs at pre_tool_call Bash"), "{trusted:?}");
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    assert!(scene.path("work/made").exists());
    std::fs::remove_file(scene.path("work/provost.toml")).unwrap();
    assert_eq!(scene.provost(&["run", "x"]).status, 2);
    assert_eq!(scene.provost(&["trust", "--yes"]).status, 0);
    assert_eq!(scene.provost(&["run", "x", "--model", "script:agent.yaml"]).status, 0);
}

#[test]
fn the_hint_names_the_file_that_was_given() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    scene.write("work/.claude/settings.json", GUARD);
    let model = format!("script:{}", scene.path("work/agent.yaml").display());
    scene.write(
        "my settings.toml",
        &format!("[agent]\nmodel = \"{model}\"\n[hooks]\nimport = [\"claude\"]\n"),
    );
    let config = scene.path("my settings.toml");
    let config = config.to_str().unwrap();
    let refused = scene.provost(&["run", "x", "--config", config]);
    assert_eq!(refused.status, 2, "{refused:?}");
    let hint = format!("`provost trust --config '{config}'` in ");
    assert!(refused.stderr.contains(&hint), "{refused:?}");
    assert_eq!(scene.provost(&["trust", "--yes", "--config", config]).status, 0);
    assert_eq!(scene.provost(&["run", "x", "--config", config]).status, 0);
}
