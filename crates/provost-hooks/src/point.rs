//! Event names: Provost's own, and those of existing scripts.

use std::fmt;

use provost_event::HookPoint;

/// What the contracts of hooks that are programs say of one hook point.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table")]
pub(crate) struct PointRules {
    /// The event's name in a hook's input.
    event: &'static str,
    /// Whether settings may name the point by that event, as one of Claude Code's.
    is_claudes: bool,
    /// Whether it is about one tool call.
    pub(crate) is_about_a_call: bool,
    /// Whether that call was made already.
    pub(crate) call_was_made: bool,
    /// Whether matchers apply.
    pub(crate) has_matchers: bool,
    /// Whether the input has `permission_mode`.
    pub(crate) has_permission_mode: bool,
    /// Whether `continue` and `systemMessage` of a reply apply.
    pub(crate) takes_common_fields: bool,
    /// Whether `additionalContext` of a reply applies.
    pub(crate) takes_context: bool,
    /// Whether a script for Claude Code may refuse.
    pub(crate) claude_refuses: bool,
}

/// A point that a script for Claude Code knows as `event`.
const fn claudes(event: &'static str) -> PointRules {
    PointRules { is_claudes: true, ..own(event) }
}

/// A point that is Provost's own.
const fn own(event: &'static str) -> PointRules {
    PointRules {
        event,
        is_claudes: false,
        is_about_a_call: false,
        call_was_made: false,
        has_matchers: true,
        has_permission_mode: false,
        takes_common_fields: true,
        takes_context: false,
        claude_refuses: true,
    }
}

/// A point about one tool call.
const fn call(point: PointRules) -> PointRules {
    PointRules { is_about_a_call: true, has_permission_mode: true, takes_context: true, ..point }
}

/// A point about one tool call that was made.
const fn made(point: PointRules) -> PointRules {
    PointRules { call_was_made: true, ..call(point) }
}

/// A point where a reply only informs the user.
const fn informs(point: PointRules) -> PointRules {
    PointRules { takes_common_fields: false, ..point }
}

/// The rules of `point`.
pub(crate) const fn rules(point: HookPoint) -> PointRules {
    use HookPoint as M;
    match point {
        M::SessionStart => {
            PointRules { takes_context: true, claude_refuses: false, ..claudes("SessionStart") }
        }
        M::SubagentStart => {
            PointRules { takes_context: true, claude_refuses: false, ..claudes("SubagentStart") }
        }
        M::PromptSubmit => PointRules {
            has_matchers: false,
            has_permission_mode: true,
            takes_context: true,
            ..claudes("UserPromptSubmit")
        },
        M::PreLlmRequest => PointRules { has_matchers: false, takes_context: true, ..own("PreLlmRequest") },
        M::PreToolCall => call(claudes("PreToolUse")),
        M::Spawn => call(own("Spawn")),
        M::Approval => {
            PointRules { takes_context: false, claude_refuses: false, ..call(claudes("PermissionRequest")) }
        }
        M::Notification => informs(claudes("Notification")),
        M::ChildEnd => made(own("ChildEnd")),
        M::PostToolCall => made(own(POST_TOOL_USE)),
        M::PostToolSuccess => made(claudes(POST_TOOL_USE)),
        M::PostToolFailure => made(claudes(POST_TOOL_USE_FAILURE)),
        M::PostToolBatch => PointRules {
            has_matchers: false,
            has_permission_mode: true,
            takes_context: true,
            ..claudes("PostToolBatch")
        },
        M::TurnEnd => PointRules { has_matchers: false, ..own("TurnEnd") },
        M::Stop => PointRules { has_matchers: false, ..claudes("Stop") },
        M::SubagentStop => claudes("SubagentStop"),
        M::PreCompact => informs(claudes("PreCompact")),
        M::PostCompact => informs(claudes("PostCompact")),
        M::Abort => PointRules { has_matchers: false, ..informs(own("Abort")) },
        M::StopFailure => informs(claudes("StopFailure")),
        M::SessionEnd => informs(claudes("SessionEnd")),
    }
}

const POST_TOOL_USE: &str = "PostToolUse";
const POST_TOOL_USE_FAILURE: &str = "PostToolUseFailure";

/// Claude Code's events that Provost supports, with their hook points.
fn of_claude() -> impl Iterator<Item = (&'static str, HookPoint)> {
    let points = HookPoint::ALL.iter().map(|point| (rules(*point), *point));
    points.filter(|(rules, _)| rules.is_claudes).map(|(rules, point)| (rules.event, point))
}

const NO_TEAMS: &str = "Provost has no teams of agents with shared tasks";
const NO_SCREEN: &str = "it is about an interactive screen, which an agent under Provost doesn't have";
const NO_WATCH: &str = "what a run works with is fixed at its start; nothing is watched";
const NO_WORKTREES: &str = "Provost makes the worktrees of sub-agents itself, with git";
const NO_ELICITATION: &str = "a person answers the questions of MCP servers";

/// Claude Code's events that Provost doesn't support.
const NOT_IMPLEMENTED: &[(&str, &str)] = &[
    ("Setup", "Provost has no setup mode"),
    ("UserPromptExpansion", "Provost has no slash commands"),
    ("MessageDisplay", NO_SCREEN),
    ("PermissionDenied", "a denied call can't be made again by a hook"),
    ("TaskCreated", NO_TEAMS),
    ("TaskCompleted", NO_TEAMS),
    ("TeammateIdle", NO_TEAMS),
    ("InstructionsLoaded", NO_WATCH),
    ("ConfigChange", NO_WATCH),
    ("CwdChanged", NO_WATCH),
    ("DirectoryAdded", NO_WATCH),
    ("FileChanged", NO_WATCH),
    ("WorktreeCreate", NO_WORKTREES),
    ("WorktreeRemove", NO_WORKTREES),
    ("Elicitation", NO_ELICITATION),
    ("ElicitationResult", NO_ELICITATION),
];

/// Minimum similarity of a suggested name.
const NEAREST_MIN: f64 = 0.8;

/// Why an event's name has no hook point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownEvent {
    /// The name is unknown.
    Unknown {
        /// A similar name.
        nearest: Option<&'static str>,
    },
    /// Claude Code has it, Provost doesn't, for this reason.
    NotImplemented(&'static str),
}

impl fmt::Display for UnknownEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { nearest: Some(name) } => write!(f, "there is no such event; `{name}`?"),
            Self::Unknown { nearest: None } => f.write_str("there is no such event"),
            Self::NotImplemented(why) => write!(f, "Provost doesn't have this event: {why}"),
        }
    }
}

impl std::error::Error for UnknownEvent {}

/// The hook point of an event name: one of Provost's own names (`pre_tool_call`) or of Claude Code's
/// (`PreToolUse`), matched exactly.
///
/// # Errors
/// When it is no event, or one that Provost doesn't support.
pub fn hook_point_of(event: &str) -> Result<HookPoint, UnknownEvent> {
    let own = HookPoint::ALL.iter().find(|point| point.name() == event).copied();
    let claude = || of_claude().find(|(name, _)| *name == event).map(|(_, point)| point);
    if let Some(point) = own.or_else(claude) {
        return Ok(point);
    }
    match NOT_IMPLEMENTED.iter().find(|(name, _)| *name == event) {
        Some((_, why)) => Err(UnknownEvent::NotImplemented(why)),
        None => Err(UnknownEvent::Unknown { nearest: nearest(event) }),
    }
}

fn nearest(event: &str) -> Option<&'static str> {
    let own = HookPoint::ALL.iter().map(|point| point.name());
    let names = own.chain(of_claude().map(|(name, _)| name));
    let lower = event.to_lowercase();
    // The names of the typed events of embedding programs.
    let lower = lower.strip_prefix("on_").or_else(|| lower.strip_prefix("on")).unwrap_or(&lower);
    let near = |name: &str| strsim::jaro_winkler(&name.to_lowercase(), lower);
    names
        .map(|name| (near(name), name))
        .filter(|(near, _)| *near >= NEAREST_MIN)
        .max_by(by_nearness)
        .map(|it| it.1)
}

fn by_nearness(a: &(f64, &str), b: &(f64, &str)) -> std::cmp::Ordering {
    a.0.total_cmp(&b.0)
}

/// The event name of `point` in a hook's input, for a result that is or isn't an error.
pub(crate) const fn event_name(point: HookPoint, failed: bool) -> &'static str {
    match point {
        HookPoint::PostToolCall if failed => POST_TOOL_USE_FAILURE,
        point => rules(point).event,
    }
}

#[cfg(test)]
mod tests {
    use provost_event::HookPoint;

    use super::{UnknownEvent, event_name, hook_point_of};

    #[test]
    fn every_hook_point_has_a_name_that_leads_back_to_it() {
        for point in HookPoint::ALL {
            assert_eq!(hook_point_of(point.name()), Ok(*point));
            let told = event_name(*point, false);
            assert!(!told.is_empty(), "{point:?}");
            let own = matches!(told, "PreLlmRequest" | "Spawn" | "ChildEnd" | "TurnEnd" | "Abort");
            assert_eq!(hook_point_of(told).is_err(), own, "{told}");
        }
    }

    #[test]
    fn other_names_are_told_with_a_reason_or_with_what_was_meant() {
        assert!(matches!(hook_point_of("WorktreeCreate"), Err(UnknownEvent::NotImplemented(_))));
        assert_eq!(hook_point_of("pretooluse"), Err(UnknownEvent::Unknown { nearest: Some("PreToolUse") }));
        assert_eq!(
            hook_point_of("pre_tool_cal"),
            Err(UnknownEvent::Unknown { nearest: Some("pre_tool_call") })
        );
        assert_eq!(hook_point_of("on_spawn"), Err(UnknownEvent::Unknown { nearest: Some("spawn") }));
        assert_eq!(hook_point_of("zzz"), Err(UnknownEvent::Unknown { nearest: None }));
    }
}
