//! Named sub-agents with models of their own: their tasks, results, costs and limits.

use std::fs;

use serde_json::Value;

use crate::support::{Scene, json};

const TWO: &str = "[[agents]]\nname = \"researcher\"\ndescription = \"Finds out.\"\nmodel = \"script:researcher.yaml\"\n\
                   [[agents]]\nname = \"writer\"\ndescription = \"Writes.\"\nmodel = \"script:writer.yaml\"\n";

/// A root that starts both at once, and both with a script of their own.
fn two_agents(researcher: &str, writer: &str) -> Scene {
    let root = "answers:\n  - text: Both of you.\n    tools:\n      - researcher: { goal: What is in it? }\n      \
                - writer: { goal: Write it. }\n  - text: All is done.\n";
    let scene = Scene::scripted(root).with_settings(TWO);
    scene.write("work/researcher.yaml", researcher);
    scene.write("work/writer.yaml", writer);
    scene
}

/// The records of the last run, of all its logs.
fn records(scene: &Scene) -> Vec<Value> {
    let logs = scene.provost(&["logs", "last", "--json"]);
    assert_eq!(logs.status, 0, "{logs:?}");
    logs.stdout.lines().map(json).collect()
}

fn of_kind(records: &[Value], kind: &str) -> Vec<Value> {
    records.iter().filter(|record| record["type"] == kind).cloned().collect()
}

#[test]
fn two_agents_of_their_own_models_give_back_what_they_said() {
    let scene = two_agents(
        "model: a\nanswers:\n  - tools: [list_dir]\n  - text: There are three files.\n    usage: { input: 1000, output: 10 }\n",
        "model: b\nanswers:\n  - tools:\n      - write_file: { path: out.txt, content: hello }\n  - text: Written.\n",
    );
    let ran = scene.provost(&["run", "Do both"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "All is done.\n"), "{ran:?}");
    assert_eq!(fs::read_to_string(scene.path("work/out.txt")).unwrap(), "hello");
    let records = records(&scene);
    let spawned = of_kind(&records, "agent_spawned");
    assert_eq!(spawned.len(), 2, "{spawned:?}");
    let results = of_kind(&records, "tool_finished");
    let of_call = |text: &str| results.iter().any(|result| result.to_string().contains(text));
    assert!(of_call("There are three files.") && of_call("Written."), "{results:?}");
    let cost = scene.provost(&["cost", "last"]).stdout;
    let model =
        |file: &str| format!("script:{}", scene.path("work").canonicalize().unwrap().join(file).display());
    for (agent, file) in
        [("0", "agent.yaml"), ("1 researcher", "researcher.yaml"), ("2 writer", "writer.yaml")]
    {
        let row =
            cost.lines().find(|row| row.starts_with(agent)).unwrap_or_else(|| panic!("{agent}: {cost}"));
        let words = row.split_whitespace().collect::<Vec<_>>();
        assert!(words.windows(2).any(|pair| pair == [model(file).as_str(), "2"]), "two calls each: {cost}");
    }
}

#[test]
fn an_interrupted_run_has_all_its_models_again() {
    let scene = two_agents(
        "answers:\n  - tools:\n      - shell: { command: 'echo $PPID > started; sleep 600' }\n  - text: Found.\n",
        "answers: [{ text: Written. }]\n",
    );
    let running = scene.start(&["run", "Do both"]);
    crate::support::line_in(&scene.path("work/started"));
    running.kill();
    scene.write("work/researcher.yaml", "answers:\n  - tools: [list_dir]\n  - text: Found after all.\n");
    let resumed = scene.provost(&["resume", "last"]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "All is done.\n"), "{resumed:?}");
    assert!(records(&scene).iter().any(|record| record.to_string().contains("Found after all.")));
}

#[test]
fn what_an_agent_allows_itself_loosens_nothing() {
    let scene = two_agents(
        "answers:\n  - tools:\n      - shell: { command: touch it }\n  - text: I tried.\n",
        "answers:\n  - tools:\n      - write_file: { path: out.txt, content: x }\n  - text: I tried too.\n",
    );
    let settings = "[permissions]\ndeny = [\"shell(touch *)\"]\n";
    scene.write("home/.config/provost/config.toml", settings);
    let researcher = "[[agents]]\nname = \"researcher\"\n";
    let with = TWO
        .replace(
            researcher,
            &format!("{researcher}permissions.allow = [\"shell\"]\npermissions.default = \"allow\"\n"),
        )
        .replace(
            "[[agents]]\nname = \"writer\"\n",
            "[[agents]]\nname = \"writer\"\npermissions.deny = [\"write_file\"]\n",
        );
    scene.write("work/provost.toml", &format!("[agent]\nmodel = \"script:agent.yaml\"\n{with}"));
    // Nothing of it needs trust.
    let checked = scene.provost(&["check"]);
    assert!(checked.stdout.contains("trust: not needed"), "{checked:?}");
    let ran = scene.provost(&["run", "Do both"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(!scene.path("work/it").exists() && !scene.path("work/out.txt").exists());
}

#[test]
fn a_budget_of_its_own_ends_an_agent_and_the_run_goes_on() {
    let turn = |n| {
        format!(
            "  - tools: [{{ shell: {{ command: echo {n} }} }}]\n    usage: {{ input: 3000, output: 10 }}\n"
        )
    };
    let turns = (1..=9).map(turn).collect::<String>();
    let scene = two_agents(
        &format!(
            "output_tokens_max: 300\nanswers:\n{turns}  - text: Never said.\nfinal_summary: {{ text: As far as I got. }}\n"
        ),
        "answers: [{ text: Written. }]\n",
    );
    let with = TWO.replace("name = \"researcher\"\n", "name = \"researcher\"\nbudget.tokens = 20_000\n");
    scene.write("work/provost.toml", &format!("[agent]\nmodel = \"script:agent.yaml\"\n{with}"));
    let ran = scene.provost(&["run", "Do both"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "All is done.\n"), "{ran:?}");
    let records = records(&scene);
    let results = of_kind(&records, "tool_finished");
    assert!(results.iter().any(|result| result.to_string().contains("As far as I got.")), "{results:?}");
    assert!(!records.iter().any(|record| record.to_string().contains("Never said.")));
}

#[test]
fn an_agent_that_is_asked_again_goes_on_with_what_it_knows() {
    let root = "answers:\n  - tools:\n      - researcher: { goal: What is in it? }\n  - tools:\n      \
                - researcher: { goal: And in which folder?, agent: \"1\" }\n  - text: All is done.\n";
    let scene = Scene::scripted(root).with_settings(TWO);
    scene.write("work/researcher.yaml", "answers:\n  - text: Three files.\n  - text: In src.\n");
    scene.write("work/writer.yaml", "answers:\n  - text: Written.\n");
    let ran = scene.provost(&["run", "Do it"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "All is done.\n"), "{ran:?}");
    assert!(ran.stderr.contains("agent 1 (researcher) goes on, asked again"), "{ran:?}");
    let records = records(&scene);
    assert_eq!(of_kind(&records, "agent_spawned").len(), 1);
    assert_eq!(of_kind(&records, "agent_finished").len(), 2, "it has delivered twice");
    let results = of_kind(&records, "tool_finished");
    let said = results.iter().filter_map(|result| result["output"].as_str()).collect::<Vec<_>>();
    assert!(said.iter().any(|output| output.starts_with("In src.")), "{said:?}");
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.lines().any(|line| line.contains("1 researcher") && line.contains("done")), "{shown}");
    let said = scene.provost(&["logs", "last.1"]).stdout;
    let question = said.find("And in which folder?").expect("it is told what it is asked");
    assert!(said.find("Three files.").is_some_and(|before| before < question), "{said}");
}
