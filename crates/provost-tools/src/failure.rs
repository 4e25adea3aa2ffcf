//! Why a tool failed, in messages that help the model.

use std::io;
use std::path::PathBuf;

use provost_event::ToolStatus;
use provost_harness::ToolOutput;

/// The failure of a call. `asked` and `path` are as the model wrote them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A path outside of the workspace.
    #[error("`{asked}` is outside of the workspace `{}`: use a path inside it", workspace.display())]
    Outside { asked: String, workspace: PathBuf },
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

    /// The output for the model.
    pub(crate) fn into_output(self) -> ToolOutput {
        let text = chain(&self);
        match self {
            Self::Cancelled => ToolOutput { status: ToolStatus::Cancelled, ..ToolOutput::error(text) },
            Self::Senseless(_) => ToolOutput::rejected(text),
            Self::Outside { .. }
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
