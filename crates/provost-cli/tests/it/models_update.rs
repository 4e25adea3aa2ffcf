//! `provost models update`: public tables of models, imported below the user's settings.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::support::{Done, Scene};

const USER_FILE: &str = "home/.config/provost/config.toml";
const STORED: &str = "home/.config/provost/models.json";

/// A table in the format of models.dev: with known providers, an unknown one, and models that aren't for chat.
fn models_dev() -> Value {
    json!({
        "google": { "id": "google", "models": {
            "gemini-99": {
                "id": "gemini-99", "reasoning": true, "tool_call": true,
                "modalities": { "input": ["text", "image"], "output": ["text"] },
                "cost": { "input": 1.25, "output": 10, "cache_read": 0.3125,
                          "context_over_200k": { "input": 2.5, "output": 15 } },
                "limit": { "context": 1_048_576, "output": 65_536 },
            },
            "gemini-99-paint": { "tool_call": false, "modalities": { "output": ["image"] }, "limit": { "context": -3 } },
        } },
        "openai": { "models": {
            "gpt-5": {
                "tool_call": true,
                "cost": { "input": 1.5, "output": 10, "cache_read": 0.125 },
                "limit": { "context": 390_000, "output": 128_000 },
            },
        } },
        "elsewhere": { "models": { "other": { "limit": { "context": 7, "output": 7 } } } },
    })
}

/// A table in the format of litellm.
fn litellm() -> Value {
    json!({
        "sample_spec": { "litellm_provider": "one of a list", "max_input_tokens": "if the provider says it" },
        "gpt-5": {
            "litellm_provider": "openai", "mode": "chat",
            "max_input_tokens": 272_000, "max_output_tokens": 128_000,
            "input_cost_per_token": 1.25e-6, "output_cost_per_token": 1e-5, "cache_read_input_token_cost": 1.25e-7,
        },
        "gpt-99": {
            "litellm_provider": "openai", "mode": "chat",
            "max_input_tokens": 300_000, "max_output_tokens": 50_000,
            "input_cost_per_token": 7.5e-8, "output_cost_per_token": 3e-7,
            "input_cost_per_token_above_272k_tokens": 1.5e-7, "output_cost_per_token_above_272k_tokens": 4.5e-7,
            "supports_vision": true, "deprecation_date": "2999-01-31",
        },
        "gpt-99-2026-01-01": {
            "litellm_provider": "openai", "mode": "chat",
            "max_input_tokens": 300_000, "max_output_tokens": 50_000,
            "input_cost_per_token": 7.5e-8, "output_cost_per_token": 3e-7,
            "input_cost_per_token_above_272k_tokens": 1.5e-7, "output_cost_per_token_above_272k_tokens": 4.5e-7,
            "supports_vision": true, "deprecation_date": "2999-01-31",
        },
        "us/gpt-99": { "litellm_provider": "openai", "mode": "chat", "max_input_tokens": 300_000 },
        "groq/free": { "litellm_provider": "groq", "mode": "chat", "max_input_tokens": 9_000,
                       "input_cost_per_token": 0, "output_cost_per_token": 0 },
        "paints": { "litellm_provider": "openai", "mode": "image_generation", "output_cost_per_image": 1 },
    })
}

fn scene(table: &Value) -> Scene {
    let scene = Scene::new();
    scene.write("work/table.json", &table.to_string());
    scene
}

fn listed(scene: &Scene, model: &str) -> Value {
    let (provider, _) = model.split_once('/').unwrap();
    let done = scene.provost(&["models", provider, "--json"]);
    let all: Value = serde_json::from_str(&done.stdout).unwrap();
    let models = all["providers"][0]["models"].as_array().unwrap();
    models.iter().find(|facts| facts["name"] == model).cloned().unwrap_or_default()
}

/// `text` with today's date, or that of the day before or after, replaced by DAY.
fn dayless(text: &str) -> String {
    let is_day = |word: &str| {
        word.len() == 10 && word.starts_with("20") && word.bytes().filter(|byte| *byte == b'-').count() == 2
    };
    let words = text.split_inclusive(['\n', ' ']);
    let word = |word: &str| {
        let bare = word.trim_end();
        if is_day(bare) { word.replace(bare, "DAY") } else { word.to_owned() }
    };
    words.map(word).collect()
}

#[track_caller]
fn check(done: &Done, scene: &Scene, expected: Expect) {
    assert_eq!(done.status, 0, "{done:?}");
    expected.assert_eq(&scene.stable(&done.stdout));
}

#[test]
fn what_models_dev_says_otherwise_is_shown_taken_over_and_counts() {
    let scene = scene(&models_dev());
    let before = listed(&scene, "openai/gpt-5");
    assert_eq!((&before["origin"], &before["window_tokens"]), (&json!("built_in"), &json!(400_000)));
    check(
        &scene.provost(&["models", "update", "table.json"]),
        &scene,
        expect![[r#"
            table.json is models.dev's table of 4 models, 2 of them chat models of providers that Provost knows.
            Windows and answers are in tokens, prices in US dollars for a million tokens.

            Changed:
              openai/gpt-5  window 400,000 → 390,000, input $1.25 → $1.50, to cache $1.25 → $1.50

            New:
              gemini/gemini-99  window 1,048,576, answer 65,536, input $1.25, output $10.00, cached $0.3125, to cache $1.25, long requests above 200,000: input 200 %, output 150 %

            1 changed, 1 new, 0 kept. Written to /FOLDER/home/.config/provost/models.json. `provost models` shows what counts now.
        "#]],
    );
    let now = listed(&scene, "openai/gpt-5");
    assert_eq!((&now["origin"], &now["window_tokens"]), (&json!("updated"), &json!(390_000)));
    assert_eq!((&now["source"], &now["images"]), (&json!("table.json"), &json!(true)));
    let new = listed(&scene, "gemini/gemini-99");
    assert_eq!((&new["output_tokens_max"], &new["images"]), (&json!(65_536), &json!(true)));
    let again = scene.provost(&["models", "update", "table.json"]);
    assert!(
        again.stdout.ends_with("0 changed, 0 new, 0 kept. Nothing is new: nothing has changed.\n"),
        "{again:?}"
    );
    let listed = scene.provost(&["models", "openai"]);
    let rows =
        listed.stdout.lines().filter(|line| line.contains("update") || line.starts_with("openai/gpt-5 "));
    expect![[r#"
        openai/gpt-5                 390k    128k    $1.50    $0.12   $10.00  update DAY  retires DAY
        Rows from update DAY were taken from table.json.
    "#]]
    .assert_eq(&dayless(&(rows.collect::<Vec<_>>().join("\n") + "\n")));
}

#[test]
fn what_litellm_says_is_converted_and_its_windows_of_input_alone_contradict_nothing() {
    let scene = scene(&litellm());
    check(
        &scene.provost(&["models", "update", "table.json"]),
        &scene,
        expect![[r#"
            table.json is litellm's table of 7 models, 3 of them chat models of providers that Provost knows.
            Windows and answers are in tokens, prices in US dollars for a million tokens.

            New:
              groq/free  window 9,000
              openai/gpt-99  window 300,000, answer 50,000, input $0.075, output $0.30, cached $0.075, to cache $0.075, long requests above 272,000: input 200 %, output 150 %, retires 2999-01-31

            0 changed, 2 new, 0 kept. Written to /FOLDER/home/.config/provost/models.json. `provost models` shows what counts now.
        "#]],
    );
    assert_eq!(listed(&scene, "openai/gpt-5")["window_tokens"], 400_000);
    assert_eq!(listed(&scene, "groq/free")["price_micro_usd_per_million_tokens"], Value::Null);
}

#[test]
fn a_budget_in_money_counts_for_a_model_that_an_update_has_priced() {
    let scene = scene(&litellm());
    scene.write("work/provost.toml", "[agent]\nmodel = \"openai/gpt-99\"\n[budget]\nusd = 1\n");
    let check = || {
        let mut command = scene.command(&["check"]);
        command.env("OPENAI_API_KEY", "sk-secret-key").output().unwrap()
    };
    let before = check();
    let said =
        String::from_utf8_lossy(&before.stderr).into_owned() + &String::from_utf8_lossy(&before.stdout);
    assert!(said.contains("the price of openai/gpt-99 isn't known"), "{said}");
    assert_eq!(scene.provost(&["models", "update", "table.json"]).status, 0);
    let after = check();
    assert_eq!(after.status.code(), Some(0), "{after:?}");
}

#[test]
fn what_the_user_says_of_a_model_stays_and_is_told() {
    let scene = scene(&models_dev());
    scene.write(USER_FILE, "[models.\"openai/gpt-5\"]\nwindow_tokens = 300_000\n");
    check(
        &scene.provost(&["models", "update", "table.json"]),
        &scene,
        expect![[r#"
            table.json is models.dev's table of 4 models, 2 of them chat models of providers that Provost knows.
            Windows and answers are in tokens, prices in US dollars for a million tokens.

            Changed:
              openai/gpt-5  input $1.25 → $1.50, to cache $1.25 → $1.50

            New:
              gemini/gemini-99  window 1,048,576, answer 65,536, input $1.25, output $10.00, cached $0.3125, to cache $1.25, long requests above 200,000: input 200 %, output 150 %

            Yours, and kept:
              openai/gpt-5  window 300,000 (the table: 390,000)

            1 changed, 1 new, 1 kept. Written to /FOLDER/home/.config/provost/models.json. `provost models` shows what counts now.
        "#]],
    );
    let now = listed(&scene, "openai/gpt-5");
    assert_eq!((&now["origin"], &now["window_tokens"]), (&json!("own"), &json!(300_000)));
    assert_eq!(now["price_micro_usd_per_million_tokens"]["input"], 1_500_000);
    assert!(!std::fs::read_to_string(scene.path(STORED)).unwrap().contains("390000"));
}

#[test]
fn a_dry_run_shows_the_same_and_writes_nothing() {
    let scene = scene(&models_dev());
    let dry = scene.provost(&["models", "update", "table.json", "--dry-run"]);
    let ends = "1 changed, 1 new, 0 kept. Nothing has changed: without --dry-run this would be taken over.\n";
    assert!(dry.stdout.ends_with(ends), "{dry:?}");
    assert!(!scene.path("home/.config").exists());
    let done = scene.provost(&["models", "update", "table.json", "--json"]);
    let said: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(said["changes"][1]["new"]["name"], "openai/gpt-5");
    assert_eq!(said["changes"][1]["old"]["window_tokens"], 400_000);
    assert!(said["written"].as_str().unwrap().ends_with("models.json"), "{said}");
}

#[test]
fn a_later_table_adds_to_what_an_earlier_one_said() {
    let scene = scene(&models_dev());
    assert_eq!(scene.provost(&["models", "update", "table.json"]).status, 0);
    scene.write("work/other.json", &litellm().to_string());
    assert_eq!(scene.provost(&["models", "update", "other.json"]).status, 0);
    assert_eq!(listed(&scene, "gemini/gemini-99")["source"], "table.json");
    assert_eq!(listed(&scene, "openai/gpt-99")["source"], "other.json");
    let both = listed(&scene, "openai/gpt-5");
    assert_eq!(both["window_tokens"], 390_000, "litellm's window of input alone changes nothing");
    assert_eq!(both["price_micro_usd_per_million_tokens"]["input"], 1_250_000);
}

#[cfg(unix)]
#[test]
fn what_was_taken_over_is_the_users_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = scene(&models_dev());
    assert_eq!(scene.provost(&["models", "update", "table.json"]).status, 0);
    let mode = scene.path(STORED).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
}

/// The error for `table`; nothing has changed.
#[track_caller]
fn refused(table: &[u8]) -> String {
    let scene = Scene::new();
    scene.write_bytes("work/table.json", table);
    let done = scene.provost(&["models", "update", "table.json"]);
    assert_eq!((done.status, done.stdout.as_str()), (2, ""), "{done:?}");
    assert!(!scene.path("home/.config").exists());
    done.stderr
}

/// The same for a table of models.dev's in which `pointer` is `value`.
#[track_caller]
fn refused_with(pointer: &str, value: Value) -> String {
    let mut table = models_dev();
    *table.pointer_mut(pointer).unwrap() = value;
    refused(table.to_string().as_bytes())
}

#[test]
fn what_is_no_table_is_refused_and_changes_nothing() {
    let said = [
        refused(b""),
        refused(b"<html>\nNot found</html>"),
        refused(b"{\"a\": 1,\n \"b\": }"),
        refused(b"[1, 2]"),
        refused(b"{\"name\": \"a-project\", \"version\": \"1\"}"),
        refused(b"{\"elsewhere\": {\"models\": {\"other\": {}}}}"),
        refused(b"\xff\xfe{"),
    ];
    expect![[r#"
        error: table.json: it is empty
        hint: nothing has changed
        error: table.json: it isn't JSON: expected value at line 1 column 1
        hint: nothing has changed
        error: table.json: it isn't JSON: expected value at line 2 column 7
        hint: nothing has changed
        error: table.json: it is JSON, but no table of models: neither models.dev's (api.json) nor litellm's (model_prices_and_context_window.json)
        hint: nothing has changed
        error: table.json: it is JSON, but no table of models: neither models.dev's (api.json) nor litellm's (model_prices_and_context_window.json)
        hint: nothing has changed
        error: table.json: it is models.dev's table of models, but has no chat model of a provider that Provost knows
        hint: nothing has changed
        error: table.json: can't be read: invalid utf-8 sequence of 1 bytes from index 0
        hint: nothing has changed
    "#]].assert_eq(&said.concat());
}

#[test]
fn a_value_that_cant_be_is_refused_with_its_place_and_changes_nothing() {
    let said = [
        refused_with("/openai/models/gpt-5/cost/input", json!(-1)),
        refused_with("/openai/models/gpt-5/cost/output", json!(1e12)),
        refused_with("/openai/models/gpt-5/cost/output", json!(0.000_001)),
        refused_with("/openai/models/gpt-5/limit/context", json!(300)),
        refused_with("/openai/models/gpt-5/limit/context", json!("400k")),
        refused_with("/openai/models/gpt-5/limit/context", json!(-1)),
        refused_with("/openai/models/gpt-5/limit/output", json!(0.5)),
        refused_with("/openai/models/gpt-5/limit/output", json!(1e15)),
        refused_with("/openai/models/gpt-5", json!([])),
    ];
    expect![[r#"
        error: table.json: openai.models.gpt-5.cost.input: is -1, which can't be a price
        hint: nothing has changed
        error: table.json: openai.models.gpt-5.cost.output: is 1000000000000: no model costs $1000000000000 for a million tokens
        hint: nothing has changed
        error: table.json: openai.models.gpt-5.cost.output: is 0.000001: no model costs less than $0.0005 for a million tokens
        hint: nothing has changed
        error: table.json: openai.models.gpt-5.limit.context: is 300: no conversation has room in so small a window
        hint: nothing has changed
        error: table.json: openai.models.gpt-5.limit.context: is text, not a number
        hint: nothing has changed
        error: table.json: openai.models.gpt-5.limit.context: is -1, which can't be a number of tokens
        hint: nothing has changed
        error: table.json: openai.models.gpt-5.limit.output: is 0.5, which can't be a number of tokens
        hint: nothing has changed
        error: table.json: openai.models.gpt-5.limit.output: is 1000000000000000: no model takes that many tokens
        hint: nothing has changed
        error: table.json: openai.models.gpt-5: is a list, not an object
        hint: nothing has changed
    "#]].assert_eq(&said.concat());
}

#[test]
fn a_missing_or_endless_file_is_refused() {
    let scene = Scene::new();
    let said = |file: &str| scene.provost(&["models", "update", file]).stderr;
    expect![[r#"
        error: missing.json: there is no such file
        hint: nothing has changed
        error: .: can't be read: Is a directory (os error 21)
        hint: nothing has changed
    "#]]
    .assert_eq(&(said("missing.json") + &said(".")));
    if cfg!(target_os = "linux") {
        expect![[r#"
            error: /dev/zero: can't be read: it is longer than 67108864 bytes
            hint: nothing has changed
        "#]]
        .assert_eq(&said("/dev/zero"));
    }
}

#[test]
fn a_damaged_store_of_updates_is_named_with_what_to_do() {
    let scene = scene(&models_dev());
    scene.write(STORED, "{\"models\": [{\"name\": 1}]}");
    let done = scene.provost(&["models"]);
    assert_eq!(done.status, 2, "{done:?}");
    expect![[r#"
        error: /FOLDER/home/.config/provost/models.json:1:22: isn't what `provost models update` writes: invalid type: integer `1`, expected a string at line 1 column 22; remove the file to be back at what is built in, and update again
    "#]].assert_eq(&scene.stable(&done.stderr));
}
