//! Words that a program changes once it has them: `xargs -I`, `find -exec`, `fd -x`, `parallel`.

use super::super::program::{Program, program_of};
use super::{At, Reach, Word, joined};
use crate::permission::glob::HOLE;

/// What `find`, `fd` and `xargs` replace without being told what to replace.
pub(super) const PLACEHOLDERS: [&str; 5] = ["{}", "{/}", "{//}", "{.}", "{/.}"];

const REPLACES: &str = "which of its words are replaced shows only when it runs";

/// The words of the command that `xargs` runs, with holes where it puts lines of its input, and at their end.
pub(super) fn xargs(reach: &mut Reach, at: At<'_>, start: usize) -> Vec<Word> {
    let texts = replaced(at.arguments.get(..start).unwrap_or_default());
    if texts.is_none() {
        reach.doubt(REPLACES);
    }
    let words = at.arguments.get(start..).unwrap_or_default();
    // A text that reads as a part of a command may be replaced where the command is told by it.
    let reads_as_text = |text: &&String| text.contains(|c: char| c.is_ascii_alphanumeric() || c == '-');
    let mut read = texts.iter().flatten().filter(reads_as_text);
    if read.any(|text| words.iter().any(|word| word.value.contains(text.as_str()))) {
        reach.doubt(REPLACES);
    }
    // So may what the shell puts in, and a part of a program in another language.
    let expands = words.iter().any(|word| word.splits && word.value.contains(HOLE));
    let is_language = |word: &Word| {
        let name = word.value.rsplit('/').next().unwrap_or_default();
        matches!(program_of(name), Program::Awk | Program::Sed)
    };
    let holds =
        |text: &String| words.iter().any(|word| word.value != *text && word.value.contains(text.as_str()));
    let in_language = words.iter().any(is_language) && texts.iter().flatten().any(holds);
    if in_language || (expands && texts.as_ref().is_some_and(|texts| !texts.is_empty())) {
        reach.doubt(REPLACES);
    }
    let placeholder = [PLACEHOLDERS[0].to_owned()];
    let texts = texts.iter().flatten().chain(&placeholder).map(String::as_str).collect::<Vec<_>>();
    let mut words: Vec<Word> = words.iter().map(|word| put_in(word, &texts)).collect();
    let hole = HOLE.to_string();
    words.push(Word { raw: hole.clone(), value: hole, splits: true, ..Word::default() });
    words
}

/// The command of `parallel`, of which a shell reads the words joined.
pub(super) fn parallel_command(reach: &mut Reach, at: At<'_>, words: &[Word]) {
    let text = joined(words.iter().map(|word| word.value.as_str()));
    let mut read = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, behind)) = rest.split_once('{') {
        read.push_str(before);
        match behind.split_once('}') {
            Some((inner, behind)) if !inner.contains(char::is_whitespace) && !inner.contains(',') => {
                read.push_str("\"$_\"");
                rest = behind;
            }
            // An expression in Perl, or an expansion of the shell.
            _ => {
                reach.doubt(REPLACES);
                read.push('{');
                rest = behind;
            }
        }
    }
    read.push_str(rest);
    reach.text(at, at.arguments.len().saturating_sub(1), &format!("{read} \"$_\""));
}

/// `word` with holes where a program replaces one of `texts`. What is a hole then is matched by no literal text of a
/// pattern; placeholders in braces stay as written, so that a pattern can contain them.
pub(super) fn put_in(word: &Word, texts: &[&str]) -> Word {
    let mut value = word.value.clone();
    let mut raw = word.raw.clone();
    for text in texts {
        if !value.contains(*text) {
            continue;
        }
        value = value.replace(text, &HOLE.to_string());
        if !PLACEHOLDERS.contains(text) {
            raw = quoted(&value);
        }
    }
    let plain = word.plain && value == word.value;
    Word { value, raw, plain, ..word.clone() }
}

/// A value as one word.
fn quoted(value: &str) -> String {
    let simple = |c: char| c == HOLE || c.is_ascii_alphanumeric() || "_./,:=+-%@".contains(c);
    if value.chars().all(simple) { value.to_owned() } else { format!("'{value}'") }
}

/// The texts that these options have `xargs` replace; `None` if they aren't known.
fn replaced(options: &[Word]) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    for (index, word) in options.iter().enumerate() {
        let Some(option) = word.value.strip_prefix('-') else { continue };
        let next = || options.get(index + 1).map(|word| word.value.as_str()).unwrap_or_default();
        let text = match option.strip_prefix('-') {
            Some(long) => {
                let (name, attached) = long.split_once('=').unwrap_or((long, PLACEHOLDERS[0]));
                (!name.is_empty() && "replace".starts_with(name)).then_some(attached)
            }
            None => match option.split_once(['I', 'J', 'i']) {
                // A letter before it takes the rest as its value.
                Some((before, _)) if before.contains(|c| "adELnPs".contains(c)) => None,
                Some((before, "")) if option.get(before.len()..) == Some("i") => Some(PLACEHOLDERS[0]),
                Some((_, "")) => Some(next()),
                Some((_, attached)) => Some(attached),
                None => None,
            },
        };
        let Some(text) = text else { continue };
        if text.is_empty() || word.value.contains(HOLE) || text.contains(HOLE) {
            return None;
        }
        texts.push(text.to_owned());
    }
    Some(texts)
}
