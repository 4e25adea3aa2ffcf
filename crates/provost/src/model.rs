//! Which model an agent has: one of a provider by its name, or one of the embedding program.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use provost_event::{Effort, ModelPolicy, Price};
use provost_harness::{Model, Models};
use provost_llm::{ProviderSettings, ScriptedModel, resolve};
use secrecy::SecretString;

use crate::Error;

/// A model: `"anthropic/claude-sonnet-4-5"`, `"script:FILE"`, or an own implementation of [`Model`].
///
/// The key and the address of a provider's model come from the provider's environment variables, such as
/// `ANTHROPIC_API_KEY` and `ANTHROPIC_BASE_URL`, unless [`AgentBuilder::providers`](crate::AgentBuilder::providers)
/// says otherwise.
#[derive(Clone)]
pub struct ModelChoice {
    source: ModelSource,
    output_tokens_max: Option<u32>,
    window_tokens: Option<u64>,
    price: Option<Price>,
    effort: Option<Effort>,
}

#[derive(Clone)]
enum ModelSource {
    Named(String),
    Own { name: String, model: Arc<dyn Model>, known: Option<Box<ModelPolicy>> },
}

impl ModelChoice {
    /// The output cap of an own model that states none, in tokens.
    const OUTPUT_TOKENS: u32 = 8_192;

    /// A model of a provider, by its name `provider/model`; or `script:FILE`, `record:FILE=MODEL`, `replay:FILE`.
    pub fn named(name: impl Into<String>) -> Self {
        Self::of(ModelSource::Named(name.into()))
    }

    /// A model of the embedding program. Its price is unknown unless [`price`](Self::price) states it, and a budget in
    /// money is refused then; answers have at most 8,192 tokens unless [`output_tokens_max`](Self::output_tokens_max)
    /// says otherwise.
    ///
    /// ```
    /// # use provost::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), provost::Error> {
    /// use provost::event::ModelFailure;
    /// use provost::harness::{DeltaSink, ModelRequest};
    /// use provost::{Answer, Model, Usage};
    ///
    /// struct Parrot;
    ///
    /// #[async_trait]
    /// impl Model for Parrot {
    ///     async fn answer(
    ///         &self,
    ///         request: ModelRequest<'_>,
    ///         _: &dyn DeltaSink,
    ///         _: &CancellationToken,
    ///     ) -> Result<Answer, ModelFailure> {
    ///         let text = format!("Messages: {}. VERDICT: PASS", request.messages.len());
    ///         Ok(Answer::text("parrot-1", text, Usage::default()))
    ///     }
    /// }
    ///
    /// let agent = Agent::builder(ModelChoice::own("parrot", Parrot)).build()?;
    /// assert_eq!(agent.run("Speak.").await?.text, "Messages: 1. VERDICT: PASS");
    /// # Ok(())
    /// # }
    /// ```
    pub fn own(name: impl Into<String>, model: impl Model + 'static) -> Self {
        Self::of(ModelSource::Own { name: name.into(), model: Arc::new(model), known: None })
    }

    fn of(source: ModelSource) -> Self {
        Self { source, output_tokens_max: None, window_tokens: None, price: None, effort: None }
    }

    /// Sets the maximum tokens of an answer.
    #[must_use]
    pub const fn output_tokens_max(mut self, tokens: u32) -> Self {
        self.output_tokens_max = Some(tokens);
        self
    }

    /// Sets the context window: tokens of a request and its answer.
    #[must_use]
    pub const fn window_tokens(mut self, tokens: u64) -> Self {
        self.window_tokens = Some(tokens);
        self
    }

    /// Sets the price of its tokens.
    #[must_use]
    pub const fn price(mut self, price: Price) -> Self {
        self.price = Some(price);
        self
    }

    /// Sets the effort of its reasoning; a model that is known not to have it gets the next lower one. The default of a
    /// model of a provider that is known to reason is [`Effort::High`].
    #[must_use]
    pub const fn effort(mut self, effort: Effort) -> Self {
        self.effort = Some(effort);
        self
    }

    fn adjusted(self, policy: ModelPolicy) -> ModelPolicy {
        ModelPolicy {
            output_tokens_max: self.output_tokens_max.unwrap_or(policy.output_tokens_max),
            window_tokens: self.window_tokens.or(policy.window_tokens),
            price: self.price.or(policy.price),
            effort: self.effort.or(policy.effort),
            ..policy
        }
    }
}

impl From<&str> for ModelChoice {
    fn from(name: &str) -> Self {
        Self::named(name)
    }
}

impl From<String> for ModelChoice {
    fn from(name: String) -> Self {
        Self::named(name)
    }
}

/// A script as a model called `scripted`, which costs nothing. Two different ones in one agent need names:
/// [`ModelChoice::own`].
impl From<ScriptedModel> for ModelChoice {
    fn from(model: ScriptedModel) -> Self {
        let known = ModelPolicy {
            window_tokens: Some(model.window_tokens()),
            price: Some(Price::FREE),
            images: true,
            ..ModelPolicy::new("scripted", model.output_tokens_max())
        };
        let known = Some(Box::new(known));
        Self::of(ModelSource::Own { name: "scripted".to_owned(), model: Arc::new(model), known })
    }
}

/// Collects the models of an agent.
pub(crate) struct ModelCollection {
    providers: ProviderSettings,
    own: BTreeMap<String, Arc<dyn Model>>,
    pub(crate) models: Models,
}

impl ModelCollection {
    pub(crate) fn new(providers: ProviderSettings) -> Self {
        Self { providers, own: BTreeMap::new(), models: Models::new() }
    }

    /// Adds `choice`; returns its policy.
    pub(crate) fn add(&mut self, choice: ModelChoice) -> Result<ModelPolicy, Error> {
        let policy = match &choice.source {
            ModelSource::Named(name) => {
                let (model, policy) = resolve(name, &self.providers)?;
                self.models = std::mem::take(&mut self.models).with(name.clone(), model);
                policy
            }
            ModelSource::Own { name, model, known } => {
                let before = self.own.insert(name.clone(), Arc::clone(model));
                if before.is_some_and(|before| !Arc::ptr_eq(&before, model)) {
                    return Err(Error::DoubledModel { name: name.clone() });
                }
                self.models = std::mem::take(&mut self.models).with(name.clone(), Arc::clone(model));
                let unknown = || ModelPolicy::new(name.clone(), ModelChoice::OUTPUT_TOKENS);
                known.as_deref().cloned().unwrap_or_else(unknown)
            }
        };
        let policy = choice.adjusted(policy);
        Ok(ModelPolicy {
            effort: policy.effort.map(|set| self.providers.effort(&policy.name, set)),
            ..policy
        })
    }

    /// The keys that no evidence for a judge and no log may contain.
    pub(crate) fn keys(&self) -> impl Iterator<Item = SecretString> {
        self.providers.keys.values().chain(&self.providers.secrets).cloned()
    }
}

/// The built-in providers, with the keys and addresses in their environment variables.
pub(crate) fn providers_of_environment(folder: &Path) -> ProviderSettings {
    providers_with(folder, |name| std::env::var(name).ok())
}

fn providers_with(folder: &Path, variable: impl Fn(&str) -> Option<String>) -> ProviderSettings {
    let mut settings = ProviderSettings::new(folder);
    for mut provider in settings.providers.iter().cloned().collect::<Vec<_>>() {
        let key = provider.key_env.as_ref().and_then(|name| variable(name));
        if let Some(key) = key.filter(|key| !key.trim().is_empty()) {
            settings.keys.insert(provider.name.clone(), SecretString::from(key));
        }
        let mut addresses = provider.base_url_env.iter().filter_map(|name| variable(name));
        if let Some(address) = addresses.find(|address| !address.is_empty()) {
            provider.base_url = address;
            settings.providers = settings.providers.with(provider);
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base_url(provider: &str, variables: &[(&str, &str)]) -> String {
        let value = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let settings = providers_with(Path::new("."), value);
        settings.providers.get(provider).expect("a built-in provider").base_url.clone()
    }

    #[test]
    fn the_address_of_a_provider_is_that_of_its_first_variable_that_is_set() {
        let gateway = "http://127.0.0.1:8080";
        assert_eq!(base_url("anthropic", &[("ANTHROPIC_BASE_URL", gateway)]), gateway);
        let both = [("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1"), ("GEMINI_BASE_URL", gateway)];
        assert_eq!(base_url("gemini", &both), gateway);
        let empty = [("GEMINI_BASE_URL", ""), ("GOOGLE_GEMINI_BASE_URL", gateway)];
        assert_eq!(base_url("gemini", &empty), gateway);
        let built_in = base_url("anthropic", &[]);
        assert!(built_in.starts_with("https://"), "{built_in}");
        assert_eq!(base_url("anthropic", &[("OPENAI_BASE_URL", gateway)]), built_in);
    }
}
