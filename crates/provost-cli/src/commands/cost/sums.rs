//! Summing up what was paid, by groups.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use provost_engine::Uncertain;
use provost_event::{BudgetCharged, Certainty, MicroDollars, Purpose, RunId, SessionId, Timestamp, Usage};

use super::since::at;
use crate::cli::CostGroup;

/// A call that was paid.
pub(super) struct Paid<'a> {
    pub(super) charged: &'a BudgetCharged,
    pub(super) at: Timestamp,
    /// The segment of its run, from 1.
    pub(super) segment: u32,
    /// The purpose of the call, from its reservation.
    pub(super) purpose: Purpose,
    /// The model of the run's root agent: the one that was called where the entry names none.
    pub(super) root_model: &'a str,
}

/// What calls took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) calls: u64,
    /// Of the calls, those whose price isn't known: their cost isn't in `cost`.
    pub(super) unknown_price_calls: u64,
    pub(super) usage: Usage,
    pub(super) cost: MicroDollars,
    /// Of that, what calls without a final report came to at most.
    pub(super) estimated: Uncertain,
    /// Of that, what was reserved for calls that were lost to a crash.
    pub(super) unconfirmed: Uncertain,
}

impl Spent {
    fn add(&mut self, charged: &BudgetCharged) {
        self.calls += 1;
        self.unknown_price_calls += u64::from(charged.cost.is_none());
        self.usage += charged.usage;
        let cost = charged.cost.unwrap_or_default();
        self.cost += cost;
        let uncertain = match charged.usage.certainty {
            Certainty::Reported => return,
            Certainty::Estimated => &mut self.estimated,
            Certainty::Unconfirmed => &mut self.unconfirmed,
        };
        uncertain.tokens += charged.usage.total();
        uncertain.cost += cost;
    }
}

/// What the calls of a group have in common; `None` where they aren't distinguished.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) day: Option<Date>,
    pub(super) run: Option<RunId>,
    /// Of its run, from 1.
    pub(super) segment: Option<u32>,
    pub(super) agent: Option<SessionId>,
    /// As the log has it.
    pub(super) purpose: Option<&'static str>,
    pub(super) model: Option<Arc<str>>,
}

impl Key {
    /// The parts of this key that these groups need.
    fn only(&self, groups: &[CostGroup]) -> Self {
        let mut key = Self::default();
        for group in groups {
            match group {
                CostGroup::Day => key.day = self.day,
                CostGroup::Run => key.run = self.run,
                CostGroup::Segment => key.segment = self.segment,
                CostGroup::Agent => key.agent = self.agent,
                CostGroup::Purpose => key.purpose = self.purpose,
                CostGroup::Model => key.model.clone_from(&self.model),
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
    }
}

/// Sums by groups, and by all that the groups stand in: by day and model, by day, of everything.
pub(super) struct Sums {
    zone: TimeZone,
    levels: Vec<Level>,
}

#[derive(Default)]
struct Level {
    groups: Vec<CostGroup>,
    sums: BTreeMap<Key, Spent>,
}

impl Sums {
    /// Sums by these groups, the first outermost; days are those of `zone`.
    pub(super) fn by(groups: Vec<CostGroup>, zone: TimeZone) -> Self {
        let outer = (0..groups.len()).map(|depth| groups.iter().copied().take(depth).collect());
        let mut levels = outer.map(|groups| Level { groups, ..Level::default() }).collect::<Vec<_>>();
        levels.push(Level { groups, ..Level::default() });
        Self { zone, levels }
    }

    pub(super) fn add(&mut self, paid: &Paid<'_>) {
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
    pub(super) fn groups(&self) -> &[CostGroup] {
        self.levels.last().map(|level| level.groups.as_slice()).unwrap_or_default()
    }

    /// The sum of everything.
    pub(super) fn total(&self) -> Spent {
        self.levels.first().and_then(|all| all.sums.values().next()).copied().unwrap_or_default()
    }

    pub(super) const fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The sum of each group: days and segments as they came, of all else the dearest first.
    pub(super) fn rows(&self) -> Vec<(&Key, Spent)> {
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
                None | Some(CostGroup::Day | CostGroup::Segment) => (MicroDollars(0), 0),
                Some(CostGroup::Model | CostGroup::Agent | CostGroup::Purpose | CostGroup::Run) => {
                    level.sums.get(&key).map(|sum| (sum.cost, sum.usage.total())).unwrap_or_default()
                }
            };
            (Reverse(weight), key)
        });
        rank.collect()
    }
}
