//! What the programs of a run may not do: act on runs.

use provost_event::RunId;
use provost_process::Descent;

use crate::exit::Refusal;
use crate::output::tell;

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// It only reads: it changes neither a run nor what runs may do.
    Looks,
    /// It acts on runs, or on what they may do; by this name.
    Acts(&'static str),
    /// It works on a run itself, by this name: all processes started from then on are started by the run.
    Works(&'static str),
}

impl Act {
    /// Refuses to what a run has started (its tools, hooks, external agents, and what these have started) what
    /// only a person, or a program of theirs, may do.
    ///
    /// # Errors
    /// [`Refusal`], which names the run where that is known.
    pub(super) fn allowed(self) -> Result<(), Refusal> {
        let name = match self {
            Self::Looks => return Ok(()),
            Self::Acts(name) | Self::Works(name) => name,
        };
        let Some(descent) = provost_process::descent() else {
            if let Self::Works(_) = self {
                mark(None);
            }
            return Ok(());
        };
        let refused =
            |by: &str| format!("provost {name}: this was started by {by}, whose programs can't act on runs");
        Err(match descent {
            Descent::Of(bits) => {
                let by = format!("run {}", RunId::from_entropy(bits));
                Refusal::new(refused(&by), "do it in a terminal of your own; ps, show and logs work here too")
            }
            Descent::Unnamed => Refusal::new(
                refused("a run"),
                "do it in a terminal of your own; ps, show and logs work here too",
            ),
            Descent::Lowered => Refusal::new(
                refused("a run, as the limit of file locks says"),
                "do it in a terminal of your own, where `ulimit -Hx` says unlimited",
            ),
        })
    }
}

/// Marks all processes that this process starts from now on as started by a run.
pub(crate) fn mark(run: Option<RunId>) {
    if let Err(error) = provost_process::mark_descendants(run.map(RunId::bits)) {
        tell(&format!("warning: what the run starts isn't kept from acting on runs: {error}"));
    }
}
