//! Summing up what was paid, by groups.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use provost_event::{BudgetCharged, MicroDollars, Purpose, RunId, SessionId, Timestamp};

use super::{SpendingGroup, SpendingSums};

/// A call that was paid.
pub(crate) struct Paid<'a> {
    pub(crate) charged: &'a BudgetCharged,
    pub(crate) at: Timestamp,
    /// The segment of its run, from 1.
    pub(crate) segment: u32,
    /// The purpose of the call, from its reservation.
    pub(crate) purpose: Purpose,
    /// The model of the run's root agent: the one that was called where the entry names none.
    pub(crate) root_model: &'a str,
}

/// What the calls of a group have in common; `None` where they aren't distinguished.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) day: Option<Date>,
    pub(crate) run: Option<RunId>,
    /// Of its run, from 1.
    pub(crate) segment: Option<u32>,
    pub(crate) agent: Option<SessionId>,
    /// As the log has it.
    pub(crate) purpose: Option<&'static str>,
    pub(crate) model: Option<Arc<str>>,
}

impl Key {
    /// The parts of this key that these groups need.
    fn only(&self, groups: &[SpendingGroup]) -> Self {
        let mut key = Self::default();
        for group in groups {
            match group {
                SpendingGroup::Day => key.day = self.day,
                SpendingGroup::Run => key.run = self.run,
                SpendingGroup::Segment => key.segment = self.segment,
                SpendingGroup::Agent => key.agent = self.agent,
                SpendingGroup::Purpose => key.purpose = self.purpose,
                SpendingGroup::Model => key.model.clone_from(&self.model),
            }
        }
        key
    }
}

const fn word(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Turn => "turn",
        Purpose::Summary => "summary",
        Purpose::FinalSummary => "final_summary",
        Purpose::Judge => "judge",
        Purpose::External => "external",
        Purpose::Hook => "hook",
    }
}

/// Sums by groups, and by all that the groups stand in: by day and model, by day, of everything.
pub(crate) struct Sums {
    zone: TimeZone,
    levels: Vec<Level>,
}

#[derive(Default)]
struct Level {
    groups: Vec<SpendingGroup>,
    sums: BTreeMap<Key, SpendingSums>,
}

impl Sums {
    /// Sums by these groups, the first outermost; days are those of `zone`.
    pub(crate) fn by(groups: Vec<SpendingGroup>, zone: TimeZone) -> Self {
        let outer = (0..groups.len()).map(|depth| groups.iter().copied().take(depth).collect());
        let mut levels = outer.map(|groups| Level { groups, ..Level::default() }).collect::<Vec<_>>();
        levels.push(Level { groups, ..Level::default() });
        Self { zone, levels }
    }

    pub(crate) fn add(&mut self, paid: &Paid<'_>) {
        let key = self.key(paid);
        for level in &mut self.levels {
            level.sums.entry(key.only(&level.groups)).or_default().add(paid.charged);
        }
    }

    fn key(&self, paid: &Paid<'_>) -> Key {
        let session = paid.charged.session;
        let model = Some(paid.charged.model.as_str()).filter(|model| !model.is_empty());
        Key {
            day: Some(self.zone.to_datetime(at(paid.at)).date()),
            run: Some(session.run),
            segment: Some(paid.segment),
            agent: Some(session),
            purpose: Some(word(paid.purpose)),
            model: Some(model.unwrap_or(paid.root_model).into()),
        }
    }

    /// The groups, the outermost first.
    pub(crate) fn groups(&self) -> &[SpendingGroup] {
        self.levels.last().map(|level| level.groups.as_slice()).unwrap_or_default()
    }

    /// The sum of everything.
    pub(crate) fn total(&self) -> SpendingSums {
        self.levels.first().and_then(|all| all.sums.values().next()).copied().unwrap_or_default()
    }

    /// The sum of each group: days and segments as they came, of all else the dearest first.
    pub(crate) fn rows(&self) -> Vec<(&Key, SpendingSums)> {
        let sums = self.levels.last().map(|level| &level.sums);
        let mut rows = sums.into_iter().flatten().map(|(key, spent)| (key, *spent)).collect::<Vec<_>>();
        rows.sort_by_cached_key(|(key, _)| self.rank(key));
        rows
    }

    fn rank(&self, key: &Key) -> Vec<(Reverse<(MicroDollars, u64)>, Key)> {
        let inner = self.levels.iter().skip(1);
        let rank = inner.map(|level| {
            let key = key.only(&level.groups);
            let weight = match level.groups.last() {
                None | Some(SpendingGroup::Day | SpendingGroup::Segment) => (MicroDollars(0), 0),
                Some(
                    SpendingGroup::Model | SpendingGroup::Agent | SpendingGroup::Purpose | SpendingGroup::Run,
                ) => level.sums.get(&key).map(|sum| (sum.cost_micro_usd, sum.tokens())).unwrap_or_default(),
            };
            (Reverse(weight), key)
        });
        rank.collect()
    }
}

/// `moment` for calendars; the last there is for one that lies beyond.
fn at(moment: Timestamp) -> jiff::Timestamp {
    let ms = i64::try_from(moment.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX)
}
