//! A composer that is there is no end of a turn by itself, and an agent's own failure is one.

use std::time::Duration;

use provost_event::{CompletionScope, TerminalEvent, TerminalState};
use provost_terminal::KernelSample;

use super::detect::{
    Do::{self, Exit, Kernel, Paint, Type, Wait},
    POLLS, READS_KEY, SLEEPS, Stage,
};

const GEMINI_IDLE: &str = "\x1b[2J\x1b[H > do it\r\n✦ Hello.\r\n────────────────────────────────────────\r\n \
    >   Type your message or @path/to/file\r\n ~/work   no sandbox   gemini-2.5-flash\x1b[4;5H";
const GEMINI_WAITS: &str = "\x1b[2J\x1b[H > do it\r\n╭──────────────────────────────────╮\r\n│ ⊷  Shell sleep 45   (Tab to focus) │\r\n\
    ╰──────────────────────────────────╯\r\n ! Shell awaiting input (Tab to focus)\r\n────────────────────────────────────────\r\n \
    >   Type your message or @path/to/file\r\n ~/work   no sandbox   gemini-2.5-flash\x1b[7;5H";
const GEMINI_WORKS: &str = "\x1b[2J\x1b[H > do it\r\n ⠧ Thinking... (esc to cancel, 3s)\r\n────────────────────────────────────────\r\n \
    >   Type your message or @path/to/file\r\n ~/work   no sandbox   gemini-2.5-flash\x1b[4;5H";

const CODEX_IDLE: &str =
    "\x1b[2J\x1b[1;1H› do it\x1b[15;1H› Ask Codex to do anything\x1b[16;1H  mock · /work\x1b[15;3H";
const CODEX_WORKS: &str = "\x1b[13;1H\x1b[K• Working (3s • esc to interrupt)\x1b[15;3H";
const CODEX_DONE: &str = "\x1b[13;1H\x1b[K\x1b[3;1H• Done.\x1b[15;3H";

const SAYS_IDLE: &str = "\x1b]7501;state=idle:app=codex\x07";

const WITH_TOOL: KernelSample = KernelSample { tool_started: Some(Duration::from_millis(2_300)), ..POLLS };
const WITH_OLD_TOOL: KernelSample = KernelSample { tool_started: Some(Duration::from_millis(400)), ..POLLS };
const AWAITS: KernelSample = KernelSample { awaits_answer: Some(true), ..POLLS };
const AWAITS_NOT: KernelSample = KernelSample { awaits_answer: Some(false), ..POLLS };

const OPENCODE_IDLE: &str = "\x1b[2J\x1b[H┃\r\n┃\r\n┃  Build · Scripted\r\n╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀\x1b[2;4H";

/// Whether the turn completed, and its success, with the state at the end.
fn completion(profile: &str, script: &[Do]) -> (Option<Option<bool>>, TerminalState) {
    let mut stage = Stage::new(profile);
    stage.run(script);
    let state = stage.detector.state();
    let events = stage.detector.take();
    let mut of_turn = events.iter().rev().filter_map(|detected| match detected.noted.event {
        TerminalEvent::Completion { scope: CompletionScope::Turn, succeeded } => Some(succeeded),
        _ => None,
    });
    (of_turn.next(), state)
}

/// A turn of Codex: what follows once its working mark is gone.
fn codex(rest: &[Do]) -> (Option<Option<bool>>, TerminalState) {
    let begin = [
        Kernel(POLLS),
        Paint(CODEX_IDLE),
        Wait(2000),
        Type("do it"),
        Wait(100),
        Type("\r"),
        Paint(CODEX_WORKS),
        Wait(1000),
    ];
    completion("codex", &[begin.as_slice(), rest].concat())
}

#[test]
fn a_command_that_is_silent_for_long_is_no_end_of_a_turn_though_its_mark_has_changed() {
    let begin = [
        Kernel(POLLS),
        Paint(GEMINI_IDLE),
        Wait(2000),
        Type("do it"),
        Type("\r"),
        Paint(GEMINI_WORKS),
        Wait(1000),
        Paint(GEMINI_WAITS),
        Wait(20_000),
    ];
    assert_eq!(completion("gemini", &begin), (None, TerminalState::Working));
    let end = [begin.as_slice(), &[Paint(GEMINI_IDLE), Wait(3000)]].concat();
    assert_eq!(completion("gemini", &end), (Some(None), TerminalState::Idle));
}

#[test]
fn a_bar_in_line_mode_is_work_and_so_is_line_mode_without_one() {
    let composer = "\x1b[2J\x1b[HAider v0.86.2\r\n────────────\r\ndiff> ";
    let bar = "\r\n  ░█       Waiting for openai/scripted\x1b[?25l";
    let begin =
        [Kernel(POLLS), Paint(composer), Wait(2000), Type("think"), Paint("think"), Wait(100), Type("\r")];
    let thinks = [begin.as_slice(), &[Kernel(SLEEPS), Paint(bar), Wait(25_000)]].concat();
    assert_eq!(completion("aider", &thinks), (None, TerminalState::Working));
    let writes = [begin.as_slice(), &[Kernel(SLEEPS), Paint("\r\nI would"), Wait(25_000)]].concat();
    assert_eq!(completion("aider", &writes), (None, TerminalState::Working));
    let answer = "\r\nThought.\r\nTokens: 2.3k sent, 4 received.\r\n────────────\x1b[?25h\r\ndiff> ";
    let ends = [writes.as_slice(), &[Kernel(POLLS), Paint(answer), Wait(2000)]].concat();
    assert_eq!(completion("aider", &ends), (Some(None), TerminalState::Idle));
}

#[test]
fn a_turn_goes_on_while_a_tool_that_it_started_runs() {
    let runs = [Kernel(WITH_TOOL), Paint(CODEX_DONE), Wait(30_000)];
    assert_eq!(codex(&runs), (None, TerminalState::Working));
    let ends = [runs.as_slice(), &[Kernel(POLLS), Wait(6000)]].concat();
    assert_eq!(codex(&ends), (Some(None), TerminalState::Idle));
}

#[test]
fn what_ran_before_the_prompt_and_a_program_that_says_it_is_idle_end_the_turn() {
    assert_eq!(codex(&[Kernel(WITH_OLD_TOOL), Paint(CODEX_DONE), Wait(3000)]).0, Some(None));
    let says = [Kernel(AWAITS), Paint(CODEX_DONE), Paint(SAYS_IDLE), Wait(3000)];
    assert_eq!(codex(&says).0, Some(None));
}

#[test]
fn a_program_that_says_it_is_idle_isn_t_done_while_its_background_terminal_runs() {
    let says = [Kernel(WITH_TOOL), Paint(CODEX_DONE), Paint(SAYS_IDLE), Wait(30_000)];
    assert_eq!(codex(&says), (None, TerminalState::Working));
    let ends = [says.as_slice(), &[Kernel(POLLS), Wait(6000)]].concat();
    assert_eq!(codex(&ends), (Some(None), TerminalState::Idle));
}

#[test]
fn a_prompt_that_is_still_in_the_composer_is_not_worked_on() {
    let script = [
        Kernel(POLLS),
        Paint(OPENCODE_IDLE),
        Wait(3000),
        Type("do the work"),
        Paint("do the work"),
        Wait(400),
        Type("\r"),
        Kernel(AWAITS),
        Wait(700),
        Kernel(AWAITS_NOT),
        Wait(2500),
    ];
    assert_eq!(completion("opencode", &script).0, None);
}

#[test]
fn a_prompt_for_which_no_model_was_called_is_no_work_that_was_done() {
    let called = |calls| Kernel(KernelSample { model_calls: Some(calls), ..POLLS });
    // The session of its start, with the prompt's echo and no mark of work.
    let taken = "\x1b[2J\x1b[H┃\r\n┃  do the work\r\n┃\r\n\r\n┃\r\n┃\r\n┃  Build · Scripted\r\n╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀\x1b[6;4H";
    let tool = KernelSample { tool_started: Some(Duration::from_secs(60)), model_calls: Some(2), ..POLLS };
    let told = [
        called(2),
        Paint(OPENCODE_IDLE),
        Wait(3000),
        Type("do the work"),
        Paint("do the work"),
        Wait(400),
        Type("\r"),
        Paint(taken),
        // What it starts for its own sake is no work on the prompt.
        Kernel(tool),
        Wait(500),
        called(2),
    ];
    let ends = |rest: &[Do]| completion("opencode", &[told.as_slice(), rest].concat()).0;
    assert_eq!(ends(&[Wait(15_000)]), None, "its first call may come late");
    assert_eq!(ends(&[Wait(15_000), called(3), Wait(4000)]), Some(None));
    assert_eq!(ends(&[Wait(30_000)]), Some(Some(false)));
    let mut stage = Stage::new("opencode");
    stage.run(&[told.as_slice(), &[Wait(30_000)]].concat());
    assert!(stage.told().contains("it has called no model"), "{}", stage.told());
}

#[test]
fn a_turn_goes_on_while_a_request_has_no_answer() {
    assert_eq!(codex(&[Kernel(AWAITS), Paint(CODEX_DONE), Wait(30_000)]), (None, TerminalState::Working));
    assert_eq!(codex(&[Kernel(AWAITS_NOT), Paint(CODEX_DONE), Wait(3000)]).0, Some(None));
}

#[test]
fn an_error_of_the_program_is_the_failure_of_its_turn_unless_it_went_on() {
    let failed = "\x1b[13;1H\x1b[K\x1b[3;1H■ unexpected status 401 Unauthorized\x1b[15;3H";
    assert_eq!(codex(&[Paint(failed), Wait(3000)]), (Some(Some(false)), TerminalState::Idle));
    let went_on = "\x1b[13;1H\x1b[K\x1b[3;1H■ stream disconnected\x1b[4;1H• Done all the same.\x1b[15;3H";
    assert_eq!(codex(&[Paint(went_on), Wait(3000)]).0, Some(None));
    let claims = [Paint("\x1b]7501;state=error:app=codex\x07"), Paint(CODEX_DONE), Wait(12_000)];
    assert_eq!(codex(&claims).0, Some(Some(false)));
    let mut stage = Stage::new("codex");
    stage.run(&[Paint("\x1b]7501;state=error:app=x:msg=SW52YWxpZCBrZXk=\x07"), Wait(100)]);
    assert!(stage.told().contains("Error { line: \"Invalid key\" }"), "{}", stage.told());
}

#[test]
fn each_agents_error_box_is_a_failure() {
    let rule = "────────────────────────────────────────";
    let gemini = "✕ [API Error: {\"error\":{\"message\":\"Incorrect API key\",\"code\":401}}]\r\nℹ This request failed.";
    let qwen = "  ✕ [API Error: 401 Incorrect API key provided] (Press Ctrl+Y to retry)";
    let copilot =
        " ● Request failed due to a transient API error. Retrying...\r\n ✗ Authentication failed (HTTP 401).";
    let cases = [
        ("gemini", ">   Type your message", " > do it", gemini),
        ("qwen", ">   Type your message", " > do it", qwen),
        ("copilot", "❯ ", " ❯ do it                          10:31", copilot),
    ];
    for (profile, composer, echo, error) in cases {
        let composer = format!("{rule}\r\n{composer}\r\n{rule}\r\n ~/work\x1b[A\x1b[A\r\x1b[3C");
        let idle: &'static str = Box::leak(format!("\x1b[2J\x1b[H{composer}").into_boxed_str());
        let works: &'static str = Box::leak(
            format!("\x1b[2J\x1b[H{echo}\r\n⠧ Thinking (esc to cancel, 3s)\r\n{composer}").into_boxed_str(),
        );
        let fails: &'static str =
            Box::leak(format!("\x1b[2J\x1b[H{echo}\r\n{error}\r\n{composer}").into_boxed_str());
        let script = [
            Kernel(POLLS),
            Paint(idle),
            Wait(2000),
            Type("do it"),
            Type("\r"),
            Paint(works),
            Wait(1000),
            Paint(fails),
            Wait(3000),
        ];
        assert_eq!(completion(profile, &script).0, Some(Some(false)), "{profile}");
        let mut stage = Stage::new(profile);
        stage.run(&script);
        let told = stage.told();
        assert!(!told.contains("Retrying"), "what is tried again is no failure yet: {told}");
    }
}

#[test]
fn a_frame_of_copilots_spinner_that_looks_like_a_message_is_work() {
    let rule = "────────────────────────────────────────";
    let screen = |above: &str, footer: &str| -> &'static str {
        let text = format!("\x1b[2J\x1b[H{above}\r\n ~/work\r\n{rule}\r\n❯ \r\n{rule}\r\n {footer}");
        Box::leak(format!("{text}\x1b[A\x1b[A\r\x1b[2C").into_boxed_str())
    };
    let idle = screen("", "Interactive");
    let works = screen(" ❯ do it      10:31", "● Working esc esc edit prompt");
    let script =
        [Kernel(POLLS), Paint(idle), Wait(2000), Type("do it"), Type("\r"), Paint(works), Wait(20_000)];
    assert_eq!(completion("copilot", &script), (None, TerminalState::Working));
}

#[test]
fn an_answer_of_opencode_without_a_time_is_its_failure_in_the_words_above() {
    let composer = "  ┃\r\n  ┃  Build · Scripted\r\n  ╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀\x1b[A\x1b[A\r\x1b[5C";
    let turn = |answer: &str| -> Vec<Do> {
        let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        let works = format!("\x1b[2J\x1b[H  ┃  do it\r\n{composer}\x1b[15;1H ■⬝⬝⬝⬝⬝⬝⬝  esc interrupt");
        vec![
            Kernel(POLLS),
            Paint(leak(format!("\x1b[2J\x1b[H{composer}"))),
            Wait(3000),
            Type("do it"),
            Type("\r"),
            Paint(leak(works)),
            Wait(1000),
            Paint(leak(format!("\x1b[2J\x1b[H  ┃  do it\r\n{answer}\r\n{composer}"))),
            Wait(3000),
        ]
    };
    let fails = turn("  ┃\r\n  ┃  Incorrect API key provided\r\n  ┃\r\n     ▣  Build · Scripted");
    assert_eq!(completion("opencode", &fails).0, Some(Some(false)));
    let mut stage = Stage::new("opencode");
    stage.run(&fails);
    assert!(stage.told().contains("Error { line: \"Incorrect API key provided\" }"));
    let answers = turn("     Done.\r\n\r\n     ▣  Build · Scripted · 1.2s");
    assert_eq!(completion("opencode", &answers).0, Some(None));
    // What a person denied isn't the agent's failure.
    let denied = turn("     $ touch forbidden.txt\r\n\r\n     ▣  Build · Scripted");
    assert_eq!(completion("opencode", &denied).0, Some(None));
}

#[test]
fn the_end_of_a_dying_programs_output_is_its_error() {
    for (code, words) in [
        (1, "Error: 401 Incorrect API key provided"),
        (101, "thread 'main' panicked at src/main.rs:4:5:\r\nindex out of bounds"),
        (1, "error[E0382]: borrow of moved value: `x`\r\n --> src/main.rs:5:20"),
        (128, "fatal: not a git repository (or any of the parent directories): .git"),
        (1, "main.c:3:5: error: expected ';' before '}' token"),
        (2, "make: *** [Makefile:2: all] Error 1"),
        (1, "Could not find the configuration of the project"),
        (1, "Traceback (most recent call last):\r\n  File \"a.py\", line 1, in <module>\r\nValueError: bad"),
    ] {
        let mut stage = Stage::new("generic");
        let painted: &'static str = Box::leak(format!("Working on it\r\n{words}\r\n").into_boxed_str());
        stage.run(&[Kernel(SLEEPS), Paint(painted), Wait(50), Exit(code)]);
        let told = stage.told();
        assert_eq!(told.matches("Error {").count(), 1, "{words}: {told}");
    }
    let mut stage = Stage::new("generic");
    stage.run(&[Kernel(SLEEPS), Paint("0 errors, no failures\r\n"), Wait(50), Exit(0)]);
    assert!(!stage.told().contains("Error {"));
}

#[test]
fn errors_of_common_tools_show_at_the_next_prompt_and_other_output_is_none() {
    let at_a_prompt = |line: &str| {
        let mut stage = Stage::new("generic");
        let painted: &'static str = Box::leak(format!("work\r\n{line}\r\n$ ").into_boxed_str());
        stage.run(&[Kernel(READS_KEY), Paint("$ "), Wait(300), Type("work\r"), Paint(painted), Wait(300)]);
        stage.told().contains("Error {")
    };
    for line in [
        "error[E0382]: borrow of moved value: `x`",
        "error: could not compile `a` (bin \"a\") due to 1 previous error",
        "fatal: not a git repository (or any of the parent directories): .git",
        "error: pathspec 'x' did not match any file(s) known to git",
        "main.c:3:5: error: expected ';' before '}' token",
        "Main.java:3: error: ';' expected",
        "src/a.ts(3,5): error TS2304: Cannot find name 'x'.",
        "./main.go:5:2: undefined: x",
        "  3:5  error  'x' is not defined  no-undef",
        "make: *** [Makefile:2: all] Error 1",
        "npm ERR! code ENOENT",
        "Error: Cannot find module './x'",
        "ValueError: invalid literal for int() with base 10: 'x'",
        "E: Unable to locate package x",
        "curl: (6) Could not resolve host: x",
        "ssh: connect to host x port 22: Connection refused",
        "cat: x: No such file or directory",
        "rm: cannot remove 'x': Permission denied",
        "docker: Error response from daemon: pull access denied",
        "Failed to start x.service: Unit x.service not found.",
        "--- FAIL: TestX (0.00s)",
        "test result: FAILED. 1 passed; 1 failed; 0 ignored",
        "FAILED tests/test_x.py::test_y - assert 1 == 2",
        "Segmentation fault (core dumped)",
        "psql: error: connection to server failed",
        "CONFLICT (content): Merge conflict in a.txt",
        "Permission denied, please try again.",
    ] {
        assert!(at_a_prompt(line), "{line}");
    }
    for line in [
        "main.py: done",
        "0 errors, 0 warnings",
        "test result: ok. 3 passed; 0 failed; 0 ignored",
        "no errors found",
        "stdin: hello",
        "http://localhost:8080: started",
        "Compiling error-chain v0.12",
        "warning: unused variable: `x`",
        "PASS src/error.test.js",
        "The error was fixed in version 2.",
        "a.txt: OK",
        "12 tests passed",
    ] {
        assert!(!at_a_prompt(line), "{line}");
    }
}

#[test]
fn an_editors_status_row_shows_its_error_once() {
    let mut stage = Stage::new("generic");
    let open = "\x1b[?1049h\x1b[2J\x1b[Htext\x1b[16;1H\"a.txt\" 1L, 5B\x1b[1;1H";
    let failed = "\x1b[16;1H\x1b[KE492: Not an editor command: foo\x1b[1;1H";
    let script = [Kernel(POLLS), Paint(open), Wait(1000), Type(":foo\r"), Paint(failed), Wait(1000)];
    stage.run(&script);
    let told = stage.told();
    assert_eq!(told.matches("Error {").count(), 1, "{told}");
}
