//! `read_file`.

use std::collections::BTreeMap;
use std::sync::Arc;

use expect_test::expect;
use provost_event::BlobId;
use serde_json::json;

use crate::fixture::{Fixture, Kept, fifo};

#[tokio::test]
async fn lines_come_numbered_with_where_they_stand() {
    let fixture = Fixture::new().file("a.txt", "one\n\n\tthree\nfour");
    let all = expect![[r#"
        Ok
        1	one
        2	
        3		three
        4	four
        [lines 1-4 of 4; no line end after the last one]
    "#]];
    fixture.check("read_file", json!({"path": "a.txt"}), all).await;
    let some = expect![[r#"
        Ok
        2	
        3		three
        [lines 2-3 of 4; read on with offset 4]
    "#]];
    fixture.check("read_file", json!({"path": "a.txt", "offset": 2, "limit": 2}), some).await;
}

#[tokio::test]
async fn what_cannot_be_seen_is_told() {
    let fixture = Fixture::new().file("a.txt", b"\xef\xbb\xbfone\r\ncaf\xe9\r\n").file("empty.txt", "");
    let crlf = expect![[r#"
        Ok
        1	one
        2	caf�
        [lines 1-2 of 2; lines end with CR LF; bytes that aren't UTF-8 are shown as �]
    "#]];
    fixture.check("read_file", json!({"path": "a.txt"}), crlf).await;
    let empty = expect![[r#"
        Ok
        [`empty.txt` is empty]
    "#]];
    fixture.check("read_file", json!({"path": "empty.txt"}), empty).await;
    let behind = expect![[r#"
        Error
        `a.txt` has only 2 lines: `offset` 3 is behind its end
    "#]];
    fixture.check("read_file", json!({"path": "a.txt", "offset": 3}), behind).await;
}

#[tokio::test]
async fn a_file_that_is_not_there_brings_similar_names() {
    let fixture = Fixture::new().file("src/main.rs", "").file("src/lib.rs", "").file("README.md", "");
    let typo = expect![[r#"
        Error
        `src/mian.rs` doesn't exist; similar in `src`: `main.rs`
    "#]];
    fixture.check("read_file", json!({"path": "src/mian.rs"}), typo).await;
    let ending = expect![[r#"
        Error
        `readme.txt` doesn't exist; similar in the workspace: `README.md`
    "#]];
    fixture.check("read_file", json!({"path": "readme.txt"}), ending).await;
    let folder = expect![[r#"
        Error
        `lib/x/main.rs` doesn't exist: there is no `lib` in the workspace
    "#]];
    fixture.check("read_file", json!({"path": "lib/x/main.rs"}), folder).await;
    let below_file = expect![[r#"
        Error
        `README.md/x` doesn't exist; similar in the workspace: `README.md`
    "#]];
    fixture.check("read_file", json!({"path": "README.md/x"}), below_file).await;
}

#[tokio::test]
async fn what_is_no_text_is_described() {
    let fixture = Fixture::new().file("a.gz", b"\x1f\x8b\x08\0\0\0").file("b", [0; 2048]);
    let gzip = expect![[r#"
        Ok
        [`a.gz` isn't text: gzip-compressed data, 6 B]
    "#]];
    fixture.check("read_file", json!({"path": "a.gz"}), gzip).await;
    let binary = expect![[r#"
        Ok
        [`b` isn't text: binary data, 2.0 KB]
    "#]];
    fixture.check("read_file", json!({"path": "b"}), binary).await;
}

#[tokio::test]
async fn folders_pipes_and_sockets_are_refused_without_waiting() {
    let fixture = Fixture::new().file("folder/x", "");
    fifo(fixture.path("pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(fixture.path("socket")).unwrap();
    let folder = expect![[r#"
        Error
        `folder` is a folder: list_dir shows what is in it
    "#]];
    fixture.check("read_file", json!({"path": "folder"}), folder).await;
    let pipe = expect![[r#"
        Error
        `pipe` is a named pipe: only regular files can be read and written
    "#]];
    fixture.check("read_file", json!({"path": "pipe"}), pipe).await;
    let socket = expect![[r#"
        Error
        `socket` is a socket: only regular files can be read and written
    "#]];
    fixture.check("read_file", json!({"path": "socket"}), socket).await;
    for (tool, input) in [
        ("edit_file", json!({"path": "pipe", "old_text": "a", "new_text": "b"})),
        ("write_file", json!({"path": "pipe", "content": "b"})),
        ("search", json!({"path": "pipe", "pattern": "b"})),
    ] {
        let output = fixture.call(tool, input).await;
        assert!(output.text.contains("is a named pipe"), "{tool}: {}", output.text);
    }
    let output = fixture.call("search", json!({"pattern": "b"})).await;
    assert!(output.text.contains("1 file searched"), "{}", output.text);
}

#[tokio::test]
async fn outputs_kept_whole_are_read_by_their_name() {
    let id = "0123456789abcdef".repeat(4);
    let mut fixture = Fixture::new();
    fixture.blobs =
        Arc::new(Kept(BTreeMap::from([(BlobId(id.as_str().into()), b"first\nsecond\nthird\n".to_vec())])));
    let page = expect![[r#"
        Ok
        2	second
        [lines 2-2 of 3; read on with offset 3]
    "#]];
    let path = format!("output:{id}");
    fixture.check("read_file", json!({"path": path, "offset": 2, "limit": 1}), page).await;
    let unknown = expect![[r#"
        Error
        there is no kept output `output:0123`: use the name exactly as it was given
    "#]];
    fixture.check("read_file", json!({"path": "output:0123"}), unknown).await;
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_rejected_by_name() {
    let fixture = Fixture::new();
    let missing = expect![[r#"
        Rejected
        the arguments of read_file don't fit: missing field `path`
        its fields: `path` (string, required), `limit` (integer), `offset` (integer)
    "#]];
    fixture.check("read_file", json!({}), missing).await;
    let zero = expect![[r#"
        Rejected
        the arguments of read_file don't fit: `offset`: invalid value: integer `0`, expected a nonzero usize
        its fields: `path` (string, required), `limit` (integer), `offset` (integer)
    "#]];
    fixture.check("read_file", json!({"path": "a", "offset": 0}), zero).await;
    let kind = expect![[r#"
        Rejected
        the arguments of read_file don't fit: `path`: invalid type: sequence, expected a string
        its fields: `path` (string, required), `limit` (integer), `offset` (integer)
    "#]];
    fixture.check("read_file", json!({"path": ["a"]}), kind).await;
    let unknown = expect![[r#"
        Rejected
        the arguments of read_file don't fit: `file`: unknown field `file`, expected one of `path`, `offset`, `limit`
        its fields: `path` (string, required), `limit` (integer), `offset` (integer)
    "#]];
    fixture.check("read_file", json!({"path": "a", "file": "b"}), unknown).await;
    let shape = expect![[r#"
        Rejected
        the arguments of read_file don't fit: they must be one JSON object
        its fields: `path` (string, required), `limit` (integer), `offset` (integer)
    "#]];
    fixture.check("read_file", json!("a"), shape).await;
}
