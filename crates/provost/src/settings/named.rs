//! The tables with names of the user's choosing: `[providers.NAME]` and `[models."PROVIDER/MODEL"]`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use provost_event::{MicroDollars, Price};
use provost_llm::{
    EffortField, LeastEffort, ModelFacts, OutputCapField, Provider, Providers, Reasoning, ReasoningBack,
    WireFormat,
};

use super::Given;
use super::declare::{From, Kind, Otherwise, Setting};
use super::errors::Source;

/// The section of providers.
pub(super) const PROVIDERS: &str = "providers";
/// The section of models.
pub(super) const MODELS: &str = "models";

/// What the providers' tables are for.
pub(super) const PROVIDERS_WORDS: &str = "Where models are reached, by the provider's name: one that is built in \
    (`provost models` lists them), or your own, which needs a `base_url` and speaks OpenAI's Chat Completions unless \
    `wire` says otherwise. A project's file may not set any of it: it could send your key elsewhere.";

/// What the models' tables are for.
pub(super) const MODELS_WORDS: &str = "What you know of models, by their full name in quotes; it stands over what \
    is built in (`provost models` shows that). A project's file may not set any of it: a wrong price would undo your \
    budget.";

/// A provider's table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProviderTable {
    wire: Option<WireFormat>,
    base_url: Option<String>,
    key_env: Option<String>,
    /// The file that holds the key.
    pub(crate) key_file: Option<PathBuf>,
    free: Option<bool>,
    first_token_secs: Option<u64>,
    output_cap: Option<OutputCapField>,
    effort: Option<EffortField>,
    least_effort: Option<LeastEffort>,
    reasoning_back: Option<ReasoningBack>,
    stream_options: Option<bool>,
}

/// A model's table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ModelTable {
    window_tokens: Option<u64>,
    output_tokens_max: Option<u32>,
    input: Option<MicroDollars>,
    output: Option<MicroDollars>,
    cache_read: Option<MicroDollars>,
    cache_write: Option<MicroDollars>,
    images: Option<bool>,
    reasoning: Option<Reasoning>,
}

/// The providers and models that are set, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// By the provider's name.
    pub(crate) providers: BTreeMap<String, ProviderTable>,
    /// By the model's full name.
    pub(crate) models: BTreeMap<String, ModelTable>,
}

/// A kind of table with names.
pub(super) trait Table: Default + 'static {
    /// Its section.
    const SECTION: &'static str;
    /// Its fields.
    const FIELDS: &'static [Setting<Self>];
    /// Where its tables are.
    fn all(named: &mut Named) -> &mut BTreeMap<String, Self>;
    /// Why a table can't have this name, as `must be …`.
    fn objection(name: &str) -> Option<&'static str>;
}

impl Table for ProviderTable {
    const SECTION: &'static str = PROVIDERS;
    const FIELDS: &'static [Setting<Self>] = PROVIDER;

    fn all(named: &mut Named) -> &mut BTreeMap<String, Self> {
        &mut named.providers
    }

    fn objection(name: &str) -> Option<&'static str> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = !name.is_empty() && name.chars().all(fits);
        (!is_name).then_some("must be a name of letters, digits, - and _")
    }
}

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

/// An hour: whoever waits longer waits for nothing.
const FIRST_TOKEN_SECS_MAX: u64 = 3_600;
const TOKENS_MAX: u64 = 1_000_000_000;

/// The fields of a provider.
pub(super) const PROVIDER: &[Setting<ProviderTable>] = &[
    Setting {
        kind: Kind::Choice {
            of: &["anthropic", "openai-responses", "openai-chat", "gemini"],
            put: |table, name| table.wire = WireFormat::ALL.into_iter().find(|wire| wire.name() == name),
        },
        otherwise: Otherwise::Unset("as built in, else openai-chat"),
        example: r#""openai-chat""#,
        words: "The format it speaks.",
        ..field("wire")
    },
    Setting {
        kind: Kind::Address(|table, url| table.base_url = Some(url)),
        otherwise: Otherwise::Unset("as built in"),
        example: r#""http://127.0.0.1:8080/v1""#,
        words: "Its address.",
        ..field("base_url")
    },
    Setting {
        kind: Kind::Variable(|table, name| table.key_env = Some(name)),
        otherwise: Otherwise::Unset("as built in, else NAME_API_KEY"),
        example: r#""MY_API_KEY""#,
        words: "The environment variable that holds the key.",
        ..field("api_key_env")
    },
    Setting {
        kind: Kind::Folder(|table, path| table.key_file = Some(path)),
        otherwise: Otherwise::Unset("the key is in the environment"),
        example: r#""/run/secrets/my-api-key""#,
        words: "A file that holds the key and nothing else; the variable stands over it.",
        ..field("api_key_file")
    },
    Setting {
        kind: Kind::Truth(|table, truth| table.free = Some(truth)),
        otherwise: Otherwise::Unset("as built in, else false"),
        example: "true",
        words: "Whether its models cost nothing, such as those on your own machine.",
        ..field("free")
    },
    Setting {
        kind: Kind::Count {
            min: 1,
            max: FIRST_TOKEN_SECS_MAX,
            put: |table, n| table.first_token_secs = Some(n),
        },
        otherwise: Otherwise::Unset("60"),
        example: "300",
        words: "Seconds that a model may take to begin its answer: one that is loaded first, or thinks in silence, may \
                need more.",
        ..field("first_token_secs")
    },
    Setting {
        kind: Kind::Choice {
            of: &["max_tokens", "max_completion_tokens"],
            put: |table, name| {
                table.output_cap = Some(match name {
                    "max_completion_tokens" => OutputCapField::MaxCompletionTokens,
                    _ => OutputCapField::MaxTokens,
                });
            },
        },
        otherwise: Otherwise::Unset("as built in, else max_tokens"),
        example: r#""max_completion_tokens""#,
        words: "How Chat Completions call the cap on the answer there.",
        ..field("output_cap")
    },
    Setting {
        kind: Kind::Choice {
            of: &["reasoning_effort", "reasoning", "thinking", "thinking_and_effort", "none"],
            put: |table, name| {
                table.effort = Some(match name {
                    "reasoning" => EffortField::Reasoning,
                    "thinking" => EffortField::Thinking,
                    "thinking_and_effort" => EffortField::ThinkingAndEffort,
                    "none" => EffortField::None,
                    _ => EffortField::ReasoningEffort,
                });
            },
        },
        otherwise: Otherwise::Unset("as built in, else reasoning_effort"),
        example: r#""reasoning_effort""#,
        words: "Where Chat Completions are told there how much to think.",
        ..field("effort_field")
    },
    Setting {
        kind: Kind::Choice {
            of: &["low", "minimal", "none"],
            put: |table, name| {
                table.least_effort = Some(match name {
                    "minimal" => LeastEffort::Minimal,
                    "none" => LeastEffort::None,
                    _ => LeastEffort::Low,
                });
            },
        },
        otherwise: Otherwise::Unset("as built in, else low"),
        example: r#""minimal""#,
        words: "What Chat Completions call the least effort there.",
        ..field("least_effort")
    },
    Setting {
        kind: Kind::Choice {
            of: &["none", "reasoning_content", "reasoning", "reasoning_details"],
            put: |table, name| {
                table.reasoning_back = Some(match name {
                    "reasoning_content" => ReasoningBack::ReasoningContent,
                    "reasoning" => ReasoningBack::Reasoning,
                    "reasoning_details" => ReasoningBack::ReasoningDetails,
                    _ => ReasoningBack::None,
                });
            },
        },
        otherwise: Otherwise::Unset("as built in, else none"),
        example: r#""reasoning_content""#,
        words: "The field in which Chat Completions want the model's reasoning back there.",
        ..field("reasoning_back")
    },
    Setting {
        kind: Kind::Truth(|table, truth| table.stream_options = Some(truth)),
        otherwise: Otherwise::Unset("as built in, else true"),
        example: "false",
        words: "Whether Chat Completions take `stream_options` there.",
        ..field("stream_options")
    },
];

/// The fields of a model.
pub(super) const MODEL: &[Setting<ModelTable>] = &[
    Setting {
        kind: Kind::Count { min: 1_000, max: TOKENS_MAX, put: |table, n| table.window_tokens = Some(n) },
        otherwise: Otherwise::Unset("as built in, else unknown"),
        example: "128_000",
        words: "Tokens that fit a request and its answer.",
        ..field("window_tokens")
    },
    Setting {
        kind: Kind::Count {
            min: 256,
            max: 1_000_000,
            put: |table, n| table.output_tokens_max = u32::try_from(n).ok(),
        },
        otherwise: Otherwise::Unset("as built in, else 8192"),
        example: "16_384",
        words: "Tokens that an answer may have.",
        ..field("output_tokens_max")
    },
    Setting {
        kind: Kind::Price(|table, price| table.input = Some(price)),
        otherwise: Otherwise::Unset("as built in, else unknown"),
        example: "0.25",
        words: "US dollars for a million tokens of input.",
        ..field("input_usd")
    },
    Setting {
        kind: Kind::Price(|table, price| table.output = Some(price)),
        otherwise: Otherwise::Unset("as built in, else unknown"),
        example: "2.00",
        words: "US dollars for a million tokens of output, reasoning included.",
        ..field("output_usd")
    },
    Setting {
        kind: Kind::Price(|table, price| table.cache_read = Some(price)),
        otherwise: Otherwise::Unset("input_usd"),
        example: "0.025",
        words: "US dollars for a million tokens of input read from the provider's cache.",
        ..field("cache_read_usd")
    },
    Setting {
        kind: Kind::Price(|table, price| table.cache_write = Some(price)),
        otherwise: Otherwise::Unset("input_usd"),
        example: "0.25",
        words: "US dollars for a million tokens of input written to the provider's cache.",
        ..field("cache_write_usd")
    },
    Setting {
        kind: Kind::Truth(|table, truth| table.images = Some(truth)),
        otherwise: Otherwise::Unset("as built in, else false"),
        example: "true",
        words: "Whether it can be shown pictures.",
        ..field("images")
    },
    Setting {
        kind: Kind::Choice {
            of: &["effort", "budget"],
            put: |table, name| {
                table.reasoning = Some(if name == "budget" { Reasoning::Budget } else { Reasoning::Effort });
            },
        },
        otherwise: Otherwise::Unset("as built in, else unknown"),
        example: r#""effort""#,
        words: "That it thinks before it answers, and how it is told how much: by a word, or by a number of tokens.",
        ..field("reasoning")
    },
];

const fn field<T>(name: &'static str) -> Setting<T> {
    Setting { from: From::User, ..Setting::declared("", name) }
}

impl ProviderTable {
    /// The provider `name`, as built in and with what the table changes.
    pub(crate) fn provider(&self, name: &str) -> Provider {
        let known = Providers::built_in().get(name).cloned();
        let mut provider = known.unwrap_or_else(|| Provider {
            key_env: Some(format!("{}_API_KEY", upper(name))),
            ..Provider::new(name, WireFormat::OpenaiChat, "")
        });
        let Provider { wire, base_url, key_env, free, first_token_ms, deviations, .. } = &mut provider;
        put(wire, self.wire);
        put(base_url, self.base_url.clone());
        put(key_env, self.key_env.clone().map(Some));
        put(free, self.free);
        put(first_token_ms, self.first_token_secs.map(|secs| Some(secs.saturating_mul(1_000))));
        put(&mut deviations.output_cap, self.output_cap);
        put(&mut deviations.effort, self.effort);
        put(&mut deviations.least_effort, self.least_effort);
        put(&mut deviations.reasoning_back, self.reasoning_back);
        put(&mut deviations.no_stream_options, self.stream_options.map(|takes| !takes));
        provider
    }

    /// Whether nobody says where the provider `name` is.
    pub(super) fn lacks_address(&self, name: &str) -> bool {
        self.provider(name).base_url.is_empty()
    }
}

impl ModelTable {
    /// What the table says of the model `name`.
    pub(crate) fn facts(&self, name: &str) -> ModelFacts {
        let price = self.input.zip(self.output).map(|(input, output)| Price {
            input,
            output,
            cache_read: self.cache_read.unwrap_or(input),
            cache_write: self.cache_write.unwrap_or(input),
            long: None,
        });
        ModelFacts {
            name: name.to_owned(),
            aliases: Vec::new(),
            window_tokens: self.window_tokens,
            output_tokens_max: self.output_tokens_max,
            price,
            images: self.images,
            reasoning: self.reasoning,
        }
    }

    /// What contradicts itself in the table, with the field that it shows at and what would be right.
    pub(super) fn contradiction(&self) -> Option<(&'static str, String, &'static str)> {
        let cap = self.output_tokens_max.map(u64::from);
        if let Some((window, cap)) = self.window_tokens.zip(cap).filter(|(window, cap)| cap >= window) {
            let what = format!("an answer of {cap} tokens doesn't fit the window of {window}");
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

fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// A name as it stands in a variable's.
pub(super) fn upper(name: &str) -> String {
    name.replace(['-', '.'], "_").to_uppercase()
}

/// The variables that set fields of providers, each with the provider and the field: ours first, then those that
/// the providers' own tools read.
pub(super) fn variables(named: &Named) -> Vec<(String, String, &'static Setting<ProviderTable>)> {
    let built_in = Providers::built_in();
    let configured = named.providers.keys().filter(|name| built_in.get(name).is_none()).cloned();
    let names = built_in.iter().map(|provider| provider.name.clone()).chain(configured).collect::<Vec<_>>();
    let mut all = Vec::new();
    for name in names {
        for field in PROVIDER {
            let own = format!("PROVOST_PROVIDERS_{}_{}", upper(&name), field.name.to_uppercase());
            all.push((own, name.clone(), field));
            if field.name == "base_url" {
                let theirs = built_in.get(&name).map(|known| known.base_url_env.clone()).unwrap_or_default();
                all.extend(theirs.into_iter().map(|variable| (variable, name.clone(), field)));
            }
        }
    }
    all
}

/// The key of a field in a named table, as people read it.
pub(super) fn key(section: &str, name: &str, field: &str) -> String {
    let bare = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let name = if bare { name.to_owned() } else { format!("\"{name}\"") };
    if field.is_empty() { format!("{section}.{name}") } else { format!("{section}.{name}.{field}") }
}

/// The keys of named tables that are set, in their order.
pub(super) fn given(all: &BTreeMap<String, Given>) -> impl Iterator<Item = (&String, &Given)> {
    all.iter().filter(|(key, given)| {
        given.source != Source::Default
            && (key.starts_with(&format!("{PROVIDERS}.")) || key.starts_with(&format!("{MODELS}.")))
    })
}
