//! Each setting has an effect: the result of the wiring differs when it is set.

use std::fs;
use std::path::Path;

use provost_config::{Folders, Loading, Request, Scope, SettingInfo, Settings, Settled, declared, load_in};
use provost_event::{Channel, Metering, ModelPolicy};
use provost_harness::Models;
use provost_terminal::Profile;

use crate::engine::EngineSetup;
use crate::gateway::GatewaySetup;
use crate::observers::telemetry;
use crate::{
    Manner, McpServer, Places, StateDir, Team, Variables, WantedProgram, available_tools, external_policy,
    mcp_servers, mcp_setup, metering_of, observers, policy, power, providers, with_preamble,
};

/// The fields that only an agent that is a program has.
const OF_PROGRAMS: [&str; 9] =
    ["kind", "program", "args", "profile", "channel", "size", "idle_time", "env", "unmetered"];

fn folders(folder: &Path) -> Folders {
    Folders { user_file: folder.join("user.toml"), state: folder.join("state") }
}

fn loading(toml: &str, folder: &Path) -> Loading {
    let file = folder.join("x.toml");
    fs::write(&file, toml).unwrap();
    let (file, variables) = (Some(file.as_path()), Variables::new());
    let scope = Scope::Project;
    let request = Request { file, ..Request::new(scope, folder, &variables, available_tools()) };
    load_in(&request, &folders(folder))
}

/// The fields of the items of a list, or of tables with names.
fn fields(group: &str) -> Vec<SettingInfo> {
    let fields = declared().into_iter().filter(|field| field.group == group).collect::<Vec<_>>();
    assert!(!fields.is_empty(), "{group}");
    fields
}

/// All that a run gets of its settings, as text.
#[track_caller]
fn comes_of(toml: &str, folder: &Path) -> String {
    let loading = loading(toml, folder);
    assert_eq!(loading.problems, [], "{toml}");
    let settled = loading.settled().unwrap();
    let names = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OTLP_HEADERS"];
    let variables = names.map(|name| (name.to_owned(), "a=b".to_owned())).into_iter().collect::<Variables>();
    // Making a client for a model is slow; only these settings need it.
    let is_of_model = ["[agent]", "[budget]", "[goal]", "[[agents]]", "import = [\"claude\"]"]
        .iter()
        .any(|section| toml.contains(section));
    let agents = settled.settings.offered_agents();
    let team = match is_of_model {
        true => Team::choose(&settled, agents, folder, &variables).unwrap(),
        false => {
            let model = ModelPolicy::new("x/y", 1);
            let hooks = settled.settings.all_hooks().into_iter().map(|placed| placed.policy).collect();
            Team { model, goal: None, judging: None, agents: Vec::new(), hooks, models: Models::new() }
        }
    };
    let alone = WantedProgram {
        program: "p".to_owned(),
        args: Vec::new(),
        profile: Profile::for_command("p", &[]),
        channel: Channel::Auto,
        manner: Manner::Alone,
        metering: metering_of(&settled, &Profile::for_command("codex", &[]), &variables),
    };
    let exec = &settled.settings.exec;
    let gateway = GatewaySetup::new(&settled.settings, &variables).settings().clone();
    let folders = folders(folder);
    let place = StateDir::new(&settled.settings, &folders, |_| {});
    let providers = providers(&settled.settings, &variables);
    format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        external_policy(&settled, &team, folder, alone),
        (
            exec.records,
            exec.detach_key,
            settled.settings.terminal_reports,
            &settled.settings.tools.env,
            (gateway, &settled.settings.notify, servers(&settled, folder, &variables))
        ),
        (settled.settings.keep_running_max_ms, engine(&settled, &variables)),
        policy(&settled.settings, &team, folder, &place.worktrees()),
        toml.contains("[agent]").then(|| told(&settled.settings, &team, folder)),
        place.observers(),
        observers(&settled, folder, &variables).unwrap(),
        telemetry(&settled, &variables).unwrap(),
        (power(&settled.settings), crate::context::hook_env(&settled.settings)),
        providers.providers.iter().collect::<Vec<_>>(),
        providers.keys.keys(),
        providers.facts("mine/big"),
    )
}

/// How the engine is reached, and what workers, `cluster up` and the start of a run take of the settings themselves.
fn engine(settled: &Settled, variables: &Variables) -> String {
    let settings = &settled.settings.engine;
    let setup = EngineSetup::of(settings, Path::new("/state"), variables).map(|setup| setup.told());
    format!("{setup:?} {:?} {:?} {:?}", settings.labels, settings.server, settings.git_remote)
}

/// Its MCP servers, and above which cost their tools are searched for.
fn servers(settled: &Settled, folder: &Path, variables: &Variables) -> String {
    let place = StateDir::new(&settled.settings, &folders(folder), |_| {});
    let server = |server: &McpServer| {
        let setup = mcp_setup(server, &settled.settings, folder, variables);
        format!("{setup:?} {}", server.table.trusts_changes)
    };
    let all = mcp_servers(settled, &place).iter().map(server).collect::<Vec<_>>();
    format!("{all:?} {}", settled.settings.tools.search_above)
}

/// What its agents are told before their goals.
fn told(settings: &Settings, team: &Team, folder: &Path) -> String {
    let (run, folders) = (policy(settings, team, folder, folder), folders(folder));
    let places = Places { workspace: folder, folders: &folders };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(with_preamble(run, places, settings, &Variables::new())).0.agent.preamble
}

/// A value that isn't the one without which the setting is compared.
fn value(setting: &SettingInfo, folder: &Path) -> String {
    let is_default = setting.default == Some(setting.example);
    match (setting.name, setting.example.parse::<u64>()) {
        ("model", _) => "\"openai/gpt-6.1-terra\"".to_owned(),
        ("wire", _) => "\"gemini\"".to_owned(),
        ("effort_field", _) => "\"none\"".to_owned(),
        ("on_failure", _) => "\"continue\"".to_owned(),
        ("file" | "api_key_file", _) => format!("{:?}", folder.join("key").display().to_string()),
        (_, Ok(count)) if is_default => format!("{}", count + 1),
        _ => setting.example.to_owned(),
    }
}

#[track_caller]
fn differs(setting: &SettingInfo, before: &str, folder: &Path) {
    differs_as(setting.name, setting, before, folder);
}

#[track_caller]
fn differs_as(key: &str, setting: &SettingInfo, before: &str, folder: &Path) {
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
    let hooks = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"},{"type":"prompt","prompt":"x"}]}]}}"#;
    fs::write(folder.path().join(".claude/settings.json"), hooks).unwrap();
    fs::write(folder.path().join("key"), "sk-mine").unwrap();
    fs::write(folder.path().join("AGENTS.md"), "Use tabs.").unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    fs::write(folder.path().join("a"), "answers: [{ text: x }]").unwrap();
    folder
}

#[test]
fn every_setting_changes_what_a_run_gets() {
    let folder = folder();
    for setting in &fields("") {
        let needs = match setting.name {
            "condition" => "",
            // Of five, three agree by default.
            "agree" => {
                "condition = \"x\"\njudges = [\"script:a\", \"script:a\", \"script:a\", \"script:a\", \"script:a\"]\n"
            }
            _ if setting.section == "goal" => "condition = \"x\"\n",
            "model" if setting.section == "hooks" => "import = [\"claude\"]\n",
            name if setting.section == "engine" && name != "url" => "url = \"restate://10.0.0.9\"\n",
            "otlp_headers_env" | "otlp_content" => "otlp_endpoint = \"http://127.0.0.1:1\"\n",
            _ => "",
        };
        let before = match setting.section {
            "sandbox" if setting.name != "mode" => "[sandbox]\nmode = \"workspace\"\n".to_owned(),
            "sandbox.limits" => "[sandbox]\nmode = \"workspace\"\n[sandbox.limits]\n".to_owned(),
            section => format!("[{section}]\n{needs}"),
        };
        differs(setting, &before, folder.path());
    }
}

#[test]
fn a_program_in_a_box_is_metered_by_the_gateway_whatever_its_network_is() {
    let folder = folder();
    let metering = |toml: &str| {
        let settled = loading(toml, folder.path()).settled().unwrap();
        let variables =
            [("OPENAI_API_KEY".to_owned(), "sk-test".to_owned())].into_iter().collect::<Variables>();
        metering_of(&settled, &Profile::for_command("codex", &[]), &variables)
    };
    assert_eq!(metering(""), Metering::Gateway);
    for network in ["none", "proxy", "open"] {
        let boxed = format!("[sandbox]\nmode = \"workspace\"\nnetwork = \"{network}\"\n");
        assert_eq!(metering(&boxed), Metering::Gateway, "{network}");
        assert_eq!(metering(&format!("{boxed}external = false\n")), Metering::Gateway, "{network}");
    }
}

#[test]
fn every_field_of_a_hook_changes_what_a_run_gets() {
    let folder = folder();
    for field in &fields("stop_hooks") {
        differs(field, "[[stop_hooks]]\nname = \"x\"\ncommand = \"true\"\n", folder.path());
    }
    for field in &fields("hooks") {
        let runs = match field.name {
            "program" | "args" => "program = \"x\"\n",
            "url" | "headers" | "allowed_env" => "url = \"http://127.0.0.1:1\"\n",
            "model" | "continue_on_block" => "prompt = \"x\"\n",
            _ => "command = \"true\"\n",
        };
        let event = if field.name == "event" { "stop" } else { "pre_tool_call" };
        if ["import", "env", "prompt", "agent"].contains(&field.name) {
            let event = if ["prompt", "agent"].contains(&field.name) { "event = \"stop\"\n" } else { "" };
            let after = format!("[[hooks]]\n{event}{} = {}\n", field.name, field.example);
            let is_same = comes_of("", folder.path()) == comes_of(&after, folder.path());
            assert!(!is_same, "{} does nothing", field.name);
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
    for field in &fields("agents") {
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
    for field in &fields("providers") {
        differs(field, "[providers.mine]\nbase_url = \"http://h\"\n", folder.path());
    }
    for field in &fields("models") {
        let prices = "input_usd = 3\noutput_usd = 4\n";
        differs(field, &format!("[models.\"mine/big\"]\n{prices}"), folder.path());
    }
}

#[test]
fn every_field_of_an_mcp_server_changes_what_a_run_gets() {
    let folder = folder();
    for field in &fields("mcp") {
        let before = match field.name {
            "url" => {
                let after = format!("[mcp.x]\nurl = {}\n", field.example);
                assert_ne!(
                    comes_of("", folder.path()),
                    comes_of(&after, folder.path()),
                    "`url` does nothing"
                );
                continue;
            }
            "headers_env" | "oauth_client_id" | "oauth_scopes" => "[mcp.x]\nurl = \"http://127.0.0.1:1\"\n",
            "oauth_client_secret_env" => "[mcp.x]\nurl = \"http://127.0.0.1:1\"\noauth_client_id = \"x\"\n",
            "allow_hosts" => "[mcp.x]\ncommand = \"x\"\nsandbox = \"workspace\"\n",
            _ => "[mcp.x]\ncommand = \"x\"\n",
        };
        differs(field, before, folder.path());
    }
}
