//! `[[hooks]]` and imports: errors have their position, and valid values reach the run's policy.

use expect_test::expect;
use serde_json::{Value, json as value};

use crate::settings_errors::check;
use crate::support::{Scene, json};

/// The hooks of a run with these settings.
#[track_caller]
fn hooks_of(scene: Scene, settings: &str) -> Value {
    let scene = scene.with_settings(settings).trusted();
    let ran = scene.provost(&["run", "x", "--json"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    json(ran.stdout.lines().next().unwrap())["policy"]["agent"]["hooks"].clone()
}

fn done() -> Scene {
    Scene::scripted("answers: [{ text: done }]")
}

#[test]
fn events_that_cant_be() {
    check(
        "[[hooks]]\nevent = \"PreToolUes\"\ncommand = \"true\"\n\n[[hooks]]\nevent = \"WorktreeCreate\"\ncommand = \"true\"\n",
        expect![[r#"
            provost.toml:2:1: hooks.event: there is no such event (did you mean `PreToolUse`?); e.g. event = "pre_tool_call"
            provost.toml:6:1: hooks.event: Provost doesn't have this event: Provost makes the worktrees of sub-agents itself, with git; e.g. event = "pre_tool_call"
        "#]],
    );
    check(
        "[[hooks]]\ncommand = \"true\"\n[[hooks]]\nevent = 3\ncommand = \"true\"\n",
        expect![[r#"
        provost.toml:1:1: hooks: `event` is missing; e.g. event = "pre_tool_call"
        provost.toml:4:1: hooks.event: must be text in quotes (is 3); e.g. event = "pre_tool_call"
    "#]],
    );
}

#[test]
fn programs_that_cant_be() {
    check(
        "[[hooks]]\nevent = \"stop\"\n",
        expect![[r#"
        provost.toml:1:1: hooks: nothing says what to run; give it one of command, program, url, prompt or agent, e.g. command = "./scripts/check.sh"
    "#]],
    );
    check(
        "[[hooks]]\nevent = \"stop\"\ncommand = \"true\"\nurl = \"http://127.0.0.1:1\"\nargs = [\"x\"]\n",
        expect![[r#"
            provost.toml:4:1: hooks.url: there is a command already; a hook has exactly one of command, program, url, prompt and agent
            provost.toml:5:1: hooks.args: belongs to `program`, which isn't there; leave it out
        "#]],
    );
    check(
        "[[hooks]]\nevent = \"stop\"\nprogram = \"x\"\nargs = \"y\"\n",
        expect![[r#"
        provost.toml:4:1: hooks.args: must be a list of texts in [brackets] (is text); e.g. args = ["--strict"]
    "#]],
    );
    check(
        "[[hooks]]\nevent = \"stop\"\nprogram = \"x\"\nargs = [\"y\", 3, true]\n",
        expect![[r#"
        provost.toml:4:14: hooks.args: each must be text in quotes (is 3); e.g. args = ["--strict"]
        provost.toml:4:17: hooks.args: each must be text in quotes (is true); e.g. args = ["--strict"]
    "#]],
    );
    check(
        "[[hooks]]\nevent = \"stop\"\nurl = \"ftp://x\"\nheaders = { a = 1 }\nallowed_env = [\"A\", \"sk-1 2\"]\n",
        expect![[r#"
            provost.toml:3:1: hooks.url: must be an address that begins with http:// or https://; e.g. url = "http://127.0.0.1:8080/hook"
            provost.toml:4:1: hooks.headers: `a` must be text in quotes (is 1); e.g. headers = { Authorization = "Bearer $HOOK_TOKEN" }
            provost.toml:5:21: hooks.allowed_env: must be the name of an environment variable, not a key; e.g. allowed_env = ["HOOK_TOKEN"]
        "#]],
    );
}

#[test]
fn hooks_that_can_never_be_asked_are_refused() {
    let hook =
        |event: &str, rest: &str| format!("[[hooks]]\nevent = \"{event}\"\ncommand = \"true\"\n{rest}\n");
    let hooks = [
        hook("spawn", "matcher = \"reviewr\""),
        hook("child_end", "matcher = \"reviewer|tester\""),
        hook("session_start", "matcher = \"startup|nosuch\""),
        hook("pre_tool_call", "matcher = \"write_file\"\nif = \"shell(rm *)\""),
    ];
    let agent = "[[agents]]\nname = \"reviewer\"\ndescription = \"y\"\n";
    check(
        &format!("{}{agent}", hooks.concat()),
        expect![[r#"
        provost.toml:4:1: hooks.matcher: there is no agent `reviewr`, so that this never matches; did you mean `reviewer`?
        provost.toml:8:1: hooks.matcher: there is no agent `tester`, so that this never matches; there are reviewer
        provost.toml:12:1: hooks.matcher: there is no source of a session `nosuch`, so that this never matches; there are startup, resume
        provost.toml:17:1: hooks.if: `shell(rm *)` is about no tool that the matcher `write_file` matches, so that this is never asked; name the same tool in both, or leave one out
    "#]],
    );
    let fitting = [
        hook("spawn", "matcher = \"reviewer|general-purpose|Task\""),
        hook("session_start", "matcher = \"resume\""),
        hook("pre_tool_call", "matcher = \"Bash|Write\"\nif = \"shell(rm *)\""),
        hook("pre_tool_call", "matcher = \"Task\"\nif = \"reviewer\""),
        hook("pre_tool_call", "matcher = \"^(?!read).*\"\nif = \"shell(rm *)\""),
        hook("pre_tool_call", "matcher = \"mcp__x__y\""),
    ];
    let scene = done().with_settings(&format!("{}{agent}", fitting.concat())).trusted();
    let checked = scene.provost(&["check"]);
    assert_eq!(checked.status, 0, "{checked:?}");
    let note = "note: hooks name tools of MCP servers that aren't configured, so that they match nothing: `mcp__x__y`\n";
    assert!(checked.stdout.contains(note), "{checked:?}");
}

#[test]
fn fields_that_cant_be() {
    check(
        "[[hooks]]\nevent = \"pre_tool_call\"\ncommand = \"true\"\nmatcher = \"(\"\nif = \"shell(git\"\n",
        expect![[r#"
            provost.toml:5:1: hooks.if: the pattern `shell(git` isn't closed: write `)` at its end; e.g. if = "shell(git push *)"
        "#]],
    );
    check(
        "[[hooks]]\nevent = \"pre_tool_call\"\ncommand = \"true\"\nmatcher = \"(\"\n",
        expect![[r#"
        provost.toml:4:1: hooks.matcher: the matcher `(` can't be read as a regular expression: Parsing error at position 1: Opening parenthesis without closing parenthesis
    "#]],
    );
    check(
        "[[hooks]]\nevent = \"stop\"\ncommand = \"true\"\nif = \"shell(git *)\"\n",
        expect![[r#"
        provost.toml:4:1: hooks.if: stop is about no tool call; `if` is for pre_tool_call, approval and post_tool_…
    "#]],
    );
    check(
        "[[hooks]]\nevent = \"stop\"\ncommand = \"true\"\ntimeout_secs = 0\ncontract = \"claud\"\non_failure = \"allow\"\ntimeout = 3\n",
        expect![[r#"
            provost.toml:4:1: hooks.timeout_secs: must be at least 1 (is 0); e.g. timeout_secs = 10
            provost.toml:5:1: hooks.contract: must be one of provost, claude, codex (is `claud`); e.g. contract = "claude"
            provost.toml:6:1: hooks.on_failure: must be one of deny, continue (is `allow`); e.g. on_failure = "deny"
            provost.toml:7:1: hooks.timeout: there is no such setting; a hook has event, matcher, if, command, program, args, url, prompt, agent, model, continue_on_block, headers, allowed_env, name, timeout_secs, contract, once, on_failure, reminders, import, env
        "#]],
    );
    check(
        "[budget]\nwall_time = \"30s\"\n[[hooks]]\nevent = \"stop\"\ncommand = \"true\"\n[[hooks]]\nevent = \"stop\"\ncommand = \"x\"\ntimeout_secs = 31\n",
        expect![[r#"
            provost.toml:9:1: hooks.timeout_secs: `stop: x` may take longer (31 s) than the whole run (budget.wall_time is 30 s, from provost.toml:2:1); e.g. timeout_secs = 3
        "#]],
    );
    check(
        "[[hooks]]\nname = \"a\"\nevent = \"stop\"\ncommand = \"x\"\n[[hooks]]\nname = \"a\"\nevent = \"stop\"\ncommand = \"y\"\n",
        expect![[r#"
            provost.toml:5:1: hooks.name: `a` is taken by the hook at provost.toml:1:1; give each its own name
        "#]],
    );
}

#[test]
fn imports_that_cant_be() {
    check(
        "[[hooks]]\nimport = \"cursor\"\n",
        expect![[r#"
        provost.toml:2:1: hooks.import: must be one of claude, claude-user, claude-plugin:FOLDER, codex (is `cursor`); e.g. import = "claude"
    "#]],
    );
    check(
        "[[hooks]]\nimport = \"claude\"\nevent = \"stop\"\n",
        expect![[r#"
        provost.toml:3:1: hooks.event: an import stands alone, without other fields; write this hook as a [[hooks]] of its own
    "#]],
    );
    check(
        "[hooks]\nimport = [\"claude\", \"claude-plugin:\"]\n",
        expect![[r#"
        provost.toml:2:21: hooks.import: must be one of claude, claude-user, claude-plugin:FOLDER, codex (is `claude-plugin:`); e.g. import = ["claude"]
    "#]],
    );
    check(
        "[hooks]\nimports = [\"claude\"]\n",
        expect![[r#"
        provost.toml:2:1: hooks.imports: there is no such setting; did you mean `hooks.import`?
    "#]],
    );
    check(
        "hooks = 3\n",
        expect![[r#"
        provost.toml:1:1: hooks: must be a list: write [[hooks]] on a line of its own, once for each
    "#]],
    );
}

#[test]
fn a_hook_reaches_the_policy_with_its_defaults() {
    let hooks = hooks_of(
        done(),
        "[[hooks]]\nevent = \"PreToolUse\"\nmatcher = \"shell\"\nif = \"shell(git *)\"\ncommand = \"exit 0\"\n\
         [[hooks]]\nname = \"all\"\nevent = \"session_end\"\nprogram = \"/bin/true\"\nargs = []\ntimeout_secs = 5\n\
         contract = \"claude\"\non_failure = \"deny\"\n\
         [[hooks]]\nevent = \"PreToolUse\"\nmatcher = \"shell\"\ncommand = \"exit 0\"\ncontract = \"claude\"\nreminders = false\n",
    );
    let expected = value!([
        {
            "name": "pre_tool_call: exit 0", "point": "pre_tool_call", "matcher": "shell", "if": "shell(git *)",
            "program": { "shell": { "command": "exit 0" } }, "contract": "provost", "timeout_ms": 60_000,
            "on_failure": "deny",
        },
        {
            "name": "all", "point": "session_end",
            "program": { "exec": { "program": "/bin/true", "args": [] } }, "contract": "claude",
            "timeout_ms": 5_000, "on_failure": "deny", "may_remind": true,
        },
        {
            "name": "pre_tool_call: exit 0 (2)", "point": "pre_tool_call", "matcher": "shell",
            "program": { "shell": { "command": "exit 0" } }, "contract": "claude", "timeout_ms": 60_000,
            "on_failure": "continue_if_run",
        },
    ]);
    let mut hooks = hooks;
    for hook in hooks.as_array_mut().unwrap() {
        let setup = hook.as_object_mut().unwrap().remove("setup").unwrap();
        assert!(setup["project"].as_str().unwrap().ends_with("/work"), "{setup}");
    }
    assert_eq!(hooks, expected);
}

/// Two calls, with which an agent leaves the project's folder and gets round a guard that is looked up there.
const LEAVES: &str = "answers: [{ tools: [{ shell: { command: 'mkdir -p sub/.claude; touch sub/.claude/guard.sh; chmod +x sub/.claude/guard.sh; cd sub' } }] }, \
    { tools: [{ shell: { command: touch made } }] }, { text: done }]";

#[test]
fn an_agent_that_changes_its_folder_does_not_lose_its_guards() {
    let guard = "#!/bin/sh\ngrep -q 'touch made' && { echo 'not that' >&2; exit 2; }\nexit 0\n";
    let imported = r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":".claude/guard.sh"}]}]}}"#;
    for settings in [
        "[hooks]\nimport = [\"claude\"]\n",
        "[[hooks]]\nevent = \"pre_tool_call\"\nmatcher = \"shell\"\ncommand = \".claude/guard.sh\"\n",
    ] {
        let scene = Scene::scripted(LEAVES);
        scene.write("work/.claude/settings.json", imported);
        scene.write("work/.claude/guard.sh", guard);
        std::fs::set_permissions(
            scene.path("work/.claude/guard.sh"),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        let scene = scene.with_settings(settings).trusted();
        let ran = scene.provost(&["run", "x"]);
        assert!(ran.stderr.contains("not that"), "{ran:?}");
        assert!(!scene.path("work/sub/made").exists(), "{ran:?}");
    }
}

const CLAUDES: &str = r#"{"hooks":{
    "PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"exit 0"}]}],
    "WorktreeCreate":[{"hooks":[{"type":"command","command":"never"}]}]
}}"#;

#[test]
fn imported_hooks_come_last_and_what_is_skipped_is_told() {
    let scene = done();
    scene.write("work/.claude/settings.json", CLAUDES);
    scene.write("work/.claude/settings.local.json", CLAUDES);
    let settings = "[budget]\nwall_time = \"2m\"\n[[hooks]]\nimport = \"claude\"\n\
                    [[hooks]]\nevent = \"stop\"\ncommand = \"true\"\n";
    let scene = scene.with_settings(settings).trusted();
    let ran = scene.provost(&["run", "x", "--json"]);
    let hooks = &json(ran.stdout.lines().next().unwrap())["policy"]["agent"]["hooks"];
    assert_eq!(hooks.as_array().unwrap().len(), 2, "the same in both files is one: {hooks}");
    assert_eq!(hooks[0]["point"], "stop");
    assert_eq!(hooks[1]["program"]["shell"]["command"], "exit 0");
    assert_eq!(hooks[1]["contract"], "claude");
    assert_eq!(hooks[1]["timeout_ms"], 120_000, "no hook outlasts the run");
    assert!(ran.stderr.contains("warning: skipped .claude/settings.json: hooks.WorktreeCreate"), "{ran:?}");
    let checked = scene.provost(&["check"]);
    assert!(checked.stdout.contains("skipped: .claude/settings.json: hooks.WorktreeCreate"), "{checked:?}");
    let checked = json(&scene.provost(&["check", "--json"]).stdout);
    assert_eq!(checked["hooks"][1]["source"], ".claude/settings.json");
    assert_eq!(checked["skipped"].as_array().unwrap().len(), 2);
}

#[test]
fn an_import_of_nothing_is_told() {
    let scene = done().with_settings("[hooks]\nimport = [\"claude\"]\n");
    let checked = scene.provost(&["check"]);
    assert_eq!(checked.status, 0);
    assert!(checked.stdout.contains("skipped: import of claude: there is none in"), "{checked:?}");
}

#[test]
fn a_hook_program_is_asked_and_its_no_counts() {
    let agent = "answers: [{ tools: [{ shell: { command: touch made } }] }, { text: done }]";
    let hook = "[[hooks]]\nevent = \"pre_tool_call\"\nmatcher = \"shell\"\ncommand = \"cat > question; echo not that; exit 2\"\n";
    let scene = Scene::scripted(agent).with_settings(hook).trusted();
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let question = json(&std::fs::read_to_string(scene.path("work/question")).unwrap());
    assert_eq!(question["tool_input"]["command"], "touch made");
    assert!(!scene.path("work/made").exists() && ran.stderr.contains("not that"), "{ran:?}");
}

#[test]
fn secrets_that_every_log_would_hold() {
    let key = format!("sk-ant-{}", "x".repeat(24));
    let hook = |program: &str| format!("[[hooks]]\nevent = \"stop\"\n{program}\n");
    let settings = [
        hook("url = \"http://127.0.0.1:1\"\nheaders = { Authorization = \"Basic aGlkZGVu\" }"),
        hook("url = \"http://127.0.0.1:1\"\nheaders = { X-Of = \"Bearer 0a1b2c3d4e5f60718293a4b5\" }"),
        hook("url = \"http://me:hidden@127.0.0.1:1\""),
        hook(&format!("command = \"ask {key}\"")),
        hook(&format!("program = \"ask\"\nargs = [\"--key\", \"{key}\"]")),
        hook(
            "url = \"http://127.0.0.1:1\"\nheaders = { X-Of = \"me\", Cookie = \"a=$HOOK_COOKIE\" }\nallowed_env = [\"HOOK_COOKIE\"]",
        ),
        format!("[[stop_hooks]]\nname = \"one\"\ncommand = \"ask {key}\"\n"),
        format!(
            "[[agents]]\nname = \"two\"\ndescription = \"d\"\nkind = \"external\"\nprogram = \"true\"\nargs = [\"{key}\"]\n"
        ),
    ];
    check(
        &settings.concat(),
        expect![[r#"
        provost.toml:4:1: hooks.headers: `Authorization` holds a secret, and every run's log would hold it too; put it into a variable, e.g. "Bearer $HOOK_TOKEN", and name that in allowed_env
        provost.toml:8:1: hooks.headers: `X-Of` holds a secret, and every run's log would hold it too; put it into a variable, e.g. "Bearer $HOOK_TOKEN", and name that in allowed_env
        provost.toml:11:1: hooks.url: it holds a secret, and every run's log would hold it too; let a hook read it from a variable or a file
        provost.toml:14:1: hooks.command: it holds a secret, and every run's log would hold it too; let a hook read it from a variable or a file
        provost.toml:18:1: hooks.args: one holds a secret, and every run's log would hold it too; let a hook read it from a variable or a file
        provost.toml:24:1: stop_hooks.command: it holds a secret, and every run's log would hold it too; let a stop hook read it from a variable or a file
        provost.toml:32:1: agents.args: one holds a secret, and every run's log would hold it too; let an external agent read it from a variable or a file
    "#]],
    );
}

#[test]
fn a_secret_in_an_imported_hook_is_an_error_too() {
    let scene = done().with_settings("[[hooks]]\nimport = \"claude\"\n");
    let hooks = r#"{ "hooks": { "Stop": [ { "hooks": [ { "type": "http", "url": "http://127.0.0.1:1", "headers": { "X-Api-Key": "hidden-value" } } ] } ] } }"#;
    scene.write("work/.claude/settings.json", hooks);
    let checked = scene.provost(&["check"]);
    assert_eq!(checked.status, 2, "{checked:?}");
    let error = checked.stdout.lines().find(|line| line.starts_with("error: ")).unwrap();
    expect![[r#"error: .claude/settings.json:1:1: hooks.headers: `X-Api-Key` holds a secret, and every run's log would hold it too; put it into a variable, e.g. "Bearer $HOOK_TOKEN", and name that in allowed_env"#]].assert_eq(&scene.stable(error));
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 2, "{ran:?}");
    assert!(!format!("{checked:?}{ran:?}").contains("hidden"), "{ran:?}");
}

#[test]
fn a_policy_test_judges_calls_in_other_forms_as_the_gate_does() {
    let calls = "{ Bash: { cmd: echo push } }, { run_shell_command: { command: echo push } }, { Write: { file_path: a, content: x } }";
    let scene = Scene::scripted(&format!("answers: [{{ tools: [{calls}] }}, {{ text: done }}]"));
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    scene.write("new.toml", "[permissions]\ndeny = [\"shell(echo *)\", \"write_file(a)\"]\n");
    let file = scene.path("new.toml").display().to_string();
    let tested = scene.provost(&["policy", "test", &file, "--runs", "last:1"]);
    assert_eq!(tested.status, 1, "{tested:?}");
    assert!(tested.stdout.contains("newly denied: 3"), "{tested:?}");
}

#[test]
fn variables_that_look_secret_reach_hooks_that_are_to_have_them() {
    let agent = "answers: [{ tools: [{ shell: { command: 'true' } }] }, { text: done }]";
    let settings = "[[hooks]]\nenv = [\"HOOK_TOKEN\", \"MY_SECRET\", \"UNSET_TOKEN\"]\n\
        [[hooks]]\nevent = \"pre_tool_call\"\ncommand = \"echo \\\"$HOOK_TOKEN $MY_SECRET ${UNSET_TOKEN-unset}\\\" > seen\"\n";
    let scene = Scene::scripted(agent).with_settings(settings).trusted();
    let ran = scene
        .command(&["run", "x"])
        .env("HOOK_TOKEN", "one-token-of-a-hook")
        .env("MY_SECRET", "another-secret")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let seen = std::fs::read_to_string(scene.path("work/seen")).unwrap();
    assert_eq!(seen, "one-token-of-a-hook another-secret unset\n");
}

#[test]
fn a_providers_key_under_another_name_is_not_for_hooks() {
    let scene = done().with_settings("[hooks]\nenv = [\"FOO_ALIAS\"]\n");
    let key = "sk-proj-0123456789abcdefghij";
    let ran = scene.command(&["run", "x"]).env("OPENAI_API_KEY", key).env("FOO_ALIAS", key).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(
        said.contains("hooks.env: FOO_ALIAS has the value of OPENAI_API_KEY, the key of the provider openai, which no hook gets"),
        "{said}"
    );
    assert!(!said.contains(key), "{said}");
}
