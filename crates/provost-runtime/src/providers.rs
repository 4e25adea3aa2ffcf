//! The providers of the settings, and what is secret.

use provost_config::{Hook, Named, Settings, setting_variables};
use provost_llm::{Provider, ProviderSettings};
use secrecy::SecretString;

use crate::Variables;
use crate::mcp::secrets_of_servers;
use crate::observers::header_values;

/// The providers of the settings, with the keys from the environment.
pub fn providers(settings: &Settings, variables: &Variables) -> ProviderSettings {
    // Scripts and recordings have absolute paths by now.
    let mut all = ProviderSettings::new("/");
    for (name, table) in &settings.named.providers {
        all.providers = all.providers.with(table.provider(name));
    }
    all.catalog = all.catalog.updated(&settings.named.updated);
    for (name, table) in &settings.named.models {
        all.catalog = all.catalog.with(table.facts(name));
    }
    for provider in all.providers.iter() {
        if let Some(key) = key_of(provider, settings, variables) {
            all.keys.insert(provider.name.clone(), key);
        }
    }
    all.secrets = secrets(settings, variables);
    all
}

/// The provider's key: from its variable, else from its file. A file that can't be read holds none.
fn key_of(provider: &Provider, settings: &Settings, variables: &Variables) -> Option<SecretString> {
    let is_there = |key: &String| !key.trim().is_empty();
    let of_variable = provider.key_env.as_ref().and_then(|name| variables.get(name)).cloned();
    let file = settings.named.providers.get(&provider.name).and_then(|table| table.key_file.as_ref());
    let of_file = || std::fs::read_to_string(file?).ok().filter(is_there);
    let key = of_variable.filter(is_there).or_else(of_file)?;
    Some(SecretString::from(key))
}

/// The values of variables that by their names hold secrets.
fn secrets(settings: &Settings, variables: &Variables) -> Vec<SecretString> {
    let own = setting_variables(&settings.named);
    let values = variables.iter().filter(|(name, _)| is_secret(name, &own)).map(|(_, value)| value.clone());
    values.map(SecretString::from).collect()
}

/// Whether a variable by its name holds a secret. `own` are those that are settings: a number of tokens is none.
fn is_secret(name: &str, own: &[String]) -> bool {
    const WORDS: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];
    WORDS.iter().any(|word| name.to_uppercase().contains(word)) && !own.iter().any(|known| known == name)
}

/// All values that must not get into what is written or sent beside the log.
pub fn all_secrets(settings: &Settings, variables: &Variables) -> Vec<SecretString> {
    let providers = providers(settings, variables);
    let tables = settings.named.providers.values();
    // A file counts also where a variable stands before it.
    let of_files = tables.filter_map(|table| std::fs::read_to_string(table.key_file.as_ref()?).ok());
    let of_headers = settings.hooks.iter().flat_map(Hook::header_variables);
    let of_headers = of_headers.filter_map(|name| variables.get(name)).cloned();
    let of_collector = settings.trace.otlp_headers_env.as_ref().and_then(|name| variables.get(name));
    let of_collector = of_collector.into_iter().flat_map(|text| header_values(text.as_str()));
    let of_webhook = settings.notify.webhook_headers_env.as_ref().and_then(|name| variables.get(name));
    let of_webhook = of_webhook.into_iter().flat_map(|text| header_values(text.as_str()));
    // Its path is what lets others post there.
    let of_webhook = of_webhook.chain(settings.notify.webhook.clone());
    let more = of_files.chain(of_headers).chain(of_collector).chain(of_webhook).map(SecretString::from);
    let of_servers = secrets_of_servers(settings, variables);
    providers.keys.into_values().chain(providers.secrets).chain(more).chain(of_servers).collect()
}

/// Whether a variable by its name holds a secret that an agent's own commands must not get: a key, a password, or
/// headers with tokens, such as those for telemetry. Provost's own settings are none.
#[must_use]
pub fn holds_secret(variable: &str) -> bool {
    is_secret(variable, &setting_variables(&Named::default())) || variable.to_uppercase().contains("HEADERS")
}

#[cfg(test)]
mod tests {
    use super::{Named, is_secret, setting_variables};

    #[test]
    fn what_sounds_like_a_secret_is_one_unless_it_is_a_setting() {
        let own = setting_variables(&Named::default());
        for name in ["ANTHROPIC_API_KEY", "github_token", "PROVOST_SERVER_TOKEN", "PROVOST_BUDGET_TOKENS_2"] {
            assert!(is_secret(name, &own), "{name}");
        }
        for name in [
            "PROVOST_BUDGET_TOKENS",
            "PROVOST_AGENT_OUTPUT_TOKENS_MAX",
            "PROVOST_PROVIDERS_OPENAI_FIRST_TOKEN_SECS",
        ] {
            assert!(own.iter().any(|known| known == name), "{name} is a setting");
            assert!(!is_secret(name, &own), "{name}");
        }
        assert!(!is_secret("PATH", &own));
    }
}
