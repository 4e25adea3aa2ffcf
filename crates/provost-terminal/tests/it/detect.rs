//! Scripts of output and input, and the detector's events.

use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use provost_event::{Exit, TerminalEvent, WindowSize};
use provost_terminal::{Detected, Detector, KernelSample, Profile, Reports};

/// The next event of a script.
#[derive(Debug, Clone)]
pub(crate) enum Do {
    /// The program writes this.
    Paint(&'static str),
    /// This is typed.
    Type(&'static str),
    /// The kernel samples from here on.
    Kernel(KernelSample),
    /// This many milliseconds pass.
    Wait(u64),
    Resize(u16, u16),
    Exit(i32),
}

use Do::{Exit as End, Kernel, Paint, Resize, Type, Wait};

pub(crate) const READS: KernelSample = KernelSample {
    echo: Some(true),
    canonical: Some(true),
    reads_terminal: Some(true),
    polls: Some(false),
    is_busy: Some(false),
    foreground: Some(1),
    tool_started: None,
    awaits_answer: None,
    model_calls: None,
};
pub(crate) const READS_SECRET: KernelSample = KernelSample { echo: Some(false), ..READS };
pub(crate) const READS_KEY: KernelSample = KernelSample { canonical: Some(false), ..READS_SECRET };
pub(crate) const POLLS: KernelSample =
    KernelSample { reads_terminal: Some(false), polls: Some(true), ..READS_KEY };
pub(crate) const SLEEPS: KernelSample = KernelSample { reads_terminal: Some(false), ..READS };
pub(crate) const COMPUTES: KernelSample = KernelSample { is_busy: Some(true), ..SLEEPS };

/// Runs a script like a supervisor: ticks and samples when the detector requests them.
pub(crate) struct Stage {
    pub(crate) detector: Detector,
    now: Duration,
    kernel: Option<KernelSample>,
}

impl Stage {
    pub(crate) fn new(profile: &str) -> Self {
        let profile = Arc::new(Profile::named(profile).expect("a shipped profile"));
        Self { detector: Detector::new(profile, WindowSize::new(16, 60)), now: Duration::ZERO, kernel: None }
    }

    pub(crate) fn run(&mut self, script: &[Do]) {
        for step in script {
            match step {
                Paint(text) => self.detector.output(self.now, text.as_bytes()),
                Type(text) => self.detector.input(self.now, text.as_bytes()),
                Kernel(sample) => self.kernel = Some(*sample),
                Wait(millis) => self.pass(self.now + Duration::from_millis(*millis)),
                Resize(rows, cols) => self.detector.resize(self.now, WindowSize::new(*rows, *cols)),
                End(code) => self.detector.exited(self.now, Exit::Code(*code)),
            }
        }
    }

    fn pass(&mut self, until: Duration) {
        loop {
            let wish = self.detector.next_sample().filter(|_| self.kernel.is_some());
            let tick = self.detector.next_tick();
            let Some(at) = [wish, tick].into_iter().flatten().min().filter(|at| *at <= until) else { break };
            if wish == Some(at) {
                self.detector.kernel(at, self.kernel.unwrap_or_default());
            } else {
                self.detector.tick(at);
            }
        }
        self.now = until;
    }

    pub(crate) fn told(&mut self) -> String {
        self.detector.take().iter().map(|detected| told(detected) + "\n").collect()
    }
}

fn told(detected: &Detected) -> String {
    let what = match &detected.noted.event {
        TerminalEvent::State(state) => format!("state {state:?}"),
        TerminalEvent::ApprovalRequest(ask) => {
            let keys: Vec<String> = ask.options.iter().map(|o| format!("{}={:?}", o.label, o.keys)).collect();
            let default = ask.default.map_or(String::new(), |at| format!(" default {at}"));
            format!("asks {:?} {:?} [{}]{default}", ask.question, ask.subject, keys.join(", "))
        }
        other => format!("{other:?}"),
    };
    format!("{} ms, {}: {what}", detected.at.as_millis(), detected.noted.confidence)
}

fn check(profile: &str, script: &[Do], expected: Expect) {
    let mut stage = Stage::new(profile);
    stage.run(script);
    expected.assert_eq(&stage.told());
}

#[test]
fn an_unterminated_question_is_seen_as_soon_as_it_is_settled() {
    check(
        "generic",
        &[
            Kernel(READS),
            Paint("Preparing.\r\nContinue? [y/N] "),
            Wait(1000),
            Type("y"),
            Wait(200),
            Type("\r"),
            Wait(10),
        ],
        expect![[r#"
            60 ms, 92: state Blocked(Approval)
            60 ms, 92: asks "Continue? [y/N]" None [y="y\r", N="n\r"] default 1
            1200 ms, 90: state Working
        "#]],
    );
}

#[test]
fn a_prompt_in_a_log_is_none_while_nothing_reads() {
    check(
        "generic",
        &[
            Kernel(SLEEPS),
            Paint("Do you want to continue? [Y/n] "),
            Wait(3000),
            Kernel(COMPUTES),
            Paint("\r\nPassword: "),
            Wait(6000),
            End(0),
        ],
        expect![[r#"
            60 ms, 70: state Working
            9000 ms, 100: state Exited
            9000 ms, 100: Completion { scope: Process, succeeded: Some(true) }
            9000 ms, 100: Exited { exit: Code(0) }
        "#]],
    );
}

#[test]
fn silence_alone_is_nothing() {
    check("generic", &[Paint("Working on it\r\n"), Wait(60_000)], expect![[r#""#]]);
    check("codex", &[Paint("Working on it\r\n"), Wait(60_000)], expect![[r#""#]]);
}

#[test]
fn the_same_prompt_painted_again_is_one_event_and_asked_again_it_is_another() {
    let prompt = "\r\x1b[2KReally delete? [y/n] ";
    check(
        "generic",
        &[
            Kernel(READS),
            Paint(prompt),
            Wait(500),
            Paint(prompt),
            Wait(500),
            Type("x\r"),
            Paint("x\r\n"),
            Paint(prompt),
            Wait(500),
        ],
        expect![[r#"
            60 ms, 92: state Blocked(Approval)
            60 ms, 92: asks "Really delete? [y/n]" None [y="y\r", n="n\r"]
            1000 ms, 90: state Working
            1060 ms, 92: state Blocked(Approval)
            1060 ms, 92: asks "Really delete? [y/n]" None [y="y\r", n="n\r"]
        "#]],
    );
}

#[test]
fn a_secret_is_told_by_the_kernel_whatever_the_words() {
    check(
        "generic",
        &[
            Kernel(READS_SECRET),
            Paint("Geheimnis bitte: "),
            Wait(500),
            Type("x\r"),
            Kernel(SLEEPS),
            Paint("\r\n"),
            Wait(300),
        ],
        expect![[r#"
            60 ms, 95: state Password
            60 ms, 95: PasswordPrompt { prompt: "Geheimnis bitte:" }
            500 ms, 90: state Working
            560 ms, 70: state Working
        "#]],
    );
}

#[test]
fn letters_typed_at_a_prompt_are_no_new_prompt_whatever_they_say() {
    check(
        "generic",
        &[
            Kernel(POLLS),
            Paint("$ "),
            Wait(300),
            Type("e"),
            Paint("echo Continue? [y/N]"),
            Wait(800),
            Type("\r"),
            Kernel(SLEEPS),
            Paint("\r\nContinue? [y/N]\r\n"),
            Wait(200),
            Kernel(POLLS),
            Paint("$ "),
            Wait(300),
        ],
        expect![[r#"
            60 ms, 85: state WaitingForInput
            60 ms, 85: WaitingForInput { prompt: "$" }
            1100 ms, 90: state Working
            1160 ms, 70: state Working
            1360 ms, 85: state WaitingForInput
            1360 ms, 85: WaitingForInput { prompt: "$" }
        "#]],
    );
}

#[test]
fn reports_in_a_printed_file_are_not_believed() {
    let script = [
        Kernel(POLLS),
        Paint("$ "),
        Wait(300),
        Type("cat notes\r"),
        Kernel(SLEEPS),
        Paint("cat notes\r\n"),
        Wait(100),
        Paint("\x1b]7501;state=blocked:app=codex\x07\x1b]0;Action Required\x07"),
        Wait(1000),
        Kernel(POLLS),
        Paint("$ "),
        Wait(2000),
    ];
    check(
        "generic",
        &script,
        expect![[r#"
            60 ms, 85: state WaitingForInput
            60 ms, 85: WaitingForInput { prompt: "$" }
            300 ms, 90: state Working
            360 ms, 70: state Working
            1460 ms, 85: state WaitingForInput
            1460 ms, 85: WaitingForInput { prompt: "$" }
        "#]],
    );
    check(
        "codex",
        &script,
        expect![[r#"
            300 ms, 90: state Working
            2900 ms, 50: state Unknown
        "#]],
    );
}

#[test]
fn a_failure_shows_at_the_next_prompt_and_once() {
    check(
        "generic",
        &[
            Kernel(POLLS),
            Paint("$ "),
            Wait(300),
            Type("nosuch\r"),
            Paint("nosuch\r\nbash: nosuch: command not found\r\n$ "),
            Wait(300),
            Type("true\r"),
            Paint("true\r\n$ "),
            Wait(300),
            Type("exit 3\r"),
            Wait(10),
            End(3),
        ],
        expect![[r#"
            60 ms, 85: state WaitingForInput
            60 ms, 85: WaitingForInput { prompt: "$" }
            300 ms, 90: state Working
            360 ms, 90: Error { line: "bash: nosuch: command not found" }
            360 ms, 85: state WaitingForInput
            360 ms, 85: WaitingForInput { prompt: "$" }
            600 ms, 90: state Working
            660 ms, 85: state WaitingForInput
            660 ms, 85: WaitingForInput { prompt: "$" }
            900 ms, 90: state Working
            910 ms, 100: state Exited
            910 ms, 100: Completion { scope: Process, succeeded: Some(false) }
            910 ms, 100: Exited { exit: Code(3) }
        "#]],
    );
}

#[test]
fn a_message_over_a_prompt_leaves_it_standing() {
    check(
        "generic",
        &[Kernel(READS), Paint("Really quit? [y/n] "), Wait(500), Paint("\r\nlate news\r\n"), Wait(1500)],
        expect![[r#"
            60 ms, 92: state Blocked(Approval)
            60 ms, 92: asks "Really quit? [y/n]" None [y="y\r", n="n\r"]
        "#]],
    );
}

#[test]
fn a_pager_waits_again_after_each_page() {
    check(
        "generic",
        &[
            Kernel(READS_KEY),
            Paint("\x1b[?1049h\x1b[2J\x1b[Hpage one\x1b[16;1H:"),
            Wait(300),
            Type(" "),
            Paint("\x1b[2J\x1b[Hpage two\x1b[16;1H:"),
            Wait(300),
        ],
        expect![[r#"
            60 ms, 92: state WaitingForInput
            60 ms, 92: WaitingForInput { prompt: ":" }
            300 ms, 90: state Working
            360 ms, 92: state WaitingForInput
            360 ms, 92: WaitingForInput { prompt: ":" }
        "#]],
    );
}

#[test]
fn buttons_on_a_full_screen_ask_and_a_gauge_does_not() {
    let dialog = "\x1b[?1049h\x1b[2J\x1b[5;5H│ Restart services? │\x1b[7;5H│  <Yes>   <No>  │\x1b[8;5H└─────┘\x1b[7;17H";
    let gauge = "\x1b[?1049h\x1b[2J\x1b[?25l\x1b[5;5H│ Copying │\x1b[7;5H│ 70%  │\x1b[8;5H└─────┘";
    check(
        "generic",
        &[Kernel(POLLS), Paint(dialog), Wait(1000)],
        expect![[r#"
            60 ms, 80: state Blocked(Approval)
            60 ms, 80: asks "Restart services?" None [Yes="\t\r", No="\r"] default 1
        "#]],
    );
    check(
        "generic",
        &[Kernel(SLEEPS), Paint(gauge), Wait(3000)],
        expect![[r#"
            60 ms, 70: state Working
        "#]],
    );
}

const COMPOSER: &str = "\x1b[15;1H\x1b[K› Ask Codex to do anything\x1b[16;1H\x1b[K  mock · /work\x1b[15;3H";
const WORKING: &str = "\x1b[13;1H\x1b[K• Working (3s • esc to interrupt)\x1b[15;3H";
const DONE: &str = "\x1b[13;1H\x1b[K• Done.\x1b[15;3H";
const ASKS: &str = "\x1b[2J\x1b[5;1H  Would you like to run the following command?\x1b[7;1H  $ touch a\x1b[9;1H› 1. Yes, proceed (y)\
    \x1b[10;1H  2. Yes, and don't ask again (p)\x1b[11;1H  3. No, and tell Codex what to do differently (esc)\
    \x1b[13;1H  Press enter to confirm or esc to cancel\x1b[13;41H";

#[test]
fn an_agents_turn_runs_from_its_prompt_over_a_question_to_its_ready_composer() {
    check(
        "codex",
        &[
            Kernel(POLLS),
            Paint(COMPOSER),
            Wait(1500),
            Type("do it"),
            Wait(300),
            Type("\r"),
            Paint(WORKING),
            Wait(500),
            Paint(ASKS),
            Wait(500),
            Type("y"),
            Paint("\x1b[2J"),
            Paint(COMPOSER),
            Paint(WORKING),
            Wait(500),
            Paint(DONE),
            Wait(500),
        ],
        expect![[r#"
            1000 ms, 85: state Idle
            1000 ms, 85: Idle
            1800 ms, 90: state Working
            1860 ms, 90: state Working
            2360 ms, 94: state Blocked(Approval)
            2360 ms, 94: asks "Would you like to run the following command?" Some("touch a") [Yes, proceed="y", Yes, and don't ask again="p", No, and tell Codex what to do differently="\u{1b}"] default 0
            2800 ms, 90: state Working
            2860 ms, 90: state Working
        "#]],
    );
}

#[test]
fn a_quoted_question_above_the_composer_is_none() {
    check(
        "codex",
        &[Kernel(POLLS), Paint(ASKS), Paint(COMPOSER), Wait(2500)],
        expect![[r#"
            1000 ms, 85: state Idle
            1000 ms, 85: Idle
        "#]],
    );
}

#[test]
fn an_answered_question_that_stays_for_a_moment_is_not_asked_again() {
    check(
        "codex",
        &[
            Kernel(POLLS),
            Paint(ASKS),
            Wait(300),
            Type("y"),
            Paint("\x1b[5;1H"),
            Wait(700),
            Paint("\x1b[2J"),
            Paint(COMPOSER),
            Paint(WORKING),
            Wait(300),
        ],
        expect![[r#"
            60 ms, 94: state Blocked(Approval)
            60 ms, 94: asks "Would you like to run the following command?" Some("touch a") [Yes, proceed="y", Yes, and don't ask again="p", No, and tell Codex what to do differently="\u{1b}"] default 0
            300 ms, 90: state Working
            1060 ms, 90: state Working
        "#]],
    );
}

#[test]
fn the_same_question_after_it_had_gone_is_another() {
    check(
        "codex",
        &[
            Kernel(POLLS),
            Paint(ASKS),
            Wait(300),
            Type("y"),
            Paint("\x1b[2J"),
            Paint(COMPOSER),
            Paint(WORKING),
            Wait(300),
            Paint(ASKS),
            Wait(300),
        ],
        expect![[r#"
            60 ms, 94: state Blocked(Approval)
            60 ms, 94: asks "Would you like to run the following command?" Some("touch a") [Yes, proceed="y", Yes, and don't ask again="p", No, and tell Codex what to do differently="\u{1b}"] default 0
            300 ms, 90: state Working
            360 ms, 90: state Working
            660 ms, 94: state Blocked(Approval)
            660 ms, 94: asks "Would you like to run the following command?" Some("touch a") [Yes, proceed="y", Yes, and don't ask again="p", No, and tell Codex what to do differently="\u{1b}"] default 0
        "#]],
    );
}

#[test]
fn what_a_resize_cut_off_above_does_not_count() {
    check(
        "codex",
        &[
            Kernel(POLLS),
            Paint(ASKS),
            Wait(300),
            Resize(16, 40),
            Paint("\x1b[2J\x1b[1;1H› 1. Yes, proceed (y)\x1b[2;1H  2. Yes, and don't\x1b[13;1H• Ran touch a"),
            Paint(COMPOSER),
            Wait(2500),
        ],
        expect![[r#"
            60 ms, 94: state Blocked(Approval)
            60 ms, 94: asks "Would you like to run the following command?" Some("touch a") [Yes, proceed="y", Yes, and don't ask again="p", No, and tell Codex what to do differently="\u{1b}"] default 0
            1300 ms, 85: state Idle
            1300 ms, 85: Idle
        "#]],
    );
}

#[test]
fn a_frame_that_is_still_being_painted_is_not_looked_at() {
    check(
        "codex",
        &[
            Kernel(POLLS),
            Paint("\x1b[?2026h"),
            Paint(ASKS),
            Wait(150),
            Paint("\x1b[2J"),
            Paint(COMPOSER),
            Paint("\x1b[?2026l"),
            Wait(1500),
        ],
        expect![[r#"
            1150 ms, 85: state Idle
            1150 ms, 85: Idle
        "#]],
    );
}

#[test]
fn its_own_report_of_being_blocked_counts_unless_the_composer_is_ready() {
    let unknown = "\x1b[2JSomething quite new\r\nA or B";
    check(
        "codex",
        &[Kernel(POLLS), Paint(unknown), Paint("\x1b]7501;state=blocked:app=codex\x07"), Wait(1000)],
        expect![[r#"
            800 ms, 70: state Blocked(Approval)
            800 ms, 70: asks "A or B" None []
        "#]],
    );
    check(
        "codex",
        &[Kernel(POLLS), Paint(COMPOSER), Paint("\x1b]7501;state=blocked:app=codex\x07"), Wait(2000)],
        expect![[r#"
            1000 ms, 85: state Idle
            1000 ms, 85: Idle
        "#]],
    );
}

#[test]
fn a_screen_that_fits_no_rule_is_unknown_and_never_idle() {
    check(
        "codex",
        &[
            Kernel(POLLS),
            Paint(COMPOSER),
            Wait(1500),
            Type("x\r"),
            Paint("\x1b[2JA dialog of next year's version"),
            Wait(10_000),
        ],
        expect![[r#"
            1000 ms, 85: state Idle
            1000 ms, 85: Idle
            1500 ms, 90: state Working
            7500 ms, 50: state Unknown
        "#]],
    );
}

#[test]
fn a_working_mark_that_shows_no_life_is_stalled() {
    check(
        "codex",
        &[Kernel(POLLS), Paint(COMPOSER), Paint(WORKING), Wait(200_000)],
        expect![[r#"
            60 ms, 90: state Working
            120000 ms, 60: state Stalled
        "#]],
    );
}

#[test]
fn a_program_that_reads_single_keys_is_answered_without_a_return() {
    check(
        "generic",
        &[Kernel(READS_KEY), Paint("Stage this hunk [y,n,q,a,d,e,?]? "), Wait(300)],
        expect![[r#"
            60 ms, 92: state Blocked(Approval)
            60 ms, 92: asks "Stage this hunk [y,n,q,a,d,e,?]?" None [y="y", n="n", q="q", a="a", d="d", e="e", ?="?"]
        "#]],
    );
}

#[test]
fn buttons_without_the_cursor_on_one_name_no_keys() {
    check(
        "generic",
        &[Kernel(POLLS), Paint("\x1b[?1049h\x1b[5;5HGo on?\x1b[7;5H<Yes>   <No>\x1b[1;1H"), Wait(300)],
        expect![[r#"
            60 ms, 80: state Blocked(Approval)
            60 ms, 80: asks "Go on?" None []
        "#]],
    );
}

#[test]
fn a_refused_question_may_end_the_turn_without_any_work() {
    check(
        "codex",
        &[
            Kernel(POLLS),
            Paint(COMPOSER),
            Wait(1500),
            Type("do it"),
            Type("\r"),
            Paint(WORKING),
            Wait(300),
            Paint(ASKS),
            Wait(300),
            Type("\x1b"),
            Paint("\x1b[2J"),
            Paint(COMPOSER),
            Wait(1500),
        ],
        expect![[r#"
            1000 ms, 85: state Idle
            1000 ms, 85: Idle
            1500 ms, 90: state Working
            1560 ms, 90: state Working
            1860 ms, 94: state Blocked(Approval)
            1860 ms, 94: asks "Would you like to run the following command?" Some("touch a") [Yes, proceed="y", Yes, and don't ask again="p", No, and tell Codex what to do differently="\u{1b}"] default 0
            2100 ms, 90: state Working
            2900 ms, 85: state Idle
            2900 ms, 85: Completion { scope: Turn, succeeded: None }
            2900 ms, 85: Idle
        "#]],
    );
}

#[test]
fn a_composer_right_after_a_prompt_is_not_ready_until_work_was_seen() {
    check(
        "codex",
        &[
            Kernel(POLLS),
            Paint(COMPOSER),
            Wait(1500),
            Type("do it"),
            Type("\r"),
            Paint("\x1b[3;1H› do it\x1b[15;3H"),
            Wait(4000),
            Paint(WORKING),
            Wait(300),
            Paint(DONE),
            Wait(1500),
        ],
        expect![[r#"
            1000 ms, 85: state Idle
            1000 ms, 85: Idle
            1500 ms, 90: state Working
            5560 ms, 90: state Working
            6600 ms, 85: state Idle
            6600 ms, 85: Completion { scope: Turn, succeeded: None }
            6600 ms, 85: Idle
        "#]],
    );
}

#[test]
fn words_that_a_loaded_machine_shows_late_do_not_make_a_blank_line_a_prompt() {
    check(
        "generic",
        &[Kernel(READS_SECRET), Wait(300), Paint("Enter passphrase: "), Wait(300)],
        expect![[r#"
            360 ms, 99: state Password
            360 ms, 99: PasswordPrompt { prompt: "Enter passphrase:" }
        "#]],
    );
}

#[test]
fn what_passes_another_programs_screen_on_does_not_wait_by_itself() {
    let bar = "\x1b[?1049h\x1b[1;1H$ sleep 9\x1b[16;1H[0] 0:bash*      \"host\" 12:00\x1b[2;1H";
    check("generic", &[Kernel(POLLS), Paint(bar), Wait(5000)], expect![[r#""#]]);
    check("generic", &[Kernel(POLLS), Paint("Linking...\r\n"), Wait(5000)], expect![[r#""#]]);
}

#[test]
fn without_a_word_of_the_kernel_only_plain_prompts_count_and_later() {
    check(
        "generic",
        &[Paint("Go on? [y/N] "), Wait(1000)],
        expect![[r#"
            400 ms, 67: state Blocked(Approval)
            400 ms, 67: asks "Go on? [y/N]" None [y="y\r", N="n\r"] default 1
        "#]],
    );
    check("generic", &[Paint("Linking objects:"), Wait(5000)], expect![[r#""#]]);
}

#[test]
fn a_question_painted_for_another_size_of_the_window_is_the_same_one() {
    let narrow = "\x1b[2J\x1b[2;1H  Would you like to run the\x1b[3;1H  following command?\x1b[5;1H  $ touch a\x1b[7;1H\
        › 1. Yes, proceed (y)\x1b[8;1H  2. Yes, and don't\x1b[9;1H     ask again (p)\x1b[10;1H  3. No, and tell Codex\
        \x1b[11;1H     what to do (esc)\x1b[13;1H  Press enter to confirm\x1b[13;25H";
    let mut stage = Stage::new("codex");
    stage.run(&[Kernel(POLLS), Paint(ASKS), Wait(300)]);
    let fingerprint = stage.detector.ask().expect("it asks").fingerprint.clone();
    stage.run(&[Resize(16, 32), Paint(narrow), Wait(1000)]);
    assert_eq!(stage.detector.ask().expect("it still asks").fingerprint, fingerprint);
    assert_eq!(stage.told().matches("asks").count(), 1);
}

#[test]
fn fingerprints_differ_for_the_same_words_asked_twice_and_the_question_is_gone_once_answered() {
    let mut stage = Stage::new("generic");
    stage.run(&[Kernel(READS), Paint("Delete? [y/n] "), Wait(300)]);
    let first = stage.detector.ask().expect("it asks").fingerprint.clone();
    stage.run(&[Type("n\r")]);
    assert_eq!(stage.detector.ask(), None);
    stage.run(&[Paint("n\r\nDelete? [y/n] "), Wait(300)]);
    let second = stage.detector.ask().expect("it asks again").fingerprint.clone();
    assert_ne!(first, second);
}

#[test]
fn samples_are_asked_for_soon_after_output_and_ever_more_seldom_after() {
    let mut stage = Stage::new("generic");
    stage.run(&[Kernel(READS), Paint("Name: "), Wait(100)]);
    let now = Duration::from_millis(100);
    assert!(stage.detector.next_sample().expect("a sample") < now + Duration::from_millis(200));
    stage.run(&[Wait(60_000)]);
    let now = Duration::from_millis(60_100);
    assert!(stage.detector.next_sample().expect("a sample") > now + Duration::from_secs(1));
}

#[test]
fn what_a_program_says_of_itself_can_be_left_out() {
    let profile = Arc::new(Profile::named("codex").expect("shipped"));
    let mut detector = Detector::new(profile, WindowSize::new(16, 60)).with_reports(Reports::Ignored);
    detector.output(Duration::ZERO, b"\x1b]9;look here\x07\x1b]7501;state=error:app=x\x07");
    assert_eq!(detector.take(), Vec::new());
}
