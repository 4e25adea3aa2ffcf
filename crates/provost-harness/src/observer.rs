//! Observers: they get all events and decide nothing.

use std::sync::Arc;

use async_trait::async_trait;
use provost_event::{ActorKey, ChainContext, Delta, Record, Seq, Timestamp};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// The kind of an event.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum ObserverEventKind {
            $($(#[$doc])* $kind,)*
        }

        impl ObserverEventKind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// The kind's name in traces.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    /// A segment of work on a run started.
    RunStart = "RUN_START",
    /// A segment of work on a run ended: the run is suspended, or has ended.
    RunEnd = "RUN_END",
    /// An agent was started.
    SessionStart = "SESSION_START",
    /// An agent ended.
    SessionEnd = "SESSION_END",
    /// A turn started: its first model call.
    TurnStart = "TURN_START",
    /// A turn is complete.
    TurnEnd = "TURN_END",
    /// A model is called.
    LlmStart = "LLM_START",
    /// A model answered, or its answer was discarded; with its usage.
    LlmEnd = "LLM_END",
    /// A piece of an answer that isn't committed yet.
    LlmDelta = "LLM_DELTA",
    /// A tool call started. A call refused before its start has start and end at once, both with its result.
    ToolStart = "TOOL_START",
    /// A tool call has its result.
    ToolEnd = "TOOL_END",
    /// A hook, the permissions, an approver or a stop hook denied something: once for each denial, never for a
    /// question.
    GuardrailTrip = "GUARDRAIL_TRIP",
    /// An agent was spawned, or its result delivered.
    Handoff = "HANDOFF",
    /// A segment of work on a workflow started, after that of its run; its steps follow.
    FlowStart = "FLOW_START",
    /// A segment of work on a workflow ended, after its steps and before that of its run.
    FlowEnd = "FLOW_END",
    /// A workflow step started: its agent was spawned.
    StepStart = "STEP_START",
    /// An attempt at a workflow step ended, with its result.
    StepEnd = "STEP_END",
    /// An approval was requested or resolved.
    Approval = "APPROVAL",
    /// Budget was reserved or charged, or a limit was reached.
    Budget = "BUDGET",
    /// A conversation was shortened.
    Compaction = "COMPACTION",
    /// An event at an external agent's terminal.
    Terminal = "TERMINAL",
}

/// One event. Shared by all observers, immutable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserverEvent {
    /// Its kind.
    pub kind: ObserverEventKind,
    /// Its time.
    pub at: Timestamp,
    /// The actor it happened to.
    pub actor: ActorKey,
    /// The actor's position among the agents of the run.
    pub chain: ChainContext,
    /// The entry of its parent's log with the call that spawned it; absent for the root, and for the run as a
    /// whole.
    pub call: Option<Seq>,
    /// Its content.
    pub body: ObservedBody,
}

/// The content of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObservedBody {
    /// A committed entry.
    Entry(Arc<Record>),
    /// A piece of an answer that isn't committed yet.
    Delta(Arc<Delta>),
}

/// Gets the events of one run, in order, on a thread of its own.
///
/// That thread drives a runtime of its own, with timers and I/O, so that a method may await and may block; no
/// other task waits for it. A panic, an error and a hang are logged and counted, and the run continues. Events
/// that arrive faster than they are handled are queued; when the queue is full the oldest is dropped.
///
/// Entries of all logs of the run arrive in the order in which they were committed
/// ([`Log::order`](crate::Log::order)): each after those that it follows from. Pieces of an answer arrive in their
/// order, after the entry of their model call and before the answer.
#[async_trait]
pub trait Observer: Send {
    /// Handles an event.
    ///
    /// # Errors
    /// A message for the log; later events still arrive.
    async fn observe(&mut self, event: &Arc<ObserverEvent>) -> Result<(), ObserverError>;

    /// Reports that `count` events were dropped before the next one, or before the end.
    async fn lost(&mut self, count: u64) {
        let _ = count;
    }

    /// Called after one or more events when the queue is empty: flush buffered output here.
    ///
    /// # Errors
    /// A message for the log.
    async fn idle(&mut self) -> Result<(), ObserverError> {
        Ok(())
    }

    /// Called at the end: the run is suspended, has ended, or is released.
    ///
    /// # Errors
    /// A message for the log.
    async fn finish(&mut self) -> Result<(), ObserverError> {
        Ok(())
    }
}

/// Why an observer couldn't handle an event.
pub type ObserverError = Box<dyn std::error::Error + Send + Sync>;

/// An observer that is a function.
pub fn observe_with<F>(observe: F) -> Box<dyn Observer>
where
    F: FnMut(&Arc<ObserverEvent>) -> Result<(), ObserverError> + Send + 'static,
{
    Box::new(Function(observe))
}

struct Function<F>(F);

#[async_trait]
impl<F> Observer for Function<F>
where
    F: FnMut(&Arc<ObserverEvent>) -> Result<(), ObserverError> + Send,
{
    async fn observe(&mut self, event: &Arc<ObserverEvent>) -> Result<(), ObserverError> {
        (self.0)(event)
    }
}
