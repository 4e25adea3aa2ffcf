//! The agent's verdict about its own work.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The claim of an agent's `VERDICT:` line. Recorded only; stop hooks and judges decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// `VERDICT: PASS`
    Pass,
    /// `VERDICT: FAIL`
    Fail,
    /// `VERDICT: PARTIAL`
    Partial,
}

impl Verdict {
    /// Finds the last verdict in `text`, at any position; Markdown around its words is ignored.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        text.rmatch_indices("VERDICT").find_map(|(at, word)| Self::after(text.get(at + word.len()..)?))
    }

    fn after(rest: &str) -> Option<Self> {
        let mark = |c: char| matches!(c, '*' | '_' | '`' | ' ' | '\t');
        let value = rest.trim_start_matches(mark).strip_prefix(':')?.trim_start_matches(mark);
        let word = value.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
        match word {
            "PASS" => Some(Self::Pass),
            "FAIL" => Some(Self::Fail),
            "PARTIAL" => Some(Self::Partial),
            _ => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Partial => "PARTIAL",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict;

    fn check(text: &str, expected: Option<Verdict>) {
        assert_eq!(Verdict::find(text), expected, "{text:?}");
    }

    #[test]
    fn the_last_verdict_counts_wherever_it_stands() {
        check("VERDICT: PASS", Some(Verdict::Pass));
        check("VERDICT: FAIL\nmore work\nVERDICT: PARTIAL\nand a farewell", Some(Verdict::Partial));
        check("I checked it. **VERDICT: PASS**", Some(Verdict::Pass));
        check("**VERDICT:** `FAIL`.", Some(Verdict::Fail));
        check("## VERDICT : PASS\n- tests ran", Some(Verdict::Pass));
    }

    #[test]
    fn other_words_are_no_verdict() {
        check("", None);
        check("my verdict is PASS", None);
        check("VERDICT: PASSED", None);
        check("VERDICT: PASS|FAIL", Some(Verdict::Pass));
        check("VERDICT: FAIL, then VERDICT: unknown", Some(Verdict::Fail));
    }
}
