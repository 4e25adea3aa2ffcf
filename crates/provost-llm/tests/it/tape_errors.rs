//! Errors of recordings that can't be made or replayed.

use std::fs::{self, File};
use std::path::Path;

use expect_test::{Expect, expect};
use provost_event::{DeltaKind, ErrorClass, ModelFailure, RunId};
use provost_harness::{DeltaSink, Model as _};
use provost_llm::ReplayModel;
use tokio_util::sync::CancellationToken;

use crate::scripted::script;
use crate::server::{Reply, Server};
use crate::support::*;
use crate::tape_support::*;

const TWO: &str = "answers: [{text: one}, {text: two}]";

#[track_caller]
fn check(tapes: &Tapes, failure: &ModelFailure, class: ErrorClass, expected: Expect) {
    assert_eq!(failure.class, class, "{failure:?}");
    expected.assert_eq(&tapes.words(&failure.message));
}

/// A call with a recording that has other content: refused before the provider is called, and the file is
/// unchanged.
async fn check_refused(tapes: &Tapes, name: &str, run: u64, expected: Expect) {
    let before = fs::read(tapes.file()).unwrap();
    let server = Server::start([Reply::Reset]).await;
    let recording = tapes.record_as(name, crate::anthropic_support::model(&server));
    let mut conversation = Conversation::new("go");
    conversation.session.run = RunId::from_entropy(run);
    let failure = conversation.ask(&recording).await.unwrap_err();
    check(tapes, &failure, ErrorClass::InvalidRequest, expected);
    assert_eq!(fs::read(tapes.file()).unwrap(), before);
    assert_eq!(server.seen().accepted, 0);
}

#[tokio::test]
async fn a_file_of_something_else_is_refused_and_stays_as_it_is() {
    let tapes = Tapes::new();
    converse(&tapes.script(TWO), 0, 1, "ok").await;
    check_refused(
        &tapes,
        "demo",
        8,
        expect!["run.jsonl is the recording of run 000000000007, and this is run 000000000008: record to a file of another name, or delete this one"],
    )
    .await;
    check_refused(
        &tapes,
        "other",
        7,
        expect!["run.jsonl is a recording of the model `demo`, and this is `other`: record to a file of another name, or delete this one"],
    )
    .await;
    let newer = tapes.text().replace("\"provost_recording\":1", "\"provost_recording\":2");
    fs::write(tapes.file(), newer).unwrap();
    check_refused(
        &tapes,
        "demo",
        7,
        expect!["run.jsonl is a recording of format 2, which a newer Provost wrote: record to a file of another name, or delete this one"],
    )
    .await;
    for foreign in [
        "answers: []\n",
        "no line end",
        "{}\n",
        "\n",
        "{\"provost_recording\":0}\n",
        "{\"provost_recording\":1}\n",
    ] {
        fs::write(tapes.file(), foreign).unwrap();
        check_refused(
            &tapes,
            "demo",
            7,
            expect!["run.jsonl is there already and is no recording: record to a file of another name, or delete this one"],
        )
        .await;
    }
}

/// A call whose recording can't be written: refused before the provider is called.
async fn check_unwritable(tapes: &Tapes, expected: Expect) {
    let server = Server::start([Reply::Reset]).await;
    let recording = tapes.record(crate::anthropic_support::model(&server));
    let failure = Conversation::new("go").ask(&recording).await.unwrap_err();
    check(tapes, &failure, ErrorClass::Storage, expected);
    assert_eq!(server.seen().accepted, 0);
}

#[tokio::test]
async fn a_file_that_cant_be_written_is_found_before_the_provider_is_asked() {
    let tapes = Tapes::new();
    fs::create_dir(tapes.file()).unwrap();
    check_unwritable(
        &tapes,
        expect!["can't write the recording run.jsonl: Is a directory (os error 21); check its path, or record to another file"],
    )
    .await;
    fs::remove_dir_all(tapes.folder.path()).unwrap();
    check_unwritable(
        &tapes,
        expect!["can't write the recording run.jsonl: No such file or directory (os error 2); make the folder, or record to another file"],
    )
    .await;
}

/// Moves a folder away at the first delta.
struct Mover<'a>(&'a Path, &'a Path);

impl DeltaSink for Mover<'_> {
    fn delta(&self, _: DeltaKind, _: &str) {
        fs::rename(self.0, self.1).unwrap();
    }
}

#[tokio::test]
async fn an_answer_that_couldnt_be_recorded_counts_and_is_recorded_before_the_next() {
    let tapes = Tapes::new();
    let away = tempfile::TempDir::new().unwrap();
    let (here, there) = (tapes.folder.path(), away.path().join("away"));
    let (recording, mut conversation) = (tapes.script(TWO), Conversation::new("go"));
    let cancel = CancellationToken::new();
    let answer = recording.answer(conversation.request(), &Mover(here, &there), &cancel).await.unwrap();
    conversation.answered(&answer, "ok");
    check(
        &tapes,
        &conversation.ask(&recording).await.unwrap_err(),
        ErrorClass::Storage,
        expect![
            "can't write the recording run.jsonl: No such file or directory (os error 2); make the folder, or record to another file"
        ],
    );
    fs::rename(&there, here).unwrap();
    conversation.ask(&recording).await.unwrap();
    let whole = converse(&script(TWO), 0, 2, "ok").await;
    assert_eq!(converse(&tapes.replay(), 0, 2, "ok").await, whole);
}

#[track_caller]
fn check_open(tapes: &Tapes, expected: Expect) {
    let error = ReplayModel::open(tapes.file()).unwrap_err();
    let mut words = error.to_string();
    if let Some(cause) = std::error::Error::source(&error) {
        words.push_str(&format!("\n{cause}"));
    }
    expected.assert_eq(&tapes.words(&words));
}

#[tokio::test]
async fn what_cant_be_replayed_says_why_and_where() {
    let tapes = Tapes::new();
    check_open(
        &tapes,
        expect![[r#"
            can't read the recording run.jsonl; check its path
            No such file or directory (os error 2)"#]],
    );
    for foreign in ["", "answers: []\n", "{\"provost_recording\":1", "{\"provost_recording\":1}\n"] {
        fs::write(tapes.file(), foreign).unwrap();
        check_open(
            &tapes,
            expect![
                "run.jsonl is no recording: its first line isn't the header of one; make one with `record:FILE=MODEL`"
            ],
        );
    }
    fs::write(tapes.file(), "{\"provost_recording\":3,\"strange\":[]}\n").unwrap();
    check_open(
        &tapes,
        expect!["run.jsonl is a recording of format 3; this Provost reads up to 1: use a newer one"],
    );
    fs::remove_file(tapes.file()).unwrap();
    converse(&tapes.script(TWO), 0, 2, "ok").await;
    let whole = tapes.text();
    fs::write(tapes.file(), whole.replace("\"session\":0,\"answers_before\":1", "\"session\":0")).unwrap();
    check_open(
        &tapes,
        expect![[r#"
            run.jsonl:3: that is no recorded call; remove the line, or record it again
            missing field `answers_before` at line 1 column 279"#]],
    );
    fs::write(tapes.file(), format!("{whole}\n")).unwrap();
    check_open(
        &tapes,
        expect![[r#"
            run.jsonl:4: that is no recorded call; remove the line, or record it again
            EOF while parsing a value at line 1 column 0"#]],
    );
}

#[tokio::test]
async fn limits_hold_for_a_recording_and_its_lines() {
    let tapes = Tapes::new();
    converse(&tapes.script(TWO), 0, 1, "ok").await;
    let (whole, limit) = (tapes.text(), 32 * 1024 * 1024);
    let call = whole.lines().nth(1).unwrap();
    let padded = |length: usize| format!("{}{call}\n", " ".repeat(length - call.len() - 1));
    fs::write(tapes.file(), format!("{whole}{}", padded(limit))).unwrap();
    ReplayModel::open(tapes.file()).unwrap();
    fs::write(tapes.file(), format!("{whole}{}", padded(limit + 1))).unwrap();
    check_open(
        &tapes,
        expect![
            "run.jsonl:3: the line is longer than 33554432 bytes; no recording has such, so record it again"
        ],
    );
    File::options().write(true).open(tapes.file()).unwrap().set_len(512 * 1024 * 1024 + 1).unwrap();
    check_open(
        &tapes,
        expect!["the recording run.jsonl is larger than 536870912 bytes; record a shorter run"],
    );
}

#[tokio::test]
async fn a_conversation_that_goes_another_way_is_a_mismatch() {
    let tapes = Tapes::new();
    converse(&tapes.script(TWO), 0, 1, "ok").await;
    let recording = tapes.script("answers: [{text: one}, {fault: unauthorized}]");
    let mut conversation = Conversation::new("go");
    let answer = conversation.ask(&tapes.replay()).await.unwrap();
    conversation.answered(&answer, "ok");
    conversation.ask(&recording).await.unwrap_err();

    let replay = tapes.replay();
    let mismatch = async |conversation: &Conversation, expected: Expect| {
        let failure = conversation.ask(&replay).await.unwrap_err();
        check(&tapes, &failure, ErrorClass::ScriptMismatch, expected);
    };
    conversation.ask(&replay).await.unwrap_err();
    mismatch(
        &conversation,
        expect!["run.jsonl has no answer 2 of session 0, only attempts that gave none: the conversation went another way than when it was recorded; record it again"],
    )
    .await;
    conversation.answers_before = 2;
    mismatch(
        &conversation,
        expect!["run.jsonl has no answer 3 of session 0: the conversation went another way than when it was recorded; record it again"],
    )
    .await;
    conversation.answers_before = 0;
    mismatch(
        &conversation,
        expect!["run.jsonl has answer 1 of session 0 to 1 messages, and now there are 3: the conversation went another way than when it was recorded; record it again"],
    )
    .await;
    // That didn't use it up.
    Conversation::new("go").ask(&replay).await.unwrap();
    conversation.session.agent = 3;
    conversation.answers_before = u32::MAX;
    mismatch(
        &conversation,
        expect!["run.jsonl has no answer 4294967296 of session 3: the conversation went another way than when it was recorded; record it again"],
    )
    .await;
}
