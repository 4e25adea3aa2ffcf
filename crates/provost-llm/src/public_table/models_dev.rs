//! The `api.json` of models.dev: `{provider: {models: {id: {limit, cost, modalities, …}}}}`, prices in dollars per
//! million tokens.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::entry::{Entry, LongParts, Parts, threshold};
use super::{PublicTableError, owner};
use crate::{ModelFacts, Providers, Reasoning};

/// The models of known providers, and the number of all models.
pub(super) fn read(
    top: &Map<String, Value>,
    providers: &Providers,
) -> Result<(BTreeMap<String, ModelFacts>, usize), PublicTableError> {
    let (mut models, mut entries) = (BTreeMap::new(), 0);
    for (listed, provider) in top {
        let Some(of_provider) = provider.get("models").and_then(Value::as_object) else { continue };
        entries += of_provider.len();
        let Some(owner) = owner(listed, providers) else { continue };
        for (id, model) in of_provider {
            let entry = Entry::new(model, format!("{listed}.models.{id}"), 1.0)?;
            if writes_text(&entry) {
                let name = format!("{}/{id}", owner.name);
                models.insert(name.clone(), facts(name, &entry)?);
            }
        }
    }
    Ok((models, entries))
}

/// Whether it answers in text and calls tools.
fn writes_text(entry: &Entry<'_>) -> bool {
    let writes = |modality: &str| modalities(entry, "output").is_none_or(|all| all.contains(&modality));
    entry.truth("tool_call") != Some(false) && writes("text")
}

fn modalities<'a>(entry: &Entry<'a>, way: &str) -> Option<Vec<&'a str>> {
    let list = entry.fields.get("modalities")?.get(way)?.as_array()?;
    Some(list.iter().filter_map(Value::as_str).collect())
}

fn facts(name: String, entry: &Entry<'_>) -> Result<ModelFacts, PublicTableError> {
    let limit = entry.below("limit")?;
    let limits = limit.as_ref();
    let price = entry.below("cost")?.map(|cost| price(&cost)).transpose()?;
    Ok(ModelFacts {
        name,
        window_tokens: limits.map_or(Ok(None), |limit| limit.window("context"))?,
        output_tokens_max: limits
            .map_or(Ok(None), |limit| limit.tokens("output"))?
            .and_then(|tokens| u32::try_from(tokens).ok()),
        price: price.and_then(Parts::whole),
        images: modalities(entry, "input").map(|all| all.contains(&"image")),
        reasoning: (entry.truth("reasoning") == Some(false)).then_some(Reasoning::None),
        ..ModelFacts::default()
    })
}

fn price(cost: &Entry<'_>) -> Result<Parts, PublicTableError> {
    let tiers = cost.fields.keys().filter_map(|key| Some((threshold(key, "context_over_", "k")?, key)));
    let mut long = None;
    if let Some((above_tokens, key)) = tiers.min()
        && let Some(tier) = cost.below(key)?
        && let Some((input, output)) = tier.price("input")?.zip(tier.price("output")?)
    {
        long = Some(LongParts { above_tokens, input, output });
    }
    Ok(Parts {
        input: cost.price("input")?,
        output: cost.price("output")?,
        cache_read: cost.price("cache_read")?,
        cache_write: cost.price("cache_write")?,
        long,
    })
}
