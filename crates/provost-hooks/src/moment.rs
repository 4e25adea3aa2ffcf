//! Event names: Provost's own, and those of existing scripts.

use std::fmt;

use provost_event::HookMoment;

/// Claude Code's events that Provost supports, with their hook points.
const CLAUDE: &[(&str, HookMoment)] = &[
    ("SessionStart", HookMoment::SessionStart),
    ("UserPromptSubmit", HookMoment::PromptSubmit),
    ("PreToolUse", HookMoment::PreToolCall),
    ("PermissionRequest", HookMoment::Approval),
    ("PostToolUse", HookMoment::PostToolSuccess),
    ("PostToolUseFailure", HookMoment::PostToolFailure),
    ("PostToolBatch", HookMoment::PostToolBatch),
    ("Notification", HookMoment::Notification),
    ("SubagentStart", HookMoment::SubagentStart),
    ("SubagentStop", HookMoment::SubagentStop),
    ("Stop", HookMoment::Stop),
    ("StopFailure", HookMoment::StopFailure),
    ("PreCompact", HookMoment::PreCompact),
    ("PostCompact", HookMoment::PostCompact),
    ("SessionEnd", HookMoment::SessionEnd),
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
pub fn moment_of(event: &str) -> Result<HookMoment, UnknownEvent> {
    let own = HookMoment::ALL.iter().find(|moment| moment.name() == event).copied();
    let claude = || CLAUDE.iter().find(|(name, _)| *name == event).map(|(_, moment)| *moment);
    if let Some(moment) = own.or_else(claude) {
        return Ok(moment);
    }
    match NOT_IMPLEMENTED.iter().find(|(name, _)| *name == event) {
        Some((_, why)) => Err(UnknownEvent::NotImplemented(why)),
        None => Err(UnknownEvent::Unknown { nearest: nearest(event) }),
    }
}

fn nearest(event: &str) -> Option<&'static str> {
    let own = HookMoment::ALL.iter().map(|moment| moment.name());
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

/// The event name of `moment` in a hook's input, for a result that is or isn't an error.
pub(crate) fn event_name(moment: HookMoment, failed: bool) -> &'static str {
    match moment {
        HookMoment::PostToolCall if failed => "PostToolUseFailure",
        HookMoment::PostToolCall => "PostToolUse",
        HookMoment::PreLlmRequest => "PreLlmRequest",
        HookMoment::Spawn => "Spawn",
        HookMoment::ChildEnd => "ChildEnd",
        HookMoment::TurnEnd => "TurnEnd",
        HookMoment::Abort => "Abort",
        other => CLAUDE.iter().find(|(_, moment)| *moment == other).map_or("", |(name, _)| *name),
    }
}

/// Whether `moment` is about one tool call.
pub(crate) const fn is_about_a_call(moment: HookMoment) -> bool {
    use HookMoment as M;
    matches!(
        moment,
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
    use provost_event::HookMoment;

    use super::{UnknownEvent, event_name, moment_of};

    #[test]
    fn every_moment_has_a_name_that_leads_back_to_it() {
        for moment in HookMoment::ALL {
            assert_eq!(moment_of(moment.name()), Ok(*moment));
            let told = event_name(*moment, false);
            assert!(!told.is_empty(), "{moment:?}");
            let own = matches!(told, "PreLlmRequest" | "Spawn" | "ChildEnd" | "TurnEnd" | "Abort");
            assert_eq!(moment_of(told).is_err(), own, "{told}");
        }
    }

    #[test]
    fn other_names_are_told_with_a_reason_or_with_what_was_meant() {
        assert!(matches!(moment_of("WorktreeCreate"), Err(UnknownEvent::NotImplemented(_))));
        assert_eq!(moment_of("pretooluse"), Err(UnknownEvent::Unknown { nearest: Some("PreToolUse") }));
        assert_eq!(moment_of("pre_tool_cal"), Err(UnknownEvent::Unknown { nearest: Some("pre_tool_call") }));
        assert_eq!(moment_of("on_spawn"), Err(UnknownEvent::Unknown { nearest: Some("spawn") }));
        assert_eq!(moment_of("zzz"), Err(UnknownEvent::Unknown { nearest: None }));
    }
}
