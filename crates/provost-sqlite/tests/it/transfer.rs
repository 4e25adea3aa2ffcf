//! Runs as files.

use std::error::Error as _;
use std::sync::Arc;

use provost_backend::{
    EmbeddedBackend, ImportChange, MemoryStore, TransferError, export_run, import_incomplete, import_run,
};
use provost_event::{Budget, FORMAT_VERSION, Seq, SessionId};
use provost_harness::{Blobs as _, Catalog as _, Log as _, RunQuery, RunStatus, SystemClock, Worker as _};
use tokio_util::sync::CancellationToken;

use crate::support::{Hands, asks_for_tools, ended, policy, run, soon, start, tool_done};

fn backend() -> EmbeddedBackend {
    EmbeddedBackend::new(MemoryStore::new(), Arc::new(SystemClock)).unwrap()
}

/// A run with two tool calls, whose whole outputs are stored; then its process went away, or it ended.
async fn exported(to_the_end: bool) -> String {
    let backend = backend();
    let (hands, mut calls) = Hands::new();
    let guard = backend.serve(run(1), hands, CancellationToken::new()).await.unwrap();
    backend.post(run(1).into(), start(policy(Budget::default(), 10)).into(), None).await.unwrap();
    let call = soon(calls.recv()).await.unwrap();
    let seq = call.id.seq;
    call.answer(asks_for_tools(seq, 2));
    for body in [b"all of it\n".to_vec(), vec![0xff, 0xfe]] {
        let whole = backend.put_blob(body).await.unwrap();
        let call = soon(calls.recv()).await.unwrap();
        let seq = call.id.seq;
        call.answer(tool_done(seq, Some(whole)));
    }
    let call = soon(calls.recv()).await.unwrap();
    if to_the_end {
        call.done();
        soon(ended(&backend, run(1))).await;
    }
    guard.release().await;
    export(&backend).await
}

async fn export(backend: &EmbeddedBackend) -> String {
    let mut file = Vec::new();
    let exported = export_run(backend, run(1), &mut file).await.unwrap();
    let text = String::from_utf8(file).unwrap();
    assert_eq!((text.lines().count(), exported.lost), (exported.lines, Vec::new()));
    text
}

async fn import(backend: &EmbeddedBackend, text: &str) -> Result<ImportChange, String> {
    let imported = import_run(backend, &mut text.as_bytes()).await;
    imported.map(|imported| imported[0].change).map_err(|error| {
        let mut words = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            words = format!("{words}: {error}");
            source = error.source();
        }
        words
    })
}

#[tokio::test]
async fn an_imported_run_is_the_exported_one() {
    let text = exported(true).await;
    let backend = backend();
    assert_eq!(import(&backend, &text).await, Ok(ImportChange::New));
    assert_eq!(export(&backend).await, text);
    let listed = backend.list(RunQuery::newest(9)).await.unwrap();
    assert!(matches!(listed[0].status, RunStatus::Stopped(_)), "{listed:?}");
    assert_eq!((listed[0].turns, listed[0].goal.as_str()), (2, "a goal"));
    assert_eq!(import(&backend, &text).await, Ok(ImportChange::Known));
    assert_eq!(export(&backend).await, text);
}

#[tokio::test]
async fn an_imported_run_that_was_not_at_rest_goes_on_when_served() {
    let text = exported(false).await;
    let backend = backend();
    import(&backend, &text).await.unwrap();
    assert_eq!(backend.list(RunQuery::newest(9)).await.unwrap()[0].status, RunStatus::Interrupted);
    let (hands, mut calls) = Hands::new();
    let _guard = backend.serve(run(1), hands, CancellationToken::new()).await.unwrap();
    soon(calls.recv()).await.unwrap().done();
    soon(ended(&backend, run(1))).await;
}

#[tokio::test]
async fn a_damaged_file_is_refused_with_its_line_and_leaves_nothing() {
    let text = exported(true).await;
    let lines = text.lines().collect::<Vec<_>>();
    let without = |line: usize| {
        let kept = lines.iter().enumerate().filter(|(number, _)| number + 1 != line);
        kept.map(|(_, text)| format!("{text}\n")).collect::<String>()
    };
    let with = |line: usize, change: &dyn Fn(&str) -> String| {
        let changed = lines
            .iter()
            .zip(1..)
            .map(|(text, number)| if number == line { change(text) } else { (*text).to_owned() });
        changed.map(|text| text + "\n").collect::<String>()
    };
    // The first entry of a log that isn't the last line of it.
    let gap = lines.iter().position(|line| line.contains("budget_reserved")).unwrap() + 1;
    let next = lines[gap..].iter().position(|line| line.contains(&format!("\"{}\"", run(1)))).unwrap() + gap;
    let session = lines.iter().position(|line| line.contains("session_started")).unwrap() + 1;
    let newer = |line: &str| line.replacen(&format!("\"v\":{FORMAT_VERSION}"), "\"v\":99", 1);
    let cases = [
        ("cut", text[..text.len() / 2].to_owned(), "the file is cut: it ends after entry"),
        ("gap", without(gap), &format!("line {next}: entry 3 of")),
        (
            "newer",
            with(3, &newer),
            &format!(
                "line 3: written in format 99; this Provost reads up to {FORMAT_VERSION}: use a newer one"
            ),
        ),
        ("newer blob", with(lines.len(), &newer), "use a newer one"),
        ("garbage", with(session, &|_| "{}".to_owned()), &format!("line {session}: not a record")),
        ("no run", without(1), "line 1: the run's own log doesn't come first"),
        ("session first", format!("{}\n", lines[session - 1]), "the run's own log doesn't come first"),
        (
            "other run",
            format!("{}\n{}\n", lines[0], lines[0].replace(&run(1).to_string(), &run(2).to_string())),
            "belongs to run",
        ),
        ("blob", text.replace("all of it", "some of it"), "is damaged"),
        ("empty", String::new(), "there is no run in it"),
        ("doubled", format!("{}\n{0}\n", lines[0]), "line 2: entry 1 of"),
        ("more", format!("{text}{}\n", lines[0]), "follows what was the last line"),
    ];
    let backend = backend();
    for (name, text, expected) in cases {
        let error = import(&backend, &text).await.expect_err(name);
        assert!(error.contains(expected), "{name}: {error}");
        assert!(backend.actors(run(1)).await.unwrap().is_empty(), "{name}");
    }
    import(&backend, &text).await.unwrap();
}

#[tokio::test]
async fn a_run_that_is_not_there_is_not_exported() {
    let error = export_run(&backend(), run(7), &mut Vec::new()).await.unwrap_err();
    assert!(matches!(error, TransferError::Backend(_)));
    assert_eq!(error.to_string(), format!("there is no run {}", run(7)));
    assert!(backend().read(run(7).into(), Seq::START, 1).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_export_cut_anywhere_is_not_taken_for_whole() {
    let text = exported(true).await;
    let backend = backend();
    let whole = text.trim_end().len();
    for kept in 0..whole {
        let error = import(&backend, &text[..text.floor_char_boundary(kept)]).await.expect_err("it is cut");
        let lines = text[..kept].lines().count();
        let is_named = error.starts_with("the file is cut: it ends after entry ")
            || (lines <= 1 && error == "there is no run in it");
        assert!(is_named, "{kept} bytes: {error}");
    }
    assert!(backend.actors(run(1)).await.unwrap().is_empty());
    assert_eq!(
        import(&backend, &text[..whole]).await,
        Ok(ImportChange::New),
        "all but the end of the last line"
    );
}

#[tokio::test]
async fn an_export_with_a_changed_byte_is_refused_and_the_line_named_where_it_is_an_entrys() {
    let text = exported(true).await;
    let backend = backend();
    let mut named = 0;
    let positions = (0..text.len()).step_by(if crate::damage::is_long() { 1 } else { 7 });
    let tried = positions.clone().count();
    for position in positions {
        let mut bytes = text.clone().into_bytes();
        bytes[position] ^= 1 << (position % 7);
        let error = import_run(&backend, &mut bytes.as_slice()).await.expect_err("it is changed");
        named += usize::from(matches!(error, TransferError::Line { .. }));
    }
    assert!(named * 2 > tried, "{named} of {tried}");
    assert!(backend.actors(run(1)).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_there_is_in_a_cut_export_is_taken_in_where_that_is_asked_for() {
    let text = exported(true).await;
    let backend = backend();
    let kept = text.find("\"type\":\"assistant_message\"").unwrap();
    let salvaged = import_incomplete(&backend, &mut &text.as_bytes()[..kept]).await.unwrap();
    assert_eq!(salvaged.runs.len(), 1);
    assert!(salvaged.lost[0].starts_with("the file is cut: it ends after entry "), "{:?}", salvaged.lost);
    let there = backend.read(SessionId::root(run(1)).into(), Seq::START, 100).await.unwrap();
    assert!(!there.is_empty() && there.len() < text.lines().count());
    // A missing line in the middle ends its log; the other logs are complete.
    let other = self::backend();
    let lines = text.lines().collect::<Vec<_>>();
    let session = lines.iter().position(|line| line.contains("assistant_message")).unwrap();
    let without = lines.iter().enumerate().filter(|(number, _)| *number != session);
    let without = without.map(|(_, line)| format!("{line}\n")).collect::<String>();
    let salvaged = import_incomplete(&other, &mut without.as_bytes()).await.unwrap();
    assert!(
        salvaged.lost.iter().any(|lost| lost.starts_with(&format!("line {}", session + 1))),
        "{salvaged:?}"
    );
    let log = other.read(SessionId::root(run(1)).into(), Seq::START, 100).await.unwrap();
    assert_eq!(log, there, "up to what is missing");
}
