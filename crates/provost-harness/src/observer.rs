//! Observers: who may see everything and do nothing.

use std::sync::Arc;

use async_trait::async_trait;
use provost_event::{ActorKey, ChainContext, Delta, Record, Seq, Timestamp};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// What happened.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ObservedKind {
            $($(#[$doc])* $kind,)*
        }

        impl ObservedKind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// The kind's name, as traces have it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    /// A run was started.
    RunStart = "RUN_START",
    /// It ended.
    RunEnd = "RUN_END",
    /// An agent was started.
    SessionStart = "SESSION_START",
    /// It ended.
    SessionEnd = "SESSION_END",
    /// A turn begins: its first model call.
    TurnStart = "TURN_START",
    /// It is complete.
    TurnEnd = "TURN_END",
    /// A model is called.
    LlmStart = "LLM_START",
    /// It answered, or its answer was thrown away; with what it consumed.
    LlmEnd = "LLM_END",
    /// A piece of an answer that isn't committed yet.
    LlmDelta = "LLM_DELTA",
    /// A tool call is made.
    ToolStart = "TOOL_START",
    /// It has its result.
    ToolEnd = "TOOL_END",
    /// A hook, the permissions or a stop hook said no.
    GuardrailTrip = "GUARDRAIL_TRIP",
    /// Work is handed to another agent, or its result handed back.
    Handoff = "HANDOFF",
    /// A stretch of work begins: at the start of a run, and after each rest or interruption.
    FlowStart = "FLOW_START",
    /// It ends, in a rest or for good.
    FlowEnd = "FLOW_END",
    /// Somebody is asked whether a tool call may be made, or has answered.
    Approval = "APPROVAL",
    /// Budget was set aside or charged, or a limit was reached.
    Budget = "BUDGET",
    /// A conversation was shortened.
    Compaction = "COMPACTION",
    /// Something happened at an external agent's terminal.
    Terminal = "TERMINAL",
}

/// One thing that happened. Shared by all observers; nobody can change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// What kind of thing.
    pub kind: ObservedKind,
    /// When.
    pub at: Timestamp,
    /// To whom.
    pub actor: ActorKey,
    /// Where that stands among the agents of the run.
    pub chain: ChainContext,
    /// The entry of its parent's log that has the call it works for; absent of the root, and of the run as a whole.
    pub call: Option<Seq>,
    /// What exactly.
    pub body: ObservedBody,
}

/// What exactly happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedBody {
    /// This was committed.
    Entry(Arc<Record>),
    /// This was said and isn't committed yet.
    Delta(Arc<Delta>),
}

/// Sees what happens to one run, in order, on a thread of its own.
///
/// That thread drives a runtime of its own, with timers and I/O, so that a method may await and may block; nobody
/// else waits for it. A panic, an error and a hang are logged and counted, and the run goes on. What comes faster
/// than it is taken in waits in a queue of its own; when that is full the oldest is dropped.
///
/// Entries of one log come in the order of that log, and pieces of an answer in theirs and before the answer. A
/// piece may come before the entry that says that the model was called.
#[async_trait]
pub trait Observer: Send {
    /// Takes in what happened.
    ///
    /// # Errors
    /// Words for the log; it goes on being told.
    async fn observe(&mut self, event: &Arc<Observed>) -> Result<(), ObserverError>;

    /// Is told that `count` events were dropped before the next one, or before the end.
    async fn lost(&mut self, count: u64) {
        let _ = count;
    }

    /// Is told, after one event or several, that no other waits: the time to write what was held back.
    ///
    /// # Errors
    /// Words for the log.
    async fn idle(&mut self) -> Result<(), ObserverError> {
        Ok(())
    }

    /// Is told that nothing more comes: the run rests or has ended, or is given up.
    ///
    /// # Errors
    /// Words for the log.
    async fn finish(&mut self) -> Result<(), ObserverError> {
        Ok(())
    }
}

/// Why an observer couldn't take in what happened.
pub type ObserverError = Box<dyn std::error::Error + Send + Sync>;

/// An observer that is a function.
pub fn observe_with<F>(observe: F) -> Box<dyn Observer>
where
    F: FnMut(&Arc<Observed>) -> Result<(), ObserverError> + Send + 'static,
{
    Box::new(Function(observe))
}

struct Function<F>(F);

#[async_trait]
impl<F> Observer for Function<F>
where
    F: FnMut(&Arc<Observed>) -> Result<(), ObserverError> + Send,
{
    async fn observe(&mut self, event: &Arc<Observed>) -> Result<(), ObserverError> {
        (self.0)(event)
    }
}
