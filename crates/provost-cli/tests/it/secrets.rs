//! Which variables hold secrets, and which processes get them.

use crate::model_server::{ModelServer, refusal};
use crate::support::{Done, Scene, done};

const ONE: &str = "
answers:
  - tools: [{ shell: { command: echo one } }]
  - text: all done
";
const SECRETS: [(&str, &str); 3] =
    [("ANTHROPIC_API_KEY", "sk-canary-1"), ("MINE", "sk-canary-2"), ("HOOK_TOKEN", "the-hooks-own")];
/// A provider whose key is in a variable that doesn't sound like it.
const PROVIDER: &str = "[providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key_env = \"MINE\"\n";

fn with_secrets(scene: &Scene, args: &[&str]) -> Done {
    done(&scene.command(args).envs(SECRETS).output().unwrap())
}

#[test]
fn a_hook_whose_headers_are_to_name_a_providers_key_is_an_error() {
    let hook = "[[hooks]]\nevent = \"stop\"\nurl = \"http://127.0.0.1:9\"\n\
                allowed_env = [\"HOOK_TOKEN\", \"ANTHROPIC_API_KEY\", \"MINE\"]\n";
    let scene = Scene::scripted(ONE).with_settings(hook);
    scene.write("home/.config/provost/config.toml", PROVIDER);
    for (command, place) in [(&["check"][..], "error: "), (&["run", "x"], "")] {
        let refused = with_secrets(&scene, command);
        assert_eq!(refused.status, 2, "{refused:?}");
        let told = refused.stdout + &refused.stderr;
        for (name, provider) in [("ANTHROPIC_API_KEY", "anthropic"), ("MINE", "mine")] {
            let line = format!(
                "{place}provost.toml:6:1: hooks.allowed_env: {name} holds the key of the provider {provider}, \
                 which no hook gets; give the server a secret of its own, e.g. allowed_env = [\"HOOK_TOKEN\"]"
            );
            assert!(told.contains(&line), "{told}");
        }
        assert!(!told.contains("HOOK_TOKEN holds") && !told.contains("canary"), "{told}");
    }
}

#[test]
fn an_imported_one_is_asked_without_the_key_and_the_user_is_told() {
    let server = ModelServer::plain(vec![refusal(200, "")]);
    let scene = Scene::scripted(ONE).with_settings("[[hooks]]\nimport = \"claude\"\n");
    scene.write("home/.config/provost/config.toml", PROVIDER);
    let hook = format!(
        r#"{{ "type": "http", "url": "http://127.0.0.1:{}/hook",
              "headers": {{ "X-All": "[$ANTHROPIC_API_KEY|${{MINE}}|$HOOK_TOKEN]" }},
              "allowedEnvVars": ["ANTHROPIC_API_KEY", "MINE", "HOOK_TOKEN"] }}"#,
        server.port
    );
    let settings =
        format!(r#"{{ "hooks": {{ "PreToolUse": [{{ "matcher": "Bash", "hooks": [{hook}] }}] }} }}"#);
    scene.write("work/.claude/settings.json", &settings);
    let scene = scene.trusted();
    let ran = with_secrets(&scene, &["run", "x"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let requests = server.requests();
    let headers = requests[0].lines().filter(|line| line.to_lowercase().starts_with("x-all:"));
    assert_eq!(headers.collect::<Vec<_>>(), ["x-all: [||the-hooks-own]"], "{requests:?}");
    for (name, provider) in [("ANTHROPIC_API_KEY", "anthropic"), ("MINE", "mine")] {
        let why = format!(
            ".claude/settings.json: allowedEnvVars: {name} holds the key of the provider {provider}, which no hook gets"
        );
        assert!(ran.stderr.contains(&format!("warning: skipped {why}\n")), "{ran:?}");
        let checked = with_secrets(&scene, &["check"]);
        assert!(checked.status == 0 && checked.stdout.contains(&format!("skipped: {why}\n")), "{checked:?}");
    }
}

#[test]
fn a_limit_on_tokens_is_no_secret_and_a_token_for_something_else_is() {
    let scene = Scene::scripted("answers: [{ text: \"of 20000000 with canary-value\" }]");
    scene.write("home/.config/provost/config.toml", &format!("[trace]\nfile = {:?}\n", scene.path("trace")));
    let variables = [("PROVOST_BUDGET_TOKENS", "20000000"), ("PROVOST_SERVER_TOKEN", "canary-value")];
    let ran = done(&scene.command(&["run", "x"]).envs(variables).output().unwrap());
    assert_eq!(ran.status, 0, "{ran:?}");
    let trace = std::fs::read_to_string(scene.path("trace")).unwrap();
    assert!(trace.contains("of 20000000 with [secret]"), "{trace}");
    assert!(!trace.contains("canary-value"), "{trace}");
}
