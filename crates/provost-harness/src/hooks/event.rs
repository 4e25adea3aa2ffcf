//! The events: one type each, with its input and its actions.

use std::fmt;

use async_trait::async_trait;
use provost_engine::{CallDetails, HookCall, HookCallDetails};
use provost_event::{Entry, HookDecision, HookPoint, HookTrigger, Outcome, Seq, ToolEntry, ToolFinished};

use super::reminders::HookInvocation;
use crate::HookQuestionTrigger;

mod sealed {
    pub trait Sealed {}
}

/// An event with hooks. The events are those of this module; the trait is sealed.
pub trait HookEvent: sealed::Sealed + Send + Sync + 'static {
    /// The input of its hooks.
    type Input<'a>: HookInput<'a> + fmt::Debug + Copy + Send + Sync;

    /// The actions of its hooks.
    type Action: HookAction + fmt::Debug + Send + 'static;

    /// Its hook point.
    const POINT: HookPoint;
}

/// Decides on one kind of event.
#[async_trait]
pub trait Hook<E: HookEvent>: Send + Sync + 'static {
    /// Decides. A panic and a timeout count as no answer; the registration says what happens then. Until it first
    /// awaits, it blocks the caller's thread; code that blocks needs [`blocking`](super::blocking).
    ///
    /// # Cancellation
    /// The future is dropped when the hook's timeout is over, or the question is obsolete.
    async fn decide(&self, input: E::Input<'_>) -> E::Action;
}

/// An action of a hook. It can't be implemented outside of this crate.
pub trait HookAction: Send {
    /// Its decision in the log, which is all that the engine reads.
    fn decision(self) -> HookDecision;
}

/// No action: the hook is only informed.
impl HookAction for () {
    fn decision(self) -> HookDecision {
        HookDecision::Continue
    }
}

/// Declares the inputs: views of one question.
macro_rules! inputs {
    ($($(#[$doc:meta])* $input:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $input<'a> {
            /// The agent.
            pub session: SessionId,
            $($(#[$field_doc])* pub $field: $type,)*
            pub(in crate::hooks) asked: &'a HookInvocation,
        }
    )*};
}

/// Implements [`HookInput`] for views; `read` creates their fields.
macro_rules! views {
    ($($input:ident: |$asked:ident, $hook_call:ident| $view:expr;)*) => {$(
        impl<'a> HookInput<'a> for $input<'a> {
            fn of($asked: &'a HookInvocation) -> Option<Self> {
                let $hook_call = hook_call($asked)?;
                $view
            }

            fn asked(&self) -> &'a HookInvocation {
                self.asked
            }
        }
    )*};
}

/// A read-only view of one question.
pub trait HookInput<'a>: Sized {
    /// The view of `asked`; `None` if it is a question of another kind, or incomplete.
    fn of(asked: &'a HookInvocation) -> Option<Self>;

    /// The viewed question.
    fn asked(&self) -> &'a HookInvocation;
}

/// Declares the events, each with a proof that its hooks can return its actions and no others: two examples that
/// differ in the action only, one of which must not compile.
macro_rules! events {
    ($(
        $(#[$doc:meta])*
        $event:ident: $point:ident, $input:ident => $action:ty;
        may $may:literal, must_not $may_not:literal;
    )*) => {$(
        $(#[$doc])*
        ///
        /// A hook may say:
        /// ```
        /// # use provost_harness::hooks::*;
        #[doc = concat!("# fn hook() -> impl Hook<", stringify!($event), "> {")]
        #[doc = concat!("from_fn::<", stringify!($event), ">(|_| ", $may, ")")]
        /// # }
        /// ```
        /// but not:
        /// ```compile_fail
        /// # use provost_harness::hooks::*;
        #[doc = concat!("# fn hook() -> impl Hook<", stringify!($event), "> {")]
        #[doc = concat!("from_fn::<", stringify!($event), ">(|_| ", $may_not, ")")]
        /// # }
        /// ```
        #[derive(Debug, Clone, Copy)]
        pub struct $event;

        impl sealed::Sealed for $event {}

        impl HookEvent for $event {
            type Input<'a> = $input<'a>;
            type Action = $action;
            const POINT: HookPoint = HookPoint::$point;
        }
    )*};
}

mod agent;
mod call;
mod session;
mod turn;

pub use self::agent::*;
pub use self::call::*;
pub use self::session::*;
pub use self::turn::*;

fn hook_call(asked: &HookInvocation) -> Option<&HookCall> {
    match &asked.question.trigger {
        HookQuestionTrigger::HookCall(hook_call) => Some(hook_call),
        HookQuestionTrigger::Stop(_) => None,
    }
}

const fn call_of(hook_call: &HookCall) -> Option<&CallDetails> {
    match &hook_call.details {
        HookCallDetails::Call(call) => Some(call),
        _ => None,
    }
}

const fn outcome_of(hook_call: &HookCall) -> Option<&Outcome> {
    match &hook_call.about {
        HookTrigger::Closing { outcome } => Some(outcome),
        _ => None,
    }
}

fn result_at(asked: &HookInvocation, finished: Seq) -> Option<&ToolFinished> {
    let record = asked.question.records.iter().find(|record| record.seq == finished)?;
    match &record.entry {
        Entry::Tool(ToolEntry::Finished(result)) => Some(result),
        _ => None,
    }
}

fn beginning(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}
