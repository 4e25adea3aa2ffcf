//! Problems of the settings: where, what, and what would be right.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use super::declare::From;

/// Where a value was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
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
pub struct Spot {
    /// The file's name for people.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What a file of its kind may set.
    pub(crate) from: From,
}

impl Spot {
    /// The place of byte `offset` in `text`, which stands in a file of the user.
    pub fn at(file: &str, text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { file: file.to_owned(), line, column, from: From::User }
    }
}

impl Source {
    /// Whether it stands in the file with this name.
    pub(crate) fn is_in(&self, name: &str) -> bool {
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
pub struct Problem {
    /// Where.
    pub source: Source,
    /// With which key; empty where it isn't about one.
    pub key: String,
    /// What.
    pub what: String,
    /// What would be right; empty where `what` says it.
    pub remedy: String,
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
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.0.iter().map(Problem::to_string).collect::<Vec<_>>();
        f.write_str(&lines.join("\n"))
    }
}

impl Error for Problems {}

/// Why something of the settings can't be read or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The user has no home folder.
    #[error("can't find your home folder; set HOME")]
    NoHome(#[source] Box<dyn Error + Send + Sync>),
    /// A workflow's file can't be read.
    #[error("can't read the workflow in {}", file.display())]
    FlowUnread {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What was read is wrong.
    #[error(transparent)]
    Problems(#[from] Problems),
    /// The file that holds what the user trusts can't be read.
    #[error("can't read what you trust from {}", file.display())]
    TrustUnread {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What the user trusts can't be written.
    #[error("can't keep what you trust in {}", file.display())]
    TrustUnkept {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nothing can be added to the user's settings file.
    #[error("can't add to {}", file.display())]
    ApprovalUnkept {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A server can't be added to the user's settings file or removed from it.
    #[error("can't change {}", file.display())]
    ServerUnkept {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file that a permanent approval belongs into is no settings file.
    #[error("{}:{line}: {what}", file.display())]
    NoSettings {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        what: String,
    },
    /// There is no such profile.
    #[error("there is no profile `{name}`")]
    UnknownProfile {
        /// What was asked for.
        name: String,
        /// Which there are, or which may be meant.
        remedy: String,
    },
}

impl ConfigError {
    /// The remedy, where there is one beside the text.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::NoSettings { .. } => Some("correct that first; nothing was added to it"),
            Self::UnknownProfile { remedy, .. } => Some(remedy),
            Self::NoHome(_)
            | Self::FlowUnread { .. }
            | Self::Problems(_)
            | Self::TrustUnread { .. }
            | Self::TrustUnkept { .. }
            | Self::ApprovalUnkept { .. }
            | Self::ServerUnkept { .. } => None,
        }
    }
}
