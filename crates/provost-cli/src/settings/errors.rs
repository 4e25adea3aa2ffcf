//! Problems of the settings: where, what, and what would be right.

use std::fmt;

use super::declare::From;

/// Where a value was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nowhere: built in.
    Default,
    /// In a file.
    File(Spot),
    /// In an environment variable.
    Variable(String),
    /// On the command line.
    Flag(&'static str),
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The file's name for people.
    pub(crate) file: String,
    /// The line, from 1.
    pub(crate) line: usize,
    /// The column in characters, from 1.
    pub(crate) column: usize,
    /// What a file of its kind may set.
    pub(crate) from: From,
}

impl Spot {
    /// The place of byte `offset` in `text`, which stands in a file of the user.
    pub(crate) fn at(file: &str, text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { file: file.to_owned(), line, column, from: From::User }
    }
}

impl Source {
    /// Whether it stands in the file with this name.
    pub(super) fn is_in(&self, name: &str) -> bool {
        matches!(self, Self::File(Spot { file, .. }) if file == name)
    }

    /// Whether a project's file gave it.
    pub(crate) fn is_projects(&self) -> bool {
        matches!(self, Self::File(Spot { from: From::Anywhere, .. }))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(Spot { file, line, column, from: _ }) => write!(f, "{file}:{line}:{column}"),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Where.
    pub(crate) source: Source,
    /// With which key; empty where it isn't about one.
    pub(crate) key: String,
    /// What.
    pub(crate) what: String,
    /// What would be right; empty where `what` says it.
    pub(crate) remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.source)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.what)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "; {}", self.remedy) }
    }
}

/// Everything that is wrong with the settings.
#[derive(Debug)]
pub(crate) struct Problems(pub(crate) Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.0.iter().map(Problem::to_string).collect::<Vec<_>>();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Problems {}
