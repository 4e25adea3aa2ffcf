//! Whether anything besides the agent has confirmed that its work is done.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What verified a completed run or session. The agent's own claim doesn't count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Written", into = "Written")]
pub enum Verification {
    /// Stop hooks or judges verified it, and all of them agreed.
    Passed,
    /// No verification was configured.
    #[default]
    None,
    /// Checks gave no answer, and their settings say to ignore that.
    Ignored {
        /// Their names, in configured order.
        checks: Vec<String>,
    },
}

impl Verification {
    /// One word, for programs: `passed`, `none` or `ignored`.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::None => "none",
            Self::Ignored { .. } => "ignored",
        }
    }

    /// The verification of several parts together: passed only if each has passed.
    #[must_use]
    pub fn of_all(parts: impl IntoIterator<Item = Self>) -> Self {
        parts.into_iter().reduce(Self::and).unwrap_or_default()
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Ignored { mut checks }, Self::Ignored { checks: more }) => {
                let new = more.into_iter().filter(|name| !checks.contains(name)).collect::<Vec<_>>();
                checks.extend(new);
                Self::Ignored { checks }
            }
            (ignored @ Self::Ignored { .. }, _) | (_, ignored @ Self::Ignored { .. }) => ignored,
            (Self::None, _) | (_, Self::None) => Self::None,
            (Self::Passed, Self::Passed) => Self::Passed,
        }
    }
}

/// For sentences of the form "completed, …".
impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("verified"),
            Self::None => f.write_str("not verified"),
            Self::Ignored { checks } => write!(f, "not verified: {} gave no answer", checks.join(", ")),
        }
    }
}

/// Its form in the log: two fields of the outcome.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Written {
    #[serde(default)]
    verification: Word,
    /// Which checks were ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ignored: Vec<String>,
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Word {
    Passed,
    #[default]
    None,
    Ignored,
}

impl From<Verification> for Written {
    fn from(verification: Verification) -> Self {
        let (verification, ignored) = match verification {
            Verification::Passed => (Word::Passed, Vec::new()),
            Verification::None => (Word::None, Vec::new()),
            Verification::Ignored { checks } => (Word::Ignored, checks),
        };
        Self { verification, ignored }
    }
}

impl From<Written> for Verification {
    fn from(written: Written) -> Self {
        match written.verification {
            Word::Passed => Self::Passed,
            Word::None => Self::None,
            Word::Ignored => Self::Ignored { checks: written.ignored },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Verification;
    use crate::Outcome;

    fn ignored(names: &[&str]) -> Verification {
        Verification::Ignored { checks: names.iter().map(|&name| name.to_owned()).collect() }
    }

    #[test]
    fn an_outcome_says_in_one_word_whether_it_was_verified() {
        let written = |verification| {
            serde_json::to_value(Outcome::Completed { verdict: None, verification }).expect("it serializes")
        };
        let passed = json!({"kind": "completed", "verdict": null, "verification": "passed"});
        assert_eq!(written(Verification::Passed), passed);
        assert_eq!(written(Verification::None)["verification"], "none");
        let outcome =
            json!({"kind": "completed", "verdict": null, "verification": "ignored", "ignored": ["tests"]});
        assert_eq!(written(ignored(&["tests"])), outcome);
        let read = serde_json::from_value::<Outcome>(outcome).expect("it is read");
        assert_eq!(read.to_string(), "completed, not verified: tests gave no answer");
    }

    #[test]
    fn a_whole_is_verified_as_far_as_each_part_is() {
        use Verification::{None, Passed};
        let of = |parts: &[Verification]| Verification::of_all(parts.iter().cloned());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[Passed, Passed]), Passed);
        assert_eq!(of(&[Passed, None]), None);
        assert_eq!(of(&[None, ignored(&["a"]), Passed, ignored(&["b", "a"])]), ignored(&["a", "b"]));
    }
}
