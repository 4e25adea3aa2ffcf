//! Matchers: the tools, sources and kinds that a hook is asked about.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use fancy_regex::{Regex, RegexBuilder};
use provost_event::HookPoint;

/// Maximum cached compiled matchers; a policy has far fewer.
const KEPT_MAX: usize = 256;
/// Maximum backtracking steps of a search.
const BACKTRACK_MAX: usize = 100_000;

/// Checks a matcher from the settings.
///
/// # Errors
/// The problem, in words, when it is no name, list of names or regular expression.
pub fn check_matcher(point: HookPoint, matcher: &str) -> Result<(), String> {
    Matcher::parse(point, matcher).map(|_| ())
}

/// The parts of a matcher that match none of `names`: unknown names of a list, or a whole expression without a
/// match. A negated or invalid expression counts as matching.
#[must_use]
pub fn matches_nothing(point: HookPoint, matcher: &str, names: &[&str]) -> Vec<String> {
    match Matcher::parse(point, matcher) {
        Ok(Matcher::Exactly(wanted)) => {
            wanted.into_iter().filter(|one| !one.is_empty() && !names.contains(&one.as_str())).collect()
        }
        Ok(found @ Matcher::Finds { negates: false, .. }) => {
            let is_found = names.iter().any(|name| found.hits(&[name]).unwrap_or(true));
            if is_found { Vec::new() } else { vec![matcher.to_owned()] }
        }
        Ok(Matcher::All | Matcher::Finds { .. }) | Err(_) => Vec::new(),
    }
}

/// Whether a matcher matches a thing with these names, the contract's own name first. One that is invalid, or takes
/// too long, counts as matching.
#[must_use]
pub fn matches_any(point: HookPoint, matcher: &str, names: &[&str]) -> bool {
    Matcher::parse(point, matcher).and_then(|matcher| matcher.hits(names)).unwrap_or(true)
}

/// Whether a matcher names one of `names`, rather than everything or everything but some names.
pub(crate) fn names_one_of(point: HookPoint, matcher: &str, names: &[&str]) -> bool {
    match Matcher::parse(point, matcher) {
        Ok(Matcher::All | Matcher::Finds { negates: true, .. }) | Err(_) => false,
        Ok(matcher) => matcher.hits(names).unwrap_or(false),
    }
}

/// The names of one thing that a matcher is compared with, the contract's own name first.
pub(crate) type Names<'a> = Vec<&'a str>;

/// A matcher, ready for use.
#[derive(Debug)]
pub(crate) enum Matcher {
    /// Everything.
    All,
    /// Exactly one of these.
    Exactly(Vec<String>),
    /// Anything with a match of this.
    Finds { regex: Box<Regex>, negates: bool },
}

impl Matcher {
    pub(crate) fn parse(point: HookPoint, text: &str) -> Result<Self, String> {
        if matches!(text, "" | "*") {
            return Ok(Self::All);
        }
        if text.chars().all(|char| is_plain(point, char)) {
            let names = text.split(['|', ',']).map(|name| name.trim().to_owned());
            return Ok(Self::Exactly(names.collect()));
        }
        let regex = RegexBuilder::new(&from_javascript(text)).backtrack_limit(BACKTRACK_MAX).build();
        let regex = regex.map_err(|error| {
            format!("the matcher `{text}` can't be read as a regular expression: {error}")
        })?;
        let negates = ["(?!", "(?<!", "[^"].iter().any(|sign| text.contains(sign));
        Ok(Self::Finds { regex: Box::new(regex), negates })
    }

    /// Whether it matches a thing with these names. A negated expression is compared with the first name only:
    /// every other name of an excluded thing would match.
    ///
    /// # Errors
    /// When a search takes too long.
    pub(crate) fn hits(&self, names: &[&str]) -> Result<bool, String> {
        match self {
            Self::All => Ok(true),
            Self::Exactly(wanted) => Ok(names.iter().any(|name| wanted.iter().any(|one| one == name))),
            Self::Finds { regex, negates } => {
                let tried = if *negates { 1 } else { names.len() };
                for name in names.iter().take(tried) {
                    let found = regex.is_match(name);
                    if found.map_err(|error| format!("its matcher can't be decided for `{name}`: {error}"))? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

fn is_plain(point: HookPoint, char: char) -> bool {
    let narrow = point == HookPoint::StopFailure;
    char.is_ascii_alphanumeric() || matches!(char, '_' | '|') || (!narrow && matches!(char, '-' | ' ' | ','))
}

/// The expression for a library whose character classes allow more than JavaScript's: there, `[`, `&` and `~` are
/// literal; and `[^]` is any character.
fn from_javascript(text: &str) -> String {
    let text = text.replace("[^]", "[\\s\\S]");
    let mut out = String::with_capacity(text.len());
    let (mut in_class, mut escaped) = (false, false);
    for char in text.chars() {
        if in_class && !escaped && matches!(char, '[' | '&' | '~') {
            out.push('\\');
        }
        match char {
            '[' if !escaped => in_class = true,
            ']' if !escaped => in_class = false,
            _ => {}
        }
        escaped = char == '\\' && !escaped;
        out.push(char);
    }
    out
}

/// A matcher, or why it is invalid.
type Parsed = Arc<Result<Matcher, String>>;

/// Cache of compiled matchers.
#[derive(Debug, Default)]
pub(crate) struct Matchers(Mutex<HashMap<(HookPoint, String), Parsed>>);

impl Matchers {
    pub(crate) fn get(&self, point: HookPoint, text: &str) -> Parsed {
        let mut kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let key = (point, text.to_owned());
        if let Some(matcher) = kept.get(&key) {
            return Arc::clone(matcher);
        }
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        let matcher = Arc::new(Matcher::parse(point, text));
        kept.insert(key, Arc::clone(&matcher));
        matcher
    }
}

#[cfg(test)]
mod tests {
    use provost_event::HookPoint;

    use super::{KEPT_MAX, Matcher, Matchers, check_matcher};

    fn hits(matcher: &str, names: &[&str]) -> bool {
        Matcher::parse(HookPoint::PreToolCall, matcher).unwrap().hits(names).unwrap()
    }

    #[test]
    fn names_lists_and_expressions_are_told_apart() {
        let bash = ["Bash", "shell"];
        for matcher in
            ["", "*", "Bash", "shell", "Edit|Bash", "Edit , Bash", "Ba.*", "^Bash$", "sh?e", "B[a&&z]s"]
        {
            assert!(hits(matcher, &bash), "{matcher}");
        }
        for matcher in ["bash", "Bas", "Edit|Write", "Bash2", "^ash", "B[[]ash", "Read-Bash"] {
            assert!(!hits(matcher, &bash), "{matcher}");
        }
        assert!(hits("Edit.*", &["NotebookEdit"]), "not anchored");
        assert!(!hits("mcp__memory", &["mcp__memory__add"]), "a whole name");
        assert!(hits("mcp__memory__.*", &["mcp__memory__add"]));
        assert!(hits("mcp__.*__write\\/[^]", &["mcp__a__write/x"]));
    }

    #[test]
    fn ruling_out_a_tool_rules_out_all_its_names() {
        assert!(!hits("^(?!Bash$).*", &["Bash", "shell"]));
        assert!(hits("^(?!Bash$).*", &["Read", "read_file"]));
        assert!(!hits("^[^B]", &["Bash", "shell"]));
    }

    #[test]
    fn stop_failures_have_fewer_plain_characters() {
        let matcher = |point| Matcher::parse(point, "rate-limit").unwrap();
        assert!(matches!(matcher(HookPoint::PreToolCall), Matcher::Exactly(_)));
        assert!(matches!(matcher(HookPoint::StopFailure), Matcher::Finds { .. }));
    }

    #[test]
    fn what_is_no_expression_is_told() {
        let words = check_matcher(HookPoint::PreToolCall, "Bash(").unwrap_err();
        assert!(words.contains("`Bash(`"), "{words}");
        assert_eq!(check_matcher(HookPoint::PreToolCall, "Bash|Edit"), Ok(()));
    }

    #[test]
    fn an_expression_without_end_is_given_up() {
        let name = "a".repeat(4_000) + "!";
        assert!(!hits("^(\\w+_?)+$", &[&name]));
        let matcher = Matcher::parse(HookPoint::PreToolCall, "(?=((a|aa)+)$)b?(\\1)+x").unwrap();
        assert!(matcher.hits(&[&name]).is_err_and(|words| words.contains("can't be decided")));
    }

    #[test]
    fn no_more_than_a_bounded_number_is_kept() {
        let matchers = Matchers::default();
        for number in 0..=KEPT_MAX * 2 {
            matchers.get(HookPoint::PreToolCall, &format!("tool{number}"));
            assert!(matchers.0.lock().unwrap().len() <= KEPT_MAX);
        }
    }
}
