//! Errors in settings have position, key and remedy; all are reported at once.

use expect_test::{Expect, expect};

use crate::support::Scene;

/// The errors that a project's file with this text gives.
#[track_caller]
pub(crate) fn check(toml: &str, expected: Expect) {
    let scene = Scene::new();
    scene.write("work/provost.toml", toml);
    compare(&scene, expected);
}

/// The errors that the user's file with this text gives.
#[track_caller]
fn check_user(toml: &str, expected: Expect) {
    let scene = Scene::new();
    scene.write("home/.config/provost/config.toml", toml);
    compare(&scene, expected);
}

#[track_caller]
fn compare(scene: &Scene, expected: Expect) {
    let checked = scene.provost(&["check"]);
    assert_eq!(checked.status, 2, "{checked:?}");
    let errors = checked.stdout.lines().filter_map(|line| line.strip_prefix("error: "));
    let errors = errors.map(|line| format!("{line}\n")).collect::<String>();
    expected.assert_eq(&scene.stable(&errors));
    let ran = scene.provost(&["run", "anything"]);
    assert_eq!(ran.status, 2, "{ran:?}");
}

/// The errors of a run with these flags.
#[track_caller]
fn check_flags(flags: &[&str], expected: Expect) {
    let scene = Scene::new();
    let ran = scene.provost(&[&["run", "anything", "--model", "script:none.yaml"], flags].concat());
    assert_eq!(ran.status, 2, "{ran:?}");
    assert_eq!(ran.stdout, "");
    expected.assert_eq(&scene.stable(&ran.stderr));
}

/// The errors of a run with this variable.
#[track_caller]
fn check_variable(name: &str, value: &str, expected: Expect) {
    let scene = Scene::new();
    let output = scene.command(&["run", "anything"]).env(name, value).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    expected.assert_eq(&scene.stable(&String::from_utf8(output.stderr).unwrap()));
}

#[test]
fn numbers_that_cant_be() {
    check(
        "[agent]\nmax_turns = 0\n",
        expect![[r#"
            provost.toml:2:1: agent.max_turns: must be at least 1 (is 0); e.g. max_turns = 300
        "#]],
    );
    check(
        "[agent]\nmax_turns = -3\n",
        expect![[r#"
            provost.toml:2:1: agent.max_turns: must be at least 1 (is -3); e.g. max_turns = 300
        "#]],
    );
    check(
        "[agent]\n  max_turns = 2_000_000\n",
        expect![[r#"
            provost.toml:2:3: agent.max_turns: must be at most 1000000 (is 2000000); e.g. max_turns = 300
        "#]],
    );
    check(
        "[agent]\nmax_turns = 99999999999999999999999999\n",
        expect![[r#"
            provost.toml:2:1: agent.max_turns: must be at most 1000000 (is 99999999999999999999999999); e.g. max_turns = 300
        "#]],
    );
    check(
        "[agent]\nmax_turns = 1.5\n",
        expect![[r#"
            provost.toml:2:1: agent.max_turns: must be a whole number (is 1.5); e.g. max_turns = 300
        "#]],
    );
    check(
        "[agent]\nmax_turns = \"40\"\n",
        expect![[r#"
            provost.toml:2:1: agent.max_turns: must be a whole number (is text); e.g. max_turns = 300
        "#]],
    );
    check(
        "[agent]\nmax_turns = true\n",
        expect![[r#"
            provost.toml:2:1: agent.max_turns: must be a whole number (is true); e.g. max_turns = 300
        "#]],
    );
    check(
        "[agent]\noutput_tokens_max = 100\n",
        expect![[r#"
        provost.toml:2:1: agent.output_tokens_max: must be at least 256 (is 100); e.g. output_tokens_max = 8192
    "#]],
    );
    check(
        "[budget]\ntokens = 0\n",
        expect![[r#"
        provost.toml:2:1: budget.tokens: must be at least 1 (is 0); e.g. tokens = 2_000_000
    "#]],
    );
    check(
        "[limits]\nempty_answers = -1\n",
        expect![[r#"
        provost.toml:2:1: limits.empty_answers: must be from 0 to 1000 (is -1); e.g. empty_answers = 2
    "#]],
    );
}

#[test]
fn money_that_cant_be() {
    check(
        "[budget]\nusd = 0\n",
        expect![[r#"
        provost.toml:2:1: budget.usd: must be more than 0 (is 0); e.g. usd = 5.00
    "#]],
    );
    check(
        "[budget]\nusd = -5.00\n",
        expect![[r#"
        provost.toml:2:1: budget.usd: must be more than 0 (is -5.00); e.g. usd = 5.00
    "#]],
    );
    check(
        "[budget]\nusd = nan\n",
        expect![[r#"
        provost.toml:2:1: budget.usd: must be a finite amount (is nan); e.g. usd = 5.00
    "#]],
    );
    check(
        "[budget]\nusd = inf\n",
        expect![[r#"
        provost.toml:2:1: budget.usd: must be a finite amount (is inf); e.g. usd = 5.00
    "#]],
    );
    check(
        "[budget]\nusd = -inf\n",
        expect![[r#"
            provost.toml:2:1: budget.usd: must be more than 0 (is -inf); e.g. usd = 5.00
        "#]],
    );
    check(
        "[budget]\nusd = 0.0000001\n",
        expect![[r#"
        provost.toml:2:1: budget.usd: must have at most 6 decimals (is 0.0000001); e.g. usd = 5.00
    "#]],
    );
    check(
        "[budget]\nusd = 1e3\n",
        expect![[r#"
        provost.toml:2:1: budget.usd: must be a plain decimal of dollars (is 1e3); e.g. usd = 5.00
    "#]],
    );
    check(
        "[budget]\nusd = \"5\"\n",
        expect![[r#"
        provost.toml:2:1: budget.usd: must be an amount in dollars (is text); e.g. usd = 5.00
    "#]],
    );
    check(
        "[budget]\nusd = 99999999999999999999\n",
        expect![[r#"
        provost.toml:2:1: budget.usd: is more than there is (is 99999999999999999999); e.g. usd = 5.00
    "#]],
    );
}

#[test]
fn times_that_cant_be() {
    check(
        "[budget]\nwall_time = 7200\n",
        expect![[r#"
        provost.toml:2:1: budget.wall_time: must be a time with its unit, in quotes (is 7200); e.g. wall_time = "2h"
    "#]],
    );
    check(
        "[budget]\nwall_time = \"soon\"\n",
        expect![[r#"
        provost.toml:2:1: budget.wall_time: must be a time with its unit (is `soon`); e.g. wall_time = "2h"
    "#]],
    );
    check(
        "[budget]\nwall_time = \"0s\"\n",
        expect![[r#"
        provost.toml:2:1: budget.wall_time: must be at least TIME (is `TIME`); e.g. wall_time = "2h"
    "#]],
    );
    check(
        "[budget]\nwall_time = \"2 years\"\n",
        expect![[r#"
        provost.toml:2:1: budget.wall_time: must be at most a year (is `2 years`); e.g. wall_time = "2h"
    "#]],
    );
}

#[test]
fn texts_that_cant_be() {
    check(
        "[agent]\nmodel = \"\"\n",
        expect![[r#"
        provost.toml:2:1: agent.model: must not be empty; e.g. model = "anthropic/claude-opus-5-5"
    "#]],
    );
    check(
        "[agent]\nmodel = [\"a\", \"b\"]\n",
        expect![[r#"
        provost.toml:2:1: agent.model: must be text in quotes (is a list); e.g. model = "anthropic/claude-opus-5-5"
    "#]],
    );
    check(
        "[agent]\nmodel = \"gpt\"\n",
        expect![[r#"
            provost.toml:2:1: agent.model: there is no provider for the model `gpt`: write script:FILE, or PROVIDER/MODEL with one of anthropic, openai, gemini, openai-chat, openrouter, deepseek, mistral, groq, xai, moonshot, zai, fireworks, cerebras, together, nvidia, ollama, vllm, llamacpp, lmstudio, litellm
        "#]],
    );
    check(
        "[agent]\nmodel = \"anthropik/claude\"\n",
        expect![[r#"
            provost.toml:2:1: agent.model: there is no provider for the model `anthropik/claude`: did you mean `anthropic/claude`? Else write script:FILE, or PROVIDER/MODEL with one of anthropic, openai, gemini, openai-chat, openrouter, deepseek, mistral, groq, xai, moonshot, zai, fireworks, cerebras, together, nvidia, ollama, vllm, llamacpp, lmstudio, litellm
        "#]],
    );
    check(
        "[agent]\nmodel = \"script:none.yaml\"\n",
        expect![[r#"
        provost.toml:2:1: agent.model: can't read the script /FOLDER/work/none.yaml; check its path: No such file or directory (os error 2)
    "#]],
    );
    check_user(
        "[providers.anthropic]\nbase_url = \"example.com\"\n",
        expect![[r#"
            /FOLDER/home/.config/provost/config.toml:2:1: providers.anthropic.base_url: must be an address that begins with http:// or https://; e.g. base_url = "http://127.0.0.1:8080/v1"
        "#]],
    );
    check_user(
        "[providers.anthropic]\napi_key_env = \"sk-ant-secret\"\n",
        expect![[r#"
            /FOLDER/home/.config/provost/config.toml:2:1: providers.anthropic.api_key_env: must be the name of an environment variable, not a key; e.g. api_key_env = "MY_API_KEY"
        "#]],
    );
    check_user(
        "[store]\ndir = \"runs\"\n",
        expect![[r#"
        /FOLDER/home/.config/provost/config.toml:2:1: store.dir: must be an absolute path (is `runs`); e.g. dir = "/var/lib/provost"
    "#]],
    );
}

#[test]
fn keys_that_arent_there() {
    check(
        "[agent]\nmax_turn = 3\n",
        expect![[r#"
        provost.toml:2:1: agent.max_turn: there is no such setting; did you mean `agent.max_turns`?
    "#]],
    );
    check(
        "max_turns = 3\n",
        expect![[r#"
        provost.toml:1:1: max_turns: there is no such setting; `max_turns` belongs into [agent]
    "#]],
    );
    check(
        "[agnet]\nmodel = \"a/b\"\n",
        expect![[r#"
        provost.toml:1:2: agnet: there is no such setting; did you mean `agent`?
    "#]],
    );
    check(
        "[agent.more]\nx = 1\n",
        expect![[r#"
        provost.toml:1:8: agent.more: there is no such setting; did you mean `agent.model`?
    "#]],
    );
    check(
        "[something.else]\nx = 1\n",
        expect![[r#"
        provost.toml:1:2: something: there is no such setting; `provost check` lists what there is
    "#]],
    );
    check(
        "[budget]\nmax_turns = 3\n",
        expect![[r#"
        provost.toml:2:1: budget.max_turns: there is no such setting; `max_turns` belongs into [agent]
    "#]],
    );
    check(
        "agent = 3\n",
        expect![[r#"
        provost.toml:1:1: agent: must be a table: write [agent] on a line of its own
    "#]],
    );
}

#[test]
fn what_is_no_toml() {
    check(
        "[agent\nmodel = \"a/b\"\n",
        expect![[r#"
        provost.toml:1:7: not TOML: unclosed table, expected `]`
    "#]],
    );
    check(
        "[agent]\nmax_turns = 1\nmax_turns = 2\n",
        expect![[r#"
        provost.toml:3:1: not TOML: duplicate key
    "#]],
    );
}

#[test]
fn stop_hooks_that_cant_be() {
    check(
        "[[stop_hooks]]\ncommand = \"true\"\n",
        expect![[r#"
        provost.toml:1:1: stop_hooks: `name` is missing; e.g. name = "lint-check"
    "#]],
    );
    check(
        "[[stop_hooks]]\nname = \"x\"\n",
        expect![[r#"
            provost.toml:1:1: stop_hooks: `command` is missing; e.g. command = "cargo clippy -- -D warnings"
        "#]],
    );
    check(
        "[[stop_hooks]]\nname = \"x\"\ncommand = \"true\"\ntimeout = 3\n",
        expect![[r#"
            provost.toml:4:1: stop_hooks.timeout: there is no such setting; a stop hook has name, command, timeout_secs, on_error
        "#]],
    );
    check(
        "[[stop_hooks]]\nname = \"x\"\ncommand = \"true\"\ntimeout_secs = 0\n",
        expect![[r#"
        provost.toml:4:1: stop_hooks.timeout_secs: must be at least 1 (is 0); e.g. timeout_secs = 60
    "#]],
    );
    check(
        "[stop_hooks]\nname = \"x\"\n",
        expect![[r#"
        provost.toml:1:2: stop_hooks: must be a list: write [[stop_hooks]] on a line of its own, once for each
    "#]],
    );
    check(
        "stop_hooks = [1]\n",
        expect![[r#"
        provost.toml:1:15: stop_hooks: each must be a table with name and command
    "#]],
    );
}

#[test]
fn contradictions() {
    check(
        "[limits]\ncircle_notice = 9\n",
        expect![[r#"
            provost.toml:2:1: limits.circle_notice: there is no such setting; `provost check` lists what there is
        "#]],
    );
    check(
        "[budget]\nwall_time = \"10s\"\n\n[[stop_hooks]]\nname = \"slow\"\ncommand = \"true\"\ntimeout_secs = 60\n",
        expect![[r#"
            provost.toml:7:1: stop_hooks.timeout_secs: `slow` may take longer (60 s) than the whole run (budget.wall_time is 10 s, from provost.toml:2:1); e.g. timeout_secs = 1
        "#]],
    );
    check(
        "[[stop_hooks]]\nname = \"a\"\ncommand = \"true\"\n\n[[stop_hooks]]\nname = \"a\"\ncommand = \"false\"\n",
        expect![[r#"
            provost.toml:5:1: stop_hooks.name: `a` is taken by the stop hook at provost.toml:1:1; give each its own name
        "#]],
    );
}

#[test]
fn a_projects_file_may_not_say_where_the_key_goes() {
    check(
        "[providers.anthropic]\nbase_url = \"https://evil.example\"\n",
        expect![[r#"
            provost.toml:2:1: providers.anthropic.base_url: a project's file may not set this; set it in /FOLDER/home/.config/provost/config.toml
        "#]],
    );
    check(
        "[providers.anthropic]\napi_key_env = \"HOME\"\n",
        expect![[r#"
            provost.toml:2:1: providers.anthropic.api_key_env: a project's file may not set this; set it in /FOLDER/home/.config/provost/config.toml
        "#]],
    );
    check(
        "[store]\ndir = \"/tmp\"\n",
        expect![[r#"
        provost.toml:2:1: store.dir: a project's file may not set this; set it in /FOLDER/home/.config/provost/config.toml, or as PROVOST_STORE_DIR
    "#]],
    );
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    check(
        "[agent]\nmax_turns = 0\nmodle = \"a/b\"\n[budget]\nusd = nan\nwall_time = 3\n[[stop_hooks]]\nname = 3\n",
        expect![[r#"
            provost.toml:2:1: agent.max_turns: must be at least 1 (is 0); e.g. max_turns = 300
            provost.toml:3:1: agent.modle: there is no such setting; did you mean `agent.model`?
            provost.toml:5:1: budget.usd: must be a finite amount (is nan); e.g. usd = 5.00
            provost.toml:6:1: budget.wall_time: must be a time with its unit, in quotes (is 3); e.g. wall_time = "2h"
            provost.toml:8:1: stop_hooks.name: must be text in quotes (is 3); e.g. name = "lint-check"
            provost.toml:7:1: stop_hooks: `command` is missing; e.g. command = "cargo clippy -- -D warnings"
        "#]],
    );
}

#[test]
fn flags_and_variables_are_held_to_the_same() {
    check_flags(
        &["--max-turns", "0"],
        expect![[r#"
            error: --max-turns: budget.turns: must be at least 1 (is 0); e.g. --max-turns 100
        "#]],
    );
    check_flags(
        &["--usd", "-1", "--tokens", "many"],
        expect![[r#"
        error: --tokens: budget.tokens: must be a whole number (is `many`); e.g. --tokens 2_000_000
        error: --usd: budget.usd: must be more than 0 (is -1); e.g. --usd 5.00
    "#]],
    );
    check_flags(
        &["--wall-time", "2"],
        expect![[r#"
        error: --wall-time: budget.wall_time: must be a time with its unit (is `2`); e.g. --wall-time 2h
    "#]],
    );
    check_variable(
        "PROVOST_BUDGET_USD",
        "nan",
        expect![[r#"
        error: PROVOST_BUDGET_USD: budget.usd: must be a finite amount (is nan); e.g. usd = 5.00
    "#]],
    );
    check_variable(
        "PROVOST_BUDGET_USDD",
        "5",
        expect![[r#"
        error: PROVOST_BUDGET_USDD: there is no such setting; did you mean PROVOST_BUDGET_USD?
    "#]],
    );
    check_variable(
        "PROVOST_STATE_DIR",
        "relative",
        expect![[r#"
        error: PROVOST_STATE_DIR: store.dir: must be an absolute path (is `relative`); e.g. dir = "/var/lib/provost"
    "#]],
    );
}

#[test]
fn what_doesnt_fit_the_model_is_told() {
    let check = |toml: &str, expected: Expect| {
        let scene = Scene::new();
        scene.write("work/provost.toml", toml);
        let ran = scene.command(&["run", "x"]).env("ANTHROPIC_API_KEY", "sk-secret").output().unwrap();
        assert_eq!(ran.status.code(), Some(2));
        expected.assert_eq(&String::from_utf8(ran.stderr).unwrap());
    };
    check(
        "[agent]\nmodel = \"anthropic/claude-unheard-of\"\n[budget]\nusd = 5\n",
        expect![[r#"
            error: provost.toml:4:1: budget.usd: limits money, but the price of anthropic/claude-unheard-of isn't known; limit tokens instead, e.g. tokens = 2_000_000; or state the price in [models."anthropic/claude-unheard-of"] of your own settings file; or set allow_unpriced
        "#]],
    );
    check(
        "[agent]\noutput_tokens_max = 900_000\n",
        expect![[r#"
            error: provost.toml:2:1: agent.output_tokens_max: anthropic/claude-opus-5-5 gives at most 128000 (is 900000); lower it, or leave it out
        "#]],
    );
}

#[test]
fn a_files_bytes_that_are_no_text_are_told() {
    let scene = Scene::new();
    std::fs::write(scene.path("work/provost.toml"), [0xff, 0xfe, 0x00]).unwrap();
    compare(
        &scene,
        expect![[r#"
        /FOLDER/work/provost.toml:1:1: can't be read: stream did not contain valid UTF-8
    "#]],
    );
}
