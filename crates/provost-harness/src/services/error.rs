//! Why something couldn't be done with a service.

use std::io;
use std::path::PathBuf;

use provost_event::RunId;
use provost_process::SpawnError;

/// Why something couldn't be done with a service.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// There is no service of this name.
    #[error("there is no service `{name}`")]
    Unknown {
        /// The name.
        name: String,
    },
    /// A name that no service can have.
    #[error(
        "`{name}` can't be the name of a service: lower-case letters, digits, `-` and `_`, at most 32, a letter first"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A service of this name runs.
    #[error("a service `{name}` runs already (`{command}`, started by run {run})")]
    Taken {
        /// The name.
        name: String,
        /// Its command.
        command: String,
        /// The run that started it.
        run: RunId,
    },
    /// The run has too many services.
    #[error("at most {max} services of a run at once: there are {}", names.join(", "))]
    TooMany {
        /// How many there may be.
        max: usize,
        /// Those that run.
        names: Vec<String>,
    },
    /// A file couldn't be read or written.
    #[error("{} can't be read or written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A record that isn't one.
    #[error("{} is no record of a service", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// This system can't tell a process from a later one with the same id.
    #[error("services aren't possible here: this system doesn't say when a process was started")]
    Unsupported,
    /// Its supervisor couldn't be started.
    #[error("its supervisor could not be started")]
    Supervisor {
        /// Why.
        source: SpawnError,
    },
    /// It was asked to end, and killed, and still runs.
    #[error("the service `{name}` could not be ended and still runs")]
    StillRuns {
        /// Its name.
        name: String,
    },
}
