//! The kind of a text: the text without numbers, times, ids and the names of temporary files, which vary from call
//! to call without meaning.

use std::collections::{BTreeSet, HashSet};

use crate::session::fingerprint::fingerprint;

/// Folders whose entries have temporary names.
const TEMPORARY: [&str; 4] = ["/tmp/", "/var/folders/", "/dev/shm/", "/run/user/"];
/// Units that may follow a number: of times and of sizes.
const UNITS: [&str; 26] = [
    "s", "ms", "us", "µs", "μs", "ns", "m", "min", "mins", "h", "hr", "d", "sec", "secs", "second",
    "seconds", "k", "g", "t", "b", "kb", "mb", "gb", "kib", "mib", "gib",
];
/// Words with which a check reports counts.
const COUNTED: [&str; 24] = [
    "passed",
    "passing",
    "pass",
    "passes",
    "failed",
    "failing",
    "fail",
    "fails",
    "failure",
    "failures",
    "error",
    "errors",
    "warning",
    "warnings",
    "skipped",
    "pending",
    "ok",
    "tests",
    "assertions",
    "problems",
    "issues",
    "errored",
    "violations",
    "findings",
];
/// Minimum number of alternations between letters and digits that mark a word of at least the following length as
/// an id.
const TURNS_MIN: usize = 2;
const MIXED_MIN: usize = 8;
/// Digits of a hexadecimal id, at least.
const HEX_MIN: usize = 4;
/// Minimum digits of a hexadecimal id in groups (a UUID, a hardware address): enough that no words are taken for
/// one.
const GROUPED_HEX_MIN: usize = 12;

/// The kind of a call: a fingerprint of its tool and its arguments.
pub(super) fn kind_of_call(tool: &str, input: &str) -> u64 {
    let mut kind = String::with_capacity(input.len());
    push_line(&mut kind, input);
    fingerprint([tool, &kind])
}

/// The kind of a text: a fingerprint of the kinds of its lines, whatever their order and number. Numbers, times,
/// ids and temporary names don't change it. The same in every version: logs store it.
#[must_use]
pub fn kind_of_text(text: &str) -> u64 {
    let mut line_kind = String::new();
    let mut kinds = BTreeSet::new();
    for line in text.split(['\n', '\r']) {
        line_kind.clear();
        push_line(&mut line_kind, line);
        if !line_kind.is_empty() {
            kinds.insert(fingerprint([line_kind.as_str()]));
        }
    }
    mixed(kinds)
}

/// The kind of a call's output, without what it repeats of the call's arguments (JSON): a search that finds nothing
/// and names what it looked for brings nothing new.
pub(super) fn kind_of_result(input: &str, output: &str) -> u64 {
    let own = words_of_json(input).collect::<HashSet<_>>();
    // Few words of an output are the call's: most are known by their length and first byte not to be.
    let mark = |word: &str| {
        let first = usize::from(word.bytes().next().unwrap_or_default());
        1_u64 << ((word.len().wrapping_mul(31) ^ first) % 64)
    };
    let marks = own.iter().fold(0, |marks, word| marks | mark(word));
    let mut rest = String::with_capacity(output.len());
    for piece in output.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
        rest.push_str(if marks & mark(word) != 0 && own.contains(word) { "_" } else { word });
        rest.push_str(piece.get(word.len()..).unwrap_or_default());
    }
    kind_of_text(&rest)
}

/// The words in `json`, without the letters of escapes. Numbers are none: they don't count anyway.
fn words_of_json(json: &str) -> impl Iterator<Item = &str> {
    let mut is_escaped = false;
    let is_between = move |c: char| {
        let escaped = std::mem::take(&mut is_escaped);
        is_escaped = c == '\\' && !escaped;
        escaped || !c.is_alphanumeric()
    };
    json.split(is_between).filter(|word| word.contains(char::is_alphabetic))
}

/// The kind of a check's output: numbers count, durations don't.
pub(super) fn kind_of_check(text: &str) -> u64 {
    let steady = text.split_whitespace().filter(|word| !is_duration(word)).map(|word| fingerprint([word]));
    mixed(steady)
}

/// A fingerprint of the counts that a check reports in `text` ("3 failed", "Failures: 2"); `None` if there are
/// none.
pub(super) fn counts_of(text: &str) -> Option<u64> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut last = "";
        for word in line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let (number, named) = if is_number(word) { (word, last) } else { (last, word) };
            if is_number(number) && is_counted(named) {
                found.push(fingerprint([number, &named.to_ascii_lowercase()]));
            }
            last = word;
        }
    }
    (!found.is_empty()).then(|| mixed(found))
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_counted(word: &str) -> bool {
    COUNTED.iter().any(|counted| counted.eq_ignore_ascii_case(word))
}

fn mixed(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0xcbf2_9ce4_8422_2325, |mix: u64, number| {
        (mix.rotate_left(5) ^ number).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Whether `word` is a duration: `0.32s`, `12ms`, `1.5µs`, with punctuation around it.
pub(super) fn is_duration(word: &str) -> bool {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    let number = bare.trim_end_matches(char::is_alphabetic);
    let unit = bare.get(number.len()..).unwrap_or_default();
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
    is_number && matches!(unit, "s" | "ms" | "us" | "µs" | "μs" | "ns" | "sec" | "secs" | "seconds")
}

/// Appends the kinds of the words of `line`.
fn push_line(out: &mut String, line: &str) {
    for word in line.split_whitespace() {
        if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
        push_word(out, word);
    }
}

fn push_word(out: &mut String, word: &str) {
    let mut rest = word;
    while let Some(place) = after_temporary(rest) {
        let (before, after) = rest.split_at(place);
        push_runs(out, before);
        let is_end = |c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '~' | '+' | '@' | '#'));
        let end = after.find(is_end).unwrap_or(after.len());
        out.push('0');
        rest = after.get(end..).unwrap_or_default();
    }
    push_runs(out, rest);
}

/// Where the first name of a temporary folder in `text` ends.
fn after_temporary(text: &str) -> Option<usize> {
    text.match_indices('/').find_map(|(start, _)| {
        let name = text.get(start..)?;
        TEMPORARY.iter().find(|folder| name.starts_with(**folder)).map(|folder| start + folder.len())
    })
}

/// Appends runs of letters and digits by their kind, and any other repeated character once.
fn push_runs(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first == '\u{1b}' {
            rest = without_escape(rest);
        } else if first.is_alphanumeric() {
            rest = push_run(out, rest);
        } else {
            let is_sign = matches!(first, '-' | '+')
                && rest.get(1..).is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit()))
                && !out.ends_with(char::is_alphanumeric);
            if !is_sign && !out.ends_with(first) {
                out.push(first);
            }
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
}

/// Appends the kind of what begins with one run; returns the rest.
fn push_run<'t>(out: &mut String, text: &'t str) -> &'t str {
    if let Some(after) = after_grouped_hex(text) {
        push_number(out);
        return after;
    }
    let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    let (run, after) = text.split_at(end);
    if !run.contains(|c: char| c.is_ascii_digit()) {
        out.push_str(run);
        return after;
    }
    if is_id(run) {
        push_number(out);
        return after;
    }
    if run.starts_with(|c: char| c.is_ascii_digit()) {
        push_number(out);
        return after_number(text);
    }
    push_letters(out, run);
    after
}

/// The text after the groups of hexadecimal digits that `text` begins with, if they are an id: single groups may
/// consist of letters only, but not all of them.
fn after_grouped_hex(text: &str) -> Option<&str> {
    let separator = text.find(|c: char| !c.is_ascii_hexdigit())?;
    let sign = text.get(separator..)?.chars().next().filter(|c| matches!(c, '-' | ':'))?;
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == sign)).unwrap_or(text.len());
    let (id, after) = text.split_at(end);
    let is_group = |group: &str| group.len() >= 2 && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digits = id.len() - id.matches(sign).count();
    let is_id = digits >= GROUPED_HEX_MIN
        && id.split(sign).all(is_group)
        && id.contains(|c: char| c.is_ascii_digit());
    is_id.then_some(after)
}

/// The text after the number that `text` begins with: after its fraction, exponent and units, or after the other
/// parts of a date, a time or a version.
fn after_number(text: &str) -> &str {
    let starts_with_digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let more = rest.strip_prefix(['.', ',', ':']).filter(|more| starts_with_digit(more));
        if let Some(more) = more {
            rest = more;
            continue;
        }
        let exponent = rest.strip_prefix(['e', 'E']).map(|more| more.trim_start_matches(['-', '+']));
        if let Some(more) = exponent.filter(|more| starts_with_digit(more)) {
            rest = more;
            continue;
        }
        let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let (letters, more) = rest.split_at(letters);
        if !is_unit(letters) {
            return rest;
        }
        rest = more;
        if !starts_with_digit(rest) {
            return rest;
        }
    }
}

/// Consecutive numbers count as one.
fn push_number(out: &mut String) {
    if !out.ends_with('0') {
        out.push('0');
    }
}

/// Appends letters as they are, and the digits between them as one.
fn push_letters(out: &mut String, run: &str) {
    for c in run.chars() {
        if c.is_ascii_digit() { push_number(out) } else { out.push(c) }
    }
}

/// Whether a run with a digit looks like a hash or a random name.
fn is_id(run: &str) -> bool {
    let is_hex = run.len() >= HEX_MIN && run.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digits = run.chars().map(|c| c.is_ascii_digit()).collect::<Vec<_>>();
    if digits.iter().all(|is_digit| *is_digit) {
        return false;
    }
    let turns = digits.windows(2).filter(|pair| pair.first() != pair.last()).count();
    is_hex || (digits.len() >= MIXED_MIN && turns >= TURNS_MIN)
}

fn is_unit(letters: &str) -> bool {
    UNITS.iter().any(|unit| unit.eq_ignore_ascii_case(letters))
}

/// `text` without the escape sequence that it begins with.
fn without_escape(text: &str) -> &str {
    let body = text.get(1..).unwrap_or_default();
    let Some(body) = body.strip_prefix('[') else { return body };
    let end = body.find(|c: char| c.is_ascii_alphabetic()).map_or(body.len(), |end| end + 1);
    body.get(end..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        TEMPORARY, after_temporary, counts_of, is_duration, kind_of_call, kind_of_result, kind_of_text,
    };

    #[test]
    fn numbers_times_ids_and_temporary_names_make_no_other_kind() {
        for (one, other) in [
            ("123456789", "987"),
            ("Sun Nov 22 18:28:27 UTC 2026", "Sun Nov 22 18:29:01 UTC 2026"),
            ("2026-11-22T18:28:27.123Z", "2026-11-22T18:31:00.9Z"),
            ("took 0.32s", "took 12ms"),
            ("took 1m03s", "took 59s"),
            ("loss=-0.3", "loss=0.25"),
            ("size 1.2M", "size 900K"),
            ("pid 4711", "pid 12"),
            ("/tmp/tmp.aBcDeFgH", "/tmp/tmp.zYxWvUtS"),
            ("wrote /tmp/a1b2/out.txt", "wrote /tmp/x/out.txt"),
            ("550e8400-e29b-41d4-a716-446655440000", "00112233-4455-4677-8899-aabbccddee0f"),
            ("commit 9b55bba1", "commit 26d3943c"),
            ("k3Jx9QpL2m", "a1B2c3D4e5"),
            ("[###   ] 40%", "[#####  ] 77%"),
            ("\u{1b}[32m5\u{1b}[0m left", "4 left"),
            ("a\na\nb", "b\na"),
            ("1e-05", "3.2e-04"),
        ] {
            assert_eq!(kind_of_text(one), kind_of_text(other), "{one} | {other}");
        }
    }

    /// A group of four letters occurs in one of twenty random UUIDs.
    #[test]
    fn groups_of_letters_in_an_id_make_no_other_kind() {
        for (one, other) in [
            ("550e8400-e29b-41d4-a716-446655440000", "fadebeef-cafe-4abc-abcd-decade0facec"),
            ("id=0a1b2c3d-babe-4fed-bead-0123456789ab.", "id=00000000-0000-4000-8000-000000000000."),
            ("aa:bb:cc:dd:ee:0f up", "00:11:22:33:44:55 up"),
        ] {
            assert_eq!(kind_of_text(one), kind_of_text(other), "{one} | {other}");
        }
        for (one, other) in
            [("added-cafe-decade", "faded-face-decade"), ("add-4-bed", "add-4-bad"), ("a:1:dead", "a:1:beef")]
        {
            assert_ne!(kind_of_text(one), kind_of_text(other), "{one} | {other}");
        }
    }

    proptest! {
        #[test]
        fn the_first_temporary_folder_is_found(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "/tmp", "/var", "/folders", "/dev", "/shm", "/run", "/user", "/", "a", "é", "/tmp/", "/run/user/",
                ]),
                0..9,
            ),
        ) {
            let text = parts.concat();
            let places = TEMPORARY.iter().filter_map(|folder| Some(text.find(folder)? + folder.len()));
            prop_assert_eq!(after_temporary(&text), places.min(), "{}", text);
        }
    }

    #[test]
    fn what_an_output_repeats_of_its_call_makes_no_other_kind() {
        let result = |word: &str| {
            let input = format!(r#"{{"command":"cd src\n{word} --all"}}"#);
            kind_of_result(&input, &format!("sh: 1: {word}: not found\n"))
        };
        assert_eq!(result("apple"), result("pear"));
        let found =
            |word: &str| kind_of_result(r#"{"command":"grep line f"}"#, &format!("a line with {word}"));
        assert_ne!(found("apple"), found("pear"));
    }

    #[test]
    fn words_make_another_kind() {
        for (one, other) in [
            ("a", "b"),
            ("error in main.rs", "error in lib.rs"),
            ("/tmp/x/a.rs", "/tmp/x/b.rs"),
            ("ready", "not ready"),
            ("utf8", "ascii"),
        ] {
            assert_ne!(kind_of_text(one), kind_of_text(other), "{one} | {other}");
        }
        assert_ne!(kind_of_call("shell", "ls"), kind_of_call("search", "ls"));
    }

    #[test]
    fn what_a_check_counts_is_told_with_its_numbers() {
        assert_ne!(counts_of("3 failed, 2 passed in 1.3s"), counts_of("2 failed, 3 passed in 1.3s"));
        assert_eq!(counts_of("3 failed, 2 passed in 1.3s"), counts_of("3 failed, 2 passed in 0.9s"));
        assert_ne!(counts_of("Tests run: 12, Failures: 2"), counts_of("Tests run: 12, Failures: 1"));
        assert_eq!(counts_of("123 456 at 17:12:01"), None);
    }

    #[test]
    fn times_are_told_from_other_numbers() {
        for word in ["0.32s", "(12ms)", "1,5s;", "3seconds"] {
            assert!(is_duration(word), "{word}");
        }
        for word in ["12", "tests", "3passed", "v1.5", "s", "2x"] {
            assert!(!is_duration(word), "{word}");
        }
    }
}
