//! The subject that permissions use: a whole command, or none.

use expect_test::{Expect, expect};

use super::detect::{
    Do::{self, Kernel, Paint, Wait},
    POLLS, READS, Stage,
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

/// The subject of a question that a plain program asks on a line.
fn on_a_line(lines: &str) -> Option<String> {
    let mut stage = Stage::new("generic");
    let text: &'static str = Box::leak(lines.replace('\n', "\r\n").into_boxed_str());
    stage.run(&[Kernel(READS), Paint(text), Wait(800)]);
    stage.detector.ask().unwrap_or_else(|| panic!("no question: {lines}")).subject.clone()
}

#[test]
fn a_file_between_quotes_that_match_is_read() {
    for line in [
        "rm: remove regular file 'ok.txt'? ",
        "rm: remove regular file `ok.txt'? ",
        "rm: remove regular empty file ‘ok.txt’? ",
        "mv: replace 'ok.txt', overriding mode 0444 (r--r--r--)? ",
        "cp: overwrite \"ok.txt\"? ",
    ] {
        assert_eq!(on_a_line(line).as_deref(), Some("ok.txt"), "{line}");
    }
    let from_a_shell = "\x1b[?2004l\rrm: remove regular file 'ok.txt'? ";
    assert_eq!(on_a_line(from_a_shell).as_deref(), Some("ok.txt"), "a shell has left its line");
    assert_eq!(on_a_line("rm: remove regular file 'a b; c'? ").as_deref(), Some("a b; c"));
}

#[test]
fn a_name_that_ends_its_quotes_itself_is_not_read() {
    let names = [
        // As GNU's programs write such names.
        "\"ok.txt' important data\"",
        "\"ok.txt'\"",
        "'ok.txt\"; x'",
        "'ok.txt'\\''; x'",
        "'ok.txt'$'\\n''important'",
        "'ok.txt'$'\\033''[2K'",
        "'ok.txt\\n'",
        // As others do.
        "'ok.txt' important data'",
        "'ok.txt'? important data'",
        "`ok.txt` important'",
        "‘ok.txt’ important’",
        "“ok.txt” important”",
        "«ok.txt» important»",
        "'ok.txt’ x'",
        "'ok.txt` x'",
        "ok.txt",
        "'ok.txt",
        "ok.txt'",
        "'ok.txt…'",
        "'/home/.../ok.txt'",
        // Characters that aren't seen, or change what is.
        "'ok\u{200b}.txt'",
        "'ok\u{202e}txt.exe'",
        "'ok\u{2066}.txt'",
        "'ok\u{ad}.txt'",
        "'ok\u{fffd}.txt'",
        "'ok\u{3164}.txt'",
        "'ok\u{feff}.txt'",
    ];
    for name in names {
        let line = format!("rm: remove regular file {name}? ");
        assert_eq!(on_a_line(&line), None, "{line}");
    }
    let lines = "rm: remove 'important\nrm: remove regular file 'ok.txt'? ";
    assert_eq!(on_a_line(lines), None, "the name has a line break");
}

/// The subject of an edit that an agent asks about, with this text in its dialog.
fn of_an_edit(profile: &str, dialog: &str) -> Option<String> {
    let mut stage = Stage::new(profile);
    let text: &'static str = Box::leak(dialog.replace('\n', "\r\n").into_boxed_str());
    stage.run(&[Kernel(POLLS), Paint("\x1b[?25l"), Paint(text), Wait(800)]);
    stage.detector.ask().unwrap_or_else(|| panic!("no question: {dialog}")).subject.clone()
}

#[test]
fn an_edited_file_is_read_if_its_name_can_not_go_on() {
    let gemini = |name: &str| {
        let end =
            "│ Apply this change?\n│ ● 1. Yes, allow once\n│   2. No, suggest changes (esc)\n╰──────────────";
        of_an_edit("gemini", &format!("╭──────────────\n│ ? WriteFile Writing to {name}\n{end}"))
    };
    let codex = |name: &str| {
        let dialog = format!("  Would you like to make the following edits?\n\n  • Added {name}\n\n");
        of_an_edit("codex", &format!("{dialog}{}", CODEX_END.replace("\r\n", "\n").trim_start()))
    };
    let claude = |name: &str| {
        of_an_edit("claude", &format!("Do you want to create {name}?\n❯ 1. Yes\n  2. No, tell it what to do"))
    };
    assert_eq!(gemini("src/ok.txt").as_deref(), Some("src/ok.txt"));
    assert_eq!(gemini("src/ok.txt\n│ 1 text"), None, "the row may be the rest of the name");
    assert_eq!(codex("src/ok.txt (+1 -0)").as_deref(), Some("src/ok.txt"));
    assert_eq!(claude("src/ok.txt").as_deref(), Some("src/ok.txt"));
    // Only a name that ends at its row's end is one.
    for name in ["ok.txt important", "ok.txt: important", "ok.txt (+1 -0) x", "ok\u{202e}.txt", "…/ok.txt"]
    {
        assert_eq!(gemini(name), None, "{name}");
        assert_eq!(codex(&format!("{name} (+1 -0)")), None, "{name}");
    }
    assert_eq!(claude("ok.txt? Do you want to create x").as_deref(), Some("ok.txt? Do you want to create x"));
}
