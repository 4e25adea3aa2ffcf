//! Paths stay in the workspace, for all ways out of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use expect_test::expect;
use provost_event::ToolStatus;
use serde_json::json;

use crate::fixture::{Fixture, call_in, link};

/// A workspace with all kinds of ways out.
fn leaky() -> Fixture {
    let fixture = Fixture::new().file("a/inside.txt", "inside\n");
    std::fs::write(fixture.outside().join("secret.txt"), "secret\n").unwrap();
    std::fs::create_dir(fixture.outside().join("folder")).unwrap();
    std::fs::write(fixture.outside().join("folder/secret.txt"), "secret\n").unwrap();
    link("../secret.txt", fixture.path("file_link"));
    link(fixture.outside().join("folder"), fixture.path("folder_link"));
    link("../not_there.txt", fixture.path("dangling_link"));
    link("file_link", fixture.path("link_to_link"));
    link("../../folder/..", fixture.path("a/up"));
    fixture
}

fn ways_out(fixture: &Fixture) -> Vec<String> {
    let mut ways: Vec<_> = [
        "../secret.txt",
        "a/../../secret.txt",
        "a/b/../../../secret.txt",
        "missing/../../secret.txt",
        "file_link",
        "link_to_link",
        "folder_link/secret.txt",
        "folder_link/new.txt",
        "folder_link/../secret.txt",
        "dangling_link",
        "a/up/secret.txt",
        "/etc/hostname",
        "/",
        "..",
    ]
    .map(str::to_owned)
    .into();
    ways.push(fixture.outside().join("secret.txt").to_str().unwrap().to_owned());
    ways.push(fixture.root().join("../secret.txt").to_str().unwrap().to_owned());
    // A folder whose name begins like the workspace's is not in it.
    ways.push(format!("{}2/secret.txt", fixture.root().display()));
    ways
}

#[tokio::test]
async fn every_way_out_is_refused_for_every_tool_and_nothing_happens_outside() {
    let fixture = leaky();
    for path in ways_out(&fixture) {
        let calls = [
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "x"})),
            ("edit_file", json!({"path": path, "old_text": "secret", "new_text": "x"})),
            ("list_dir", json!({"path": path})),
            ("search", json!({"path": path, "pattern": "s"})),
        ];
        for (tool, input) in calls {
            let output = fixture.call(tool, input).await;
            assert_eq!(output.status, ToolStatus::Error, "{tool} {path}: {}", output.text);
            assert!(output.text.contains("is outside of the workspace"), "{tool} {path}: {}", output.text);
        }
    }
    assert_eq!(std::fs::read(fixture.outside().join("secret.txt")).unwrap(), b"secret\n");
    assert_eq!(std::fs::read(fixture.outside().join("folder/secret.txt")).unwrap(), b"secret\n");
    let mut outside: Vec<_> =
        fixture.outside().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    outside.sort();
    assert_eq!(outside, ["folder", "secret.txt", "workspace"]);
    assert_eq!(fixture.outside().join("folder").read_dir().unwrap().count(), 1);
}

#[tokio::test]
async fn a_refusal_names_the_path_and_the_workspace() {
    let expected = expect![[r#"
        Error
        `a/../../secret.txt` is outside of the workspace `/tmp/it/workspace`: use a path inside it; elsewhere, reading needs a permission with the path, or its folder in `roots` of [tools]
    "#]];
    leaky().check("read_file", json!({"path": "a/../../secret.txt"}), expected).await;
}

#[tokio::test]
async fn ways_that_lead_back_in_are_fine() {
    let fixture = leaky();
    link("a/inside.txt", fixture.path("good_link"));
    link(fixture.path("a"), fixture.path("good_folder"));
    link("a/new.txt", fixture.path("good_dangling"));
    link(fixture.root(), fixture.outside().join("alias"));
    let through_alias = fixture.outside().join("alias/a/inside.txt");
    let ways = [
        "a/inside.txt".to_owned(),
        "./a/../a/./inside.txt".to_owned(),
        "good_link".to_owned(),
        "good_folder/inside.txt".to_owned(),
        "../workspace/a/inside.txt".to_owned(),
        fixture.path("a/inside.txt").to_str().unwrap().to_owned(),
        // The workspace by another name.
        through_alias.to_str().unwrap().to_owned(),
    ];
    for path in ways {
        let output = fixture.call("read_file", json!({"path": path})).await;
        assert!(output.text.starts_with("1\tinside\n"), "{path}: {}", output.text);
    }
    let output = fixture.call("write_file", json!({"path": "good_dangling", "content": "new"})).await;
    assert_eq!(output.status, ToolStatus::Ok, "{}", output.text);
    assert_eq!(fixture.read("a/new.txt"), "new");
    assert!(fixture.path("good_dangling").is_symlink());
}

#[tokio::test]
async fn links_in_a_circle_are_told() {
    let fixture = Fixture::new();
    link("two", fixture.path("one"));
    link("one", fixture.path("two"));
    let expected = expect![[r#"
        Error
        `one` leads through more than 40 symbolic links
    "#]];
    fixture.check("read_file", json!({"path": "one"}), expected).await;
}

#[tokio::test]
async fn walks_do_not_follow_links() {
    let fixture = leaky();
    let output = fixture.call("search", json!({"pattern": "secret"})).await;
    assert!(output.text.starts_with("[nothing in `.` matches `secret`; 1 file searched"), "{}", output.text);
    let output = fixture.call("list_dir", json!({"depth": 5})).await;
    assert!(output.text.contains("\nfolder_link -> "), "{}", output.text);
    assert!(!output.text.contains("folder_link/"), "{}", output.text);
}

/// Replacing a folder by a link between check and use gains nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_swapped_for_a_link_all_the_time_never_lets_a_call_out() {
    let fixture = Fixture::new().file("real/secret.txt", "inside\n");
    std::fs::create_dir(fixture.outside().join("folder")).unwrap();
    std::fs::write(fixture.outside().join("folder/secret.txt"), "secret\n").unwrap();
    link(fixture.outside().join("folder"), fixture.path("way_out"));
    let swapping = Arc::new(AtomicBool::new(true));
    let (root, go_on) = (fixture.root(), Arc::clone(&swapping));
    let swapper = std::thread::spawn(move || {
        let name = |name: &str| root.join(name);
        let swap = |from: &str, to: &str| {
            // In between, the tool may have made a folder where there was none.
            while std::fs::rename(name(from), name(to)).is_err() {
                std::fs::remove_dir_all(name(to)).ok();
            }
        };
        while go_on.load(Ordering::Relaxed) {
            swap("real", "now");
            swap("now", "real");
            swap("way_out", "now");
            swap("now", "way_out");
        }
    });
    let context = fixture.context();
    for number in 0..400 {
        let read = call_in(&context, "read_file", json!({"path": "now/secret.txt"})).await;
        assert!(!read.text.contains("1\tsecret"), "{}", read.text);
        let path = format!("now/{number}.txt");
        call_in(&context, "write_file", json!({"path": path, "content": "x"})).await;
    }
    swapping.store(false, Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(fixture.outside().join("folder").read_dir().unwrap().count(), 1);
}
