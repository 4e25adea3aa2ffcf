//! `[permissions]`: which tool calls an agent may make.

use provost_event::{Permission, PermissionPolicy, Unanswered};

/// Which tool calls may be made, as the settings have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Calls that may be made.
    pub allow: Vec<String>,
    /// Calls that need approval.
    pub ask: Vec<String>,
    /// Calls that are never made.
    pub deny: Vec<String>,
    /// Calls that the user has approved permanently.
    pub approved: Vec<String>,
    /// The rule for all other calls, if it is set.
    pub default: Option<Permission>,
    /// How long an answer is awaited, in milliseconds.
    pub approval_timeout_ms: u64,
    /// What happens to a call without an answer in time.
    pub unanswered: Unanswered,
}

impl Permissions {
    /// The rule for a call that no pattern matches. Unless it is set, other calls need approval if there is a list
    /// of allowed ones.
    pub(crate) fn default_permission(&self) -> Permission {
        let unset = if self.allow.is_empty() { Permission::Allow } else { Permission::Ask };
        self.default.unwrap_or(unset)
    }

    /// Whether no permission is set.
    pub fn has_no_rules(&self) -> bool {
        self.allow.is_empty() && self.ask.is_empty() && self.deny.is_empty() && self.default.is_none()
    }

    /// The permissions as a run's policy has them.
    pub fn policy(&self) -> PermissionPolicy {
        PermissionPolicy {
            allow: self.allow.clone(),
            ask: self.ask.clone(),
            deny: self.deny.clone(),
            approved: self.approved.clone(),
            default: self.default_permission(),
            keeping: Permission::Deny,
            approval_timeout_ms: self.approval_timeout_ms,
            unanswered: self.unanswered,
            ..PermissionPolicy::default()
        }
    }
}
