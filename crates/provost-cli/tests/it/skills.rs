//! Skills: told by name and description before the goal, given when an agent asks for them.

use serde_json::Value;

use crate::support::{Scene, json};

const SKILL: &str = "---\nname: release\ndescription: How this project\n  is released\nlicense: MIT\n---\n\nRun sh scripts/tag.sh from this folder.\n";

const USES: &str = "
answers:
  - expect: { contains: \"skill| release: How this project is released\" }
    tools: [{ skill: { name: release } }]
  - expect: { tool_result: { tool: skill, contains: \"Run sh scripts/tag.sh from this folder.\" } }
    tools: [{ shell: { command: cd .claude/skills/release && sh scripts/tag.sh } }]
  - expect: { tool_result: { tool: shell, contains: tagged } }
    tools: [{ skill: { name: other } }]
  - expect: { tool_result: { tool: skill, contains: \"there is no skill `other`: release\" } }
    text: done
";

fn scene(answers: &str) -> Scene {
    let scene = Scene::scripted(answers);
    scene.write("work/.claude/skills/release/SKILL.md", SKILL);
    scene.write("work/.claude/skills/release/scripts/tag.sh", "echo tagged\n");
    scene
}

fn checked(scene: &Scene) -> Vec<Value> {
    let checked = json(&scene.provost(&["check", "--json"]).stdout);
    checked["skills"].as_array().unwrap().clone()
}

fn preamble(scene: &Scene) -> Value {
    let logs = scene.provost(&["logs", "last", "--json"]).stdout;
    let first = logs.lines().map(json).find(|entry| entry["type"] == "session_started").unwrap();
    first["policy"]["preamble"].clone()
}

#[test]
fn a_trusted_skill_is_told_given_when_asked_for_and_its_script_runs_as_any_command() {
    let scene = scene(USES).trusted();
    let ran = scene.provost(&["run", "x"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "done\n"), "{ran:?}");
    let skill = &checked(&scene)[0];
    assert_eq!((&skill["name"], &skill["skipped"]), (&"release".into(), &Value::Null));
    let listed = scene.provost(&["check"]).stdout;
    assert!(listed.contains("skill release  How this project is released  ("), "{listed}");
}

#[test]
fn the_script_of_a_skill_needs_the_permissions_of_any_command() {
    let answers = "
answers:
  - tools: [{ skill: { name: release } }, { shell: { command: sh .claude/skills/release/scripts/tag.sh } }]
  - text: done
";
    let scene = scene(answers).with_settings("[permissions]\ndeny = [\"shell(sh *)\"]\n").trusted();
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let logs = scene.provost(&["logs", "last", "--json"]).stdout;
    let finished = logs.lines().map(json).filter(|entry| entry["type"] == "tool_finished");
    let statuses = finished.map(|entry| entry["status"].clone()).collect::<Vec<_>>();
    assert_eq!(statuses, ["ok", "denied"]);
}

const NONE: &str = "answers: [{ text: done }]";

#[test]
fn an_untrusted_skill_is_not_used_and_the_run_goes_on_without_it() {
    let scene = scene(NONE);
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stderr.contains("SKILL.md isn't used before you agree to it: `provost trust`"), "{ran:?}");
    assert!(!preamble(&scene).to_string().contains("release"), "{}", preamble(&scene));
    let logs = scene.provost(&["logs", "last", "--json"]).stdout;
    assert!(!logs.contains("The instructions of a skill"), "no tool without skills");
    assert!(checked(&scene)[0]["skipped"].as_str().unwrap().contains("provost trust"));

    let asked = scene.provost(&["trust", "--yes"]);
    assert!(asked.stdout.contains("tells agents how to do something when they use this skill"), "{asked:?}");
    assert!(asked.stdout.contains("Run sh scripts/tag.sh from this folder."), "{asked:?}");
    assert_eq!(checked(&scene)[0]["skipped"], Value::Null);
    scene.write("work/.claude/skills/release/SKILL.md", &SKILL.replace("tag.sh", "evil.sh"));
    assert!(checked(&scene)[0]["skipped"].as_str().unwrap().contains("provost trust"), "it has changed");
}

#[test]
fn the_users_own_skills_need_no_trust_and_what_is_wrong_with_others_is_named() {
    let scene = Scene::scripted(NONE);
    scene.write(
        "home/.config/provost/skills/mine/SKILL.md",
        "---\nname: mine\ndescription: Mine.\n---\nDo it.",
    );
    for (folder, text) in [
        ("a-none", "Just text."),
        ("b-open", "---\nname: open\n"),
        ("c-yaml", "---\nname: [x\n---\nx"),
        ("d-nameless", "---\ndescription: x\n---\nx"),
        ("e-mute", "---\nname: mute\n---\nx"),
        ("f-odd", "---\nname: ../up\ndescription: x\n---\nx"),
        ("g-twice", "---\nname: mine\ndescription: x\n---\nx"),
    ] {
        scene.write(&format!("home/.config/provost/skills/z-{folder}/SKILL.md"), text);
    }
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(preamble(&scene).as_str().unwrap().ends_with("skill| mine: Mine."), "{}", preamble(&scene));
    let all = checked(&scene);
    let whys = all.iter().filter_map(|skill| skill["skipped"].as_str()).collect::<Vec<_>>();
    let expected = [
        "has no front matter",
        "has front matter that isn't closed",
        "has front matter that can't be read",
        "has no `name`",
        "has no `description`",
        "has the name `../up`",
        "isn't used: there is another skill `mine`",
    ];
    assert_eq!(whys.len(), expected.len(), "{whys:#?}");
    for (why, expected) in whys.iter().zip(expected) {
        assert!(why.starts_with(expected), "{why}");
    }
}

/// The text of before is what the agent is told after a resume, though the skill has changed and needs trust again.
#[test]
fn what_is_told_of_skills_stays_the_same_after_a_resume() {
    let scene =
        scene("answers: [{ text: done }, { tools: [{ skill: { name: release } }] }, { text: again }]")
            .trusted();
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let before = preamble(&scene);
    scene.write("work/.claude/skills/release/SKILL.md", &SKILL.replace("How", "Why"));
    let resumed = scene.provost(&["resume", "last", "go on"]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "again\n"), "{resumed:?}");
    assert_eq!(preamble(&scene), before);
    let view = scene.provost(&["logs", "last", "--view", "--json"]).stdout;
    assert!(
        view.contains("skill| release: How this project") && !view.contains("Why this project"),
        "{view}"
    );
    assert!(view.contains("there is no skill `release`: there are none now"), "{view}");
}

#[cfg(unix)]
#[test]
fn a_skill_that_leads_out_of_the_project_does_not_count() {
    let scene = Scene::scripted(NONE);
    scene.write("outside/SKILL.md", SKILL);
    std::fs::create_dir_all(scene.path("work/.provost/skills")).unwrap();
    std::os::unix::fs::symlink("../../../outside", scene.path("work/.provost/skills/out")).unwrap();
    let why = checked(&scene)[0]["skipped"].as_str().unwrap().to_owned();
    assert!(why.contains("leads out of the project"), "{why}");
}
