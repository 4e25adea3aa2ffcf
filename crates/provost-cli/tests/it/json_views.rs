//! What `--json` prints: one documented type for each command, with a schema that holds.

use std::collections::BTreeSet;
use std::fs;

use provost_view::ViewKind;
use serde_json::Value;

use crate::support::{Scene, json, until};

/// Whether `value` is what `schema` describes; every keyword that Provost's schemas have is checked.
pub(crate) struct Checker<'a> {
    pub(crate) root: &'a Value,
}

impl Checker<'_> {
    pub(crate) fn check(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let Some(keywords) = schema.as_object() else {
            assert_eq!(schema, &Value::Bool(true), "a schema at {at}");
            return Ok(());
        };
        for (keyword, wanted) in keywords {
            let holds = match keyword.as_str() {
                "$schema" | "$defs" | "title" | "description" | "default" | "format" | "propertyNames" => {
                    true
                }
                "type" => match wanted {
                    Value::Array(types) => types.iter().any(|wanted| is_type(wanted, value)),
                    wanted => is_type(wanted, value),
                },
                "const" => wanted == value,
                "enum" => wanted.as_array().unwrap().contains(value),
                "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
                "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()),
                "minItems" => {
                    value.as_array().is_none_or(|items| items.len() as u64 >= wanted.as_u64().unwrap())
                }
                "maxItems" => {
                    value.as_array().is_none_or(|items| items.len() as u64 <= wanted.as_u64().unwrap())
                }
                "required" => {
                    let mut names = wanted.as_array().unwrap().iter();
                    !value.is_object() || names.all(|name| value.get(name.as_str().unwrap()).is_some())
                }
                inner => {
                    self.check_inside(keywords, inner, value, at)?;
                    true
                }
            };
            if !holds {
                return Err(format!("{at}: {value} is not {keyword} {wanted}"));
            }
        }
        Ok(())
    }

    /// A keyword that holds schemas.
    fn check_inside(
        &self,
        keywords: &serde_json::Map<String, Value>,
        keyword: &str,
        value: &Value,
        at: &str,
    ) -> Result<(), String> {
        let wanted = &keywords[keyword];
        match keyword {
            "$ref" => {
                let path = wanted.as_str().unwrap().strip_prefix('#').unwrap();
                self.check(self.root.pointer(path).expect("a definition"), value, at)
            }
            "properties" => wanted.as_object().unwrap().iter().try_for_each(|(name, inner)| {
                value.get(name).map_or(Ok(()), |member| self.check(inner, member, &format!("{at}.{name}")))
            }),
            "additionalProperties" => {
                let known = keywords.get("properties").and_then(Value::as_object);
                let mut others = value.as_object().into_iter().flatten();
                others.try_for_each(|(name, member)| match wanted {
                    _ if known.is_some_and(|known| known.contains_key(name)) => Ok(()),
                    Value::Bool(false) => Err(format!("{at}: {name} isn't known")),
                    wanted => self.check(wanted, member, &format!("{at}.{name}")),
                })
            }
            "items" => {
                value.as_array().into_iter().flatten().try_for_each(|item| self.check(wanted, item, at))
            }
            "allOf" => wanted.as_array().unwrap().iter().try_for_each(|inner| self.check(inner, value, at)),
            "anyOf" | "oneOf" => {
                let inner = wanted.as_array().unwrap().iter();
                let found = inner.map(|inner| self.check(inner, value, at)).collect::<Vec<_>>();
                match found.iter().filter(|one| one.is_ok()).count() {
                    0 => Err(format!("{at}: {value} is none of these: {found:?}")),
                    1 => Ok(()),
                    _ if keyword == "anyOf" => Ok(()),
                    several => Err(format!("{at}: {value} is {several} of {wanted}")),
                }
            }
            other => panic!("the keyword {other} isn't checked"),
        }
    }
}

fn is_type(wanted: &Value, value: &Value) -> bool {
    match wanted.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the type {other}"),
    }
}

/// The view of this name, and its schema as the program prints it.
fn schema(scene: &Scene, name: &str) -> Value {
    let printed = scene.provost(&["schema", name]);
    assert_eq!(printed.status, 0, "{printed:?}");
    json(&printed.stdout)
}

/// Checks lines that a command printed: each follows the schema, is read into the view's type, and loses nothing in it.
#[track_caller]
fn check(scene: &Scene, name: &str, args: &[&str]) -> Vec<Value> {
    let (view, schema) = (of(name), schema(scene, name));
    let printed = scene.provost(args);
    let lines = printed.stdout.lines().map(json).collect::<Vec<_>>();
    assert!(!lines.is_empty(), "{printed:?}");
    for (text, line) in printed.stdout.lines().zip(&lines) {
        assert_eq!(line["v"], 1, "{line}");
        // A member that is there twice is read once.
        assert_eq!(text.len(), line.to_string().len(), "{text}");
        Checker { root: &schema }
            .check(&schema, line, "")
            .unwrap_or_else(|wrong| panic!("{wrong}\n{line:#}"));
        assert_eq!(&view.read_back(line).unwrap_or_else(|wrong| panic!("{wrong}\n{line:#}")), line);
    }
    lines
}

fn of(name: &str) -> ViewKind {
    *ViewKind::ALL.iter().find(|view| view.name() == name).expect("a view")
}

const ASKS: &str = "\
answers:
  - tools: [{ shell: { command: echo 1 } }, { spawn_agent: { goal: sub, name: helper } }]
  - text: done
agents:
  - goal: sub
    answers: [{ tools: [{ shell: { command: echo 2 } }] }, { text: done }]
";

#[test]
fn runs_and_questions_follow_their_schemas() {
    let scene = Scene::scripted(ASKS).with_settings("[permissions]\nask = [\"shell\"]\n");
    let running = scene.start(&["run", "x"]);
    until("it asks", || (!scene.provost(&["approvals", "--json"]).stdout.is_empty()).then_some(()));
    let asked = check(&scene, "approvals", &["approvals", "--json"]);
    assert_eq!((&asked[0]["tool"], &asked[0]["input"]["command"]), (&"shell".into(), &"echo 1".into()));
    assert_eq!(check(&scene, "ps", &["ps", "--json"])[0]["status"], "needs approval");
    let spent = check(&scene, "cost", &["cost", "last", "--json"]).remove(0);
    assert_eq!((&spent["groups"][0]["agent"], &spent["total"]["calls"]), (&0.into(), &1.into()));
    check(&scene, "cost", &["cost", "--by", "day,run,purpose,segment", "--json"]);
    let shown = check(&scene, "show", &["show", "last", "--json"]).remove(0);
    assert_eq!(
        (&shown["agents"][0]["state"], &shown["waits_for"][0]["tool"]),
        (&"needs approval".into(), &"shell".into())
    );
    running.kill();
    assert_eq!(check(&scene, "ps", &["ps", "--json"])[0]["status"], "interrupted, needs approval");
    check(&scene, "show", &["show", "last", "--json"]);
    let explained = check(&scene, "explain", &["explain", "last", "--json"]).remove(0);
    assert_eq!(explained["agents"][0]["permissions"]["patterns"][0]["decided"], 1, "{explained:#}");
    scene.provost(&["cancel", "last"]);
    scene.write("work/agent.yaml", "answers: [{ text: done }]");
    assert_eq!(scene.provost(&["run", "y"]).status, 0);
    check(&scene, "ps", &["ps", "--json"]);
    let entries = check(&scene, "logs", &["logs", "last", "--json"]);
    assert_eq!(entries[0]["type"], "run_started");
    check(&scene, "logs", &["logs", "last", "--entry", "1", "--json"]);
    let view = check(&scene, "view", &["logs", "last", "--view", "--json"]).remove(0);
    assert_eq!(view["messages"][1]["parts"][0]["text"], "done", "{view:#}");
    let followed = check(&scene, "show", &["show", "last", "-f", "--json"]).pop().unwrap();
    assert_eq!(followed["agents"][0]["state"], "done");
}

#[test]
fn workflows_follow_their_schema() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    scene.write(
        "work/flow.toml",
        "[flow]\nname = \"release\"\n\n[[flow.steps]]\nname = \"plan\"\ngoal = \"plan it\"\n\n\
         [[flow.steps]]\nname = \"build\"\ngoal = \"build it\"\nneeds = [\"plan\"]\n",
    );
    let done = scene.provost(&["flow", "run", "flow.toml"]);
    assert_eq!(done.status, 0, "{done:?}");
    check(&scene, "logs", &["logs", "last", "--json"]);
    let shown = check(&scene, "show", &["show", "last", "--json"]).remove(0);
    assert_eq!(shown["step_counts"]["done"], 2, "{shown:#}");
    check(&scene, "explain", &["explain", "last", "--json"]);
    assert_eq!((&shown["steps"][1]["step"], &shown["steps"][1]["state"]), (&"build".into(), &"done".into()));
    assert_eq!(check(&scene, "ps", &["ps", "--json"])[0]["status"], "completed");
}

#[test]
fn goals_follow_their_schema() {
    let scene = Scene::scripted("answers: [{ text: done }, { text: done }]");
    scene.write(
        "work/judge.yaml",
        "verdicts:\n  - { achieved: false, confidence: 0.9, reasoning: No., suggestions: [write it] }\n  \
         - { achieved: true, confidence: 0.95, reasoning: Yes. }\n",
    );
    let done = scene.provost(&["run", "x", "--goal", "it is there", "--judge", "script:judge.yaml"]);
    assert_eq!(done.status, 0, "{done:?}");
    let shown = check(&scene, "goal", &["goal", "show", "last", "--json"]).remove(0);
    assert_eq!((&shown["task"], &shown["status"]), (&"x".into(), &"completed".into()));
    assert_eq!(shown["goals"][0]["verifications"].as_array().unwrap().len(), 2, "{shown:#}");
    let whole = check(&scene, "show", &["show", "last", "--json"]).remove(0);
    assert_eq!(whole["goals"], shown["goals"]);
    let explained = check(&scene, "explain", &["explain", "last", "--json"]).remove(0);
    assert_eq!(explained["agents"][0]["goal"]["judges"][0]["consulted"], 2, "{explained:#}");
    check(&scene, "logs", &["logs", "last", "--json"]);
}

#[test]
fn models_and_settings_follow_their_schemas() {
    let agent = "[[agents]]\nname = \"tester\"\ndescription = \"tests\"\ngoal.condition = \"tests pass\"\n";
    let hook = "[[hooks]]\nevent = \"pre_tool_call\"\ncommand = \"true\"\n";
    let stop_hook = "[[stop_hooks]]\nname = \"mark\"\ncommand = \"touch ran\"\n";
    let scene = Scene::scripted("answers: []").with_settings(&format!("{agent}{hook}{stop_hook}"));
    scene.write("work/AGENTS.md", "Be brief.");
    let models = check(&scene, "models", &["models", "--json"]).remove(0);
    assert!(models["providers"].as_array().unwrap().len() > 3, "{models:#}");
    let checked = check(&scene, "check", &["check", "--json"]).remove(0);
    assert_eq!(checked["trust"]["state"], "needed", "{checked:#}");
    for list in ["settings", "stop_hooks", "hooks", "agents", "project_rules", "problems"] {
        assert!(!checked[list].as_array().unwrap().is_empty(), "{list}: {checked:#}");
    }
}

#[test]
fn what_is_done_to_the_store_follows_its_schemas() {
    let scene = Scene::scripted("answers: [{ text: done }, { text: done }]");
    for goal in ["x", "y"] {
        scene.provost(&["run", goal]);
    }
    let backup = check(&scene, "backup", &["backup", "copy.db", "--json"]).remove(0);
    assert_eq!((&backup["runs"], backup["file"].as_str().unwrap()), (&2.into(), "copy.db"));
    let checked = check(&scene, "doctor", &["doctor", "--store", "--json"]).remove(0);
    assert_eq!(
        (&checked["whole"], &checked["runs"], &checked["lost_entries"]),
        (&true.into(), &2.into(), &Value::Null)
    );
    let planned = check(&scene, "prune", &["prune", "--keep", "1", "--dry-run", "--json"]).remove(0);
    assert_eq!((planned["planned"].as_array().unwrap().len(), &planned["removed"]), (1, &Value::Null));
    let pruned = check(&scene, "prune", &["prune", "--keep", "1", "--yes", "--json"]).remove(0);
    assert_eq!(pruned["removed"]["runs"], planned["planned"], "{pruned:#}");
}

/// The stored logs have every kind of entry.
#[test]
fn entries_of_every_kind_follow_their_schema() {
    let (view, schema) = (of("logs"), of("logs").schema().to_value());
    let checker = Checker { root: &schema };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../provost-event/formats/v1");
    let mut kinds = BTreeSet::new();
    for file in fs::read_dir(folder).unwrap() {
        for line in fs::read_to_string(file.unwrap().path()).unwrap().lines() {
            let line = json(line);
            checker.check(&schema, &line, "").unwrap_or_else(|wrong| panic!("{wrong}\n{line:#}"));
            assert_eq!(view.read_back(&line).unwrap(), line);
            kinds.insert(line["type"].as_str().unwrap().to_owned());
        }
    }
    let all = schema["properties"]["type"]["enum"].as_array().unwrap();
    assert_eq!(kinds.len(), all.len(), "{kinds:?}");
    let wrong =
        json(r#"{"v":1,"actor":"00000000000a.0","seq":1,"at_ms":1,"elapsed_ms":1,"type":"turn_ended"}"#);
    assert!(checker.check(&schema, &wrong, "").is_err(), "its own members are missing");
}

/// The first example after each command's heading in the documentation.
#[test]
fn the_documentation_has_a_valid_example_of_each_view() {
    let scene = Scene::new();
    let text = include_str!("../../../../docs/json.md");
    for view in ViewKind::ALL {
        let heading = format!("\n## `{}`: `{}`\n", view.command(), view.type_name());
        let (_, below) = text.split_once(&heading).unwrap_or_else(|| panic!("no {heading}"));
        let below = below.split("\n## ").next().unwrap();
        let example = below.split("```json\n").nth(1).expect("an example").split("\n```").next().unwrap();
        let (example, schema) = (json(example), schema(&scene, view.name()));
        Checker { root: &schema }.check(&schema, &example, "").unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(view.read_back(&example).unwrap(), example, "{}", view.name());
    }
    let listed = scene.provost(&["schema"]).stdout;
    assert_eq!(listed.lines().count(), ViewKind::ALL.len(), "{listed}");
}

#[test]
fn a_value_that_breaks_its_schema_is_found() {
    let schema = of("approvals").schema().to_value();
    let checker = Checker { root: &schema };
    let wrong = json(r#"{"v":2}"#);
    assert!(checker.check(&schema, &wrong, "").is_err());
    let wrong = json(r#"{"v":1,"run":"a"}"#);
    assert!(checker.check(&schema, &wrong, "").unwrap_err().contains("required"));
}
