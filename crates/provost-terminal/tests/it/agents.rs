//! Screens of agents, of several versions, and the detected states.

use provost_event::{Blocker, TerminalState};
use provost_terminal::KernelSample;

use super::detect::{
    Do::{Exit as End, Kernel, Paint, Resize, Type, Wait},
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

/// What OpenHands shows with its question, its cursor hidden in the row of "Choose an option:".
fn openhands_asks(actions: &[&str], marked: &str) -> Option<Option<String>> {
    let mut rows = vec!["🔍 Agent created 1 action(s) and is waiting for confirmation:".to_owned()];
    rows.extend(actions.iter().map(|action| format!("  {action}...")));
    rows.extend(["Choose an option:\x1b7".to_owned(), String::new()]);
    let items = ["Yes, proceed", "Reject", "Always proceed (don't ask again)"];
    rows.extend(items.map(|item| format!("{} {item}", if item == marked { ">" } else { " " })));
    let screen: &'static str = Box::leak(format!("{}\x1b8\x1b[?25l", rows.join("\r\n")).into_boxed_str());
    let mut stage = Stage::new("openhands");
    stage.run(&[Resize(24, 120), Kernel(POLLS), Paint(screen), Wait(2000)]);
    stage.detector.ask().map(|ask| ask.subject.clone())
}

#[test]
fn openhands_names_a_command_if_its_notation_is_whole() {
    let asks = |action: &str| openhands_asks(&[action], "Yes, proceed");
    let command = |text: &str| format!("1. terminal: kind='ExecuteBashAction' command={text}");
    let of = |text: &str| asks(&command(text));
    assert_eq!(of("'touch a.txt' is_input=False timeout=None"), Some(Some("touch a.txt".to_owned())));
    assert_eq!(of("\"echo 'a b'\" is_input=False timeout=None"), Some(Some("echo 'a b'".to_owned())));
    // An escape, an input to a program, a text that is cut: a person sees the row as it is.
    assert_eq!(of(r"'echo a\nrm b' is_input=False timeout=None"), Some(None));
    assert_eq!(of("'y' is_input=True timeout=None"), Some(None));
    assert_eq!(of("'echo a long command that isn"), Some(None));
    assert_eq!(
        openhands_asks(&[&command("'ls' is_input=False "), "2. terminal: kind="], "Yes, proceed"),
        Some(None)
    );
    // Another item is marked: a return would choose that.
    assert_eq!(openhands_asks(&[&command("'ls' is_input=False ")], "Always proceed (don't ask again)"), None);
}

#[test]
fn a_program_that_leaves_the_terminal_in_line_mode_is_at_its_composer_there() {
    // What the terminal answers, and keys that were typed too early, stand in the composer's row.
    for composer in [
        "> ^[[40;1Rr message… (tip: press \\ + Enter to insert a newline)\x1b[1;11H",
        "^[> Type your message… (tip: press \\ + Enter to insert a newline)\x1b[1;5H",
    ] {
        let mut stage = Stage::new("openhands");
        let in_lines = KernelSample { canonical: Some(true), echo: Some(true), ..POLLS };
        stage.run(&[Resize(24, 120), Kernel(in_lines), Paint(composer), Wait(2000)]);
        assert_eq!(stage.detector.state(), TerminalState::Idle, "{composer}");
    }
}

#[test]
fn what_an_agent_showed_last_is_its_failure_also_if_its_prompt_has_scrolled_off() {
    let composer = "> Type your message… (tip: press \\ + Enter to insert a newline)\x1b[1;3H";
    let traceback = "\r\n  raise".repeat(30) + "\r\nx.ConversationRunError: failed:\r\n";
    let last = "litellm.AuthenticationError: AuthenticationError: Incorrect API key provided\r\n";
    let words: &'static str = Box::leak((traceback + last).into_boxed_str());
    let mut stage = Stage::new("openhands");
    stage.run(&[Resize(24, 120), Kernel(POLLS), Paint(composer), Wait(2000)]);
    stage.run(&[Type("do it"), Paint("do it\x1b[K"), Wait(400), Type("\r"), Wait(400), Kernel(SLEEPS)]);
    stage.run(&[Paint(words), Wait(400), End(1)]);
    let told = stage.told();
    assert!(told.contains(r#"Error { line: "litellm.AuthenticationError: "#), "{told}");
    assert!(told.contains("succeeded: Some(false)"), "{told}");
}
