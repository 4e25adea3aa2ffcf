//! The other commands' output.

use expect_test::expect;

use crate::support::{Scene, json};

const SCRIPT: &str = r#"
answers:
  - text: I'll look.
    tools:
      - update_plan: { items: [{ text: look, status: done }, { text: repair, status: in_progress }] }
      - read_file: { path: missing.rs }
    usage: { input: 1000, output: 50 }
  - text: "I have looked.\n\nVERDICT: PASS"
    usage: { input: 100, cache_read: 1000, output: 20 }
"#;

fn ran() -> Scene {
    let settings = "[budget]\ntokens = 50_000\n[[stop_hooks]]\nname = \"tests\"\ncommand = \"true\"\n";
    let scene = Scene::scripted(SCRIPT).with_settings(settings).trusted();
    assert_eq!(scene.provost(&["run", "Repair the parser\nand its tests"]).status, 0);
    scene
}

#[test]
fn ps_lists_the_newest_first() {
    let scene = Scene::new();
    assert_eq!(scene.provost(&["ps"]).stdout, "no runs yet; start one with `provost run \"GOAL\"`\n");
    let scene = ran();
    scene.provost(&["run", "Another", "--max-turns", "1"]);
    expect![[r#"
        RUN           STATUS               TURNS  TOKENS   COST  AGE  GOAL
        RUN  budget exhausted         1    1.0k  $0.00   TIME  Another
        RUN  completed, verified      2    2.1k  $0.00   TIME  Repair the parser …
    "#]]
    .assert_eq(&scene.stable(&scene.provost(&["ps"]).stdout));
    let one = scene.provost(&["ps", "-n", "1", "--json"]).stdout;
    assert_eq!(one.lines().count(), 1);
    let run = json(&one);
    assert_eq!(run["status"], "budget exhausted");
    assert_eq!(run["outcome"], json(r#"{"kind":"budget_exhausted","dimension":"turns","used":1,"limit":1}"#));
    assert_eq!((&run["tokens"], &run["turns"], &run["cost_micro_usd"]), (&1050.into(), &1.into(), &0.into()));
}

#[test]
fn show_tells_all_of_one_run() {
    let scene = ran();
    let shown = scene.provost(&["show", "last"]).stdout;
    let without_times = shown
        .lines()
        .filter(|line| !["started", "updated", "time"].iter().any(|name| line.starts_with(name)));
    let lines = without_times.map(|line| format!("{line}\n")).collect::<String>();
    expect![[r#"
        run         RUN
        status      completed
        outcome     completed (verdict PASS), verified
        go on with  provost resume RUN "and now …"
        goal        Repair the parser
                    and its tests
        model       script:/FOLDER/work/agent.yaml
        workspace   /FOLDER/work
        turns       2
        tokens      2,170 of 50,000
        cost        $0.00
        calls       2 tool calls, 1 failed
        progress    converging: 1 of 20 turns in a row without measurable progress; then suspended
                    1 of 2 turns ticked steps of the plan
                    1 of 2 turns brought only a new result
                    1 of 2 turns repeated what was there, or did nothing

        stop hooks, as they last answered
          tests: may stop (TIME)

        plan
          [x] look
          [>] repair

        final answer
          I have looked.

          VERDICT: PASS
    "#]]
    .assert_eq(&scene.stable(&lines));
    let run = json(&scene.provost(&["show", "last", "--json"]).stdout);
    assert_eq!(
        (&run["verdict"], &run["turns_max"], &run["failed_tool_calls"]),
        (&"pass".into(), &serde_json::Value::Null, &1.into())
    );
    assert_eq!(run["last_text"], "I have looked.\n\nVERDICT: PASS");
}

/// Every example in the file is a valid value.
#[test]
fn init_files_are_right_with_everything_switched_on() {
    let scene = Scene::new();
    // A folder in which a worktree can be made.
    std::fs::create_dir(scene.path("work/.git")).unwrap();
    for (args, file) in [
        (&["init", "--all"][..], "work/provost.toml"),
        (&["init", "--all", "--user"], "home/.config/provost/config.toml"),
    ] {
        assert_eq!(scene.provost(args).status, 0);
        let text = std::fs::read_to_string(scene.path(file)).unwrap();
        let on = |line: &str| match line.strip_prefix("# ") {
            Some(rest)
                if (rest.starts_with('[') && rest.ends_with(']'))
                    || rest.split_once(" = ").is_some_and(|(key, _)| !key.contains(' ')) =>
            {
                format!("{rest}\n")
            }
            _ => format!("{line}\n"),
        };
        let text = text.lines().map(on).collect::<String>().replace("lint-check", file);
        let text = text.replace("researcher", if args.len() > 2 { "researcher" } else { "another" });
        let text = text.replace(
            "name = \"codex\"",
            if args.len() > 2 { "name = \"codex\"" } else { "name = \"other\"" },
        );
        assert!(text.matches(" = ").count() > 10, "{text}");
        scene.write(file, &text);
    }
    let mut check = scene.command(&["check", "--json"]);
    check.envs(["ANTHROPIC_API_KEY", "OPENAI_API_KEY"].map(|key| (key, "k")));
    let checked = json(&crate::support::done(&check.output().unwrap()).stdout);
    assert_eq!(checked["problems"], json("[]"), "{checked}");
    assert_eq!(checked["files"].as_array().unwrap().len(), 2);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one list, whole")]
fn check_says_what_counts_and_where_it_came_from() {
    let scene = ran();
    let checked = scene.provost(&["check"]);
    assert_eq!(checked.status, 0);
    expect![[r#"
        read /FOLDER/work/provost.toml

        agent.model    script:agent.yaml  (provost.toml:2:1)
        budget.tokens  50000  (provost.toml:4:1)
        store.dir      /FOLDER/state  (PROVOST_STATE_DIR)
        stop hook tests  true  (provost.toml:5:1)
        trust: you trust what stands in /FOLDER/work
        `provost check --all` also shows what isn't set, with the defaults.

        all right
    "#]]
    .assert_eq(&scene.stable(&checked.stdout));
    let checked = scene.provost(&["check", "--all"]);
    assert_eq!(checked.status, 0);
    expect![[r#"
        read /FOLDER/work/provost.toml

        agent.model                   script:agent.yaml  (provost.toml:2:1)
        agent.max_turns               not set: 300; no limit where [budget] limits tokens, money, time or turns
        agent.instructions            ""  (default)
        agent.environment             true  (default)
        agent.final_check             not set: true, and false for agents whose model is a script
        agent.project_rules           true  (default)
        agent.output_tokens_max       not set: what the model allows
        agent.fallback_models         not set: none
        agent.effort                  not set: high for models that are known to reason, else as the provider has it
        agent.stuck_turns             20  (default)
        agent.keep_awake              true  (default)
        agent.block_sleep             false  (default)
        budget.tokens                 50000  (provost.toml:4:1)
        budget.usd                    not set: no limit; 20.00 where [budget] limits nothing and a model's price is known
        budget.allow_unpriced         false  (default)
        budget.wall_time              not set: no limit
        budget.turns                  not set: no limit
        spawn.max_agents              8  (default)
        spawn.allow_preempt           true  (default)
        spawn.max_depth               1  (default)
        retry.attempts                3  (default)
        retry.backoff_base            TIME  (default)
        retry.backoff_max             1m  (default)
        goal.condition                not set: an agent is done when it says so and stop hooks agree
        goal.judge                    not set: the agent's own model, unless goal.judges names others
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
        limits.model_patience         15m  (default)
        limits.outage_max             8h  (default)
        limits.keep_running_max       24h  (default)
        limits.empty_answers          2  (default)
        limits.continuations          3  (default)
        limits.repeated_call_notice   3  (default)
        limits.repeated_call          10  (default)
        limits.failed_turns_notice    5  (default)
        limits.failed_turns           12  (default)
        limits.interruptions          3  (default)
        limits.stop_blocks            8  (default)
        permissions.allow             not set: none
        permissions.ask               not set: none
        permissions.deny              not set: none
        permissions.approved          not set: none
        permissions.default           not set: ask where anything is listed in allow, else allow
        permissions.approval_timeout  1h  (default)
        permissions.unanswered        deny  (default)
        tools.roots                   not set: none
        tools.env                     not set: none besides those that any command inherits
        tools.search_above            6000  (default)
        sandbox.mode                  off  (default)
        sandbox.require               true  (default)
        sandbox.write                 not set: none
        sandbox.deny_read             not set: none
        sandbox.network               none  (default)
        sandbox.allow_hosts           not set: none
        sandbox.env                   not set: none
        sandbox.hooks                 true  (default)
        sandbox.external              true  (default)
        sandbox.limits.memory         not set: no limit
        sandbox.limits.processes      not set: no limit
        sandbox.limits.cpu_time       not set: no limit
        sandbox.limits.file_size      8GiB  (default)
        exec.size                     40x120  (default)
        exec.idle_time                30m  (default)
        exec.record                   true  (default)
        exec.detach_key               ctrl-\  (default)
        exec.env                      not set: none besides those that any child gets
        exec.unmetered                false  (default)
        terminal.reports              on  (default)
        gateway.anthropic             anthropic  (default)
        gateway.openai                openai  (default)
        gateway.gemini                gemini  (default)
        gateway.models                not set: all models
        gateway.record                false  (default)
        gateway.replay                not set: providers are called
        notify.on                     not set: all of them
        notify.desktop                off  (default)
        notify.command                not set: none is run
        notify.webhook                not set: nothing is sent
        notify.webhook_headers_env    not set: no headers
        hooks.import                  not set: nothing is imported
        hooks.env                     not set: none
        hooks.model                   not set: the model of the run's agent
        store.dir                     /FOLDER/state  (PROVOST_STATE_DIR)
        trace.file                    not set: none is written
        trace.otlp_endpoint           not set: nothing is sent
        trace.otlp_headers_env        not set: no headers
        trace.otlp_content            false  (default)
        engine.url                    not set: runs are kept on this machine, in [store]
        engine.admin_url              not set: port 9070 of each host of `url`, of which the first that answers is asked
        engine.identity_key_env       not set: workers accept requests on loopback only
        engine.blobs                  not set: a folder in the state folder of this machine, which is right for one machine only
        engine.host                   not set: the host name
        engine.labels                 not set: none
        engine.namespace              provost  (default)
        engine.effect_deadline        6h  (default)
        engine.git_remote             not set: runs work in the folder where they are started, on machines that have it
        engine.worktrees              not set: a folder in the state folder
        engine.server                 not set: what `provost cluster install` has installed, else `restate-server` in PATH
        stop hook tests  true  (provost.toml:5:1)
        trust: you trust what stands in /FOLDER/work

        all right
    "#]]
    .assert_eq(&scene.stable(&checked.stdout));
    let schema = scene.provost(&["check", "--schema"]).stdout;
    assert_eq!(
        json(&schema)["properties"]["agent"]["properties"]["max_turns"]["default"],
        serde_json::Value::Null
    );
}

#[test]
fn the_list_says_that_an_agent_calls_its_work_failed_and_why_a_run_is_suspended() {
    let scene = Scene::scripted("answers: [{ text: 'VERDICT: FAIL' }]");
    assert_eq!(scene.provost(&["run", "x"]).status, 1);
    let listed = scene.provost(&["ps"]).stdout;
    assert!(listed.contains("  completed (verdict FAIL), not verified  "), "{listed}");
    let scene = Scene::scripted("answers: [{ fault: unauthorized }, { text: done }]");
    assert_eq!(scene.provost(&["run", "x"]).status, 4);
    let listed = scene.provost(&["ps"]).stdout;
    assert!(listed.contains("  suspended: the provider refuses the key  "), "{listed}");
}
