//! Why a tool failed, in messages that help the model.

use std::io;
use std::path::PathBuf;

use provost_event::ToolStatus;
use provost_harness::ToolOutput;

/// The failure of a call. `asked` and `path` are as the model wrote them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A path outside of what is reached.
    #[error("`{asked}` is outside of the workspace `{}`: {way}", workspace.display())]
    Outside { asked: String, workspace: PathBuf, way: String },
    /// A path that file tools never reach.
    #[error(
        "`{asked}` is hidden from file tools, whatever the permissions say: it holds credentials, the state of \
         processes or Provost's own files"
    )]
    Masked { asked: String },
    /// A path that doesn't exist.
    #[error("`{asked}` doesn't exist{hint}")]
    NotFound { asked: String, hint: String },
    /// A loop of links.
    #[error("`{asked}` leads through more than {links_max} symbolic links")]
    TooManyLinks { asked: String, links_max: usize },
    /// A folder where a file is required.
    #[error("`{path}` is a folder{hint}")]
    IsFolder { path: String, hint: &'static str },
    /// A file where a folder is required.
    #[error("`{path}` is a file: {hint}")]
    IsFile { path: String, hint: &'static str },
    /// Neither a file nor a folder.
    #[error("`{path}` is {kind}: only regular files can be read and written")]
    Special { path: String, kind: &'static str },
    /// A read-only file.
    #[error("`{path}` is read-only: it is meant to stay as it is")]
    ReadOnly { path: String },
    /// The system refused.
    #[error("can't {attempt} `{path}`")]
    Io { attempt: &'static str, path: String, source: io::Error },
    /// A failure of a single tool; the complete message.
    #[error("{0}")]
    Said(String),
    /// Invalid combination of arguments; nothing was done.
    #[error("{0}")]
    Senseless(String),
    /// The call was cancelled before it was done; nothing was changed.
    #[error("cancelled; nothing was changed")]
    Cancelled,
}

impl Failure {
    pub(crate) fn io(attempt: &'static str, path: &str, source: io::Error) -> Self {
        Self::Io { attempt, path: path.to_owned(), source }
    }

    /// The same, with what of the call it concerns. Nothing of the call was done.
    pub(crate) fn within(self, part: &str) -> Self {
        let said = |text: &str| format!("{part}: {text}\nNo edit was made.");
        match self {
            Self::Said(text) => Self::Said(said(&text)),
            Self::Senseless(text) => Self::Senseless(said(&text)),
            other => other,
        }
    }

    /// The output for the model.
    pub(crate) fn into_output(self) -> ToolOutput {
        let text = chain(&self);
        match self {
            Self::Cancelled => ToolOutput { status: ToolStatus::Cancelled, ..ToolOutput::error(text) },
            Self::Senseless(_) => ToolOutput::rejected(text),
            Self::Outside { .. }
            | Self::Masked { .. }
            | Self::NotFound { .. }
            | Self::TooManyLinks { .. }
            | Self::IsFolder { .. }
            | Self::IsFile { .. }
            | Self::Special { .. }
            | Self::ReadOnly { .. }
            | Self::Io { .. }
            | Self::Said(_) => ToolOutput::error(text),
        }
    }
}

/// The messages of an error and all its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
