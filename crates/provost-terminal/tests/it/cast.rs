//! Recordings: what is written can be read again, and has no secrets.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use proptest::sample::Index;
use provost_event::WindowSize;
use provost_terminal::{
    CastError, CastHeader, CastReader, CastWriter, Happened, Mask, PlayOptions, Player, Typed,
};
use regex::Regex;

use crate::stream::{cut, written};

static SECRETS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"sk-[A-Za-z0-9]{8,}|-----BEGIN KEY-----(?:\s*[A-Z]{4,})+\s*-----END KEY-----")
        .expect("a pattern")
});

pub(crate) fn mask() -> Mask {
    Arc::new(|text: &str| -> Cow<'_, str> { SECRETS.replace_all(text, "[secret]") })
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn header() -> CastHeader {
    CastHeader { size: WindowSize::new(24, 80), ..CastHeader::default() }
}

type Writer = CastWriter<Vec<u8>>;

fn recorded(mask: Option<Mask>, script: impl FnOnce(&mut Writer) -> std::io::Result<()>) -> String {
    let mut writer = CastWriter::new(Vec::new(), &header(), mask).expect("a header");
    script(&mut writer).expect("a vector takes all");
    String::from_utf8(writer.finish().expect("a vector takes all")).expect("a recording is text")
}

fn outputs(recording: &str) -> String {
    let events =
        CastReader::new(recording.as_bytes()).expect("a recording").map(|event| event.expect("an event"));
    let outputs = events.filter_map(|event| match event.what {
        Happened::Output(text) => Some(text),
        _ => None,
    });
    outputs.collect()
}

/// Checks that these chunks, a millisecond apart, are recorded as this text.
fn check_masked(chunks: &[&str], expected: &str) {
    let recording = recorded(Some(mask()), |writer| {
        (1..).zip(chunks).try_for_each(|(at, chunk)| writer.output(ms(at), chunk.as_bytes()))
    });
    assert_eq!(outputs(&recording), expected, "{chunks:?}");
}

fn check_file(recording: &str, expected: Expect) {
    expected.assert_eq(recording);
}

#[test]
fn a_recording_has_the_form_of_asciicast() {
    let header = CastHeader {
        size: WindowSize::new(24, 80),
        timestamp: Some(1_700_000_000),
        command: Some("codex --key sk-abcdefgh12".into()),
        title: Some("an agent".into()),
        term: Some("xterm-256color".into()),
        shell: Some("/bin/sh".into()),
    };
    let mut writer = CastWriter::new(Vec::new(), &header, Some(mask())).expect("a header");
    writer.output(ms(250), "caf\u{e9} \u{1b}[1mbold\r\n".as_bytes()).expect("written");
    writer.input(ms(300), Typed::Shown(b"y\r")).expect("written");
    writer.input(ms(310), Typed::Hidden).expect("written");
    writer.resize(ms(400), WindowSize::new(30, 100)).expect("written");
    writer.marker(ms(1_500), "approval_request").expect("written");
    // Time never decreases.
    writer.output(ms(1_000), b"late").expect("written");
    let recording = String::from_utf8(writer.finish().expect("written")).expect("text");
    check_file(
        &recording,
        expect![[r#"
            {"version":2,"width":80,"height":24,"timestamp":1700000000,"command":"codex --key [secret]","title":"an agent","env":{"SHELL":"/bin/sh","TERM":"xterm-256color"}}
            [0.250000,"o","café \u001b[1mbold\r\n"]
            [0.300000,"i","y\r"]
            [0.400000,"r","100x30"]
            [1.500000,"m","approval_request"]
            [1.500000,"o","late"]
        "#]],
    );
    let reader = CastReader::new(recording.as_bytes()).expect("a recording");
    assert_eq!(reader.header().term, header.term);
    assert_eq!(reader.header().size, header.size);
}

#[test]
fn a_character_cut_in_two_is_one_and_bytes_without_meaning_are_marked() {
    let recording = recorded(None, |writer| {
        writer.output(ms(1), b"a\xe2\x94")?;
        writer.output(ms(2), b"\x80b\xffc\xe2")
    });
    assert_eq!(outputs(&recording), "a─b\u{fffd}c\u{fffd}");
}

#[test]
fn what_was_typed_without_echo_leaves_no_trace() {
    let typed = recorded(None, |writer| writer.input(ms(5), Typed::Hidden));
    assert_eq!(typed, recorded(None, |_| Ok(())));
}

#[test]
fn a_secret_is_masked_however_it_comes() {
    check_masked(&["key sk-abcdefgh12 ok\r\n"], "key [secret] ok\r\n");
    check_masked(&["key s", "k", "-abcd", "efgh12 ok"], "key [secret] ok");
    check_masked(&["key sk-ab\x1b[31mcdefgh12\x1b[0m ok"], "key [secret]\x1b[31m\x1b[0m ok");
    // The same row, continued where it ended.
    check_masked(&["\x1b[5;1Hsk-abcd\x1b[5;8Hefgh12"], "\x1b[5;1H[secret]\x1b[5;8H");
    check_masked(&["\rsk-abcd\x1b[8Gefgh12\n"], "\r[secret]\x1b[8G\n");
    check_masked(&["\x1b]2;run sk-abc", "defgh12\x07done"], "\x1b]2;run [secret]\x07done");
    check_masked(
        &["-----BEGIN KEY-----\r\nABCD\r\n", "EFGH\r\n-----END KEY-----\r\nx\r\n"],
        "[secret]\r\nx\r\n",
    );
}

#[test]
fn what_is_no_secret_stays_as_it_is() {
    for text in [
        "\x1b[5;1Hsk-abcd\x1b[6;1Hefgh12",
        "sk-abcd efgh12",
        "sk-abcd\x1b[2Cefgh12\n",
        "a\x08b\x1b[2Jc\x1b7\x1bM",
    ] {
        check_masked(&[text], text);
    }
}

#[test]
fn text_in_front_of_a_second_secret_keeps_its_place() {
    check_masked(&["a sk-abcdefgh12 b sk-abcdefgh34 c\n"], "a [secret] b [secret] c\n");
}

#[test]
fn a_line_that_does_not_end_goes_out_when_it_is_due() {
    let mut writer = CastWriter::new(Vec::new(), &header(), Some(mask())).expect("a header");
    assert_eq!(writer.flush_due(), None);
    writer.output(ms(100), b"Password: ").expect("written");
    assert_eq!(writer.flush_due(), Some(ms(2_100)));
    writer.tick(ms(2_100)).expect("written");
    assert_eq!(writer.flush_due(), Some(ms(2_600)));
    writer.tick(ms(2_600)).expect("written");
    assert_eq!(writer.flush_due(), None);
}

#[test]
fn times_are_those_of_the_writing_and_not_of_the_release() {
    let recording = recorded(Some(mask()), |writer| {
        writer.output(ms(100), b"sk-abc")?;
        writer.input(ms(200), Typed::Shown(b"x"))?;
        writer.output(ms(300), b"defgh12 b")
    });
    let events: Vec<_> = recording.lines().skip(1).collect();
    assert_eq!(events, [r#"[0.100000,"o","[secret]"]"#, r#"[0.200000,"i","x"]"#, r#"[0.300000,"o"," b"]"#]);
}

#[test]
fn a_line_without_end_is_not_held_beyond_its_limit() {
    let mut writer = CastWriter::new(Vec::new(), &header(), Some(mask())).expect("a header");
    for _ in 0..1_000 {
        writer.output(ms(1), &b"0123456789 ".repeat(100)).expect("written");
        writer.output(ms(1), "\x1b]".as_bytes()).expect("written");
        writer.output(ms(1), &b"x".repeat(1_000)).expect("written");
    }
    let due = writer.flush_due();
    let recording = writer.finish().expect("written");
    assert!(recording.len() > 2_000_000 && due.is_some());
}

fn read_all(recording: &str) -> Result<Vec<Happened>, CastError> {
    CastReader::new(recording.as_bytes())?.map(|event| event.map(|event| event.what)).collect()
}

#[test]
fn a_last_line_that_was_cut_off_is_the_end() {
    let whole = "{\"version\":2,\"width\":80,\"height\":24}\n[0.1,\"o\",\"a\"]\n[0.2,\"o\",\"bc\"]\n";
    for len in whole.len() - 16..whole.len() - 1 {
        let mut reader = CastReader::new(&whole.as_bytes()[..len]).expect("a recording");
        let events: Vec<_> = reader.by_ref().map(|event| event.expect("an event").what).collect();
        let is_there = len == whole.len() - 1;
        assert_eq!(events.len(), 1 + usize::from(is_there), "{len}");
    }
    let mut reader = CastReader::new(&whole.as_bytes()[..whole.len() - 4]).expect("a recording");
    assert_eq!((reader.by_ref().count(), reader.was_cut()), (1, true));
}

#[test]
fn what_is_no_recording_is_refused_with_its_reason() {
    let check = |recording: &str, expected: Expect| {
        expected.assert_eq(&read_all(recording).expect_err("refused").to_string());
    };
    check(
        "",
        expect![
            "this is no recording: its first line isn't the header of an asciicast (EOF while parsing a value at line 1 column 0)"
        ],
    );
    check(
        "hello\n",
        expect![
            "this is no recording: its first line isn't the header of an asciicast (expected value at line 1 column 1)"
        ],
    );
    check(
        "{}\n",
        expect!["this is no recording: its first line isn't the header of an asciicast (it has no version)"],
    );
    let converts = expect![
        "this recording is an asciicast of version 1; Provost reads version 2 (`asciinema convert -f asciicast-v2` makes one)"
    ];
    check("{\n\"version\": 1,\n\"width\": 80, \"height\": 24, \"stdout\": []\n}\n", converts);
    check(
        "{\"version\":3,\"term\":{}}\n",
        expect![
            "this recording is an asciicast of version 3; Provost reads version 2 (`asciinema convert -f asciicast-v2` makes one)"
        ],
    );
    check(
        "{\"version\":2,\"width\":80,\"height\":24}\n[0.1,\"o\",\"a\"]\n[0.2,\"o\"]\n[0.3,\"o\",\"c\"]\n",
        expect![
            "line 3 of the recording is no event: invalid length 2, expected a tuple of size 3 at line 1 column 9"
        ],
    );
    check(
        "{\"version\":2,\"width\":80,\"height\":24}\n[0.1,\"r\",\"big\"]\n",
        expect!["line 2 of the recording is no event: `big` is no size"],
    );
}

#[test]
fn unknown_events_and_empty_lines_are_passed_over() {
    let recording =
        "{\"version\":2,\"width\":80,\"height\":24,\"theme\":{}}\n\n[0,\"z\",\"?\"]\n[1,\"o\",\"a\"]\n";
    assert_eq!(read_all(recording).expect("read"), [Happened::Output("a".into())]);
}

fn plan(speed: f64, idle_max: Option<Duration>) -> Vec<(Duration, Happened)> {
    let recording = "{\"version\":2,\"width\":80,\"height\":24}\n[1,\"o\",\"a\"]\n[2,\"i\",\"x\"]\n[5,\"o\",\"b\"]\n[4,\"m\",\"c\"]\n";
    let reader = CastReader::new(recording.as_bytes()).expect("a recording");
    Player::new(reader, PlayOptions { speed, idle_max })
        .map(|step| step.map(|step| (step.delay, step.what)).expect("a step"))
        .collect()
}

#[test]
fn a_player_waits_as_long_as_it_was_or_less() {
    let delays = |speed, idle_max| plan(speed, idle_max).into_iter().map(|step| step.0).collect::<Vec<_>>();
    assert_eq!(delays(1.0, None), [ms(1_000), ms(4_000), ms(0)]);
    assert_eq!(delays(2.0, None), [ms(500), ms(2_000), ms(0)]);
    assert_eq!(delays(2.0, Some(ms(2_000))), [ms(500), ms(1_000), ms(0)]);
    assert_eq!(delays(0.0, None), [ms(1_000), ms(4_000), ms(0)]);
    assert_eq!(delays(f64::NAN, None).len(), 3);
    assert_eq!(plan(1.0, None)[1].1, Happened::Output("b".into()));
}

proptest! {
    #[test]
    fn a_recording_has_the_same_text_wherever_the_output_is_cut(
        before in written(),
        behind in written(),
        places in prop::collection::vec(any::<Index>(), 0..20),
    ) {
        let bytes = [&before[..], b"\x18\nsk-abcdefgh12 ", &behind[..]].concat();
        prop_assume!(bytes.len() < 8_000);
        for masks in [None, Some(mask())] {
            let whole = outputs(&recorded(masks.clone(), |writer| writer.output(ms(1), &bytes)));
            let parts = outputs(&recorded(masks.clone(), |writer| {
                cut(&bytes, &places).into_iter().try_for_each(|part| writer.output(ms(1), part))
            }));
            prop_assert_eq!(&whole, &parts);
            if masks.is_some() {
                prop_assert!(!whole.contains("\nsk-abcdefgh12"));
            } else {
                prop_assert_eq!(whole, String::from_utf8_lossy(&bytes));
            }
        }
    }

    #[test]
    fn without_a_secret_a_mask_changes_nothing(bytes in written(), places in prop::collection::vec(any::<Index>(), 0..20)) {
        let recording = recorded(Some(mask()), |writer| {
            (0..).zip(cut(&bytes, &places)).try_for_each(|(at, part)| {
                writer.output(ms(at * 300), part)?;
                writer.tick(ms(at * 300 + 100))
            })
        });
        prop_assert_eq!(outputs(&recording), String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_file_makes_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), is_headed in any::<bool>()) {
        let head: &[u8] = if is_headed { b"{\"version\":2,\"width\":80,\"height\":24}\n" } else { b"" };
        if let Ok(reader) = CastReader::new(&[head, &bytes].concat()[..]) {
            let _ = reader.count();
        }
    }
}
