//! Whether configured items took effect in a run, and how long answers took.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::render::plural;

/// Whether a configured item took effect in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Say {
    /// It isn't configured.
    NotSet,
    /// No process recorded how it fared.
    NotReported,
    /// It was consulted.
    Consulted,
    /// It wasn't.
    Never,
    /// It wasn't, and can't be as the run is configured.
    Unreachable,
}

/// The same, with the reason, if any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct RuleUse {
    pub(super) say: Say,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
}

impl RuleUse {
    pub(super) const NOT_SET: Self = Self { say: Say::NotSet, why: None };

    /// For an item that was consulted this often; `why` says why it never was.
    pub(super) fn of(consulted: u64, why: impl FnOnce() -> String) -> Self {
        match consulted {
            0 => Self { say: Say::Never, why: Some(why()) },
            _ => Self { say: Say::Consulted, why: None },
        }
    }

    pub(super) fn unreachable(why: impl Into<String>) -> Self {
        Self { say: Say::Unreachable, why: Some(format!("can't be reached: {}", why.into())) }
    }

    pub(super) fn not_reported(why: &str) -> Self {
        Self { say: Say::NotReported, why: Some(format!("not reported: {why}")) }
    }
}

/// How many items are configured, and how many of them had no effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Tally {
    pub(super) configured: u64,
    /// Of all, those that were never consulted.
    pub(super) never_consulted: u64,
    /// Of those, the ones that can't be.
    pub(super) unreachable: u64,
    /// Those without a record of how they fared.
    pub(super) not_reported: u64,
}

impl Tally {
    pub(super) fn add(&mut self, standing: &RuleUse) {
        self.configured += u64::from(standing.say != Say::NotSet);
        self.never_consulted += u64::from(matches!(standing.say, Say::Never | Say::Unreachable));
        self.unreachable += u64::from(standing.say == Say::Unreachable);
        self.not_reported += u64::from(standing.say == Say::NotReported);
    }
}

/// A kind of configured item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Limits,
    Judges,
    StopHooks,
    Hooks,
    Permissions,
    Observers,
}

impl Group {
    /// A count of its items, in words.
    pub(super) fn in_words(self, count: u64) -> String {
        let what = match self {
            Self::Limits => "limit",
            Self::Judges => "judge",
            Self::StopHooks => "stop hook",
            Self::Hooks => "hook",
            Self::Permissions => "permission",
            Self::Observers => "observer",
        };
        plural(count, what)
    }
}

/// The tally of everything, and of each group.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    pub(super) all: Tally,
    pub(super) groups: BTreeMap<Group, Tally>,
}

impl Tallies {
    pub(super) fn add<'a>(&mut self, group: Group, standings: impl IntoIterator<Item = &'a RuleUse>) {
        let of_group = self.groups.entry(group).or_default();
        for standing in standings {
            self.all.add(standing);
            of_group.add(standing);
        }
    }
}

/// Times, summed up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Times {
    pub(super) total_us: u64,
    pub(super) longest_us: u64,
}

impl Times {
    pub(super) fn add_us(&mut self, us: u64) {
        self.total_us = self.total_us.saturating_add(us);
        self.longest_us = self.longest_us.max(us);
    }

    pub(super) fn add_ms(&mut self, ms: u64) {
        self.add_us(ms.saturating_mul(1_000));
    }
}
