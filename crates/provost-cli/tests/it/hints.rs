//! Every command that is printed as a remedy works when it is typed: for each way in which a run is suspended or
//! ends, what its last lines, `show`, `explain`, `say`, `approve` and `resume` name is run on a copy of its state.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::model_server::{ModelServer, refusal};
use crate::support::{Done, Scene, done, until};

const DONE: &str = "answers: [{ text: done }]";
/// Sleeps only the first time.
const SLEEPS: &str = "answers: [{ tools: [{ shell: { command: 'test -e slept || { touch slept; sleep 60; }' } }] }, { text: done }]";
const WORKS: &str =
    "answers: [{ tools: [list_dir] }, { tools: [list_dir] }, { tools: [list_dir] }, { text: done }]";
const FLOW: &str = "[flow]\nname = \"f\"\n[[flow.steps]]\nname = \"a\"\ngoal = \"do a\"\n[[flow.steps]]\nname = \"b\"\nneeds = [\"a\"]\ngoal = \"do b\"\n";

/// A run that was suspended or has ended, with what its process printed.
struct Stopped {
    scene: Scene,
    told: String,
    /// The provider that it calls.
    _server: Option<ModelServer>,
}

impl Stopped {
    #[track_caller]
    fn by(scene: Scene, args: &[&str], status: i32) -> Self {
        let ran = typed(&scene, scene.command(args));
        assert_eq!(ran.status, status, "{args:?}: {ran:?}");
        Self { scene, told: ran.stderr, _server: None }
    }

    /// A run that works, and is told to stop by `command`.
    fn told_to(scene: Scene, command: &str) -> Self {
        let running = scene.start(&["run", "x"]);
        until("the tool runs", || {
            scene.provost(&["logs", "last", "--json"]).stdout.contains("\"tool_started\"").then_some(())
        });
        let told = scene.provost(&[command, "last"]);
        let ended = running.end();
        Self { scene, told: format!("{}{}{}", told.stdout, told.stderr, ended.stderr), _server: None }
    }

    /// A run whose provider gives this answer to each call.
    fn with_answer(answer: String, status: i32) -> Self {
        let server = ModelServer::plain(vec![answer]);
        let scene = Scene::new();
        let url = format!("http://127.0.0.1:{}/v1", server.port);
        let settings = format!(
            "[providers.mine]\nbase_url = \"{url}\"\nfree = true\n[limits]\nmodel_patience = \"1s\"\noutage_max = \"1s\"\n"
        );
        scene.write("home/.config/provost/config.toml", &settings);
        scene.write("work/other.yaml", "answers: [{ text: other }]");
        Self { _server: Some(server), ..Self::by(scene, &["run", "x", "--model", "mine/big"], status) }
    }
}

fn typed(scene: &Scene, mut command: Command) -> Done {
    let programs = Path::new(env!("CARGO_BIN_EXE_provost")).parent().unwrap().to_owned();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("MINE_API_KEY", "sk-secret-key").current_dir(scene.path("work"));
    done(&command.output().unwrap())
}

/// Runs `command` with a copy of the state in `from`, which is returned too.
fn on_a_copy(scene: &Scene, from: &Path, mut command: Command) -> (Done, TempDir) {
    let copy = tempfile::tempdir().unwrap();
    assert!(Command::new("cp").arg("-a").arg(from.join(".")).arg(copy.path()).status().unwrap().success());
    command.env("PROVOST_STATE_DIR", copy.path());
    (typed(scene, command), copy)
}

/// The commands that a text names: between backticks, or up to what explains them.
fn commands_in(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        for (start, _) in line.match_indices("provost ") {
            let (before, rest) = line.split_at(start);
            // Who did something: `paused by provost pause`, `user: provost resume: …`.
            if before.ends_with("by ")
                || before == "user: "
                || !(before.is_empty() || before.ends_with([' ', '`']))
            {
                continue;
            }
            let ends: &[&str] = if before.ends_with('`') { &["`"] } else { &[" (", ", ", "; ", "  "] };
            let end = ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
            found.insert(rest[..end].trim_end_matches(" REASON").trim().to_owned());
        }
    }
    found
}

fn is_id(word: &str) -> bool {
    word.len() == 12 && word.bytes().all(|b| b"0123456789abcdefghjkmnpqrstvwxyz".contains(&b))
}

fn shell(scene: &Scene, line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]).stdin(std::process::Stdio::null());
    command.env_clear().env("HOME", scene.path("home"));
    command
}

/// Types each command that is suggested where it was suggested, on a copy of the state; none is refused.
#[track_caller]
fn check(kind: &str, stopped: &Stopped, more: &[&[&str]]) {
    let Stopped { scene, told, .. } = stopped;
    let asked: &[&[&str]] = &[
        &["show", "last"],
        &["explain", "last"],
        &["say", "last", "and now"],
        &["approve", "last"],
        &["pause", "last"],
        &["cancel", "last"],
        &["resume", "last"],
        &["resume", "last", "and now"],
    ];
    let (state, run) = (scene.path("state"), scene.last_run());
    let mut refused = refused_of(scene, &state, (&run, told));
    for args in asked.iter().chain(more) {
        let (Done { stdout, stderr, .. }, copy) = on_a_copy(scene, &state, scene.command(args));
        let text = format!("{stdout}\n{stderr}");
        let found = refused_of(scene, copy.path(), (&run, &text));
        refused.extend(found.into_iter().map(|refused| format!("{args:?}: {refused}")));
    }
    assert!(refused.is_empty(), "{kind}: {refused:#?}\nits end: {told}");
    let names_one = |text: &str| text.contains("provost resume") || text.contains("provost fork");
    assert!(names_one(told) || !kind.starts_with("limit"), "{kind}: {told}");
}

/// The commands that `text` suggests and that are refused.
fn refused_of(scene: &Scene, state: &Path, (run, text): (&str, &str)) -> Vec<String> {
    let mut refused = Vec::new();
    for command in commands_in(text) {
        // Of a run that was forked, or without an end.
        let names_another = command.split([' ', '.', '#']).any(|word| is_id(word) && word != run);
        if names_another || command.ends_with(" -f") {
            continue;
        }
        let line =
            command.replace(" NAME", " script:other.yaml").replace(" RUN ", " last ").replace('…', "more");
        let (answer, _copy) = on_a_copy(scene, state, shell(scene, &format!("timeout 10 {line}")));
        if answer.status == 2 {
            refused.push(format!("`{command}`: {}", answer.stderr));
        }
    }
    refused
}

fn scripted(script: &str) -> Scene {
    let scene = Scene::scripted(script);
    scene.write("work/other.yaml", "answers: [{ text: other }]");
    scene
}

#[test]
fn what_is_suggested_after_an_end_works() {
    check("completed", &Stopped::by(scripted(DONE), &["run", "x"], 0), &[]);
    let own = Stopped::by(scripted(DONE), &["run", "x", "--max-turns", "1"], 0);
    check("completed, with all its turns used", &own, &[]);
    check("failed", &Stopped::by(scripted("answers: [{ tools: [list_dir] }]"), &["run", "x"], 1), &[]);
    check("cancelled", &Stopped::told_to(scripted(SLEEPS), "cancel"), &[]);
    let hook = "[[hooks]]\nevent = \"pre_tool_call\"\ncommand = \"echo no >&2; exit 2\"\n[[stop_hooks]]\nname = \"h\"\ncommand = \"echo '{\\\"continue\\\": false}'\"\n";
    let scene = scripted(DONE).with_settings(hook).trusted();
    let ran = typed(&scene, scene.command(&["run", "x"]));
    check("ended by a hook", &Stopped { scene, told: ran.stderr, _server: None }, &[]);
    let external = Stopped::by(scripted(DONE), &["exec", "--unattended", "--", "sh", "-c", "echo hello"], 0);
    check("an external agent", &external, &[]);
}

#[test]
fn what_is_suggested_at_a_limit_works() {
    check("tokens", &Stopped::by(scripted(WORKS), &["run", "x", "--tokens", "9000"], 3), &[]);
    check("few tokens", &Stopped::by(scripted(WORKS), &["run", "x", "--tokens", "100"], 3), &[]);
    check("turns", &Stopped::by(scripted(WORKS), &["run", "x", "--max-turns", "1"], 3), &[]);
    check("time", &Stopped::by(scripted(SLEEPS), &["run", "x", "--wall-time", "2s"], 3), &[]);
    let two = Stopped::by(scripted(WORKS), &["run", "x", "--max-turns", "1", "--tokens", "4000"], 3);
    check(
        "turns and tokens",
        &two,
        &[&["resume", "last", "--max-turns", "1"], &["resume", "last", "--tokens", "1"]],
    );
    let server = ModelServer::plain(vec![refusal(500, "{}")]);
    let url = format!("http://127.0.0.1:{}/v1", server.port);
    let scene = scripted(DONE);
    let priced = format!(
        "[providers.mine]\nbase_url = \"{url}\"\n[models.\"mine/big\"]\ninput_usd = 1000\noutput_usd = 1000\n[limits]\nmodel_patience = \"1s\"\noutage_max = \"1s\"\n"
    );
    scene.write("home/.config/provost/config.toml", &priced);
    let money = Stopped::by(scene, &["run", "x", "--model", "mine/big", "--usd", "0.01"], 3);
    check("money", &Stopped { _server: Some(server), ..money }, &[&["resume", "last", "--usd", "0.01"]]);
}

#[test]
fn what_is_suggested_after_a_suspension_works() {
    check("paused", &Stopped::told_to(scripted(SLEEPS), "pause"), &[]);
    let block =
        "[limits]\nstop_blocks = 1\n[[stop_hooks]]\nname = \"no\"\ncommand = \"echo not yet; exit 2\"\n";
    check("blocked", &Stopped::by(scripted(DONE).with_settings(block).trusted(), &["run", "x"], 4), &[]);
    let calls = "{ tools: [{ shell: { command: echo same } }] }, ".repeat(12);
    let stuck = Stopped::by(scripted(&format!("answers: [{calls} {{ text: done }}]")), &["run", "x"], 4);
    check("stuck", &stuck, &[]);
    let asks = "[permissions]\nask = [\"shell\"]\nunanswered = \"pause\"\napproval_timeout = \"1s\"\n";
    let script = "answers: [{ tools: [{ shell: { command: 'true' } }] }, { text: done }]";
    let asks_one = Stopped::by(scripted(script).with_settings(asks), &["run", "x"], 4);
    check("awaits approval", &asks_one, &[]);
    let limited = scripted(script).with_settings(asks);
    let limited = Stopped::by(limited, &["run", "x", "--max-turns", "1"], 4);
    check("awaits approval with its turns used", &limited, &[]);
}

#[test]
fn what_is_suggested_where_a_provider_gives_no_answer_works() {
    let down = refusal(503, r#"{"error":{"message":"down"}}"#);
    check("outage", &Stopped::with_answer(down, 4), &[]);
    let key = refusal(401, r#"{"error":{"message":"the key has expired"}}"#);
    check("key", &Stopped::with_answer(key, 4), &[]);
    let quota = refusal(
        429,
        r#"{"error":{"message":"no quota","code":"insufficient_quota","type":"insufficient_quota"}}"#,
    );
    check("quota", &Stopped::with_answer(quota, 4), &[]);
    let unknown = refusal(404, r#"{"error":{"message":"no such model","code":"model_not_found"}}"#);
    check("unknown model", &Stopped::with_answer(unknown, 4), &[]);
}

#[test]
fn what_is_suggested_for_a_workflow_and_its_agents_works() {
    let flow = |script: &str, status: i32| {
        let scene = scripted(script);
        scene.write("work/flow.toml", FLOW);
        Stopped::by(scene, &["flow", "run", "flow.toml"], status)
    };
    let of_agent: &[&[&str]] = &[
        &["say", "last.1", "more"],
        &["resume", "last.1"],
        &["cancel", "last.1"],
        &["fork", "last.1", "more"],
        &["resume", "last", "--max-turns", "3"],
    ];
    let both = "answers: [{ text: x }]\nagents:\n  - goal: do a\n    answers: [{ text: a }]\n  - goal: do b\n    answers: [{ text: b }]\n";
    check("a completed workflow", &flow(both, 0), of_agent);
    let fails = "answers: [{ text: x }]\nagents:\n  - goal: do a\n    answers: [{ text: a }]\n  - goal: do b\n    answers: [{ tools: [list_dir] }]\n";
    let failed = {
        let scene = scripted(fails);
        scene.write("work/flow.toml", FLOW);
        let ran = typed(&scene, scene.command(&["flow", "run", "flow.toml"]));
        assert_ne!(ran.status, 0, "{ran:?}");
        Stopped { scene, told: ran.stderr, _server: None }
    };
    check("a failed workflow", &failed, of_agent);
    let spawns = "answers: [{ tools: [{ spawn_agent: { goal: sub } }] }, { text: done }]\nagents:\n  - goal: sub\n    answers: [{ text: sub done }]\n";
    check("a run with a sub-agent", &Stopped::by(scripted(spawns), &["run", "x"], 0), of_agent);
}

/// The amount behind `--tokens`.
fn tokens_suggested(text: &str) -> Option<&str> {
    text.split_once("--tokens ")?.1.split_whitespace().next()
}

#[test]
fn one_amount_is_suggested_by_all_commands_and_is_enough() {
    let Stopped { scene, told, .. } = Stopped::by(scripted(WORKS), &["run", "x", "--tokens", "9000"], 3);
    let amount = tokens_suggested(&told).unwrap();
    let few: &[&str] = &["resume", "last", "--tokens", "1"];
    for args in [&["show", "last"][..], &["say", "last", "x"], &["resume", "last"], few] {
        let (Done { stdout, stderr, .. }, _copy) =
            on_a_copy(&scene, &scene.path("state"), scene.command(args));
        let text = format!("{stdout}{}", stderr.rsplit("hint: ").next().unwrap());
        assert_eq!(tokens_suggested(&text), Some(amount), "{args:?}: {text}");
    }
}
