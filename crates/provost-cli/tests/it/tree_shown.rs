//! The output about a tree of agents: `show`, live and in lines, the view of `run`, `logs`, `cost`, `explain`, and
//! open approvals.

use crate::on_terminal::{on_terminal, raw_on_terminal};
use crate::support::{Scene, json, line_in, until};
use crate::tree_acting::{DEEP, TEAM, agent, team_at_work};

fn let_go(scene: &Scene) {
    ["go-beside", "go-below"].iter().for_each(|name| scene.write(&format!("work/{name}"), ""));
}

/// The page from its tree on, without durations.
fn tree_of(page: &str) -> String {
    let from = page.find("\nagents").expect("a tree");
    let lines = page[from..].lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is_time = |word: &str| word.ends_with("ms") || word.trim_end_matches('s').parse::<f64>().is_ok();
    lines
        .map(|words| words.into_iter().filter(|word| !is_time(word) || word.len() < 2).collect::<Vec<_>>())
        .map(|words| format!("{}\n", words.join(" ")))
        .collect()
}

#[test]
fn show_draws_the_agents_of_a_run_with_a_head_that_counts_them() {
    let scene = Scene::scripted(TEAM).with_settings("[spawn]\nmax_agents = 4\nmax_depth = 2\n");
    let (running, _) = team_at_work(&scene);
    let shown = scene.provost(&["show", "last"]);
    let lines = tree_of(&shown.stdout);
    assert!(lines.contains("agents 4 of 4 slots · 4 working"), "{lines}");
    for label in ["0 root working normal", "lead working normal", "beside working normal", "└ 3 below"] {
        assert!(lines.contains(label), "{label}: {lines}");
    }
    let whole = json(scene.provost(&["show", "last", "--json"]).stdout.trim());
    assert_eq!((&whole["slots"]["held"], &whole["slots"]["max_agents"]), (&json("4"), &json("4")));
    assert_eq!(whole["agents"][3]["goal"], "work below");
    let_go(&scene);
    assert_eq!(running.end().status, 0);
    let shown = scene.provost(&["show", "last"]);
    assert!(shown.stdout.contains("agents      4 slots · 4 done\n"), "{shown:?}");
    let one = scene.provost(&["show", "last.1"]);
    assert!(one.status == 2 && one.stderr.contains("hint: provost show "), "{one:?}");
}

/// The log and number of each entry in lines of JSON, each once.
fn places(lines: &str) -> Vec<(String, u64)> {
    let mut places = Vec::new();
    for line in lines.lines().map(json) {
        // One entry may give several events of a trace; pieces of an answer are no entries.
        let actor = ["actor", "session", "run"].iter().find_map(|field| line[*field].as_str());
        if let (Some(actor), Some(seq)) = (actor, line["seq"].as_u64())
            && places.last() != Some(&(actor.to_owned(), seq))
        {
            places.push((actor.to_owned(), seq));
        }
    }
    places
}

#[test]
fn json_logs_and_exports_of_a_tree_have_one_order_and_its_trace_too() {
    let scene = Scene::scripted(TEAM).with_settings(DEEP);
    let mut command = scene.command(&["run", "team", "--json"]);
    command.env("PROVOST_TRACE_FILE", scene.path("trace.jsonl"));
    let_go(&scene);
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let log = places(&scene.provost(&["logs", "last", "--json"]).stdout);
    let agents = log.iter().map(|(actor, _)| actor).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(agents.len(), 5, "the run and its four agents: {log:?}");
    assert_eq!(places(str::from_utf8(&ran.stdout).unwrap()), log);
    assert_eq!(scene.provost(&["export", "last", "-o", "run.jsonl"]).status, 0);
    assert_eq!(places(&std::fs::read_to_string(scene.path("work/run.jsonl")).unwrap()), log);
    let trace = places(&std::fs::read_to_string(scene.path("trace.jsonl")).unwrap());
    let traced = log.iter().filter(|place| trace.contains(place)).cloned().collect::<Vec<_>>();
    assert!(trace.len() > 20 && trace == traced, "{trace:?}\n{traced:?}");
}

#[test]
fn show_of_a_run_with_one_agent_draws_nothing() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    scene.provost(&["run", "x"]);
    assert!(!scene.provost(&["show", "last"]).stdout.contains("slots"));
}

#[test]
fn show_f_tells_each_change_in_a_line_until_the_run_ends() {
    let scene = Scene::scripted(TEAM).with_settings(DEEP);
    let (running, _) = team_at_work(&scene);
    let following = scene.start(&["show", "-f", "last"]);
    let beside = agent(&scene, "beside")["agent"].to_string();
    assert_eq!(scene.provost(&["reprioritize", &format!("last.{beside}"), "low"]).status, 0);
    let_go(&scene);
    assert_eq!(running.end().status, 0);
    let ended = following.end();
    assert_eq!(ended.status, 0, "{ended:?}");
    let changes = ended.stdout.lines().skip_while(|line| !line.contains("has priority low now"));
    let changes = changes.collect::<Vec<_>>();
    for words in
        ["(below) is done", "(beside) is done", "(lead) is done", "completed, not verified · 8 turns"]
    {
        assert!(changes.iter().any(|line| line.contains(words)), "{words}: {ended:?}");
    }
    assert!(ended.stdout.starts_with("run  "), "{ended:?}");
    let over = scene.provost(&["show", "-f", "last"]);
    assert!(over.status == 0 && over.stdout.contains("completed, not verified · 8 turns"), "{over:?}");
    let objects = scene.provost(&["show", "-f", "last", "--json"]).stdout;
    assert!(objects.lines().all(|line| json(line)["agents"].is_array()), "{objects}");
}

#[test]
fn show_f_on_a_terminal_is_drawn_over_itself() {
    let scene = Scene::scripted(TEAM).with_settings(DEEP);
    let (running, _) = team_at_work(&scene);
    let touch = format!("!touch {0}/go-beside {0}/go-below", scene.path("work").display());
    let program = env!("CARGO_BIN_EXE_provost");
    let shown = raw_on_terminal(&scene, &[program, "show", "-f", "last"], &[("4 working", &touch)]);
    assert_eq!(running.end().status, 0);
    assert_eq!(shown.status, 0, "{shown:?}");
    assert!(shown.stdout.contains("4 done") && shown.stdout.contains("A"), "{shown:?}");
    assert!(shown.stdout.contains("\u{1b}[?2026h"), "a frame at once: {shown:?}");
    assert!(!shown.stdout.contains("\u{1b}[2J"), "nothing is cleared: {shown:?}");
    let last = shown.stdout.rsplit("\u{1b}[?2026h").next().unwrap();
    assert!(console::strip_ansi_codes(last).contains("completed, not verified · 8 turns"), "{last}");
}

#[test]
fn what_sub_agents_do_stands_behind_their_names() {
    let scene = Scene::scripted(TEAM).with_settings(DEEP);
    let (running, _) = team_at_work(&scene);
    let_go(&scene);
    let ended = running.end();
    let number = |name: &str| agent(&scene, name)["agent"].to_string();
    let (beside, lead, below) = (number("beside"), number("lead"), number("below"));
    for line in [
        format!("run: agent {lead} (lead) begins\n  lead the others\n"),
        format!("run: agent {below} (below) begins, for agent {lead} (lead)\n"),
        format!("\n{beside} beside │ agent: beside is done\n"),
        format!("\n{beside} beside │ tool: shell echo $$"),
        format!("\nrun: agent {below} (below) is done\n"),
        "\nok: spawn_agent lead: lead the others (".to_owned(),
        "\nagent: all are back\n".to_owned(),
    ] {
        assert!(ended.stderr.contains(&line), "{line:?} in {}", ended.stderr);
    }
}

#[test]
fn logs_tells_whose_an_entry_is_and_prints_one_agents() {
    let scene = Scene::scripted(TEAM).with_settings(DEEP);
    let (running, _) = team_at_work(&scene);
    let number = agent(&scene, "below")["agent"].to_string();
    let name = format!("last.{number}");
    let following = scene.start(&["logs", "last", "-f"]);
    let_go(&scene);
    assert_eq!(running.end().status, 0);
    let all = following.end().stdout;
    assert!(all.contains(&format!("  {number} below  ")) && all.contains("below is done"), "{all}");
    let one = scene.provost(&["logs", &name]).stdout;
    assert!(one.lines().all(|line| line.contains(&format!("{number} below"))) && one.lines().count() > 5);
    assert_eq!(one, scene.provost(&["logs", "last", "--agent", &number]).stdout);
    let view = scene.provost(&["logs", &name, "--view"]).stdout;
    assert!(view.contains("work below") && !view.contains("work beside"), "{view}");
    let both = scene.provost(&["logs", "last.1", "--agent", "2"]);
    assert!(both.status == 2 && both.stderr.contains("names one log and --agent another"), "{both:?}");
}

#[test]
fn logs_f_follows_agents_that_begin_later() {
    let script = "
answers:
  - tools: [{ shell: { command: 'echo $$ > root.pid; until test -e go; do sleep 0.01; done' } }]
  - tools: [{ spawn_agent: { goal: come later, name: late } }]
  - text: done
agents: [{ goal: come later, answers: [{ text: I came late }] }]
";
    let scene = Scene::scripted(script);
    let running = scene.start(&["run", "x"]);
    line_in(&scene.path("work/root.pid"));
    let following = scene.start(&["logs", "last", "-f"]);
    scene.write("work/go", "");
    assert_eq!(running.end().status, 0);
    let all = following.end().stdout;
    assert!(all.contains("1 late") && all.contains("I came late"), "{all}");
    assert!(all.lines().last().unwrap().contains("ended"), "{all}");
}

#[test]
fn cost_and_explain_tell_agents_apart() {
    let scene = Scene::scripted(TEAM).with_settings(DEEP);
    let (running, _) = team_at_work(&scene);
    let_go(&scene);
    assert_eq!(running.end().status, 0);
    let by_agent = scene.provost(&["cost", "last", "--by", "agent"]).stdout;
    let rows = by_agent.lines().map(|line| line.split("  ").next().unwrap().to_owned()).collect::<Vec<_>>();
    for name in ["0", "1 lead", "2 beside", "3 below", "total"] {
        assert!(rows.iter().any(|row| row.trim() == name), "{name}: {by_agent}");
    }
    let one = scene.provost(&["cost", "last.3", "--json"]).stdout;
    assert_eq!(json(one.trim())["total"]["calls"], 2, "{one}");
    assert_eq!(json(one.trim())["groups"][0]["name"], "below", "{one}");
    assert_eq!(scene.provost(&["cost", "last.9"]).status, 2);
    let all = scene.provost(&["explain", "last"]).stdout;
    assert!(all.contains("limits of agent 0\n") && all.contains("limits of agent 3 (below)\n"), "{all}");
    let one = scene.provost(&["explain", "last.3"]).stdout;
    assert!(one.contains("limits of agent 3 (below)\n") && !one.contains("limits of agent 0"), "{one}");
    assert!(one.contains("3 more agents not told of here"), "{one}");
}

/// A sub-agent makes a call that needs approval.
const WANTS: &str = "
answers:
  - tools: [{ spawn_agent: { goal: tidy up, name: tidy } }]
  - text: tidied
agents:
  - goal: tidy up
    answers:
      - tools: [{ shell: { command: echo swept >> effects } }]
      - text: I swept
";

fn wants() -> Scene {
    Scene::scripted(WANTS).with_settings("[permissions]\nask = [\"shell\"]\n")
}

#[test]
fn what_a_sub_agent_wants_is_asked_everywhere_with_its_name() {
    let scene = wants();
    let running = scene.start(&["run", "x"]);
    until("it asks", || scene.provost(&["ps"]).stdout.contains("needs approval").then_some(()));
    let asked = scene.provost(&["approvals"]).stdout;
    assert!(asked.contains("  agent   1 tidy\n"), "{asked}");
    let line = json(scene.provost(&["approvals", "--json"]).stdout.trim());
    assert_eq!((&line["agent"], &line["name"]), (&1.into(), &"tidy".into()));
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(
        shown.contains("1 tidy  needs approval") && shown.contains("shell, wanted by agent 1 (tidy)"),
        "{shown}"
    );
    let name = format!("{}.1#{}", scene.last_run(), line["asked"]);
    assert!(shown.contains(&format!("provost approve {name}")), "{shown}");
    let answered = scene.provost(&["approve", &name]);
    assert_eq!(answered.status, 0, "{answered:?}");
    let ended = running.end();
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "tidied\n"), "{ended:?}");
    assert!(ended.stderr.contains("approval: may it? 1 tidy │ shell\n"), "{}", ended.stderr);
    assert_eq!(std::fs::read_to_string(scene.path("work/effects")).unwrap(), "swept\n");
}

#[test]
fn a_run_that_rests_with_its_sub_agents_question_says_so_and_goes_on_with_the_answer() {
    let scene = wants();
    let running = scene.start(&["run", "x"]);
    until("it asks", || scene.provost(&["ps"]).stdout.contains("needs approval").then_some(()));
    assert_eq!(scene.provost(&["pause", "last"]).status, 0);
    let suspended = running.end();
    assert_eq!(suspended.status, 4, "{suspended:?}");
    assert!(suspended.stderr.contains("1 tidy waits for approval: shell echo swept"), "{suspended:?}");
    assert_eq!(scene.provost(&["approve"]).status, 0);
    assert_eq!(scene.provost(&["resume", "last"]).stdout, "tidied\n");
}

#[test]
fn the_terminal_asks_for_a_sub_agent_and_says_which() {
    let scene = wants();
    let shown = on_terminal(&scene, &["run", "x"], &[("v whole text", "y\n")]);
    assert_eq!(shown.status, 0, "{shown:?}");
    assert!(shown.stdout.contains("1 tidy │ "), "{shown:?}");
    assert_eq!(std::fs::read_to_string(scene.path("work/effects")).unwrap(), "swept\n");
}

#[test]
fn the_status_line_says_how_many_agents_work() {
    let scene = Scene::scripted(TEAM).with_settings(DEEP);
    let touch = format!("!touch {0}/go-beside {0}/go-below", scene.path("work").display());
    let shown = on_terminal(&scene, &["run", "x"], &[("4 of 8 agents at work", &touch)]);
    assert_eq!(shown.status, 0, "{shown:?}");
    assert!(shown.stdout.contains("3 below │ ✓ shell echo"), "{shown:?}");
}
