//! `write_file`.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use expect_test::expect;
use provost_event::ToolStatus;
use serde_json::json;

use crate::fixture::{Fixture, link};

#[tokio::test]
async fn a_file_is_made_with_its_folders_and_replaced() {
    let fixture = Fixture::new();
    let created = expect![[r#"
        Ok
        created `a/b/c.txt`: 2 lines, 8 B
    "#]];
    fixture.check("write_file", json!({"path": "a/b/c.txt", "content": "one\ntwo\n"}), created).await;
    let overwrote = expect![[r#"
        Ok
        overwrote `a/b/c.txt`: 1 line, 3 B
        There was such a file, and no earlier call of yours names it: what it held is replaced.
    "#]];
    fixture.check("write_file", json!({"path": "a/b/c.txt", "content": "new"}), overwrote).await;
    assert_eq!(fixture.read("a/b/c.txt"), "new");
    assert_eq!(fixture.names("a/b"), ["c.txt"]);
}

#[tokio::test]
async fn permissions_are_kept_and_the_file_is_another_one() {
    let fixture = Fixture::new().file("run.sh", "old");
    let path = fixture.path("run.sh");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
    let before = path.metadata().unwrap().ino();
    fixture.call("write_file", json!({"path": "run.sh", "content": "new"})).await;
    let after = path.metadata().unwrap();
    assert_eq!(after.permissions().mode() & 0o7777, 0o750);
    assert_ne!(after.ino(), before, "a reader of the old file must not see it change");
}

#[tokio::test]
async fn a_link_stays_one_and_where_it_leads_is_written() {
    let fixture = Fixture::new().file("real.txt", "old");
    link("real.txt", fixture.path("link.txt"));
    fixture.call("write_file", json!({"path": "link.txt", "content": "new"})).await;
    assert!(fixture.path("link.txt").is_symlink());
    assert_eq!(fixture.read("real.txt"), "new");
}

#[tokio::test]
async fn folders_and_names_that_cannot_be_are_told() {
    let fixture = Fixture::new().file("folder/x", "").file("file", "");
    let folder = expect![[r#"
        Error
        `folder` is a folder
    "#]];
    fixture.check("write_file", json!({"path": "folder", "content": ""}), folder).await;
    let root = expect![[r#"
        Error
        `.` is a folder
    "#]];
    fixture.check("write_file", json!({"path": ".", "content": ""}), root).await;
    let below_file = expect![[r#"
        Error
        can't make the folder of `file/x`: File exists (os error 17)
    "#]];
    fixture.check("write_file", json!({"path": "file/x", "content": ""}), below_file).await;
    let long = "n".repeat(300);
    let output = fixture.call("write_file", json!({"path": long, "content": ""})).await;
    assert_eq!(output.status, ToolStatus::Error);
    assert!(output.text.ends_with("File name too long (os error 36)"), "{}", output.text);
    assert_eq!(fixture.names("."), ["file", "folder"]);
}

#[tokio::test]
async fn a_read_only_file_stays_as_it_is() {
    let fixture = Fixture::new().file("kept.txt", "old");
    let path = fixture.path("kept.txt");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    let output = fixture.call("write_file", json!({ "path": "kept.txt", "content": "new" })).await;
    assert!(output.text.contains("`kept.txt` is read-only"), "{}", output.text);
    assert_eq!(fixture.read("kept.txt"), "old");
}

const UNREAD: &str =
    "There was such a file, and no earlier call of yours names it: what it held is replaced.";
const CHANGED: &str = "It had changed since you last read or wrote it: those changes are replaced.";

/// Writes `a.txt` after these calls by the same tools; returns what the answer says besides.
async fn said_after(calls: &[(&str, serde_json::Value)], change: bool) -> String {
    let fixture = Fixture::new().file("a.txt", "old\n");
    let (tools, context) = (provost_tools::builtin(), fixture.context());
    for (tool, input) in calls {
        let input = provost_event::Json::of(input).unwrap();
        let output = tools.get(tool).unwrap().call(&input, &context).await;
        assert_eq!(output.status, provost_event::ToolStatus::Ok, "{}", output.text);
    }
    if change {
        std::fs::write(fixture.path("a.txt"), "changed by another\n").unwrap();
    }
    let input = provost_event::Json::of(&json!({"path": "a.txt", "content": "new\n"})).unwrap();
    let output = tools.get("write_file").unwrap().call(&input, &context).await;
    output.text.split_once('\n').map(|(_, said)| said.to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn a_file_that_is_overwritten_unread_or_changed_is_told() {
    let read = ("read_file", json!({"path": "a.txt"}));
    let edit = ("edit_file", json!({"path": "a.txt", "old_text": "old", "new_text": "older"}));
    let write = ("write_file", json!({"path": "a.txt", "content": "mine\n"}));
    let patch = "*** Begin Patch\n*** Update File: a.txt\n-old\n+older\n*** End Patch";
    let patch = ("apply_patch", json!({"input": patch}));
    assert_eq!(said_after(&[], false).await, UNREAD);
    for known in [&read, &edit, &write, &patch] {
        assert_eq!(said_after(std::slice::from_ref(known), false).await, "", "{known:?}");
        assert_eq!(said_after(std::slice::from_ref(known), true).await, CHANGED, "{known:?}");
    }
    let other = ("write_file", json!({"path": "b.txt", "content": "new\n"}));
    assert_eq!(said_after(&[other], false).await, UNREAD);
}
