//! `[providers.NAME]`: where models are reached.

use std::collections::BTreeMap;
use std::path::PathBuf;

use provost_llm::{EffortField, LeastEffort, OutputCapField, Provider, Providers, ReasoningBack, WireFormat};

use super::{Named, PROVIDERS, Table, field, upper};
use crate::declare::{Kind, Setting, SettingDefault};

/// What the providers' tables are for.
pub(crate) const PROVIDERS_WORDS: &str = "Providers of models, by name: a built-in one (`provost models` lists \
    them), or your own, which needs a `base_url` and uses OpenAI's Chat Completions unless `wire` is set. A \
    project's file may not set any of it: it could send your key elsewhere.";

/// A provider's table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderTable {
    wire: Option<WireFormat>,
    base_url: Option<String>,
    key_env: Option<String>,
    /// The file that holds the key.
    pub key_file: Option<PathBuf>,
    free: Option<bool>,
    first_token_secs: Option<u64>,
    output_cap: Option<OutputCapField>,
    effort: Option<EffortField>,
    least_effort: Option<LeastEffort>,
    reasoning_back: Option<ReasoningBack>,
    stream_options: Option<bool>,
}

/// One hour; a longer wait would not help.
const FIRST_TOKEN_SECS_MAX: u64 = 3_600;
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

/// The fields of a provider.
pub(crate) const PROVIDER: &[Setting<ProviderTable>] = &[
    Setting {
        kind: Kind::Choice {
            of: &["anthropic", "openai-responses", "openai-chat", "gemini"],
            put: |table, name| table.wire = WireFormat::ALL.into_iter().find(|wire| wire.name() == name),
        },
        default: SettingDefault::Unset("as built in, else openai-chat"),
        example: r#""openai-chat""#,
        words: "The wire format.",
        ..field("wire")
    },
    Setting {
        kind: Kind::Address(|table, url| table.base_url = Some(url)),
        default: SettingDefault::Unset("as built in"),
        example: r#""http://127.0.0.1:8080/v1""#,
        words: "Its address.",
        ..field("base_url")
    },
    Setting {
        kind: Kind::Variable(|table, name| table.key_env = Some(name)),
        default: SettingDefault::Unset("as built in, else NAME_API_KEY"),
        example: r#""MY_API_KEY""#,
        words: "The environment variable that holds the key. A provider for which one is named here needs the key: without \
                it, its models are an error.",
        ..field("api_key_env")
    },
    Setting {
        kind: Kind::Folder(|table, path| table.key_file = Some(path)),
        default: SettingDefault::Unset("the key is in the environment"),
        example: r#""/run/secrets/my-api-key""#,
        words: "A file that holds the key and nothing else; the variable overrides it.",
        ..field("api_key_file")
    },
    Setting {
        kind: Kind::Truth(|table, truth| table.free = Some(truth)),
        default: SettingDefault::Unset("as built in, else false"),
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
        default: SettingDefault::Unset("120; 600 where models cost nothing"),
        example: "300",
        words: "Seconds that a model may take to begin its answer: one that is loaded first, or reasons without output, \
                may need more.",
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
        default: SettingDefault::Unset("as built in, else max_tokens"),
        example: r#""max_completion_tokens""#,
        words: "The name of the field for the output cap in its Chat Completions.",
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
        default: SettingDefault::Unset("as built in, else reasoning_effort"),
        example: r#""reasoning_effort""#,
        words: "The field in which Chat Completions take the reasoning effort there.",
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
        default: SettingDefault::Unset("as built in, else low"),
        example: r#""minimal""#,
        words: "The name of the least effort in its Chat Completions.",
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
        default: SettingDefault::Unset("as built in, else none"),
        example: r#""reasoning_content""#,
        words: "The field in which its Chat Completions take the model's reasoning back.",
        ..field("reasoning_back")
    },
    Setting {
        kind: Kind::Truth(|table, truth| table.stream_options = Some(truth)),
        default: SettingDefault::Unset("as built in, else true"),
        example: "false",
        words: "Whether its Chat Completions accept `stream_options`.",
        ..field("stream_options")
    },
];

impl ProviderTable {
    /// The provider `name`, as built in and with what the table changes.
    pub fn provider(&self, name: &str) -> Provider {
        let known = Providers::built_in().get(name).cloned();
        let mut provider = known.unwrap_or_else(|| Provider {
            key_env: Some(format!("{}_API_KEY", upper(name))),
            ..Provider::new(name, WireFormat::OpenaiChat, "")
        });
        let Provider { wire, base_url, key_env, key_required, free, first_token_ms, deviations, .. } =
            &mut provider;
        put(wire, self.wire);
        put(base_url, self.base_url.clone());
        put(key_env, self.key_env.clone().map(Some));
        put(key_required, (self.key_env.is_some() || self.key_file.is_some()).then_some(true));
        put(free, self.free);
        put(first_token_ms, self.first_token_secs.map(|secs| Some(secs.saturating_mul(1_000))));
        put(&mut deviations.output_cap, self.output_cap);
        put(&mut deviations.effort, self.effort);
        put(&mut deviations.least_effort, self.least_effort);
        put(&mut deviations.reasoning_back, self.reasoning_back);
        put(&mut deviations.no_stream_options, self.stream_options.map(|takes| !takes));
        provider
    }

    /// Whether the provider `name` has no address.
    pub(crate) fn lacks_address(&self, name: &str) -> bool {
        self.provider(name).base_url.is_empty()
    }
}

fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}
