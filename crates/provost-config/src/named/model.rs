//! `[models."PROVIDER/MODEL"]`: what the user knows of models.

use std::collections::BTreeMap;

use provost_event::{MicroDollars, Price, counted, grouped};
use provost_llm::{ModelFacts, Reasoning};

use super::{MODELS, Named, Table, field};
use crate::declare::{Kind, Setting, SettingDefault};

/// What the models' tables are for.
pub(crate) const MODELS_WORDS: &str = "What you know of models, by their full name in quotes; it overrides what is built \
    in (`provost models` shows that). A project's file may not set any of it: a wrong price would undo your budget.";

/// A model's table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelTable {
    window_tokens: Option<u64>,
    output_tokens_max: Option<u32>,
    input: Option<MicroDollars>,
    output: Option<MicroDollars>,
    cache_read: Option<MicroDollars>,
    cache_write: Option<MicroDollars>,
    images: Option<bool>,
    reasoning: Option<Reasoning>,
}

const TOKENS_MAX: u64 = 1_000_000_000;

impl Table for ModelTable {
    const SECTION: &'static str = MODELS;
    const FIELDS: &'static [Setting<Self>] = MODEL;

    fn all(named: &mut Named) -> &mut BTreeMap<String, Self> {
        &mut named.models
    }

    fn objection(name: &str) -> Option<&'static str> {
        let is_full = name.split_once('/').is_some_and(|(of, model)| !of.is_empty() && !model.is_empty());
        (!is_full).then_some("must be a full name in quotes, such as [models.\"ollama/qwen3:8b\"]")
    }
}

/// The fields of a model.
pub(crate) const MODEL: &[Setting<ModelTable>] = &[
    Setting {
        kind: Kind::Count { min: 1_000, max: TOKENS_MAX, put: |table, n| table.window_tokens = Some(n) },
        default: SettingDefault::Unset("as built in, else unknown"),
        example: "128_000",
        words: "Tokens that fit a request and its answer. A conversation is kept within it, less the output cap: \
                at 70 % old results become a line each, at 85 % the model writes a summary, and a rule shortens \
                what is still too long. Where it isn't known, that is done when the provider refuses a request as \
                too long.",
        ..field("window_tokens")
    },
    Setting {
        kind: Kind::Count {
            min: 256,
            max: 1_000_000,
            put: |table, n| table.output_tokens_max = u32::try_from(n).ok(),
        },
        default: SettingDefault::Unset("as built in, else 8192, at most a quarter of the window"),
        example: "16_384",
        words: "Maximum tokens of an answer; never more than half of the window.",
        ..field("output_tokens_max")
    },
    Setting {
        kind: Kind::Price(|table, price| table.input = Some(price)),
        default: SettingDefault::Unset("as built in, else unknown"),
        example: "0.25",
        words: "US dollars for a million tokens of input.",
        ..field("input_usd")
    },
    Setting {
        kind: Kind::Price(|table, price| table.output = Some(price)),
        default: SettingDefault::Unset("as built in, else unknown"),
        example: "2.00",
        words: "US dollars for a million tokens of output, reasoning included.",
        ..field("output_usd")
    },
    Setting {
        kind: Kind::Price(|table, price| table.cache_read = Some(price)),
        default: SettingDefault::Unset("input_usd"),
        example: "0.025",
        words: "US dollars for a million tokens of input read from the provider's cache.",
        ..field("cache_read_usd")
    },
    Setting {
        kind: Kind::Price(|table, price| table.cache_write = Some(price)),
        default: SettingDefault::Unset("input_usd"),
        example: "0.25",
        words: "US dollars for a million tokens of input written to the provider's cache.",
        ..field("cache_write_usd")
    },
    Setting {
        kind: Kind::Truth(|table, truth| table.images = Some(truth)),
        default: SettingDefault::Unset("as built in, else false"),
        example: "true",
        words: "Whether it supports pictures.",
        ..field("images")
    },
    Setting {
        kind: Kind::Choice {
            of: &["effort", "budget", "none"],
            put: |table, name| {
                table.reasoning = Some(match name {
                    "budget" => Reasoning::Budget,
                    "none" => Reasoning::None,
                    _ => Reasoning::Effort,
                });
            },
        },
        default: SettingDefault::Unset("as built in, else unknown"),
        example: r#""effort""#,
        words: "Whether it reasons before it answers, and how the effort is set: by a level, by a number of tokens, or \
                not at all.",
        ..field("reasoning")
    },
];

impl ModelTable {
    /// The facts that the table has on the model `name`.
    pub fn facts(&self, name: &str) -> ModelFacts {
        let price = self.input.zip(self.output).map(|(input, output)| Price {
            input,
            output,
            cache_read: self.cache_read.unwrap_or(input),
            cache_write: self.cache_write.unwrap_or(input),
            long: None,
        });
        ModelFacts {
            name: name.to_owned(),
            window_tokens: self.window_tokens,
            output_tokens_max: self.output_tokens_max,
            price,
            images: self.images,
            reasoning: self.reasoning,
            ..ModelFacts::default()
        }
    }

    /// What contradicts itself in the table, with the field that it shows at and what would be right.
    pub(crate) fn contradiction(&self) -> Option<(&'static str, String, &'static str)> {
        let cap = self.output_tokens_max.map(u64::from);
        if let Some((window, cap)) = self.window_tokens.zip(cap).filter(|(window, cap)| cap >= window) {
            let what = format!(
                "an answer of {} doesn't fit the window of {}",
                counted(cap, "token"),
                grouped(window)
            );
            return Some(("output_tokens_max", what, "lower it"));
        }
        let half = "a price needs both input_usd and output_usd".to_owned();
        let is_priced = self.input.is_some() && self.output.is_some();
        let prices = [
            ("input_usd", self.input),
            ("output_usd", self.output),
            ("cache_read_usd", self.cache_read),
            ("cache_write_usd", self.cache_write),
        ];
        let lonely = prices.into_iter().find(|(_, price)| price.is_some() && !is_priced)?;
        Some((lonely.0, half, "e.g. input_usd = 0.25 and output_usd = 2.00"))
    }
}
