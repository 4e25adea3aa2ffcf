//! The events: one type each, with its input and its actions.

use std::fmt;

use async_trait::async_trait;
use provost_event::HookPoint;

use super::action::{
    HookAction, OnApprovalAction, OnChildEndAction, OnPromptSubmitAction, OnSpawnAction, OnTurnEndAction,
    PostToolCallAction, PreCompactAction, PreLlmRequestAction, PreToolCallAction,
};
use super::input::{
    HookInput, OnAbortInput, OnApprovalInput, OnChildEndInput, OnPromptSubmitInput, OnSessionEndInput,
    OnSessionStartInput, OnSpawnInput, OnTurnEndInput, PostToolCallInput, PreCompactInput,
    PreLlmRequestInput, PreToolCallInput,
};

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

events! {
    /// A session starts, or continues after a suspension. Its hooks are only informed.
    OnSessionStart: SessionStart, OnSessionStartInput => ();
    may "()", must_not "OnTurnEndAction::Pause";

    /// A message was sent, before it is committed.
    OnPromptSubmit: PromptSubmit, OnPromptSubmitInput => OnPromptSubmitAction;
    may "OnPromptSubmitAction::Cancel(String::new())", must_not "OnPromptSubmitAction::Abort(String::new())";

    /// A model is about to be called.
    PreLlmRequest: PreLlmRequest, PreLlmRequestInput => PreLlmRequestAction;
    may "PreLlmRequestAction::Yield", must_not "PreLlmRequestAction::Deny(String::new())";

    /// A tool is about to be called. Unless its registration says otherwise, a hook that gives no answer counts as
    /// one that denies.
    PreToolCall: PreToolCall, PreToolCallInput => PreToolCallAction;
    may "PreToolCallAction::Deny(String::new())", must_not "PreToolCallAction::Allow";

    /// An agent is about to spawn another: its call passed the [`PreToolCall`] hooks and the permissions, and
    /// hasn't been submitted for approval yet. Whether there is a slot and budget for the new agent is checked
    /// afterwards.
    OnSpawn: Spawn, OnSpawnInput => OnSpawnAction;
    may "OnSpawnAction::Deny(String::new())", must_not "OnSpawnAction::Abort(String::new())";

    /// A spawned agent is done, or was stopped, and its result is in its parent's log. Its hooks are called before
    /// those of [`PostToolCall`]; they aren't called for agents that never started.
    OnChildEnd: ChildEnd, OnChildEndInput => OnChildEndAction;
    may "OnChildEndAction::Abort(String::new())", must_not "OnChildEndAction::Deny(String::new())";

    /// A tool was called.
    PostToolCall: PostToolCall, PostToolCallInput => PostToolCallAction;
    may "PostToolCallAction::Abort(String::new())", must_not "PostToolCallAction::Deny(String::new())";

    /// A turn ended without tool calls.
    OnTurnEnd: TurnEnd, OnTurnEndInput => OnTurnEndAction;
    may "OnTurnEndAction::Pause", must_not "OnTurnEndAction::Continue";

    /// The conversation is about to be shortened.
    PreCompact: PreCompact, PreCompactInput => PreCompactAction;
    may "PreCompactAction::Refuse(String::new())", must_not "PreCompactAction::Abort(String::new())";

    /// A tool call needs approval, and no approver has been asked yet.
    OnApproval: Approval, OnApprovalInput => OnApprovalAction;
    may "OnApprovalAction::Undecided", must_not "OnApprovalAction::Pause";

    /// The session is about to be suspended or to end before its work is done. Its hooks are only informed.
    OnAbort: Abort, OnAbortInput => ();
    may "()", must_not "OnTurnEndAction::Finish";

    /// The session is about to end. Its hooks are only informed.
    OnSessionEnd: SessionEnd, OnSessionEndInput => ();
    may "()", must_not "PreToolCallAction::Continue";
}
