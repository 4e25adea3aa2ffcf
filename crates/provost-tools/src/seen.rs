//! Which files an agent has read or written, and as they were then: it is told when it overwrites others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cap_std::fs::Metadata;
use provost_event::{ActorKey, SessionId};
use provost_harness::ToolContext;

/// Maximum files remembered of a session; of more nothing is said.
const FILES_MAX: usize = 10_000;

/// Maximum pieces of the log that are looked through for a file's name.
const PAGES_MAX: usize = 16;

/// The files that agents have read or written in this process. Clones share them: file tools that have the same know of
/// each other's calls.
#[derive(Debug, Clone, Default)]
pub struct FilesSeen(Arc<Mutex<HashMap<SessionId, HashMap<PathBuf, Version>>>>);

/// What tells whether a file has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    bytes: u64,
    modified: Option<std::time::SystemTime>,
}

impl Version {
    fn of(metadata: &Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            modified: metadata.modified().ok().map(cap_std::time::SystemTime::into_std),
        }
    }
}

/// What an agent knows of a file that it overwrites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    AsItIs,
    AsItWas,
    NotAtAll,
}

/// The files of one session.
#[derive(Debug, Clone)]
pub(crate) struct SeenBy {
    files: FilesSeen,
    session: Option<SessionId>,
}

impl FilesSeen {
    pub(crate) fn by(&self, context: &ToolContext) -> SeenBy {
        let session = match context.effect.actor {
            ActorKey::Session(session) => Some(session),
            ActorKey::Run(_) => None,
        };
        SeenBy { files: self.clone(), session }
    }

    pub(crate) fn forget(&self, session: SessionId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }
}

impl SeenBy {
    /// The agent knows the file as it is now.
    pub(crate) fn note(&self, path: &Path, metadata: &Metadata) {
        let Some(session) = self.session else { return };
        let mut all = self.files.0.lock().unwrap_or_else(PoisonError::into_inner);
        let files = all.entry(session).or_default();
        if files.len() < FILES_MAX || files.contains_key(path) {
            files.insert(path.to_owned(), Version::of(metadata));
        }
    }

    pub(crate) fn known(&self, path: &Path, metadata: &Metadata) -> Known {
        let Some(session) = self.session else { return Known::AsItIs };
        let all = self.files.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get(&session).and_then(|files| files.get(path)) {
            Some(version) if *version == Version::of(metadata) => Known::AsItIs,
            Some(_) => Known::AsItWas,
            None => Known::NotAtAll,
        }
    }
}

/// Whether a call of the agent before this one names the file, as far as its log was looked through; in doubt, yes.
pub(crate) async fn is_named_before(path: &str, context: &ToolContext) -> bool {
    let Some(name) = Path::new(path).file_name().and_then(|name| name.to_str()) else { return true };
    let mut until = context.effect.seq;
    for _ in 0..PAGES_MAX {
        let Ok(page) = context.log.before(until).await else { return true };
        let mut said = page.shown.iter().flat_map(provost_harness::LogItem::said);
        if said.any(|said| said.tool.is_some() && said.text.contains(name)) {
            return true;
        }
        if page.is_first() {
            return false;
        }
        until = page.from;
    }
    true
}
