//! What can be imported, and in which files it stands.

use std::path::{Path, PathBuf};

use crate::errors::Source;

/// The files of a `.claude` folder that have hooks, the weaker first.
pub(super) const CLAUDE_FILES: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];
/// The files of a `.codex` folder that have hooks.
pub(super) const CODEX_FILES: [&str; 2] = [".codex/hooks.json", ".codex/config.toml"];
const PLUGIN: &str = "claude-plugin:";

/// Whose hooks are imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImportSource {
    /// Those of the project's `.claude` folder.
    Claude,
    /// Those of the user's own `.claude` folder.
    ClaudeUser,
    /// Those of the plugin in this folder.
    ClaudePlugin(String),
    /// Those of the project's `.codex` folder.
    Codex,
}

impl ImportSource {
    /// Reads a word of the settings.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(word: &str) -> Result<Self, String> {
        match word {
            "claude" => Ok(Self::Claude),
            "claude-user" => Ok(Self::ClaudeUser),
            "codex" => Ok(Self::Codex),
            other => match other.strip_prefix(PLUGIN).filter(|folder| !folder.trim().is_empty()) {
                Some(folder) => Ok(Self::ClaudePlugin(folder.to_owned())),
                None => Err(format!(
                    "must be one of claude, claude-user, claude-plugin:FOLDER, codex (is `{other}`)"
                )),
            },
        }
    }

    /// The word that names it.
    pub(crate) fn word(&self) -> String {
        match self {
            Self::Claude => "claude".to_owned(),
            Self::ClaudeUser => "claude-user".to_owned(),
            Self::ClaudePlugin(folder) => format!("{PLUGIN}{folder}"),
            Self::Codex => "codex".to_owned(),
        }
    }
}

/// An import, and where it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) of: ImportSource,
    /// Where; absent for an item of a list, which the list's source tells.
    pub(crate) source: Option<Source>,
}

/// The nearest folder, from `start` upwards, that has one of the project files of other programs. The user's home
/// isn't one, unless it is `start`: what stands there counts for the user.
pub(crate) fn project_folder(start: &Path) -> Option<PathBuf> {
    let home = etcetera::home_dir().ok();
    let has_any = |folder: &&Path| {
        let is_home = *folder != start && home.as_deref() == Some(*folder);
        let names = CLAUDE_FILES.iter().chain(&CODEX_FILES);
        !is_home && names.into_iter().any(|name| folder.join(name).is_file())
    };
    start.ancestors().find(has_any).map(Path::to_owned)
}
