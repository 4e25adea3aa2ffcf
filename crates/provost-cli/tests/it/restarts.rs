//! Agents that fail and are restarted, from outside.

use std::fs;

use serde_json::Value;

use crate::support::{Scene, json, until};

/// A root that starts a researcher whose model gives three empty answers, and then a text.
fn failing(settings: &str) -> Scene {
    let root = "answers:\n  - text: Find out.\n    tools:\n      - researcher: { goal: What is in it? }\n  - text: All is done.\n";
    let agents = "[[agents]]\nname = \"researcher\"\ndescription = \"Finds out.\"\nmodel = \"script:researcher.yaml\"\n";
    let scene = Scene::scripted(root).with_settings(&format!("{settings}{agents}"));
    let silent = "  - fault: empty\n".repeat(3);
    scene.write("work/researcher.yaml", &format!("answers:\n{silent}  - text: There are three files.\n"));
    scene
}

fn records(scene: &Scene) -> Vec<Value> {
    let logs = scene.provost(&["logs", "last", "--json"]);
    assert_eq!(logs.status, 0, "{logs:?}");
    logs.stdout.lines().map(json).collect()
}

fn of_kind<'a>(records: &'a [Value], kind: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["type"] == kind).collect()
}

#[test]
fn an_agent_that_fails_is_restarted_and_everything_that_shows_runs_says_so() {
    let scene = failing("[retry]\nbackoff_base = \"1s\"\n");
    let ran = scene.provost(&["run", "Find out"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "All is done.\n"), "{ran:?}");
    assert!(ran.stderr.contains("has failed: the model gives no usable answer"), "{ran:?}");
    assert!(ran.stderr.contains("; retry 1 of 3 in "), "{ran:?}");
    assert!(ran.stderr.contains("(attempt 2) is done"), "{ran:?}");
    let records = records(&scene);
    assert_eq!(of_kind(&records, "agent_retry_scheduled").len(), 1);
    let results = of_kind(&records, "tool_finished");
    let [result] = results[..] else { panic!("one result: {results:?}") };
    let output = result["output"].as_str().unwrap();
    assert!(output.starts_with("There are three files.\n"), "{output}");
    assert!(output.contains("attempts: 2, turns: 1,"), "{output}");
    let resumed = of_kind(&records, "resumed");
    assert_eq!(resumed.len(), 1);
    assert_eq!(
        (&resumed[0]["cause"]["retry"]["attempt"], &resumed[0]["actor"]),
        (&1.into(), &result_agent(&records))
    );
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains("done, attempt 2"), "{shown}");
    let shown = json(&scene.provost(&["show", "last", "--json"]).stdout);
    assert_eq!(shown["agents"][1]["restarts"], 1);
    let explained = scene.provost(&["explain", "last"]).stdout;
    assert!(explained.contains("restarts"), "{explained}");
}

fn result_agent(records: &[Value]) -> Value {
    of_kind(records, "agent_spawned")[0]["child"].clone()
}

#[test]
fn an_agent_without_retries_has_failed_at_once_and_its_parent_goes_on() {
    let scene = failing("[retry]\nattempts = 0\n");
    let ran = scene.provost(&["run", "Find out"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "All is done.\n"), "{ran:?}");
    assert_eq!(of_kind(&records(&scene), "agent_retry_scheduled").len(), 0);
    assert!(records(&scene).iter().any(|record| record.to_string().contains("empty answer 3 times")));
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains(" · 1 suspended, 1 done\n"), "{shown}");
}

#[test]
fn max_retries_of_an_agent_counts_before_the_general_number() {
    let scene = failing("[retry]\nattempts = 0\nbackoff_base = \"1s\"\n");
    let settings = fs::read_to_string(scene.path("work/provost.toml")).unwrap();
    scene.write("work/provost.toml", &format!("{settings}max_retries = 1\n"));
    let ran = scene.provost(&["run", "Find out"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "All is done.\n"), "{ran:?}");
    assert_eq!(of_kind(&records(&scene), "agent_retry_scheduled")[0]["attempts_max"], 1);
}

#[test]
fn a_kill_while_an_agent_waits_for_its_restart_loses_and_doubles_nothing() {
    // Long enough that the kill usually comes first; if it doesn't, the same must hold.
    let scene = failing("[retry]\nbackoff_base = \"3s\"\n");
    let running = scene.start(&["run", "Find out"]);
    until("the restart is scheduled", || {
        let logs = scene.provost(&["logs", "last", "--json"]);
        logs.stdout.contains("agent_retry_scheduled").then_some(())
    });
    running.kill();
    scene.write("work/researcher.yaml", "answers: [{ text: There are three files. }]\n");
    let resumed = scene.provost(&["resume", "last"]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "All is done.\n"), "{resumed:?}");
    let records = records(&scene);
    assert_eq!(of_kind(&records, "agent_retry_scheduled").len(), 1);
    assert_eq!(of_kind(&records, "agent_finished").len(), 1);
    assert_eq!(of_kind(&records, "tool_finished").len(), 1);
}

/// A root that starts an external agent whose program crashes once.
fn crashing(settings: &str) -> Scene {
    let root = "answers:\n  - tools:\n      - greeter: { goal: Say hello. }\n  - text: All is done.\n";
    let program = "printf 'task: '; read task; test -e began || { touch began; exit 3; }; until case $task in *differently*) ;; *) false;; esac; do read task; done; echo did it";
    let settings = format!(
        "{settings}[[agents]]\nkind = \"external\"\nname = \"greeter\"\n\
         description = \"Greets.\"\nprogram = \"sh\"\nargs = [\"-c\", \"{program}\"]\n"
    );
    Scene::scripted(root).with_settings(&settings).trusted()
}

#[test]
fn what_is_said_to_an_agent_that_waits_for_its_restart_is_refused_and_it_can_be_restarted_now() {
    let scene = crashing("[retry]\nbackoff_base = \"1h\"\nbackoff_max = \"1h\"\n");
    let running = scene.start(&["run", "Have it greet"]);
    until("the restart is scheduled", || {
        let logs = scene.provost(&["logs", "last", "--json"]);
        logs.stdout.contains("agent_retry_scheduled").then_some(())
    });
    let run = scene.last_run();
    let said = scene.provost(&["say", "last.1", "be polite"]);
    assert_eq!(said.status, 2, "{said:?}");
    assert!(
        said.stderr.contains("has failed and waits for its restart, and takes no message before"),
        "{said:?}"
    );
    assert!(said.stderr.contains(&format!("`provost resume {run}.1` restarts it now")), "{said:?}");
    let resumed = scene.provost(&["resume", "last.1"]);
    assert_eq!(resumed.status, 0, "{resumed:?}");
    let ran = running.end();
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "All is done.\n"), "{ran:?}");
}

#[test]
fn an_external_agent_whose_program_crashes_goes_on_in_its_session() {
    let scene = crashing("");
    let ran = scene.provost(&["run", "Have it greet"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "All is done.\n"), "{ran:?}");
    let records = records(&scene);
    assert_eq!(of_kind(&records, "agent_retry_scheduled").len(), 1, "{ran:?}");
    let results = of_kind(&records, "tool_finished");
    assert_eq!(results.len(), 1);
    let output = results[0]["output"].as_str().unwrap();
    assert!(output.contains("attempts: 2"), "{output}");
}
