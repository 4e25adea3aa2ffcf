//! `[permissions]`: which tool calls an agent may make.

use provost_event::{Permission, PermissionPolicy, Unanswered};

/// Which tool calls may be made, as the settings have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Permissions {
    /// Calls that may be made.
    pub(super) allow: Vec<String>,
    /// Calls that somebody must agree to.
    pub(super) ask: Vec<String>,
    /// Calls that are never made.
    pub(super) deny: Vec<String>,
    /// Calls that the user has agreed to for always.
    pub(super) approved: Vec<String>,
    /// What becomes of others, where somebody has said so.
    pub(super) default: Option<Permission>,
    /// How long somebody is waited for, in milliseconds.
    pub(super) approval_timeout_ms: u64,
    /// What becomes of a call that nobody has answered for.
    pub(super) unanswered: Unanswered,
}

impl Permissions {
    /// What becomes of a call that no pattern speaks of. Whoever lists what is allowed means that the rest isn't,
    /// just like that.
    pub(crate) fn otherwise(&self) -> Permission {
        let unset = if self.allow.is_empty() { Permission::Allow } else { Permission::Ask };
        self.default.unwrap_or(unset)
    }

    /// Whether nobody has said what may be done.
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
            otherwise: self.otherwise(),
            approval_timeout_ms: self.approval_timeout_ms,
            unanswered: self.unanswered,
        }
    }
}
