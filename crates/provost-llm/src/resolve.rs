//! From a model's name in the settings to the model, and to what a policy says of it.

use std::path::PathBuf;
use std::sync::Arc;

use provost_event::ModelPolicy;
use provost_harness::{Clock, Model, SystemClock};
use secrecy::SecretString;

use crate::key::Key;
use crate::{AnthropicModel, AnthropicOptions, ModelLimits, ScriptError, ScriptedModel, catalog};

const SCRIPT: &str = "script:";
const ANTHROPIC: &str = "anthropic";
const PROVIDERS: [&str; 1] = [ANTHROPIC];
/// The cap on answers of a model that isn't in the table: what every current model allows.
const OUTPUT_TOKENS_MAX: u32 = 8192;

/// What the settings and the environment say of providers.
#[derive(Clone)]
pub struct ProviderSettings {
    /// The folder that a script's path is relative to.
    pub base_dir: PathBuf,
    /// Anthropic's.
    pub anthropic: AnthropicSettings,
    /// How long and how large answers may be.
    pub limits: ModelLimits,
    /// The clock that models wait by.
    pub clock: Arc<dyn Clock>,
}

impl ProviderSettings {
    /// No keys, the providers' own addresses, default limits, the machine's clock.
    #[must_use]
    pub fn new(base_dir: impl Into<PathBuf>) -> Self {
        Self {
            base_dir: base_dir.into(),
            anthropic: AnthropicSettings::default(),
            limits: ModelLimits::default(),
            clock: Arc::new(SystemClock),
        }
    }
}

/// What the settings and the environment say of Anthropic.
#[derive(Debug, Clone)]
pub struct AnthropicSettings {
    /// Another address than the provider's own.
    pub base_url: Option<String>,
    /// The key, if there is one.
    pub key: Option<SecretString>,
    /// The variable that the key was looked for in; for the message when it is missing.
    pub key_env: String,
}

impl Default for AnthropicSettings {
    fn default() -> Self {
        Self { base_url: None, key: None, key_env: "ANTHROPIC_API_KEY".to_owned() }
    }
}

/// Why a name doesn't lead to a model. The text says what to do about it; it never holds a key.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The name has no provider, or none that is known.
    #[error("there is no provider for the model `{name}`: {hint}")]
    UnknownProvider {
        /// The name.
        name: String,
        /// What was probably meant, and what there is.
        hint: String,
    },
    /// Nothing stands behind the provider's name.
    #[error("`{name}` names no model: write a model's name behind the slash, such as `{example}`")]
    NoModel {
        /// The name.
        name: String,
        /// A name that would do.
        example: String,
    },
    /// The provider wants a key, and there is none.
    #[error("the model `{name}` needs a key: set {key_env}")]
    MissingKey {
        /// The model's name.
        name: String,
        /// The variable that would hold the key.
        key_env: String,
    },
    /// The key holds characters that no key has.
    #[error(
        "the key for {provider} can't be one: it holds line ends or other characters a header can't have"
    )]
    BadKey {
        /// Whose key.
        provider: &'static str,
    },
    /// The provider's address can't be one.
    #[error("`{base_url}` is no address of a provider: {why}; write one such as https://api.example.com")]
    Address {
        /// The address, without user and password.
        base_url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The platform gives no HTTP client; usually its certificates can't be read.
    #[error("can't set up an HTTP client; check the certificates that SSL_CERT_FILE and SSL_CERT_DIR name")]
    Client(#[source] reqwest::Error),
    /// The script can't be used.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// Finds the model called `name` (`provider/model`, or `script:FILE`), and what a policy says of it. Reads a
/// script's file, and connects to nothing.
///
/// A provider's model that isn't in the [`catalog`] has unknown window and price, and answers of at most 8192
/// tokens. A scripted model is free.
///
/// # Errors
/// Why there is no such model here, and what to do about it.
pub fn resolve(
    name: &str,
    settings: &ProviderSettings,
) -> Result<(Arc<dyn Model>, ModelPolicy), ResolveError> {
    if let Some(file) = name.strip_prefix(SCRIPT) {
        return scripted(name, file, settings);
    }
    match name.split_once('/') {
        Some((ANTHROPIC, "")) => {
            Err(ResolveError::NoModel { name: name.to_owned(), example: example_of(ANTHROPIC) })
        }
        Some((ANTHROPIC, _)) => Ok((anthropic(name, settings)?, policy(name))),
        _ => Err(ResolveError::UnknownProvider { name: name.to_owned(), hint: hint(name) }),
    }
}

fn scripted(
    name: &str,
    file: &str,
    settings: &ProviderSettings,
) -> Result<(Arc<dyn Model>, ModelPolicy), ResolveError> {
    let model = ScriptedModel::load(settings.base_dir.join(file))?.with_clock(Arc::clone(&settings.clock));
    let policy = ModelPolicy {
        name: name.to_owned(),
        window_tokens: Some(model.window_tokens()),
        output_tokens_max: model.output_tokens_max(),
        price: Some(catalog::FREE),
    };
    Ok((Arc::new(model), policy))
}

fn anthropic(name: &str, settings: &ProviderSettings) -> Result<Arc<dyn Model>, ResolveError> {
    let given = &settings.anthropic;
    let key =
        given.key.clone().filter(|key| !Key::new(key).is_empty()).ok_or_else(|| {
            ResolveError::MissingKey { name: name.to_owned(), key_env: given.key_env.clone() }
        })?;
    let base_url = given.base_url.as_deref().map(str::trim).filter(|url| !url.is_empty());
    let model = AnthropicModel::new(AnthropicOptions {
        base_url: base_url.unwrap_or("https://api.anthropic.com").to_owned(),
        key,
        limits: settings.limits,
        clock: Arc::clone(&settings.clock),
    })?;
    Ok(Arc::new(model))
}

fn policy(name: &str) -> ModelPolicy {
    let facts = catalog::find(name);
    ModelPolicy {
        name: name.to_owned(),
        window_tokens: facts.map(|facts| facts.window_tokens),
        output_tokens_max: facts.map_or(OUTPUT_TOKENS_MAX, |facts| facts.output_tokens_max),
        price: facts.map(|facts| facts.price),
    }
}

fn example_of(provider: &str) -> String {
    let model = catalog::of_provider(provider).next().map_or("MODEL", |facts| facts.name.as_str());
    format!("{provider}/{model}")
}

/// What was probably meant by a name without a provider or with a wrong one, and what there is.
fn hint(name: &str) -> String {
    let (provider, model) = name.split_once('/').unwrap_or(("", name));
    let known = format!("write one of {}/MODEL, {SCRIPT}FILE", PROVIDERS.join("/MODEL, "));
    let owner = PROVIDERS.into_iter().find(|owner| catalog::find(&format!("{owner}/{model}")).is_some());
    let near = |known: &&str| strsim::damerau_levenshtein(&provider.to_lowercase(), known) <= 3;
    match owner.or_else(|| PROVIDERS.into_iter().find(near).filter(|_| !model.is_empty())) {
        Some(owner) => format!("did you mean `{owner}/{model}`? Else {known}"),
        None if name.ends_with(".yaml") || name.ends_with(".yml") => {
            format!("did you mean `{SCRIPT}{name}`? Else {known}")
        }
        None => known,
    }
}
