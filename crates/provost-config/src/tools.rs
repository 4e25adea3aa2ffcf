//! `[tools]`: what the built-in tools of native agents reach.

use std::path::{Path, PathBuf};

use crate::Settings;
use crate::declare::{Kind, Setting, SettingDefault};
use crate::sandbox::home_folder;
use crate::value::variable_name;

/// What `[tools]` is for.
pub(crate) const TOOLS_WORDS: &str = "What the built-in tools of agents can reach besides the workspace.";

const HOME: &str = "~/";

/// What the built-in tools reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSettings {
    /// Folders besides the workspace, as they were written.
    pub roots: Vec<String>,
    /// Variables that commands get besides, by name.
    pub env: Vec<String>,
    /// Estimated tokens of the tools of MCP servers above which models find them by searching.
    pub search_above: u64,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self { roots: Vec::new(), env: Vec::new(), search_above: 6_000 }
    }
}

impl ToolSettings {
    /// The folders, absolute, for an agent that works in `workspace`. Where links lead to a folder, the folder itself
    /// is added: the agent may name either.
    #[must_use]
    pub fn roots_of(&self, workspace: &Path) -> Vec<PathBuf> {
        let home = home_folder().unwrap_or_default();
        let written = self.roots.iter().map(|root| match root.strip_prefix(HOME) {
            Some(rest) => home.join(rest),
            None => workspace.join(root),
        });
        let mut roots: Vec<PathBuf> = Vec::new();
        for root in written {
            for path in [root.canonicalize().ok(), Some(root)].into_iter().flatten() {
                if path.is_absolute() && !roots.contains(&path) {
                    roots.push(path);
                }
            }
        }
        roots
    }
}

/// The settings of the table.
pub(crate) const TOOLS: &[Setting<Settings>] = &[
    Setting {
        kind: Kind::List(|s, root| {
            if root.trim().is_empty() {
                return Err("must not be empty".to_owned());
            }
            s.tools.roots.push(root);
            Ok(())
        }),
        default: SettingDefault::Unset("none"),
        example: r#"["../shared", "~/src/library", "/usr/include"]"#,
        words: "Folders that `read_file`, `search`, `list_dir`, `write_file` and `edit_file` reach besides the \
                workspace, under the same permissions. Absolute, below `~/`, or relative to the workspace. \
                Elsewhere, reading needs a permission with the path, such as `read_file(/etc/hosts)`, or approval; \
                files with credentials are never reached. The lists of all files are merged; a project's file that \
                names one must be trusted first.",
        ..tools("roots")
    },
    Setting {
        kind: Kind::List(|s, name| {
            s.tools.env.push(variable_name(name)?);
            Ok(())
        }),
        default: SettingDefault::Unset("none besides those that any command inherits"),
        example: r#"["NPM_TOKEN"]"#,
        words: "Further variables for commands of `shell` and `terminal`, by name: one that looks like a secret, \
                or that they wouldn't inherit. The lists of all files are merged; a project's file that names one \
                must be trusted first.",
        ..tools("env")
    },
    Setting {
        kind: Kind::Count { min: 0, max: 1_000_000_000, put: |s, n| s.tools.search_above = n },
        default: SettingDefault::Is("6_000"),
        example: "0",
        words: "Estimated tokens of the tools of MCP servers above which models see only the names of these tools \
                and `tool_search`, which loads the tools that they search for. 0: always.",
        ..tools("search_above")
    },
];

const fn tools(name: &'static str) -> Setting<Settings> {
    Setting::declared("tools", name)
}
