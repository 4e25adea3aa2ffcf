//! Programs behind the model gateway, from outside: how each is pointed to it, one budget over a tree, what is shown of it,
//! record and replay.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::gateway_provider::{GatewayProvider, KEY, TOKENS, chunks};
use crate::support::{Done, Scene, json};

/// A scene with the provider's settings.
fn scene(provider: &GatewayProvider) -> Scene {
    let scene = Scene::new();
    scene.write("home/.config/provost/config.toml", &provider.settings());
    scene.write("client.py", include_str!("gateway_client.py"));
    scene
}

/// Runs a command that has the provider's key.
fn with_key(scene: &Scene, args: &[&str]) -> Done {
    Scene::spawn({
        let mut command = scene.command(args);
        command.env("NEAR_KEY", KEY);
        command
    })
    .end()
}

#[test]
fn each_known_program_is_pointed_to_the_gateway_by_its_profile_and_has_no_key() {
    let provider = GatewayProvider::new(Vec::new());
    for (name, model, path) in [
        ("codex", "no/gpt", "/v1/responses"),
        ("claude", "na/claude", "/v1/messages"),
        ("gemini", "ng/flash", "/v1beta/models/flash:streamGenerateContent"),
        ("qwen", "no/gpt", "/v1/chat/completions"),
        ("opencode", "no/gpt", "/v1/responses"),
        ("aider", "no/gpt", "/v1/chat/completions"),
    ] {
        let scene = scene(&provider);
        let program = scene.path("bin").join(name);
        scene.write(&format!("bin/{name}"), include_str!("gateway_client.py"));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let program = program.display().to_string();
        let ran = with_key(&scene, &["exec", "--unattended", "--usd", "1", "--", &program, "do it"]);
        assert_eq!(ran.status, 0, "{name}: {ran:?}");
        assert!(ran.stdout.contains("answered: 1"), "{name}: {ran:?}");
        let seen = provider.seen().pop().unwrap();
        assert!(seen.contains(path), "{name}: {seen}");
        assert!(seen.contains(KEY), "the provider gets the key: {seen}");
        let environ = fs::read_to_string(scene.path(&format!("work/{name}.environ"))).unwrap();
        assert!(!environ.contains(KEY), "{name}: {environ}");
        let shown = json(&scene.provost(&["show", "last", "--json"]).stdout);
        let used = &shown["gateway"]["models"][0];
        assert_eq!(
            (used["model"].as_str(), used["answered"].as_u64()),
            (Some(model), Some(1)),
            "{name}: {shown}"
        );
    }
}

#[test]
fn one_limit_of_money_holds_a_tree_of_a_native_agent_and_programs_of_two_vendors() {
    let provider = GatewayProvider::new(vec![chunks(&["anna", "greg"]), chunks(&[])]);
    let scene = scene(&provider);
    let client = scene.path("client.py").display().to_string();
    let agent = |name: &str, wire: &str| {
        format!(
            "[[agents]]\nkind = \"external\"\nname = \"{name}\"\ndescription = \"Works.\"\nprogram = \"python3\"\n\
             args = [\"{client}\", \"{wire}\", \"100\", \"read\"]\nprofile = \"gateway\"\n"
        )
    };
    let agents = [agent("anna", "messages"), agent("greg", "gemini")].concat();
    scene.write("work/provost.toml", &format!("[agent]\nmodel = \"nn/gpt\"\n{agents}"));
    assert_eq!(with_key(&scene, &["trust", "--yes"]).status, 0);
    let ran = with_key(&scene, &["run", "do it together", "--usd", "0.05"]);
    assert_eq!(ran.status, 3, "{ran:?}");

    // What the provider has answered is at most the limit: it would have answered 200 calls of 1,400 millionths each.
    let of = |part: &str| provider.seen().iter().filter(|request| request.contains(part)).count() as u64;
    let (anna, greg) = (of("/v1/messages"), of(":streamGenerateContent"));
    assert!(anna > 2 && greg > 2, "both work: {anna} and {greg}");
    let of_programs = (anna + greg) * TOKENS * 10;
    assert!(of_programs <= 50_000, "{anna} and {greg} calls");
    assert!(of_programs > 30_000, "the limit is used: {anna} and {greg} calls");

    let cost = |by: &str| json(scene.provost(&["cost", "last", "--by", by, "--json"]).stdout.trim());
    let total = cost("purpose")["total"]["cost_micro_usd"].as_u64().unwrap();
    assert!(total <= 50_000, "{total}");
    let shown = json(&scene.provost(&["show", "last", "--json"]).stdout);
    let used = &shown["gateway"]["total"];
    assert_eq!(used["cost_micro_usd"].as_u64(), Some(of_programs), "{shown}");
    assert_eq!(used["answered"].as_u64(), Some(anna + greg), "{shown}");
    assert!(used["refused"].as_u64() > Some(0), "{shown}");
    let by_model = cost("model");
    for used in shown["gateway"]["models"].as_array().unwrap() {
        let group =
            by_model["groups"].as_array().unwrap().iter().find(|group| group["model"] == used["model"]);
        assert_eq!(group.unwrap()["cost_micro_usd"], used["cost_micro_usd"], "{by_model}");
    }
    let page = scene.provost(&["show", "last"]).stdout;
    assert!(
        page.contains(&format!("gateway     na/claude: {anna} calls"))
            || page.contains("gateway     ng/flash: ")
    );
    let explained = scene.provost(&["explain", "last"]).stdout;
    assert!(explained.contains("passed the model gateway"), "{explained}");
    assert!(explained.contains("REFUSED"), "{explained}");
    let explained = json(scene.provost(&["explain", "last", "--json"]).stdout.trim());
    let agents = explained["agents"].as_array().unwrap().iter();
    let sum = agents.filter_map(|agent| agent["gateway"]["total"]["cost_micro_usd"].as_u64()).sum::<u64>();
    assert_eq!(sum, of_programs, "{explained}");
}

#[test]
fn recorded_calls_are_replayed_without_key_provider_or_cost_and_other_calls_are_refused() {
    let provider = GatewayProvider::new(Vec::new());
    let scene = scene(&provider);
    let client = scene.path("client.py").display().to_string();
    for wire in ["messages", "responses", "chat", "gemini"] {
        let program = ["--", "python3", &client, wire, "2"];
        let recorded = with_key(&scene, &[&["gateway", "--record-calls"], &program[..]].concat());
        assert_eq!(recorded.status, 0, "{wire}: {recorded:?}");
        let run = scene.last_run();
        let answered = provider.seen().len();

        let replayed = scene.provost(&[&["gateway", "--replay-calls", &run], &program[..]].concat());
        assert_eq!(replayed.status, 0, "{wire}: {replayed:?}");
        assert_eq!(replayed.stdout, recorded.stdout);
        assert_eq!(provider.seen().len(), answered, "the provider isn't called");
        let cost = json(scene.provost(&["cost", "last", "--json"]).stdout.trim());
        assert_eq!(cost["total"]["cost_micro_usd"], 0, "{cost}");
        assert_eq!(cost["total"]["output_tokens"], 200, "{cost}");
        assert_eq!(cost["total"]["unknown_price_calls"], 0, "{cost}");

        let more = ["--", "python3", &client, wire, "3"];
        let more = scene.provost(&[&["gateway", "--replay-calls", &run], &more[..]].concat());
        assert!(more.stdout.contains("answered: 2"), "{wire}: {more:?}");
        assert!(more.stdout.contains("no further call"), "{wire}: {more:?}");
    }
}

#[test]
fn a_run_without_recorded_calls_can_t_be_replayed() {
    let provider = GatewayProvider::new(Vec::new());
    let scene = scene(&provider);
    let client = scene.path("client.py").display().to_string();
    let program = ["--", "python3", &client, "chat", "1"];
    assert_eq!(with_key(&scene, &[&["gateway"], &program[..]].concat()).status, 0);
    let replayed = scene.provost(&[&["gateway", "--replay-calls", "last"], &program[..]].concat());
    assert_eq!(replayed.status, 1, "{replayed:?}");
    assert!(
        replayed.stderr.contains("--record-calls") || replayed.stdout.contains("--record-calls"),
        "{replayed:?}"
    );
}
