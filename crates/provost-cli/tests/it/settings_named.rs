//! The tables with names that the user chooses: `[providers.NAME]` and `[models."PROVIDER/MODEL"]`.

use expect_test::{Expect, expect};

use crate::support::{Scene, json};

const USER_FILE: &str = "home/.config/provost/config.toml";

/// The errors that the user's file with this text gives.
#[track_caller]
fn check(toml: &str, expected: Expect) {
    let scene = Scene::new();
    scene.write(USER_FILE, toml);
    let checked = scene.provost(&["check"]);
    assert_eq!(checked.status, 2, "{checked:?}");
    let errors = checked.stdout.lines().filter_map(|line| line.strip_prefix("error: "));
    let errors = errors
        .map(|line| format!("{}\n", line.replace(&scene.path(USER_FILE).display().to_string(), "FILE")));
    expected.assert_eq(&errors.collect::<String>());
}

#[test]
fn fields_that_cant_be_name_their_place_and_what_would_be_right() {
    check(
        "[providers.mine]\nbase_url = \"http://127.0.0.1:1\"\nwire = \"openai\"\nfree = 1\nbase_ulr = \"x\"\n",
        expect![[r#"
            FILE:3:1: providers.mine.wire: must be one of anthropic, openai-responses, openai-chat, gemini (is `openai`); e.g. wire = "openai-chat"
            FILE:4:1: providers.mine.free: must be true or false (is 1); e.g. free = true
            FILE:5:1: providers.mine.base_ulr: there is no such setting; did you mean `base_url`?
        "#]],
    );
    check(
        "[models.\"mine/big\"]\nwindow_tokens = 5\ninput_usd = -1\noutput_usd = nan\nimages = \"yes\"\ncolour = 1\n",
        expect![[r#"
            FILE:2:1: models."mine/big".window_tokens: must be at least 1000 (is 5); e.g. window_tokens = 128_000
            FILE:3:1: models."mine/big".input_usd: must not be negative (is -1); e.g. input_usd = 0.25
            FILE:4:1: models."mine/big".output_usd: must be a finite amount (is nan); e.g. output_usd = 2.00
            FILE:5:1: models."mine/big".images: must be true or false (is text); e.g. images = true
            FILE:6:1: models."mine/big".colour: there is no such setting; there are window_tokens, output_tokens_max, input_usd, output_usd, cache_read_usd, cache_write_usd, images, reasoning
        "#]],
    );
    check(
        "providers = 3\nmodels.big = { images = true }\n[providers]\nx = 1\n",
        expect![[r#"
        FILE:3:2: not TOML: duplicate key
    "#]],
    );
    check(
        "[providers]\nmine = 1\n\"a/b\" = {}\n[models]\nbig = { images = true }\n",
        expect![[r#"
        FILE:2:1: providers.mine: must be a table: write [providers.mine] on a line of its own
        FILE:3:1: providers."a/b": must be a name of letters, digits, - and _
        FILE:5:1: models.big: must be a full name in quotes, such as [models."ollama/qwen3:8b"]
    "#]],
    );
}

#[test]
fn a_provider_of_ones_own_needs_an_address_and_a_price_both_halves() {
    check(
        "[providers.mine]\nfree = true\n",
        expect![[r#"
        FILE:2:1: providers.mine: no provider of this name is built in, and no base_url says where it is; e.g. base_url = "http://127.0.0.1:8080/v1"; `provost models` lists those that are
    "#]],
    );
    check(
        "[models.\"mine/big\"]\ninput_usd = 1\n",
        expect![[r#"
        FILE:2:1: models."mine/big".input_usd: a price needs both input_usd and output_usd; e.g. input_usd = 0.25 and output_usd = 2.00
    "#]],
    );
    check(
        "[models.\"mine/big\"]\nwindow_tokens = 8000\noutput_tokens_max = 8000\n",
        expect![[r#"
            FILE:3:1: models."mine/big".output_tokens_max: an answer of 8,000 tokens doesn't fit the window of 8,000; lower it
        "#]],
    );
}

#[test]
fn a_projects_file_may_state_no_prices_and_no_providers() {
    let scene = Scene::new();
    scene.write(
        "work/provost.toml",
        "[models.\"anthropic/claude-x\"]\ninput_usd = 0\n[providers.mine]\nfree = true\n",
    );
    let checked = scene.provost(&["check"]);
    assert_eq!(checked.status, 2);
    assert_eq!(
        checked.stdout.matches("a project's file may not set this; set it in").count(),
        2,
        "{checked:?}"
    );
}

#[test]
fn a_misspelt_variable_of_a_provider_is_an_error() {
    let scene = Scene::new();
    let with = |name: &str| {
        let mut check = scene.command(&["check"]);
        check.env(name, "https://example.com").env("ANTHROPIC_API_KEY", "k").output().unwrap()
    };
    let output = with("PROVOST_PROVIDERS_ANTHROPIC_BASE_ULR");
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("did you mean PROVOST_PROVIDERS_ANTHROPIC_BASE_URL?"), "{told}");
    assert_eq!(with("PROVOST_PROVIDERS_OPENAI_CHAT_BASE_URL").status.code(), Some(0));
}

#[test]
fn the_users_models_and_providers_are_listed_with_what_is_known_of_them() {
    let scene = Scene::new();
    scene.write(
        USER_FILE,
        "[providers.mine]\nbase_url = \"http://me:pw@127.0.0.1:9/v1\"\n\
         [models.\"mine/big\"]\nwindow_tokens = 50_000\ninput_usd = 0.25\noutput_usd = 2\nimages = true\n\
         [models.\"anthropic/claude-haiku-4-5\"]\nwindow_tokens = 1_000_000\n",
    );
    let listed = scene.command(&["models", "mine"]).env("MINE_API_KEY", "sk-mine-secret").output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    expect![[r#"
        PROVIDER  KEY    ADDRESS
        mine      there  http://…@127.0.0.1:9/v1

        MODEL     WINDOW  ANSWER  INPUT  CACHED  OUTPUT  FROM
        mine/big     50k       ?  $0.25   $0.25   $2.00  yours

        Prices are US dollars for a million tokens.
    "#]]
    .assert_eq(&text);
    let all = json(&scene.provost(&["models", "anthropic", "--json"]).stdout);
    let provider = &all["providers"][0];
    assert_eq!(
        (provider["key"].as_str(), provider["key_env"].as_str()),
        (Some("missing"), Some("ANTHROPIC_API_KEY"))
    );
    let models = provider["models"].as_array().unwrap();
    let haiku = models.iter().find(|model| model["name"] == "anthropic/claude-haiku-4-5").unwrap();
    assert_eq!(haiku["window_tokens"], 1_000_000);
    assert_eq!(haiku["price_micro_usd_per_million_tokens"]["output"], 5_000_000);
    let unknown = scene.provost(&["models", "unknown"]);
    assert_eq!(unknown.status, 2);
    assert!(
        unknown.stderr.starts_with("error: there is no provider `unknown`\nhint: there are anthropic, "),
        "{unknown:?}"
    );
}

#[test]
fn a_model_without_a_price_works_under_a_money_limit_only_when_told() {
    let scene = Scene::new();
    scene.write(USER_FILE, "[providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"\n");
    scene.write("work/provost.toml", "[limits]\nmodel_patience = \"1s\"\noutage_max = \"1s\"\n");
    let args = ["run", "x", "--model", "mine/big", "--usd", "1"];
    let refused = scene.provost(&args);
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("the price of mine/big isn't known"), "{refused:?}");
    let told = scene.provost(&[&args[..], &["--allow-unpriced"]].concat());
    assert_eq!(told.status, 4, "it got as far as the missing answer: {told:?}");
    scene.write(
        USER_FILE,
        "[providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"\n[models.\"mine/big\"]\ninput_usd = 1\noutput_usd = 2\n",
    );
    assert_eq!(scene.provost(&args).status, 4);
}

#[test]
fn a_key_may_be_in_a_file() {
    let scene = Scene::new();
    let file = scene.path("key");
    let settings = format!("[providers.anthropic]\napi_key_file = \"{}\"\n", file.display());
    scene.write(USER_FILE, &settings);
    let args = ["run", "x", "--model", "anthropic/claude-opus-5-5"];
    let refused = scene.provost(&args);
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("providers.anthropic.api_key_file: can't read"), "{refused:?}");
    scene.write("key", "sk-ant-secret\n");
    let listed = json(&scene.provost(&["models", "anthropic", "--json"]).stdout);
    assert_eq!(listed["providers"][0]["key"], "there");
}

#[test]
fn a_provider_whose_settings_name_a_key_needs_it() {
    let scene = Scene::new();
    let empty = scene.path("empty");
    scene.write("empty", "\n");
    let file = format!("api_key_file = \"{}\"", empty.display());
    let cases = [("api_key_env = \"P_KEY\"", "P_KEY"), (file.as_str(), "MINE_API_KEY")];
    for (key, variable) in cases {
        let provider = format!("[providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"\n{key}\n");
        scene.write(USER_FILE, &format!("[agent]\nmodel = \"mine/m\"\n{provider}"));
        let at = format!("{}:2:1: agent.model", scene.path(USER_FILE).display());
        let error = format!("error: {at}: the model `mine/m` needs a key: set {variable}");
        for value in ["", "  "] {
            let with = |args: &[&str]| {
                crate::support::done(&scene.command(args).env(variable, value).output().unwrap())
            };
            let (checked, ran) = (with(&["check"]), with(&["run", "x"]));
            assert!(checked.status == 2 && checked.stdout.contains(&error), "{key}: {checked:?}");
            assert!(ran.status == 2 && ran.stderr.contains(&error), "{key}: {ran:?}");
            let listed = with(&["models", "mine"]);
            assert!(listed.stdout.contains(&format!("missing: set {variable}")), "{key}: {listed:?}");
        }
        assert!(scene.provost(&["check"]).stdout.contains(&error), "{key}");
    }
}

/// The prefix of every conversation can't be left out: a window must be larger.
#[test]
fn a_window_without_room_for_an_agent_is_refused_by_check_and_at_the_start() {
    let told = |user: &str, project: &str| {
        let scene = Scene::new();
        scene.write("home/.config/provost/config.toml", user);
        scene.write("work/provost.toml", project);
        let check = scene.provost(&["check"]);
        let ran = scene.provost(&["run", "x"]);
        assert_eq!((check.status, ran.status), (2, 2), "{check:?} {ran:?}");
        let problem = |text: &str| {
            let line = text.lines().find(|line| line.starts_with("error: ")).expect("an error").to_owned();
            // The size of prompt and tools isn't checked here.
            let is_count = |word: &str| {
                word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
            };
            let words = scene.stable(&line).replace(&scene.path("home").display().to_string(), "HOME");
            let words = words.split(' ').map(|word| if is_count(word) { "N" } else { word });
            words.collect::<Vec<_>>().join(" ")
        };
        let (check, ran) = (problem(&check.stdout), problem(&ran.stderr));
        assert_eq!(check, ran);
        check + "\n"
    };
    let ollama = "[agent]\nmodel = \"ollama/small\"\n";
    let tables = [
        told("[models.\"ollama/small\"]\nwindow_tokens = 4_000\n", ollama),
        told(
            "[models.\"ollama/small\"]\nwindow_tokens = 9_728\n",
            &format!("{ollama}output_tokens_max = 4_096\n"),
        ),
    ];
    expect![[r#"
        error: /FOLDER/home/.config/provost/config.toml:2:1: models."ollama/small".window_tokens: ollama/small has a window of N tokens, N of them beside an answer; system prompt and tools take about N tokens of each request; it takes a window of at least N tokens
        error: provost.toml:3:1: agent.output_tokens_max: ollama/small has a window of N tokens, N of them beside an answer; system prompt and tools take about N tokens of each request; e.g. output_tokens_max = N
    "#]].assert_eq(&tables.concat());
    let scene = Scene::scripted("window_tokens: 3000\nanswers: [{text: a}]\n");
    let check = scene.provost(&["check"]);
    assert_eq!(check.status, 2);
    let line = check.stdout.lines().find(|line| line.starts_with("error: ")).unwrap().to_owned();
    assert!(line.starts_with("error: provost.toml:2:1: agent.model: script:"), "{line}");
    assert!(line.contains("; it takes a window of at least "), "{line}");
    let scene = Scene::scripted("window_tokens: 11500\nanswers: [{text: a}]\n");
    assert_eq!(scene.provost(&["check"]).status, 0);
}
