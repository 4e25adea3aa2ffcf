//! Questions of plain programs in unusual forms, and prompts for secrets that the terminal shows.

use provost_event::{OptionMeaning, TerminalEvent, TerminalState};
use provost_terminal::KernelSample;

use super::detect::{
    Do::{self, Kernel, Paint, Type, Wait},
    READS, READS_KEY, READS_SECRET, SLEEPS, Stage,
};

fn stage(kernel: KernelSample, text: &str) -> Stage {
    let mut stage = Stage::new("generic");
    let text: &'static str = Box::leak(text.replace('\n', "\r\n").into_boxed_str());
    let script: [Do; 3] = [Kernel(kernel), Paint(text), Wait(1500)];
    stage.run(&script);
    stage
}

#[test]
fn consent_is_seen_in_unusual_forms() {
    for (text, keys) in [
        ("Allow this action? (y/n)\n", Some("y\r")),
        ("Delete everything [y/N]\n", Some("y\r")),
        ("Are you sure you want to continue?\n> ", Some("y\r")),
        ("Type YES to continue: ", Some("YES\r")),
        ("Please type 'YES' if you agree: ", Some("YES\r")),
        ("Enter yes to proceed: ", Some("yes\r")),
        ("Type the name of the database to confirm: ", None),
        ("(O)kay/(Q)uit: ", Some("o\r")),
        ("[C]ontinue or [A]bort? ", Some("c\r")),
        ("[A]ccept, [D]ecline: ", Some("a\r")),
    ] {
        let stage = stage(READS, text);
        let ask = stage.detector.ask().unwrap_or_else(|| panic!("no question: {text}"));
        let option = ask.option(OptionMeaning::ApproveOnce).map(|option| option.keys.as_str());
        assert_eq!(option, keys, "{text}: {ask:?}");
    }
}

#[test]
fn a_question_above_a_line_that_was_answered_is_not_asked_again() {
    let mut stage = stage(READS, "Allow this action? (y/n)\n");
    stage.run(&[Type("y\r"), Paint("y\r\n"), Kernel(SLEEPS), Wait(500), Kernel(READS), Wait(4000)]);
    assert!(stage.detector.ask().is_none());
    assert_eq!(stage.told().matches("asks").count(), 1);
}

#[test]
fn a_prompt_after_an_answer_of_one_key_that_is_not_shown_is_seen() {
    let mut stage = stage(READS_KEY, "Overwrite a? [y/n] ");
    stage.run(&[Type("y"), Paint("\r\nOverwrite b? [y/n] "), Wait(1500)]);
    let told = stage.told();
    assert_eq!(told.matches("asks").count(), 2, "{told}");
}

#[test]
fn a_secret_is_asked_for_only_while_the_terminal_shows_nothing() {
    let shown = stage(READS, "Password: ");
    assert_eq!(shown.detector.state(), TerminalState::WaitingForInput);
    assert!(shown.detector.exposes_secret() && !shown.detector.takes_text());
    let hidden = stage(READS_SECRET, "Password: ");
    assert_eq!(hidden.detector.state(), TerminalState::Password);
    assert!(!hidden.detector.exposes_secret());
    let other = stage(READS, "Name: ");
    assert!(!other.detector.exposes_secret() && other.detector.takes_text());
}

#[test]
fn menus_pagers_and_any_key_take_no_text() {
    for text in ["Press any key to continue", "Press Enter to continue...", "1) one\n2) two\n#? "] {
        let mut stage = stage(READS, text);
        assert!(!stage.detector.takes_text(), "{text}");
        let events = stage.detector.take();
        let waits = |event: &TerminalEvent| matches!(event, TerminalEvent::WaitingForInput { .. });
        assert!(events.iter().any(|detected| waits(&detected.noted.event)), "{text}");
    }
}

#[test]
fn the_folder_of_a_question_for_trust_is_its_subject() {
    let mut stage = Stage::new("codex");
    let dialog = "  Folder access\r\n  /tmp/some/work\r\n\r\n  Trust this folder? Codex can read, edit, and run files here.\r\n\r\n\
                  › 1. Trust and continue\r\n  2. Back to Agent Command Center\r\n\r\n  enter continue · esc back";
    stage.run(&[Kernel(super::detect::POLLS), Paint("\x1b[?25l"), Paint(dialog), Wait(1000)]);
    let ask = stage.detector.ask().expect("a question");
    assert_eq!(ask.subject.as_deref(), Some("/tmp/some/work"));
    // Codex 0.171 takes no number here.
    let keys = ask.options.iter().map(|option| option.keys.as_str()).collect::<Vec<_>>();
    assert_eq!(keys, ["\r", "\u{1b}"], "{ask:?}");
}
