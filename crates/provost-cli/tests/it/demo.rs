//! `provost demo`: a whole run without a key, a network or a build tool.

use expect_test::expect;

use crate::support::{Scene, json};

#[test]
fn a_claim_is_refuted_the_project_repaired_and_the_run_kept() {
    let scene = Scene::new();
    let done = scene.provost(&["demo", "shop"]);
    assert_eq!(done.status, 0, "{done:?}");
    expect![[r#"
        The files of /FOLDER/work/shop want this:

          provost.toml:12:1: runs when the agent wants to stop (stop hook tests)
              sh tests.sh

        Trusted. When one of these files changes you are asked again.
        There were two bugs: the total forgot the quantities, and the change left out a coin that matched
        exactly. I corrected both and ran all tests: they pass.

        VERDICT: PASS

        The project is in /FOLDER/work/shop. See more of the run:
          provost show last --global       what it used, and how it was checked
          provost explain last --global    which limits and checks were consulted
          provost logs last --global       everything that happened
    "#]]
    .assert_eq(&scene.stable(&done.stdout));
    let (refuted, repaired) =
        (done.stderr.find("FAILED  change_is_given"), done.stderr.rfind("edit_file till.sh"));
    assert!(refuted < repaired && refuted.is_some(), "{}", done.stderr);
    let tests =
        std::process::Command::new("sh").arg("tests.sh").current_dir(scene.path("work/shop")).status();
    assert!(tests.unwrap().success());
    let run = json(&scene.provost(&["show", "last", "--global", "--json"]).stdout);
    assert_eq!((&run["verdict"], &run["verification"]), (&"pass".into(), &"passed".into()), "{run}");
}

#[test]
fn other_settings_dont_change_the_model_and_a_folder_in_use_stays_as_it_is() {
    let scene = Scene::new();
    scene.write("home/.config/provost/config.toml", "[agent]\nmodel = \"anthropic/claude-opus-5-5\"\n");
    let mut demo = scene.command(&["demo"]);
    demo.env("PROVOST_AGENT_MODEL", "openai/gpt-6.1-terra").env("TMPDIR", scene.path("home"));
    let done = demo.output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    scene.write("work/mine/file", "mine");
    let refused = scene.provost(&["demo", "mine"]);
    assert_eq!(
        (refused.status, refused.stderr.as_str()),
        (2, "error: mine isn't empty\nhint: name a folder that isn't there yet\n")
    );
    assert_eq!(std::fs::read_dir(scene.path("work/mine")).unwrap().count(), 1);
}
