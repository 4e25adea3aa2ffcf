//! Where a hook runs, and what its file sets for it.

use std::fs;

use provost_event::{HookContract, HookPolicy, HookProgram, HookSetup};

use crate::stage::{Stage, claude, shown};

#[tokio::test]
async fn it_runs_in_the_agents_current_folder_and_finds_the_project_in_a_variable() {
    let mut stage = Stage::new();
    fs::create_dir_all(stage.work().join("crates/a")).expect("a folder");
    stage.current = "work/crates/a".into();
    let project = stage.work().parent().expect("a folder").to_owned();
    let setup = HookSetup { project: Some(project.clone()), ..HookSetup::default() };
    let script = "cat > told.json; pwd >&2; echo \"$CLAUDE_PROJECT_DIR\" >&2; exit 2";
    let answer = shown(&stage.ask(&HookPolicy { setup, ..claude("PreToolUse", script) }).await);
    let here = stage.work().join("crates/a");
    assert_eq!(answer, format!("deny: {}\\n{}", here.display(), project.display()));
    let told = fs::read_to_string(here.join("told.json")).expect("the input");
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["cwd"], here.display().to_string());
}

#[tokio::test]
async fn a_commit_guard_sees_the_repository_that_the_agent_went_to() {
    let mut stage = Stage::new();
    fs::create_dir_all(stage.work().join("inner")).expect("a folder");
    fs::write(stage.work().join("inner/FROZEN"), "").expect("a file");
    let guard = claude("PreToolUse", "test ! -e FROZEN || { echo 'this one is frozen' >&2; exit 2; }");
    assert_eq!(shown(&stage.ask(&guard).await), "continue");
    stage.current = "work/inner".into();
    assert_eq!(shown(&stage.ask(&guard).await), "deny: this one is frozen");
}

#[tokio::test]
async fn a_relative_script_is_the_projects_wherever_the_agent_went() {
    let mut stage = Stage::new();
    stage.script("guard.sh", "#!/bin/sh\npwd >&2; exit 2\n");
    fs::create_dir_all(stage.work().join("sub")).expect("a folder");
    stage.script("sub/guard.sh", "#!/bin/sh\nexit 0\n");
    let project = stage.work();
    stage.current = "work/sub".into();
    let denied = format!("deny: {}", project.display());
    for command in ["./guard.sh", "sh guard.sh", "exec bash -c './guard.sh'"] {
        for setup in
            [HookSetup { project: Some(project.clone()), ..HookSetup::default() }, HookSetup::default()]
        {
            let hook = HookPolicy { setup, ..claude("PreToolUse", command) };
            assert_eq!(shown(&stage.ask(&hook).await), denied, "{command}");
            assert_eq!(
                shown(&stage.ask(&HookPolicy { contract: HookContract::Provost, ..hook }).await),
                denied
            );
        }
    }
    let exec = HookProgram::Exec { program: "./guard.sh".to_owned(), args: Vec::new() };
    let hook = HookPolicy { program: Some(exec), ..claude("PreToolUse", "") };
    assert_eq!(shown(&stage.ask(&hook).await), denied);
}

#[tokio::test]
async fn a_hook_that_cannot_be_run_refuses_where_hooks_decide() {
    let stage = Stage::new();
    stage.script("plain.txt", "");
    let contracts = [HookContract::Provost, HookContract::Claude, HookContract::Codex];
    for contract in contracts {
        let of = |event: &str, command: &str| HookPolicy { contract, ..claude(event, command) };
        for (event, decision) in [
            ("PreToolUse", "deny: it can't be run: exit status 127: "),
            ("UserPromptSubmit", "deny: it can't be run: exit status 127: "),
            ("Stop", "deny: it can't be run: exit status 127: "),
            ("spawn", "deny: it can't be run: exit status 127: "),
            ("PostToolBatch", "pause: it can't be run: exit status 127: "),
            ("pre_llm_request", "pause: it can't be run: exit status 127: "),
            ("PostToolUse", "failed: it can't be run: exit status 127: "),
            ("SessionEnd", "failed: it can't be run: exit status 127: "),
        ] {
            let answer = shown(&stage.ask(&of(event, "./none.sh")).await);
            assert!(answer.starts_with(decision), "{contract:?} {event}: {answer}");
        }
        let answer = shown(&stage.ask(&of("PreToolUse", "/dev/null")).await);
        assert!(answer.starts_with("deny: it can't be run: exit status 126: "), "{contract:?}: {answer}");
        let exec = HookProgram::Exec { program: "./none".to_owned(), args: Vec::new() };
        let hook = HookPolicy { program: Some(exec), ..of("PreToolUse", "") };
        let answer = shown(&stage.ask(&hook).await);
        assert!(
            answer.starts_with("deny: it can't be run: \"./none\" was not found"),
            "{contract:?}: {answer}"
        );
    }
}

#[tokio::test]
async fn what_the_file_sets_is_in_the_environment_and_a_plugins_variables_are_placeholders_too() {
    let stage = Stage::new();
    let root = stage.work().join("plugin");
    fs::create_dir(&root).expect("a folder");
    let said = stage.script("plugin/say.sh", "#!/bin/sh\necho \"$1 $MODE\" >&2; exit 2\n");
    assert!(said.exists());
    let env = [
        ("CLAUDE_PLUGIN_ROOT".to_owned(), root.display().to_string()),
        ("MODE".to_owned(), "strict".to_owned()),
        ("CLAUDE_PROJECT_DIR".to_owned(), "/elsewhere".to_owned()),
    ];
    let setup = HookSetup { env: env.into(), ..HookSetup::default() };
    let args = vec!["${CLAUDE_PLUGIN_ROOT} ${MODE}".to_owned()];
    let exec = HookProgram::Exec { program: "${CLAUDE_PLUGIN_ROOT}/say.sh".to_owned(), args };
    let hook = HookPolicy { program: Some(exec), setup: setup.clone(), ..claude("PreToolUse", "") };
    assert_eq!(shown(&stage.ask(&hook).await), format!("deny: {} ${{MODE}} strict", root.display()));
    let shell = claude("PreToolUse", "\"${CLAUDE_PLUGIN_ROOT}\"/say.sh \"$CLAUDE_PROJECT_DIR\"");
    let answer = shown(&stage.ask(&HookPolicy { setup, ..shell }).await);
    assert_eq!(answer, format!("deny: {} strict", stage.work().display()), "no file moves the project");
}

#[tokio::test]
async fn a_condition_with_a_leading_slash_begins_in_the_projects_folder() {
    let mut stage = Stage::new();
    stage.tool = "write_file";
    let asked_about = |stage: &Stage, path: &str, condition: &str| {
        let mut hook = HookPolicy { condition: Some(condition.to_owned()), ..claude("PreToolUse", "exit 2") };
        hook.setup.project = Some(stage.work());
        let mut stage_of_path = Stage::new();
        stage_of_path.tool = "write_file";
        stage_of_path.input = serde_json::json!({ "path": stage.work().join(path), "content": "x" });
        stage_of_path.wants(&hook)
    };
    stage.input = serde_json::json!({});
    assert!(asked_about(&stage, "src/a.rs", "Write(/src/**)"));
    assert!(!asked_about(&stage, "docs/src/a.rs", "Write(/src/**)"));
    let absolute = format!("Write(/{}/src/**)", stage.work().display());
    assert!(asked_about(&stage, "src/a.rs", &absolute));
    assert!(!asked_about(&stage, "src/a.rs", "Write(/lib/**)"));
}
