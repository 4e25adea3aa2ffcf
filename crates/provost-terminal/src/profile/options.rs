//! A question's options, parsed from the screen.

use std::sync::LazyLock;

use provost_event::{AskOption, OptionMeaning};
use regex::Regex;

use super::rule::Choice;
use crate::detect::Frame;

/// An item of a menu: the mark of the selected item, its number, its text.
static ITEM: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:(?P<mark>[›❯>▶▸●◉➜→*])\s*)?(?P<number>\d{1,2})[.)]\s+(?P<label>\S.*)$").ok()
});
/// An item without a number; only beside a marked one.
static MARKED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[›❯▶▸●◉➜]\s+(?P<label>\S.*)$").ok());
/// The key named at an item's end: `Yes, proceed (y)`.
static KEY: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(?P<label>.*\S)\s+\((?P<key>[[:alnum:]]|esc)\)$").ok());
/// `(Y)es/(N)o/(D)on't ask again`, `[y]es, [n]o, [A]ll`.
static INITIAL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[(\[](?P<key>[[:alnum:]])[)\]](?P<rest>[\p{L}][\p{L}'’ ]*)").ok());
/// `[y/N]`, `(yes/no/[fingerprint])`, `[y,n,q,a,d,e,?]`, `(y or n)`.
static GROUP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"[(\[<【（]([^()\[\]<>]{1,24}(?:[/,|／]| or | oder | ou )[^()<>]{1,60})[)\]>】）]").ok()
});
/// `[default=N]`, `[Yes]:`.
static DEFAULT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\[(?:default=)?(?P<label>[[:alpha:]]+)\]\s*[:?]?$").ok());

/// The items of a menu in the rows from `first` to `last`, and which of them a plain return selects.
pub(super) fn menu(frame: &Frame, first: usize, last: usize) -> (Vec<AskOption>, Option<usize>) {
    let rows: Vec<&str> = (first..=last).map(|row| frame.row(row)).collect();
    let numbered = numbered(&rows);
    if numbered.0.len() >= 2 { numbered } else { marked(&rows) }
}

fn numbered(rows: &[&str]) -> (Vec<AskOption>, Option<usize>) {
    let mut options: Vec<AskOption> = Vec::new();
    let mut chosen = None;
    for found in rows.iter().filter_map(|row| ITEM.as_ref()?.captures(row)) {
        let (Some(number), Some(label)) = (found.name("number"), found.name("label")) else { continue };
        // A first number begins a new list: the rows above belong to another one.
        if number.as_str() == "1" {
            options.clear();
            chosen = None;
        }
        if number.as_str().parse() != Ok(options.len() + 1) {
            continue;
        }
        if found.name("mark").is_some() {
            chosen = Some(options.len());
        }
        options.push(item(label.as_str(), number.as_str()));
    }
    (options, chosen)
}

fn item(text: &str, number: &str) -> AskOption {
    let named = KEY.as_ref().and_then(|pattern| pattern.captures(text));
    let part = |name: &str| named.as_ref().and_then(|found| found.name(name)).map(|found| found.as_str());
    let label = part("label").unwrap_or(text);
    let keys = match part("key") {
        Some("esc") => "\u{1b}".to_owned(),
        Some(key) => key.to_owned(),
        None => number.to_owned(),
    };
    AskOption { label: label.to_owned(), keys, meaning: meaning(label) }
}

/// Items without numbers are the marked one and the rows around it up to the next blank one; cursor keys select
/// them.
fn marked(rows: &[&str]) -> (Vec<AskOption>, Option<usize>) {
    let is_marked = |row: &str| MARKED.as_ref().is_some_and(|pattern| pattern.is_match(row));
    let Some(at) = rows.iter().rposition(|row| is_marked(row)) else { return (Vec::new(), None) };
    let from = rows
        .iter()
        .take(at)
        .rposition(|row| row.is_empty() || row.ends_with(['?', ':']))
        .map_or(0, |row| row + 1);
    let until = rows.iter().skip(at).position(|row| row.is_empty()).map_or(rows.len(), |count| at + count);
    let labels = rows
        .iter()
        .take(until)
        .skip(from)
        .map(|row| row.trim_start_matches(['›', '❯', '▶', '▸', '●', '◉', '➜', '○', ' ']));
    let chosen = at - from;
    let options = labels.enumerate().map(|(index, label)| AskOption {
        label: label.to_owned(),
        keys: format!("{}\r", steps(chosen, index)),
        meaning: meaning(label),
    });
    (options.collect(), Some(chosen))
}

fn steps(from: usize, to: usize) -> String {
    let key = if to < from { "\u{1b}[A" } else { "\u{1b}[B" };
    key.repeat(from.abs_diff(to))
}

/// The options that a line names: `[y/N]` and similar; yes and no if it names none.
pub(super) fn letters(line: &str) -> (Vec<AskOption>, Option<usize>) {
    let mut labels = initials(line);
    if labels.len() < 2 {
        labels = group(line);
    }
    if labels.len() < 2 {
        labels = vec![("y".to_owned(), "y".to_owned()), ("n".to_owned(), "n".to_owned())];
    }
    let default = default(line, &labels);
    let options = labels.into_iter().map(|(label, key)| AskOption {
        meaning: meaning(&label),
        keys: format!("{key}\r"),
        label,
    });
    (options.collect(), default)
}

fn initials(line: &str) -> Vec<(String, String)> {
    let Some(pattern) = INITIAL.as_ref() else { return Vec::new() };
    let found = pattern
        .captures_iter(line)
        .filter_map(|found| Some((found.name("key")?.as_str(), found.name("rest")?.as_str())));
    found.map(|(key, rest)| (format!("{key}{rest}").trim().to_owned(), key.to_lowercase())).collect()
}

fn group(line: &str) -> Vec<(String, String)> {
    let Some(found) = GROUP.as_ref().and_then(|pattern| pattern.captures_iter(line).last()) else {
        return Vec::new();
    };
    let Some(inner) = found.get(1) else { return Vec::new() };
    let inner = inner.as_str().replace(" or ", "/").replace(" oder ", "/").replace(" ou ", "/");
    let labels =
        inner.split(['/', ',', '|', '／']).map(|part| part.trim().trim_matches(['[', ']']).to_owned());
    let labels: Vec<String> = labels.filter(|label| !label.is_empty()).collect();
    // One capital among small letters marks the default: the key is the small letter. Where both cases have a
    // meaning (`git add -p` has a and A) a label occurs in both.
    let both = labels.iter().any(|label| {
        label.chars().count() == 1 && {
            let other = label.to_lowercase();
            other != *label && labels.contains(&other)
        }
    });
    labels.into_iter().map(|label| (label.clone(), if both { label } else { label.to_lowercase() })).collect()
}

fn default(line: &str, labels: &[(String, String)]) -> Option<usize> {
    let named =
        DEFAULT.as_ref().and_then(|pattern| pattern.captures(line)).and_then(|found| found.name("label"));
    let named = named.map(|found| found.as_str().to_lowercase());
    let by_name = named
        .and_then(|name| labels.iter().position(|(label, key)| *key == name || label.to_lowercase() == name));
    let is_capital = |label: &str| label.chars().next().is_some_and(char::is_uppercase);
    let capitals: Vec<usize> =
        (0..labels.len()).filter(|at| labels.get(*at).is_some_and(|(label, _)| is_capital(label))).collect();
    by_name.or(match capitals.as_slice() {
        [only] => Some(*only),
        _ => None,
    })
}

/// The buttons of a dialog. Tab moves from the button at the cursor to the others; without the cursor on one of
/// them the effect of a key is unknown, and there are no options.
pub(super) fn buttons(frame: &Frame, row: usize) -> (Vec<AskOption>, Option<usize>) {
    let text: Vec<char> = frame.row(row).chars().collect();
    let mut spans: Vec<(usize, usize, String)> = Vec::new();
    for (at, character) in text.iter().enumerate() {
        match character {
            '<' => spans.push((at, at, String::new())),
            '>' => spans.iter_mut().rev().take(1).for_each(|span| span.1 = at),
            _ => spans
                .iter_mut()
                .rev()
                .take(1)
                .filter(|span| span.1 == span.0)
                .for_each(|span| span.2.push(*character)),
        }
    }
    let at = frame.cursor_at.filter(|_| frame.cursor_row == row);
    let chosen = at.and_then(|at| spans.iter().position(|(from, until, _)| (*from..=*until).contains(&at)));
    let Some(chosen) = chosen else { return (Vec::new(), None) };
    let count = spans.len();
    let options = spans.iter().enumerate().map(|(index, (_, _, label))| AskOption {
        label: label.trim().to_owned(),
        keys: format!("{}\r", "\t".repeat((index + count - chosen) % count)),
        meaning: meaning(label),
    });
    (options.collect(), Some(chosen))
}

pub(super) fn given(choices: &[Choice]) -> (Vec<AskOption>, Option<usize>) {
    let options = choices.iter().map(|choice| AskOption {
        label: choice.label.clone(),
        keys: choice.keys.clone(),
        meaning: meaning(&choice.label),
    });
    (options.collect(), None)
}

/// The first words of consents.
const YES: [&str; 31] = [
    "yes", "y", "ja", "j", "oui", "o", "sí", "si", "s", "sim", "да", "д", "tak", "t", "はい", "是", "예",
    "네", "allow", "approve", "accept", "proceed", "continue", "trust", "ok", "confirm", "run", "apply",
    "save", "okay", "agree",
];

/// The meaning of an option's label, in languages of known terminal programs.
pub(crate) fn meaning(label: &str) -> OptionMeaning {
    const DENY: [&str; 26] = [
        "no",
        "n",
        "nein",
        "non",
        "nee",
        "não",
        "nao",
        "nej",
        "nei",
        "нет",
        "н",
        "いいえ",
        "否",
        "아니요",
        "reject",
        "deny",
        "decline",
        "cancel",
        "refuse",
        "abort",
        "don't",
        "skip",
        "quit",
        "exit",
        "stop",
        "disagree",
    ];
    const ALWAYS: [&str; 10] = [
        "always",
        "don't ask again",
        "do not ask again",
        "don’t ask again",
        "for this session",
        "this session",
        "all",
        "for all",
        "in the future",
        "auto-accept",
    ];
    let lower = label.to_lowercase();
    let words = words_of(&lower);
    let first = words.first().copied().unwrap_or_default();
    let says = |known: &[&str]| known.contains(&first);
    let always = ALWAYS.iter().any(|phrase| holds(&lower, &words, phrase));
    if says(&DENY) && !(always && first != "no" && first != "n") {
        OptionMeaning::Deny
    } else if always {
        OptionMeaning::ApproveAlways
    } else if says(&YES) {
        OptionMeaning::ApproveOnce
    } else {
        OptionMeaning::Other
    }
}

/// Words of a consent that give no more than what was asked for.
const PLAIN: [&str; 34] = [
    "and", "just", "this", "that", "once", "one", "only", "time", "for", "now", "it", "the", "i", "to", "a",
    "create", "edit", "edits", "make", "write", "change", "changes", "command", "file", "folder", "tool",
    "action", "request", "call", "execute", "want", "am", "sure", "please",
];

/// Whether the option that consents for this time says nothing that goes beyond the question. What does, no rule
/// chooses: a person reads it.
pub(super) fn offers_plain_consent(options: &[AskOption]) -> bool {
    let consent = options.iter().find(|option| option.meaning == OptionMeaning::ApproveOnce);
    consent.is_some_and(|option| consents_plainly(&option.label))
}

/// Whether an option's label consents, and says no more.
#[must_use]
pub fn consents_plainly(label: &str) -> bool {
    let lower = label.to_lowercase();
    let mut words = words_of(&lower).into_iter();
    words.next().is_some_and(|first| YES.contains(&first))
        && words.all(|word| YES.contains(&word) || PLAIN.contains(&word))
}

fn words_of(lower: &str) -> Vec<&str> {
    lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).collect()
}

fn holds(lower: &str, words: &[&str], phrase: &str) -> bool {
    if phrase.contains(' ') { lower.contains(phrase) } else { words.contains(&phrase) }
}
