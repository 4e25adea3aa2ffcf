//! Which layer wins, and that the source of each value is known.

use crate::support::{Scene, json};

#[track_caller]
fn value_of(checked: &str, key: &str) -> (String, String) {
    let all = json(checked);
    let found = all["settings"].as_array().unwrap().iter().find(|setting| setting["key"] == key);
    let found = found.unwrap_or_else(|| panic!("{key} is in {checked}"));
    let text = |name: &str| found[name].as_str().unwrap().to_owned();
    (text("value"), text("source"))
}

#[test]
fn each_layer_stands_over_the_ones_before() {
    let scene = Scene::new();
    let turns = |env: &[(&str, &str)]| {
        let output = scene.command(&["check", "--json"]).envs(env.iter().copied()).output().unwrap();
        value_of(&String::from_utf8(output.stdout).unwrap(), "agent.max_turns")
    };
    scene.write("home/.config/provost/config.toml", "[agent]\nmax_turns = 41\n");
    let user = scene.path("home/.config/provost/config.toml");
    assert_eq!(turns(&[]), ("41".to_owned(), format!("{}:2:1", user.display())));
    scene.write("work/provost.toml", "[agent]\nmax_turns = 42\n");
    assert_eq!(turns(&[]).0, "42");
    let env = [("PROVOST_AGENT_MAX_TURNS", "43")];
    assert_eq!(turns(&env), ("43".to_owned(), "PROVOST_AGENT_MAX_TURNS".to_owned()));
    let empty = [("PROVOST_AGENT_MAX_TURNS", "")];
    assert_eq!(
        turns(&empty),
        ("42".to_owned(), "provost.toml:2:1".to_owned()),
        "an empty variable isn't set"
    );
}

#[test]
fn a_flag_stands_over_everything() {
    let scene =
        Scene::scripted("answers: [{ text: done }]").with_settings("max_turns = 42\n[budget]\ntokens = 5\n");
    let args = [
        "run",
        "x",
        "--json",
        "--max-turns",
        "44",
        "--tokens",
        "1_000_000",
        "--usd",
        "0.25",
        "--wall-time",
        "90m",
    ];
    let output = scene.command(&args).env("PROVOST_AGENT_MAX_TURNS", "43").output().unwrap();
    let started = String::from_utf8(output.stdout).unwrap();
    let policy = &json(started.lines().next().unwrap())["policy"];
    assert_eq!(policy["agent"]["limits"]["turns_max"], 43);
    assert_eq!(
        policy["budget"],
        json(r#"{"tokens":1000000,"money":250000,"wall_time_ms":5400000,"turns":44}"#)
    );
}

#[test]
fn the_projects_file_is_found_in_a_folder_above() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    std::fs::create_dir_all(scene.path("work/deep/down")).unwrap();
    let ran = scene.command(&["run", "x"]).current_dir(scene.path("work/deep/down")).output().unwrap();
    assert_eq!(
        String::from_utf8(ran.stdout).unwrap(),
        "done\n",
        "the script is beside the file that names it"
    );
    let ran = scene.provost(&["run", "x", "--dir", "deep"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "done\n"));
}

#[test]
fn a_named_file_takes_the_place_of_the_projects() {
    let scene = Scene::scripted("answers: [{ text: project }]");
    scene.write("else/other.yaml", "answers: [{ text: other }]");
    scene.write("else/other.toml", "[agent]\nmodel = \"script:other.yaml\"\n[store]\ndir = \"/nowhere\"\n");
    let config = scene.path("else/other.toml");
    let ran = scene.provost(&["run", "x", "--config", config.to_str().unwrap()]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "other\n"));
    let ran = scene.provost(&["run", "x", "--config", "missing.toml"]);
    assert_eq!(
        (ran.status, ran.stderr.as_str()),
        (2, "error: missing.toml:1:1: can't be read: there is no such file\n")
    );
}

#[test]
fn anthropics_own_variables_are_honoured_after_ours() {
    let scene = Scene::new();
    let url = |env: &[(&str, &str)]| {
        let output = scene.command(&["check", "--json"]).envs(env.iter().copied()).output().unwrap();
        value_of(&String::from_utf8(output.stdout).unwrap(), "providers.anthropic.base_url")
    };
    let theirs = ("ANTHROPIC_BASE_URL", "https://user:pass@theirs.example/v1");
    let ours = ("PROVOST_PROVIDERS_ANTHROPIC_BASE_URL", "https://ours.example");
    assert_eq!(
        url(&[theirs]),
        ("https://…@theirs.example/v1".to_owned(), theirs.0.to_owned()),
        "no password"
    );
    assert_eq!(url(&[theirs, ours]), (ours.1.to_owned(), ours.0.to_owned()));
}

#[test]
fn a_key_is_looked_for_and_never_shown() {
    let scene = Scene::new();
    let checked = scene.provost(&["check"]);
    assert_eq!(checked.status, 2);
    let line = "error: default: agent.model: the model `anthropic/claude-opus-5-5` needs a key: set ANTHROPIC_API_KEY\n";
    assert!(checked.stdout.contains(line), "{checked:?}");
    let output = scene.command(&["check"]).env("ANTHROPIC_API_KEY", "sk-ant-secret").output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.ends_with("all right\n") && !shown.contains("secret"), "{shown}");
}

#[test]
fn the_stop_hooks_of_all_files_count() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    scene
        .write("home/.config/provost/config.toml", "[[stop_hooks]]\nname = \"mine\"\ncommand = \"exit 3\"\n");
    let scene = scene.with_settings("[[stop_hooks]]\nname = \"its\"\ncommand = \"true\"\n").trusted();
    let checked = scene.provost(&["check"]);
    assert!(
        checked.stdout.contains("stop hook mine") && checked.stdout.contains("stop hook its"),
        "{checked:?}"
    );
    assert_eq!(scene.provost(&["run", "x"]).status, 5, "a project can't switch the user's hook off");
}
