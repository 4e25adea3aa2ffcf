//! The `model_prices_and_context_window.json` of litellm: `{name: {litellm_provider, mode, …}}`, prices in dollars
//! per token. If input and answer are limited separately, its window is that of the input.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::entry::{Entry, LongParts, Parts, threshold};
use super::{PublicTableError, owner};
use crate::{ModelFacts, Providers};

const MILLION: f64 = 1_000_000.0;
const INPUT: &str = "input_cost_per_token";
const OUTPUT: &str = "output_cost_per_token";

/// The models of known providers, and the number of all models.
pub(super) fn read(
    top: &Map<String, Value>,
    providers: &Providers,
) -> Result<(BTreeMap<String, ModelFacts>, usize), PublicTableError> {
    let mut models = BTreeMap::new();
    for (key, model) in top {
        let listed = model.get("litellm_provider").and_then(Value::as_str).unwrap_or_default();
        let Some(owner) = owner(listed, providers) else { continue };
        let entry = Entry::new(model, key.clone(), MILLION)?;
        let prefixed = key.strip_prefix(listed).and_then(|rest| rest.strip_prefix('/'));
        // Names such as `us/MODEL` are litellm's own for the same model on other terms.
        let Some(id) = prefixed.or((!key.contains('/')).then_some(key)) else { continue };
        if matches!(entry.text("mode"), Some("chat" | "responses")) {
            let name = format!("{}/{id}", owner.name);
            models.insert(name.clone(), facts(name, &entry)?);
        }
    }
    Ok((models, top.len()))
}

fn facts(name: String, entry: &Entry<'_>) -> Result<ModelFacts, PublicTableError> {
    let cap = entry.tokens("max_output_tokens")?;
    Ok(ModelFacts {
        name,
        window_tokens: entry.window("max_input_tokens")?,
        output_tokens_max: cap.and_then(|tokens| u32::try_from(tokens).ok()),
        price: price(entry)?.whole(),
        images: entry.truth("supports_vision"),
        retires: entry.text("deprecation_date").filter(|day| is_day(day)).map(str::to_owned),
        ..ModelFacts::default()
    })
}

fn price(entry: &Entry<'_>) -> Result<Parts, PublicTableError> {
    let tier = |key: &String| threshold(key, "input_cost_per_token_above_", "k_tokens");
    let above = entry.fields.keys().filter_map(tier).min();
    let mut long = None;
    if let Some(above_tokens) = above {
        let of = |what: &str| entry.price(&format!("{what}_above_{}k_tokens", above_tokens / 1_000));
        if let Some((input, output)) = of(INPUT)?.zip(of(OUTPUT)?) {
            long = Some(LongParts { above_tokens, input, output });
        }
    }
    Ok(Parts {
        input: entry.price(INPUT)?,
        output: entry.price(OUTPUT)?,
        cache_read: entry.price("cache_read_input_token_cost")?,
        cache_write: entry.price("cache_creation_input_token_cost")?,
        long,
    })
}

/// Whether `text` has the form `YYYY-MM-DD`.
fn is_day(text: &str) -> bool {
    let lengths = text.split('-').map(str::len).collect::<Vec<_>>();
    lengths == [4, 2, 2] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit())
}
