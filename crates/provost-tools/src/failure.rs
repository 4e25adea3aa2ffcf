//! Why a tool couldn't do what it was asked, in words that help the model.

use std::io;
use std::path::PathBuf;

use provost_event::ToolStatus;
use provost_harness::ToolOutput;

/// What went wrong in a call. `asked` and `path` are as the model wrote them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A path that leads out of the workspace.
    #[error("`{asked}` is outside of the workspace `{}`: use a path inside it", workspace.display())]
    Outside { asked: String, workspace: PathBuf },
    /// A path that leads nowhere.
    #[error("`{asked}` doesn't exist{hint}")]
    NotFound { asked: String, hint: String },
    /// Links that lead to each other.
    #[error("`{asked}` leads through more than {links_max} symbolic links")]
    TooManyLinks { asked: String, links_max: usize },
    /// A folder where a file is needed.
    #[error("`{path}` is a folder{hint}")]
    IsFolder { path: String, hint: &'static str },
    /// A file where a folder is needed.
    #[error("`{path}` is a file: {hint}")]
    IsFile { path: String, hint: &'static str },
    /// Something that is neither file nor folder.
    #[error("`{path}` is {kind}: only regular files can be read and written")]
    Special { path: String, kind: &'static str },
    /// A file that nobody may write to.
    #[error("`{path}` is read-only: somebody meant it to stay as it is")]
    ReadOnly { path: String },
    /// The system refused.
    #[error("can't {attempt} `{path}`")]
    Io { attempt: &'static str, path: String, source: io::Error },
    /// What only one tool can meet, said in full.
    #[error("{0}")]
    Said(String),
    /// Arguments that make no sense together; nothing was done.
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

    /// What the model is told.
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

/// An error's words and those of all its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
