//! `[permissions]`: which tool calls an agent may make.

use provost_event::{Permission, PermissionPolicy, Unanswered};

/// Which tool calls may be made, as the settings have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Permissions {
    /// Calls that may be made.
    pub(super) allow: Vec<String>,
    /// Calls that need approval.
    pub(super) ask: Vec<String>,
    /// Calls that are never made.
    pub(super) deny: Vec<String>,
    /// Calls that the user has approved permanently.
    pub(super) approved: Vec<String>,
    /// The rule for all other calls, if it is set.
    pub(super) default: Option<Permission>,
    /// How long an answer is awaited, in milliseconds.
    pub(super) approval_timeout_ms: u64,
    /// What happens to a call without an answer in time.
    pub(super) unanswered: Unanswered,
}

impl Permissions {
    /// The rule for a call that no pattern matches. Unless it is set, other calls need approval if there is a list
    /// of allowed ones.
    pub(crate) fn default_permission(&self) -> Permission {
        let unset = if self.allow.is_empty() { Permission::Allow } else { Permission::Ask };
        self.default.unwrap_or(unset)
    }

    /// Whether no permission is set.
    pub(crate) fn has_no_rules(&self) -> bool {
        self.allow.is_empty() && self.ask.is_empty() && self.deny.is_empty() && self.default.is_none()
    }

    /// The permissions as a run's policy has them.
    pub(crate) fn policy(&self) -> PermissionPolicy {
        PermissionPolicy {
            allow: self.allow.clone(),
            ask: self.ask.clone(),
            deny: self.deny.clone(),
            approved: self.approved.clone(),
            default: self.default_permission(),
            approval_timeout_ms: self.approval_timeout_ms,
            unanswered: self.unanswered,
        }
    }
}
