//! Differences between a public table and the known facts.

use provost_event::Price;

use super::{PublicTable, TableKind};
use crate::{Catalog, ModelFacts};

/// A model's facts in a table that aren't known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChange {
    /// The known facts; `None` for a new model.
    pub old: Option<ModelFacts>,
    /// Only the new facts.
    pub new: ModelFacts,
}

impl PublicTable {
    /// The differences from `catalog`: of a known model window, cap, price and retirement day, of a new one all
    /// facts. Ordered by name.
    #[must_use]
    pub fn changes(&self, catalog: &Catalog) -> Vec<ModelChange> {
        let change = |says: &ModelFacts| match catalog.find(&says.name) {
            Some(known) => {
                let new = self.differing(says, known);
                (new != bare(&says.name)).then(|| ModelChange { old: Some(known.clone()), new })
            }
            None => {
                let new = ModelFacts { output_tokens_max: cap(says), ..says.clone() };
                (new != bare(&says.name)).then_some(ModelChange { old: None, new })
            }
        };
        self.models().filter_map(change).collect()
    }

    /// The facts of `says` that differ from `known`.
    fn differing(&self, says: &ModelFacts, known: &ModelFacts) -> ModelFacts {
        let window = says.window_tokens.filter(|window| !self.agrees(*window, known, says.output_tokens_max));
        let window = window.filter(|window| known.window_tokens != Some(*window));
        let in_window =
            |cap: &u32| known.window_tokens.or(window).is_none_or(|window| u64::from(*cap) < window);
        let price = says.price.map(|price| keeping(price, known.price));
        ModelFacts {
            window_tokens: window,
            output_tokens_max: cap(says)
                .filter(in_window)
                .filter(|cap| known.output_tokens_max != Some(*cap)),
            price: price.filter(|price| known.price != Some(*price)),
            retires: says.retires.clone().filter(|day| known.retires.as_ref() != Some(day)),
            ..bare(&says.name)
        }
    }

    /// Whether `window`, which may not include the answer, agrees with the known one.
    fn agrees(&self, window: u64, known: &ModelFacts, cap: Option<u32>) -> bool {
        let with_answer = window.saturating_add(cap.map_or(0, u64::from));
        let known = known.window_tokens.unwrap_or_default();
        self.kind() == TableKind::Litellm && (window..=with_answer).contains(&known)
    }
}

/// The cap, if it differs from the window.
fn cap(says: &ModelFacts) -> Option<u32> {
    says.output_tokens_max.filter(|cap| says.window_tokens.is_none_or(|window| u64::from(*cap) < window))
}

/// `price`, with missing prices of caches and long requests taken from `known` if it is the same price otherwise.
fn keeping(price: Price, known: Option<Price>) -> Price {
    let same = known.filter(|known| (known.input, known.output) == (price.input, price.output));
    let Some(known) = same else { return price };
    let said = |part, known| if part == price.input { known } else { part };
    Price {
        cache_read: said(price.cache_read, known.cache_read),
        cache_write: said(price.cache_write, known.cache_write),
        long: price.long.or(known.long),
        ..price
    }
}

fn bare(name: &str) -> ModelFacts {
    ModelFacts { name: name.to_owned(), ..ModelFacts::default() }
}
