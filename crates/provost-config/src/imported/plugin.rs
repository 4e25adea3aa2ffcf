//! The hooks of a plugin: in its own file of hooks, in its manifest, or in files that the manifest names.

use std::path::{Path, PathBuf};

use provost_event::HookContract;
use serde_json::Value;

use super::{Found, Import, Read, name_in};
use crate::errors::Problem;
use crate::layers::{Folders, read};
use crate::{Loading, Source};

/// The file that has a plugin's hooks, unless its manifest says otherwise.
const FILE: &str = "hooks/hooks.json";
const MANIFEST: &str = ".claude-plugin/plugin.json";
/// The variables of a plugin's hooks.
const VARIABLES: [&str; 2] = ["CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA"];

/// A plugin in its folder.
pub(super) struct Plugin {
    root: PathBuf,
    /// The `hooks` of its manifest.
    declared: Option<Value>,
}

impl Plugin {
    /// The one in `folder`, which may be relative to the project's.
    pub(super) fn at(project: &Path, folder: &str) -> Self {
        let root = match (folder.strip_prefix("~/"), etcetera::home_dir().ok()) {
            (Some(below), Some(home)) => home.join(below),
            _ => project.join(folder),
        };
        let root = root.canonicalize().unwrap_or(root);
        let manifest = read(&root.join(MANIFEST)).ok();
        let manifest = manifest.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let declared = manifest.and_then(|manifest| manifest.get("hooks").cloned());
        Self { root, declared }
    }

    /// The files that may have its hooks, or say where they are.
    pub(super) fn expected(&self) -> Vec<PathBuf> {
        let always = [FILE, MANIFEST].map(|file| self.root.join(file));
        always.into_iter().chain(self.named().into_iter().map(|name| self.root.join(name))).collect()
    }

    /// The files, in its folder, that its manifest names.
    fn named(&self) -> Vec<String> {
        let names = match &self.declared {
            Some(Value::String(name)) => vec![name.as_str()],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let below =
            |name: &str| name.replace("${CLAUDE_PLUGIN_ROOT}", ".").trim_start_matches("./").to_owned();
        names.into_iter().map(below).filter(|name| name != FILE).collect()
    }

    /// The files with its hooks that are there.
    fn files(&self) -> Vec<PathBuf> {
        let in_manifest = matches!(&self.declared, Some(Value::Object(_))).then(|| MANIFEST.to_owned());
        let names = std::iter::once(FILE.to_owned()).chain(in_manifest).chain(self.named());
        names.map(|name| self.root.join(name)).filter(|path| path.is_file()).collect()
    }

    /// Why it has no hooks.
    fn lack(&self) -> String {
        let root = self.root.display();
        let missing = self.named().into_iter().find(|name| !self.root.join(name).is_file());
        match missing {
            _ if !self.root.is_dir() => format!("there is no folder {root}"),
            Some(name) => format!("there is no `{name}` in {root}, which its manifest names"),
            None => format!("it declares no hooks, neither in {FILE} nor in {MANIFEST} of {root}"),
        }
    }
}

/// The files with the hooks of the plugin in `folder`.
pub(super) fn files(loading: &Loading, import: &Import, folder: &str, folders: &Folders) -> Vec<Found> {
    let plugin = Plugin::at(&loading.project.folder, folder);
    let name = plugin.root.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let data = folders.state.join("plugins").join(name);
    let values = [plugin.root.display().to_string(), data.display().to_string()];
    let variables = VARIABLES.map(str::to_owned).into_iter().zip(values).collect::<Vec<_>>();
    // What the user's own file names needs no further consent, unless it lies in the project.
    let source = source_of(loading, import);
    let is_projects = source.is_projects() || plugin.root.starts_with(&loading.project.folder);
    let found = |path: PathBuf| Found {
        name: name_in(&loading.project.folder, &path),
        path,
        is_projects,
        contract: HookContract::Claude,
        plugin: variables.clone(),
    };
    plugin.files().into_iter().map(found).collect()
}

/// Refuses a plugin that has no hooks, on which the settings count. A manifest that names files is trusted with them.
pub(super) fn require_hooks(loading: &mut Loading, import: &Import, folder: &str, files: &[Read]) {
    let plugin = Plugin::at(&loading.project.folder, folder);
    let has_any = |read: &Read| !read.imported.hooks.is_empty() || !read.imported.skipped.is_empty();
    if files.iter().any(|read| read.found.is_projects) && !plugin.named().is_empty() {
        let manifest = plugin.root.join(MANIFEST);
        if let Ok(text) = read(&manifest) {
            let name = name_in(&loading.project.folder, &manifest);
            loading.project.has_read(&name, &text);
        }
    }
    let is_missing = plugin.named().iter().any(|name| !plugin.root.join(name).is_file());
    if files.iter().any(has_any) && !is_missing {
        return;
    }
    loading.problems.push(Problem {
        source: source_of(loading, import),
        key: "hooks.import".to_owned(),
        what: format!("`{}` has no hooks: {}", import.of.word(), plugin.lack()),
        remedy: "correct the path, or leave it out".to_owned(),
    });
}

fn source_of(loading: &Loading, import: &Import) -> Source {
    let word = import.of.word();
    import.source.clone().unwrap_or_else(|| loading.source_of_item("hooks.import", &word))
}
