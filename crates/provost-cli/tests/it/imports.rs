//! Hooks and permissions that a project, a user or a plugin has already: taken unchanged, or named.

use std::fs;

use serde_json::{Value, json as value};

use crate::support::{Done, Scene, json};

const TOUCHES: &str = "answers: [{ tools: [{ shell: { command: touch made } }] }, { text: done }]";
const IMPORT: &str = "[hooks]\nimport = [\"claude\"]\n";

fn hook(event: &str, matcher: &str, command: &str) -> String {
    let hook = value!({ "matcher": matcher, "hooks": [{ "type": "command", "command": command }] });
    value!({ "hooks": { event: [hook] } }).to_string()
}

/// A scene whose project has these hooks of Claude Code, imported and trusted.
fn imported(answers: &str, settings: &str) -> Scene {
    let scene = Scene::scripted(answers);
    scene.write("work/.claude/settings.json", settings);
    scene.with_settings(IMPORT).trusted()
}

fn ran(scene: &Scene, args: &[&str]) -> Done {
    let done = scene.provost(&[&["run", "x"], args].concat());
    assert_eq!(done.status, 0, "{done:?}");
    done
}

#[test]
fn a_run_in_a_folder_below_finds_the_same_guards_and_the_projects_folder() {
    let guard = "echo \"$CLAUDE_PROJECT_DIR $(pwd)\" >> \"$CLAUDE_PROJECT_DIR/asked\"; echo no >&2; exit 2";
    let scene = Scene::scripted(TOUCHES);
    scene.write("work/.claude/settings.json", &hook("PreToolUse", "Bash", guard));
    scene.write("work/crates/a/x", "");
    scene.write("home/.config/provost/config.toml", IMPORT);
    let below = scene.path("work/crates/a");
    let model = format!("script:{}", scene.path("work/agent.yaml").display());
    let trusted = scene.provost(&["trust", "--yes", "--dir", below.to_str().unwrap()]);
    assert_eq!(trusted.status, 0, "{trusted:?}");
    ran(&scene, &["-C", below.to_str().unwrap(), "--model", &model]);
    assert!(!below.join("made").exists(), "the guard denies the call");
    let asked = fs::read_to_string(scene.path("work/asked")).expect("it was asked");
    let work = scene.path("work").canonicalize().unwrap();
    assert_eq!(asked, format!("{} {}\n", work.display(), work.join("crates/a").display()));
}

#[test]
fn guards_that_nothing_imports_are_named_at_check_and_at_run() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    scene.write("work/.claude/settings.json", &hook("PreToolUse", "Bash", "./guard.sh"));
    scene.write(
        "work/.claude/settings.local.json",
        r#"{"permissions":{"deny":["Bash(curl *)"],"allow":["Read"]}}"#,
    );
    scene.write("work/.codex/hooks.json", &hook("Stop", "", "./check.sh"));
    let notes = [
        "note: not in force here: 1 hook of .claude/settings.json; import = [\"claude\"]",
        "note: not in force here: 1 deny or ask rule of .claude/settings.local.json; import = [\"claude\"]",
        "note: not in force here: 1 hook of .codex/hooks.json; import = [\"codex\"]",
    ];
    let checked = scene.provost(&["check"]);
    let ran = ran(&scene, &[]);
    for note in notes {
        assert!(checked.stdout.contains(note), "{note}: {checked:?}");
        assert!(ran.stderr.contains(note), "{note}: {ran:?}");
    }
    let scene = Scene::scripted("answers: [{ text: done }]");
    scene.write("work/.claude/settings.json", r#"{"permissions":{"allow":["Read"]},"model":"x"}"#);
    assert!(!scene.provost(&["check"]).stdout.contains("in force"), "nothing there guards anything");
}

#[test]
fn imported_rules_deny_and_those_that_cant_be_taken_are_named() {
    let settings = r#"{"permissions":{"deny":["Bash(touch:*)","Read(./.env)","WebSearch"],"allow":["Bash(ls)"],"defaultMode":"plan"}}"#;
    let scene = imported(TOUCHES, settings);
    let done = ran(&scene, &[]);
    assert!(!scene.path("work/made").exists(), "{done:?}");
    let checked = scene.provost(&["check"]).stdout;
    for line in [
        "permissions.deny  Bash(touch:*)  (.claude/settings.json:1:1)",
        "permissions.deny  Read(.env)  (.claude/settings.json:1:1)",
        "skipped: .claude/settings.json: permissions.deny: the rule `WebSearch`: Provost has no tool that it could mean",
        "skipped: .claude/settings.json: permissions.allow: the rule `Bash(ls)`: calls that no rule speaks of are allowed here",
        "skipped: .claude/settings.json: permissions.defaultMode",
    ] {
        assert!(checked.contains(line), "{line}\n{checked}");
    }
    let asking = Scene::scripted(TOUCHES);
    asking.write("work/.claude/settings.json", r#"{"permissions":{"allow":["Bash(touch *)"]}}"#);
    let asking = asking.with_settings(&format!("[permissions]\ndefault = \"deny\"\n{IMPORT}"));
    let wanted = asking.provost(&["run", "x"]);
    assert!(wanted.status == 2 && wanted.stderr.contains("lets the agent do without asking"), "{wanted:?}");
    let asking = asking.trusted();
    ran(&asking, &[]);
    assert!(asking.path("work/made").exists(), "an imported rule allows it");
}

#[test]
fn trust_names_what_is_not_in_force_first_and_guards_before_all() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    let hooks = r#"{"hooks":{
        "SessionStart":[{"hooks":[{"type":"http","url":"http://127.0.0.1:1"}]}],
        "PreToolUse":[{"hooks":[{"type":"mcp_tool","server":"s","tool":"guard"},{"type":"command","command":"exit 0"}]}]},
        "env":{"MODE":"strict","API_TOKEN":"hidden-value"}}"#;
    scene.write("work/.claude/settings.json", hooks);
    let scene = scene.with_settings(&format!("{IMPORT}env = [\"SLACK_WEBHOOK_URL\"]\n"));
    let asked = scene.provost(&["trust"]);
    let place = |text: &str| asked.stdout.find(text).unwrap_or_else(|| panic!("{text}: {asked:?}"));
    let guard =
        place("not in force: .claude/settings.json: hooks.PreToolUse[0].hooks[0]: the mcp_tool hook `guard`");
    let other = place("not in force: .claude/settings.json: hooks.SessionStart");
    let taken = place("runs at pre_tool_call (hook exit (PreToolUse))");
    assert!(guard < other && other < taken, "{asked:?}");
    place("is set for its hooks (env)\n      MODE=strict");
    place("is handed to all hooks (hooks.env)\n      SLACK_WEBHOOK_URL");
    place("not in force: .claude/settings.json: the variable API_TOKEN of env: it looks like a secret");
    assert!(!asked.stdout.contains("hidden-value"), "{asked:?}");
}

#[test]
fn a_hook_whose_script_isnt_there_is_named() {
    let scene = imported(
        "answers: [{ text: done }]",
        &hook("PreToolUse", "Bash", "\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/gone.sh"),
    );
    let line = "the hook gone.sh (PreToolUse Bash): its script ";
    let checked = scene.provost(&["check"]);
    assert!(
        checked.stdout.contains(line) && checked.stdout.contains("what it is asked about is refused"),
        "{checked:?}"
    );
    let done = ran(&scene, &[]);
    assert!(done.stderr.contains(line), "{done:?}");
}

#[test]
fn variables_of_the_file_reach_hooks_and_those_of_a_start_reach_commands() {
    let answers =
        "answers: [{ tools: [{ shell: { command: 'echo \"$FROM_START\" > made' } }] }, { text: done }]";
    let settings = value!({
        "env": { "MODE": "strict" },
        "hooks": { "SessionStart": [{ "hooks": [{ "type": "command",
            "command": "echo \"export FROM_START='$MODE mode'\" >> \"$CLAUDE_ENV_FILE\"" }] }] },
    });
    let scene = imported(answers, &settings.to_string());
    ran(&scene, &[]);
    assert_eq!(fs::read_to_string(scene.path("work/made")).expect("a file"), "strict mode\n");
}

#[test]
fn a_rewritten_call_is_made_and_both_calls_are_in_the_log() {
    let rewrite = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"touch other"}}}'"#;
    let scene = imported(TOUCHES, &hook("PreToolUse", "Bash", rewrite));
    let done = ran(&scene, &[]);
    assert!(scene.path("work/other").exists() && !scene.path("work/made").exists(), "{done:?}");
    assert!(done.stderr.contains(r#"wants other arguments: {"command":"touch other"}"#), "{done:?}");
    let log = scene.provost(&["logs", &scene.last_run(), "--json"]).stdout;
    let started = log.lines().map(json).find(|entry| entry["type"] == "tool_started").expect("a call");
    assert_eq!(started["input"]["command"], "touch other");
    let answer = log.lines().map(json).find(|entry| entry["type"] == "assistant_message").expect("an answer");
    assert!(answer.to_string().contains("touch made"), "{answer}");
}

#[test]
fn a_plugin_the_user_and_codex_each_bring_their_hooks() {
    let scene = Scene::scripted(TOUCHES);
    let note = |name: &str| format!("cat > /dev/null; echo {name} >> \"$CLAUDE_PROJECT_DIR/asked\"");
    let plugin = "test -d \"$CLAUDE_PLUGIN_DATA\" && echo \"$(basename \"${CLAUDE_PLUGIN_ROOT}\")\" >> \"$CLAUDE_PROJECT_DIR/asked\"";
    scene.write("plugins/careful/hooks/hooks.json", &hook("PreToolUse", "Bash", plugin));
    scene.write("home/.claude/settings.json", &hook("PreToolUse", "Bash", &note("user")));
    scene.write("work/.codex/hooks.json", &hook("PreToolUse", "Bash", &note("codex")));
    let toml = "[[hooks.PreToolUse]]\nmatcher = \"Bash\"\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = \"cat > told.json\"\n[hooks.state]\nx = 1\n";
    scene.write("work/.codex/config.toml", toml);
    let settings = "[hooks]\nimport = [\"claude-user\", \"claude-plugin:../plugins/careful\", \"codex\"]\n";
    let scene = scene.with_settings(settings).trusted();
    ran(&scene, &[]);
    let mut asked = fs::read_to_string(scene.path("work/asked"))
        .expect("asked")
        .lines()
        .map(str::to_owned)
        .collect::<Vec<_>>();
    asked.sort();
    assert_eq!(asked, ["careful", "codex", "user"]);
    let told = json(&fs::read_to_string(scene.path("work/told.json")).expect("asked"));
    assert_eq!((&told["turn_id"], &told["tool_name"]), (&value!("1"), &value!("Bash")));
    let transcript = fs::read_to_string(told["transcript_path"].as_str().expect("a path")).expect("a file");
    assert_eq!(json(transcript.lines().next().expect("a line"))["type"], "session_meta");
}

#[test]
fn the_stronger_file_decides_whether_all_hooks_are_off() {
    let scene = Scene::scripted(TOUCHES);
    let mut settings = json(&hook("PreToolUse", "Bash", "echo no >&2; exit 2"));
    settings["disableAllHooks"] = Value::Bool(true);
    scene.write("work/.claude/settings.json", &settings.to_string());
    let scene = scene.with_settings(IMPORT).trusted();
    let checked = scene.provost(&["check"]).stdout;
    assert!(
        checked
            .contains("skipped: .claude/settings.json: 1 hook: `disableAllHooks` of .claude/settings.json"),
        "{checked}"
    );
    scene.write("work/.claude/settings.local.json", r#"{"disableAllHooks":false}"#);
    let scene = scene.trusted();
    ran(&scene, &[]);
    assert!(!scene.path("work/made").exists(), "the local file switches them on");
}

#[test]
fn a_loop_that_reads_the_transcript_sends_the_agent_back_until_it_promises() {
    let answers = "answers: [{ text: half of it }, { text: 'all of it <promise>DONE</promise>' }]";
    let check = r#"t=$(jq -r .transcript_path); grep '"role":"assistant"' "$t" | tail -1 | grep -q '<promise>DONE' || { echo 'go on' >&2; exit 2; }"#;
    let scene = imported(answers, &hook("Stop", "", check));
    let done = ran(&scene, &[]);
    let log = scene.provost(&["logs", &scene.last_run(), "--json"]).stdout;
    let answers = log.lines().filter(|line| line.contains(r#""type":"assistant_message""#)).count();
    assert_eq!(answers, 2, "{done:?}");
}

#[test]
fn a_matcher_that_matches_no_tool_is_named() {
    for (matcher, remedy) in [
        ("bash", "did you mean `Bash`?"),
        ("Bash(touch *)", "a pattern of a call belongs into `if`"),
        ("Shel", "no tool has this name"),
    ] {
        let scene = imported("answers: [{ text: done }]", &hook("PreToolUse", matcher, "exit 2"));
        let line = format!("its matcher `{matcher}` matches no tool, so that it is never asked; {remedy}");
        let checked = scene.provost(&["check"]);
        assert!(checked.stdout.contains(&line), "{checked:?}");
        assert!(ran(&scene, &[]).stderr.contains(&line));
    }
    let scene =
        imported("answers: [{ text: done }]", &hook("PreToolUse", "NotebookEdit|mcp__x__y|Bash", "exit 0"));
    let checked = scene.provost(&["check"]);
    assert!(!checked.stdout.contains("matches no tool"), "{checked:?}");
}

/// A run's decisions and reports of hooks, by the log.
fn log_of(scene: &Scene) -> String {
    scene.provost(&["logs", &scene.last_run(), "--json"]).stdout
}

const STARTS: &str =
    "answers: [{ tools: [{ terminal: { action: start, command: touch made } }] }, { text: done }]";

#[test]
fn a_guard_for_commands_is_asked_about_those_at_a_terminal() {
    let no = "echo NO >&2; exit 2";
    for matcher in ["Bash", "Bash|Edit", "Edit, Bash"] {
        let scene = imported(STARTS, &hook("PreToolUse", matcher, no));
        let done = ran(&scene, &[]);
        assert!(!scene.path("work/made").exists(), "{matcher}: {done:?}");
        assert!(log_of(&scene).contains(r#""type":"hooks_asked""#), "{matcher}");
    }
    let codex = Scene::scripted(STARTS);
    codex.write("work/.codex/hooks.json", &hook("PreToolUse", "Bash", no));
    let codex = codex.with_settings("[hooks]\nimport = [\"codex\"]\n").trusted();
    ran(&codex, &[]);
    assert!(!codex.path("work/made").exists());
    for matcher in ["shell", "Bash", "^shell$"] {
        let own = format!(
            "[[hooks]]\nevent = \"pre_tool_call\"\nmatcher = \"{matcher}\"\n\
             command = \"jq -r .tool_input.command; exit 2\"\n"
        );
        let scene = Scene::scripted(STARTS).with_settings(&own).trusted();
        let done = ran(&scene, &[]);
        assert!(!scene.path("work/made").exists(), "{matcher}: {done:?}");
        assert!(done.stderr.contains("touch made"), "{matcher}: {done:?}");
    }
}

#[test]
fn a_hook_after_a_call_is_asked_about_commands_at_a_terminal() {
    let scene = imported(STARTS, &hook("PostToolUse", "Bash", "cat > \"$CLAUDE_PROJECT_DIR/told.json\""));
    ran(&scene, &[]);
    let told = json(&fs::read_to_string(scene.path("work/told.json")).expect("it was asked"));
    assert_eq!(
        (&told["tool_name"], &told["tool_input"]["command"]),
        (&value!("Bash"), &value!("touch made"))
    );
}

#[test]
fn an_inline_command_may_be_written_for_bash() {
    for guard in [
        "[[ $(echo main) == 'main' ]] && exit 2 || true",
        "false | true; [ ${PIPESTATUS[0]} -ne 0 ] && exit 2",
        "read -r word <<< 'no way'; echo \"$word\" >&2; exit 2",
    ] {
        let scene = imported(TOUCHES, &hook("PreToolUse", "Bash", guard));
        let done = ran(&scene, &[]);
        assert!(!scene.path("work/made").exists(), "{guard}: {done:?}");
    }
}

#[test]
fn a_stop_hook_that_no_turn_waits_for_verifies_nothing() {
    for (runs_async, verification, status) in [(true, "none", 1), (false, "passed", 0)] {
        let hook = value!({ "type": "command", "command": "echo done >> log", "async": runs_async });
        let settings = value!({ "hooks": { "Stop": [{ "hooks": [hook] }] } }).to_string();
        let scene = imported("answers: [{ text: \"done\\n\\nVERDICT: PASS\" }]", &settings);
        let done = scene.provost(&["run", "x", "--require-verified"]);
        assert_eq!(done.status, status, "{done:?}");
        let log = log_of(&scene);
        let ended = log.lines().map(json).rfind(|entry| entry["type"] == "ended").expect("an end");
        assert!(ended["outcome"].to_string().contains(verification), "{ended}");
    }
}

#[test]
fn variables_of_a_start_reach_programs_at_a_terminal() {
    let answers = "answers: [{ tools: [{ terminal: { action: start, command: 'echo \"$FROM_START\" > made' } }] }, { text: done }]";
    let start = "echo \"export FROM_START='from the start'\" >> \"$CLAUDE_ENV_FILE\"";
    let scene = imported(answers, &hook("SessionStart", "", start));
    ran(&scene, &[]);
    assert_eq!(fs::read_to_string(scene.path("work/made")).expect("a file"), "from the start\n");
}

#[test]
fn a_plugin_without_hooks_is_an_error() {
    for (folder, why) in [
        ("../plugins/none", "there is no folder"),
        ("../plugins/bare", "it declares no hooks"),
        ("../plugins/lost", "there is no `hooks/gone.json`"),
    ] {
        let scene = Scene::scripted(TOUCHES);
        scene.write("plugins/bare/.claude-plugin/plugin.json", r#"{"name":"bare"}"#);
        scene.write("plugins/lost/.claude-plugin/plugin.json", r#"{"name":"x","hooks":"./hooks/gone.json"}"#);
        let scene = scene.with_settings(&format!("[hooks]\nimport = [\"claude-plugin:{folder}\"]\n"));
        for command in [&["check"][..], &["run", "x"]] {
            let done = scene.provost(command);
            assert!(done.status == 2 && format!("{done:?}").contains(why), "{folder}: {done:?}");
        }
        assert!(!scene.path("work/made").exists(), "{folder}");
    }
}

#[test]
fn a_plugin_may_declare_its_hooks_in_its_manifest_or_in_a_file_that_it_names() {
    let hooks = hook("PreToolUse", "Bash", "echo \"${CLAUDE_PLUGIN_ROOT}\" >&2; exit 2");
    let inline = value!({ "name": "inline", "hooks": json(&hooks)["hooks"] }).to_string();
    for manifest in [inline.as_str(), r#"{"name":"other","hooks":"./config/guards.json"}"#] {
        let scene = Scene::scripted(TOUCHES);
        scene.write("plugins/a/.claude-plugin/plugin.json", manifest);
        scene.write("plugins/a/config/guards.json", &hooks);
        let scene = scene.with_settings("[hooks]\nimport = [\"claude-plugin:../plugins/a\"]\n").trusted();
        let done = ran(&scene, &[]);
        assert!(!scene.path("work/made").exists(), "{manifest}: {done:?}");
        assert!(done.stderr.contains("plugins/a"), "{done:?}");
    }
}

#[test]
fn where_output_goes_is_no_script() {
    let log = "mkdir -p .claude; echo done >> .claude/notify.log 2> ./errors.log";
    let scene = imported("answers: [{ text: done }]", &hook("Stop", "", log));
    let checked = scene.provost(&["check"]);
    assert!(!checked.stdout.contains("isn't there"), "{checked:?}");
}

#[test]
fn a_session_and_a_plan_are_told_as_scripts_know_them() {
    let answers = "answers: [{ tools: [{ update_plan: { steps: [{ text: one, status: completed }, { text: two, status: pending }] } }] }, { text: done }]";
    let check = r#"cat > told.json; jq -rs '[.[].message.content? | arrays | .[] | select(.name == "TodoWrite") | .input.todos]
        | last | map(.status) | join(",")' "$(jq -r .transcript_path told.json)" > todos"#;
    let scene = imported(answers, &hook("Stop", "", check));
    scene.write("work/.git/HEAD", "ref: refs/heads/topic\n");
    let done = ran(&scene, &[]);
    assert_eq!(
        fs::read_to_string(scene.path("work/todos")).expect("todos"),
        "completed,pending\n",
        "{done:?}"
    );
    let told = json(&fs::read_to_string(scene.path("work/told.json")).expect("it was asked"));
    let id = told["session_id"].as_str().expect("an id");
    assert!(id.len() == 36 && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{id}");
    assert_eq!(told["provost_session"], format!("{}.0", scene.last_run()));
    let transcript = told["transcript_path"].as_str().expect("a path");
    assert!(transcript.ends_with(&format!("/{id}.jsonl")), "{transcript}");
    let line = fs::read_to_string(transcript).expect("a file");
    let first = json(line.lines().next().expect("a line"));
    assert_eq!((&first["sessionId"], &first["gitBranch"]), (&value!(id), &value!("topic")));
}

#[test]
fn what_guards_something_and_isnt_taken_is_named() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    let settings = r#"{"enabledPlugins":{"guard@shop":true},"sandbox":{"enabled":true}}"#;
    scene.write("work/.claude/settings.json", settings);
    scene.write("work/.claude/skills/a/SKILL.md", "---\nname: a\nhooks:\n  PreToolUse: []\n---\nText\n");
    scene.write("work/.claude/agents/b.md", "---\nname: b\nhooks:\n  Stop: []\n---\nText\n");
    scene.write("work/.claude/agents/c.md", "---\nname: c\n---\nhooks: none\n");
    let codex = "approval_policy = \"never\"\nsandbox_mode = \"read-only\"\nnotify = [\"say\"]\n";
    scene.write("work/.codex/config.toml", codex);
    let scene = scene.with_settings("[hooks]\nimport = [\"claude\", \"codex\"]\n").trusted();
    let checked = scene.provost(&["check"]).stdout;
    for line in [
        "skipped: .claude/settings.json: enabledPlugins: `enabledPlugins`",
        "skipped: .claude/settings.json: sandbox: `sandbox`",
        "skipped: .claude/skills/a/SKILL.md: `hooks`",
        "skipped: .claude/agents/b.md: `hooks`",
        "skipped: .codex/config.toml: `approval_policy`",
        "skipped: .codex/config.toml: `sandbox_mode`",
        "skipped: .codex/config.toml: `notify`",
    ] {
        assert!(checked.contains(line), "{line}\n{checked}");
    }
    assert!(!checked.contains("c.md"), "{checked}");
}
