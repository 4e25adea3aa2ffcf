//! `[gateway]`: where the programs of external agents call models.

use provost_event::RunId;

use super::Settings;
use super::declare::{From, Kind, Setting, SettingDefault};

/// What `[gateway]` is for.
pub(crate) const GATEWAY_WORDS: &str = "The model gateway: programs that work as agents call models through it, so that \
    the budget binds each of their calls. See docs/gateway.md.";

/// The settings of the model gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewaySettings {
    /// The provider for Anthropic's Messages.
    pub anthropic: String,
    /// The provider for OpenAI's Responses and Chat Completions.
    pub openai: String,
    /// The provider for Google's Gemini API.
    pub gemini: String,
    /// The models that programs may call; empty: all.
    pub models: Vec<String>,
    /// Whether requests and answers are recorded.
    pub records: bool,
    /// The run whose recorded answers stand in for the providers.
    pub replays: Option<RunId>,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            anthropic: "anthropic".to_owned(),
            openai: "openai".to_owned(),
            gemini: "gemini".to_owned(),
            models: Vec::new(),
            records: false,
            replays: None,
        }
    }
}

/// The settings of `[gateway]`. They say who gets a key, so that a project's file may set none of them.
pub(crate) const GATEWAY: &[Setting<Settings>] = &[
    Setting {
        kind: Kind::Line(|s, name| s.gateway.anthropic = name),
        default: SettingDefault::Is(r#""anthropic""#),
        example: r#""proxy""#,
        words: "The provider that gets requests in the form of Anthropic's Messages: a built-in one or one of [providers].",
        ..gateway("anthropic")
    },
    Setting {
        kind: Kind::Line(|s, name| s.gateway.openai = name),
        default: SettingDefault::Is(r#""openai""#),
        example: r#""ollama""#,
        words: "The provider that gets requests in the form of OpenAI's Responses and Chat Completions.",
        ..gateway("openai")
    },
    Setting {
        kind: Kind::Line(|s, name| s.gateway.gemini = name),
        default: SettingDefault::Is(r#""gemini""#),
        example: r#""proxy""#,
        words: "The provider that gets requests in the form of Google's Gemini API.",
        ..gateway("gemini")
    },
    Setting {
        kind: Kind::List(|s, model| {
            s.gateway.models.push(model);
            Ok(())
        }),
        default: SettingDefault::Unset("all models"),
        example: r#"["openai/gpt-6*", "anthropic/claude-opus-5-5"]"#,
        words: "The models that programs may call, as `provider/model`; a * at the end matches any rest.",
        ..gateway("models")
    },
    Setting {
        kind: Kind::Truth(|s, truth| s.gateway.records = truth),
        default: SettingDefault::Is("false"),
        example: "true",
        words: "Whether the requests and answers of programs are kept in the log, without known secrets.",
        flag: Some("--record-calls"),
        ..gateway("record")
    },
    Setting {
        kind: Kind::Checked(|s, run| {
            let run = run.parse().map_err(|_| "must be the whole id of a run".to_owned())?;
            s.gateway.replays = Some(run);
            Ok(())
        }),
        default: SettingDefault::Unset("providers are called"),
        example: r#""v84pvfktznd9""#,
        words: "A run recorded with `record`, by its whole id: its answers are replayed in place of the \
            providers', without a key or a network, at no cost. A request that it doesn't have is refused.",
        flag: Some("--replay-calls"),
        ..gateway("replay")
    },
];

const fn gateway(name: &'static str) -> Setting<Settings> {
    Setting { from: From::User, ..Setting::declared("gateway", name) }
}
