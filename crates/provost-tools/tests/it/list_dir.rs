//! `list_dir`.

use expect_test::expect;
use provost_tools::OUTPUT_BYTES_MAX;
use serde_json::json;

use crate::fixture::{Fixture, fifo, link};

#[tokio::test]
async fn entries_come_sorted_with_what_they_are() {
    let fixture = Fixture::new()
        .file("src/main.rs", "fn main() {}\n")
        .file("src/deep/x.rs", "")
        .file(".env", "A=1")
        .file("b.txt", [b'x'; 1536])
        .file("target/debug/out", "")
        .file(".git/config", "")
        .file("a.log", "")
        .file(".gitignore", "/target\n*.log\n");
    link("src/main.rs", fixture.path("link"));
    fifo(fixture.path("pipe"));
    let flat = expect![[r#"
        Ok
        .env  3 B
        .gitignore  14 B
        b.txt  1.5 KB
        link -> src/main.rs
        pipe  (special file)
        src/
        [6 entries; 3 left out by ignore rules: .git, a.log, target]
    "#]];
    fixture.check("list_dir", json!({}), flat).await;
    let deep = expect![[r#"
        Ok
        deep/
        deep/x.rs  0 B
        main.rs  13 B
        [3 entries]
    "#]];
    fixture.check("list_dir", json!({"path": "src", "depth": 2}), deep).await;
    let ignored = expect![[r#"
        Ok
        debug/
        [1 entry]
    "#]];
    fixture.check("list_dir", json!({"path": "target"}), ignored).await;
}

#[tokio::test]
async fn ignore_files_above_the_listed_folder_count() {
    let fixture = Fixture::new().file(".gitignore", "*.log\n").file("a/b/x.log", "").file("a/b/y.txt", "");
    let expected = expect![[r#"
        Ok
        y.txt  0 B
        [1 entry; 1 left out by ignore rules: x.log]
    "#]];
    fixture.check("list_dir", json!({"path": "a/b"}), expected).await;
}

#[tokio::test]
async fn ignore_files_outside_of_workspace_and_repository_do_not_count() {
    let fixture = Fixture::new().file("a.txt", "");
    std::fs::write(fixture.outside().join(".gitignore"), "*\n").unwrap();
    let expected = expect![[r#"
        Ok
        a.txt  0 B
        [1 entry]
    "#]];
    fixture.check("list_dir", json!({}), expected).await;
}

#[tokio::test]
async fn large_folders_are_cut_and_counted() {
    let mut fixture = Fixture::new();
    for number in 0..700 {
        fixture = fixture.file(&format!("{number:04}-{}.txt", "x".repeat(100)), "");
    }
    let output = fixture.call("list_dir", json!({})).await;
    assert!(output.text.len() < OUTPUT_BYTES_MAX);
    let last = output.text.lines().last().unwrap();
    let shown = output.text.lines().count() - 1;
    assert_eq!(last, format!("[{shown} entries and {} more: list a folder of it]", 700 - shown));
}

#[tokio::test]
async fn what_is_no_folder_is_told() {
    let fixture = Fixture::new().file("docs/a.txt", "");
    std::fs::create_dir(fixture.path("empty")).unwrap();
    let file = expect![[r#"
        Error
        `docs/a.txt` is a file: read_file shows what is in it
    "#]];
    fixture.check("list_dir", json!({"path": "docs/a.txt"}), file).await;
    let missing = expect![[r#"
        Error
        `doc` doesn't exist; similar in the workspace: `docs`
    "#]];
    fixture.check("list_dir", json!({"path": "doc"}), missing).await;
    let empty = expect![[r#"
        Ok
        [`empty` has nothing to list]
    "#]];
    fixture.check("list_dir", json!({"path": "empty"}), empty).await;
}

#[tokio::test]
async fn files_are_found_by_their_names_in_all_folders() {
    let fixture = Fixture::new()
        .file("a.rs", "x\n")
        .file("src/b.rs", "x\n")
        .file("src/deep/c.rs", "x\n")
        .file("src/c.txt", "x\n")
        .file("target/d.rs", "x\n")
        .file(".gitignore", "target\n");
    let expected = expect![[r#"
        Ok
        a.rs  2 B
        src/b.rs  2 B
        src/deep/c.rs  2 B
        [3 entries]
    "#]];
    fixture.check("list_dir", json!({"glob": "*.rs"}), expected).await;
    let expected = expect![[r#"
        Ok
        b.rs  2 B
        [1 entry]
    "#]];
    fixture.check("list_dir", json!({"path": "src", "glob": "*.rs", "depth": 1}), expected).await;
    let expected = expect![[r#"
        Ok
        [`.` has nothing to list]
    "#]];
    fixture.check("list_dir", json!({"glob": "*.py"}), expected).await;
    let output = fixture.call("list_dir", json!({"glob": "a[.rs"})).await;
    assert!(output.text.contains("`glob` can't be used"), "{}", output.text);
}
