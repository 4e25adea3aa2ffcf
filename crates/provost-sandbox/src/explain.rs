//! What a policy means in a folder, in words.

use std::path::{Path, PathBuf};

use provost_event::{SandboxMode, SandboxNetwork, SandboxPolicy};
use serde::Serialize;

use crate::denial::real;
use crate::{Cover, FileRules, Places};

/// What programs of an agent may read, write and reach, and why.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// The mode.
    pub mode: SandboxMode,
    /// Whether nothing is started where no sandbox is possible.
    pub required: bool,
    /// Where the agent works.
    pub workspace: PathBuf,
    /// What may be written.
    pub write: Vec<PathExplanation>,
    /// What may not be written though it is in what may.
    pub protected: Vec<PathExplanation>,
    /// The only folders that are read; empty: all.
    pub read: Vec<PathBuf>,
    /// What is not read.
    pub masked: Vec<PathBuf>,
    /// What of the network is reached.
    pub network: SandboxNetwork,
    /// The hosts that are reached through the proxy.
    pub hosts: Vec<String>,
    /// What the words of a command that are paths may be done with.
    pub command: Vec<PathExplanation>,
    /// What isn't protected, and why.
    pub gaps: Vec<String>,
}

/// A path and what is true of it.
#[derive(Debug, Clone, Serialize)]
pub struct PathExplanation {
    /// The path.
    pub path: PathBuf,
    /// What may be done with it, and why.
    pub why: String,
}

/// Explains `policy` for an agent in `workspace`, and for the paths among the words of a command.
#[must_use]
pub fn explain(policy: &SandboxPolicy, workspace: &Path, places: &Places, command: &[String]) -> Explanation {
    let rules = FileRules::new(policy, workspace, places);
    let one = |path: &Path, why: &str| PathExplanation { path: path.to_owned(), why: why.to_owned() };
    let is_own = |path: &Path| path == workspace;
    let mut write = vec![one(Path::new("/tmp"), "a folder of the agent's own, removed with its box")];
    let named = |path: &PathBuf| policy.write.iter().any(|other| real(other) == *path);
    write.extend(rules.write.iter().map(|path| {
        let why = match () {
            () if is_own(path) => "the workspace",
            () if named(path) => "sandbox.write",
            () => "the repository's data",
        };
        one(path, why)
    }));
    write.extend(rules.caches.iter().map(|cache| {
        one(
            &cache.folder,
            &format!("a cache ({}): what is written is kept apart, for this workspace", cache.variable),
        )
    }));
    write.extend(rules.private.iter().map(|private| {
        one(&private.place, "isn't there: what commands make there is kept apart, and only they see it")
    }));
    let protected = rules.protected.iter().filter(|protected| protected.cover != Cover::Pinned);
    Explanation {
        mode: policy.mode,
        required: policy.require,
        workspace: workspace.to_owned(),
        write,
        protected: protected.map(|protected| one(&protected.path, "decides what runs later")).collect(),
        read: rules.read_only_from.clone(),
        masked: rules.masked.clone(),
        network: policy.network,
        hosts: policy.allow_hosts.clone(),
        command: parts(command).filter_map(|word| word_explained(word, &rules)).collect(),
        gaps: rules.gaps,
    }
}

/// The words of a command, those of a script and the values of options apart.
fn parts(command: &[String]) -> impl Iterator<Item = &str> {
    let words = command.iter().flat_map(|word| {
        let is_one = !word.contains(ends_word) || Path::new(word).exists();
        let whole = is_one.then_some(word.as_str());
        let split = (!is_one).then(|| word.split(ends_word)).into_iter().flatten();
        whole.into_iter().chain(split)
    });
    words.filter(|word| !word.is_empty())
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || "=&|;<>()\"'`".contains(c)
}

/// What may be done with a word of a command that is a path.
fn word_explained(word: &str, rules: &FileRules) -> Option<PathExplanation> {
    let path = rules.workspace.join(word);
    if !word.contains('/') && !path.exists() {
        return None;
    }
    let path = real(&path);
    let why = match (rules.read_denied(&path), rules.write_denied(&path)) {
        (Some(denied), _) => denied,
        (None, Some(denied)) => format!("may be read; {denied}"),
        (None, None) => "may be read and written".to_owned(),
    };
    Some(PathExplanation { path, why })
}
