//! `search`.

use expect_test::expect;
use provost_tools::OUTPUT_BYTES_MAX;
use serde_json::json;

use crate::fixture::Fixture;

fn project() -> Fixture {
    Fixture::new()
        .file("src/main.rs", "use std::io;\n\nfn main() {\n    Answer(42);\n}\n")
        .file("src/lib.rs", "pub fn answer() {}\n")
        .file("docs/a.md", "The answer.\r\n")
        .file("blob", b"answer\0")
        .file("target/x.rs", "answer\n")
        .file(".gitignore", "target\n")
}

#[tokio::test]
async fn matches_come_with_path_and_line() {
    let plain = expect![[r#"
        Ok
        docs/a.md:1:The answer.
        src/lib.rs:1:pub fn answer() {}
        [2 matching lines in 2 files; 5 files searched; 1 binary file left out]
    "#]];
    project().check("search", json!({"pattern": "answer"}), plain).await;
    let narrowed = expect![[r#"
        Ok
        src/lib.rs:1:pub fn answer() {}
        src/main.rs:4:    Answer(42);
        [2 matching lines in 2 files; 2 files searched]
    "#]];
    let input = json!({"pattern": "answer\\(", "glob": "*.rs", "case_insensitive": true});
    project().check("search", input, narrowed).await;
    let context = expect![[r#"
        Ok
        src/main.rs-2-
        src/main.rs:3:fn main() {
        src/main.rs-4-    Answer(42);
        [1 matching line in 1 file; 1 file searched]
    "#]];
    let input = json!({"pattern": "^fn", "path": "src/main.rs", "context_lines": 1});
    project().check("search", input, context).await;
    let line_end = expect![[r#"
        Ok
        docs/a.md:1:The answer.
        [1 matching line in 1 file; 1 file searched]
    "#]];
    project().check("search", json!({"pattern": "answer\\.$", "path": "docs"}), line_end).await;
    let ignored = expect![[r#"
        Ok
        target/x.rs:1:answer
        [1 matching line in 1 file; 1 file searched]
    "#]];
    project().check("search", json!({"pattern": "answer", "path": "target"}), ignored).await;
}

#[tokio::test]
async fn nothing_found_says_what_was_looked_at() {
    let nothing = expect![[r#"
        Ok
        [nothing in `src` matches `question` in files `*.rs`; 2 files searched]
    "#]];
    let input = json!({"pattern": "question", "path": "src", "glob": "*.rs"});
    project().check("search", input, nothing).await;
    let excluded = expect![[r#"
        Ok
        [nothing in `src` matches `answer` in files `!lib.rs`; 1 file searched]
    "#]];
    project().check("search", json!({"pattern": "answer", "path": "src", "glob": "!lib.rs"}), excluded).await;
}

#[tokio::test]
async fn bad_patterns_are_rejected_in_the_parsers_words() {
    let regex = expect![[r#"
        Rejected
        `pattern` can't be used:
        regex parse error:
            (?:main()
            ^
        error: unclosed group
        To search for one of ( ) [ ] { } . * + ? | ^ $ \ itself, put a \ before it; a match can't go over the end of a line.
    "#]];
    project().check("search", json!({"pattern": "main("}), regex).await;
    let lines = expect![[r#"
        Rejected
        `pattern` can't be used:
        the literal "\n" is not allowed in a regex
        To search for one of ( ) [ ] { } . * + ? | ^ $ \ itself, put a \ before it; a match can't go over the end of a line.
    "#]];
    project().check("search", json!({"pattern": "a\\nb"}), lines).await;
    let glob = expect![[r#"
        Rejected
        `glob` can't be used: error parsing glob '*.{rs': unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)
    "#]];
    project().check("search", json!({"pattern": "a", "glob": "*.{rs"}), glob).await;
}

#[tokio::test]
async fn many_results_and_long_lines_are_cut() {
    let fixture = Fixture::new().file("a.txt", "x\n".repeat(300)).file("b.txt", "x".repeat(1000));
    let output = fixture.call("search", json!({"pattern": "x", "max_results": 3})).await;
    assert_eq!(
        output.text,
        "a.txt:1:x\na.txt:2:x\na.txt:3:x\n[3 matching lines in 1 file; 1 file searched; stopped here: narrow \
         `pattern`, `path` or `glob`, or raise `max_results` for more]"
    );
    // Exactly at the limit isn't over it.
    let output = fixture.call("search", json!({"pattern": "x", "path": "a.txt", "max_results": 300})).await;
    assert!(output.text.ends_with("\n[300 matching lines in 1 file; 1 file searched]"), "{}", output.text);
    let output = fixture.call("search", json!({"pattern": "x", "path": "b.txt"})).await;
    assert!(
        output.text.starts_with(&format!("b.txt:1:{}… [1000 bytes]\n", "x".repeat(400))),
        "{}",
        output.text
    );
    let many = Fixture::new().file("a.txt", format!("{}\n", "x".repeat(399)).repeat(1000));
    let output = many.call("search", json!({"pattern": "x", "max_results": 1000})).await;
    assert!(output.text.len() < OUTPUT_BYTES_MAX, "{}", output.text.len());
    assert!(output.text.contains("stopped here"));
}

fn three_files() -> Fixture {
    Fixture::new().file("a.rs", "needle\nhay\nneedle\n").file("src/b.rs", "needle\n").file("c.txt", "hay\n")
}

#[tokio::test]
async fn files_with_matches_are_listed_without_their_lines() {
    let expected = expect![[r#"
        Ok
        a.rs
        src/b.rs
        [2 files with matches; 3 files searched]
    "#]];
    three_files().check("search", json!({"pattern": "needle", "mode": "files"}), expected).await;
    let expected = expect![[r#"
        Ok
        a.rs
        [1 file with matches; 2 files searched; stopped here: narrow `pattern`, `path` or `glob`, or raise `max_results` for more]
    "#]];
    let one = json!({"pattern": "needle", "mode": "files", "max_results": 1, "glob": "*.rs"});
    three_files().check("search", one, expected).await;
}

#[tokio::test]
async fn matching_lines_are_counted_by_file() {
    let expected = expect![[r#"
        Ok
        a.rs:2
        src/b.rs:1
        [3 matching lines in 2 files; 3 files searched]
    "#]];
    three_files().check("search", json!({"pattern": "needle", "mode": "count"}), expected).await;
}

#[tokio::test]
async fn the_ends_of_a_pattern_are_those_of_every_line() {
    let fixture = Fixture::new().file("a.txt", "one\ntwo\r\nthree two\n");
    let expected = expect![[r#"
        Ok
        a.txt:2:two
        [1 matching line in 1 file; 1 file searched]
    "#]];
    fixture.check("search", json!({"pattern": "^two$"}), expected).await;
}
