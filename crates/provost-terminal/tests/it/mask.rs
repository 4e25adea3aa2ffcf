//! Masking of secrets on a screen.

use provost_event::WindowSize;
use provost_terminal::{Screen, masked_rows};

use crate::cast::mask;

fn check(rows: u16, cols: u16, bytes: &str, expected: &[&str]) {
    let mut screen = Screen::new(WindowSize::new(rows, cols));
    screen.feed(bytes.as_bytes());
    assert_eq!(masked_rows(&screen, &mask()), expected, "{bytes:?}");
}

#[test]
fn a_secret_in_a_row_is_masked() {
    check(3, 30, "a\r\nkey sk-abcdefgh12 b\r\nc", &["a", "key [secret] b", "c"]);
    check(2, 30, "nothing\r\nhere", &["nothing", "here"]);
}

#[test]
fn a_secret_that_goes_on_in_the_next_row_is_masked() {
    check(4, 10, "key sk-abcdefgh12 b\r\nc", &["key [secre", "t] b", "c", ""]);
    check(4, 8, "sk-abcdefgh12\r\nc\r\nd", &["[secret]", "", "c", "d"]);
}

#[test]
fn a_secret_of_several_lines_leaves_the_other_rows_where_they_are() {
    check(
        6,
        30,
        "top\r\n-----BEGIN KEY-----\r\nABCD\r\n-----END KEY-----\r\nbottom",
        &["top", "[secret]", "", "", "bottom", ""],
    );
}
