//! `edit_file`.

use std::os::unix::fs::PermissionsExt;

use expect_test::{Expect, expect};
use provost_event::ToolStatus;
use serde_json::json;

use crate::fixture::Fixture;

const CODE: &str = "fn main() {\n\tlet answer = 42;\n\tprintln!(\"{answer}\");\n}\n\nfn other() {\n}\n";

async fn check(before: &str, old: &str, new: &str, answer: Expect, after: &str) {
    let fixture = Fixture::new().file("a.rs", before);
    fixture.check("edit_file", json!({"path": "a.rs", "old_text": old, "new_text": new}), answer).await;
    assert_eq!(fixture.read("a.rs"), after);
}

async fn check_unchanged(before: &str, old: &str, answer: Expect) {
    check(before, old, "NEW", answer, before).await;
}

#[tokio::test]
async fn a_unique_text_is_replaced_and_the_change_shown() {
    let answer = expect![[r#"
        Ok
        edited `a.rs`: 1 replacement at line 2
        @@ -1,4 +1,4 @@
         fn main() {
        -	let answer = 42;
        +	let answer = 43;
         	println!("{answer}");
         }
    "#]];
    check(CODE, "answer = 42", "answer = 43", answer, &CODE.replace("42", "43")).await;
}

#[tokio::test]
async fn several_places_are_named_unless_all_are_meant() {
    let code = CODE.replace("other", "answer").replace("\n\n", "\n");
    let fixture = Fixture::new().file("a.rs", &code);
    let ambiguous = expect![[r#"
        Error
        `old_text` is 3 times in `a.rs`, at lines 2, 3, 5: take more of the lines around the one you mean, or set `replace_all`; nothing was changed
    "#]];
    let input = json!({"path": "a.rs", "old_text": "answer", "new_text": "x"});
    fixture.check("edit_file", input, ambiguous).await;
    assert_eq!(fixture.read("a.rs"), code);
    let all = expect![[r#"
        Ok
        edited `a.rs`: 3 replacements at lines 2, 3, 5
        @@ -1,6 +1,6 @@
         fn main() {
        -	let answer = 42;
        -	println!("{answer}");
        +	let x = 42;
        +	println!("{x}");
         }
        -fn answer() {
        +fn x() {
         }
    "#]];
    let input = json!({"path": "a.rs", "old_text": "answer", "new_text": "x", "replace_all": true});
    fixture.check("edit_file", input, all).await;
    assert_eq!(fixture.read("a.rs"), code.replace("answer", "x"));
}

#[tokio::test]
async fn other_whitespace_is_shown() {
    let answer = expect![[r#"
        Error
        `old_text` is not in `a.rs`; nothing was changed
        Only whitespace differs. The file has, from line 2:
        2		let answer = 42;
        3		println!("{answer}");
    "#]];
    check_unchanged(CODE, "    let answer = 42;\n    println!(\"{answer}\");", answer).await;
}

#[tokio::test]
async fn the_most_similar_place_is_shown() {
    let answer = expect![[r#"
        Error
        `old_text` is not in `a.rs`; nothing was changed
        Most similar is, from line 1:
        1	fn main() {
        2		let answer = 42;
    "#]];
    check_unchanged(CODE, "fn main() {\n\tlet the_answer = 42;\n", answer).await;
    let nothing = expect![[r#"
        Error
        `old_text` is not in `a.rs`; nothing was changed
        Nothing in it is similar: read the file again.
    "#]];
    check_unchanged(CODE, "SELECT * FROM users", nothing).await;
    let empty = expect![[r#"
        Error
        `old_text` is not in `a.rs`; nothing was changed
        The file is empty.
    "#]];
    check_unchanged("", "a", empty).await;
}

#[tokio::test]
async fn line_numbers_taken_for_text_are_noticed() {
    let answer = expect![[r#"
        Error
        `old_text` is not in `a.rs`; nothing was changed
        Leave out the line numbers and tabs that read_file puts in front of the lines.
    "#]];
    check_unchanged(CODE, "2\t\tlet answer = 42;\n3\t\tprintln!(\"{answer}\");", answer).await;
}

#[tokio::test]
async fn line_endings_stay_as_the_file_has_them() {
    let fixture = Fixture::new().file("a.txt", "one\r\ntwo\r\nthree\r\n");
    let input = json!({"path": "a.txt", "old_text": "one\ntwo", "new_text": "1\n2\n2b"});
    fixture.call("edit_file", input).await;
    assert_eq!(fixture.read("a.txt"), "1\r\n2\r\n2b\r\nthree\r\n");
    // One line replaced by two.
    fixture.call("edit_file", json!({"path": "a.txt", "old_text": "three", "new_text": "3\n4"})).await;
    assert_eq!(fixture.read("a.txt"), "1\r\n2\r\n2b\r\n3\r\n4\r\n");
    let mixed = expect![[r#"
        Error
        `old_text` is not in `a.rs`; nothing was changed
        Only the line endings differ: the file has CR LF at some of its lines.
    "#]];
    check_unchanged("one\r\ntwo\nthree\n", "one\ntwo", mixed).await;
}

#[tokio::test]
async fn what_cannot_be_edited_is_told() {
    let same = expect![[r#"
        Rejected
        `old_text` and `new_text` are the same: there is nothing to do
    "#]];
    check_unchanged("a", "NEW", same).await;
    let empty = expect![[r#"
        Rejected
        `old_text` is empty: write_file makes or replaces a whole file
    "#]];
    check_unchanged("a", "", empty).await;
    let fixture = Fixture::new().file("latin.txt", b"caf\xe9").file("b.bin", [0, 1]);
    let latin = expect![[r#"
        Error
        `latin.txt` isn't UTF-8 (at byte 3): edit it with a program in the shell
    "#]];
    fixture.check("edit_file", json!({"path": "latin.txt", "old_text": "a", "new_text": "b"}), latin).await;
    let binary = expect![[r#"
        Error
        `b.bin` isn't text: binary data
    "#]];
    fixture.check("edit_file", json!({"path": "b.bin", "old_text": "a", "new_text": "b"}), binary).await;
    let missing = expect![[r#"
        Error
        `latin.tx` doesn't exist; similar in the workspace: `latin.txt`
    "#]];
    fixture.check("edit_file", json!({"path": "latin.tx", "old_text": "a", "new_text": "b"}), missing).await;
    std::fs::File::create(fixture.path("big")).unwrap().set_len(16 * 1024 * 1024 + 1).unwrap();
    let big = expect![[r#"
        Error
        `big` is larger than 16.0 MB: edit it with a program in the shell
    "#]];
    fixture.check("edit_file", json!({"path": "big", "old_text": "a", "new_text": "b"}), big).await;
}

#[tokio::test]
async fn permissions_are_kept() {
    let fixture = Fixture::new().file("run.sh", "old");
    let path = fixture.path("run.sh");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    fixture.call("edit_file", json!({"path": "run.sh", "old_text": "old", "new_text": "new"})).await;
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
    assert_eq!(fixture.read("run.sh"), "new");
}

#[tokio::test]
async fn several_edits_are_made_in_their_order() {
    let fixture = Fixture::new().file("a.txt", "one\ntwo\nthree\n");
    let edits = json!({"path": "a.txt", "edits": [
        {"old_text": "one", "new_text": "1"},
        {"old_text": "1\ntwo", "new_text": "1\n2"},
        {"old_text": "e", "new_text": "E", "replace_all": true},
    ]});
    let expected = expect![[r#"
        Ok
        edited `a.txt`: 3 edits: 1 replacement at line 1; 1 replacement at line 1; 2 replacements at lines 3, 3
        @@ -1,3 +1,3 @@
        -one
        -two
        -three
        +1
        +2
        +thrEE
    "#]];
    fixture.check("edit_file", edits, expected).await;
    assert_eq!(fixture.read("a.txt"), "1\n2\nthrEE\n");
}

#[tokio::test]
async fn if_one_of_several_edits_fails_none_is_made() {
    let fixture = Fixture::new().file("a.txt", "one\ntwo\n");
    let edits = json!({"path": "a.txt", "edits": [
        {"old_text": "one", "new_text": "1"},
        {"old_text": "zebra", "new_text": "2"},
    ]});
    let expected = expect![[r#"
        Error
        edit 2 of 2: `old_text` is not in `a.txt`; nothing was changed
        Nothing in it is similar: read the file again.
        No edit was made.
    "#]];
    fixture.check("edit_file", edits, expected).await;
    assert_eq!(fixture.read("a.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn an_edit_without_what_it_needs_is_rejected_with_what_is_missing() {
    let fixture = Fixture::new().file("a.txt", "one\n");
    for (arguments, told) in [
        (json!({"path": "a.txt"}), "give `old_text` and `new_text`, or `edits`"),
        (json!({"path": "a.txt", "edits": []}), "give `old_text` and `new_text`, or `edits`"),
        (json!({"path": "a.txt", "old_text": "one"}), "`new_text` is missing"),
        (json!({"path": "a.txt", "new_text": "one"}), "`old_text` is missing"),
        (
            json!({"path": "a.txt", "old_text": "one", "new_text": "1", "edits": [{"old_text": "a", "new_text": "b"}]}),
            "give either",
        ),
    ] {
        let output = fixture.call("edit_file", arguments).await;
        assert_eq!(output.status, ToolStatus::Rejected, "{}", output.text);
        assert!(output.text.contains(told), "{}", output.text);
    }
}
