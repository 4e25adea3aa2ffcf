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
    /// The verdict of `text`: the last line that is one and nothing else, but for Markdown around its words; else the last
    /// sentence of the text.
    ///
    /// A `PASS` within other words, in a quote, or with the other verdicts, as in the sentence that asks for one, is none. A
    /// `FAIL` or `PARTIAL` within other words counts where no line is a verdict: a claim may only make an end stricter.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        let mut is_code = false;
        let lines = text.lines().filter(|line| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            !is_fence && !is_code
        });
        let lines = lines.collect::<Vec<_>>();
        let of_line = lines.iter().rev().find_map(|line| Self::of_line(line));
        of_line.or_else(|| lines.last().and_then(|line| Self::at_end(line))).or_else(|| {
            let within = text
                .rmatch_indices("VERDICT")
                .find_map(|(at, word)| Self::after(text.get(at + word.len()..)?).map(|(verdict, _)| verdict));
            within.filter(|verdict| *verdict != Self::Pass)
        })
    }

    /// The verdict with which the last line ends, as a sentence of its own.
    fn at_end(line: &str) -> Option<Self> {
        let mark = |c: char| matches!(c, '*' | '_' | ' ' | '\t');
        let (before, rest) = line.rsplit_once("VERDICT")?;
        let (verdict, rest) = Self::after(rest)?;
        let is_sentence = before.trim_end_matches(mark).ends_with(['.', '!', '?']);
        let is_last = rest.trim_matches(|c| mark(c) || c == '.').is_empty();
        (is_sentence && is_last && !line.trim_start().starts_with('>')).then_some(verdict)
    }

    /// The verdict that a line is.
    fn of_line(line: &str) -> Option<Self> {
        let mark = |c: char| matches!(c, '*' | '_' | '#' | '`' | ' ' | '\t');
        let (verdict, rest) = Self::after(line.trim_start_matches(mark).strip_prefix("VERDICT")?)?;
        let names_another = || rest.contains("FAIL") || rest.contains("PARTIAL");
        let is_plain = || {
            !rest
                .trim_start_matches(mark)
                .starts_with(|c: char| c.is_alphanumeric() || ['|', '/', '"'].contains(&c))
        };
        // Reasons may follow on the line, the other verdicts may not.
        (verdict != Self::Pass || (is_plain() && !names_another())).then_some(verdict)
    }

    /// The verdict behind the word, and what follows it.
    fn after(rest: &str) -> Option<(Self, &str)> {
        let mark = |c: char| matches!(c, '*' | '_' | '`' | ' ' | '\t');
        let value = rest.trim_start_matches(mark).strip_prefix(':')?.trim_start_matches(mark);
        let end = value.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(value.len());
        let (word, rest) = value.split_at_checked(end)?;
        match word {
            "PASS" => Some((Self::Pass, rest)),
            "FAIL" => Some((Self::Fail, rest)),
            "PARTIAL" => Some((Self::Partial, rest)),
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
    fn the_last_line_that_is_a_verdict_counts() {
        check("VERDICT: PASS", Some(Verdict::Pass));
        check("VERDICT: FAIL\nmore work\nVERDICT: PARTIAL\nand a farewell", Some(Verdict::Partial));
        check("I checked it.\n\n**VERDICT: PASS**", Some(Verdict::Pass));
        check("I checked it. **VERDICT: PASS**", Some(Verdict::Pass));
        check("**VERDICT:** `FAIL`.", Some(Verdict::Fail));
        check("## VERDICT : PASS\n- tests ran", Some(Verdict::Pass));
        check("VERDICT: PASS, all tests ran", Some(Verdict::Pass));
        check("VERDICT: FAIL\nso I repaired it\nVERDICT: PASS", Some(Verdict::Pass));
    }

    #[test]
    fn a_pass_that_is_quoted_or_within_other_words_is_none() {
        check("I can't write VERDICT: PASS yet.", None);
        check("> VERDICT: PASS", None);
        check("> It is done. VERDICT: PASS", None);
        check("I would say VERDICT: PASS", None);
        check("\"VERDICT: PASS\" is what I shall say", None);
        check("The answer ends so:\n```\nVERDICT: PASS\n```\nNot yet.", None);
        check("VERDICT: PASS|FAIL|PARTIAL", None);
        check("VERDICT: PASS / FAIL", None);
        check("VERDICT: PASS (all of it is reached), FAIL (it can't be) or PARTIAL", None);
        check("VERDICT: PASS would be a lie", None);
        check("- VERDICT: PASS (all of the goal is reached)", None);
    }

    #[test]
    fn a_failure_counts_wherever_it_stands() {
        check("It doesn't build. VERDICT: FAIL", Some(Verdict::Fail));
        check("It half works, so VERDICT: PARTIAL it is", Some(Verdict::Partial));
        check("VERDICT: FAIL, then VERDICT: unknown", Some(Verdict::Fail));
    }

    #[test]
    fn other_words_are_no_verdict() {
        check("", None);
        check("my verdict is PASS", None);
        check("VERDICT: PASSED", None);
    }
}
