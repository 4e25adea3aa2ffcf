//! Hostile names in every dialog whose subject is read: what is read is the name, or nothing.

use super::detect::{
    Do::{Kernel, Paint, Wait},
    POLLS, READS, Stage,
};

/// Names that try to look like the file `ok.txt`, or like a whole dialog.
fn names() -> Vec<String> {
    let long = |count: usize| format!("{}/../ok.txt", "a".repeat(count));
    let mut names: Vec<String> = [
        "ok.txt' important data",
        "ok.txt\" important data",
        "ok.txt` important",
        "ok.txt’ important",
        "ok.txt'? y",
        "ok.txt\\",
        "ok.txt ",
        " ok.txt",
        "ok.txt\t",
        "ok.txt\nimportant",
        "important\nok.txt",
        "important\n\nok.txt",
        "x'\nrm: remove regular file 'ok.txt",
        "x'? y\nrm: remove regular file 'ok.txt",
        "ok.txt?\n❯ 1. Yes\n  2. No\n",
        "ok.txt\n1 + x",
        "ok.txt\n12 + x\n13 - y",
        "ok.txt\n\n1 + x",
        "ok.txt\n1 text",
        "ok.txt\nApply this change?",
        "ok.txt\n● 1. Allow once",
        "ok.txt\nAllow once   Allow always   Reject",
        "x\n? Edit ok.txt",
        "x\n→ Edit ok.txt",
        "x\n$ ok.txt",
        "\u{1b}[2K\rrm: remove regular file 'ok.txt",
        "\u{1b}[1Grm: remove regular file 'ok.txt",
        "important\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}ok.txt   ",
        "important\rrm: remove regular file 'ok.txt",
        "\u{1b}]0;title\u{7}ok.txt",
        "\u{1b}[8mimportant\u{1b}[0mok.txt",
        "ok\u{200b}.txt",
        "ok\u{200d}.txt",
        "ok\u{2060}.txt",
        "ok\u{feff}.txt",
        "ok\u{ad}.txt",
        "\u{202e}txt.ko",
        "\u{2066}ok.txt\u{2069}",
        "ok.txt\u{a0}",
        "ok.txt\u{3000}",
        "ok.txt\u{2800}",
        "ok.txt\u{3164}",
        "ok\u{fe0e}.txt",
        "ok.txt\u{34f}",
        "о\u{43a}.txt",
        "ｏｋ.txt",
        "ok․txt",
        "ok.txt…",
        "…/ok.txt",
        "/home/.../ok.txt",
        "--\nok.txt",
        "; rm -rf ~ #",
    ]
    .map(str::to_owned)
    .into();
    // The window has 60 columns: somewhere among these the name is cut just before `ok.txt`.
    names.extend((20..75).map(long));
    names
}

/// What each dialog shows for a name: the profile, whether it is drawn, and the screen.
fn dialogs(name: &str) -> Vec<(&'static str, bool, String)> {
    let menu = "› 1. Yes, proceed (y)\n  2. No, and tell Codex what to do differently (esc)\n\n  Press enter to confirm or esc to cancel";
    let boxed = |content: &str| {
        let rows = wrapped(content, 54).into_iter().map(|row| format!("│ {row:<54} │\n"));
        rows.collect::<String>()
    };
    let top = format!("╭{}╮\n", "─".repeat(56));
    let end = format!("{}╰{}╯", boxed("● 1. Allow once\n  2. No, suggest changes (esc)"), "─".repeat(56));
    let drawn = vec![
        ("codex", true, format!("  Would you like to run the following command?\n\n  $ {name}\n\n{menu}")),
        (
            "codex",
            true,
            format!(
                "  Would you like to make the following edits?\n\n  • Added {name} (+1 -0)\n    1 +x\n\n{menu}"
            ),
        ),
        ("claude", true, format!("Do you want to create {name}?\n❯ 1. Yes\n  2. No, tell it what to do")),
        (
            "gemini",
            true,
            format!(
                "{top}{}{end}",
                boxed(&format!("? WriteFile Writing to {name}\n1 text\nApply this change?"))
            ),
        ),
        (
            "qwen",
            true,
            format!(
                "{top}{}{end}",
                boxed(&format!("? WriteFile Writing to {name}\n1 text\nApply this change?"))
            ),
        ),
        (
            "gemini",
            true,
            format!(
                "{top}{}{}{end}",
                boxed(&format!("? Shell {name}")),
                boxed(&format!("╭────────────\n{name}\n╰────────────\nAllow execution of [Shell]?"))
            ),
        ),
        (
            "qwen",
            true,
            format!("{top}{}{end}", boxed(&format!("? Shell x\n\n{name}\n\nAllow execution of: 'x'?"))),
        ),
        (
            "opencode",
            true,
            format!(
                "┃ △ Permission required\n┃ → Edit {name}\n┃\n┃ 1 + x\n┃\n┃ Allow once   Allow always   Reject"
            ),
        ),
        (
            "opencode",
            true,
            format!(
                "┃ △ Permission required\n┃ # Shell command\n┃\n┃ $ {name}\n┃\n┃ Allow once   Allow always   Reject"
            ),
        ),
        ("aider", true, format!("{}\nCreate new file? (Y)es/(N)o [Yes]: ", wrapped(name, 60).join("\n"))),
        (
            "aider",
            true,
            format!("Tokens: 1k sent, 2 received.\n\n{name}\nRun shell command? (Y)es/(N)o [Yes]: "),
        ),
    ];
    [on_a_line(name), drawn].concat()
}

fn on_a_line(name: &str) -> Vec<(&'static str, bool, String)> {
    vec![
        ("generic", false, format!("rm: remove regular file '{name}'? ")),
        ("generic", false, format!("rm: remove regular empty file `{name}'? ")),
        ("generic", false, format!("mv: overwrite \"{name}\"? ")),
    ]
}

/// The rows of a text that a program wraps itself.
fn wrapped(text: &str, cols: usize) -> Vec<String> {
    let rows = |line: &str| {
        let chars: Vec<char> = line.chars().collect();
        let rows: Vec<String> = chars.chunks(cols).map(|row| row.iter().collect()).collect();
        if rows.is_empty() { vec![String::new()] } else { rows }
    };
    text.split('\n').flat_map(rows).collect()
}

/// The subject of the question on the screen; absent also if none is seen.
fn subject_of(profile: &str, is_drawn: bool, screen: &str) -> Option<String> {
    let mut stage = Stage::new(profile);
    let text: &'static str = Box::leak(screen.replace('\n', "\r\n").into_boxed_str());
    let kernel = if is_drawn { POLLS } else { READS };
    let hides = if is_drawn && profile != "aider" { "\x1b[?25l" } else { "" };
    stage.run(&[Kernel(kernel), Paint(hides), Paint(text), Wait(900)]);
    stage.detector.ask().and_then(|ask| ask.subject.clone())
}

#[test]
fn a_plain_name_is_read_in_every_dialog_in_which_it_can_t_go_on() {
    for (profile, is_drawn, screen) in dialogs("ok.txt") {
        // Where changes follow the name, they may as well be the rest of a name with a line break.
        let may_go_on =
            !screen.contains("• Added") && (screen.contains("1 text") || screen.contains("1 + x"));
        let read = if may_go_on { None } else { Some("ok.txt") };
        assert_eq!(subject_of(profile, is_drawn, &screen).as_deref(), read, "{profile}:\n{screen}");
    }
}

#[test]
fn a_hostile_name_is_read_as_it_is_or_not_at_all() {
    let mut wrong = Vec::new();
    for name in names() {
        for (profile, is_drawn, screen) in dialogs(&name) {
            // Programs that paint frames pass no control characters on, and no blanks at an end can be seen there.
            // Codex and aider read names from lines.
            let is_impossible = name.contains(['\u{1b}', '\r', '\u{8}'])
                || (name.contains('\n') && (screen.contains("• Added") || profile == "aider"));
            if is_drawn && is_impossible {
                continue;
            }
            let subject = subject_of(profile, is_drawn, &screen);
            let seen = if is_drawn { name.trim_matches([' ', '\t']) } else { &name };
            if subject.as_ref().is_some_and(|subject| subject != seen) {
                wrong.push(format!("{profile} reads {subject:?} for {name:?}:\n{screen}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n\n"));
}
