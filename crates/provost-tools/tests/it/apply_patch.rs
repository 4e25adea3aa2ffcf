//! `apply_patch`: all of a patch, or nothing.

use expect_test::{Expect, expect};
use provost_event::ToolStatus;
use serde_json::json;

use crate::fixture::{Fixture, link};

fn scene() -> Fixture {
    Fixture::new()
        .file("a.rs", "fn one() {\n    1\n}\n\nfn two() {\n    1\n}\n")
        .file("src/b.txt", "alpha\nbeta\ngamma\n")
        .file("gone.txt", "old\n")
}

async fn check(fixture: &Fixture, patch: &str, expected: Expect) {
    fixture.check("apply_patch", json!({ "input": patch }), expected).await;
}

#[tokio::test]
async fn one_patch_adds_changes_moves_and_deletes() {
    let fixture = scene();
    let patch = "*** Begin Patch\n*** Add File: new/c.txt\n+first\n+second\n*** Update File: a.rs\n@@ fn two() {\n-    1\n+    2\n*** Update File: src/b.txt\n*** Move to: src/d.txt\n alpha\n-beta\n+BETA\n gamma\n*** Delete File: gone.txt\n*** End Patch";
    let expected = expect![[r#"
        Ok
        added `new/c.txt`: 2 lines
        changed `a.rs`
        moved `src/b.txt` to `src/d.txt`
        deleted `gone.txt`
        a.rs
        @@ -4,4 +4,4 @@
         
         fn two() {
        -    1
        +    2
         }
        src/d.txt
        @@ -1,3 +1,3 @@
         alpha
        -beta
        +BETA
         gamma
    "#]];
    check(&fixture, patch, expected).await;
    assert_eq!(fixture.read("new/c.txt"), "first\nsecond\n");
    assert_eq!(fixture.read("a.rs"), "fn one() {\n    1\n}\n\nfn two() {\n    2\n}\n");
    assert_eq!(fixture.read("src/d.txt"), "alpha\nBETA\ngamma\n");
    assert_eq!(fixture.names("src"), ["d.txt"]);
    assert!(!fixture.path("gone.txt").exists());
}

#[tokio::test]
async fn if_one_change_does_not_fit_nothing_is_written() {
    let bad = [
        "*** Update File: src/b.txt\n-delta\n+x\n",
        "*** Update File: missing.txt\n-delta\n+x\n",
        "*** Delete File: missing.txt\n",
        "*** Add File: src/b.txt\n+x\n",
        "*** Update File: src/b.txt\n*** Move to: gone.txt\n-beta\n+x\n",
        "*** Update File: ../outside.txt\n-delta\n+x\n",
        "*** Add File: ../outside.txt\n+x\n",
        "*** Add File: first.txt\n+again\n",
        "*** Add File: src/b.txt/c.txt\n+x\n",
        "*** Update File: src/b.txt\n@@ nowhere\n-beta\n+x\n",
        "*** Rename File: src/b.txt\n",
    ];
    for change in bad {
        let fixture = scene();
        let patch = format!(
            "*** Begin Patch\n*** Add File: first.txt\n+x\n*** Delete File: gone.txt\n*** Update File: a.rs\n-fn one() {{\n+fn eins() {{\n{change}*** End Patch"
        );
        let output = fixture.call("apply_patch", json!({ "input": patch })).await;
        assert!(output.status.is_error(), "{change}: {}", output.text);
        assert_eq!(fixture.names("."), ["a.rs", "gone.txt", "src"], "{change}: {}", output.text);
        assert!(fixture.read("a.rs").starts_with("fn one()"), "{change}");
        assert_eq!(fixture.read("src/b.txt"), "alpha\nbeta\ngamma\n", "{change}");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_written_leaves_the_others_as_they_were() {
    let fixture = scene();
    let mut readonly = std::fs::metadata(fixture.path("src/b.txt")).unwrap().permissions();
    readonly.set_readonly(true);
    std::fs::set_permissions(fixture.path("src/b.txt"), readonly).unwrap();
    let patch = "*** Begin Patch\n*** Add File: a0.txt\n+x\n*** Delete File: gone.txt\n*** Update File: src/b.txt\n-beta\n+x\n*** End Patch";
    let output = fixture.call("apply_patch", json!({ "input": patch })).await;
    assert!(
        output.text.contains("read-only") && output.text.ends_with("Nothing of the patch was applied."),
        "{}",
        output.text
    );
    assert_eq!(fixture.names("."), ["a.rs", "gone.txt", "src"]);
    assert_eq!(fixture.read("gone.txt"), "old\n");
}

#[tokio::test]
async fn a_missing_line_is_told_with_the_lines_that_were_looked_for() {
    let expected = expect![[r#"
        Error
        `src/b.txt` can't be changed: change 2 of 2: the lines to be changed aren't in the file, in this order:
          delta
        Nothing of the patch was applied.
    "#]];
    let patch =
        "*** Begin Patch\n*** Update File: src/b.txt\n@@\n-alpha\n+x\n@@\n-delta\n+y\n*** End Patch\n";
    check(&scene(), patch, expected).await;
}

#[tokio::test]
async fn what_is_no_patch_is_rejected_with_the_line() {
    for (patch, told) in [
        ("", "it must begin with `*** Begin Patch`"),
        ("--- a\n+++ b\n", "it must begin with `*** Begin Patch`"),
        ("*** Begin Patch\n*** End Patch", "the patch changes nothing"),
        ("*** Begin Patch\n*** Update File: a.rs\n-x\n+y\n", "the patch ends too early"),
        ("*** Begin Patch\n*** Update File: a.rs\nx\n*** End Patch", "line 3 of the patch"),
        ("*** Begin Patch\n*** Add File: x\nx\n*** End Patch", "line 3 of the patch"),
        ("*** Begin Patch\n*** Update File: a.rs\n*** End Patch", "must be followed by changes"),
        ("*** Begin Patch\n*** Delete File:\n*** End Patch", "must be followed by a path"),
        ("*** Begin Patch\n*** Delete File: a.rs\n*** End Patch\nmore", "nothing may follow"),
    ] {
        let output = scene().call("apply_patch", json!({ "input": patch })).await;
        assert_eq!(output.status, ToolStatus::Rejected, "{patch:?}: {}", output.text);
        assert!(output.text.contains(told), "{patch:?}: {}", output.text);
    }
}

async fn changed(before: &str, hunks: &str) -> Result<String, String> {
    let fixture = Fixture::new().file("f", before);
    let patch = format!("*** Begin Patch\n*** Update File: f\n{hunks}*** End Patch");
    let output = fixture.call("apply_patch", json!({ "input": patch })).await;
    if output.status == ToolStatus::Ok { Ok(fixture.read("f")) } else { Err(output.text) }
}

#[tokio::test]
async fn line_ends_and_the_end_of_the_file_stay_as_they_are() {
    for (before, hunks, after) in [
        ("a\r\nb\r\n", "-a\n+x\n+y\n b\n", "x\r\ny\r\nb\r\n"),
        ("a\nb", " a\n-b\n+c\n", "a\nc"),
        ("a\nb", " b\n+c\n", "a\nb\nc"),
        ("a\nb\n", "+c\n", "a\nb\nc\n"),
        ("a\nb\na\nb\n", "-b\n+end\n*** End of File\n", "a\nb\na\nend\n"),
        ("a\nb\na\nb\n", "@@ b\n a\n-b\n+x\n", "a\nb\na\nx\n"),
        ("a\nb\n", "@@ a\n+x\n", "a\nx\nb\n"),
        ("", "+x\n", "x\n"),
        ("a\n\nb\n", " a\n\n-b\n+c\n", "a\n\nc\n"),
        ("a\nb\nc\n", "@@ -1,2 +1,2 @@\n a\n-b\n+x\n", "a\nx\nc\n"),
    ] {
        assert_eq!(changed(before, hunks).await.as_deref(), Ok(after), "{before:?} {hunks:?}");
    }
}

#[tokio::test]
async fn nearly_the_same_lines_count_only_where_there_is_one_such_place() {
    let trailing = changed("one  \ntwo\n", " one\n-two\n+2\n").await;
    assert_eq!(trailing.as_deref(), Ok("one  \n2\n"), "a kept line stays as the file has it");
    assert_eq!(changed("say \u{201c}hi\u{201d}\n", "-say \"hi\"\n+bye\n").await.as_deref(), Ok("bye\n"));
    let several = changed("x \ny\nx  \n", "-x\n+z\n").await;
    assert!(several.as_ref().is_err_and(|told| told.contains("2 places are nearly the same")), "{several:?}");
}

#[tokio::test]
async fn lines_at_several_places_are_changed_at_none() {
    for (before, hunks) in [
        ("x\na\ny\na\n", "-a\n+A\n"),
        ("if a:\n    x\nif b:\n    x\n", "@@\n-    x\n+    y\n"),
        ("fn f\na\nfn f\na\n", "@@ fn f\n-a\n+b\n"),
        ("x\nx\n", "@@ x\n+y\n"),
    ] {
        let told = changed(before, hunks).await;
        assert!(
            told.as_ref().is_err_and(|told| told.contains("are at 2 places of the file")),
            "{hunks}: {told:?}"
        );
    }
    let named = changed("if a:\n    x\nif b:\n    x\n", "@@ if a:\n-    x\n+    y\n").await;
    assert_eq!(named.as_deref(), Ok("if a:\n    y\nif b:\n    x\n"));
}

#[tokio::test]
async fn new_lines_get_the_indentation_of_the_file_or_the_change_is_refused() {
    for (before, hunks, after) in [
        ("f:\n    one\n    two\n", " one\n-two\n+2\n+  3\n", "f:\n    one\n    2\n      3\n"),
        ("one\n  two\n", "-  one\n+  1\n", "1\n  two\n"),
        ("\tone\n", "-one\n+1\n", "\t1\n"),
    ] {
        let done = changed(before, hunks).await;
        assert_eq!(done.as_deref(), Ok(after), "{hunks:?}");
    }
    let fixture = Fixture::new().file("f", "  one\n");
    let patch = "*** Begin Patch\n*** Update File: f\n-one\n+1\n*** End Patch";
    let output = fixture.call("apply_patch", json!({ "input": patch })).await;
    assert!(output.text.contains("the new lines were adapted"), "{}", output.text);
    for (before, hunks) in [
        ("\treturn 1\n", "-  return 1\n+  return 3\n"),
        ("one\n", "-  one\n+1\n"),
        ("  one\n    two\n", "-one\n-two\n+1\n"),
    ] {
        let told = changed(before, hunks).await;
        assert!(told.is_err(), "{hunks:?}: {told:?}");
    }
}

#[tokio::test]
async fn the_first_line_behind_a_byte_order_mark_can_be_changed() {
    assert_eq!(changed("\u{feff}a\nb\n", "-a\n+A\n b\n").await.as_deref(), Ok("\u{feff}A\nb\n"));
}

#[tokio::test]
async fn links_that_lead_out_are_refused() {
    let fixture = scene();
    std::fs::write(fixture.outside().join("secret.txt"), "secret\n").unwrap();
    link("../secret.txt", fixture.path("way_out"));
    for change in ["*** Update File: way_out\n-secret\n+x\n", "*** Delete File: way_out\n"] {
        let patch = format!("*** Begin Patch\n{change}*** End Patch");
        let output = fixture.call("apply_patch", json!({ "input": patch })).await;
        assert!(output.text.contains("is outside of the workspace"), "{}", output.text);
    }
    assert_eq!(std::fs::read_to_string(fixture.outside().join("secret.txt")).unwrap(), "secret\n");
}
