//! Errors in a script: the position, the problem and a remedy.

use std::io;

use serde_saphyr::{DefaultMessageFormatter, Error as YamlError, Location, MessageFormatter as _};

/// The maximum size of a script.
pub(super) const SCRIPT_BYTES_MAX: u64 = 4 * 1024 * 1024;
const REFERENCE: &str = "docs/script.md describes the format";
/// The maximum edit distance of similar names.
const NEAR: usize = 2;

/// Why a script can't be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file can't be read.
    #[error("can't read the script {file}; check its path")]
    Read {
        /// The file.
        file: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is too large.
    #[error("the script {file} is larger than {SCRIPT_BYTES_MAX} bytes; split it")]
    TooLarge {
        /// The file.
        file: String,
    },
    /// An error in the script.
    #[error("{file}:{line}:{column}: {problem}; {remedy}")]
    Bad {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
        /// The problem.
        problem: String,
        /// The remedy.
        remedy: String,
    },
}

/// An error at a position of the script.
#[derive(Debug)]
pub(super) struct Complaint {
    at: Location,
    problem: String,
    remedy: String,
}

impl Complaint {
    pub(super) fn new(at: Location, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { at, problem: problem.into(), remedy: remedy.into() }
    }

    pub(super) fn in_file(self, file: &str) -> ScriptError {
        let Self { at, problem, remedy } = self;
        // An unknown position counts as the file's beginning.
        let (line, column) = (at.line().max(1), at.column().max(1));
        ScriptError::Bad { file: file.to_owned(), line, column, problem, remedy }
    }
}

impl From<&YamlError> for Complaint {
    fn from(error: &YamlError) -> Self {
        let error = error.without_snippet();
        let at = error.location().unwrap_or(Location::UNKNOWN);
        match error {
            YamlError::SerdeUnknownField { field, expected, .. } => {
                Self::new(at, format!("there is no key `{field}` here"), one_of(field, expected))
            }
            YamlError::SerdeUnknownVariant { variant, expected, .. } => {
                Self::new(at, format!("`{variant}` isn't known here"), one_of(variant, expected))
            }
            YamlError::SerdeMissingField { field, .. } => {
                Self::new(at, format!("the key `{field}` is missing"), "add it")
            }
            YamlError::DuplicateMappingKey { key, .. } => {
                let key = key.as_deref().unwrap_or("?");
                Self::new(at, format!("the key `{key}` is there twice"), "remove one of them")
            }
            YamlError::SerdeInvalidType { unexpected, expected, .. } => {
                let problem = format!("{unexpected} stands where {expected} belongs");
                Self::new(at, problem, "text that looks like something else goes in quotes")
            }
            YamlError::Unexpected { expected, .. } => {
                let expected = match *expected {
                    "sequence start" => "a list",
                    "mapping start" => "a mapping",
                    "string scalar" => "a text",
                    other => other,
                };
                Self::new(at, format!("something else stands where {expected} belongs"), REFERENCE)
            }
            YamlError::InvalidScalar { ty: "floating point", .. } => {
                Self::new(at, "that isn't the number that belongs here", "write a number such as 0.9")
            }
            YamlError::InvalidScalar { .. } => {
                Self::new(at, "that isn't the number that belongs here", "write a whole number from 0")
            }
            YamlError::InvalidBooleanStrict { .. } => {
                Self::new(at, "that is neither true nor false", "write `true` or `false`")
            }
            YamlError::MultipleDocuments { .. } => {
                Self::new(at, "a second script begins here", "remove it, or put it in a file of its own")
            }
            _ => Self::new(
                at,
                DefaultMessageFormatter.format_message(error),
                "docs/script.md describes the format",
            ),
        }
    }
}

fn one_of(given: &str, known: &[&str]) -> String {
    let all = known.join("`, `");
    match known.iter().min_by_key(|name| strsim::damerau_levenshtein(given, name)) {
        Some(near) if strsim::damerau_levenshtein(given, near) <= NEAR => {
            format!("did you mean `{near}`? The names are `{all}`")
        }
        _ => format!("write one of `{all}`"),
    }
}
