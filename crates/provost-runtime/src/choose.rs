//! Chooses the model of an agent, with its entry in a policy.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::Zoned;
use provost_config::{Agent, Problem, Problems, Settled, Source};
use provost_event::{Effort, ModelPolicy, counted};
use provost_harness::{Model, Models, Redactor};
use provost_llm::{ProviderSettings, ResolveError, resolve};
use secrecy::ExposeSecret as _;

use crate::retire::retirement;
use crate::window::{self, Keys, Room};
use crate::{Variables, asked, providers, team};

/// A model, and its entry in a policy.
#[derive(Clone)]
pub struct Chosen {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Its name, window, cap and price.
    pub policy: ModelPolicy,
}

/// Notes for the user on models of the run's agent, of `agents` and of their judges that are retired, or soon will
/// be.
pub fn retiring(settled: &Settled, agents: &[Agent], folder: &Path, variables: &Variables) -> Vec<String> {
    let choosing = Choosing::new(settled, variables);
    let mut said = Vec::new();
    for about in team::wanted(settled, agents, folder).iter().filter_map(|wanted| choosing.retirement(wanted))
    {
        if !said.contains(&about) {
            said.push(about);
        }
    }
    said
}

/// An agent's requirements for its model, and where they were set.
pub struct Wanted {
    /// Its role for people, unless it is the model of the run's agent.
    pub(crate) of: Option<String>,
    /// The model's name, its paths absolute.
    pub name: String,
    /// The models that stand in for it.
    pub(crate) fallbacks: Vec<Named>,
    /// Where the model and the cap were given.
    pub(crate) keys: Keys,
    /// Tokens of an answer: a model with a lower maximum is an error.
    pub(crate) cap: Option<u32>,
    /// Tokens of an answer, lowered to the model's maximum.
    pub(crate) cap_at_most: Option<u32>,
    /// Its reasoning effort.
    pub(crate) effort: Option<Effort>,
    /// Whether a limit of its own binds money, and where it was given.
    pub(crate) money: Option<Source>,
    /// What its window must have room for.
    pub(crate) room: Room,
}

/// A model's name, its paths absolute, and where it was given: the place and the setting.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) at: (Source, String),
}

impl Wanted {
    /// Its model, and those that stand in for it, with their places.
    fn named(&self) -> impl Iterator<Item = (&str, &(Source, String))> {
        let own = std::iter::once((self.name.as_str(), &self.keys.model));
        own.chain(self.fallbacks.iter().map(|one| (one.name.as_str(), &one.at)))
    }
}

/// Choosing models: each is made once, however many agents it is for.
pub struct Choosing<'a> {
    settled: &'a Settled,
    providers: ProviderSettings,
    known: BTreeMap<String, Chosen>,
}

/// The model that the settings name, with their cap on its answers.
///
/// # Errors
/// [`Problems`] that name the setting.
pub fn choose_model(settled: &Settled, folder: &Path, variables: &Variables) -> Result<Chosen, Problems> {
    Choosing::new(settled, variables).choose(&team::wanted_of_root(settled, folder))
}

impl<'a> Choosing<'a> {
    /// Nothing is chosen yet.
    pub fn new(settled: &'a Settled, variables: &Variables) -> Self {
        let providers = providers(&settled.settings, variables);
        Self { settled, providers, known: BTreeMap::new() }
    }

    /// The models that were chosen.
    pub(crate) fn models(self) -> Models {
        let all = self.known.into_iter();
        all.fold(Models::new(), |models, (name, chosen)| models.with(name, chosen.model))
    }

    /// The missing keys of the requested model and of those that stand in for it.
    pub fn missing_keys(&self, wanted: &Wanted) -> Vec<Problem> {
        let missing = |(name, at): (&str, &(Source, String))| match resolve(name, &self.providers) {
            Err(error @ ResolveError::MissingKey { .. }) => Some(at_place(at, &error)),
            _ => None,
        };
        wanted.named().filter_map(missing).collect()
    }

    /// What is wrong with the key of the requested model, if it is too short to be one.
    pub fn short_key(&self, wanted: &Wanted) -> Option<String> {
        let name = asked(&wanted.name).split('/').next()?;
        let key = self.providers.keys.get(name)?.expose_secret().trim();
        if key.is_empty() || !Redactor::is_too_short(key) {
            return None;
        }
        let variable = self.providers.providers.get(name)?.key_env.as_ref();
        let variable = variable.map(|name| format!(" ({name})")).unwrap_or_default();
        let length = counted(key.chars().count() as u64, "character");
        Some(format!(
            "the key of the provider {name}{variable} has {length}: too short for a key, and not taken out of what is \
             shown and kept"
        ))
    }

    /// That the requested model is retired, or soon will be.
    pub fn retirement(&self, wanted: &Wanted) -> Option<String> {
        let name = asked(&wanted.name);
        retirement(name, &self.providers.facts(name)?, Zoned::now().date())
    }

    /// The requested model.
    ///
    /// # Errors
    /// [`Problems`] that name the setting.
    pub fn choose(&mut self, wanted: &Wanted) -> Result<Chosen, Problems> {
        let Chosen { model, mut policy } = self.resolved(&wanted.name, &wanted.keys.model)?;
        policy.effort = self.effort(wanted, &policy);
        if let Some(cap) = self.cap(wanted, &policy)? {
            policy.output_tokens_max = cap;
        }
        self.must_be_priced(&wanted.name, wanted, &policy)?;
        let Wanted { room, keys, .. } = wanted;
        if let Some(problem) = window::problem(self.settled, asked(&wanted.name), &policy, room, keys) {
            return Err(Problems(vec![problem]));
        }
        for Named { name, at } in &wanted.fallbacks {
            let mut fallback = self.resolved(name, at)?.policy;
            self.must_be_priced(name, wanted, &fallback)?;
            let cap = wanted.cap.or(wanted.cap_at_most).unwrap_or(u32::MAX);
            fallback.output_tokens_max = fallback.output_tokens_max.min(cap);
            fallback.effort = self.effort(wanted, &fallback);
            // What one of them can't be shown none of them is: the conversation stays the same.
            policy.images &= fallback.images;
            policy.fallbacks.push(fallback);
        }
        Ok(Chosen { model, policy })
    }

    fn resolved(&mut self, name: &str, at: &(Source, String)) -> Result<Chosen, Problems> {
        if let Some(known) = self.known.get(name) {
            return Ok(known.clone());
        }
        if let Some((key, what)) = self.unreadable_key_file(asked(name)) {
            let remedy = "it must be a file that you may read".to_owned();
            return Err(one(Problem { source: self.settled.source(&key), key, what, remedy }));
        }
        let (model, policy) = resolve(name, &self.providers).map_err(|error| one(at_place(at, &error)))?;
        let chosen = Chosen { model, policy };
        self.known.insert(name.to_owned(), chosen.clone());
        Ok(chosen)
    }

    /// The cap on answers, if one is set.
    fn cap(&self, wanted: &Wanted, policy: &ModelPolicy) -> Result<Option<u32>, Problems> {
        let Some(cap) = wanted.cap else {
            return Ok(wanted.cap_at_most.map(|cap| with_thinking(cap, wanted, policy)));
        };
        let most = self.providers.facts(asked(&wanted.name)).and_then(|facts| facts.output_tokens_max);
        let Some(most) = most.filter(|most| cap > *most) else { return Ok(Some(cap)) };
        let (source, key) = wanted.keys.cap.clone();
        let what = format!("{} gives at most {most} (is {cap})", wanted.name);
        Err(one(Problem { source, key, what, remedy: "lower it, or leave it out".to_owned() }))
    }

    fn must_be_priced(&self, name: &str, wanted: &Wanted, policy: &ModelPolicy) -> Result<(), Problems> {
        let settings = &self.settled.settings;
        let of_run = settings.budget.money.map(|_| ("budget.usd", self.settled.source("budget.usd")));
        let of_agent = wanted.money.clone().map(|source| ("agents.budget.usd", source));
        let Some((key, source)) = of_agent.or(of_run) else { return Ok(()) };
        if policy.price.is_some() || settings.allow_unpriced {
            return Ok(());
        }
        let whose = wanted.of.as_ref().map(|of| format!(", {of},")).unwrap_or_default();
        let what = format!("limits money, but the price of {name}{whose} isn't known");
        let remedy = format!(
            "limit tokens instead, e.g. tokens = 2_000_000; or state the price in [models.\"{name}\"] of your own \
             settings file; or set allow_unpriced"
        );
        Err(one(Problem { source, key: key.to_owned(), what, remedy }))
    }

    /// The effort that the model of `policy` is asked for: the set one, as far as it accepts that. A verdict needs
    /// little.
    fn effort(&self, wanted: &Wanted, policy: &ModelPolicy) -> Option<Effort> {
        match (wanted.effort, &wanted.room) {
            (Some(set), _) => Some(self.providers.effort(&policy.name, set)),
            (None, Room::Verdict { .. } | Room::Check) => policy.effort.map(|_| Effort::Low),
            (None, Room::Conversation { .. }) => policy.effort,
        }
    }

    /// The setting that names the file with the key of `name`'s provider, and why that can't be read, if so.
    fn unreadable_key_file(&self, name: &str) -> Option<(String, String)> {
        let (provider, _) = name.split_once('/')?;
        let file = self.settled.settings.named.providers.get(provider)?.key_file.as_ref()?;
        let error = std::fs::read_to_string(file).err()?;
        Some((
            format!("providers.{provider}.api_key_file"),
            format!("can't read {}: {error}", file.display()),
        ))
    }
}

/// `cap`, and for a judge the tokens of its reasoning before the verdict; no more than the model gives, and of its
/// window at most a quarter for that.
fn with_thinking(cap: u32, wanted: &Wanted, policy: &ModelPolicy) -> u32 {
    let quarter =
        policy.window_tokens.map_or(u32::MAX, |window| u32::try_from(window / 4).unwrap_or(u32::MAX));
    let thinks = match wanted.room {
        Room::Verdict { .. } | Room::Check => policy.thinking_tokens(policy.effort),
        Room::Conversation { .. } => 0,
    };
    cap.max(cap.saturating_add(thinks).min(quarter)).min(policy.output_tokens_max)
}

fn at_place((source, key): &(Source, String), error: &ResolveError) -> Problem {
    Problem { source: source.clone(), key: key.clone(), what: words(error), remedy: String::new() }
}

fn one(problem: Problem) -> Problems {
    Problems(vec![problem])
}

/// An error with its causes.
pub fn words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}
