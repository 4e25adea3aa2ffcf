//! The caches of package managers: read as the user has them, written to a private layer above.

use std::path::{Path, PathBuf};

use crate::Places;

/// A cache of the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// The variable that names another folder for it.
    pub variable: &'static str,
    /// The user's folder, if it is there; else where a private one is.
    pub folder: PathBuf,
    /// Whether the user's folder is there.
    pub is_there: bool,
    /// Where what is written is kept, for this workspace.
    pub layer: PathBuf,
}

/// The variable of each cache, and its folder below the home folder.
const CACHES: &[(&str, &str)] = &[
    ("CARGO_HOME", ".cargo"),
    ("npm_config_cache", ".npm"),
    ("XDG_CACHE_HOME", ".cache"),
    ("GOPATH", "go"),
    ("GRADLE_USER_HOME", ".gradle"),
    ("PNPM_HOME", ".local/share/pnpm"),
];

/// The folder with what is kept of the boxes of a workspace.
pub(crate) fn layers(places: &Places, workspace: &Path) -> PathBuf {
    let key = blake3::hash(workspace.as_os_str().as_encoded_bytes()).to_hex();
    places.state.join("sandbox").join("caches").join(&key.as_str()[..16])
}

/// The caches for programs in `workspace`.
pub(crate) fn caches(places: &Places, workspace: &Path) -> Vec<Cache> {
    let Some(home) = &places.home else { return Vec::new() };
    let layers = layers(places, workspace);
    let cache = |(variable, name): &(&'static str, &str)| {
        let given = places.variables.get(*variable).map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = given.unwrap_or_else(|| home.join(name));
        let layer = layers.join(variable.to_lowercase());
        match folder.canonicalize() {
            Ok(folder) if folder.is_dir() => Cache { variable, folder, is_there: true, layer },
            _ => Cache { variable, folder: layer.join("upper"), is_there: false, layer },
        }
    };
    let meets = |cache: &Cache| cache.folder.starts_with(workspace) || workspace.starts_with(&cache.folder);
    CACHES.iter().map(cache).filter(|cache| !meets(cache)).collect()
}
