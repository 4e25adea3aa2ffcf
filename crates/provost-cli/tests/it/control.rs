//! Control from outside: the answers of hook programs, and their input.

use std::fs;

use serde_json::Value;

use crate::support::{Done, Scene, done, json};

/// Two calls, each of which writes a line to `effects`, and then an end.
pub(crate) const TWO: &str = "
answers:
  - tools: [{ shell: { command: echo one >> effects } }]
  - tools: [{ shell: { command: echo two >> effects } }]
  - text: all done
";

pub(crate) const ONE: &str = "
answers:
  - tools: [{ shell: { command: echo one >> effects } }]
  - text: all done
";

/// One call that is refused with `words`; the agent is told so.
pub(crate) fn refused_with(words: &str) -> String {
    format!(
        "
answers:
  - tools: [{{ shell: {{ command: echo one >> effects }} }}]
  - expect: {{ tool_result: {{ tool: shell, is_error: true, contains: \"{words}\" }} }}
    text: as you wish
"
    )
}

pub(crate) fn scene(script: &str, settings: &str) -> Scene {
    Scene::scripted(script).with_settings(settings).trusted()
}

pub(crate) fn hook(event: &str, name: &str, command: &str, more: &str) -> String {
    format!("[[hooks]]\nevent = \"{event}\"\nname = \"{name}\"\ncommand = '''{command}'''\n{more}\n")
}

pub(crate) fn read(scene: &Scene, name: &str) -> String {
    fs::read_to_string(scene.path(&format!("work/{name}"))).unwrap_or_default()
}

pub(crate) fn effects(scene: &Scene) -> String {
    read(scene, "effects")
}

/// The newest run's entries.
pub(crate) fn log(scene: &Scene) -> Vec<Value> {
    scene.provost(&["logs", "last", "--global", "--json"]).stdout.lines().map(json).collect()
}

pub(crate) fn entries<'a>(log: &'a [Value], kind: &str) -> Vec<&'a Value> {
    log.iter().filter(|entry| entry["type"] == kind).collect()
}

/// The hook's answers.
pub(crate) fn decisions(log: &[Value], hook: &str) -> Vec<Value> {
    let reports = entries(log, "hooks_decided")
        .into_iter()
        .flat_map(|entry| entry["reports"].as_array().unwrap().clone());
    reports.filter(|report| report["hook"] == hook).map(|report| report["decision"].clone()).collect()
}

/// Every call that a model asked for has exactly one result, and every session one end or suspension.
#[track_caller]
pub(crate) fn lawful(log: &[Value]) {
    for message in entries(log, "assistant_message") {
        for call in message["content"].as_array().unwrap().iter().filter_map(|block| block.get("tool_call")) {
            let is_of_it =
                |result: &&&Value| result["call"] == call["id"] && result["actor"] == message["actor"];
            let results = entries(log, "tool_finished").iter().filter(is_of_it).count();
            assert_eq!(results, 1, "results of {call}");
        }
    }
    for request in entries(log, "approval_requested") {
        let answers = entries(log, "approval_resolved");
        let answers = answers
            .iter()
            .filter(|answer| answer["asked"] == request["seq"] && answer["actor"] == request["actor"]);
        assert_eq!(answers.count(), 1, "answers to {request}");
    }
}

#[track_caller]
pub(crate) fn check(done: &Done, status: i32) {
    assert_eq!(done.status, status, "{done:?}");
}

pub(crate) fn explained(scene: &Scene) -> Value {
    json(scene.provost(&["explain", "last", "--json"]).stdout.trim())["agents"][0].clone()
}

pub(crate) fn row<'a>(agent: &'a Value, table: &str, name: &str) -> &'a Value {
    let rows = agent[table].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name} in {rows:?}"))
}

// ---- what hooks may say -------------------------------------------------------------------------------------------

#[test]
fn exit_status_two_denies_with_its_words_and_nothing_is_done() {
    let scene = scene(
        &refused_with("not on a friday"),
        &hook("pre_tool_call", "guard", "cat >/dev/null; echo not on a friday; exit 2", ""),
    );
    check(&scene.provost(&["run", "x"]), 0);
    assert_eq!(effects(&scene), "");
    let log = log(&scene);
    lawful(&log);
    assert_eq!(decisions(&log, "guard"), [json(r#"{"deny":"not on a friday"}"#)]);
    assert_eq!(entries(&log, "tool_started").len(), 0);
}

#[test]
fn what_is_said_on_standard_error_is_the_reason_where_standard_output_is_empty() {
    let scene = scene(
        &refused_with("by the other pipe"),
        &hook("pre_tool_call", "guard", "echo by the other pipe >&2; exit 2", ""),
    );
    check(&scene.provost(&["run", "x"]), 0);
    assert_eq!(effects(&scene), "");
}

#[test]
fn exit_status_three_ends_the_run_with_status_five() {
    for (event, done) in
        [("pre_tool_call", ""), ("post_tool_call", "one\n"), ("pre_llm_request", ""), ("prompt_submit", "")]
    {
        let scene = scene(TWO, &hook(event, "warden", "echo enough; exit 3", ""));
        let ran = scene.provost(&["run", "x"]);
        check(&ran, 5);
        assert!(ran.stderr.contains("warden") && ran.stderr.contains("enough"), "{event}: {ran:?}");
        assert_eq!(effects(&scene), done, "{event}");
        let log = log(&scene);
        lawful(&log);
        let ended = entries(&log, "ended");
        assert!(ended.iter().all(|end| end["outcome"]["kind"] == "aborted"), "{event}: {ended:?}");
    }
}

/// A hook that gives no answer is reported; `done` are the effects that still happened.
#[track_caller]
fn silent(settings: &str, done: &str) {
    let scene = scene(ONE, settings);
    let ran = scene.provost(&["run", "x"]);
    check(&ran, 0);
    assert_eq!(effects(&scene), done, "{settings}");
    let log = log(&scene);
    lawful(&log);
    let said = decisions(&log, "gone");
    let is_unanswered =
        |decision: &Value| ["failed", "broken", "timed_out"].iter().any(|kind| !decision[kind].is_null());
    assert!(said.len() == 1 && is_unanswered(&said[0]), "{settings}: {said:?}");
    assert!(ran.stderr.contains("gone"), "who watches is told: {}", ran.stderr);
}

#[test]
fn a_hook_that_cant_start_fails_closed_before_a_tool_unless_told_otherwise() {
    let program = |more: &str| {
        format!(
            "[[hooks]]\nevent = \"pre_tool_call\"\nname = \"gone\"\nprogram = \"/no/such/program\"\n{more}"
        )
    };
    silent(&program(""), "");
    silent(&program("on_failure = \"continue\"\n"), "one\n");
    silent(&program("on_failure = \"deny\"\n"), "");
    silent(&program("contract = \"claude\"\non_failure = \"continue\"\n"), "one\n");
    silent(&program("contract = \"claude\"\non_failure = \"deny\"\n"), "");
    let scene = scene(ONE, &program("contract = \"claude\"\n"));
    check(&scene.provost(&["run", "x"]), 0);
    assert_eq!(effects(&scene), "", "a guard that isn't there guards all the same");
    assert!(decisions(&log(&scene), "gone")[0]["deny"].as_str().unwrap().contains("can't be run"));
}

#[test]
fn a_hook_that_dies_or_hangs_fails_closed_before_a_tool_and_open_behind_it() {
    silent(&hook("pre_tool_call", "gone", "/no/such/program", ""), "");
    silent(&hook("pre_tool_call", "gone", "kill -9 $$", ""), "");
    silent(&hook("pre_tool_call", "gone", "sleep 20", "timeout_secs = 1"), "");
    silent(&hook("post_tool_call", "gone", "/no/such/program", ""), "one\n");
}

#[test]
fn of_ten_hooks_those_behind_the_one_that_says_no_are_not_started() {
    let hooks = (1..=10).map(|n| {
        let says = if n == 3 { "echo stop; exit 2" } else { "exit 0" };
        hook("pre_tool_call", &format!("hook-{n}"), &format!("echo {n} >> asked; {says}"), "")
    });
    let scene = scene(ONE, &hooks.collect::<String>());
    check(&scene.provost(&["run", "x"]), 0);
    assert_eq!((read(&scene, "asked").as_str(), effects(&scene).as_str()), ("1\n2\n3\n", ""));
    let agent = explained(&scene);
    for n in 1..=10 {
        let row = row(&agent, "hooks", &format!("hook-{n}"));
        assert_eq!(row["consulted"], u64::from(n <= 3), "{row}");
        assert_eq!(row["decided_before"], u64::from(n > 3), "{row}");
        assert_eq!(row["denied"], u64::from(n == 3), "{row}");
    }
}

#[test]
fn each_moment_comes_in_its_order() {
    let events = [
        "session_start",
        "prompt_submit",
        "pre_llm_request",
        "pre_tool_call",
        "post_tool_call",
        "post_tool_success",
        "post_tool_failure",
        "post_tool_batch",
        "turn_end",
        "stop",
        "abort",
        "notification",
        "session_end",
    ];
    let hooks = events.map(|event| hook(event, event, &format!("echo {event} >> moments"), ""));
    let script = "
answers:
  - tools: [{ shell: { command: 'true' } }]
  - tools: [{ shell: { command: exit 4 } }]
  - text: all done
";
    let scene = scene(script, &hooks.concat());
    check(&scene.provost(&["run", "x"]), 0);
    let moments = read(&scene, "moments");
    let turn = "pre_llm_request pre_tool_call post_tool_call post_tool_";
    assert_eq!(
        moments.split_whitespace().collect::<Vec<_>>().join(" "),
        format!(
            "session_start prompt_submit {turn}success post_tool_batch {turn}failure post_tool_batch \
             pre_llm_request turn_end stop notification session_end"
        )
    );
}

// ---- Claude Code's contract -----------------------------------------------------------------------------------------

#[test]
fn the_claude_contract_is_read_as_its_scripts_have_it() {
    let json_of = |decision: &str, reason: &str| {
        format!(
            r#"echo '{{"hookSpecificOutput":{{"hookEventName":"PreToolUse","permissionDecision":"{decision}","permissionDecisionReason":"{reason}"}}}}'"#
        )
    };
    for (command, done) in [
        (json_of("deny", "json says no"), ""),
        (json_of("deny", "json says no") + "; exit 1", ""),
        ("echo words >&2; exit 2".to_owned(), ""),
        (json_of("allow", "") + "; echo stopped >&2; exit 2", ""),
        (r#"echo '{"decision":"block","reason":"legacy"}'"#.to_owned(), ""),
        (json_of("allow", "fine"), "one\n"),
        ("exit 1".to_owned(), "one\n"),
        ("exit 127".to_owned(), ""),
        ("exit 3".to_owned(), "one\n"),
        (r#"echo '{"permissionDecision":"deny"}'"#.to_owned(), "one\n"),
        ("echo '{ broken'".to_owned(), "one\n"),
    ] {
        let scene =
            scene(ONE, &hook("PreToolUse", "script", &command, "matcher = \"Bash\"\ncontract = \"claude\""));
        check(&scene.provost(&["run", "x"]), 0);
        assert_eq!(effects(&scene), done, "{command}");
        lawful(&log(&scene));
    }
}

#[test]
fn continue_false_ends_the_run_whatever_else_is_said() {
    let scene = scene(
        ONE,
        &hook(
            "PreToolUse",
            "script",
            r#"echo '{"continue":false,"stopReason":"that is all"}'"#,
            "contract = \"claude\"",
        ),
    );
    let ran = scene.provost(&["run", "x"]);
    check(&ran, 5);
    assert!(ran.stderr.contains("that is all"), "{ran:?}");
    assert_eq!(effects(&scene), "");
}

const CLAUDE_SETTINGS: &str = r#"{
  "permissions": { "allow": ["Bash(npm run *)"] },
  "env": { "FOO": "bar" },
  "hooks": {
    "PreToolUse": [
      { "matcher": "Bash",
        "hooks": [ { "type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/guard.sh", "timeout": 10 } ] },
      { "matcher": "Edit|Write",
        "hooks": [ { "type": "command", "command": "echo never >> wrong" } ] }
    ],
    "PostToolUse": [ { "matcher": "Bash", "hooks": [ { "type": "command", "command": "cat > post.json" } ] } ],
    "Stop": [ { "hooks": [ { "type": "command", "command": "cat > stop.json" } ] } ],
    "SessionStart": [ { "matcher": "startup", "hooks": [ { "type": "command", "command": "echo The build is broken." } ] } ],
    "WorktreeCreate": [ { "hooks": [ { "type": "command", "command": "true" } ] } ],
    "UserPromptSubmit": [ { "hooks": [ { "type": "prompt", "prompt": "Is it good?" } ] } ]
  }
}
"#;

const GUARD: &str = "#!/bin/bash
input=$(cat)
if printf '%s' \"$input\" | grep -q '\"command\": *\"rm '; then
  echo 'rm is not for agents' >&2
  exit 2
fi
printf '%s\\n' \"$input\" >> \"$CLAUDE_PROJECT_DIR\"/pre.json
exit 0
";

#[test]
fn a_projects_claude_settings_are_taken_as_they_are() {
    let script = "
answers:
  - expect: { contains: The build is broken. }
    tools: [{ shell: { command: rm precious } }]
  - expect: { tool_result: { tool: shell, is_error: true, contains: rm is not for agents } }
    tools: [{ shell: { command: echo one >> effects } }]
  - text: all done
";
    let scene = Scene::scripted(script).with_settings("[hooks]\nimport = [\"claude\"]\n");
    scene.write("work/.claude/settings.json", CLAUDE_SETTINGS);
    scene.write("work/.claude/hooks/guard.sh", GUARD);
    scene.write("work/precious", "");
    make_executable(&scene, "work/.claude/hooks/guard.sh");
    check(&scene.provost(&["run", "x"]), 2);
    let scene = scene.trusted();
    let ran = scene.provost(&["run", "x"]);
    check(&ran, 0);
    assert!(scene.path("work/precious").exists());
    assert_eq!((effects(&scene).as_str(), read(&scene, "wrong").as_str()), ("one\n", ""));
    let pre = json(read(&scene, "pre.json").trim());
    assert_eq!(
        (&pre["tool_name"], &pre["tool_input"]["command"]),
        (&"Bash".into(), &"echo one >> effects".into())
    );
    let post = json(&read(&scene, "post.json"));
    assert!(post["tool_response"]["stdout"].is_string(), "{post}");
    assert_eq!(json(&read(&scene, "stop.json"))["stop_hook_active"], false);
    let told = format!("{}{}", scene.provost(&["check"]).stdout, scene.provost(&["check"]).stderr);
    for skipped in ["WorktreeCreate", "prompt"] {
        assert!(told.contains(skipped), "{skipped} isn't told in {told}");
        assert!(ran.stderr.contains(skipped), "{skipped} isn't told in {}", ran.stderr);
    }
    lawful(&log(&scene));
}

fn make_executable(scene: &Scene, name: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(scene.path(name), fs::Permissions::from_mode(0o755)).unwrap();
}

// ---- secrets --------------------------------------------------------------------------------------------------------

const DUMPERS: [&str; 7] =
    ["tool", "pre_tool_call", "post_tool_call", "session_start", "stop", "claude", "last"];

/// The output about `source` of every kind of child process, in a process that has keys in its environment.
fn dumped(source: &str) -> Scene {
    let dump = |name: &str| format!("cat {source} > {name}.dump; true");
    let script = format!(
        "answers:\n  - tools: [{{ shell: {{ command: {} }} }}]\n  - text: all done\n",
        json(&Value::from(dump("tool")).to_string())
    );
    let hooks = ["pre_tool_call", "post_tool_call", "session_start", "stop"]
        .map(|event| hook(event, event, &dump(event), ""));
    let claude = hook("PreToolUse", "claude", &dump("claude"), "contract = \"claude\"");
    let stop = format!("[[stop_hooks]]\nname = \"last\"\ncommand = \"{}\"\n", dump("last"));
    let scene = scene(&script, &(hooks.concat() + &claude + &stop));
    let mut command = scene.command(&["run", "x"]);
    let names = [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "OTEL_EXPORTER_OTLP_HEADERS",
        "GITHUB_TOKEN",
    ];
    for name in names {
        command.env(name, "sk-hidden-value");
    }
    check(&done(&command.output().unwrap()), 0);
    scene
}

#[test]
fn neither_hooks_nor_stop_hooks_nor_tools_have_a_key_in_their_environment() {
    let scene = dumped("/proc/self/environ");
    for name in DUMPERS {
        let seen = read(&scene, &format!("{name}.dump"));
        assert!(seen.contains("PATH="), "{name}: {seen}");
        assert!(!seen.contains("hidden-value"), "{name} sees {seen}");
    }
}

/// What the tool `shell` sees of Provost's environment.
#[test]
fn commands_see_the_users_environment_without_secrets_and_powers() {
    let scene =
        Scene::scripted("answers:\n  - tools: [{ shell: { command: env > seen } }]\n  - text: done\n");
    let seen = [
        ("JAVA_HOME", "/opt/java"),
        ("VIRTUAL_ENV", "/w/venv"),
        ("PYTHONPATH", "/w/lib"),
        ("HTTPS_PROXY", "http://proxy.example.org:3128"),
        ("CARGO_TARGET_DIR", "/w/target"),
    ];
    let unseen = [
        ("ANTHROPIC_API_KEY", "sk-hidden-value"),
        ("COPY_OF_IT", "sk-hidden-value"),
        ("GITHUB_TOKEN", "ghp-hidden-value"),
        ("DATABASE_URL", "postgres://ann:hidden-value@db/x"),
        ("HTTP_PROXY", "http://ann:hidden-value@proxy:3128"),
        ("SSH_AUTH_SOCK", "/tmp/hidden-value"),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/hidden-value"),
        ("DOCKER_HOST", "unix:///hidden-value"),
        ("LD_LIBRARY_PATH", "/hidden-value"),
        ("BASH_ENV", "/hidden-value"),
        ("BASH_FUNC_cat%%", "() { echo hidden-value; }"),
        ("GIT_DIR", "/hidden-value"),
        ("CDPATH", "/hidden-value"),
    ];
    let ran = done(&scene.command(&["run", "x"]).envs(seen).envs(unseen).output().unwrap());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let text = format!("\n{}", read(&scene, "seen"));
    for (name, value) in seen {
        assert!(text.contains(&format!("\n{name}={value}\n")), "{name} isn't in {text}");
    }
    for name in unseen.map(|(name, _)| name) {
        assert!(!text.contains(&format!("\n{name}=")), "{name} is in {text}");
    }
    assert!(!text.contains("hidden-value"), "{text}");
    for setting in
        ["TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true"]
    {
        assert!(text.contains(&format!("\n{setting}\n")), "{setting} isn't in {text}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn nor_is_one_in_the_environment_of_the_process_above_them() {
    let scene = dumped("/proc/$PPID/environ");
    for name in DUMPERS {
        let seen = read(&scene, &format!("{name}.dump"));
        assert!(!seen.contains("hidden-value"), "{name} sees {seen}");
    }
}
