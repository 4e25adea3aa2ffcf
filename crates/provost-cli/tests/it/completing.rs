//! Completions of shells, and manual pages.

use crate::support::Scene;

/// What bash is offered for the last of these words.
fn offered(scene: &Scene, words: &[&str]) -> Vec<String> {
    let mut command = scene.command(&["--", "provost"]);
    command.args(words).env("PROVOST_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    command.env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_COMPLETE_SPACE", "true");
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn shells_complete_commands_runs_agents_models_and_profiles() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    assert!(offered(&scene, &["show", ""]).iter().all(|word| word.starts_with('-')), "there are no runs yet");
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let run = scene.last_run();
    assert_eq!(offered(&scene, &["resu"]), ["resume"]);
    for command in ["show", "logs", "resume", "say", "export", "replay"] {
        let words = offered(&scene, &[command, ""]);
        assert!(words.contains(&run) && words.contains(&"last".to_owned()), "{command}: {words:?}");
    }
    assert_eq!(offered(&scene, &["show", &run[..4]]), [run.as_str()]);
    assert_eq!(offered(&scene, &["pause", "last."]), ["last.0"]);
    let models = offered(&scene, &["run", "--model", "anthropic/claude-o"]);
    assert!(models.contains(&"anthropic/claude-opus-5-5".to_owned()), "{models:?}");
    assert_eq!(offered(&scene, &["models", "olla"]), ["ollama"]);
    assert_eq!(offered(&scene, &["profile", "show", "code"]), ["codex"]);
}

#[test]
fn every_shell_gets_a_script_that_asks_provost() {
    let scene = Scene::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = scene.provost(&["completions", shell]);
        assert!(script.status == 0 && script.stdout.contains("PROVOST_COMPLETE"), "{shell}: {script:?}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let scene = Scene::new();
    let page = scene.provost(&["man", "goal", "show"]);
    assert!(page.status == 0 && page.stdout.contains(".TH provost-goal-show 1"), "{page:?}");
    let unknown = scene.provost(&["man", "rnu"]);
    assert_eq!(
        (unknown.status, unknown.stderr.as_str()),
        (2, "error: there is no command `provost rnu`\nhint: `provost help` lists them\n")
    );
    assert_eq!(scene.provost(&["man", "--dir", "pages"]).status, 0);
    let pages = std::fs::read_dir(scene.path("work/pages")).unwrap();
    let pages = pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>();
    for page in ["provost.1", "provost-run.1", "provost-goal-show.1", "provost-models-check.1"] {
        assert!(pages.contains(&page.to_owned()), "{page}: {pages:?}");
    }
}
