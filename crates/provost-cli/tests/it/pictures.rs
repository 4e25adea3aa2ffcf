//! Pictures: given with a goal, read by an agent, shown as text, and included in an export.

use std::fs::File;
use std::io::Write as _;

use expect_test::{Expect, expect};

use crate::support::{Scene, json};

/// A PNG of two pixels, and its bytes in base64.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\0IEND\xaeB`\x82";
const PNG_BASE64: &str = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAYAAAAfFcSJAAAAAElFTkSuQmCC";
const GIF: &[u8] = b"GIF89a\x01\0\x01\0\0\0\0;";
const BYTES_MAX: u64 = 3_750_000;

const SCRIPT: &str = "
answers:
  - expect: { contains: what is in it }
    text: I'll look at the other one.
    tools: [{ read_file: { path: b.gif } }]
    usage: { input: 1000, output: 20 }
  - expect: { tool_result: { tool: read_file, contains: 'image/gif, 1×1' } }
    text: 'Two pixels. VERDICT: PASS'
    usage: { input: 1100, output: 10 }
";

fn scene() -> Scene {
    let scene = Scene::scripted(SCRIPT);
    scene.write_bytes("work/a.png", PNG);
    scene.write_bytes("work/b.gif", GIF);
    scene
}

fn ran() -> Scene {
    let scene = scene();
    let ran = scene.provost(&["run", "Say what is in it", "--image", "a.png", "--image", "b.gif"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    scene
}

/// A file of `bytes` bytes that begins like a picture.
fn large(scene: &Scene, name: &str, bytes: u64) {
    let mut file = File::create(scene.path(name)).unwrap();
    file.write_all(PNG).unwrap();
    file.set_len(bytes).unwrap();
}

#[track_caller]
fn check_refused(scene: &Scene, args: &[&str], expected: Expect) {
    let refused = scene.provost(&[&["run", "Say what is in it"], args].concat());
    assert_eq!((refused.status, refused.stdout.as_str()), (2, ""), "{refused:?}");
    expected.assert_eq(&scene.stable(&refused.stderr));
    assert_eq!(scene.provost(&["ps"]).stdout, "no runs yet; start one with `provost run \"GOAL\"`\n");
}

#[test]
fn what_is_no_picture_is_refused_by_its_name_and_nothing_starts() {
    let scene = scene();
    scene.write("work/notes.png", "a note");
    large(&scene, "work/more.png", BYTES_MAX + 1);
    large(&scene, "work/huge.png", 1 << 40);
    check_refused(
        &scene,
        &["--image", "a.png", "--image", "missing.png"],
        expect![[r#"
            error: --image missing.png: No such file or directory (os error 2)
        "#]],
    );
    check_refused(
        &scene,
        &["--image", "."],
        expect![[r#"
            error: --image .: Is a directory (os error 21)
        "#]],
    );
    check_refused(
        &scene,
        &["--image", "notes.png"],
        expect![[r#"
            error: --image notes.png: it is no PNG, JPEG, GIF or WebP image
        "#]],
    );
    check_refused(
        &scene,
        &["--image", "more.png"],
        expect![[r#"
            error: --image more.png: the image has 3750001 bytes, and models take at most 3750000; scale it down
        "#]],
    );
    check_refused(
        &scene,
        &["--image", "huge.png"],
        expect![[r#"
            error: --image huge.png: the image has 1099511627776 bytes, and models take at most 3750000; scale it down
        "#]],
    );
    check_refused(
        &scene,
        &["--image", "-"],
        expect![[r#"
            error: --image -: a picture comes from a file
        "#]],
    );
}

#[test]
fn a_picture_may_have_as_many_bytes_as_models_take() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    large(&scene, "work/most.png", BYTES_MAX);
    let ran = scene.provost(&["run", "Say what is in it", "--image", "most.png"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stderr.contains("\nuser: [image/png 3.6 MB] for "), "{}", ran.stderr);
}

#[test]
fn a_model_that_is_not_known_to_see_is_shown_nothing_until_the_settings_say_that_it_does() {
    let scene = scene();
    let blind = "[providers.mine]\nbase_url = \"http://127.0.0.1:9\"\nfree = true\n[limits]\nmodel_patience = \"1s\"\noutage_max = \"1s\"\n";
    scene.write("home/.config/provost/config.toml", blind);
    let args = ["--image", "a.png", "--model", "mine/eyes"];
    check_refused(
        &scene,
        &args,
        expect![[r#"
            error: --image: the model mine/eyes isn't known to see pictures
            hint: if it does, set images = true in [models."mine/eyes"] of your own settings file
        "#]],
    );
    let sees = format!("{blind}[models.\"mine/eyes\"]\nimages = true\n");
    scene.write("home/.config/provost/config.toml", &sees);
    // No server listens there: the run is suspended, but it has begun.
    let ran = scene.provost(&[&["run", "Say what is in it"][..], &args].concat());
    assert_eq!(ran.status, 4, "{ran:?}");
    assert!(ran.stderr.contains("user: [image/png 45 B] for mine/eyes"), "{}", ran.stderr);
}

#[test]
fn where_a_picture_is_its_kind_and_size_are_shown() {
    let scene = scene();
    let ran = scene.provost(&["run", "Say what is in it", "--image", "a.png", "--image", "b.gif"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    expect![[r#"
        run: RUN · script:/FOLDER/work/agent.yaml · /FOLDER/work
          Say what is in it
        user: [image/png 45 B] [image/gif 14 B] for script:/FOLDER/work/agent.yaml with 11 tools
        agent: I'll look at the other one.
        tool: read_file b.gif
        ok: read_file b.gif (TIME) [image/gif 14 B]
        agent: Two pixels. VERDICT: PASS
        completed (verdict PASS), not verified · 2 turns · 2.1k tokens · $0.00 · TIME
        go on with: provost resume RUN "and now …"
    "#]]
    .assert_eq(&scene.stable(&ran.stderr));
    let shown = scene.provost(&["show", "last"]).stdout;
    let goal = shown.lines().skip_while(|line| !line.starts_with("goal")).take(2);
    assert_eq!(
        goal.collect::<Vec<_>>(),
        ["goal        Say what is in it", "            [image/png 45 B] [image/gif 14 B]"]
    );
    let log = scene.provost(&["logs", "last"]).stdout;
    let lines = log.lines().filter(|line| line.contains("[image/"));
    let lines = lines.map(|line| format!("{}\n", line.split_once("  0    ").unwrap().1.trim_start()));
    expect![[r#"
        1  session_started     [image/png 45 B] [image/gif 14 B] for script:/FOLDER/work/agent.yaml with 11 tools
        5  tool_finished       read_file b.gif (TIME) [image/gif 14 B]
    "#]]
    .assert_eq(&scene.stable(&lines.collect::<String>()));
}

#[test]
fn json_has_pictures_as_the_log_has_them() {
    let scene = ran();
    let log = scene.provost(&["logs", "last", "--json"]).stdout;
    let images = |kind: &str| {
        let line = log.lines().map(json).find(|line| line["type"] == kind).unwrap();
        let images = line["images"].as_array().cloned().unwrap();
        images.iter().map(|image| (image["kind"].clone(), image["bytes"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(images("session_started"), [("image/png".into(), 45.into()), ("image/gif".into(), 14.into())]);
    assert_eq!(images("tool_finished"), [("image/gif".into(), 14.into())]);
    let shown = json(&scene.provost(&["show", "last", "--json"]).stdout);
    let line = log.lines().map(json).find(|line| line["type"] == "session_started").unwrap();
    assert_eq!(shown["goal_images"], line["images"]);
}

#[test]
fn an_export_takes_the_pictures_along() {
    let (here, there) = (ran(), Scene::new());
    let exported = here.provost(&["export", "last"]).stdout;
    here.write("run.jsonl", &exported);
    assert_eq!(there.provost(&["import", here.path("run.jsonl").to_str().unwrap()]).status, 0);
    let again = there.provost(&["export", "last", "--global"]).stdout;
    assert_eq!(again, exported);
    let blobs = again.lines().map(json).filter(|line| line["type"] == "blob").collect::<Vec<_>>();
    assert_eq!(blobs.len(), 2, "{again}");
    assert!(blobs.iter().any(|blob| blob["base64"] == PNG_BASE64), "{blobs:?}");
    assert!(blobs.iter().any(|blob| blob["text"] == std::str::from_utf8(GIF).unwrap()), "{blobs:?}");
}
