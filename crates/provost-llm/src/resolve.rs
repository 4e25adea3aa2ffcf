//! Resolves a model's name from the settings to the model and its policy.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use provost_event::{Effort, ModelPolicy, Price};
use provost_harness::{Clock, Model, Redactor, SystemClock};
use secrecy::SecretString;

use crate::key::Key;
use crate::{
    Catalog, ModelFacts, ModelLimits, Provider, ProviderModel, ProviderOptions, Providers, RecordingModel,
    ReplayModel, ScriptError, ScriptedModel, TapeError,
};

/// The least wait for the first event of a provider whose models cost nothing.
const LOCAL_FIRST_EVENT_MS: u64 = 600_000;

const SCRIPT: &str = "script:";
const RECORD: &str = "record:";
const REPLAY: &str = "replay:";

/// The providers and models of the settings and the environment.
#[derive(Clone)]
pub struct ProviderSettings {
    /// The folder for relative paths of scripts and recordings.
    pub base_dir: PathBuf,
    /// The providers.
    pub providers: Providers,
    /// Their keys, by provider name.
    pub keys: BTreeMap<String, SecretString>,
    /// The facts about models.
    pub catalog: Catalog,
    /// Values to remove from recordings, besides the providers' keys.
    pub secrets: Vec<SecretString>,
    /// Limits on the time and size of answers.
    pub limits: ModelLimits,
    /// The clock of all models.
    pub clock: Arc<dyn Clock>,
}

impl ProviderSettings {
    /// The built-in providers and models, no keys, default limits, the machine's clock.
    #[must_use]
    pub fn new(base_dir: impl Into<PathBuf>) -> Self {
        Self {
            base_dir: base_dir.into(),
            providers: Providers::built_in(),
            keys: BTreeMap::new(),
            catalog: Catalog::built_in(),
            secrets: Vec::new(),
            limits: ModelLimits::default(),
            clock: Arc::new(SystemClock),
        }
    }

    /// The facts of `provider/model`. A model of a provider on the user's own machine is free.
    #[must_use]
    pub fn facts(&self, name: &str) -> Option<ModelFacts> {
        let (of, model) = name.split_once('/')?;
        let provider = self.providers.get(of);
        let like = provider.and_then(|provider| provider.models_of.as_deref());
        let known = self.catalog.find(name);
        let known = known.or_else(|| self.catalog.find(&format!("{}/{model}", like?))).cloned();
        match provider {
            Some(provider) if provider.free => {
                let known =
                    known.unwrap_or_else(|| ModelFacts { name: name.to_owned(), ..ModelFacts::default() });
                Some(ModelFacts { price: known.price.or(Some(Price::FREE)), ..known })
            }
            _ => known,
        }
    }

    /// The effort that the model `name` is asked for where `wanted` is set: the next lower one, if it is known not to
    /// accept that. The name may be that of a recording.
    #[must_use]
    pub fn effort(&self, name: &str, wanted: Effort) -> Effort {
        let recorded = name.strip_prefix(RECORD).and_then(|recorded| recorded.split_once('='));
        let name = recorded.map_or(name, |(_, name)| name);
        self.facts(name).map_or(wanted, |facts| facts.accepted(wanted))
    }

    /// The client of `provider/model`, for functions that only a provider's model has.
    ///
    /// # Errors
    /// As for [`resolve`].
    pub fn provider_model(&self, name: &str) -> Result<ProviderModel, ResolveError> {
        let (provider, model) = self.split(name)?;
        provided(name, model, provider, &self.facts(name).unwrap_or_default(), self)
    }

    /// The provider in `name`, and its own name for the model.
    fn split<'a>(&self, name: &'a str) -> Result<(&Provider, &'a str), ResolveError> {
        let unknown = || ResolveError::UnknownProvider { name: name.to_owned(), hint: hint(name, self) };
        let (of, model) = name.split_once('/').ok_or_else(unknown)?;
        let provider = self.providers.get(of).ok_or_else(unknown)?;
        if model.is_empty() {
            return Err(ResolveError::NoModel { name: name.to_owned(), example: example_of(of, self) });
        }
        Ok((provider, model))
    }

    /// The provider's key; `None` if it is absent or empty.
    #[must_use]
    pub fn key(&self, provider: &str) -> Option<&SecretString> {
        self.keys.get(provider).filter(|key| !Key::new(Some(key)).is_empty())
    }
}

/// Why a name can't be resolved. The message has a remedy, and never a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The name has no provider, or an unknown one.
    #[error("there is no provider for the model `{name}`: {hint}")]
    UnknownProvider {
        /// The name.
        name: String,
        /// A suggestion, and the known providers.
        hint: String,
    },
    /// There is no model name after the provider's name.
    #[error("`{name}` names no model: write a model's name behind the slash, such as `{example}`")]
    NoModel {
        /// The name.
        name: String,
        /// A valid name.
        example: String,
    },
    /// The provider needs a key, and there is none.
    #[error("the model `{name}` needs a key: set {key_env}")]
    MissingKey {
        /// The model's name.
        name: String,
        /// The variable for the key.
        key_env: String,
    },
    /// The key has invalid characters.
    #[error(
        "the key for {provider} can't be one: it holds line ends or other characters a header can't have"
    )]
    BadKey {
        /// The provider's name.
        provider: String,
    },
    /// The provider's address is invalid.
    #[error("`{base_url}` is no address of a provider: {why}; write one such as https://api.example.com")]
    Address {
        /// The address, without user and password.
        base_url: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The HTTP client can't be made; usually the certificates can't be read.
    #[error("can't set up an HTTP client; check the certificates that SSL_CERT_FILE and SSL_CERT_DIR name")]
    Client(#[source] reqwest::Error),
    /// The script is invalid.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The model to record is missing.
    #[error("`{name}` says not what to record: write {RECORD}FILE=PROVIDER/MODEL")]
    NothingToRecord {
        /// The name.
        name: String,
    },
    /// The recording can't be replayed.
    #[error(transparent)]
    Tape(#[from] TapeError),
}

/// Resolves `name` (`provider/model`, `script:FILE`, `record:FILE=MODEL` or `replay:FILE`) to a model and its
/// policy. Reads a script's or a recording's file, and makes no connection.
///
/// An unknown model of a provider has unknown window and price, and answers of at most 8192 tokens; if only its
/// window is known, of at most a quarter of that. Scripts and replays are free.
///
/// # Errors
/// Why the name can't be resolved, with a remedy.
pub fn resolve(
    name: &str,
    settings: &ProviderSettings,
) -> Result<(Arc<dyn Model>, ModelPolicy), ResolveError> {
    if let Some(file) = name.strip_prefix(SCRIPT) {
        return scripted(name, file, settings);
    }
    if let Some(recorded) = name.strip_prefix(RECORD) {
        return recording(name, recorded, settings);
    }
    if let Some(file) = name.strip_prefix(REPLAY) {
        return replayed(name, file, settings);
    }
    let (provider, model) = settings.split(name)?;
    let facts = settings.facts(name).unwrap_or_default();
    Ok((Arc::new(provided(name, model, provider, &facts, settings)?), facts.policy(name)))
}

fn scripted(
    name: &str,
    file: &str,
    settings: &ProviderSettings,
) -> Result<(Arc<dyn Model>, ModelPolicy), ResolveError> {
    let model = ScriptedModel::load(settings.base_dir.join(file))?.with_clock(Arc::clone(&settings.clock));
    let policy = ModelPolicy {
        window_tokens: Some(model.window_tokens()),
        price: Some(Price::FREE),
        images: true,
        ..ModelPolicy::new(name, model.output_tokens_max())
    };
    Ok((Arc::new(model), policy))
}

fn recording(
    name: &str,
    recorded: &str,
    settings: &ProviderSettings,
) -> Result<(Arc<dyn Model>, ModelPolicy), ResolveError> {
    let pair = recorded.split_once('=').filter(|(file, model)| !file.is_empty() && !model.is_empty());
    let (file, model) = pair.ok_or_else(|| ResolveError::NothingToRecord { name: name.to_owned() })?;
    let (inner, policy) = resolve(model, settings)?;
    let redactor = Redactor::new(settings.keys.values().chain(&settings.secrets).cloned());
    let model = RecordingModel::new(settings.base_dir.join(file), inner, &policy, Arc::new(redactor));
    Ok((Arc::new(model), ModelPolicy { name: name.to_owned(), ..policy }))
}

fn replayed(
    name: &str,
    file: &str,
    settings: &ProviderSettings,
) -> Result<(Arc<dyn Model>, ModelPolicy), ResolveError> {
    let model = ReplayModel::open(settings.base_dir.join(file))?;
    let policy = ModelPolicy {
        window_tokens: model.window_tokens(),
        price: Some(Price::FREE),
        images: model.images(),
        ..ModelPolicy::new(name, model.output_tokens_max())
    };
    Ok((Arc::new(model), policy))
}

/// How long the first event of `provider` may take: models that cost nothing are mostly served by the user's own machine,
/// which may have to load them first.
fn first_event_ms(provider: &Provider, limits: &ModelLimits) -> u64 {
    let usual = limits.first_event_ms;
    let default = if provider.free { usual.max(LOCAL_FIRST_EVENT_MS) } else { usual };
    provider.first_token_ms.unwrap_or(default)
}

fn provided(
    name: &str,
    model: &str,
    provider: &Provider,
    facts: &ModelFacts,
    settings: &ProviderSettings,
) -> Result<ProviderModel, ResolveError> {
    let key = settings.key(&provider.name).cloned();
    if key.is_none() && provider.key_required {
        let key_env = provider.key_env.clone().unwrap_or_default();
        return Err(ResolveError::MissingKey { name: name.to_owned(), key_env });
    }
    let limits =
        ModelLimits { first_event_ms: first_event_ms(provider, &settings.limits), ..settings.limits };
    ProviderModel::new(ProviderOptions {
        provider: provider.clone(),
        model: model.to_owned(),
        key,
        reasoning: facts.reasoning,
        limits,
        clock: Arc::clone(&settings.clock),
    })
}

fn example_of(provider: &str, settings: &ProviderSettings) -> String {
    let known = settings.catalog.of_provider(provider).next();
    known.map_or_else(|| format!("{provider}/MODEL"), |facts| facts.name.clone())
}

/// A suggestion for a name without a provider or with an unknown one, and the known providers.
fn hint(name: &str, settings: &ProviderSettings) -> String {
    let (provider, model) = name.split_once('/').unwrap_or(("", name));
    let providers = settings.providers.iter().map(|provider| provider.name.as_str()).collect::<Vec<_>>();
    let known = format!("write {SCRIPT}FILE, or PROVIDER/MODEL with one of {}", providers.join(", "));
    let owner = providers.iter().find(|owner| settings.catalog.find(&format!("{owner}/{model}")).is_some());
    let distance = |known: &str| strsim::damerau_levenshtein(&provider.to_lowercase(), known);
    let nearest = providers.iter().min_by_key(|known| distance(known));
    match owner.or(nearest.filter(|known| distance(known) <= 2 && !provider.is_empty() && !model.is_empty()))
    {
        Some(owner) => format!("did you mean `{owner}/{model}`? Else {known}"),
        None if name.ends_with(".yaml") || name.ends_with(".yml") => {
            format!("did you mean `{SCRIPT}{name}`? Else {known}")
        }
        None => known,
    }
}

#[cfg(test)]
mod tests {
    use super::first_event_ms;
    use crate::{ModelLimits, Provider, Providers};

    #[test]
    fn local_models_have_ten_minutes_to_load_unless_settings_say_otherwise() {
        let limits = ModelLimits::default();
        let all = Providers::built_in();
        let provider = |name: &str| all.get(name).expect("it is built in").clone();
        let ms = |name: &str| first_event_ms(&provider(name), &limits);
        assert_eq!((ms("openai"), ms("ollama")), (120_000, 600_000));
        let set = Provider { first_token_ms: Some(5_000), ..provider("ollama") };
        assert_eq!(first_event_ms(&set, &limits), 5_000);
    }
}
