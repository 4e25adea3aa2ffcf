//! The file that a question is about, as permissions must see it: where the path leads on this machine.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use provost_event::{AskKind, TerminalAsk};
use provost_harness::{Exchange, MaskedPaths};
use tokio::task::spawn_blocking;

use crate::drivers::DriversOptions;

/// Where the paths lead that a program names.
#[derive(Debug, Clone)]
pub(crate) struct SubjectReach {
    workspace: PathBuf,
    /// The home folder of the program.
    home: Option<PathBuf>,
    masked: Arc<MaskedPaths>,
}

impl SubjectReach {
    /// For the program of `exchange`.
    pub(crate) fn of(options: &DriversOptions, exchange: &Exchange<'_>) -> Self {
        let own = exchange.policy.env.get("HOME");
        let given = || options.env.iter().find(|(name, _)| name == "HOME").map(|(_, value)| value);
        Self {
            workspace: exchange.workspace.to_owned(),
            home: own.or_else(given).map(PathBuf::from).filter(|home| home.is_absolute()),
            masked: Arc::clone(&options.masked),
        }
    }

    /// `ask` with its paths as they lead. It has no subject if no pattern may allow it: a masked file, a link, a path that
    /// can't be followed, one of several that leads out of the workspace.
    ///
    /// # Cancellation
    /// Reads links only.
    pub(crate) async fn placed(&self, ask: TerminalAsk) -> TerminalAsk {
        let kinds = [AskKind::Read, AskKind::Edit, AskKind::Edits];
        let Some(written) = ask.subject.clone().filter(|_| kinds.contains(&ask.kind)) else { return ask };
        let reach = self.clone();
        let paths = written.clone();
        let are_several = ask.kind == AskKind::Edits;
        let placed = move || if are_several { reach.all_below(&paths) } else { reach.subject(&paths) };
        let subject = spawn_blocking(placed).await.ok().flatten();
        // Who is asked instead of a rule must see what it is about.
        let written = written.replace('\n', ", ");
        let is_unnamed = subject.is_none() && !ask.question.contains(&written);
        let question = if is_unnamed { format!("{}: {written}", ask.question) } else { ask.question };
        TerminalAsk { subject, question, ..ask }
    }

    /// These paths, one a line, as they lead, if all of them lead into the workspace.
    fn all_below(&self, paths: &str) -> Option<String> {
        let all = paths.lines().map(|path| self.below(path)).collect::<Option<Vec<_>>>()?;
        Some(all.join("\n"))
    }

    /// As [`subject`](Self::subject), if it leads into the workspace.
    fn below(&self, text: &str) -> Option<String> {
        let path = self.subject(text)?;
        let whole = normalized(&self.workspace.join(&path));
        let is_below = |home: &Path| whole.starts_with(home);
        (is_below(&normalized(&self.workspace)) || is_below(&real_of(&self.workspace))).then_some(path)
    }

    fn subject(&self, text: &str) -> Option<String> {
        let written = self.absolute(text)?;
        let named = normalized(&written);
        let real = followed(&written).ok()?;
        let home = real_of(&self.workspace);
        let is_masked = |path: &Path, from: &Path| self.masked.hides(path, from);
        if is_masked(&named, &self.workspace) || is_masked(&real, &home) {
            return None;
        }
        let named_below = named.strip_prefix(normalized(&self.workspace)).ok();
        let real_below = real.strip_prefix(&home).ok();
        match (named_below, real_below) {
            (Some(named), Some(real)) if named == real && !text.starts_with('~') => Some(text.to_owned()),
            // Which of the two is meant, the name or its target, depends on the program.
            _ if written.is_symlink() => None,
            (_, Some(below)) => below.to_str().map(|below| format!("./{below}")),
            (_, None) => real.to_str().map(str::to_owned),
        }
    }

    /// `text` as a path from the root, as the program means it: `~` is its home folder.
    fn absolute(&self, text: &str) -> Option<PathBuf> {
        match text.strip_prefix('~') {
            None => Some(self.workspace.join(text)),
            Some("") => self.home.clone(),
            // Also `~name`, which is the home folder of another user.
            Some(rest) => Some(self.home.as_ref()?.join(rest.strip_prefix('/')?.trim_start_matches('/'))),
        }
    }
}

/// The path by its text alone.
fn normalized(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut whole, part| {
        match part {
            Component::ParentDir => _ = whole.pop(),
            Component::CurDir => {}
            part => whole.push(part),
        }
        whole
    })
}

/// The target of `path` by way of all links, as far as it is there; `..` leads out of where a link has led.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = whole.pop(),
            Component::CurDir => {}
            part => whole.push(part),
        }
        match whole.canonicalize() {
            Ok(real) => whole = real,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !whole.is_symlink() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(whole)
}

fn real_of(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
