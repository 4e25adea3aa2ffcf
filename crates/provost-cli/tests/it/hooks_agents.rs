//! Existing scripts for Claude Code, as hooks of a run with a sub-agent.

use std::fs;

use serde_json::Value;

use crate::support::{Scene, json};

/// Records each question, adds context for the sub-agent, and sends it back once.
const CLAUDES: &str = r#"{"hooks":{
  "SessionStart":[{"hooks":[{"type":"command","command":"cat >> session-start.jsonl; echo >> session-start.jsonl"}]}],
  "SubagentStart":[{"matcher":"general-purpose","hooks":[{"type":"command","command":
    "cat > subagent-start.json; echo '{\"hookSpecificOutput\":{\"hookEventName\":\"SubagentStart\",\"additionalContext\":\"be thorough\"}}'"}]},
    {"matcher":"Explore","hooks":[{"type":"command","command":"touch wrong"}]}],
  "SubagentStop":[{"hooks":[{"type":"command","command":
    "cat > subagent-stop.json; grep -q '\"stop_hook_active\":true' subagent-stop.json || { echo 'not whole yet' >&2; exit 2; }"}]}],
  "Stop":[{"hooks":[{"type":"command","command":"cat >> stop.jsonl; echo >> stop.jsonl"}]}],
  "PreToolUse":[{"matcher":"Task","hooks":[{"type":"command","command":"cat > task.json"}]}],
  "PostToolUse":[{"matcher":"Agent","hooks":[{"type":"command","command":"cat > agent-done.json"}]}]
}}"#;

const ANSWERS: &str = "
answers:
  - tools: [{ spawn_agent: { goal: dig for it, name: digger } }]
  - text: done
agents:
  - goal: dig for it
    answers:
      - text: half
      - text: whole
        expect: { contains: not whole yet }
";

fn scene() -> Scene {
    let scene = Scene::scripted(ANSWERS).with_settings("[hooks]\nimport = [\"claude\"]\n");
    scene.write("work/.claude/settings.json", CLAUDES);
    scene.trusted()
}

fn told(scene: &Scene, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(scene.path("work").join(file)).unwrap_or_default();
    text.lines().filter(|line| !line.is_empty()).map(json).collect()
}

#[test]
fn a_sub_agent_starts_and_stops_as_such_and_the_root_as_a_session() {
    let scene = scene();
    let ran = scene.provost(&["run", "find it"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "done\n"), "{ran:?}");
    let run = scene.last_run();
    let (root, child) = (format!("{run}.0"), format!("{run}.1"));

    let starts = told(&scene, "session-start.jsonl");
    assert_eq!(starts.len(), 1, "the root's only: {starts:?}");
    assert_eq!(
        (&starts[0]["provost_session"], &starts[0]["agent_id"]),
        (&Value::from(root.as_str()), &Value::Null)
    );

    let start = told(&scene, "subagent-start.json").remove(0);
    let stop = told(&scene, "subagent-stop.json").remove(0);
    for question in [&start, &stop] {
        assert_eq!(question["session_id"], starts[0]["session_id"], "{question}");
        assert_eq!(question["provost_session"], child, "{question}");
        assert_eq!(question["agent_id"].as_str().map(str::len), Some(36), "{question}");
        assert_eq!(question["agent_type"], "general-purpose", "{question}");
    }
    assert_eq!(
        (&start["hook_event_name"], &stop["hook_event_name"]),
        (&"SubagentStart".into(), &"SubagentStop".into())
    );
    assert!(!scene.path("work/wrong").exists(), "the matcher is held against the kind of agent");
    assert_eq!((&stop["last_assistant_message"], &stop["stop_hook_active"]), (&"whole".into(), &true.into()));
    for (field, id) in [("transcript_path", "session_id"), ("agent_transcript_path", "agent_id")] {
        let session = stop[id].as_str().expect(id);
        let path = stop[field].as_str().expect(field);
        assert!(path.ends_with(&format!("{session}.jsonl")), "{stop}");
        let text = fs::read_to_string(path).expect(field);
        let first = text.lines().next().expect("a line");
        assert!(first.contains(r#""type":"user""#) && first.contains(session), "{first}");
    }

    let stops = told(&scene, "stop.jsonl");
    assert_eq!(stops.len(), 1, "the root's only: {stops:?}");
    assert_eq!(stops[0]["last_assistant_message"], "done");

    let task = told(&scene, "task.json").remove(0);
    assert_eq!(task["tool_name"], "Agent");
    assert_eq!(task["tool_input"]["prompt"], "dig for it");
    assert_eq!(task["tool_input"]["subagent_type"], "general-purpose");
    let done = told(&scene, "agent-done.json").remove(0);
    let said = done["tool_response"]["content"][0]["text"].as_str().expect("text");
    assert!(said.starts_with("whole"), "{said}");

    let log = scene.provost(&["logs", &run, "--json"]).stdout;
    let reminder = |line: &&str| line.contains("be thorough") && line.contains(&child);
    assert!(log.lines().any(|line| reminder(&line)), "{log}");
}

#[test]
fn a_hook_of_ours_denies_an_agent_and_the_one_that_asked_goes_on() {
    let scene = Scene::scripted(ANSWERS).with_settings(
        "[[hooks]]\nevent = \"spawn\"\nmatcher = \"general-purpose\"\n\
         command = \"cat > spawn.json; echo 'dig by yourself'; exit 2\"\n\
         [[hooks]]\nevent = \"child_end\"\ncommand = \"touch child-ended\"\n",
    );
    let scene = scene.trusted();
    let ran = scene.provost(&["run", "find it"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "done\n"), "{ran:?}");
    let spawn = told(&scene, "spawn.json").remove(0);
    assert_eq!((&spawn["spawn"]["goal"], &spawn["spawn"]["name"]), (&"dig for it".into(), &"digger".into()));
    let log = scene.provost(&["logs", &scene.last_run(), "--json"]).stdout;
    assert!(log.contains("dig by yourself") && !log.contains("agent_spawned"), "{log}");
    assert!(!scene.path("work/child-ended").exists());
}

#[test]
fn explain_counts_the_answers_before_a_sub_agents_stop_and_none_where_they_cant_be() {
    let scene = scene();
    let ran = scene.provost(&["run", "find it"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let explained = scene.provost(&["explain", &scene.last_run()]).stdout;
    let line = |end: &str| {
        let mut lines = explained.lines();
        lines.any(|line| line.contains("subagent_stop ") && line.trim_end().ends_with(end))
    };
    assert!(line("it isn't a sub-agent") && line("continued 1, denied 1"), "{explained}");
    assert!(!explained.contains("couldn't be asked") && !explained.contains("never came"), "{explained}");
}
