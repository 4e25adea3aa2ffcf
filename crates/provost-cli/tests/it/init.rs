//! `provost init`: the questions at a terminal, the short file and the one with everything, and the next step.

use expect_test::{expect, expect_file};

use crate::on_terminal::on_terminal;
use crate::support::Scene;

fn written(scene: &Scene) -> String {
    std::fs::read_to_string(scene.path("work/provost.toml")).unwrap()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a dialog")]
fn questions_are_asked_again_until_the_answer_can_be_taken() {
    let scene = Scene::new();
    scene.write("work/Cargo.toml", "");
    let steps = [
        ("provost models", ""),
        ("[anthropic/claude-opus-5-5] ", "antropic/x\n"),
        ("did you mean", ""),
        ("] ", "openai/gpt-6.1-terra\n"),
        ("[cargo test] ", "cargo test --workspace \"x y\"\n"),
        ("[5] ", "-3\n"),
        ("[5] ", "much\n"),
        ("[5] ", "1h30m\n"),
    ];
    let done = on_terminal(&scene, &["init"], &steps);
    assert_eq!(done.status, 0, "{done:?}");
    expect![[r#"
        Model, as provider/model. `provost models` lists them; ollama/NAME is one on this machine
          [anthropic/claude-opus-5-5] antropic/x
          there is no provider for the model `antropic/x`: did you mean `anthropic/x`? Else write script:FILE, or PROVIDER/MODEL with one of anthropic, openai, gemini, openai-chat, openrouter, deepseek, mistral, groq, xai, moonshot, zai, fireworks, cerebras, together, nvidia, ollama, vllm, llamacpp, lmstudio, litellm
          [anthropic/claude-opus-5-5] openai/gpt-6.1-terra
        Command that checks the work: an agent that says it is done goes on until it passes; - for none
          [cargo test] cargo test --workspace "x y"
        Budget of a run: US dollars such as 5, or a time such as 2h; - for none
          [5] -3
          must be more than 0 (is -3); write 5 for US dollars, 2h for a time
          [5] much
          must be a time with its unit (is `much`); write 5 for US dollars, 2h for a time
          [5] 1h30m
        wrote /FOLDER/work/provost.toml

        Next:
          export OPENAI_API_KEY=…
          provost trust           shows what the file runs, and asks for your consent
          provost run "Make the tests pass."      or another goal
    "#]].assert_eq(&scene.stable(&done.stdout));
    expect![[r##"
        # Settings of Provost. `provost init --all` writes all of them, with explanations.

        [agent]
        model = "openai/gpt-6.1-terra"

        # Of one run, with all its agents.
        [budget]
        wall_time = "1h30m"

        # What agents' programs may do, whatever they are told: docs/sandbox.md.
        [sandbox]
        mode = "workspace"
        network = "none"
        # External agents need their provider: allow_hosts, then network = "proxy" and true.
        external = false

        # The agent's work is done when this exits with 0; otherwise it is told why not and goes on.
        [[stop_hooks]]
        name = "check"
        command = 'cargo test --workspace "x y"'
        timeout_secs = 600
    "##]]
    .assert_eq(&written(&scene));
    let checked = scene.command(&["check"]).env("OPENAI_API_KEY", "sk-0123456789012345").output().unwrap();
    expect![[r#"
        read /FOLDER/work/provost.toml

        agent.model       openai/gpt-6.1-terra  (provost.toml:4:1)
        budget.wall_time  1h30m  (provost.toml:8:1)
        sandbox.mode      workspace  (provost.toml:12:1)
        sandbox.network   none  (provost.toml:13:1)
        sandbox.external  false  (provost.toml:15:1)
        store.dir         /FOLDER/state  (PROVOST_STATE_DIR)
        stop hook check  cargo test --workspace "x y"  (provost.toml:18:1)
        trust: you haven't agreed to this yet; `provost trust` asks you, `provost run` refuses until then
          provost.toml:18:1: runs when the agent wants to stop (stop hook check)
              cargo test --workspace "x y"
        `provost check --all` also shows what isn't set, with the defaults.

    "#]]
    .assert_eq(&scene.stable(&String::from_utf8(checked.stdout).unwrap()));
    assert_eq!(checked.status.code(), Some(0));
    let keyless = scene.provost(&["check"]);
    assert_eq!(keyless.status, 2);
    assert!(keyless.stdout.contains("error: provost.toml:4:1: agent.model: the model `openai/gpt-6.1-terra` needs a key: set OPENAI_API_KEY\n"), "{keyless:?}");
}

#[test]
fn the_end_of_the_input_writes_nothing() {
    let scene = Scene::new();
    let done = on_terminal(&scene, &["init"], &[("[anthropic/claude-opus-5-5] ", "\n"), ("[-] ", "\u{4}")]);
    assert!(done.status == 130 && done.stdout.ends_with("Nothing was written.\n"), "{done:?}");
    assert!(!scene.path("work/provost.toml").exists());
}

#[test]
fn without_a_terminal_flags_and_suggestions_are_taken() {
    let scene = Scene::new();
    scene.write("work/package.json", "{}");
    let wrote = scene.command(&["init", "--budget", "-"]).env("GEMINI_API_KEY", "k").output().unwrap();
    assert_eq!(wrote.status.code(), Some(0));
    let text = written(&scene);
    assert!(
        text.contains("model = \"gemini/") && text.contains("\"npm test\"") && !text.contains("[budget]")
    );
    let model = ["init", "--force", "--model", "ollama/qwen3:8b", "--check", "-"];
    let done = scene.provost(&model);
    assert_eq!(done.status, 0);
    expect![[r#"
        wrote /FOLDER/work/provost.toml

        Next:
          provost run "Make the tests pass."      or another goal
    "#]]
    .assert_eq(&scene.stable(&done.stdout));
    expect![[r##"
        # Settings of Provost. `provost init --all` writes all of them, with explanations.

        [agent]
        model = "ollama/qwen3:8b"

        # Of one run, with all its agents.
        [budget]
        wall_time = "2h"

        # What agents' programs may do, whatever they are told: docs/sandbox.md.
        [sandbox]
        mode = "workspace"
        network = "none"
        # External agents need their provider: allow_hosts, then network = "proxy" and true.
        external = false
    "##]]
    .assert_eq(&written(&scene));
    assert_eq!(scene.provost(&["check"]).status, 0);
    let refused = scene.provost(&["init", "--force", "--budget", "-1"]);
    assert_eq!(refused.status, 2);
    expect![[r#"
        error: --budget: must be more than 0 (is -1); write 5 for US dollars, 2h for a time
    "#]]
    .assert_eq(&refused.stderr);
    assert_eq!(written(&scene), text_of_local());
}

fn text_of_local() -> String {
    let scene = Scene::new();
    let done = scene.provost(&["init", "--model", "ollama/qwen3:8b", "--check", "-"]);
    assert_eq!(done.status, 0, "{done:?}");
    written(&scene)
}

#[test]
fn the_users_file_has_no_check_of_a_project() {
    let scene = Scene::new();
    scene.write("work/Cargo.toml", "");
    assert_eq!(scene.provost(&["init", "--user"]).status, 0);
    let text = std::fs::read_to_string(scene.path("home/.config/provost/config.toml")).unwrap();
    assert!(text.contains("usd = 5.0\n") && !text.contains("cargo test"), "{text}");
}

#[test]
fn everything_is_what_check_likes_and_nothing_is_replaced_unasked() {
    let scene = Scene::new();
    let wrote = scene.provost(&["init", "--all"]);
    assert_eq!(wrote.status, 0);
    expect![[r#"
        wrote /FOLDER/work/provost.toml

        Next:
          export ANTHROPIC_API_KEY=…
          provost run "Make the tests pass."      or another goal
    "#]]
    .assert_eq(&scene.stable(&wrote.stdout));
    let text = written(&scene);
    expect_file!["init.toml"].assert_eq(&text);
    let checked = scene.command(&["check"]).env("ANTHROPIC_API_KEY", "k").output().unwrap();
    assert_eq!(checked.status.code(), Some(0));
    scene.write("work/provost.toml", "mine");
    let refused = scene.provost(&["init", "--all"]);
    assert_eq!(refused.status, 2);
    assert_eq!(
        scene.stable(&refused.stderr),
        "error: /FOLDER/work/provost.toml is there already\nhint: --force replaces it\n"
    );
    assert_eq!(written(&scene), "mine");
    assert_eq!(scene.provost(&["init", "--all", "--force"]).status, 0);
    assert_eq!(written(&scene), text);
}
