//! Screens of agents, of several versions, and the detected states.

use provost_event::{Blocker, TerminalState};

use super::detect::{
    Do::{Kernel, Paint, Wait},
    POLLS, SLEEPS, Stage,
};

const RULE: &str = "────────────────────────────────────────";

/// The detected state after these rows have been on the screen for a while.
fn check(profile: &str, rows: &[&str], expected: TerminalState) {
    let mut stage = Stage::new(profile);
    let screen: &'static str = Box::leak(rows.join("\r\n").into_boxed_str());
    stage.run(&[Kernel(POLLS), Paint("\x1b[?25l"), Paint(screen), Wait(2000)]);
    assert_eq!(stage.detector.state(), expected, "{profile}:\n{}", rows.join("\n"));
}

const APPROVAL: TerminalState = TerminalState::Blocked(Blocker::Approval);

#[test]
fn a_composer_is_ready_in_rules_and_in_a_box() {
    let boxed = [
        "╭──────────────────────────────────────╮",
        "│ >   Type your message or @path/to/file │",
        "╰──────────────────────────────────────╯",
        " ~/work   no sandbox   gemini-2.5-flash",
    ];
    check("gemini", &boxed, TerminalState::Idle);
    check(
        "gemini",
        &[RULE, " >   Type your message or @path/to/file", RULE, " ~/work   gemini-2.5-flash"],
        TerminalState::Idle,
    );
    check("claude", &[RULE, "❯", RULE, "  ? for shortcuts"], TerminalState::Idle);
    check(
        "opencode",
        &["  ┃", "  ┃  Build · Some Model", "  ╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀", "   ~/work   120 (0%)"],
        TerminalState::Idle,
    );
}

#[test]
fn a_spinner_over_the_composer_is_work_also_when_it_is_wrapped() {
    let composer = [RULE, ">   Type your message or @path/to/file", RULE, "  ? for shortcuts"];
    check(
        "qwen",
        &[
            &[
                "  ⠴Fiddling with the screen. (1s · ↑ 1 tokens · esc to",
                "                                     cancel)",
            ],
            composer.as_slice(),
        ]
        .concat(),
        TerminalState::Working,
    );
    check(
        "qwen",
        &[&["  ⠦ Optimizing for speed", "  (1s · esc to cancel)"], composer.as_slice()].concat(),
        TerminalState::Working,
    );
    check("claude", &["· Flambéing…", RULE, "❯", RULE, "  esc to interrupt"], TerminalState::Working);
    check(
        "opencode",
        &[
            "  ┃  Build · Some Model",
            "  ╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀",
            "   ■■■⬝⬝⬝⬝⬝ overloaded [retrying in 8s attempt #3]",
        ],
        TerminalState::Working,
    );
}

#[test]
fn a_quoted_dialog_above_a_composer_asks_nothing() {
    let quoted = [
        "● It then shows:",
        "  Bash command",
        "    rm -rf build",
        "  Do you want to proceed?",
        "  ❯ 1. Yes",
        "    2. No",
        "  Esc to cancel",
    ];
    check(
        "claude",
        &[quoted.as_slice(), &[RULE, "❯", RULE, "  ? for shortcuts"]].concat(),
        TerminalState::Idle,
    );
    let quoted = ["     There are two ways. Do you want me to proceed?", "     1. Yes", "     2. No"];
    check(
        "opencode",
        &[quoted.as_slice(), &["  ┃", "  ┃  Build · Some Model", "  ╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀"]].concat(),
        TerminalState::Idle,
    );
}

#[test]
fn a_dialog_whose_frame_is_not_closed_yet_asks_nothing() {
    let torn = ["✦ Do you want me to proceed?", "   1. Yes", "   2. No", "  Shall I go on"];
    check("gemini", &torn, TerminalState::Starting);
}

#[test]
fn dialogs_of_other_kinds_and_versions_ask() {
    check(
        "opencode",
        &[
            "  ┃  △ Always allow",
            "  ┃  This will allow the following patterns",
            "  ┃  - echo *",
            "  ┃   Confirm   Cancel      ⇆ select  enter con",
        ],
        APPROVAL,
    );
    let marked = [
        "  │ ?  Shell touch a (Run it) ← │",
        "  │                             │",
        "  │   touch a                   │",
        "  │ Allow execution of: 'touch'? │",
        "  │ ● 1. Yes, allow once        │",
        "  │   2. No, suggest changes (esc) │",
    ];
    check("qwen", &marked, APPROVAL);
    check(
        "codex",
        &[
            "  Update available · 0.169.0 → 0.200.0",
            "› 1. Update now (runs `npm install -g @openai/codex`)",
            "  2. Skip",
            "  enter continue · esc skip",
        ],
        TerminalState::Blocked(Blocker::Question),
    );
}

#[test]
fn what_an_agent_left_on_the_screen_in_line_mode_asks_nothing() {
    let dialog = " Do you want to create notes.txt?\r\n ❯ 1. Yes\r\n   2. No\r\n Esc to cancel";
    let mut stage = Stage::new("claude");
    stage.run(&[Kernel(SLEEPS), Paint("starting anew\r\n"), Wait(1000), Paint(dialog), Wait(2000)]);
    assert_ne!(stage.detector.state(), APPROVAL);
}
