//! `[tools]`: what file tools reach, and which variables commands get.

use crate::support::{Scene, json};

const USER_FILE: &str = "home/.config/provost/config.toml";

fn reading(path: &str) -> Scene {
    let answers = format!(
        "answers:\n  - tools: [{{ read_file: {{ path: {path} }} }}]\n  - text: \"done\\nVERDICT: PASS\"\n"
    );
    let scene = Scene::scripted(&answers);
    scene.write("shared/lib.txt", "shared text\n");
    scene
}

/// What the agent was answered, in the log of a run without a terminal.
fn answered(scene: &Scene) -> String {
    let ran = scene.provost(&["run", "x", "--json"]);
    let finished = ran.stdout.lines().map(json).find(|entry| entry["type"] == "tool_finished");
    finished.unwrap_or_else(|| panic!("no result: {ran:?}"))["output"].as_str().unwrap().to_owned()
}

#[test]
fn without_a_terminal_a_read_elsewhere_is_denied_and_the_way_is_told() {
    let scene = reading("../shared/lib.txt");
    let output = scene.stable(&answered(&scene));
    let told = "Not allowed by the permissions: `/FOLDER/shared/lib.txt` is outside of the workspace: reading it needs \
                the permission `read_file(/FOLDER/shared/lib.txt)`, or its folder in `roots` of [tools].";
    assert_eq!(output, told);
}

#[test]
fn roots_and_permissions_with_the_path_allow_it() {
    let scene = reading("../shared/lib.txt");
    scene.write(USER_FILE, "[tools]\nroots = [\"../shared\"]\n");
    assert!(answered(&scene).contains("shared text"));
    let path = scene.path("shared/lib.txt").canonicalize().unwrap();
    scene.write(USER_FILE, &format!("[permissions]\nallow = [\"read_file({})\"]\n", path.display()));
    assert!(answered(&scene).contains("shared text"));
}

#[test]
fn credentials_and_provost_s_own_files_are_hidden_also_below_a_root() {
    for hidden in ["home/.ssh/id_ed25519", "home/.config/provost/config.toml", "state/secret.txt"] {
        let scene = reading(&format!("../{hidden}"));
        scene.write(hidden, "# private\n");
        scene.write(USER_FILE, "[tools]\nroots = [\"..\"]\n");
        let output = answered(&scene);
        assert!(output.contains("is hidden from file tools"), "{hidden}: {output}");
    }
}

#[test]
fn a_project_s_roots_and_variables_need_trust() {
    let scene = reading("../shared/lib.txt")
        .with_settings("[tools]\nroots = [\"../shared\"]\nenv = [\"MY_TOKEN\"]\n");
    let refused = scene.provost(&["run", "x"]);
    assert_eq!(refused.status, 2);
    for told in [
        "is reached by the agents' file tools (tools.roots)",
        "is handed to the agents' commands (tools.env)",
    ] {
        assert!(refused.stderr.contains(told), "{}", refused.stderr);
    }
    assert!(answered(&scene.trusted()).contains("shared text"));
}

#[test]
fn variables_that_look_secret_reach_commands_only_by_name() {
    let answers = "answers:\n  - tools: [{ bash: { cmd: \"echo [$MY_TOKEN]\" } }]\n  - text: done\n";
    let scene = Scene::scripted(answers);
    let output = |scene: &Scene| {
        let ran = scene.command(&["run", "x", "--json"]).env("MY_TOKEN", "abc-123-def").output().unwrap();
        let text = String::from_utf8(ran.stdout).unwrap();
        let done = text.lines().map(json).find(|entry| entry["type"] == "tool_finished").unwrap();
        assert_eq!(done["tool"], "shell", "a call in another form is one of the tool");
        done["output"].as_str().unwrap().to_owned()
    };
    assert!(output(&scene).contains("[]"));
    scene.write(USER_FILE, "[tools]\nenv = [\"MY_TOKEN\"]\n");
    let with = output(&scene);
    assert!(!with.contains("[]"), "{with}");
}

#[test]
fn a_cut_output_is_read_and_searched_by_its_short_name() {
    let scene = Scene::scripted(
        "answers:\n  - tools: [{ shell: { command: \"seq 1 20000\" } }]\n  - tools:\n      - read_file: { path: \"output:4\", offset: 19999 }\n      - search: { path: \"output:4\", pattern: \"^12345$\" }\n      - read_file: { path: \"output:3\" }\n  - text: done\n",
    );
    let ran = scene.provost(&["run", "x", "--json"]);
    let results = ran.stdout.lines().map(json).filter(|entry| entry["type"] == "tool_finished");
    let outputs = results.map(|entry| entry["output"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert!(
        outputs[0].contains("read_file and search take the whole as path \"output:4\""),
        "{}",
        outputs[0]
    );
    assert!(outputs[1].starts_with("19999\t19999\n20000\t20000\n"), "{}", outputs[1]);
    assert!(outputs[2].starts_with("output:4:12345:12345\n"), "{}", outputs[2]);
    assert!(outputs[3].contains("there is no kept output `output:3`"), "{}", outputs[3]);
}
