//! `[spawn]` and `[[agents]]`: errors have their position, and valid values reach the run's policy.

use std::fs;

use expect_test::expect;
use serde_json::Value;

use crate::settings_errors::check;
use crate::support::{Scene, json};

const DONE: &str = "answers: [{ text: done }]";

/// The first entry of a run with these settings: its policy.
#[track_caller]
fn policy_of(settings: &str, args: &[&str]) -> Value {
    let scene = Scene::scripted(DONE).with_settings(settings);
    let ran = scene.provost(&[&["run", "x", "--json"], args].concat());
    assert_eq!(ran.status, 0, "{ran:?}");
    json(ran.stdout.lines().next().unwrap())["policy"].clone()
}

fn names(tools: &Value) -> Vec<String> {
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// The names of the tools that start an agent.
fn delegating(agent: &Value) -> Vec<String> {
    let mut all = names(&agent["tools"]);
    all.retain(|name| {
        !["shell", "jobs", "search", "update_plan", "recall", "terminal"].contains(&name.as_str())
    });
    all.retain(|name| !name.ends_with("_file") && !name.ends_with("_dir"));
    all
}

#[test]
fn agents_that_cant_be() {
    check(
        "[[agents]]\nname = \"x\"\n\n[[agents]]\nname = \"a b\"\ndescription = \"y\"\n\n[[agents]]\nname = \"z\"\ndescription = \" \"\n",
        expect![[r#"
            provost.toml:1:1: agents: `description` is missing; e.g. description = "Finds out how something works in this code, and answers with files and lines."
            provost.toml:5:1: agents.name: must begin with a letter and have only letters, digits, _ and -, at most 64; e.g. name = "researcher"
            provost.toml:10:1: agents.description: must not be empty; say what it is good for: that is all that others know of it
        "#]],
    );
    check(
        "[[agents]]\nname = \"shell\"\ndescription = \"y\"\n\n[[agents]]\nname = \"Task\"\ndescription = \"y\"\n\n[[agents]]\nname = \"spawn_agent\"\ndescription = \"y\"\n",
        expect![[r#"
            provost.toml:2:1: agents.name: `shell` is the name of a tool; give it another
            provost.toml:6:1: agents.name: `Task` is another name of the tool spawn_agent; give it another
            provost.toml:10:1: agents.name: `spawn_agent` is the name of a tool; give it another
        "#]],
    );
    check(
        "[[agents]]\nname = \"x\"\ndescription = \"y\"\n[[agents]]\nname = \"x\"\ndescription = \"y\"\n",
        expect![[r#"
            provost.toml:4:1: agents.name: `x` is taken by the agent at provost.toml:1:1; give each its own name
        "#]],
    );
    check(
        "[agents]\nname = \"x\"\n",
        expect![[r#"
        provost.toml:1:2: agents: must be a list: write [[agents]] on a line of its own, once for each
    "#]],
    );
}

#[test]
fn fields_of_agents_that_cant_be() {
    check(
        "[[agents]]\nname = \"x\"\ndescription = \"y\"\npriority = \"urgent\"\nisolation = \"docker\"\nmax_turns = 0\nask_timeout = 5\nmodell = \"z\"\n",
        expect![[r#"
            provost.toml:4:1: agents.priority: must be one of background, low, normal, high, critical (is `urgent`); e.g. priority = "high"
            provost.toml:5:1: agents.isolation: must be one of shared, worktree (is `docker`); e.g. isolation = "worktree"
            provost.toml:6:1: agents.max_turns: must be at least 1 (is 0); e.g. max_turns = 15
            provost.toml:7:1: agents.ask_timeout: must be a time with its unit, in quotes (is 5); e.g. ask_timeout = "10m"
            provost.toml:8:1: agents.modell: there is no such setting; did you mean `model`?
        "#]],
    );
    check(
        "[[agents]]\nname = \"x\"\ndescription = \"y\"\nbudget = { tokens = 0, usd = -1, time = \"5m\" }\n\n[agents.permissions]\ndeny = [\"shell(\"]\n",
        expect![[r#"
            provost.toml:4:12: agents.budget.tokens: must be at least 1 (is 0); e.g. budget.tokens = 200_000
            provost.toml:4:24: agents.budget.usd: must be more than 0 (is -1); e.g. budget.usd = 0.50
            provost.toml:4:34: agents.budget.time: there is no such setting; did you mean `budget.tokens`?
            provost.toml:7:9: agents.permissions.deny: the pattern `shell(` isn't closed: write `)` at its end; e.g. permissions.deny = ["write_file", "edit_file"]
        "#]],
    );
    check(
        "[[agents]]\nname = \"x\"\ndescription = \"y\"\nbudget = 5\ntokens = 7\n",
        expect![[r#"
            provost.toml:4:1: agents.budget: must be a table; e.g. budget.tokens = 200_000
            provost.toml:5:1: agents.tokens: there is no such setting; an agent has name, description, kind, program, args, profile, channel, size, idle_time, env, unmetered, instructions, model, fallback_models, effort, output_tokens_max, tools, max_turns, max_retries, priority, ask_timeout, isolation, stop_hooks, goal.condition, goal.judge, budget.tokens, budget.usd, budget.wall_time, permissions.allow, permissions.ask, permissions.deny, permissions.default
        "#]],
    );
}

#[test]
fn what_agents_name_must_be_there() {
    check(
        "[[stop_hooks]]\nname = \"tests\"\ncommand = \"true\"\n\n[[agents]]\nname = \"x\"\ndescription = \"y\"\ntools = [\"read_fil\", \"search\", \"y\"]\nstop_hooks = [\"test\"]\n\n[[agents]]\nname = \"coder\"\ndescription = \"y\"\ntools = [\"coder\", \"cuder\", \"spawn_agent\"]\n",
        expect![[r#"
            provost.toml:8:1: agents.tools: there is no tool `read_fil`; did you mean `read_file`?
            provost.toml:8:1: agents.tools: there is no tool `y`; did you mean `x`?
            provost.toml:9:1: agents.stop_hooks: there is no stop hook `test`; did you mean `tests`?
            provost.toml:14:1: agents.tools: there is no tool `cuder`; did you mean `coder`?
        "#]],
    );
    check(
        "[[agents]]\nname = \"x\"\ndescription = \"y\"\nstop_hooks = [\"tests\"]\n",
        expect![[r#"
        provost.toml:4:1: agents.stop_hooks: there is no stop hook `tests`; there is no stop hook at all
    "#]],
    );
}

#[test]
fn rules_of_agents_that_never_match_are_refused_by_check_and_at_the_start() {
    let settings = "[[agents]]\nname = \"x\"\ndescription = \"y\"\n\
        permissions.allow = [\"read_file\", \"bash\", \"mcp__a__b\"]\n\
        permissions.ask = [\"shel(rm *)\"]\n\
        permissions.deny = [\n  \"Shell(rm *)\",\n  \"update_plan(x)\",\n  \"x\",\n]\n";
    check(
        settings,
        expect![[r#"
            provost.toml:4:13: agents.permissions.allow: there is no tool `bash`, so that this never matches; there are apply_patch, edit_file, jobs, list_dir, read_file, recall, search, shell, skill, terminal, update_plan, write_file, spawn_agent, fetch, call_tool, trust_folder, consent, tool_search, x
            provost.toml:5:13: agents.permissions.ask: there is no tool `shel`, so that this never matches; did you mean `shell`?
            provost.toml:6:13: agents.permissions.deny: there is no tool `Shell`, so that this never matches; did you mean `shell`?
            provost.toml:6:13: agents.permissions.deny: `update_plan(x)` is compared to the arguments of `update_plan` as JSON, so that this never matches; write `update_plan` for all of its calls, or a pattern such as `update_plan({*"name":"value"*})`
        "#]],
    );
    let ran = Scene::scripted(DONE).with_settings(settings).provost(&["run", "t"]);
    assert_eq!(ran.status, 2, "{ran:?}");
    assert!(ran.stderr.contains(": agents.permissions.ask: there is no tool `shel`"), "{ran:?}");
    let known = "[[agents]]\nname = \"x\"\ndescription = \"y\"\npermissions.deny = [\"mcp__a__b\"]\n";
    let told = Scene::scripted(DONE).with_settings(known).provost(&["check"]);
    assert!(told.stdout.contains("so that they match nothing: `mcp__a__b`"), "{told:?}");
}

#[test]
fn models_that_stand_in_are_told_where_they_stand() {
    let of = |name: &str, settings: &str| {
        let scene = Scene::new();
        scene.write("work/a.yaml", DONE);
        let user = format!("[agent]\nmodel = \"script:{}\"\n", scene.path("work/a.yaml").display());
        scene.write("home/.config/provost/config.toml", &user);
        scene.write("work/provost.toml", settings);
        let (checked, ran) = (scene.provost(&["check"]), scene.provost(&["run", "x"]));
        let error =
            checked.stdout.lines().find(|line| line.starts_with("error: ")).unwrap_or_default().to_owned();
        assert!(ran.status == 2 && ran.stderr.contains(&error), "{name}: {ran:?}");
        error.split("; ").next().unwrap_or_default().chars().take(90).collect::<String>() + "\n"
    };
    let agent = "[[agents]]\nname = \"x\"\ndescription = \"y\"\n";
    let errors = [
        of("unknown", "[agent]\nfallback_models = [\"script:a.yaml\",\n  \"nosuch/model\"]\n"),
        of("no key", "[agent]\nfallback_models = [\"openai/gpt-5\"]\n"),
        of("of an agent", &format!("{agent}fallback_models = [\"nosuch/x\"]\n")),
        of("of an agent, no key", &format!("{agent}fallback_models = [\"openai/gpt-5\"]\n")),
    ];
    expect![[r#"
        error: provost.toml:3:3: agent.fallback_models: there is no provider for the model `nosuch
        error: provost.toml:2:20: agent.fallback_models: the model `openai/gpt-5` needs a key: set
        error: provost.toml:4:1: agents.fallback_models: there is no provider for the model `nosuc
        error: provost.toml:4:1: agents.fallback_models: the model `openai/gpt-5` needs a key: set
    "#]]
    .assert_eq(&errors.concat());
}

#[test]
fn an_agent_gets_no_more_than_the_run() {
    check(
        "[agent]\nmodel = \"script:a.yaml\"\n[budget]\ntokens = 1000\nusd = 1\nwall_time = \"10m\"\n\n[[agents]]\nname = \"x\"\ndescription = \"y\"\nask_timeout = \"11m\"\nbudget = { tokens = 1001, usd = 1.01, wall_time = \"1h\" }\n\n[[agents]]\nname = \"even\"\ndescription = \"y\"\nask_timeout = \"10m\"\nbudget = { tokens = 1000, usd = 1, wall_time = \"10m\" }\n",
        expect![[r#"
            provost.toml:12:12: agents.budget.tokens: `x` would get more than the whole run (budget.tokens is 1000, from provost.toml:4:1); lower it, or leave it out
            provost.toml:12:27: agents.budget.usd: `x` would get more than the whole run (budget.usd is 1, from provost.toml:5:1); lower it, or leave it out
            provost.toml:12:39: agents.budget.wall_time: `x` would get more than the whole run (budget.wall_time is 10m, from provost.toml:6:1); lower it, or leave it out
            provost.toml:11:1: agents.ask_timeout: `x` would get more than the whole run (budget.wall_time is 10m, from provost.toml:6:1); lower it, or leave it out
        "#]],
    );
}

#[test]
fn each_agents_model_is_looked_at() {
    let scene = Scene::scripted(DONE).with_settings(
        "[[agents]]\nname = \"lost\"\ndescription = \"y\"\nmodel = \"script:lost.yaml\"\n\
         [[agents]]\nname = \"capped\"\ndescription = \"y\"\nmodel = \"mine/small\"\noutput_tokens_max = 5000\n\
         [[agents]]\nname = \"small\"\ndescription = \"y\"\nmodel = \"script:small.yaml\"\n\
         [[agents]]\nname = \"unpriced\"\ndescription = \"y\"\nmodel = \"mine/m\"\nbudget.usd = 1\n\
         [[agents]]\nname = \"nowhere\"\ndescription = \"y\"\nmodel = \"nowhere/m\"\n",
    );
    scene.write("work/small.yaml", "window_tokens: 1200\nanswers: [{ text: done }]");
    scene.write(
        "home/.config/provost/config.toml",
        "[providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"\n[models.\"mine/small\"]\noutput_tokens_max = 4000\n",
    );
    let mut command = scene.command(&["check"]);
    let checked = crate::support::done(&command.env("MINE_API_KEY", "k").output().unwrap());
    let errors = checked.stdout.lines().filter(|line| line.starts_with("error: "));
    // The tokens of a prompt depend on the folder's name.
    let stable = |line: &str| line.split("; system prompt").next().unwrap_or_default().to_owned();
    let errors = errors.map(|line| stable(line) + "\n").collect::<String>();
    expect![[r#"
        error: provost.toml:6:1: agents.model: can't read the script /FOLDER/work/lost.yaml; check its path: No such file or directory (os error 2)
        error: provost.toml:11:1: agents.output_tokens_max: mine/small gives at most 4000 (is 5000); lower it, or leave it out
        error: provost.toml:15:1: agents.model: script:/FOLDER/work/small.yaml has a window of 1,200 tokens, 900 of them beside an answer
        error: provost.toml:20:8: agents.budget.usd: limits money, but the price of mine/m, the model of `unpriced`, isn't known; limit tokens instead, e.g. tokens = 2_000_000; or state the price in [models."mine/m"] of your own settings file; or set allow_unpriced
        error: provost.toml:24:1: agents.model: there is no provider for the model `nowhere/m`: write script:FILE, or PROVIDER/MODEL with one of anthropic, openai, gemini, openai-chat, openrouter, deepseek, mistral, groq, xai, moonshot, zai, fireworks, cerebras, together, nvidia, ollama, vllm, llamacpp, lmstudio, litellm, mine
    "#]].assert_eq(&scene.stable(&errors));
    let mut command = scene.command(&["run", "x"]);
    let ran = crate::support::done(&command.env("MINE_API_KEY", "k").output().unwrap());
    assert_eq!(ran.status, 2, "{ran:?}");
    assert_eq!(ran.stderr.matches("agents.").count(), errors.lines().count(), "{ran:?}");
}

#[test]
fn a_missing_key_of_an_agents_model_is_told_before_anything_runs() {
    let settings = "[[agents]]\nname = \"x\"\ndescription = \"y\"\nmodel = \"openai/gpt-6.1-terra\"\n";
    let scene = Scene::scripted(DONE).with_settings(settings);
    let checked = scene.provost(&["check"]);
    assert_eq!(checked.status, 2, "{checked:?}");
    assert!(checked.stdout.contains("\nerror: provost.toml:6:1: agents.model: "), "{checked:?}");
    assert!(checked.stdout.contains("set OPENAI_API_KEY\n"), "{checked:?}");
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 2, "{ran:?}");
    assert!(ran.stderr.contains("provost.toml:6:1: agents.model: "), "{ran:?}");
    // It isn't used where there are no sub-agents.
    assert_eq!(scene.provost(&["run", "x", "--max-agents", "1"]).status, 0);
}

#[test]
fn a_worktree_in_the_users_own_file_is_no_error_where_there_can_be_none() {
    let settings = "[[agents]]\nname = \"x\"\ndescription = \"y\"\nisolation = \"worktree\"\n";
    let scene = Scene::scripted(DONE);
    scene.write("home/.config/provost/config.toml", settings);
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let checked = scene.provost(&["check"]);
    assert_eq!(checked.status, 0, "{checked:?}");
    let note = checked.stdout.lines().find(|line| line.starts_with("note: ")).unwrap();
    expect!["note: /FOLDER/home/.config/provost/config.toml:4:1: agents.isolation: `x` can have no worktree: /FOLDER/work is in no git repository; it fails here if it is asked for"].assert_eq(&scene.stable(note));
    assert!(checked.stdout.ends_with("all right\n"), "{checked:?}");
    // A file on the command line is for this run.
    scene.write("work/other.toml", &format!("[agent]\nmodel = \"script:agent.yaml\"\n\n{settings}"));
    scene.write("home/.config/provost/config.toml", "");
    let ran = scene.provost(&["run", "x", "--config", "other.toml"]);
    assert_eq!(ran.status, 2, "{ran:?}");
    assert!(ran.stderr.contains("other.toml:7:1: agents.isolation"), "{ran:?}");
}

#[test]
fn a_worktree_needs_a_repository() {
    let settings = "[[agents]]\nname = \"x\"\ndescription = \"y\"\nisolation = \"worktree\"\n";
    let scene = Scene::scripted(DONE).with_settings(settings);
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 2, "{ran:?}");
    expect![[r#"
        error: provost.toml:6:1: agents.isolation: `x` can have no worktree: /FOLDER/work is in no git repository; `git init` makes one; or leave it out; or have no sub-agents, with --max-agents 1
    "#]].assert_eq(&scene.stable(&ran.stderr));
    fs::create_dir(scene.path("work/.git")).unwrap();
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    fs::create_dir(scene.path("work/deep")).unwrap();
    let deep = scene.provost(&["run", "x", "-C", "deep"]);
    assert_eq!(deep.status, 2, "{deep:?}");
    assert!(
        scene.stable(&deep.stderr).contains("the top of its git repository is /FOLDER/work; start there")
    );
}

#[test]
fn agents_are_tools_of_the_agent_and_of_those_that_name_them() {
    let settings = "[[agents]]\nname = \"coder\"\ndescription = \"Writes.\"\n\
                    [[agents]]\nname = \"lead\"\ndescription = \"Leads.\"\ntools = [\"read_file\", \"coder\"]\n\
                    [[agents]]\nname = \"thinker\"\ndescription = \"Thinks.\"\ntools = []\n";
    let policy = policy_of(settings, &[]);
    assert_eq!(delegating(&policy["agent"]), ["spawn_agent", "coder", "lead", "thinker"]);
    let [coder, lead, thinker] = [0, 1, 2].map(|at| policy["agents"][at]["agent"].clone());
    assert_eq!(delegating(&coder), Vec::<String>::new());
    let mut of_root = names(&policy["agent"]["tools"]);
    of_root.retain(|name| !delegating(&policy["agent"]).contains(name));
    assert_eq!(names(&coder["tools"]), of_root);
    assert_eq!(names(&lead["tools"]), ["read_file", "coder"]);
    assert_eq!(names(&thinker["tools"]), Vec::<String>::new());
}

#[test]
fn one_agent_or_no_depth_is_without_sub_agents() {
    let agents = "[[agents]]\nname = \"coder\"\ndescription = \"Writes.\"\n";
    for (settings, args) in [
        (format!("[spawn]\nmax_agents = 1\n{agents}"), &[][..]),
        (format!("[spawn]\nmax_depth = 0\n{agents}"), &[]),
        (agents.to_owned(), &["--max-agents", "1"]),
    ] {
        let policy = policy_of(&settings, args);
        assert_eq!(delegating(&policy["agent"]), Vec::<String>::new(), "{settings}");
        assert_eq!(policy["agents"], Value::Null, "{settings}");
    }
    let policy = policy_of("[spawn]\nmax_agents = 3\nallow_preempt = false\nmax_depth = 1\n", &[]);
    assert_eq!(policy["spawn"], json(r#"{"max_agents":3,"allow_preempt":false,"max_depth":1}"#));
    let scene = Scene::scripted(DONE);
    let ran = scene.provost(&["run", "x", "--max-agents", "0"]);
    assert_eq!(ran.status, 2, "{ran:?}");
    assert!(ran.stderr.contains("--max-agents: spawn.max_agents: must be at least 1 (is 0)"), "{ran:?}");
}

#[test]
fn an_agent_is_as_the_run_where_it_says_nothing() {
    let settings = "instructions = \"Be brief.\"\nmax_turns = 9\noutput_tokens_max = 3000\n\
                    [permissions]\ndeny = [\"shell(rm *)\"]\n\
                    [[agents]]\nname = \"same\"\ndescription = \"y\"\n\
                    [[agents]]\nname = \"own\"\ndescription = \"y\"\ninstructions = \"Be thorough.\"\nmax_turns = 2\n\
                    output_tokens_max = 2000\npriority = \"high\"\nask_timeout = \"90s\"\n\
                    budget = { tokens = 5000, wall_time = \"1m\" }\n\
                    [agents.permissions]\nallow = [\"read_file\"]\ndefault = \"deny\"\n";
    let policy = policy_of(settings, &[]);
    let (root, same, own) = (&policy["agent"], &policy["agents"][0], &policy["agents"][1]);
    for field in ["model", "system_prompt", "limits", "permissions", "workspace"] {
        assert_eq!(same["agent"][field], root[field], "{field}");
    }
    assert_eq!((&same["priority"], &same["budget"]), (&"normal".into(), &Value::Null));
    let prompt = own["agent"]["system_prompt"].as_str().unwrap();
    assert!(prompt.ends_with("Be thorough.") && !prompt.contains("Be brief."), "{prompt}");
    assert_eq!(own["agent"]["limits"]["turns_max"], 2);
    assert_eq!(own["agent"]["model"]["output_tokens_max"], 2000);
    assert_eq!(own["agent"]["permissions"]["allow"], json(r#"["read_file"]"#));
    assert_eq!(own["agent"]["permissions"]["default"], "deny");
    assert_eq!(own["priority"], "high");
    assert_eq!(own["ask_timeout_ms"], 90_000);
    assert_eq!(own["budget"], json(r#"{"tokens":5000,"wall_time_ms":60000}"#));
}

#[test]
fn hooks_bind_every_agent_and_stop_hooks_those_that_name_them() {
    let scene = Scene::scripted(DONE).with_settings(
        "[[stop_hooks]]\nname = \"a\"\ncommand = \"true\"\n[[stop_hooks]]\nname = \"b\"\ncommand = \"true\"\n\
         [[hooks]]\nevent = \"pre_tool_call\"\ncommand = \"true\"\n\
         [[agents]]\nname = \"x\"\ndescription = \"y\"\nstop_hooks = [\"b\"]\n\
         [[agents]]\nname = \"z\"\ndescription = \"y\"\n",
    );
    let scene = scene.trusted();
    let ran = scene.provost(&["run", "x", "--json"]);
    let policy = &json(ran.stdout.lines().next().unwrap())["policy"];
    let of = |at: usize| &policy["agents"][at]["agent"];
    assert_eq!((&of(0)["hooks"], &of(1)["hooks"]), (&policy["agent"]["hooks"], &policy["agent"]["hooks"]));
    assert_eq!(policy["agent"]["hooks"].as_array().unwrap().len(), 1);
    assert_eq!((names(&of(0)["stop_hooks"]), names(&of(1)["stop_hooks"])), (vec!["b".to_owned()], vec![]));
}

#[test]
fn check_shows_the_agents() {
    let scene = Scene::scripted(DONE).with_settings(
        "[[agents]]\nname = \"researcher\"\ndescription = \"Finds out how things work.\"\ntools = [\"read_file\", \"search\"]\n\
         model = \"script:agent.yaml\"\npriority = \"low\"\nmax_turns = 5\nask_timeout = \"5m\"\n\
         budget = { tokens = 20_000, usd = 0.5, wall_time = \"10m\" }\n\
         [[agents]]\nname = \"coder\"\ndescription = \"Writes.\"\n",
    );
    let shown = |scene: &Scene| {
        let checked = scene.provost(&["check", "--all"]);
        assert_eq!(checked.status, 0, "{checked:?}");
        let lines =
            checked.stdout.lines().filter(|line| line.starts_with("agent ") || line.starts_with("spawn"));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    expect![[r#"
        spawn.max_agents              8  (default)
        spawn.allow_preempt           true  (default)
        spawn.max_depth               1  (default)
        agent researcher  low · script:agent.yaml · read_file, search · 5 turns · 20,000 tokens · $0.50 · 10m00s · waited for 5m00s  Finds out how things work.  (provost.toml:3:1)
        agent coder  normal  Writes.  (provost.toml:12:1)
    "#]].assert_eq(&shown(&scene));
    let checked = json(&scene.provost(&["check", "--json"]).stdout);
    assert_eq!(
        checked["agents"][0]["budget"],
        json(r#"{"tokens":20000,"money":500000,"wall_time_ms":600000}"#)
    );
    assert_eq!(checked["agents"][1]["offered"], true);
    let scene = scene.with_settings("[spawn]\nmax_depth = 0\n");
    assert!(shown(&scene).contains("not offered: [spawn] allows no sub-agents"));
}
