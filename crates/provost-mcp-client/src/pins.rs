//! What the user has agreed to of a server: how it is started, and what its tools are.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use provost_event::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Lifecycle, ToolDefinition};

const VERSION: u32 = 1;
const FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// What the user has agreed to of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pins {
    version: u32,
    /// The server.
    pub server: String,
    /// When the user agreed.
    pub at: Timestamp,
    /// How it is reached, as it was written.
    pub written: Vec<String>,
    /// What it calls itself and its version: shown, and no condition.
    #[serde(default)]
    pub calls_itself: String,
    /// The way of connecting that it understood.
    pub lifecycle: Lifecycle,
    /// Its tools.
    pub tools: Vec<ToolDefinition>,
}

impl Pins {
    /// What the user agrees to now.
    #[must_use]
    pub fn new(server: &str, written: &[String], tools: Vec<ToolDefinition>) -> Self {
        Self {
            version: VERSION,
            server: server.to_owned(),
            at: Timestamp(0),
            written: written.to_vec(),
            calls_itself: String::new(),
            lifecycle: Lifecycle::Discover,
            tools,
        }
    }

    /// The same, agreed to at this time.
    #[must_use]
    pub fn agreed_at(self, at: Timestamp) -> Self {
        Self { at, ..self }
    }

    /// The tool `name`, by the server's name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// A fingerprint of all of it but the time and what the server calls itself: the same for the same.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for text in [&self.server].into_iter().chain(&self.written) {
            hasher.update(text.as_bytes());
            hasher.update(b"\0");
        }
        for tool in &self.tools {
            hasher.update(serde_json::to_string(tool).unwrap_or_default().as_bytes());
            hasher.update(b"\0");
        }
        hasher.finalize().to_hex().chars().take(16).collect()
    }
}

/// What can go wrong with the file of a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PinError {
    /// It can't be read.
    #[error("{} can't be read; remove it, and agree to the server again with `provost mcp trust`", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It can't be written.
    #[error("{} can't be written", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The file with what the user has agreed to of one server.
#[derive(Debug, Clone)]
pub struct PinsFile(PathBuf);

impl PinsFile {
    /// The file at this path; it needn't exist.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// The name of the file of a server in a folder: of `server` as the settings in `scope` have it.
    #[must_use]
    pub fn of(folder: &Path, server: &str, scope: &str) -> Self {
        let hash = blake3::hash(scope.as_bytes()).to_hex();
        Self(folder.join(format!("{server}-{}.json", hash.chars().take(12).collect::<String>())))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What the user has agreed to; `None` for nothing.
    ///
    /// # Errors
    /// When the file is there and can't be read.
    pub fn read(&self) -> Result<Option<Pins>, PinError> {
        let cant = |source: io::Error| PinError::Read { file: self.0.clone(), source };
        match std::fs::metadata(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(cant(error)),
            Ok(facts) if facts.len() > FILE_BYTES_MAX => {
                return Err(cant(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes"))));
            }
            Ok(_) => {}
        }
        let text = std::fs::read_to_string(&self.0).map_err(cant)?;
        let pins = serde_json::from_str::<Pins>(&text).map_err(|error| cant(error.into()))?;
        if pins.version != VERSION {
            let why = format!("it is of version {}, which this program doesn't know", pins.version);
            return Err(cant(io::Error::other(why)));
        }
        Ok(Some(pins))
    }

    /// Keeps what the user has agreed to: the file has the old or all of the new.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn write(&self, pins: &Pins) -> Result<(), PinError> {
        let cant = |source: io::Error| PinError::Write { file: self.0.clone(), source };
        let folder = self.0.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(cant)?;
        let text = serde_json::to_string_pretty(pins).map_err(|error| cant(error.into()))?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(cant)?;
        file.write_all(text.as_bytes()).map_err(cant)?;
        file.persist(&self.0).map_err(|error| cant(error.error))?;
        Ok(())
    }

    /// Forgets what the user has agreed to. Returns whether there was something.
    ///
    /// # Errors
    /// When the file can't be removed.
    pub fn remove(&self) -> Result<bool, PinError> {
        match std::fs::remove_file(&self.0) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(PinError::Write { file: self.0.clone(), source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Pins, PinsFile};
    use crate::ToolDefinition;

    fn tool(description: &str) -> ToolDefinition {
        ToolDefinition {
            name: "t".to_owned(),
            title: None,
            description: description.to_owned(),
            input_schema: json!({ "type": "object" }),
            output_schema: None,
            annotations: Value::Null,
        }
    }

    #[test]
    fn what_was_agreed_to_is_kept_whole_and_forgotten_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = PinsFile::of(&folder.path().join("mcp"), "git", "user");
        assert_eq!(file.read().unwrap(), None);
        let pins = Pins::new("git", &["command: git-mcp".to_owned()], vec![tool("a")]);
        file.write(&pins).unwrap();
        assert_eq!(file.read().unwrap().as_ref(), Some(&pins));
        assert_ne!(file.path(), PinsFile::of(&folder.path().join("mcp"), "git", "/project").path());
        assert!(file.remove().unwrap() && !file.remove().unwrap());
        std::fs::write(file.path(), "{}").unwrap();
        let error = file.read().unwrap_err().to_string();
        assert!(error.contains("agree to the server again"), "{error}");
    }

    #[test]
    fn a_fingerprint_tells_every_part_apart() {
        let of = |written: &str, description: &str| {
            Pins::new("git", &[written.to_owned()], vec![tool(description)]).fingerprint()
        };
        assert_eq!(of("a", "b"), of("a", "b"));
        assert_ne!(of("a", "b"), of("a", "c"));
        assert_ne!(of("a", "b"), of("x", "b"));
        assert_eq!(of("a", "b").len(), 16);
    }
}
