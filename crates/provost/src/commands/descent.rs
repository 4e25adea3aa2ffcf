//! What the programs of a run may not do: act on runs.

use provost_event::RunId;
use provost_process::Descent;

use crate::cli::{Command, FlowCommand, GoalCommand, ModelsArgs, ModelsCommand};
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
    pub(super) const fn of(command: &Command) -> Self {
        match command {
            Command::Run(_) => Self::Works("run"),
            Command::Flow(FlowCommand::Run(_)) => Self::Works("flow run"),
            Command::Exec(_) => Self::Works("exec"),
            Command::Fork(_) => Self::Works("fork"),
            Command::Resume(_) => Self::Works("resume"),
            Command::Goal(GoalCommand::Resume(_)) => Self::Works("goal resume"),
            Command::Goal(GoalCommand::Pause(_)) => Self::Acts("goal pause"),
            Command::Goal(GoalCommand::Clear(_)) => Self::Acts("goal clear"),
            Command::Attach(_) => Self::Acts("attach"),
            Command::Approve(_) => Self::Acts("approve"),
            Command::Deny(_) => Self::Acts("deny"),
            Command::Say(_) => Self::Acts("say"),
            Command::Pause(_) => Self::Acts("pause"),
            Command::Cancel(_) => Self::Acts("cancel"),
            Command::Reprioritize(_) => Self::Acts("reprioritize"),
            Command::Import(_) => Self::Acts("import"),
            Command::Prune(_) => Self::Acts("prune"),
            Command::Doctor(args) if args.acknowledge => Self::Acts("doctor --acknowledge"),
            // They change prices and settings, or spend outside of every budget.
            Command::Models(ModelsArgs {
                command: Some(ModelsCommand::Update { dry_run: false, .. }),
                ..
            }) => Self::Acts("models update"),
            Command::Models(ModelsArgs { command: Some(ModelsCommand::Check { .. }), .. }) => {
                Self::Acts("models check")
            }
            Command::Init(_) => Self::Acts("init"),
            Command::Trust(args) if args.list => Self::Looks,
            Command::Trust(_) => Self::Acts("trust"),
            Command::Flow(FlowCommand::Check(_))
            | Command::Goal(GoalCommand::Show(_))
            | Command::Ps(_)
            | Command::Cost(_)
            | Command::Replay(_)
            | Command::Profile(_)
            | Command::Approvals(_)
            | Command::Show(_)
            | Command::Explain(_)
            | Command::Logs(_)
            | Command::Export(_)
            | Command::Backup(_)
            | Command::Doctor(_)
            | Command::Models(_)
            | Command::Check(_)
            | Command::Completions { .. }
            | Command::Man => Self::Looks,
        }
    }

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
