//! What is known of models: window, output cap, prices. The facts are in `models.toml`.

use std::sync::LazyLock;

use provost_event::{MicroDollars, Price};
use serde::Deserialize;

static MODELS: LazyLock<Vec<ModelFacts>> = LazyLock::new(|| {
    // A test reads the same file: it can't fail here.
    toml::from_str::<Table>(include_str!("../models.toml")).map(|table| table.model).unwrap_or_default()
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    model: Vec<ModelFacts>,
}

/// What is known of one model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFacts {
    /// Whose model it is, as the part before the slash of a model's name.
    pub provider: String,
    /// Its name without a date.
    pub name: String,
    /// Its other names, without a date.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Tokens that fit a request and its answer.
    pub window_tokens: u64,
    /// Tokens an answer may have.
    pub output_tokens_max: u32,
    /// What its tokens cost.
    pub price: Price,
}

/// The facts of `provider/model`; the model may have a release date (`-20250929`, `@20250929`) or `-latest`
/// behind its name. `None` for a model that isn't in the table.
#[must_use]
pub fn find(name: &str) -> Option<&'static ModelFacts> {
    let (provider, model) = name.split_once('/')?;
    MODELS.iter().find(|facts| facts.provider == provider && facts.is_called(model))
}

/// All models of `provider`.
pub fn of_provider(provider: &str) -> impl Iterator<Item = &'static ModelFacts> {
    MODELS.iter().filter(move |facts| facts.provider == provider)
}

/// A scripted model's price.
pub(crate) const FREE: Price = Price {
    input: MicroDollars(0),
    output: MicroDollars(0),
    cache_read: MicroDollars(0),
    cache_write: MicroDollars(0),
};

impl ModelFacts {
    fn is_called(&self, model: &str) -> bool {
        let names = std::iter::once(&self.name).chain(&self.aliases);
        names.filter_map(|name| model.strip_prefix(name.as_str())).any(is_release)
    }
}

/// What may stand behind a name: nothing, a date, or that it is the latest.
fn is_release(rest: &str) -> bool {
    let date = rest.strip_prefix(['-', '@']).unwrap_or_default();
    rest.is_empty() || date == "latest" || (date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read() {
        let table = toml::from_str::<Table>(include_str!("../models.toml")).unwrap();
        assert_eq!(table.model, *MODELS);
        for facts in &*MODELS {
            let Price { input, cache_read, cache_write, .. } = facts.price;
            assert_eq!((cache_write.0 * 4, cache_read.0 * 10), (input.0 * 5, input.0), "{}", facts.name);
            assert!(u64::from(facts.output_tokens_max) < facts.window_tokens, "{}", facts.name);
        }
    }

    #[track_caller]
    fn check(name: &str, expected: Option<&str>) {
        assert_eq!(find(name).map(|facts| facts.name.as_str()), expected, "{name}");
    }

    #[test]
    fn a_model_is_found_with_and_without_its_date() {
        check("anthropic/claude-sonnet-4-5", Some("claude-sonnet-4-5"));
        check("anthropic/claude-sonnet-4-5-20250929", Some("claude-sonnet-4-5"));
        check("anthropic/claude-sonnet-4-20250514", Some("claude-sonnet-4"));
        check("anthropic/claude-sonnet-4-0", Some("claude-sonnet-4"));
        check("anthropic/claude-opus-4-1@20250805", Some("claude-opus-4-1"));
        check("anthropic/claude-3-5-haiku-latest", Some("claude-3-5-haiku"));
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
}
