//! `edit_file` with a text that is nearly in the file: changed in the one right place, or not at all.

use provost_event::ToolStatus;
use serde_json::json;

use crate::fixture::Fixture;

/// What the answer must say.
const SPACE: &str = "the file differs from `old_text` in spaces at line ends";
const TYPOGRAPHY: &str = "the file differs from `old_text` in typographic characters";
const INDENT: &str = "the file differs from `old_text` in indentation";
const EXACT: &str = "edited `f`: 1 replacement at line";
const SEVERAL: &str = "texts differ from it only in spaces or typographic characters";
const TIMES: &str = "take more of the lines around";
const ABSENT: &str = "is not in `f`; nothing was changed";
const SAME: &str = "already has `new_text`";

/// Before, old text, new text, what the answer says, after.
const EDITED: &[[&str; 5]] = &[
    // Spaces at line ends.
    ["a = 1  \nb\n", "a = 1\nb\n", "a = 2\nb\n", SPACE, "a = 2\nb\n"],
    ["a = 1\nb\n", "a = 1 \n", "a = 2\n", SPACE, "a = 2\nb\n"],
    ["a\t\nb\nc\n", "a\nb", "a\nB", SPACE, "a\t\nB\nc\n"],
    ["a  \nb  \nc  \n", "a\nb\nc", "a\nB\nc", SPACE, "a  \nB\nc  \n"],
    ["x\na \nb\ny \n", "a\nb\n", "a\nb\nc\n", SPACE, "x\na \nb\nc\ny \n"],
    ["a \nb \nc \n", "a\nb\nc\n", "a\nc\n", SPACE, "a \nc \n"],
    ["f {\n \n\tg\n}\n", "f {\n\n\tg\n}", "f {\n\n\th\n}", SPACE, "f {\n \n\th\n}\n"],
    ["a\nb", "a\nb ", "a\nc", SPACE, "a\nc"],
    ["a \r\nb\r\nc \r\n", "a\nb\n", "A\nb\n", SPACE, "A\r\nb\r\nc \r\n"],
    ["a \r\nb\r\n", "a\r\nb\r\n", "A\r\nb\r\n", SPACE, "A\r\nb\r\n"],
    ["\u{feff}a \nb\n", "a\nb\n", "a\nB\n", SPACE, "\u{feff}a \nB\n"],
    ["\u{feff}a \nb\n", "\u{feff}a\nb\n", "\u{feff}A\nb\n", SPACE, "\u{feff}A\nb\n"],
    ["é \nü\n", "é\nü", "é\nö", SPACE, "é \nö\n"],
    ["max = 1;\nx = 1\n", "x = 1 \n", "x = 2\n", SPACE, "max = 1;\nx = 2\n"],
    ["a \n\n\nb\n", "a\n\n\nb", "a\nb", SPACE, "a \nb\n"],
    // Typographic characters, also within a line.
    ["say “hi” now\n", "say \"hi\"", "say \"ho\"", TYPOGRAPHY, "say \"ho\" now\n"],
    ["it’s so\n", "it's", "it is", TYPOGRAPHY, "it is so\n"],
    ["it's so\n", "it’s", "it is", TYPOGRAPHY, "it is so\n"],
    ["1–2 of 3—4\n", "1-2", "1 to 2", TYPOGRAPHY, "1 to 2 of 3—4\n"],
    ["a\u{a0}b c\u{a0}d\n", "a b", "ab", TYPOGRAPHY, "ab c\u{a0}d\n"],
    ["“a”\nb\n“c”\n", "\"a\"\nb\n\"c\"", "\"a\"\nB\n\"c\"", TYPOGRAPHY, "“a”\nB\n“c”\n"],
    ["x − y\n", "x - y", "x + y", TYPOGRAPHY, "x + y\n"],
    ["‘a’\r\nb\r\n", "'a'\nb", "'a'\nB", TYPOGRAPHY, "‘a’\r\nB\r\n"],
    ["\u{feff}“a”\n", "\"a\"", "\"b\"", TYPOGRAPHY, "\u{feff}\"b\"\n"],
    ["日本 “x” 日本\n", "\"x\"", "\"y\"", TYPOGRAPHY, "日本 \"y\" 日本\n"],
    ["a\u{202f}€\n", "a €", "b €", TYPOGRAPHY, "b €\n"],
    ["say “x”  \n", "say \"x\"", "say y", TYPOGRAPHY, "say y  \n"],
    ["  “a”;\n  b;\n", "\"a\";", "c;", TYPOGRAPHY, "  c;\n  b;\n"],
    // A uniform indentation.
    ["{\n    a;\n    b;\n}\n", "  a;\n  b;\n", "  a;\n  c;\n", INDENT, "{\n    a;\n    c;\n}\n"],
    ["{\n  a;\n  b;\n}\n", "    a;\n    b;\n", "    a;\n    c;\n", INDENT, "{\n  a;\n  c;\n}\n"],
    ["{\n\ta;\n\tb;\n}\n", "a;\nb;\n", "a;\nc;\nd;\n", INDENT, "{\n\ta;\n\tc;\n\td;\n}\n"],
    ["a;\nb;\n", "\ta;\n\tb;", "\ta;\n\tc;", INDENT, "a;\nc;\n"],
    ["  if a:\n    b\n", "if a:\n  b\n", "if a:\n  b\n  c\n", INDENT, "  if a:\n    b\n    c\n"],
    ["\tif a\n\n\t\tb\n", "if a\n\n\tb\n", "if a\n\n\tc\n", INDENT, "\tif a\n\n\t\tc\n"],
    ["  a\n \n  b\n", "a\n\nb\n", "a\n\nc\n", INDENT, "  a\n \n  c\n"],
    ["  a\r\n  b\r\n", "a\nb\n", "a\nc\n", INDENT, "  a\r\n  c\r\n"],
    ["\u{feff}  a\n  b\n", "a\nb\n", "a\nc\n", INDENT, "\u{feff}  a\n  c\n"],
    ["\t\ta\n\t\tb\n", "\ta\n\tb", "\ta", INDENT, "\t\ta\n"],
    ["    a\n    b\n", "  a\n  b", "", INDENT, "\n"],
    // What is there exactly is taken, whatever is nearly the same.
    ["x:\n    return 1\n", "  return 1\n", "  return 2\n", EXACT, "x:\n    return 2\n"],
    ["a \na\nb\n", "a\nb", "c", EXACT, "a \nc\n"],
    ["“x”\n\"x\"\n", "\"x\"", "y", EXACT, "“x”\ny\n"],
    ["  a\n  b\na\nb\n", "\na\nb", "\nc", EXACT, "  a\n  b\nc\n"],
];

/// Content, old text, new text, what the answer says.
const REFUSED: &[[&str; 4]] = &[
    // Several texts are nearly the wanted one.
    ["a \nb\nx\na\t\nb\n", "a\nb", "c", SEVERAL],
    ["it’s\nit‘s\n", "it's", "its", SEVERAL],
    ["1–2\n1—2\n", "1-2", "3", SEVERAL],
    ["a\n b\nx\n  a\n   b\n", "    a\n     b\n", "    c\n", SEVERAL],
    ["a \nb\nx\n  a\n  b\n", "a\nb\n", "c\n", SEVERAL],
    ["“a”\nx\n  \"a\" \n", "\"a\"\n", "b\n", SEVERAL],
    ["a \na \na \n", "a\na", "b", SEVERAL],
    ["a \na\n", "\u{a0}a", "b", ABSENT],
    ["““a\n", "\"\"a\n\"", "b", ABSENT],
    ["a b\n a b\n", "a b\n", "c\n", TIMES],
    // Indentation that isn't uniform, or of which the new text isn't a part.
    ["  if a:\n      b\n", "if a:\n  b\n", "if a:\n  c\n", ABSENT],
    ["if a:\n  b\nc\n", "if a:\n  b\n  c\n", "if a:\n  c\n", ABSENT],
    ["  a\nb\n", "    a\n    b\n", "    c\n", ABSENT],
    ["\ta\n\tb\n", "    a\n    b\n", "    c\n", ABSENT],
    ["\ta\n\t\tb\n", "a\n    b\n", "c\n", ABSENT],
    ["\ta\n\tb\n", "a\nb\n", "a\n    c\n", ABSENT],
    ["  a\n  b\n", "    a\n    b\n", "  a\n  c\n", ABSENT],
    ["  a\n  b\n", "a\nb\n", "a\n\tc\n", ABSENT],
    [" \ta\n \tb\n", "\ta\n\tb\nc", "d", ABSENT],
    ["  a\n\tb\n", "a\nb\n", "c\n", ABSENT],
    // Other differences within lines.
    ["a  b\n", "a b\n", "c\n", ABSENT],
    ["a = 1\n", "a=1\n", "c\n", ABSENT],
    ["Abc\n", "abc\n", "c\n", ABSENT],
    ["a\n\nb\n", "a\nb\n", "c\n", ABSENT],
    ["a\nb\n", "a\n\nb\n", "c\n", ABSENT],
    ["a…\n", "a...\n", "c\n", ABSENT],
    ["a \nbc\n", "a\nb", "c", ABSENT],
    ["ca \nb\n", "a\nb\n", "c\n", ABSENT],
    ["a “b” \n", "a \"b\"\n", "c\n", ABSENT],
    // Line ends are no spaces.
    ["a\r\nb \nc\r\n", "a\nb\n", "c\n", ABSENT],
    ["a \nb\n", "a\r\nb\r\n", "c\n", ABSENT],
    ["a\u{b}\nb\n", "a\nb\n", "c\n", ABSENT],
    // The mark at the beginning.
    ["a \nb\n", "\u{feff}a\nb\n", "c\n", ABSENT],
    ["x\n\u{feff}a \nb\n", "a\nb\n", "c\n", ABSENT],
    // Texts that could be anywhere.
    ["{\n}\n", "}\n ", "x", ABSENT],
    ["{\n  }\n", "\t}\n", "x\n", ABSENT],
    ["a\n \n", "\n\n", "x\n", ABSENT],
    ["a\n—\n", "-\n", "x\n", ABSENT],
    // Nothing would change.
    ["a\nb\n", "a \nb\n", "a\nb\n", SAME],
];

async fn answer(before: &str, old: &str, new: &str) -> (ToolStatus, String, String) {
    let fixture = Fixture::new().file("f", before);
    let output = fixture.call("edit_file", json!({"path": "f", "old_text": old, "new_text": new})).await;
    (output.status, output.text, fixture.read("f"))
}

#[tokio::test]
async fn a_text_that_is_nearly_there_once_is_replaced_and_nothing_else() {
    let mut wrong = Vec::new();
    for [before, old, new, said, after] in EDITED {
        let (status, text, got) = answer(before, old, new).await;
        if got != *after || status != ToolStatus::Ok || !text.contains(said) {
            wrong.push(format!("{before:?}, {old:?} gave {got:?}: {text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_text_that_is_nearly_there_several_times_or_not_enough_changes_nothing() {
    let mut wrong = Vec::new();
    for [before, old, new, said] in REFUSED {
        let (status, text, got) = answer(before, old, new).await;
        let is_told = text.contains(said) && text.contains("nothing was changed");
        if got != *before || status != ToolStatus::Error || !is_told {
            wrong.push(format!("{before:?}, {old:?} gave {got:?}: {text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn all_occurrences_are_only_those_that_are_there_exactly() {
    let fixture = Fixture::new().file("f", "a \nb\n");
    let input = json!({"path": "f", "old_text": "a\nb", "new_text": "c", "replace_all": true});
    let output = fixture.call("edit_file", input).await;
    assert!(output.text.contains(ABSENT), "{}", output.text);
    assert_eq!(fixture.read("f"), "a \nb\n");
}

#[test]
fn there_are_at_least_sixty_near_misses() {
    assert!(EDITED.len() + REFUSED.len() >= 60);
}
