//! Resolving names to models.

use std::fs;

use expect_test::{Expect, expect};
use provost_event::{MicroDollars, ModelPolicy, Price};
use provost_llm::{Provider, ProviderSettings, resolve};
use tempfile::TempDir;

use crate::anthropic_support::{stream, text_block};
use crate::server::{Reply, Server, streamed};
use crate::support::{Conversation, KEY};

fn settings(folder: &TempDir) -> ProviderSettings {
    let mut settings = ProviderSettings::new(folder.path());
    settings.keys.insert("anthropic".to_owned(), KEY.into());
    settings
}

/// Anthropic at another address.
fn at(settings: &mut ProviderSettings, base_url: impl Into<String>) {
    let provider = settings.providers.get("anthropic").unwrap().clone();
    let provider = Provider { base_url: base_url.into(), ..provider };
    settings.providers = settings.providers.clone().with(provider);
}

fn policy(name: &str) -> ModelPolicy {
    let folder = TempDir::new().unwrap();
    resolve(name, &settings(&folder)).map(|(_, policy)| policy).unwrap()
}

#[track_caller]
fn check_error(name: &str, change: impl FnOnce(&mut ProviderSettings), expected: Expect) {
    let folder = TempDir::new().unwrap();
    let mut settings = settings(&folder);
    change(&mut settings);
    let error = resolve(name, &settings).map(|(_, policy)| policy).unwrap_err();
    let providers = settings.providers.iter().map(|provider| provider.name.as_str()).collect::<Vec<_>>();
    let shown = error.to_string().replace(&folder.path().display().to_string(), "DIR");
    let example = settings.catalog.of_provider("anthropic").next().unwrap();
    let shown = shown.replace(&providers.join(", "), "PROVIDERS");
    expected.assert_eq(&shown.replace(&format!("`{}`", example.name), "EXAMPLE"));
}

#[test]
fn a_known_model_has_window_cap_and_price() {
    let policy = policy("anthropic/claude-sonnet-4-5-20250929");
    assert_eq!(policy.name, "anthropic/claude-sonnet-4-5-20250929");
    assert_eq!((policy.window_tokens, policy.output_tokens_max), (Some(200_000), 64_000));
    let price = Price {
        input: MicroDollars(3_000_000),
        output: MicroDollars(15_000_000),
        cache_read: MicroDollars(300_000),
        cache_write: MicroDollars(3_750_000),
        long: None,
    };
    assert_eq!(policy.price, Some(price));
}

#[test]
fn an_unknown_model_of_a_known_provider_has_no_price() {
    let policy = policy("anthropic/claude-next");
    assert_eq!((policy.window_tokens, policy.output_tokens_max, policy.price), (None, 8192, None));
}

#[test]
fn a_scripted_model_is_free_and_relative_to_the_folder() {
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("a.yaml"),
        "window_tokens: 5000\noutput_tokens_max: 500\nanswers: [{text: hi}]",
    )
    .unwrap();
    let (_, policy) = resolve("script:a.yaml", &settings(&folder)).unwrap();
    assert_eq!(policy.name, "script:a.yaml");
    assert_eq!((policy.window_tokens, policy.output_tokens_max), (Some(5000), 500));
    let nothing = MicroDollars(0);
    let free =
        Price { input: nothing, output: nothing, cache_read: nothing, cache_write: nothing, long: None };
    assert_eq!(policy.price, Some(free));
}

#[tokio::test]
async fn a_resolved_model_asks_the_given_address_with_the_given_key() {
    let bytes = streamed([stream(&[text_block(0, &["hi"])], "end_turn").as_bytes()]);
    let server = Server::start([Reply::Whole(bytes)]).await;
    let folder = TempDir::new().unwrap();
    for base_url in [server.url(), server.url() + "/", server.url() + "/v1/", format!(" {} ", server.url())] {
        let mut settings = settings(&folder);
        at(&mut settings, base_url);
        settings.keys.insert("anthropic".to_owned(), format!("{KEY}\n").into());
        let (model, _) = resolve("anthropic/claude-test", &settings).unwrap();
        Conversation::new("go").ask(&*model).await.unwrap();
    }
    for asked in server.seen().asked {
        assert!(asked.head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{}", asked.head);
        assert!(asked.head.contains(&format!("x-api-key: {KEY}\r\n")));
    }
}

#[test]
fn names_that_lead_nowhere_say_what_to_write() {
    let as_is = |_: &mut ProviderSettings| {};
    check_error(
        "antropic/claude-sonnet-4-5",
        as_is,
        expect![
            "there is no provider for the model `antropic/claude-sonnet-4-5`: did you mean `anthropic/claude-sonnet-4-5`? Else write script:FILE, or PROVIDER/MODEL with one of PROVIDERS"
        ],
    );
    check_error(
        "claude-sonnet-4-5",
        as_is,
        expect![
            "there is no provider for the model `claude-sonnet-4-5`: did you mean `anthropic/claude-sonnet-4-5`? Else write script:FILE, or PROVIDER/MODEL with one of PROVIDERS"
        ],
    );
    check_error(
        "acme/large",
        as_is,
        expect![
            "there is no provider for the model `acme/large`: write script:FILE, or PROVIDER/MODEL with one of PROVIDERS"
        ],
    );
    check_error(
        "demo.yaml",
        as_is,
        expect![
            "there is no provider for the model `demo.yaml`: did you mean `script:demo.yaml`? Else write script:FILE, or PROVIDER/MODEL with one of PROVIDERS"
        ],
    );
    check_error(
        "",
        as_is,
        expect![
            "there is no provider for the model ``: write script:FILE, or PROVIDER/MODEL with one of PROVIDERS"
        ],
    );
    check_error(
        "anthropic/",
        as_is,
        expect!["`anthropic/` names no model: write a model's name behind the slash, such as EXAMPLE"],
    );
}

#[test]
fn a_missing_or_wrong_key_is_named_by_its_variable() {
    for key in [None, Some(" \n".into())] {
        check_error(
            "anthropic/claude-test",
            |settings| {
                let mut provider = settings.providers.get("anthropic").unwrap().clone();
                provider.key_env = Some("MY_KEY".to_owned());
                settings.providers = settings.providers.clone().with(provider);
                settings.keys = key.map(|key| ("anthropic".to_owned(), key)).into_iter().collect();
            },
            expect!["the model `anthropic/claude-test` needs a key: set MY_KEY"],
        );
    }
    check_error(
        "anthropic/claude-test",
        |settings| drop(settings.keys.insert("anthropic".to_owned(), "sk-ant\nsecret".into())),
        expect![
            "the key for anthropic can't be one: it holds line ends or other characters a header can't have"
        ],
    );
}

#[test]
fn an_address_that_cant_be_one_says_why_without_its_password() {
    for (base_url, why) in [
        ("api.example.com", "it isn't a URL"),
        ("ftp://me:pw@host", "it doesn't begin with http:// or https://"),
        ("http://", "it isn't a URL"),
        ("http://host?x=1", "it has a query or a fragment"),
    ] {
        let folder = TempDir::new().unwrap();
        let mut settings = settings(&folder);
        at(&mut settings, base_url);
        let error =
            resolve("anthropic/claude-test", &settings).map(|(_, policy)| policy).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(!error.contains("pw"), "{error}");
    }
}

#[test]
fn a_script_that_isnt_there_or_bad_names_the_file() {
    let as_is = |_: &mut ProviderSettings| {};
    check_error("script:none.yaml", as_is, expect!["can't read the script DIR/none.yaml; check its path"]);
    check_error(
        "script:bad.yaml",
        |settings| fs::write(settings.base_dir.join("bad.yaml"), "answers: []").unwrap(),
        expect![
            "DIR/bad.yaml:1:1: the script has no answers; write a list of answers under `answers:`, or a judge's under `verdicts:`"
        ],
    );
}
