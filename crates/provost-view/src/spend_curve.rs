//! What a run has spent over time, by model.

use std::collections::BTreeMap;

use provost_event::{BudgetEntry, Entry, MicroDollars, RunId, Seq, Timestamp};
use provost_harness::{Backend, BackendError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ViewVersion;
use crate::status::READ_MAX;

/// Points of a curve.
const POINTS_MAX: u64 = 60;

/// What a run has spent over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpendCurve {
    /// The version of the view.
    pub v: ViewVersion,
    /// When the run began.
    pub from_ms: Timestamp,
    /// When something was charged last; that of the beginning if nothing was.
    pub to_ms: Timestamp,
    /// The end of each part of that time, in order; at most 60.
    pub at_ms: Vec<Timestamp>,
    /// The models, the most expensive first.
    pub models: Vec<ModelCurve>,
}

/// What calls of one model have cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelCurve {
    /// The model.
    pub model: String,
    /// Its calls.
    pub calls: u64,
    /// Of them, those whose price isn't known.
    pub unknown_price_calls: u64,
    /// What was spent up to each of `at_ms`.
    pub cost_micro_usd: Vec<MicroDollars>,
}

impl ModelCurve {
    /// What was spent in all.
    #[must_use]
    pub fn total(&self) -> MicroDollars {
        self.cost_micro_usd.last().copied().unwrap_or_default()
    }
}

struct Charge {
    at: Timestamp,
    model: Option<String>,
    cost: Option<MicroDollars>,
}

impl SpendCurve {
    /// Reads it from the run's log; calls that name no model are those of `root_model`.
    ///
    /// # Errors
    /// When the log can't be read.
    pub async fn read(backend: &dyn Backend, run: RunId, root_model: &str) -> Result<Self, BackendError> {
        let (mut after, mut from, mut charges) = (Seq::START, None, Vec::new());
        loop {
            let records = backend.read(run.into(), after, READ_MAX).await?;
            let Some(last) = records.last() else { break };
            after = last.seq;
            from = from.or(records.first().map(|record| record.at));
            for record in &records {
                let Entry::Budget(BudgetEntry::Charged(charged)) = &record.entry else { continue };
                let model = (!charged.model.is_empty()).then(|| charged.model.clone());
                charges.push(Charge { at: record.at, model, cost: charged.cost });
            }
        }
        Ok(Self::of(&charges, from.unwrap_or_default(), root_model))
    }

    fn of(charges: &[Charge], from: Timestamp, root_model: &str) -> Self {
        let to = charges.iter().map(|charge| charge.at).max().unwrap_or(from).max(from);
        // Clocks may go back; what is before the beginning counts as then.
        let span = to.since_ms(from);
        let points = span.clamp(1, POINTS_MAX);
        let at_ms = (1..=points).map(|point| Timestamp(from.0 + span * point / points)).collect::<Vec<_>>();
        let mut models = BTreeMap::<&str, ModelCurve>::new();
        for charge in charges {
            let name = charge.model.as_deref().unwrap_or(root_model);
            let curve = models.entry(name).or_insert_with(|| ModelCurve {
                model: name.to_owned(),
                calls: 0,
                unknown_price_calls: 0,
                cost_micro_usd: vec![MicroDollars(0); at_ms.len()],
            });
            curve.calls += 1;
            curve.unknown_price_calls += u64::from(charge.cost.is_none());
            for (_, sum) in at_ms.iter().zip(&mut curve.cost_micro_usd).filter(|(at, _)| charge.at <= **at) {
                *sum += charge.cost.unwrap_or_default();
            }
        }
        let mut models = models.into_values().collect::<Vec<_>>();
        models.sort_by_key(|curve| std::cmp::Reverse(curve.total()));
        Self { v: ViewVersion, from_ms: from, to_ms: to, at_ms, models }
    }
}

#[cfg(test)]
mod tests {
    use provost_event::{MicroDollars, Timestamp};

    use super::{Charge, SpendCurve};

    fn charge(at: u64, model: &str, cost: u64) -> Charge {
        let model = (!model.is_empty()).then(|| model.to_owned());
        Charge { at: Timestamp(at), model, cost: Some(MicroDollars(cost)) }
    }

    #[test]
    fn what_models_cost_adds_up_over_time() {
        let charges = [charge(1_000, "", 10), charge(4_000, "b", 50), charge(7_000, "", 5)];
        let curve = SpendCurve::of(&charges, Timestamp(1_000), "a");
        assert_eq!((curve.at_ms.len(), curve.to_ms), (60, Timestamp(7_000)));
        let names = curve.models.iter().map(|curve| (curve.model.as_str(), curve.calls, curve.total().0));
        assert_eq!(names.collect::<Vec<_>>(), [("b", 1, 50), ("a", 2, 15)]);
        let a = &curve.models[1].cost_micro_usd;
        assert_eq!((a[0].0, a[58].0, a[59].0), (10, 10, 15));
        assert_eq!(curve.models[0].cost_micro_usd[28].0, 0);
        assert_eq!(curve.models[0].cost_micro_usd[29].0, 50);
    }

    #[test]
    fn a_run_without_calls_has_an_empty_curve() {
        let curve = SpendCurve::of(&[], Timestamp(5), "a");
        assert_eq!((curve.models.len(), curve.at_ms), (0, vec![Timestamp(5)]));
    }
}
