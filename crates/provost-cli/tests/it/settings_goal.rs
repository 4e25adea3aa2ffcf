//! `[goal]`: errors have their position, and valid values reach the run's policy and its judges.

use expect_test::expect;
use serde_json::{Value, json};

use crate::settings_errors::check;
use crate::support::{Done, Scene, json as parsed};

const USER_FILE: &str = "home/.config/provost/config.toml";
const DONE: &str = "answers: [{ text: done }, { text: done again }]\n";
const YES: &str = "verdicts: [{ achieved: true, confidence: 0.9, reasoning: it is there }]\n";
const NO: &str = "verdicts: [{ achieved: false, confidence: 0.9, reasoning: it is not there }]\n";

/// A scene with an agent that claims to be done, and judges that agree or not.
fn scene(settings: &str) -> Scene {
    let scene = Scene::scripted(DONE).with_settings(settings);
    scene.write("work/yes.yaml", YES);
    scene.write("work/no.yaml", NO);
    scene
}

/// The first policy of a run with these settings.
#[track_caller]
fn policy_of(settings: &str, args: &[&str]) -> Value {
    let scene = scene(settings);
    first_policy(&scene.provost(&[&["run", "x", "--json"], args].concat()))
}

#[track_caller]
fn first_policy(ran: &Done) -> Value {
    let Some(first) = ran.stdout.lines().next() else { panic!("it didn't begin: {ran:?}") };
    parsed(first)["policy"].clone()
}

fn judges(goal: &Value) -> Vec<String> {
    let name = |judge: &Value| judge["name"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    goal["judges"].as_array().unwrap().iter().map(name).collect()
}

#[test]
fn numbers_and_words_that_cant_be() {
    check(
        "[goal]\ncondition = \" \"\njudge = \"\"\nthreshold = nan\nmax_rounds = 0\nmax_failures = -1\nstuck_turns = 0\nverify_every = 0\ntimeout = \"0s\"\nevidence_tokens = 499\nverdict_tokens = 10\nbudget_percent = 101\njudge_effort = \"a bit\"\nagree = 0\n",
        expect![[r#"
            provost.toml:2:1: goal.condition: must not be empty; e.g. condition = "cargo test passes and the README describes the new flag"
            provost.toml:3:1: goal.judge: must not be empty; e.g. judge = "openai/gpt-6.1-terra"
            provost.toml:4:1: goal.threshold: must be from 0 to 1 (is nan); e.g. threshold = 0.9
            provost.toml:5:1: goal.max_rounds: must be at least 1 (is 0); e.g. max_rounds = 10
            provost.toml:6:1: goal.max_failures: must be at least 1 (is -1); e.g. max_failures = 3
            provost.toml:7:1: goal.stuck_turns: must be at least 1 (is 0); e.g. stuck_turns = 5
            provost.toml:8:1: goal.verify_every: must be at least 1 (is 0); e.g. verify_every = 5
            provost.toml:9:1: goal.timeout: must be at least TIME (is `TIME`); e.g. timeout = "2m"
            provost.toml:10:1: goal.evidence_tokens: must be at least 500 (is 499); e.g. evidence_tokens = 20_000
            provost.toml:11:1: goal.verdict_tokens: must be at least 256 (is 10); e.g. verdict_tokens = 4096
            provost.toml:12:1: goal.budget_percent: must be at most 100 (is 101); e.g. budget_percent = 10
            provost.toml:13:1: goal.judge_effort: must be one of minimal, low, medium, high, xhigh, max (is `a bit`); e.g. judge_effort = "medium"
            provost.toml:14:1: goal.agree: must be at least 1 (is 0); e.g. agree = 2
        "#]],
    );
}

#[test]
fn shares_and_lists_that_cant_be() {
    for (threshold, expected) in [
        (
            "-0.1",
            expect![[r#"
            provost.toml:2:1: goal.threshold: must be from 0 to 1 (is -0.1); e.g. threshold = 0.9
        "#]],
        ),
        (
            "1.01",
            expect![[r#"
            provost.toml:2:1: goal.threshold: must be from 0 to 1 (is 1.01); e.g. threshold = 0.9
        "#]],
        ),
        (
            "70",
            expect![[r#"
            provost.toml:2:1: goal.threshold: must be from 0 to 1 (is 70); e.g. threshold = 0.9
        "#]],
        ),
        (
            "\"0.7\"",
            expect![[r#"
            provost.toml:2:1: goal.threshold: must be a number from 0 to 1 (is text); e.g. threshold = 0.9
        "#]],
        ),
        (
            "inf",
            expect![[r#"
            provost.toml:2:1: goal.threshold: must be from 0 to 1 (is inf); e.g. threshold = 0.9
        "#]],
        ),
    ] {
        check(&format!("[goal]\nthreshold = {threshold}\n"), expected);
    }
    check(
        "[goal]\njudges = []\nbudget_percent = 0\nrounds = 3\n",
        expect![[r#"
            provost.toml:2:1: goal.judges: must not be empty; e.g. judges = ["openai/gpt-6.1-terra", "anthropic/claude-haiku-5-5"]
            provost.toml:3:1: goal.budget_percent: must be at least 1 (is 0); e.g. budget_percent = 10
            provost.toml:4:1: goal.rounds: there is no such setting; did you mean `goal.max_rounds`?
        "#]],
    );
    check(
        "[goal]\njudges = \"openai/gpt-6.1-terra\"\n",
        expect![[r#"
            provost.toml:2:1: goal.judges: must be a list of texts in [brackets] (is text); e.g. judges = ["openai/gpt-6.1-terra", "anthropic/claude-haiku-5-5"]
        "#]],
    );
    check(
        "[goal]\njudges = [\"a/b\", 7, \" \"]\n",
        expect![[r#"
            provost.toml:2:1: goal.judges: each must be text in quotes (is 7); e.g. judges = ["openai/gpt-6.1-terra", "anthropic/claude-haiku-5-5"]
        "#]],
    );
    check(
        "goal = \"tests pass\"\n",
        expect![[r#"
        provost.toml:1:1: goal: must be a table: write [goal] on a line of its own
    "#]],
    );
}

#[test]
fn what_is_wrong_together() {
    check(
        "[agent]\nmodel = \"script:a.yaml\"\n[goal]\njudge = \"openai/gpt-6.1-terra\"\njudges = [\"openai/gpt-6.1-terra\"]\n",
        expect![[r#"
            provost.toml:5:1: goal.judges: there is goal.judge too, from provost.toml:4:1; keep one of the two
        "#]],
    );
    check(
        "[goal]\nagree = 2\njudge = \"openai/gpt-6.1-terra\"\n",
        expect![[r#"
        provost.toml:2:1: goal.agree: 2 judges can't agree where there is one; lower it, or name more in goal.judges
    "#]],
    );
    check(
        "[goal]\nagree = 4\njudges = [\"a/b\", \"a/c\", \"a/d\"]\n",
        expect![[r#"
        provost.toml:2:1: goal.agree: 4 judges can't agree where there are 3; lower it, or name more in goal.judges
    "#]],
    );
    check(
        "[budget]\nwall_time = \"1m\"\n[goal]\ncondition = \"x\"\ntimeout = \"90s\"\n",
        expect![[r#"
        provost.toml:5:1: goal.timeout: a judge may take longer (90 s) than the whole run (budget.wall_time is 60 s, from provost.toml:2:1); e.g. timeout = "6s"
    "#]],
    );
    check(
        "[[agents]]\nname = \"x\"\ndescription = \"y\"\ngoal.judge = \"openai/gpt-6.1-terra\"\n[[agents]]\nname = \"z\"\ndescription = \"y\"\n[agents.goal]\ncondition = \"\"\nthreshold = 0.5\n",
        expect![[r#"
            provost.toml:9:1: agents.goal.condition: must not be empty; e.g. goal.condition = "every claim names a file and a line that says so"
            provost.toml:10:1: agents.goal.threshold: there is no such setting; an agent has name, description, kind, program, args, profile, channel, size, idle_time, env, unmetered, instructions, model, fallback_models, effort, output_tokens_max, tools, max_turns, max_retries, priority, ask_timeout, isolation, stop_hooks, goal.condition, goal.judge, budget.tokens, budget.usd, budget.wall_time, permissions.allow, permissions.ask, permissions.deny, permissions.default
            provost.toml:4:6: agents.goal.judge: `x` has a judge and nothing to be judged by; say in goal.condition what must be true, or leave it out
        "#]],
    );
}

#[test]
fn a_condition_alone_is_judged_by_the_agents_own_model_with_the_defaults() {
    let policy = policy_of("[goal]\ncondition = \"  the file is there \"\n", &[]);
    let mut goal = policy["agent"]["goal"].clone();
    assert_eq!(judges(&goal), ["agent.yaml"]);
    assert_eq!(goal["judges"][0]["output_tokens_max"], 2_048);
    goal.as_object_mut().unwrap().remove("judges");
    assert_eq!(
        goal,
        json!({
            "condition": "the file is there",
            "agree": 1,
            "threshold": 0.7,
            "rounds_max": 10,
            "failures_max": 3,
            "stuck_turns": 5,
            "timeout_ms": 60_000,
            "evidence_tokens_max": 8_000,
            "budget_percent": 20,
            "stop_hook_errors": "block",
        })
    );
    assert_eq!(policy.get("judging"), None, "no judge for others is named");
}

#[test]
fn everything_that_is_set_reaches_the_policy() {
    let policy = policy_of(
        "[goal]\ncondition = \"c\"\njudges = [\"script:yes.yaml\", \"script:no.yaml\", \"script:yes.yaml\"]\nagree = 3\nthreshold = 1\nmax_rounds = 1\nmax_failures = 4\nstuck_turns = 6\nverify_every = 7\ntimeout = \"90s\"\nevidence_tokens = 900\nverdict_tokens = 300\nbudget_percent = 5\njudge_effort = \"low\"\n",
        &[],
    );
    let goal = &policy["agent"]["goal"];
    assert_eq!(judges(goal), ["yes.yaml", "no.yaml", "yes.yaml"]);
    assert_eq!(
        (&goal["judges"][1]["output_tokens_max"], &goal["judges"][1]["effort"]),
        (&json!(300), &json!("low"))
    );
    let values =
        ["agree", "threshold", "rounds_max", "failures_max", "stuck_turns", "verify_every", "timeout_ms"];
    assert_eq!(
        values.map(|name| goal[name].clone()),
        [json!(3), json!(1.0), json!(1), json!(4), json!(6), json!(7), json!(90_000)]
    );
    let values = ["evidence_tokens_max", "budget_percent"];
    assert_eq!(values.map(|name| goal[name].clone()), [json!(900), json!(5)]);
    let judging = &policy["judging"];
    assert_eq!((judges(judging), &judging["agree"]), (judges(goal), &json!(3)));
}

#[test]
fn most_of_several_judges_must_agree_and_a_run_has_no_longer_verdicts_than_time() {
    let three = "[goal]\njudges = [\"script:yes.yaml\", \"script:no.yaml\", \"script:yes.yaml\"]\n";
    let policy = policy_of(&format!("{three}condition = \"c\"\n"), &["--wall-time", "20s"]);
    let goal = &policy["agent"]["goal"];
    assert_eq!((&goal["agree"], &goal["timeout_ms"]), (&json!(2), &json!(20_000)));
}

#[test]
fn flags_stand_over_variables_and_those_over_files() {
    let scene = scene("[goal]\ncondition = \"from the file\"\njudge = \"script:no.yaml\"\nthreshold = 0.6\n");
    let goal_of = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = scene.command(&[&["run", "x", "--json"], args].concat());
        let output = command.envs(variables.iter().copied()).output().unwrap();
        first_policy(&crate::support::done(&output))["agent"]["goal"].clone()
    };
    let of_file = goal_of(&[], &[]);
    assert_eq!(
        (judges(&of_file), &of_file["condition"]),
        (vec!["no.yaml".to_owned()], &json!("from the file"))
    );
    let variables = [
        ("PROVOST_GOAL_CONDITION", "from a variable"),
        ("PROVOST_GOAL_JUDGES", "script:yes.yaml, script:no.yaml"),
        ("PROVOST_GOAL_THRESHOLD", "0.8"),
    ];
    let of_variables = goal_of(&[], &variables);
    assert_eq!(judges(&of_variables), ["yes.yaml", "no.yaml"]);
    assert_eq!(
        (&of_variables["condition"], &of_variables["threshold"]),
        (&json!("from a variable"), &json!(0.8))
    );
    let of_flags = goal_of(&["--goal", "from a flag", "--judge", "script:yes.yaml"], &variables);
    assert_eq!(
        (judges(&of_flags), &of_flags["condition"]),
        (vec!["yes.yaml".to_owned()], &json!("from a flag"))
    );
    let two = goal_of(&["--judge", "script:yes.yaml", "--judge", "script:yes.yaml"], &[]);
    assert_eq!((judges(&two).len(), &two["agree"]), (2, &json!(2)));
    let wrong = scene.provost(&["run", "x", "--goal", " "]);
    expect![[r#"
        error: --goal: goal.condition: must not be empty; e.g. --goal "cargo test passes and the README describes the new flag"
    "#]].assert_eq(&wrong.stderr);
    let wrong = scene.provost(&["run", "x", "--judge", ""]);
    expect![[r#"
        error: --judge: goal.judges: each must not be empty; e.g. --judge openai/gpt-6.1-terra
    "#]]
    .assert_eq(&wrong.stderr);
    let misspelt = scene.command(&["run", "x"]).env("PROVOST_GOAL_CONDITON", "y").output().unwrap();
    expect![[r#"
        error: PROVOST_GOAL_CONDITON: there is no such setting; did you mean PROVOST_GOAL_CONDITION?
    "#]]
    .assert_eq(&String::from_utf8(misspelt.stderr).unwrap());
}

#[test]
fn judges_of_a_stronger_layer_take_the_place_of_weaker_ones() {
    let scene = scene("[goal]\njudge = \"script:yes.yaml\"\n");
    scene.write(
        USER_FILE,
        "[goal]\ncondition = \"c\"\njudges = [\"openai/gpt-6.1-terra\", \"openai/gpt-5\"]\n",
    );
    let checked = scene.provost(&["check", "--all"]);
    assert_eq!(checked.status, 0, "{checked:?}");
    let of_goal = checked.stdout.lines().filter(|line| line.starts_with("goal."));
    let of_goal = of_goal.map(|line| format!("{line}\n")).collect::<String>();
    expect![[r#"
        goal.condition                c  (/FOLDER/home/.config/provost/config.toml:2:1)
        goal.judge                    script:yes.yaml  (provost.toml:4:1)
        goal.judges                   not set: the one of goal.judge
        goal.agree                    not set: more than half of the judges
        goal.threshold                0.7  (default)
        goal.max_rounds               10  (default)
        goal.max_failures             3  (default)
        goal.stuck_turns              5  (default)
        goal.verify_every             not set: only when the agent says it is done, and at limits
        goal.timeout                  TIME  (default)
        goal.evidence_tokens          8000  (default)
        goal.verdict_tokens           not set: 2048, more where the judge reasons, or what it allows if that is less
        goal.judge_effort             not set: low for models that are known to reason, else as the provider has it
        goal.budget_percent           20  (default)
    "#]]
    .assert_eq(&scene.stable(&of_goal));
}

#[test]
fn sub_agents_have_goals_of_their_own() {
    let agents = "\n[[agents]]\nname = \"a\"\ndescription = \"y\"\ngoal.condition = \"a is done\"\n\n\
                  [[agents]]\nname = \"b\"\ndescription = \"y\"\n[agents.goal]\ncondition = \"b is done\"\njudge = \"script:no.yaml\"\n\n\
                  [[agents]]\nname = \"c\"\ndescription = \"y\"\n\n\
                  [[agents]]\nname = \"d\"\ndescription = \"y\"\nmodel = \"script:yes.yaml\"\ngoal.condition = \"d is done\"\n";
    let goals = |settings: &str| {
        let policy = policy_of(&format!("{settings}{agents}"), &[]);
        assert_eq!(policy["agent"].get("goal"), None);
        let goal = |agent: &Value| {
            let goal = agent["agent"].get("goal")?.clone();
            Some((
                goal["condition"].as_str().unwrap().to_owned(),
                judges(&goal).join(","),
                goal["rounds_max"].clone(),
            ))
        };
        policy["agents"].as_array().unwrap().iter().map(goal).collect::<Vec<_>>()
    };
    let of = |condition: &str, judges: &str, rounds: u32| {
        Some((condition.to_owned(), judges.to_owned(), json!(rounds)))
    };
    assert_eq!(
        goals("[goal]\nmax_rounds = 2\n"),
        [
            of("a is done", "agent.yaml", 2),
            of("b is done", "no.yaml", 2),
            None,
            of("d is done", "yes.yaml", 2)
        ],
        "without judges of all, each is judged by its own model"
    );
    assert_eq!(
        goals("[goal]\njudges = [\"script:yes.yaml\", \"script:no.yaml\"]\nagree = 2\n"),
        [
            of("a is done", "yes.yaml,no.yaml", 10),
            of("b is done", "no.yaml", 10),
            None,
            of("d is done", "yes.yaml,no.yaml", 10)
        ]
    );
}

#[test]
fn agents_may_give_each_other_goals_where_a_judge_is_named() {
    let spawns_judged = |settings: &str, args: &[&str]| {
        let policy = policy_of(settings, args);
        let tools = policy["agent"]["tools"].as_array().unwrap().clone();
        let spawn = tools.iter().find(|tool| tool["name"] == "spawn_agent");
        let offered = spawn.map(|tool| tool["input_schema"]["properties"].get("done_when").is_some());
        (offered, policy.get("judging").map(|judging| judges(judging).join(",")))
    };
    let judge = "[goal]\njudge = \"script:yes.yaml\"\n";
    assert_eq!(spawns_judged(judge, &[]), (Some(true), Some("yes.yaml".to_owned())));
    assert_eq!(spawns_judged("[goal]\nthreshold = 0.9\n", &[]), (Some(false), None));
    assert_eq!(spawns_judged("[goal]\ncondition = \"c\"\n", &[]), (Some(false), None));
    assert_eq!(spawns_judged(judge, &["--max-agents", "1"]), (None, None));
}

#[test]
fn a_judge_that_cant_be_asked_is_told_at_its_setting() {
    let unreachable = |settings: &str| {
        let scene = scene(settings);
        let ran = scene.provost(&["run", "x"]);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{ran:?}");
        assert!(
            scene.provost(&["ps"]).stdout.contains("no runs")
                || scene.provost(&["ps", "--json"]).stdout.is_empty()
        );
        scene.stable(&ran.stderr)
    };
    expect![[r#"
        error: provost.toml:5:1: goal.judge: the model `openai/gpt-6.1-terra` needs a key: set OPENAI_API_KEY
    "#]]
    .assert_eq(&unreachable("[goal]\ncondition = \"c\"\njudge = \"openai/gpt-6.1-terra\"\n"));
    expect![[r#"
        error: provost.toml:4:1: goal.judges: there is no provider for the model `unknown/x`: write script:FILE, or PROVIDER/MODEL with one of anthropic, openai, gemini, openai-chat, openrouter, deepseek, mistral, groq, xai, moonshot, zai, fireworks, cerebras, together, nvidia, ollama, vllm, llamacpp, lmstudio, litellm
        error: provost.toml:4:1: goal.judges: can't read the script /FOLDER/work/gone.yaml; check its path: No such file or directory (os error 2)
    "#]].assert_eq(&unreachable(
        "[goal]\njudges = [\"script:yes.yaml\", \"unknown/x\", \"script:gone.yaml\"]\n",
    ));
    expect![[r#"
        error: provost.toml:8:1: agents.goal.judge: the model `openai/gpt-6.1-terra` needs a key: set OPENAI_API_KEY
    "#]].assert_eq(&unreachable(
        "[[agents]]\nname = \"a\"\ndescription = \"y\"\n[agents.goal]\ncondition = \"c\"\njudge = \"openai/gpt-6.1-terra\"\n",
    ));
    let scene = scene("[goal]\ncondition = \"c\"\njudge = \"openai/gpt-6.1-terra\"\n");
    let checked = scene.provost(&["check"]);
    assert_eq!(checked.status, 2, "{checked:?}");
    let errors = checked.stdout.lines().filter(|line| line.starts_with("error: ")).collect::<Vec<_>>();
    expect![[r#"
        error: provost.toml:5:1: goal.judge: the model `openai/gpt-6.1-terra` needs a key: set OPENAI_API_KEY
    "#]]
    .assert_eq(&format!("{}\n", errors.join("\n")));
}

#[test]
fn money_is_limited_only_where_the_price_of_a_judge_is_known() {
    let unpriced = |settings: &str| {
        let scene = scene(settings);
        scene.write(USER_FILE, "[providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"\n");
        scene.provost(&["check"])
    };
    let goal = "[goal]\ncondition = \"c\"\njudge = \"mine/judge\"\n";
    let refused = unpriced(&format!("{goal}[budget]\nusd = 1\n"));
    assert_eq!(refused.status, 2);
    let errors = refused.stdout.lines().filter(|line| line.starts_with("error: ")).collect::<Vec<_>>();
    expect![[r#"
        error: provost.toml:7:1: budget.usd: limits money, but the price of mine/judge, a judge, isn't known; limit tokens instead, e.g. tokens = 2_000_000; or state the price in [models."mine/judge"] of your own settings file; or set allow_unpriced
    "#]].assert_eq(&format!("{}\n", errors.join("\n")));
    assert_eq!(unpriced(&format!("{goal}[budget]\nusd = 1\nallow_unpriced = true\n")).status, 0);
    assert_eq!(unpriced(goal).status, 0);
    let of_agent = "[[agents]]\nname = \"a\"\ndescription = \"y\"\nbudget.usd = 1\n[agents.goal]\ncondition = \"c\"\njudge = \"mine/judge\"\n";
    let refused = unpriced(of_agent);
    let errors = refused.stdout.lines().filter(|line| line.starts_with("error: ")).collect::<Vec<_>>();
    expect![[r#"
        error: provost.toml:6:8: agents.budget.usd: limits money, but the price of mine/judge, a judge, isn't known; limit tokens instead, e.g. tokens = 2_000_000; or state the price in [models."mine/judge"] of your own settings file; or set allow_unpriced
    "#]].assert_eq(&format!("{}\n", errors.join("\n")));
}

#[test]
fn the_evidence_must_fit_the_judges_window() {
    let wrong = |window: u32, goal: &str| {
        let scene = Scene::scripted(DONE)
            .with_settings(&format!("[goal]\ncondition = \"c\"\njudge = \"script:judge.yaml\"\n{goal}"));
        scene.write("work/judge.yaml", &format!("window_tokens: {window}\n{YES}"));
        let (checked, ran) = (scene.provost(&["check"]), scene.provost(&["run", "x"]));
        let error = checked.stdout.lines().find(|line| line.starts_with("error: ")).map(str::to_owned);
        assert_eq!(error.is_some(), ran.status == 2, "{checked:?} {ran:?}");
        if let Some(error) = &error {
            assert!(ran.stderr.contains(error.as_str()), "{ran:?}");
        }
        error.map(|error| scene.stable(&error))
    };
    assert_eq!(wrong(12_000, ""), None);
    expect!["error: default: goal.evidence_tokens: script:/FOLDER/work/judge.yaml has a window of 10,000 tokens, 7,952 of them beside a verdict; 8,000 of evidence and about 1,501 around it don't fit; e.g. evidence_tokens = 6400"].assert_eq(&wrong(10_000, "").unwrap());
    expect!["error: provost.toml:6:1: goal.evidence_tokens: script:/FOLDER/work/judge.yaml has a window of 10,000 tokens, 7,952 of them beside a verdict; 7,000 of evidence and about 1,501 around it don't fit; e.g. evidence_tokens = 6400"].assert_eq(&wrong(10_000, "evidence_tokens = 7_000\n").unwrap());
    assert_eq!(wrong(10_000, "evidence_tokens = 6_400\n"), None, "what it proposes fits");
    expect!["error: provost.toml:5:1: goal.judge: script:/FOLDER/work/judge.yaml has a window of 2,000 tokens, 1,500 of them beside a verdict; 8,000 of evidence and about 1,501 around it don't fit; it takes a window of at least 2,501 tokens"].assert_eq(&wrong(2_000, "").unwrap());
}

/// Otherwise every run would end at its limit with a claim that no judge could confirm.
#[test]
fn limits_must_pay_for_a_verdict() {
    let too_little = |settings: &str| {
        let scene = scene(settings);
        let (checked, ran) = (scene.provost(&["check"]), scene.provost(&["run", "x"]));
        let errors = checked.stdout.lines().filter(|line| line.starts_with("error: "));
        let errors = errors.map(|line| format!("{line}\n")).collect::<String>();
        assert_eq!(errors.is_empty(), ran.status != 2, "{checked:?} {ran:?}");
        assert!(errors.lines().all(|line| ran.stderr.contains(line)), "{ran:?}");
        errors
    };
    let goal = "[goal]\ncondition = \"c\"\njudge = \"script:yes.yaml\"\n";
    expect![[r#"
        error: provost.toml:7:1: budget.tokens: leaves judges 8,000 tokens (goal.budget_percent is 20), and confirming a goal takes about 9,757; e.g. tokens = 49000; or lower goal.evidence_tokens
    "#]].assert_eq(&too_little(&format!("{goal}[budget]\ntokens = 40_000\n")));
    assert_eq!(too_little(&format!("{goal}[budget]\ntokens = 49_000\n")), "", "what it proposes is enough");
    assert_eq!(too_little(&format!("{goal}budget_percent = 50\n[budget]\ntokens = 40_000\n")), "");
    assert_eq!(too_little("[goal]\nthreshold = 0.5\n[budget]\ntokens = 1_000\n"), "", "there is no goal");
    expect![[r#"
        error: provost.toml:9:8: agents.budget.tokens: leaves judges 5,000 tokens, and confirming a goal takes about 9,759; e.g. tokens = 10000; or lower goal.evidence_tokens
    "#]].assert_eq(&too_little(&format!(
        "{goal}[[agents]]\nname = \"a\"\ndescription = \"y\"\nbudget.tokens = 5_000\ngoal.condition = \"a is done\"\n"
    )));
    let priced = "[models.\"mine/judge\"]\ninput_usd = 10\noutput_usd = 50\n[providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    let scene = scene(
        "[goal]\ncondition = \"c\"\njudges = [\"mine/judge\", \"mine/judge\", \"mine/judge\"]\n[budget]\nusd = 0.5\n",
    );
    scene.write(USER_FILE, priced);
    let checked = scene.provost(&["check"]);
    let errors = checked.stdout.lines().filter(|line| line.starts_with("error: ")).collect::<Vec<_>>();
    expect![[r#"
        error: provost.toml:7:1: budget.usd: leaves judges $0.10 (goal.budget_percent is 20), and confirming a goal takes about $0.21; e.g. usd = 1.08; or lower goal.evidence_tokens
    "#]].assert_eq(&format!("{}\n", errors.join("\n")));
}

#[test]
fn check_says_who_judges_and_doubts_an_agent_that_judges_itself() {
    let checked = |goal: &str| {
        let scene = scene(goal);
        let checked = scene.provost(&["check"]);
        assert_eq!(checked.status, 0, "{checked:?}");
        let mine =
            checked.stdout.lines().filter(|line| line.starts_with("note: ") || line.starts_with("agent "));
        scene.stable(&mine.map(|line| format!("{line}\n")).collect::<String>())
    };
    expect![[r#"
        agent a  normal · done when a is done  y  (provost.toml:5:1)
        note: the agent is judged by its own model, script:/FOLDER/work/agent.yaml; one of another provider doesn't confirm its own mistakes, e.g. goal.judge = "openai/gpt-6.1-terra"
        note: `a` is judged by its own model, script:/FOLDER/work/agent.yaml; one of another provider doesn't confirm its own mistakes, e.g. goal.judge = "openai/gpt-6.1-terra"
    "#]].assert_eq(&checked(
        "[goal]\ncondition = \"c\"\n[[agents]]\nname = \"a\"\ndescription = \"y\"\ngoal.condition = \"a is done\"\n",
    ));
    expect![[r#"
        agent a  normal · done when a is done · judged by script:no.yaml  y  (provost.toml:6:1)
    "#]].assert_eq(&checked(
        "[goal]\ncondition = \"c\"\njudge = \"script:yes.yaml\"\n[[agents]]\nname = \"a\"\ndescription = \"y\"\n[agents.goal]\ncondition = \"a is done\"\njudge = \"script:no.yaml\"\n",
    ));
    let scene = scene("[goal]\ncondition = \"c\"\n");
    scene.write("work/agent.yaml", &format!("{DONE}{YES}"));
    let ran = scene.provost(&["run", "x", "-q"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    expect![[r#"
        note: the agent is judged by its own model, script:/FOLDER/work/agent.yaml; one of another provider doesn't confirm its own mistakes, e.g. goal.judge = "openai/gpt-6.1-terra"
    "#]].assert_eq(&scene.stable(&ran.stderr));
}

#[test]
fn a_run_is_done_once_its_judge_agrees_and_blocked_when_it_never_does() {
    let ran = scene("").provost(&["run", "x", "--goal", "it is there", "--judge", "script:yes.yaml", "-q"]);
    assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.as_str()), (0, "done\n", ""), "{ran:?}");
    let scene = scene("[goal]\nmax_rounds = 1\n");
    let ran = scene.provost(&["run", "--goal", "it is there", "--judge", "script:no.yaml", "--json"]);
    assert_eq!(ran.status, 4, "{ran:?}");
    let entries = ran.stdout.lines().map(parsed).collect::<Vec<_>>();
    let started = entries.iter().find(|entry| entry["type"] == "session_started").unwrap();
    assert_eq!(
        started["goal"], "it is there",
        "without words of its own the condition is what is to be reached"
    );
    let prompt = started["policy"]["system_prompt"].as_str().unwrap();
    assert!(prompt.ends_with("\n\nit is there"), "the agent knows what it is judged by: {prompt}");
}

#[test]
fn a_flow_says_that_it_has_no_goal_of_its_own() {
    let scene = scene("[goal]\ncondition = \"c\"\njudge = \"script:no.yaml\"\n");
    scene.write("work/flow.toml", "[flow]\nname = \"f\"\n[[flow.steps]]\nname = \"s\"\ngoal = \"do it\"\n");
    let ran = scene.provost(&["flow", "run", "flow.toml", "--json"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_eq!(first_policy(&ran)["agent"].get("goal"), None);
    expect![[r#"
        note: provost.toml:4:1: goal.condition: a workflow has no goal of its own, so that this one isn't verified; those of [[agents]] are
    "#]].assert_eq(&scene.stable(&ran.stderr));
    let checked = scene.provost(&["flow", "check", "flow.toml"]);
    assert_eq!((checked.status, checked.stderr), (0, ran.stderr));
}

/// A run's judges are called with the current keys; a run without a goal needs none.
#[test]
fn a_resumed_run_needs_its_judges_until_its_goal_is_cleared() {
    let scene = Scene::scripted("answers: [{ text: one }, { text: two }]\n");
    scene.write("work/judge.yaml", NO);
    let args = ["run", "x", "--goal", "c", "--judge", "script:judge.yaml", "--max-turns", "1", "-q"];
    assert_eq!(scene.provost(&args).status, 3);
    std::fs::remove_file(scene.path("work/judge.yaml")).unwrap();
    let resume = ["resume", "last", "--max-turns", "5", "-q"];
    let refused = scene.provost(&resume);
    assert_eq!(refused.status, 2, "{refused:?}");
    expect![[r#"
        error: can't read the script /FOLDER/work/judge.yaml; check its path: No such file or directory (os error 2)
        hint: it judges the run's goal; `provost goal clear` has the run go on without
    "#]].assert_eq(&scene.stable(&refused.stderr));
    let cleared = scene.provost(&["goal", "clear", "last"]);
    assert_eq!(cleared.status, 0, "{cleared:?}");
    let resumed = scene.provost(&resume);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "two\n"), "{resumed:?}");
}
