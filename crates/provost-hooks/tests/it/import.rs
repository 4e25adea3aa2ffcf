//! Hooks of `.claude/settings.json`.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use provost_event::{HookContract, HookProgram, HookWaiting, OnFailure};
use provost_hooks::{HookFile, Imported, import_hooks};

/// All results of a file, a line each.
fn shown(imported: &Imported) -> String {
    let mut out = String::new();
    for hook in &imported.hooks {
        let program = match &hook.program {
            Some(HookProgram::Shell { command }) => format!("sh: {command}"),
            Some(HookProgram::Exec { program, args }) => format!("exec: {program} {args:?}"),
            Some(HookProgram::Http { url, headers, allowed_env }) => {
                format!("post: {url} {headers:?} {allowed_env:?}")
            }
            Some(HookProgram::Model(model)) => format!("{:?}: {}", model.work, model.prompt),
            None => "nothing".to_owned(),
        };
        let point = hook.point.name();
        let _ = write!(out, "{} @ {point} {} ms: {program}", hook.name, hook.timeout_ms);
        if let Some(matcher) = &hook.matcher {
            let _ = write!(out, " matcher={matcher}");
        }
        if let Some(condition) = &hook.condition {
            let _ = write!(out, " if={condition}");
        }
        out.push('\n');
        if hook.setup.waiting == HookWaiting::Background {
            out.insert_str(out.len() - 1, " background");
        }
        assert_eq!(hook.contract, HookContract::Claude);
        assert_eq!(hook.on_failure, OnFailure::ContinueIfRun);
        assert!(hook.may_remind);
    }
    for rule in &imported.rules {
        let _ = writeln!(out, "{} {}: {}", rule.list.name(), rule.written, rule.patterns.join(" "));
    }
    for (name, value) in &imported.env {
        let _ = writeln!(out, "env {name}={value}");
    }
    if let Some(disables) = imported.disables_hooks {
        let _ = writeln!(out, "disables hooks: {disables}");
    }
    for skipped in &imported.skipped {
        let mark = if skipped.is_guard { "!" } else { "-" };
        let _ = writeln!(out, "{mark} {}: {}: {}", skipped.place, skipped.what, skipped.why);
    }
    out
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&shown(&import_hooks(HookFile::claude(text, "settings.json"))));
}

const REALISTIC: &str = r#"{
  "permissions": { "allow": ["Bash(npm test)"] },
  "hooks": {
    "PreToolUse": [
      { "matcher": "Bash", "hooks": [
        { "type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/block-rm.sh", "timeout": 5 },
        { "type": "command", "command": "python3 .claude/hooks/audit.py", "if": "Bash(git *)" },
        { "type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/block-rm.sh", "timeout": 9 }
      ] },
      { "matcher": "Edit|MultiEdit|Write", "hooks": [
        { "type": "command", "command": "npx", "args": ["prettier", "--check"], "statusMessage": "Formatting" },
        { "type": "prompt", "prompt": "Is this safe? $ARGUMENTS" }
      ] },
      { "matcher": "Bash(", "hooks": [ { "type": "command", "command": "never.sh" } ] }
    ],
    "PostToolUse": [ { "matcher": "*", "hooks": [
      { "type": "command", "command": "log.sh", "async": true },
      { "type": "command", "command": "echo 'it'\"'\"'s'", "shell": "bash" },
      { "type": "command", "command": "Get-Date", "shell": "powershell" }
    ] } ],
    "UserPromptSubmit": [ { "hooks": [ { "type": "command", "command": "date" } ] } ],
    "Stop": [ { "matcher": "Bash", "hooks": [
      { "type": "http", "url": "https://example.com/stop", "timeout": 2.5,
        "headers": { "Authorization": "Bearer $TOKEN" }, "allowedEnvVars": ["TOKEN"] },
      { "type": "mcp_tool", "server": "s", "tool": "t" },
      { "type": "command", "command": "check.sh", "if": "Bash" }
    ] } ],
    "SessionStart": [ { "matcher": "startup", "hooks": [
      { "type": "http", "url": "https://example.com/start" },
      { "type": "command", "command": "context.sh", "once": true }
    ] } ],
    "SessionEnd": [ { "hooks": [ { "type": "command", "command": "bye.sh" } ] } ],
    "SubagentStop": [ { "hooks": [ { "type": "command", "command": "x" } ] } ],
    "PreToolUsed": [ { "hooks": [ { "type": "command", "command": "x" } ] } ],
    "pre_tool_call": [ { "hooks": [ { "type": "command", "command": "x" } ] } ]
  }
}"#;

#[test]
fn a_realistic_file_gives_its_hooks_and_names_what_it_cannot() {
    check(
        REALISTIC,
        expect![[r#"
            log.sh (PostToolUse) @ post_tool_success 600000 ms: sh: log.sh background
            echo (PostToolUse) @ post_tool_success 600000 ms: sh: exec bash -c 'echo '\''it'\''"'\''"'\''s'\'''
            block-rm.sh (PreToolUse Bash) @ pre_tool_call 5000 ms: sh: "$CLAUDE_PROJECT_DIR"/.claude/hooks/block-rm.sh matcher=Bash
            audit.py (PreToolUse Bash) @ pre_tool_call 600000 ms: sh: python3 .claude/hooks/audit.py matcher=Bash if=Bash(git *)
            npx (PreToolUse Edit|MultiEdit|Write) @ pre_tool_call 600000 ms: exec: npx ["prettier", "--check"] matcher=Edit|MultiEdit|Write
            prompt "Is this safe? $ARGUMENTS" (PreToolUse Edit|MultiEdit|Write) @ pre_tool_call 30000 ms: Answers: Is this safe? $ARGUMENTS matcher=Edit|MultiEdit|Write
            bye.sh (SessionEnd) @ session_end 1500 ms: sh: bye.sh
            context.sh (SessionStart startup) @ session_start 600000 ms: sh: context.sh matcher=startup
            example.com:443 (Stop) @ stop 2500 ms: post: https://example.com/stop [("Authorization", "Bearer $TOKEN")] ["TOKEN"]
            x (SubagentStop) @ subagent_stop 600000 ms: sh: x
            date (UserPromptSubmit) @ prompt_submit 30000 ms: sh: date
            allow Bash(npm test): Bash(npm test)
            - settings.json: hooks.PostToolUse[0].hooks[2]: the command hook `Get-Date`: Provost runs commands in sh and bash, not in powershell
            - settings.json: hooks.PreToolUse[0].hooks[2]: the command hook `"$CLAUDE_PROJECT_DIR"/.claude/hooks/block-rm.sh`: it is the same as block-rm.sh (PreToolUse Bash), and runs once
            ! settings.json: hooks.PreToolUse[2].hooks[0]: the command hook `never.sh`: the matcher `Bash(` can't be read as a regular expression: Parsing error at position 5: Opening parenthesis without closing parenthesis
            ! settings.json: hooks.PreToolUsed: the event `PreToolUsed`: there is no such event; `PreToolUse`?
            - settings.json: hooks.SessionStart[0].hooks[0]: the http hook `https://example.com/start`: this event takes no http hooks
            - settings.json: hooks.SessionStart[0].hooks[1]: the command hook `context.sh`: `once` counts only in a skill: it is asked each time
            - settings.json: hooks.Stop[0]: the matcher `Bash`: this event has no matchers: the hooks are asked each time
            ! settings.json: hooks.Stop[0].hooks[1]: the mcp_tool hook `t`: Provost runs hooks of the types command, http, prompt and agent, not mcp_tool
            ! settings.json: hooks.Stop[0].hooks[2]: the command hook `check.sh`: a hook with `if` never runs at an event that isn't about one tool call
            ! settings.json: hooks.pre_tool_call: the event `pre_tool_call`: there is no such event
        "#]],
    );
}

#[test]
fn the_question_of_trust_shows_each_program_once() {
    expect![[r#"
        log.sh
        exec bash -c 'echo '\''it'\''"'\''"'\''s'\'''
        "$CLAUDE_PROJECT_DIR"/.claude/hooks/block-rm.sh
        python3 .claude/hooks/audit.py
        npx prettier --check
        a model is asked: Is this safe? $ARGUMENTS
        bye.sh
        context.sh
        POST https://example.com/stop
        x
        date
    "#]]
    .assert_eq(&(import_hooks(HookFile::claude(REALISTIC, "settings.json")).programs.join("\n") + "\n"));
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> =
        import_hooks(HookFile::claude(REALISTIC, "s")).hooks.into_iter().map(|hook| hook.name).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn what_makes_no_sense_does_not_spoil_the_rest() {
    check(
        r#"{"hooks": {"PreToolUse": [
            7,
            {"matcher": "Bash"},
            {"matcher": 5, "hooks": [{"type": "command", "command": "a"}]},
            {"hooks": [
                "text",
                {"command": "a"},
                {"type": "commnd", "command": "a"},
                {"type": "command"},
                {"type": "command", "command": 3},
                {"type": "command", "command": "a", "timeout": "30"},
                {"type": "command", "command": "a", "timeout": 0},
                {"type": "command", "command": "a", "args": "b"},
                {"type": "command", "command": "a", "if": "Bash(git"},
                {"type": "http", "url": "ftp://x"},
                {"type": "http", "url": "http://x", "headers": {"A": 1}},
                {"type": "command", "command": "good.sh", "args": []}
            ]}],
            "Stop": {"hooks": []}}}"#,
        expect![[r#"
            good.sh (PreToolUse) @ pre_tool_call 600000 ms: exec: good.sh []
            ! settings.json: hooks.PreToolUse[0]: the entry: it has no list of `hooks`
            ! settings.json: hooks.PreToolUse[1]: the entry: it has no list of `hooks`
            ! settings.json: hooks.PreToolUse[2].hooks[0]: the command hook `a`: its `matcher` is 5, which is no text
            ! settings.json: hooks.PreToolUse[3].hooks[0]: a hook of type unknown: it has no `type`
            ! settings.json: hooks.PreToolUse[3].hooks[1]: the unknown hook `a`: it has no `type`
            ! settings.json: hooks.PreToolUse[3].hooks[2]: the commnd hook `a`: there are no hooks of type `commnd`
            ! settings.json: hooks.PreToolUse[3].hooks[3]: a hook of type command: it has no `command`
            ! settings.json: hooks.PreToolUse[3].hooks[4]: a hook of type command: its `command` is no text
            ! settings.json: hooks.PreToolUse[3].hooks[5]: the command hook `a`: its `timeout` is no number of seconds above 0
            ! settings.json: hooks.PreToolUse[3].hooks[6]: the command hook `a`: its `timeout` is no number of seconds above 0
            ! settings.json: hooks.PreToolUse[3].hooks[7]: the command hook `a`: its `args` are no list of texts
            ! settings.json: hooks.PreToolUse[3].hooks[8]: the command hook `a`: its `if` can't be read: the pattern `Bash(git` isn't closed: write `)` at its end
            ! settings.json: hooks.PreToolUse[3].hooks[9]: the http hook `ftp://x`: its `url` doesn't begin with http:// or https://
            ! settings.json: hooks.PreToolUse[3].hooks[10]: the http hook `http://x`: its `headers` are no texts
            ! settings.json: hooks.Stop: the event `Stop`: it is no list
        "#]],
    );
    check(
        "{",
        expect![[r#"
            ! settings.json: the file: it can't be read as JSON: EOF while parsing an object at line 1 column 1
        "#]],
    );
    check(
        "[]",
        expect![[r#"
            ! settings.json: the file: it is no JSON object
        "#]],
    );
    check("\u{feff}{}", expect![[""]]);
    check(
        r#"{"hooks": []}"#,
        expect![[r#"
            ! settings.json: hooks: all hooks: `hooks` is no object of events
        "#]],
    );
}

#[test]
fn a_switch_for_all_hooks_is_told_with_the_hooks_it_switches() {
    let hooks = r#""hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}"#;
    for switch in [true, false] {
        let imported = format!(r#"{{"disableAllHooks": {switch}, {hooks}}}"#);
        let imported = import_hooks(HookFile::claude(&imported, "s"));
        assert_eq!((imported.hooks.len(), imported.disables_hooks), (1, Some(switch)));
    }
}

#[test]
fn hooks_at_the_end_share_what_the_most_patient_asks_for() {
    let timeouts = |fields: &[&str]| {
        let hooks: Vec<String> = fields
            .iter()
            .enumerate()
            .map(|(at, fields)| format!(r#"{{"type": "command", "command": "c{at}"{fields}}}"#))
            .collect();
        let text = format!(r#"{{"hooks": {{"SessionEnd": [{{"hooks": [{}]}}]}}}}"#, hooks.join(","));
        import_hooks(HookFile::claude(&text, "s"))
            .hooks
            .iter()
            .map(|hook| hook.timeout_ms)
            .collect::<Vec<_>>()
    };
    assert_eq!(timeouts(&[""]), [1_500]);
    assert_eq!(timeouts(&["", r#","timeout":10"#, r#","timeout":1"#]), [10_000, 10_000, 1_000]);
    assert_eq!(timeouts(&["", r#","timeout":600"#]), [60_000, 60_000]);
    assert_eq!(timeouts(&[r#","timeout":0.5"#]), [500]);
}

#[test]
fn permissions_variables_and_switches_are_taken_or_named() {
    check(
        r#"{"permissions": {
            "allow": ["Bash(npm test)", "WebSearch"],
            "deny": ["Read(./.env)", "Bash(curl:*)", "Agent(Explore)", 7],
            "ask": ["Bash(git push *)"],
            "defaultMode": "acceptEdits"},
          "env": {"MODE": "strict", "COUNT": 3},
          "disableAllHooks": false}"#,
        expect![[r#"
            deny Read(./.env): Read(./.env) Grep(./.env) Glob(./.env)
            deny Bash(curl:*): Bash(curl:*)
            ask Bash(git push *): Bash(git push *)
            allow Bash(npm test): Bash(npm test)
            env MODE=strict
            disables hooks: false
            - settings.json: env: the variable COUNT: its value is no text
            ! settings.json: permissions.deny: the rule `Agent(Explore)`: Provost has no tool that it could mean
            ! settings.json: permissions.deny: the rule `7`: it is no text
            - settings.json: permissions.allow: the rule `WebSearch`: Provost has no tool that it could mean
            - settings.json: permissions.defaultMode: `defaultMode`: it isn't taken over: Provost's own settings say what it would
        "#]],
    );
}

#[test]
fn a_command_that_needs_a_variable_of_a_plugin_is_named_elsewhere_and_run_there() {
    let text = r#"{"hooks": {"PreToolUse": [{"hooks": [
        {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/guard.sh"},
        {"type": "command", "command": "node", "args": ["$CLAUDE_PLUGIN_ROOT/guard.js"]},
        {"type": "command", "command": "sh -c 'echo ${CLAUDE_PLUGIN_ROOT:-none}'"},
        {"type": "command", "command": "guard.sh $CLAUDE_PLUGIN_OPTION_LEVEL"}
    ]}]}}"#;
    check(
        text,
        expect![[r#"
        sh (PreToolUse) @ pre_tool_call 600000 ms: sh: sh -c 'echo ${CLAUDE_PLUGIN_ROOT:-none}'
        ! settings.json: hooks.PreToolUse[0].hooks[0]: the command hook `${CLAUDE_PLUGIN_ROOT}/guard.sh`: it needs the variable CLAUDE_PLUGIN_ROOT, which is set only for a plugin's hooks: import them with "claude-plugin:FOLDER"
        ! settings.json: hooks.PreToolUse[0].hooks[1]: the command hook `node`: it needs the variable CLAUDE_PLUGIN_ROOT, which is set only for a plugin's hooks: import them with "claude-plugin:FOLDER"
        ! settings.json: hooks.PreToolUse[0].hooks[3]: the command hook `guard.sh $CLAUDE_PLUGIN_OPTION_LEVEL`: it needs the variable CLAUDE_PLUGIN_OPTION_LEVEL, which is set only for a plugin's hooks: import them with "claude-plugin:FOLDER"
    "#]],
    );
    let variables = ["CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA"];
    let plugin = import_hooks(HookFile { variables: &variables, ..HookFile::claude(text, "hooks.json") });
    assert_eq!((plugin.hooks.len(), plugin.skipped.len()), (3, 1), "{}", shown(&plugin));
}

#[test]
fn codex_runs_its_hooks_in_the_users_own_shell() {
    let text = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo it's"}]}]}}"#;
    let file = HookFile { contract: HookContract::Codex, ..HookFile::claude(text, "hooks.json") };
    let hook = import_hooks(file).hooks.remove(0);
    assert_eq!(hook.contract, HookContract::Codex);
    let Some(HookProgram::Shell { command }) = hook.program else { panic!("{:?}", hook.program) };
    assert_eq!(command, r#"exec "${SHELL:-/bin/sh}" -lc 'echo it'\''s'"#);
}
