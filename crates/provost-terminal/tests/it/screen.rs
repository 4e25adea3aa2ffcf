//! A program's output as a screen.

use provost_event::WindowSize;
use provost_terminal::{Colour, Cursor, Mouse, Screen};

fn screen(rows: u16, cols: u16, bytes: &str) -> Screen {
    let mut screen = Screen::new(WindowSize::new(rows, cols));
    screen.feed(bytes.as_bytes());
    screen
}

/// The rows without the empty ones at the end, separated by `|`.
fn shown(screen: &Screen) -> String {
    screen.rows().join("|").trim_end_matches('|').to_owned()
}

fn check(rows: u16, cols: u16, bytes: &str, expected: &str) {
    assert_eq!(shown(&screen(rows, cols, bytes)), expected, "{bytes:?}");
}

#[test]
fn text_wraps_scrolls_and_is_overwritten() {
    check(3, 5, "abcdefg", "abcde|fg");
    check(3, 5, "1\r\n2\r\n3\r\n4", "2|3|4");
    check(3, 5, "hello\rJ", "Jello");
    check(3, 10, "a\tb", "a       b");
    check(3, 10, "ab\x08c", "ac");
}

#[test]
fn wide_and_combined_characters_take_their_columns() {
    check(2, 6, "日本x", "日本x");
    assert_eq!(screen(2, 6, "日本").cursor().col, 4);
    assert_eq!(screen(2, 6, "e\u{301}x").cursor().col, 2);
    // A wide character that doesn't fit goes to the next line.
    check(2, 3, "ab日", "ab|日");
    assert_eq!(shown(&screen(2, 20, "👩\u{200d}👧x")), "👩\u{200d}👧x");
}

#[test]
fn lines_scroll_within_their_region() {
    check(4, 5, "a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[3;1H\nX", "a|c|X|d");
    check(4, 5, "a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[2;1H\x1bM", "a||b|d");
    check(4, 5, "a\r\nb\r\nc\x1b[2;1H\x1b[L", "a||b|c");
    check(4, 5, "a\r\nb\r\nc\x1b[2;1H\x1b[M", "a|c");
}

#[test]
fn setting_a_scroll_region_sends_the_cursor_home() {
    check(4, 5, "\x1b[2;3rx", "x");
    check(4, 5, "\x1b[?6h\x1b[2;3rx", "|x");
    check(4, 5, "a\x1b[3;2rx", "ax");
}

#[test]
fn a_cursor_past_the_last_column_moves_from_the_last() {
    check(3, 5, "\r\nabcde\x1b[Ax", "    x|abcde");
    check(3, 5, "abcde\x1b[Bx", "abcde|    x");
    check(3, 5, "abcde\x1b[Dx", "abcxe");
    check(3, 5, "abcde\x08x", "abcxe");
    check(3, 5, "abcde\x1b[mx", "abcde|x");
}

#[test]
fn leaving_the_alternate_screen_brings_back_the_main_one() {
    check(3, 10, "main\x1b[?1049h\x1b[Halt", "alt");
    check(3, 10, "main\x1b[?1049h\x1b[2J\x1b[Halt\x1b[?1049l!", "main!");
    check(3, 10, "main\x1b[?1047h\x1b[Halt\x1b[?1047l", "main");
    assert!(screen(3, 10, "\x1b[?1049h").modes().alternate);
}

#[test]
fn the_cursor_stays_where_it_is_when_the_screens_change() {
    assert_eq!(screen(3, 10, "ab\r\ncd\x1b[?1049h").cursor(), Cursor { row: 1, col: 2, visible: true });
}

#[test]
fn letters_are_lines_while_the_drawing_set_is_in_use() {
    check(2, 10, "\x1b(0lqk\x1b(Blqk", "┌─┐lqk");
    check(2, 10, "\x1b)0a\x0exx\x0fb", "a││b");
}

#[test]
fn without_wrapping_text_is_clipped_at_the_edge() {
    check(2, 5, "\x1b[?7labcdefgh", "abcdh");
    check(2, 5, "\x1b[?7labc日本", "abc本");
    check(2, 5, "\x1b[?7labcdefgh\x1b[?7h\r\nok", "abcdh|ok");
}

#[test]
fn inserting_moves_the_rest_of_the_line() {
    check(2, 10, "world\r\x1b[4hhello \x1b[4l", "hello worl");
}

#[test]
fn cursor_keeping_and_tabs_of_older_terminals_work() {
    check(2, 20, "ab\x1b[scd\x1b[uX", "abXd");
    check(2, 20, "\x1b[2Ix\x1b[2Zy", "        y       x");
    check(3, 20, "ab\x1bDc\x1bEd", "ab|  c|d");
    check(2, 20, "a\x1b[3b", "aaaa");
    check(3, 20, "\x1b[2;3r\x1b[?6h\x1b[!p\x1b[Hx", "x");
}

#[test]
fn ignored_strings_leave_no_trace() {
    for string in [
        "\x1b_Gi=1;AAAA\x1b\\",
        "\x1b^private\x1b\\",
        "\x1bXsos\x1b\\",
        "\x1bPq#0;2\x1b\\",
        "\x1b]52;c;QQ==\x07",
    ] {
        check(2, 10, &format!("a{string}b"), "ab");
    }
    // Cancelled, or cut off by the next sequence.
    check(2, 10, "a\x1b]0;half\x18b", "ab");
    check(2, 10, "a\x1bP1;2|half\x1b[1mb", "ab");
}

#[test]
fn odd_sequences_end_where_they_end() {
    check(2, 10, "a\x1b[>4;?mb", "ab");
    check(2, 10, "a\x1b[1;2;!!zb", "ab");
    check(2, 10, "a\x1b[5\r\n;1Hb", "a|b");
    check(2, 10, "a\x1b[\x1b[31mb", "ab");
    check(2, 10, &format!("a\x1b[{}mb", "1;".repeat(5_000)), "ab");
}

#[test]
fn an_endless_string_is_not_held() {
    let mut screen = screen(2, 10, "\x1b]0;");
    let megabyte = vec![b'x'; 1 << 20];
    for _ in 0..20 {
        screen.feed(&megabyte);
    }
    screen.feed(b"\x07after");
    assert_eq!((shown(&screen).as_str(), screen.title()), ("after", ""));
    for start in ["\x1bP", "\x1b_", "\x1b["] {
        screen.feed(start.as_bytes());
        screen.feed(&vec![b'1'; 1 << 20]);
        screen.feed(b"m\x1b\\");
    }
    assert_eq!(shown(&screen), "after");
}

#[test]
fn combining_characters_without_end_stay_in_one_cell() {
    let screen = screen(2, 10, &format!("e{}x", "\u{301}".repeat(100_000)));
    assert!(shown(&screen).len() < 64);
    assert_eq!(screen.cursor().col, 2);
}

#[test]
fn a_character_cut_in_two_does_not_swallow_its_neighbour() {
    let mut screen = Screen::new(WindowSize::new(1, 10));
    for part in [&b"\xc3"[..], b"\xa9a\xe2\x94", b"\x80b"] {
        screen.feed(part);
    }
    assert_eq!(shown(&screen), "éa─b");
}

#[test]
fn bytes_that_are_no_text_are_shown_as_such() {
    let mut screen = Screen::new(WindowSize::new(1, 12));
    screen.feed(b"a\xff\xfeb\xc3\xc3(\xe2\x82\x1b[mc\xef\xbf\xbd");
    assert_eq!(shown(&screen), "a\u{fffd}\u{fffd}b\u{fffd}\u{fffd}(\u{fffd}c\u{fffd}");
    let mut second = Screen::new(WindowSize::new(1, 12));
    second.feed(&screen.snapshot());
    assert_eq!((second.rows(), second.runs(0)), (screen.rows(), screen.runs(0)));
}

#[test]
fn a_picture_form_at_the_edge_of_the_last_line_is_survived() {
    let mut screen = screen(2, 3, "\x1b[2;3H❤\u{fe0f}\x1b[H   \r\n   ❤\u{fe0f}x");
    screen.resize(WindowSize::new(1, 1));
    screen.feed("❤\u{fe0f}日".as_bytes());
}

#[test]
fn any_size_is_possible() {
    for (rows, cols) in [(1, 1), (1, 2), (1_000, 1_000), (1, 1_000), (1_000, 1)] {
        let mut screen = Screen::new(WindowSize::default());
        screen.feed("text 日本\x1b[40;120Hx\x1b[?1049hy".as_bytes());
        screen.resize(WindowSize::new(rows, cols));
        screen.feed("text 日本\r\n\x1b[999;999Hx\x1b[?1049l".as_bytes());
        screen.resize(WindowSize::default());
        assert_eq!(screen.rows().len(), 40);
    }
}

#[test]
fn modes_in_force_are_told() {
    let modes = screen(2, 10, "\x1b[?1;1002;1004;1006;2004;2026h\x1b=\x1b[>4;2m\x1b[>1u\x1b[=4;2u").modes();
    assert!(modes.application_cursor && modes.application_keypad && modes.bracketed_paste);
    assert!(modes.focus_reports && modes.synchronized && modes.mouse_sgr && !modes.alternate);
    assert_eq!((modes.mouse, modes.modify_other_keys, modes.keyboard_flags), (Mouse::Drag, 2, 5));
    let modes = screen(2, 10, "\x1b[?1;1002;1004;2004;2026h\x1bc").modes();
    assert_eq!(modes, provost_terminal::Modes::default());
}

#[test]
fn keyboard_flags_are_a_stack_for_each_screen() {
    let flags = |bytes: &str| screen(2, 10, bytes).modes().keyboard_flags;
    assert_eq!(flags("\x1b[>1u\x1b[>7u\x1b[<u"), 1);
    assert_eq!(flags("\x1b[>1u\x1b[>7u\x1b[<9u"), 0);
    assert_eq!(flags("\x1b[>1u\x1b[?1049h"), 0);
    assert_eq!(flags("\x1b[>1u\x1b[?1049h\x1b[>8u\x1b[?1049l"), 1);
    assert_eq!(flags(&"\x1b[>3u".repeat(1_000)), 3);
}

#[test]
fn a_row_tells_how_its_parts_look() {
    let screen = screen(2, 20, "\x1b[2mdim\x1b[m > \x1b[7;31mYes\x1b[m");
    let runs = screen.runs(0);
    let texts: Vec<_> = runs.iter().map(|run| (run.col, run.text.trim_end())).collect();
    assert_eq!(texts, [(0, "dim"), (3, " >"), (6, "Yes"), (9, "")]);
    assert!(runs[0].style.dim && runs[2].style.inverse);
    assert_eq!(runs[2].style.foreground, Colour::Indexed(1));
    assert!(
        screen.is_dim(0, 1) && !screen.is_dim(0, 4) && screen.is_inverse(0, 8) && !screen.is_inverse(5, 500)
    );
    assert_eq!(screen.row_text(0, 6, 9), "Yes");
    assert_eq!(screen.row_text(9, 0, 99), "");
}

#[test]
fn a_fingerprint_names_text_and_cursor_and_nothing_else() {
    let fingerprint = |bytes: &str| screen(3, 10, bytes).fingerprint();
    assert_eq!(fingerprint("ab"), fingerprint("a\x1b[31mb\x1b]0;title\x07\x1b[?2004h"));
    assert_ne!(fingerprint("ab"), fingerprint("ab\x1b[D"));
    assert_ne!(fingerprint("ab"), fingerprint("ac"));
    assert_ne!(fingerprint("ab"), fingerprint("ab\x1b[?25l"));
}

#[test]
fn a_snapshot_carries_what_is_in_force() {
    let program = "main\x1b[>1u\x1b[?1049h\x1b[2;4r\x1b[3;2Hcab\x1b[31m\x1b]2;a title\x07\x1b[?1004;2004h\x1b[>7u\x1b[>4;1m\
                   \x1b[4 q\x1b(0\x1b[?7l";
    let mut first = screen(5, 10, program);
    let mut second = Screen::new(WindowSize::new(5, 10));
    second.feed(&first.snapshot());
    assert_eq!(second.modes(), first.modes());
    assert_eq!((second.title(), second.cursor()), ("a title", first.cursor()));
    // The next output has the same effect on both.
    let next = "q\n\n\nxx\x1b[<u\x1b[?1049l\x1b[1;9Hlong";
    first.feed(next.as_bytes());
    second.feed(next.as_bytes());
    assert_eq!((shown(&second), second.modes()), (shown(&first), first.modes()));
    assert_eq!(second.runs(0), first.runs(0));
}

/// The texts of the rows that have scrolled off.
fn scrolled(screen: &Screen) -> Vec<String> {
    let text = String::from_utf8(screen.scrollback()).expect("UTF-8").replace("\x1b[m", "");
    text.lines().map(|row| row.trim_end().to_owned()).collect()
}

#[test]
fn what_scrolls_off_the_main_screen_is_kept_in_its_colours() {
    let mut screen = Screen::with_history(WindowSize::new(3, 10));
    screen.feed(b"\x1b[31mred\x1b[m\r\ntwo\r\nthree\r\nfo");
    screen.feed(b"ur\r\nfive\r\n");
    assert_eq!(scrolled(&screen).first().map(String::as_str), Some("\x1b[31mred"));
    assert_eq!(scrolled(&screen)[1..], ["two", "three"]);
    // What a full-screen program paints doesn't count; the main screen is there again afterwards.
    screen.feed(b"\x1b[?1049h");
    screen.feed("over\r\n".repeat(50).as_bytes());
    screen.feed(b"\x1b[?1049l");
    screen.feed(b"six\r\n");
    assert_eq!(scrolled(&screen)[1..], ["two", "three", "four"]);
    assert!(Screen::new(WindowSize::new(3, 10)).scrollback().is_empty());
}

#[test]
fn of_a_flood_the_last_rows_are_kept() {
    let mut screen = Screen::with_history(WindowSize::new(24, 80));
    let lines = (1..=1_000_000).map(|number| format!("line {number}\r\n")).collect::<String>();
    lines.as_bytes().chunks(60_000).for_each(|chunk| screen.feed(chunk));
    let rows = scrolled(&screen);
    assert_eq!(rows.len(), 10_000);
    assert_eq!(rows.last().map(String::as_str), Some("line 999977"));
    assert_eq!(rows.first().map(String::as_str), Some("line 989978"));
}
