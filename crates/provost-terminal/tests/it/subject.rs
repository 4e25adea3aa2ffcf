//! The subject that permissions use: a whole command, or none.

use expect_test::{Expect, expect};

use super::detect::{
    Do::{self, Kernel, Paint, Wait},
    POLLS, Stage,
};

/// The subject of the question on the screen, and its text.
fn check(profile: &str, screen: &'static str, expected: &Expect) {
    let mut stage = Stage::new(profile);
    let script: [Do; 4] = [Kernel(POLLS), Paint("\x1b[?25l"), Paint(screen), Wait(800)];
    stage.run(&script);
    let ask = stage.detector.ask().expect("a question");
    expected.assert_eq(&format!("{:?} about {:?}\n{}", ask.kind, ask.subject, ask.question));
}

const CODEX_END: &str = "\r\n› 1. Yes, proceed (y)\r\n  2. No, and tell Codex what to do differently (esc)\r\n\r\n  Press enter to confirm or esc to cancel";

fn codex(command: &'static str) -> &'static str {
    Box::leak(
        format!("  Would you like to run the following command?\r\n\r\n  $ {command}\r\n{CODEX_END}")
            .into_boxed_str(),
    )
}

#[test]
fn a_command_on_one_row_is_read() {
    check(
        "codex",
        codex("touch proof.txt"),
        &expect![[r#"
        Command about Some("touch proof.txt")
        Would you like to run the following command?"#]],
    );
}

#[test]
fn a_command_that_goes_on_in_a_second_row_is_shown_and_not_read() {
    check(
        "codex",
        codex("printf a &&\r\n  rm -rf important"),
        &expect![[r#"
        Command about None
        Would you like to run the following command?
        printf a &&
        rm -rf important"#]],
    );
}

#[test]
fn a_command_that_is_cut_short_is_not_read() {
    check(
        "codex",
        codex("printf aaaaaaaaaaaaaaaaaaaa…"),
        &expect![[r#"
        Command about None
        Would you like to run the following command?
        printf aaaaaaaaaaaaaaaaaaaa…"#]],
    );
}

#[test]
fn a_command_that_imitates_the_question_is_not_read() {
    let command = "rm -rf x\r\n  Would you like to run the following command?\r\n\r\n  $ ls";
    check(
        "codex",
        codex(command),
        &expect![[r#"
        Command about None
        Would you like to run the following command?
        ls"#]],
    );
}

#[test]
fn a_command_in_a_box_is_read_from_the_box() {
    let screen = "╭──────────────────────────────╮\r\n│ ? Shell  touch proof.txt     │\r\n│ ╭──────────────────────────╮ │\r\n\
                  │ │ touch proof.txt          │ │\r\n│ ╰──────────────────────────╯ │\r\n│ Allow execution of [Shell]?  │\r\n\
                  │                              │\r\n│ ● 1. Allow once              │\r\n│   2. Allow for this session  │\r\n\
                  │   3. No, suggest changes (esc) │\r\n╰──────────────────────────────╯";
    check(
        "gemini",
        screen,
        &expect![[r#"
        Command about Some("touch proof.txt")
        Allow execution of [Shell]?"#]],
    );
}

#[test]
fn a_command_that_closes_its_box_itself_is_not_read() {
    let screen = "╭──────────────────────────────╮\r\n│ ? Shell  touch a             │\r\n│ ╭──────────────────────────╮ │\r\n\
                  │ │ touch a                  │ │\r\n│ │ ╰──────────────────────╯ │ │\r\n│ │ rm -rf important         │ │\r\n\
                  │ ╰──────────────────────────╯ │\r\n│ Allow execution of [Shell]?  │\r\n│ ● 1. Allow once              │\r\n\
                  │   2. No, suggest changes (esc) │\r\n╰──────────────────────────────╯";
    check(
        "gemini",
        screen,
        &expect![[r#"
        Command about None
        Allow execution of [Shell]?
        touch a
        ╰──────────────────────╯
        rm -rf important"#]],
    );
}

#[test]
fn a_command_after_a_header_is_read_behind_the_blank_row() {
    let screen = "╭────────────────────────────────╮\r\n│ ?  Shell ls -a (List it) ←     │\r\n│                                │\r\n\
                  │   ls -a                        │\r\n│                                │\r\n│ Allow execution of: 'ls'?      │\r\n\
                  │                                │\r\n│ › 1. Yes, allow once           │\r\n│   2. No, suggest changes (esc) │\r\n\
                  ╰────────────────────────────────╯\r\n⠏ Waiting for user confirmation...";
    check(
        "qwen",
        screen,
        &expect![[r#"
        Command about Some("ls -a")
        Allow execution of: 'ls'?"#]],
    );
}

#[test]
fn a_command_beside_a_frame_is_read_up_to_the_buttons() {
    let screen = "  ┃  △ Permission required\r\n  ┃    # Shell command\r\n  ┃\r\n  ┃  $ touch proof.txt\r\n  ┃\r\n\
                  ┃   Allow once   Allow always   Reject    enter confirm\r\n  ┃";
    check(
        "opencode",
        screen,
        &expect![[r#"
        Command about Some("touch proof.txt")
        △ Permission required"#]],
    );
}
