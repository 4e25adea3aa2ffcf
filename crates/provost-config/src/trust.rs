//! Trust: whether the user has agreed to what a project's files request, by their exact content.

mod store;

use std::fmt::Write as _;

use provost_event::Timestamp;

use crate::FILE_NAME;
use crate::errors::ConfigError;
use crate::project::{Project, ProjectRequest};
pub use store::{TrustStore, Trusted, TrustedFile};

/// The trust in a project.
#[derive(Debug, PartialEq, Eq)]
pub enum TrustState {
    /// Its files request nothing that needs consent.
    NotNeeded,
    /// The user has agreed to exactly this.
    Trusted {
        /// When.
        at: Timestamp,
    },
    /// The user hasn't.
    Needed(Needed),
}

/// What the user would agree to.
#[derive(Debug, PartialEq, Eq)]
pub struct Needed {
    /// What the files request, each with whether it is new since the user agreed to something there.
    pub requests: Vec<(ProjectRequest, bool)>,
    /// What they requested then and no longer do.
    pub gone: Vec<(String, String)>,
    /// What the files have that isn't in force, the guards first.
    pub skipped: Vec<String>,
    /// The files that aren't as they were, or weren't there.
    pub changed: Vec<(String, FileChange)>,
    /// Whether the user agreed to something there.
    pub is_change: bool,
}

/// How a file isn't as the user agreed to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChange {
    /// It has other bytes.
    Changed,
    /// It wasn't there.
    New,
    /// It isn't there, or can't be read.
    Gone,
}

impl FileChange {
    /// The difference in a word or two.
    const fn words(self) -> &'static str {
        match self {
            Self::Changed => "has changed",
            Self::New => "is new",
            Self::Gone => "isn't there any more, or can't be read",
        }
    }
}

/// The trust in `project`, by what is kept in `store`.
///
/// # Errors
/// When that can't be read.
pub fn trust_in(store: &TrustStore, project: &Project) -> Result<TrustState, ConfigError> {
    let Some(trusted) = store.all()?.remove(&project.folder) else {
        return Ok(match project.requests.is_empty() {
            true => TrustState::NotNeeded,
            false => TrustState::Needed(compare(project, &Trusted::default())),
        });
    };
    let needed = compare(project, &trusted);
    // A file that takes back what it requested may take a guard back.
    if !needed.changed.is_empty() {
        return Ok(TrustState::Needed(needed));
    }
    Ok(match project.requests.is_empty() {
        true => TrustState::NotNeeded,
        false => TrustState::Trusted { at: trusted.at },
    })
}

/// The files that aren't as the user agreed to them, with what is different. A new one of the project's own that requests
/// nothing is none.
fn changed(project: &Project, trusted: &Trusted) -> Vec<(String, FileChange)> {
    let read = project.files.iter().filter_map(|file| match trusted.files.get(&file.name) {
        Some(known) if known.blake3 == file.hash => None,
        Some(_) => Some((file.name.clone(), FileChange::Changed)),
        None if project.requests.is_empty() && file.name == FILE_NAME => None,
        None => Some((file.name.clone(), FileChange::New)),
    });
    let lacking = trusted.files.keys().filter(|name| project.lacks(name));
    read.chain(lacking.map(|name| (name.clone(), FileChange::Gone))).collect()
}

fn compare(project: &Project, trusted: &Trusted) -> Needed {
    let is_known = |request: &ProjectRequest| {
        let before =
            trusted.files.get(&request.file).map(|file| file.requests.as_slice()).unwrap_or_default();
        before.contains(&pair(request))
    };
    let requests = project.requests.iter().map(|request| (request.clone(), !is_known(request)));
    let is_there = |file: &str, pair_before: &(String, String)| {
        project.requests.iter().any(|request| request.file == file && pair(request) == *pair_before)
    };
    let read_now = |name: &str| project.files.iter().any(|file| file.name == name);
    let before = trusted
        .files
        .iter()
        .filter(|(name, _)| read_now(name) || project.lacks(name))
        .flat_map(|(name, file)| file.requests.iter().map(move |request| (name, request)));
    let gone = before.filter(|(name, request)| !is_there(name, request)).map(|(_, request)| request.clone());
    Needed {
        requests: requests.collect(),
        gone: gone.collect(),
        skipped: project.skipped.clone(),
        changed: changed(project, trusted),
        is_change: !trusted.files.is_empty(),
    }
}

fn pair(request: &ProjectRequest) -> (String, String) {
    (request.what.clone(), request.body.clone())
}

/// Records that the user has agreed to what `project` requests, as it was read.
///
/// # Errors
/// When it can't be written.
pub fn grant(store: &TrustStore, project: &Project, at: Timestamp) -> Result<(), ConfigError> {
    store.change(|projects| {
        let trusted = projects.entry(project.folder.clone()).or_default();
        trusted.at = at;
        trusted.files.retain(|name, _| !project.lacks(name));
        for file in &project.files {
            let requests =
                project.requests.iter().filter(|request| request.file == file.name).map(pair).collect();
            trusted.files.insert(file.name.clone(), TrustedFile { blake3: file.hash.clone(), requests });
        }
        if trusted.files.is_empty() {
            projects.remove(&project.folder);
        }
    })
}

impl Needed {
    /// All of it in lines, with nothing left out or hidden.
    pub fn listed(&self) -> String {
        let mut out = String::new();
        for (name, change) in self.changed.iter().filter(|_| self.is_change) {
            let _ = writeln!(out, "  {} {}", revealed(name), change.words());
        }
        for skipped in &self.skipped {
            let _ = writeln!(out, "  not in force: {}", revealed(skipped));
        }
        for (request, is_new) in &self.requests {
            let mark = if *is_new && self.is_change { "new: " } else { "" };
            // Writing to a String can't fail, here and below.
            let _ = write!(
                out,
                "  {}: {mark}{}\n{}",
                revealed(&request.place),
                revealed(&request.what),
                body(&request.body)
            );
        }
        for (what, text) in &self.gone {
            let _ = write!(out, "  no longer: {}\n{}", revealed(what), body(text));
        }
        out
    }
}

fn body(text: &str) -> String {
    revealed(text).lines().map(|line| format!("      {line}\n")).collect()
}

/// `text` with escapes, as in source code, for what a terminal wouldn't show or would act on.
fn revealed(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' => c.to_string(),
        _ if c.is_control() || is_invisible(c) => c.escape_default().to_string(),
        _ => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// Characters without a picture of their own, some of which change how others are shown.
const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::revealed;

    #[test]
    fn what_would_not_be_seen_is_written_out() {
        assert_eq!(revealed("ls\u{1b}[8m; evil\u{1b}[0m"), "ls\\u{1b}[8m; evil\\u{1b}[0m");
        assert_eq!(revealed("a\u{202e}b\u{200b}c\rd\te\nf"), "a\\u{202e}b\\u{200b}c\\rd\\te\nf");
        assert_eq!(revealed("grün 漢 🙂"), "grün 漢 🙂");
    }
}
