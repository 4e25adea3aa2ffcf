//! Event names: Provost's own, and those of existing scripts.

use std::fmt;

use provost_event::HookPoint;

/// Claude Code's events that Provost supports, with their hook points.
const CLAUDE: &[(&str, HookPoint)] = &[
    ("SessionStart", HookPoint::SessionStart),
    ("UserPromptSubmit", HookPoint::PromptSubmit),
    ("PreToolUse", HookPoint::PreToolCall),
    ("PermissionRequest", HookPoint::Approval),
    ("PostToolUse", HookPoint::PostToolSuccess),
    ("PostToolUseFailure", HookPoint::PostToolFailure),
    ("PostToolBatch", HookPoint::PostToolBatch),
    ("Notification", HookPoint::Notification),
    ("SubagentStart", HookPoint::SubagentStart),
    ("SubagentStop", HookPoint::SubagentStop),
    ("Stop", HookPoint::Stop),
    ("StopFailure", HookPoint::StopFailure),
    ("PreCompact", HookPoint::PreCompact),
    ("PostCompact", HookPoint::PostCompact),
    ("SessionEnd", HookPoint::SessionEnd),
];

const NO_TEAMS: &str = "Provost has no teams of agents with shared tasks";
const NO_SCREEN: &str = "it is about an interactive screen, which an agent under Provost doesn't have";
const NO_WATCH: &str = "what a run works with is fixed at its start; nothing is watched";
const NO_WORKTREES: &str = "Provost makes the worktrees of sub-agents itself, with git";
const NO_ELICITATION: &str = "Provost answers no questions of MCP servers";

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
    let claude = || CLAUDE.iter().find(|(name, _)| *name == event).map(|(_, point)| *point);
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
    let names = own.chain(CLAUDE.iter().map(|(name, _)| *name));
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
pub(crate) fn event_name(point: HookPoint, failed: bool) -> &'static str {
    match point {
        HookPoint::PostToolCall if failed => "PostToolUseFailure",
        HookPoint::PostToolCall => "PostToolUse",
        HookPoint::PreLlmRequest => "PreLlmRequest",
        HookPoint::Spawn => "Spawn",
        HookPoint::ChildEnd => "ChildEnd",
        HookPoint::TurnEnd => "TurnEnd",
        HookPoint::Abort => "Abort",
        other => CLAUDE.iter().find(|(_, point)| *point == other).map_or("", |(name, _)| *name),
    }
}

/// Whether `point` is about one tool call.
pub(crate) const fn is_about_a_call(point: HookPoint) -> bool {
    use HookPoint as M;
    matches!(
        point,
        M::PreToolCall
            | M::Spawn
            | M::Approval
            | M::ChildEnd
            | M::PostToolCall
            | M::PostToolSuccess
            | M::PostToolFailure
    )
}

#[cfg(test)]
mod tests {
    use provost_event::HookPoint;

    use super::{UnknownEvent, event_name, hook_point_of};

    #[test]
    fn every_moment_has_a_name_that_leads_back_to_it() {
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
