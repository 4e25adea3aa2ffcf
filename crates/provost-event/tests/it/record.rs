//! The serialized form from outside.

use provost_event::{ConversationEntry, Entry, FormatError, Record};

const V3: [&str; 4] = [
    include_str!("../../formats/v1/eventful-run.jsonl"),
    include_str!("../../formats/v1/gated-run.jsonl"),
    include_str!("../../formats/v1/long-run.jsonl"),
    include_str!("../../formats/v1/pictured-run.jsonl"),
];

#[test]
fn every_stored_line_reads_and_writes_back_the_same() {
    for line in V3.iter().flat_map(|file| file.lines()) {
        let record = Record::from_line(line).expect("a record");
        assert_eq!(record.to_line().expect("a line"), line);
    }
}

#[test]
fn a_line_of_a_newer_version_is_refused_with_the_version_it_needs() {
    let line = r#"{"v":7,"actor":"000000000001","seq":1,"at_ms":1,"type":"something_new","x":1}"#;
    let error = Record::from_line(line).expect_err("newer");
    assert!(matches!(error, FormatError::Newer { needs: 7 }));
    assert_eq!(error.to_string(), "written in format 7; this Provost reads up to 1: use a newer one");
    let error = Record::from_line(&line.replace("\"v\":7", "\"v\":0")).expect_err("there is none");
    assert_eq!(error.to_string(), "format 0 doesn't exist: the first is 1");
}

#[test]
fn what_is_no_record_is_refused_with_the_reason() {
    let check = |line: &str, expected: &str| {
        let error = Record::from_line(line).expect_err("refused");
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        assert_eq!(format!("{error}{cause}"), expected);
    };
    check(
        r#"{"v":1,"actor":"000000000001","seq":1,"at_ms":1,"type":"nothing"}"#,
        "there is no entry of type `nothing`",
    );
    check(
        r#"{"v":1,"actor":"000000000001","at_ms":1,"type":"ended"}"#,
        "not a record of the log: missing field `seq`",
    );
    check(
        r#"{"v":1,"actor":"000000000001","seq":1,"at_ms":1,"type":"turn_ended"}"#,
        "not a record of the log: missing field `turn` at line 1 column 68",
    );
    check("", "not a record of the log: EOF while parsing a value at line 1 column 0");
}

#[test]
fn fields_that_a_later_change_adds_are_passed_over() {
    let line = r#"{"v":1,"actor":"000000000001.0","seq":1,"at_ms":1,"type":"turn_ended","turn":2,"tool_calls":3,"new":true}"#;
    let record = Record::from_line(line).expect("a record");
    let Entry::Conversation(ConversationEntry::TurnEnded(ended)) = record.entry else {
        panic!("{:?}", record.entry)
    };
    assert_eq!((ended.turn, ended.tool_calls), (2, 3));
}
