//! What is known of models: window, output cap, price, what they can. The facts are in `models.toml`; the user's
//! stand over them.

use std::sync::LazyLock;

use provost_event::{MicroDollars, ModelPolicy, Price};
use serde::Deserialize;

static BUILT_IN: LazyLock<Vec<ModelFacts>> = LazyLock::new(|| {
    // A test reads the same file: it can't fail here.
    toml::from_str::<Table>(include_str!("../models.toml")).map(|table| table.model).unwrap_or_default()
});

/// The cap on answers of a model of which nobody knows what it allows: what every current model does, and at most this
/// part of its window.
const OUTPUT_TOKENS_MAX: u32 = 8192;
const OUTPUT_DIVISOR: u64 = 4;

/// The price of what costs nothing.
pub(crate) const FREE: Price = Price {
    input: MicroDollars(0),
    output: MicroDollars(0),
    cache_read: MicroDollars(0),
    cache_write: MicroDollars(0),
    long: None,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    model: Vec<ModelFacts>,
}

/// What is known of one model; `None` is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFacts {
    /// Its name without a date: `provider/model`.
    pub name: String,
    /// Its other names in the same form.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Tokens that fit a request and its answer.
    #[serde(default)]
    pub window_tokens: Option<u64>,
    /// Tokens an answer may have.
    #[serde(default)]
    pub output_tokens_max: Option<u32>,
    /// What its tokens cost.
    #[serde(default)]
    pub price: Option<Price>,
    /// Whether it can be shown pictures.
    #[serde(default)]
    pub images: Option<bool>,
    /// How it is told to think before it answers.
    #[serde(default)]
    pub reasoning: Option<Reasoning>,
    /// The day from which its provider no longer answers, as `YYYY-MM-DD`; `None` while none is known.
    #[serde(default)]
    pub retires: Option<String>,
    /// The model that takes its place, where it retires.
    #[serde(default)]
    pub successor: Option<String>,
    /// Where the facts are from.
    #[serde(default)]
    pub source: Option<String>,
    /// The day of which they are, as `YYYY-MM-DD`.
    #[serde(default)]
    pub as_of: Option<String>,
}

/// How a model is told how much to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// By a number of tokens that it may think for.
    Budget,
    /// By a word.
    Effort,
    /// It doesn't think, and refuses to be told how much.
    None,
}

/// Models by name: the built-in ones, and those of the user over them.
#[derive(Debug, Clone)]
pub struct Catalog {
    all: Vec<ModelFacts>,
}

impl Catalog {
    /// The built-in ones.
    #[must_use]
    pub fn built_in() -> Self {
        Self { all: BUILT_IN.clone() }
    }

    /// With `facts`; what they leave open stays as it was for a model of that name.
    #[must_use]
    pub fn with(mut self, facts: ModelFacts) -> Self {
        let known = self.find(&facts.name).cloned().unwrap_or_default();
        let merged = ModelFacts {
            window_tokens: facts.window_tokens.or(known.window_tokens),
            output_tokens_max: facts.output_tokens_max.or(known.output_tokens_max),
            price: facts.price.or(known.price),
            images: facts.images.or(known.images),
            reasoning: facts.reasoning.or(known.reasoning),
            retires: facts.retires.or(known.retires),
            successor: facts.successor.or(known.successor),
            source: facts.source.or(known.source),
            as_of: facts.as_of.or(known.as_of),
            ..facts
        };
        // The exact name comes first.
        self.all.retain(|known| known.name != merged.name);
        self.all.insert(0, merged);
        self
    }

    /// The facts of `provider/model`; the model may have a release date (`-20250929`, `@20250929`, `-2025-09-29`)
    /// or `-latest` behind its name. `None` for a model that isn't in the table.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&ModelFacts> {
        let exact = self.all.iter().find(|facts| facts.names().any(|known| known == name));
        exact.or_else(|| self.all.iter().find(|facts| facts.is_called(name)))
    }

    /// All models of `provider`.
    pub fn of_provider(&self, provider: &str) -> impl Iterator<Item = &ModelFacts> {
        self.all.iter().filter(move |facts| facts.name.split_once('/').is_some_and(|(of, _)| of == provider))
    }

    /// All models.
    pub fn iter(&self) -> impl Iterator<Item = &ModelFacts> {
        self.all.iter()
    }
}

impl ModelFacts {
    fn names(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.name).chain(&self.aliases)
    }

    fn is_called(&self, name: &str) -> bool {
        self.names().filter_map(|known| name.strip_prefix(known.as_str())).any(is_release)
    }

    fn usual_output_tokens_max(&self) -> u32 {
        let part = self.window_tokens.map_or(u64::MAX, |window| window / OUTPUT_DIVISOR);
        u32::try_from(part).unwrap_or(u32::MAX).min(OUTPUT_TOKENS_MAX)
    }

    /// What a policy says of the model under `name`.
    pub(crate) fn policy(&self, name: &str) -> ModelPolicy {
        ModelPolicy {
            window_tokens: self.window_tokens,
            price: self.price,
            images: self.images.unwrap_or(false),
            ..ModelPolicy::new(name, self.output_tokens_max.unwrap_or_else(|| self.usual_output_tokens_max()))
        }
    }
}

/// What may stand behind a name: nothing, a date, or that it is the latest.
fn is_release(rest: &str) -> bool {
    let date = rest.strip_prefix(['-', '@']).unwrap_or_default();
    let digits = date.split('-').collect::<String>();
    let is_date = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    rest.is_empty() || date == "latest" || (is_date && matches!(date.len(), 8 | 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read_and_every_fact_is_possible() {
        let table = toml::from_str::<Table>(include_str!("../models.toml")).unwrap();
        assert_eq!(table.model, *BUILT_IN);
        for facts in &*BUILT_IN {
            let Price { input, output, cache_read, .. } = facts.price.unwrap();
            assert!(cache_read <= input && input < output, "{}", facts.name);
            assert!(
                u64::from(facts.output_tokens_max.unwrap()) < facts.window_tokens.unwrap(),
                "{}",
                facts.name
            );
            assert_eq!(Catalog::built_in().find(&facts.name), Some(facts));
            assert!(facts.source.is_some() && facts.reasoning.is_some(), "{}", facts.name);
            for day in facts.as_of.iter().chain(&facts.retires) {
                let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
                let parts = day.split('-').collect::<Vec<_>>();
                assert!(
                    matches!(&*parts, [y, m, d] if y.len() == 4 && m.len() == 2 && d.len() == 2),
                    "{day}"
                );
                assert!(parts.into_iter().all(is_digits), "{day}");
            }
            assert_eq!(facts.retires.is_some(), facts.successor.is_some(), "{}", facts.name);
            if let Some(successor) = &facts.successor {
                let found = Catalog::built_in().find(successor).cloned().unwrap();
                assert_eq!(found.retires, None, "{}", facts.name);
            }
        }
    }

    #[test]
    fn answers_of_an_unknown_model_are_at_most_a_quarter_of_its_window() {
        let cap = |window_tokens, output_tokens_max| {
            let facts = ModelFacts { window_tokens, output_tokens_max, ..ModelFacts::default() };
            facts.policy("a/model").output_tokens_max
        };
        assert_eq!(
            [cap(None, None), cap(Some(200_000), None), cap(Some(8_192), None)],
            [8_192, 8_192, 2_048]
        );
        assert_eq!(cap(Some(8_192), Some(4_096)), 4_096);
    }

    #[track_caller]
    fn check(name: &str, expected: Option<&str>) {
        let catalog = Catalog::built_in();
        assert_eq!(catalog.find(name).map(|facts| facts.name.as_str()), expected, "{name}");
    }

    #[test]
    fn a_model_is_found_with_and_without_its_date() {
        check("anthropic/claude-sonnet-4-5", Some("anthropic/claude-sonnet-4-5"));
        check("anthropic/claude-sonnet-4-5-20250929", Some("anthropic/claude-sonnet-4-5"));
        check("anthropic/claude-sonnet-4-20250514", Some("anthropic/claude-sonnet-4"));
        check("anthropic/claude-sonnet-4-0", Some("anthropic/claude-sonnet-4"));
        check("anthropic/claude-opus-4-1@20250805", Some("anthropic/claude-opus-4-1"));
        check("openai/gpt-5-mini-2025-08-07", Some("openai/gpt-5-mini"));
    }

    #[test]
    fn a_model_that_only_looks_alike_isnt_found() {
        check("anthropic/claude-sonnet-4-9", None);
        check("anthropic/claude-sonnet-4-5-fast", None);
        check("anthropic/claude-sonnet-4-5-2025", None);
        check("openai/claude-sonnet-4-5", None);
        check("claude-sonnet-4-5", None);
        check("", None);
    }

    #[test]
    fn the_users_facts_stand_over_the_built_in_ones_and_leave_the_rest() {
        let name = "anthropic/claude-sonnet-4-5".to_owned();
        let facts =
            ModelFacts { name: name.clone(), window_tokens: Some(1_000_000), ..ModelFacts::default() };
        let catalog = Catalog::built_in().with(facts);
        let found = catalog.find("anthropic/claude-sonnet-4-5-20250929").unwrap();
        assert_eq!((found.window_tokens, found.output_tokens_max), (Some(1_000_000), Some(64_000)));
        assert!(found.price.is_some());
        assert_eq!(catalog.iter().filter(|facts| facts.name == name).count(), 1);
    }
}
