//! The model gateway by the settings, and which programs call models through it.

use std::sync::Arc;

use provost_config::{GatewaySettings, Settings};
use provost_event::Metering;
use provost_gateway::{Gateway, GatewayLimits, GatewayOptions, GatewayProviders};
use provost_harness::{Backend, Redactor, SystemClock};
use provost_llm::ProviderSettings;
use provost_terminal::{GatewayFamily, Profile};

use crate::{Variables, providers};

/// What the gateway of a run is made of, besides its store.
pub(crate) struct GatewaySetup {
    providers: ProviderSettings,
    settings: GatewaySettings,
}

impl GatewaySetup {
    /// By the settings, with the keys from the environment.
    pub(crate) fn new(settings: &Settings, variables: &Variables) -> Self {
        Self { providers: providers(settings, variables), settings: settings.gateway.clone() }
    }

    /// Its settings.
    #[cfg(test)]
    pub(crate) const fn settings(&self) -> &GatewaySettings {
        &self.settings
    }

    /// The gateway to the runs of `backend`.
    pub(crate) fn gateway(self, backend: Arc<dyn Backend>, redactor: Arc<Redactor>) -> Gateway {
        let GatewaySettings { anthropic, openai, gemini, models, records, replays } = self.settings;
        Gateway::new(GatewayOptions {
            backend,
            settings: self.providers,
            providers: GatewayProviders { anthropic, openai, gemini },
            models,
            records,
            replays,
            redactor,
            clock: Arc::new(SystemClock),
            limits: GatewayLimits::default(),
        })
    }

    /// Whether a provider of the family can be called: it exists, and has the key that it needs. A recording needs none.
    fn is_ready(&self, family: GatewayFamily) -> bool {
        let GatewaySettings { anthropic, openai, gemini, replays, .. } = &self.settings;
        if replays.is_some() {
            return true;
        }
        let can_call = |name: &String| {
            let provider = self.providers.providers.get(name);
            provider.is_some_and(|provider| !provider.key_required || self.providers.key(name).is_some())
        };
        match family {
            GatewayFamily::Anthropic => can_call(anthropic),
            GatewayFamily::Openai => can_call(openai),
            GatewayFamily::Gemini => can_call(gemini),
            GatewayFamily::Any => [anthropic, openai, gemini].into_iter().any(can_call),
        }
    }
}

/// How the usage of a program with this profile becomes known: by the gateway, where its profile says how it is pointed there
/// and its provider can be called.
pub(crate) fn metering(setup: &GatewaySetup, profile: &Profile, unmetered: bool) -> Metering {
    match &profile.gateway {
        _ if unmetered => Metering::Unmetered,
        Some(route) if setup.is_ready(route.family) => Metering::Gateway,
        Some(_) | None => Metering::Reported,
    }
}
