//! Each setting has an effect: the result of the wiring differs when it is set.

use std::fs;
use std::path::Path;

use provost_event::{Channel, ModelPolicy};
use provost_harness::Models;
use provost_terminal::Profile;

use super::agent::{AGENT, OF_PROGRAMS};
use super::declare::{From, Kind, Setting, SettingDefault};
use super::file::File;
use super::hook::HOOK;
use super::named::{MODEL, PROVIDER};
use super::stop_hook::STOP_HOOK;
use super::table::settings;
use super::{Folders, Loading, imported};
use crate::observers::{observers, telemetry};
use crate::wiring::{
    Manner, StateDir, Team, Variables, WantedProgram, external_policy, policy, power, providers,
};

/// All that a run gets of its settings, as text.
#[track_caller]
fn comes_of(toml: &str, folder: &Path) -> String {
    let mut loading = Loading::defaults(folder.to_owned());
    File { name: "x.toml", text: toml, from: From::User, user_file: "" }.load(&mut loading);
    imported::import(&mut loading);
    super::contradictions::check(&mut loading);
    assert_eq!(loading.problems, [], "{toml}");
    let settled = loading.settled().unwrap();
    let names = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OTLP_HEADERS"];
    let variables = names.map(|name| (name.to_owned(), "a=b".to_owned())).into_iter().collect::<Variables>();
    // Making a client for a model is slow; only these settings need it.
    let is_of_model =
        ["[agent]", "[budget]", "[goal]", "[[agents]]"].iter().any(|section| toml.contains(section));
    let agents = settled.settings.offered_agents();
    let team = match is_of_model {
        true => Team::choose(&settled, agents, folder, &variables).unwrap(),
        false => {
            let model = ModelPolicy::new("x/y", 1);
            Team { model, goal: None, judging: None, agents: Vec::new(), models: Models::new() }
        }
    };
    let alone = WantedProgram {
        program: "p".to_owned(),
        args: Vec::new(),
        profile: Profile::for_command("p", &[]),
        channel: Channel::Auto,
        manner: Manner::Alone,
    };
    let exec = &settled.settings.exec;
    let folders = Folders { user_file: folder.join("user.toml"), state: folder.join("state") };
    let providers = providers(&settled.settings, &variables);
    format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        external_policy(&settled, &team, folder, alone),
        (exec.records, exec.detach_key, settled.settings.terminal_reports),
        policy(&settled.settings, &team, folder, &folder.join("worktrees")),
        StateDir::new(&settled.settings, &folders).observers(),
        observers(&settled, folder, &variables).unwrap(),
        telemetry(&settled, &variables).unwrap(),
        power(&settled.settings),
        providers.providers.iter().collect::<Vec<_>>(),
        providers.keys.keys(),
        providers.facts("mine/big"),
    )
}

/// A value that isn't the one without which the setting is compared.
fn value<T>(setting: &Setting<T>, folder: &Path) -> String {
    let is_default = matches!(setting.default, SettingDefault::Is(default) if default == setting.example);
    match (setting.name, &setting.kind) {
        ("model", _) => "\"openai/gpt-6.1-terra\"".to_owned(),
        ("wire", _) => "\"gemini\"".to_owned(),
        ("effort_field", _) => "\"none\"".to_owned(),
        ("on_failure", _) => "\"continue\"".to_owned(),
        ("file" | "api_key_file", _) => format!("{:?}", folder.join("key").display().to_string()),
        (_, Kind::Count { .. }) if is_default => format!("{}", setting.example.parse::<u64>().unwrap() + 1),
        _ => setting.example.to_owned(),
    }
}

#[track_caller]
fn differs<T>(setting: &Setting<T>, before: &str, folder: &Path) {
    differs_as(setting.name, setting, before, folder);
}

#[track_caller]
fn differs_as<T>(key: &str, setting: &Setting<T>, before: &str, folder: &Path) {
    let line = format!("{key} = {}\n", value(setting, folder));
    // What it replaces, where the setting can't be missing.
    let others = before.lines().filter(|other| !other.starts_with(&format!("{key} =")));
    let after = others.map(|line| format!("{line}\n")).collect::<String>() + &line;
    let is_same = comes_of(before, folder) == comes_of(&after, folder);
    assert!(!is_same, "`{}` does nothing:\n{after}", setting.name);
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(".claude")).unwrap();
    let hooks = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]}}"#;
    fs::write(folder.path().join(".claude/settings.json"), hooks).unwrap();
    fs::write(folder.path().join("key"), "sk-mine").unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    fs::write(folder.path().join("a"), "answers: [{ text: x }]").unwrap();
    folder
}

#[test]
fn every_setting_changes_what_a_run_gets() {
    let folder = folder();
    for setting in settings() {
        let needs = match setting.name {
            "condition" => "",
            // Of five, three agree by default.
            "agree" => {
                "condition = \"x\"\njudges = [\"script:a\", \"script:a\", \"script:a\", \"script:a\", \"script:a\"]\n"
            }
            _ if setting.section == "goal" => "condition = \"x\"\n",
            "otlp_headers_env" | "otlp_content" => "otlp_endpoint = \"http://127.0.0.1:1\"\n",
            _ => "",
        };
        differs(setting, &format!("[{}]\n{needs}", setting.section), folder.path());
    }
}

#[test]
fn every_field_of_a_hook_changes_what_a_run_gets() {
    let folder = folder();
    for field in STOP_HOOK {
        differs(field, "[[stop_hooks]]\nname = \"x\"\ncommand = \"true\"\n", folder.path());
    }
    for field in HOOK {
        let runs = match field.name {
            "program" | "args" => "program = \"x\"\n",
            "url" | "headers" | "allowed_env" => "url = \"http://127.0.0.1:1\"\n",
            _ => "command = \"true\"\n",
        };
        let event = if field.name == "event" { "stop" } else { "pre_tool_call" };
        if field.name == "import" {
            let after = "[[hooks]]\nimport = \"claude\"\n";
            assert_ne!(comes_of("", folder.path()), comes_of(after, folder.path()), "import does nothing");
            continue;
        }
        differs(field, &format!("[[hooks]]\nevent = \"{event}\"\n{runs}"), folder.path());
    }
}

#[test]
fn every_field_of_an_agent_changes_what_a_run_gets() {
    let folder = folder();
    // In one line, that no field of the agent takes for its own.
    let hook = "\"stop_hooks\" = [{ name = \"lint-check\", command = \"true\" }]\n";
    let least = format!("{hook}[[agents]]\nname = \"x\"\ndescription = \"y\"\n");
    for field in AGENT {
        let needs = match field.name {
            "judge" => "goal.condition = \"z\"\n",
            // Both kinds have fields that the other can't.
            "kind" => {
                let native = comes_of(&least, folder.path());
                let external = format!("{least}kind = \"external\"\nprogram = \"p\"\n");
                assert_ne!(native, comes_of(&external, folder.path()), "`kind` does nothing");
                continue;
            }
            name if OF_PROGRAMS.contains(&name) => "kind = \"external\"\nprogram = \"p\"\n",
            _ => "",
        };
        differs_as(&field.key(), field, &format!("{least}{needs}"), folder.path());
    }
}

#[test]
fn every_field_of_a_provider_and_a_model_changes_what_a_run_gets() {
    let folder = folder();
    for field in PROVIDER {
        differs(field, "[providers.mine]\nbase_url = \"http://h\"\n", folder.path());
    }
    for field in MODEL {
        let prices = "input_usd = 3\noutput_usd = 4\n";
        differs(field, &format!("[models.\"mine/big\"]\n{prices}"), folder.path());
    }
}
