//! The ratio of the providers' counts to our estimates, by model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Tokens of requests, as estimated and as counted by their provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counted {
    estimated: u64,
    reported: u64,
}

impl Counted {
    const fn note(&mut self, estimated: u64, reported: u64) {
        self.estimated = self.estimated.saturating_add(estimated);
        self.reported = self.reported.saturating_add(reported);
    }

    /// `amount` scaled by that ratio, and at least `amount`.
    fn scaled(self, amount: u64) -> u64 {
        if self.reported <= self.estimated {
            return amount;
        }
        let scaled = u128::from(amount) * u128::from(self.reported);
        u64::try_from(scaled.div_ceil(u128::from(self.estimated.max(1)))).unwrap_or(u64::MAX)
    }
}

/// All requests of a run that were both estimated and counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Calibration {
    models: BTreeMap<String, Counted>,
    /// Those of judges, whose estimate is an upper bound.
    judges: Counted,
}

impl Calibration {
    pub(super) fn note(&mut self, model: &str, is_judges: bool, estimated: u64, reported: u64) {
        if estimated == 0 || reported == 0 {
            return;
        }
        if is_judges {
            return self.judges.note(estimated, reported);
        }
        match self.models.get_mut(model) {
            Some(counted) => counted.note(estimated, reported),
            None => {
                self.models.insert(model.to_owned(), Counted { estimated, reported });
            }
        }
    }

    /// The likely count of a request to `model` with this estimate.
    pub(super) fn of(&self, model: &str, is_judges: bool, estimated: u64) -> u64 {
        if is_judges {
            return self.of_judges(estimated);
        }
        self.models.get(model).map_or(estimated, |counted| counted.scaled(estimated))
    }

    /// The likely count of an amount reserved for judges.
    pub(super) fn of_judges(&self, amount: u64) -> u64 {
        self.judges.scaled(amount)
    }
}
