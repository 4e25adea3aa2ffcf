//! Names that paint another name over their own, and options that consent to more than the question.

use super::detect::{
    Do::{Kernel, Paint, Wait},
    POLLS, READS, Stage,
};

const MENU: &str = "\n❯ 1. Yes\n  2. Yes, allow all edits during this session (shift+tab)\n  3. No, and tell Claude what to do differently (esc)\n";

/// The subject of a question, after these screens.
fn subject(profile: &str, screens: &[&str]) -> Option<String> {
    let mut stage = Stage::new(profile);
    let kernel = if profile == "generic" { READS } else { POLLS };
    for screen in screens {
        let text: &'static str = Box::leak(screen.replace('\n', "\r\n").into_boxed_str());
        stage.run(&[Kernel(kernel), Paint(text), Wait(900)]);
    }
    stage.detector.ask().unwrap_or_else(|| panic!("no question: {screens:?}")).subject.clone()
}

fn claude(name: &str) -> String {
    format!("\x1b[?25l ✻ Welcome to Claude Code\n\nDo you want to create {name}?{MENU}")
}

#[test]
fn a_name_that_is_written_over_is_not_read_in_a_dialog() {
    assert_eq!(subject("claude", &[&claude("ok.txt")]).as_deref(), Some("ok.txt"));
    for name in [
        "important\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}ok.txt   \u{8}\u{8}\u{8}",
        "important?\rDo you want to create ok.txt",
        "important?\r\x1b[KDo you want to create ok.txt",
        "important\x1b[9Dok.txt   \x1b[3D",
        "important?\x1b[GDo you want to create ok.txt",
        "important?\x1b[1GDo you want to create ok.txt",
        "important?\x1b[2K\rDo you want to create ok.txt",
    ] {
        assert_eq!(subject("claude", &[&claude(name)]), None, "{name:?}");
    }
    let last = format!("{}\x1b[K", claude("important?\rDo you want to create ok.txt"));
    assert_eq!(subject("claude", &[&last]), None);
}

#[test]
fn rows_that_are_repainted_from_frame_to_frame_are_read() {
    let spinner = "\x1b[?25l- Working\r\\ Working\r| Working\n\n";
    let dialog = format!("Do you want to create ok.txt?{MENU}");
    assert_eq!(subject("claude", &[spinner, &dialog]).as_deref(), Some("ok.txt"));
    // As Ink repaints: it erases its rows from below, then writes them again.
    let erased = format!("\x1b[2K{}\x1b[G", "\x1b[1A\x1b[2K".repeat(4));
    let again = format!("{erased}{dialog}");
    assert_eq!(subject("claude", &[&claude("ok.txt"), &again]).as_deref(), Some("ok.txt"));
    // With the borders of a frame set by column, to the right of the text.
    let framed = format!("\x1b[?25lDo you want to create ok.txt?\x1b[58G {MENU}");
    assert_eq!(subject("claude", &[&framed]).as_deref(), Some("ok.txt"));
}

#[test]
fn a_name_is_read_only_from_programs_that_always_quote_names() {
    assert_eq!(subject("generic", &["rm: remove regular file 'ok.txt'? "]).as_deref(), Some("ok.txt"));
    assert_eq!(
        subject("generic", &["/bin/rm: reguläre Datei 'ok.txt' entfernen? "]).as_deref(),
        Some("ok.txt")
    );
    for line in [
        "< rm ... ./important 'ok.txt' > ? ",
        "rm ./important 'ok.txt' ?...",
        "gzip: important 'ok.txt'.gz already exists; do you wish to overwrite (y or n)? ",
        "find: important 'ok.txt'? ",
        "rm: remove important.d/ 'ok.txt'? ",
    ] {
        let mut stage = Stage::new("generic");
        stage.run(&[Kernel(READS), Paint(Box::leak(line.to_owned().into_boxed_str())), Wait(900)]);
        assert_eq!(stage.detector.ask().and_then(|ask| ask.subject.clone()), None, "{line}");
    }
}

#[test]
fn an_option_that_goes_beyond_the_question_leaves_it_to_a_person() {
    let with =
        |options: &str| subject("claude", &[&format!("\x1b[?25lDo you want to create ok.txt?\n{options}\n")]);
    for plain in [
        "❯ 1. Yes\n  2. No",
        "❯ 1. Yes, proceed\n  2. No",
        "❯ 1. Trust and continue\n  2. No",
        "❯ 1. Yes, just this once\n  2. No",
        "❯ 1. Delete all\n  2. Yes\n  3. No",
    ] {
        assert_eq!(with(plain).as_deref(), Some("ok.txt"), "{plain}");
    }
    for beyond in [
        "  1. No\n❯ 2. Yes, delete everything else too\n  3. Maybe",
        "❯ 1. Yes, and delete the others\n  2. No",
        "❯ 1. OK for root\n  2. No",
        "❯ 1. Maybe\n  2. No",
    ] {
        assert_eq!(with(beyond), None, "{beyond}");
    }
}
