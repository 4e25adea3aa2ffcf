//! A terminal's replies.

use provost_event::WindowSize;
use provost_terminal::Screen;

fn replies(bytes: &str) -> String {
    let mut screen = Screen::new(WindowSize::new(24, 80));
    screen.feed(bytes.as_bytes());
    String::from_utf8(screen.take_replies()).expect("answers are text")
}

fn check(question: &str, answer: &str) {
    assert_eq!(replies(question), answer, "{question:?}");
}

#[test]
fn status_position_and_attributes_are_answered() {
    check("\x1b[5n", "\x1b[0n");
    check("abc\r\n\x1b[6n", "\x1b[2;1R");
    check("\x1b[99;99Hx\x1b[6n", "\x1b[24;80R");
    check("\x1b[?6n", "\x1b[?1;1R");
    check("\x1b[5;10r\x1b[?6h\x1b[6n", "\x1b[1;1R");
    check("\x1b[c\x1b[0c\x1bZ", "\x1b[?62;22c\x1b[?62;22c\x1b[?62;22c");
    check("\x1b[>c", "\x1b[>41;390;0c");
    check("\x1b[=c", "\x1bP!|00000000\x1b\\");
    check("\x1b[?996n", "\x1b[?997;1n");
    // Other sequences with the same final byte aren't queries.
    check("\x1b[?0c\x1b[1c\x1b[7n\x1b[?6c", "");
}

#[test]
fn a_terminal_says_who_it_is() {
    let answer = replies("\x1b[>q");
    assert!(answer.starts_with("\x1bP>|Provost(") && answer.ends_with(")\x1b\\"), "{answer:?}");
    assert_eq!(answer, replies("\x1b[>0q"));
}

#[test]
fn modes_are_told_as_they_are() {
    check("\x1b[?2026$p", "\x1b[?2026;2$y");
    check("\x1b[?2026h\x1b[?2026$p", "\x1b[?2026;1$y");
    check("\x1b[?7$p\x1b[?25$p\x1b[?1049$p", "\x1b[?7;1$y\x1b[?25;1$y\x1b[?1049;2$y");
    check("\x1b[?31337$p", "\x1b[?31337;0$y");
    check("\x1b[4h\x1b[4$p\x1b[99$p", "\x1b[4;1$y\x1b[99;0$y");
}

#[test]
fn colours_are_answered_with_the_terminator_of_the_question() {
    check("\x1b]11;?\x07", "\x1b]11;rgb:1111/1111/1111\x07");
    check("\x1b]10;?\x1b\\", "\x1b]10;rgb:cccc/cccc/cccc\x1b\\");
    check("\x1b]10;?;?\x07", "\x1b]10;rgb:cccc/cccc/cccc\x07\x1b]11;rgb:1111/1111/1111\x07");
    check("\x1b]4;1;?;231;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07\x1b]4;231;rgb:ffff/ffff/ffff\x07");
    check("\x1b]12;#eeeeee\x07\x1b]4;1;red\x07\x1b]4;999;?\x07", "");
}

#[test]
fn sizes_are_told_in_cells_and_pixels() {
    check("\x1b[18t", "\x1b[8;24;80t");
    check("\x1b[14t\x1b[16t", "\x1b[4;480;800t\x1b[6;20;10t");
}

#[test]
fn keyboards_are_told() {
    check("\x1b[?u\x1b[>5u\x1b[?u", "\x1b[?0u\x1b[?5u");
    check("\x1b[>4;2m\x1b[?4m", "\x1b[>4;2m");
}

#[test]
fn settings_are_told_and_capabilities_are_not_known() {
    check("\x1b[4 q\x1bP$q q\x1b\\", "\x1bP1$r4 q\x1b\\");
    check("\x1b[1;31m\x1bP$qm\x1b\\", "\x1bP1$r0;31;1m\x1b\\");
    check("\x1bP$qm\x1b\\", "\x1bP1$r0m\x1b\\");
    check("\x1bP$qnonsense\x1b\\", "\x1bP0$r\x1b\\");
    check("\x1bP+q544e\x1b\\", "\x1bP0+r\x1b\\");
}

#[test]
fn nothing_that_a_program_put_in_comes_back() {
    check("\x1b]2;rm -rf ~\x07\x1b[21t\x1b[20t", "\x1b]l\x1b\\\x1b]L\x1b\\");
    check("\x1b]52;c;?\x07\x1b]52;c;cm0=\x07", "");
    check("\x05", "");
}

#[test]
fn device_attributes_are_answered_last() {
    check("\x1b[?u\x1b[c\x1b[6n\x1b]11;?\x07", "\x1b[?0u\x1b[1;1R\x1b]11;rgb:1111/1111/1111\x07\x1b[?62;22c");
}

#[test]
fn answers_that_are_not_read_are_dropped() {
    assert!(replies(&"\x1b[6n\x1b[c".repeat(100_000)).len() <= 32 * 1_024);
}
