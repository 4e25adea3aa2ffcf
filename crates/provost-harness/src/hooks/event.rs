//! The events: a type each, with its input and its actions.

use std::fmt;

use async_trait::async_trait;
use provost_event::HookMoment;

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

/// Something that hooks are asked about. The events are those of this module; nobody can add one.
pub trait HookEvent: sealed::Sealed + Send + Sync + 'static {
    /// What its hooks are told.
    type Input<'a>: HookInput<'a> + fmt::Debug + Copy + Send + Sync;

    /// What its hooks can say.
    type Action: HookAction + fmt::Debug + Send + 'static;

    /// When it is.
    const MOMENT: HookMoment;
}

/// Decides about one kind of event.
#[async_trait]
pub trait Hook<E: HookEvent>: Send + Sync + 'static {
    /// Decides. A panic, and running longer than the hook may, count as no answer; what that means its
    /// registration says. Until it first waits, it keeps the thread that asks; code that blocks belongs into
    /// [`blocking`](super::blocking).
    ///
    /// # Cancellation
    /// The future is dropped when the hook's time is over, or the question has become pointless.
    async fn decide(&self, input: E::Input<'_>) -> E::Action;
}

/// Declares the events, each with a proof that its hooks can say an action of its own and can't say another one: two
/// examples that differ in the action only, one of which must not compile.
macro_rules! events {
    ($(
        $(#[$doc:meta])*
        $event:ident: $moment:ident, $input:ident => $action:ty;
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
            const MOMENT: HookMoment = HookMoment::$moment;
        }
    )*};
}

events! {
    /// A session begins, or goes on after a rest. Its hooks are only told.
    OnSessionStart: SessionStart, OnSessionStartInput => ();
    may "()", must_not "OnTurnEndAction::Pause";

    /// Somebody said something, before it is committed.
    OnPromptSubmit: PromptSubmit, OnPromptSubmitInput => OnPromptSubmitAction;
    may "OnPromptSubmitAction::Cancel(String::new())", must_not "OnPromptSubmitAction::Abort(String::new())";

    /// A model is about to be called.
    PreLlmRequest: PreLlmRequest, PreLlmRequestInput => PreLlmRequestAction;
    may "PreLlmRequestAction::Yield", must_not "PreLlmRequestAction::Deny(String::new())";

    /// A tool is about to be called. Unless its registration says otherwise, a hook that gives no answer counts as
    /// one that denies.
    PreToolCall: PreToolCall, PreToolCallInput => PreToolCallAction;
    may "PreToolCallAction::Deny(String::new())", must_not "PreToolCallAction::Allow";

    /// An agent is about to ask for another: its call passed the [`PreToolCall`] hooks and the permissions, and nobody
    /// has been asked for consent yet. Whether there is a slot and budget for the new agent is seen only afterwards.
    OnSpawn: Spawn, OnSpawnInput => OnSpawnAction;
    may "OnSpawnAction::Deny(String::new())", must_not "OnSpawnAction::Abort(String::new())";

    /// The agent that was asked for is done, or was stopped, and its result is in the log of the one that asked. Its
    /// hooks are asked before those of [`PostToolCall`]; they hear of no agent that never was.
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

    /// A tool call needs somebody's consent, and nobody has been asked yet.
    OnApproval: Approval, OnApprovalInput => OnApprovalAction;
    may "OnApprovalAction::Undecided", must_not "OnApprovalAction::Pause";

    /// The session is about to rest or end before its work is done. Its hooks are only told.
    OnAbort: Abort, OnAbortInput => ();
    may "()", must_not "OnTurnEndAction::Finish";

    /// The session is about to end. Its hooks are only told.
    OnSessionEnd: SessionEnd, OnSessionEndInput => ();
    may "()", must_not "PreToolCallAction::Continue";
}
