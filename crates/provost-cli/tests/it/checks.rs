//! Checks that fail, are broken, time out or are ignored, and rules that can't match, from the user's side.

use std::fs;

use serde_json::Value;

use crate::model_server::ModelServer;
use crate::support::{Done, Scene, json};

/// An agent that claims this many times to be done.
fn says_done(times: usize) -> Scene {
    Scene::scripted(&format!("answers: [{}]", vec!["{ text: done }"; times].join(", ")))
}

fn checked(times: usize, command: &str, more: &str) -> Scene {
    let hook = format!("[[stop_hooks]]\nname = \"tests\"\ncommand = \"{command}\"\n{more}");
    says_done(times).with_settings(&hook).trusted()
}

fn run(scene: &Scene, flags: &[&str]) -> Done {
    scene.provost(&[&["run", "do it"], flags].concat())
}

#[track_caller]
fn says(done: &Done, status: i32, words: &[&str]) {
    assert_eq!(done.status, status, "{done:?}");
    for word in words {
        assert!(done.stderr.contains(word), "`{word}` isn't in {}", done.stderr);
    }
}

fn outcome(scene: &Scene) -> Value {
    json(scene.provost(&["ps", "--json", "-n", "1"]).stdout.trim())["outcome"].clone()
}

#[test]
fn a_check_that_fails_like_cargo_test_sends_the_agent_back_with_what_it_printed() {
    let scene = checked(3, "echo 'test result: FAILED'; test -e again && exit 0; touch again; exit 101", "");
    let done = run(&scene, &[]);
    says(
        &done,
        0,
        &["stop hooks say no: tests", "exit status 101: test result: FAILED", "sent back to work"],
    );
    says(&done, 0, &["completed, verified · 2 turns"]);
    assert_eq!(outcome(&scene)["verification"], "passed");
}

#[test]
fn a_check_that_keeps_failing_never_completes() {
    let done = run(&checked(3, "echo 'test result: FAILED'; exit 101", ""), &[]);
    says(&done, 4, &["blocked: tests: exit status 101: test result: FAILED"]);
    assert_eq!(done.stderr.matches("sent back to work").count(), 1, "{}", done.stderr);
}

#[test]
fn a_check_that_is_not_there_is_said_to_be_broken_and_suspends_the_second_time() {
    let scene = checked(3, "no-such-checker --all", "");
    let done = run(&scene, &[]);
    says(&done, 4, &["stop hooks are broken: tests", "the check `tests` is broken, not the agent's work"]);
    says(&done, 4, &["exit status 127", "no-such-checker"]);
    assert_eq!(done.stderr.matches("sent back to work").count(), 1, "{}", done.stderr);
    let explained = scene.provost(&["explain", "last"]).stdout;
    assert!(explained.contains("broken 2"), "{explained}");
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains("tests: broken, can't be run"), "{shown}");
}

#[test]
fn a_check_that_is_killed_counts_as_broken() {
    says(
        &run(&checked(3, "kill -9 $$", ""), &[]),
        4,
        &["is broken, not the agent's work: killed by signal 9"],
    );
}

#[test]
fn a_check_that_takes_too_long_sends_back_once_and_then_suspends() {
    let done = run(&checked(3, "sleep 600", "timeout_secs = 1\n"), &[]);
    says(&done, 4, &["stop hooks took too long: tests", "timed out after 1 s", "blocked: the check `tests`"]);
    assert_eq!(done.stderr.matches("sent back to work").count(), 1, "{}", done.stderr);
}

#[test]
fn a_check_that_is_mended_in_between_is_asked_again() {
    let scene = checked(3, "test -e again && exit 0; touch again; exit 127", "");
    says(&run(&scene, &[]), 0, &["completed, verified"]);
}

#[test]
fn what_is_ignored_is_said_everywhere() {
    let scene = checked(1, "exit 101", "on_error = \"ignore\"\n");
    says(&run(&scene, &[]), 0, &["completed, not verified: tests gave no answer"]);
    let outcome = outcome(&scene);
    assert_eq!((&outcome["verification"], &outcome["ignored"][0]), (&"ignored".into(), &"tests".into()));
    assert!(scene.provost(&["ps"]).stdout.contains("completed, not verified"));
    assert!(
        scene.provost(&["show", "last"]).stdout.contains("completed, not verified: tests gave no answer")
    );
    assert_eq!(json(&scene.provost(&["show", "last", "--json"]).stdout)["verification"], "ignored");
}

#[test]
fn required_verification_is_in_the_exit_status() {
    let none = run(&says_done(1), &["--require-verified"]);
    says(&none, 1, &["completed, not verified", "--require-verified"]);
    let ignored = run(&checked(1, "exit 1", "on_error = \"ignore\"\n"), &["--require-verified"]);
    says(&ignored, 1, &["not verified: tests gave no answer"]);
    says(&run(&checked(1, "exit 0", ""), &["--require-verified"]), 0, &["completed, verified"]);
    let claim = Scene::scripted("answers: [{ text: 'VERDICT: PASS' }]");
    says(&run(&claim, &["--require-verified"]), 1, &["completed (verdict PASS), not verified"]);
}

#[test]
fn the_last_line_for_programs_has_the_verification() {
    let lines = run(&says_done(1), &["--json"]).stdout;
    let ended = lines.lines().map(json).rfind(|line| line["type"] == "ended").expect("it ended");
    assert_eq!(ended["outcome"]["verification"], "none");
}

#[test]
fn under_a_goal_nothing_is_ignored() {
    let goal = "[goal]\ncondition = \"it is there\"\njudge = \"script:judge.yaml\"\n";
    let scene = says_done(2)
        .with_settings(goal)
        .with_settings("[[stop_hooks]]\nname = \"tests\"\ncommand = \"exit 1\"\non_error = \"ignore\"\n");
    scene.write(
        "work/judge.yaml",
        "answers: [{ text: '{\"achieved\": true, \"reasoning\": \"it is\", \"confidence\": 1}' }]",
    );
    says(&run(&scene.trusted(), &[]), 4, &["blocked: tests: exit status 1"]);
}

#[test]
fn a_short_run_shortens_a_default_timeout_and_refuses_a_given_one() {
    let hook = "[budget]\nwall_time = \"5s\"\n[[stop_hooks]]\nname = \"tests\"\ncommand = \"true\"\n";
    says(&run(&says_done(1).with_settings(hook).trusted(), &[]), 0, &["completed, verified"]);
    let given = says_done(1).with_settings(&format!("{hook}timeout_secs = 60\n"));
    says(&run(&given, &[]), 2, &["may take longer (60 s) than the whole run"]);
}

// ---- rules that can't match -----------------------------------------------------------------------------------------

const USER_FILE: &str = "home/.config/provost/config.toml";
const REMOVES: &str = "answers: [{ tools: [{ shell: { command: rm precious } }] }, { text: gone }]";

#[test]
fn a_typo_in_a_deny_rule_lets_nothing_begin() {
    for wrong in ["shel(rm *)", "Shell(rm *)", "SHELL(rm *)"] {
        let scene = Scene::scripted(REMOVES).with_settings(&format!("[permissions]\ndeny = [\"{wrong}\"]\n"));
        scene.write("work/precious", "all there is");
        let done = run(&scene, &[]);
        let tool = wrong.split('(').next().unwrap();
        let words = format!("provost.toml:4:9: permissions.deny: there is no tool `{tool}`");
        says(&done, 2, &[&words, "did you mean `shell`?"]);
        assert!(fs::exists(scene.path("work/precious")).unwrap(), "{wrong} let it be removed");
        let check = scene.provost(&["check"]);
        assert!(check.status == 2 && check.stdout.contains(&words), "{check:?}");
    }
}

#[test]
fn every_list_of_tools_is_looked_at() {
    let rules = "[permissions]\nallow = [\"read_fil\"]\nask = [\"Search\", \"Bash(git *)\", \"write_*\", \"consent\"]\n\
                 [[hooks]]\nevent = \"pre_tool_call\"\nmatcher = \"shell|edit_fle\"\ncommand = \"true\"\n\
                 [[hooks]]\nevent = \"pre_tool_call\"\nmatcher = \"^Shell.*\"\ncommand = \"true\"\n\
                 [[hooks]]\nevent = \"pre_tool_call\"\nif = \"shel(x)\"\ncommand = \"true\"\n\
                 [[hooks]]\nevent = \"pre_tool_call\"\nmatcher = \"Bash|Write|^edit\"\ncommand = \"true\"\n\
                 [[hooks]]\nevent = \"pre_tool_call\"\nmatcher = \"NotebookEdit\"\ncontract = \"claude\"\ncommand = \"true\"\n\
                 [[agents]]\nname = \"helper\"\ndescription = \"helps\"\ntools = [\"serch\"]\n";
    let done = says_done(1).with_settings(rules).provost(&["check"]);
    assert_eq!(done.status, 2, "{done:?}");
    let told = |words: &str| assert!(done.stdout.contains(words), "`{words}` isn't in {}", done.stdout);
    told(
        "permissions.allow: there is no tool `read_fil`, so that this never matches; did you mean `read_file`?",
    );
    told("permissions.ask: there is no tool `Search`, so that this never matches; did you mean `search`?");
    told("hooks.matcher: there is no tool `edit_fle`, so that this never matches; did you mean `edit_file`?");
    told("hooks.matcher: there is no tool `^Shell.*`");
    told("hooks.if: there is no tool `shel`");
    told("agents.tools: there is no tool `serch`; did you mean `search`?");
    assert_eq!(done.stdout.matches("there is no tool").count(), 6, "{}", done.stdout);
}

#[test]
fn a_pattern_that_the_arguments_of_its_tool_never_meet_lets_nothing_begin() {
    for (wrong, words) in [
        ("update_plan(x)", "`update_plan(x)` is compared to the arguments of `update_plan` as JSON"),
        ("spawn_agent(helper *)", "write `spawn_agent` for all of its calls, or a pattern such as"),
        ("Task(helper)", "`Task(helper)` is compared"),
        ("recall({zzz)", "so that this never matches"),
        ("shell()", "has nothing in its parentheses: write `tool` for all of its calls"),
        ("shell(curl * | sh)", "is compared to each command of a line by itself, without what joins them"),
        ("shell(rm *; ls)", "write a pattern for each of the commands"),
        ("terminal(cd * && rm *)", "write a pattern for each of the commands"),
        ("shell(rm *|mv *)", "write a pattern for each of the commands"),
        ("shell(^rm .*)", "begins with `^`, which stands for itself"),
        ("write_file(^src/.*)", "begins with `^`, which stands for itself"),
        ("write_file( secrets.txt)", "has blanks around its path"),
        ("write_file(src/{a,b}.rs)", "write a pattern for each of the paths"),
    ] {
        for list in ["allow", "ask", "deny"] {
            let scene = says_done(1).with_settings(&format!("[permissions]\n{list} = ['{wrong}']\n"));
            says(&run(&scene, &[]), 2, &[&format!("permissions.{list}: "), words]);
        }
    }
    let right = "[permissions]\ndeny = ['update_plan(*x*)', 'spawn_agent({*\"agent\":\"helper\"*})', '*(x)', 'recall(*)', \
                 \"shell(grep 'a|b;c' *)\", 'shell(find * \\;)', 'shell(cargo * 2>&1)', 'shell(ls | wc)', 'read_file(app/[id]/{x}.ts)']\n";
    says(&run(&says_done(1).with_settings(right), &[]), 0, &[]);
}

#[test]
fn rules_for_tools_of_mcp_servers_that_arent_configured_are_told_of() {
    let scene = says_done(1).with_settings("[permissions]\ndeny = [\"mcp__files__delete\"]\n");
    let words = "permissions name tools of MCP servers that aren't configured";
    says(&run(&scene, &[]), 0, &[words, "`mcp__files__delete`"]);
    let check = scene.provost(&["check"]);
    assert!(check.status == 0 && check.stdout.contains(words), "{check:?}");
}

#[test]
fn a_check_without_a_command_is_an_error_and_no_check_that_passes() {
    for command in ["", "  "] {
        let scene = Scene::scripted("answers: [{ text: done }]");
        scene.write(
            "work/provost.toml",
            &format!("[agent]\nmodel = \"script:agent.yaml\"\n\n[[stop_hooks]]\nname = \"t\"\ncommand = \"{command}\"\n"),
        );
        for args in [&["run", "look"][..], &["check"]] {
            let done = scene.provost(args);
            assert_eq!(done.status, 2, "{done:?}");
            let said = format!("{}{}", done.stdout, done.stderr);
            assert!(said.contains("stop_hooks") && said.contains("must not be empty"), "{said}");
        }
    }
}

#[test]
fn the_default_limit_is_refused_where_a_model_has_no_known_price() {
    let scene = Scene::new();
    scene.write(
        USER_FILE,
        "[providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"\n\
         [models.\"mine/priced\"]\ninput_usd = 1\noutput_usd = 2\n",
    );
    let words = "no limit is set, and the default of $20 can't limit mine/unpriced, whose price isn't known";
    for unpriced in [
        "fallback_models = [\"mine/unpriced\"]\n",
        "\n[[agents]]\nname = \"r\"\ndescription = \"d\"\nmodel = \"mine/unpriced\"\n",
        "\n[goal]\ncondition = \"all is there\"\njudge = \"mine/unpriced\"\n",
    ] {
        let settings = format!("[agent]\nmodel = \"mine/priced\"\n{unpriced}");
        scene.write("work/provost.toml", &settings);
        let check = scene.provost(&["check"]);
        assert!(check.status == 2 && check.stdout.contains(words), "{unpriced}: {check:?}");
        says(&run(&scene, &[]), 2, &[words, "--tokens"]);
        assert_eq!(scene.provost(&["ps"]).stdout, "no runs yet; start one with `provost run \"GOAL\"`\n");
        scene.write("work/provost.toml", &format!("{settings}[budget]\ntokens = 100000\n"));
        let check = scene.provost(&["check"]);
        assert!(check.status == 0, "a limit that binds: {check:?}");
    }
}

#[test]
fn a_run_without_a_limit_is_told_of_the_default_one_which_binds() {
    let call = r#"{"index":0,"id":"c1","function":{"name":"list_dir","arguments":"{}"}}"#;
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
         data: {{\"model\":\"priced\",\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{call}]}},\"finish_reason\":\"tool_calls\"}}]}}\n\n\
         data: {{\"model\":\"priced\",\"choices\":[],\"usage\":{{\"prompt_tokens\":6000,\"completion_tokens\":1}}}}\n\n\
         data: [DONE]\n\n"
    );
    let server = ModelServer::plain(vec![answer]);
    let scene = Scene::new();
    scene.write(
        USER_FILE,
        &format!(
            "[providers.mine]\nbase_url = \"http://127.0.0.1:{}/v1\"\n\
             [models.\"mine/priced\"]\ninput_usd = 1000\noutput_usd = 1\n",
            server.port
        ),
    );
    scene.write("work/provost.toml", "[agent]\nmodel = \"mine/priced\"\n");
    let ran = run(&scene, &[]);
    says(&ran, 3, &["no limit set: $20 binds; [budget] usd or --usd changes it", "Money budget", "$20.00"]);
    assert!((2..=3).contains(&server.requests().len()), "{ran:?}");
}
