//! Services: commands that agents keep running after their runs, from outside.

use std::ops::Deref;
use std::process::Command;

use serde_json::Value;

use crate::support::{Scene, gone, json, line_in, until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_provost");
const ALLOWED: &str = "[permissions]\ndefault = \"allow\"\nallow = [\"keep_running\"]\n";

/// A scene whose services end with it, also where the test fails.
struct Kept(Scene);

impl Kept {
    fn with(answers: &str, settings: &str) -> Self {
        Self(Scene::scripted(answers).with_settings(settings).trusted())
    }

    fn allowed(answers: &str) -> Self {
        Self::with(answers, ALLOWED)
    }

    fn listed(&self, args: &[&str]) -> Vec<Value> {
        let args = [&["services", "--json"], args].concat();
        let listed = self.provost(&args);
        assert_eq!(listed.status, 0, "{listed:?}");
        listed.stdout.lines().map(json).collect()
    }

    fn pid(&self, name: &str) -> String {
        let listed = self.listed(&["--all"]);
        let service = listed.iter().find(|service| service["name"] == name).expect("a service");
        service["pid"].to_string()
    }

    fn entries(&self, kind: &str) -> Vec<Value> {
        let logs = self.provost(&["logs", "last", "--json"]);
        assert_eq!(logs.status, 0, "{logs:?}");
        logs.stdout.lines().map(json).filter(|entry| entry["type"] == kind).collect()
    }
}

impl Deref for Kept {
    type Target = Scene;

    fn deref(&self) -> &Scene {
        &self.0
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        for service in self.provost(&["services", "--json"]).stdout.lines().map(json) {
            kill(&service["pid"].to_string(), "KILL");
        }
    }
}

fn kill(pid: &str, signal: &str) {
    let killed = Command::new("kill").args(["-s", signal, pid]).status().unwrap();
    assert!(killed.success(), "kill -s {signal} {pid}");
}

fn lives(pid: &str) -> bool {
    Command::new("kill").args(["-0", pid]).output().unwrap().status.success()
}

const SERVER: &str = "
answers:
  - tools: [{ shell: { command: \"echo $$ > server.pid; echo ready > served; echo hello; exec sleep 1000\", keep_running: true, service: web } }]
  - expect: { tool_result: { tool: shell, contains: \"service `web` runs; its output goes to \" } }
    tools: [{ shell: { command: \"until test -e served; do sleep 0.02; done; cat served\" } }]
  - expect: { tool_result: { tool: shell, contains: ready } }
    tools: [{ jobs: {} }]
  - expect: { tool_result: { tool: jobs, contains: \"service web (`echo $$ > server.pid\" } }
    tools: [{ jobs: { job: web } }]
  - expect: { tool_result: { tool: jobs, contains: hello } }
    text: served
  - text: again
";

#[test]
fn a_service_is_used_two_turns_later_goes_on_after_the_run_and_is_ended_by_name() {
    let scene = Kept::allowed(SERVER);
    let ran = scene.provost(&["run", "x"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "served\n"), "{ran:?}");
    assert!(ran.stderr.contains("service `web` goes on, until "), "{ran:?}");
    assert!(ran.stderr.contains("end it with: provost services stop web"), "{ran:?}");
    let server = line_in(&scene.path("work/server.pid"));
    assert!(lives(&server));

    let listed = scene.listed(&[]);
    assert_eq!(listed.len(), 1, "{listed:#?}");
    let service = &listed[0];
    assert_eq!((&service["name"], &service["state"]), (&"web".into(), &"running".into()));
    assert_eq!(service["run"], scene.last_run().as_str());
    assert_eq!(service["workspace"], scene.path("work").canonicalize().unwrap().to_str().unwrap());
    let day = service["expires_at_ms"].as_u64().unwrap() - service["started_at_ms"].as_u64().unwrap();
    assert_eq!(day, 24 * 60 * 60 * 1_000);
    let table = scene.provost(&["services"]).stdout;
    assert!(table.contains("web") && table.contains("running"), "{table}");
    assert_eq!(scene.provost(&["services", "logs", "web"]).stdout, "hello\n");
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains("services    web: runs (pid "), "{shown}");
    let ps = scene.provost(&["ps"]).stdout;
    assert!(ps.contains("services that go on: web (of "), "{ps}");
    assert_eq!(json(scene.provost(&["ps", "--json"]).stdout.trim())["services"][0], "web");
    assert_eq!(
        json(scene.provost(&["show", "last", "--json"]).stdout.trim())["kept_services"][0]["name"],
        "web"
    );
    let finished = scene.entries("tool_finished");
    assert_eq!(finished[0]["facts"]["service"]["name"], "web", "{finished:#?}");

    let stopped = scene.provost(&["services", "stop", "web"]);
    assert_eq!(stopped.stdout, "service web: was ended by `provost services stop`\n", "{stopped:?}");
    gone(&server);
    assert_eq!(scene.listed(&[]).len(), 0);
    let noted = scene.entries("service_noted");
    assert_eq!(noted.len(), 1, "{noted:#?}");
    assert_eq!(noted[0]["event"]["ended"]["how"], "was ended by `provost services stop`");
    let again = scene.provost(&["services", "stop", "web"]);
    assert_eq!((again.status, again.stdout.contains("already")), (0, true), "{again:?}");
    let unknown = scene.provost(&["services", "stop", "nothing"]);
    assert_eq!(unknown.status, 2, "{unknown:?}");
    assert!(unknown.stderr.contains("there is no service `nothing`"), "{unknown:?}");
}

const DENIED: &str = "
answers:
  - tools: [{ shell: { command: sleep 1000, keep_running: true } }]
  - expect: { tool_result: { tool: shell, contains: keep_running } }
    text: done
";

/// Also where everything else is allowed: only a pattern that names the permission counts.
#[test]
fn unattended_a_service_needs_a_permission_of_its_own_and_the_refusal_names_it() {
    for settings in [
        "",
        "[permissions]\nallow = [\"*\"]\n",
        "[permissions]\nallow = [\"shell(sleep *)\", \"keep_running(npm *)\"]\n",
    ] {
        let scene = Kept::with(DENIED, settings);
        let ran = scene.provost(&["run", "x"]);
        assert_eq!((ran.status, ran.stdout.as_str()), (0, "done\n"), "{settings}: {ran:?}");
        let finished = scene.entries("tool_finished");
        assert_eq!(finished[0]["status"], "denied", "{settings}: {finished:#?}");
        let said = finished[0]["output"].as_str().unwrap();
        assert!(said.contains("`allow = [\"keep_running(COMMAND)\"]` in [permissions]"), "{said}");
        assert_eq!(scene.listed(&["--all"]).len(), 0);
    }
}

const BOXED: &str = "
answers:
  - tools: [{ shell: { command: \"echo x > ../outside; echo $$ > inside; exec sleep 1000\", keep_running: true, service: web } }]
  - text: done
";

#[test]
fn a_service_of_an_agent_in_a_sandbox_runs_in_a_box_of_the_same_policy_and_leaves_nothing() {
    let scene = Kept::with(BOXED, &format!("{ALLOWED}[sandbox]\nmode = \"workspace\"\n"));
    let ran = scene.provost(&["run", "x"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "done\n"), "{ran:?}");
    until("it runs in the workspace", || scene.path("work/inside").exists().then_some(()));
    assert!(!scene.path("outside").exists(), "it writes nothing beside the workspace");
    assert_eq!(scene.listed(&[]).len(), 1, "it goes on after the run");
    assert!(scene.path("work/.envrc").exists(), "its box still covers names");
    let pid = scene.pid("web");
    let stopped = scene.provost(&["services", "stop", "web"]);
    assert_eq!(stopped.status, 0, "{stopped:?}");
    gone(&pid);
    assert!(!scene.path("work/.envrc").exists(), "covers are removed with it");
}

#[test]
fn a_pattern_allows_some_commands_to_go_on_and_no_others() {
    let answers = "
answers:
  - tools: [{ shell: { command: sleep 1000, keep_running: true } }]
  - tools: [{ shell: { command: \"sleep 1000; rm -rf x\", keep_running: true } }]
  - text: done
";
    let settings = "[permissions]\ndefault = \"allow\"\nallow = [\"keep_running(sleep *)\"]\n";
    let scene = Kept::with(answers, settings);
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let finished = scene.entries("tool_finished");
    assert_eq!(
        (&finished[0]["status"], &finished[1]["status"]),
        (&"ok".into(), &"denied".into()),
        "{finished:#?}"
    );
    assert_eq!(scene.listed(&[]).len(), 1);
}

const KILLED: &str = "
answers:
  - tools: [{ shell: { command: \"echo $$ > server.pid; exec sleep 1000\", keep_running: true, service: web } }]
  - tools: [{ shell: { command: \"echo > waits; sleep 1000\", timeout_secs: 600 } }]
  - expect: { contains: \"Services that you started still run: web (`echo $$ > server.pid\" }
    text: told
  - text: told again
";

#[test]
fn a_service_outlives_kill_9_of_provost_and_the_agent_is_told_after_the_resume() {
    let scene = Kept::allowed(KILLED);
    let running = scene.start(&["run", "x"]);
    let server = line_in(&scene.path("work/server.pid"));
    until("the agent waits", || scene.path("work/waits").exists().then_some(()));
    running.kill();
    assert!(lives(&server), "it went on");
    assert_eq!(scene.listed(&[]).len(), 1);
    let resumed = scene.provost(&["resume", "last"]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "told\n"), "{resumed:?}");
    assert!(lives(&server));
    let cancelled = scene.provost(&["cancel", "last"]);
    assert_eq!(cancelled.stdout, "service web: was ended by `provost cancel`\n", "{cancelled:?}");
    gone(&server);
    assert_ne!(scene.provost(&["cancel", "last"]).status, 0, "there is nothing left to end");
}

#[test]
fn a_service_ends_with_its_supervisor_and_the_log_says_so_at_the_next_resume() {
    let scene = Kept::allowed(SERVER);
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let server = line_in(&scene.path("work/server.pid"));
    kill(&scene.pid("web"), "KILL");
    gone(&server);
    assert_eq!(scene.listed(&[]).len(), 0);
    let ended = scene.listed(&["--all"]);
    assert_eq!(ended[0]["state"], "ended");
    assert!(ended[0]["how"].as_str().unwrap().contains("its supervisor was killed"), "{ended:#?}");
    let resumed = scene.provost(&["resume", "last", "and now"]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "again\n"), "{resumed:?}");
    let noted = scene.entries("service_noted");
    assert!(noted[0]["event"]["ended"]["how"].as_str().unwrap().contains("was killed"), "{noted:#?}");
    let told = scene.entries("system_item");
    let is_told =
        |item: &Value| item["body"].as_str().unwrap().contains("Services that have ended meanwhile: web");
    assert_eq!(told.iter().filter(|item| is_told(item)).count(), 1, "{told:#?}");
}

/// The mark of a run is inherited by what outlives it: after the end, and under another name.
#[test]
fn a_kept_service_has_no_rights_to_act_on_runs() {
    let answers = "
answers:
  - tools: [{ shell: { command: sh serve.sh, keep_running: true, service: web } }]
  - text: done
";
    let scene = Kept::allowed(answers);
    let state = scene.path("state");
    let script = format!(
        "export PROVOST_STATE_DIR='{}'; cp '{PROGRAM}' other; until test -e go; do sleep 0.02; done\n\
         for act in 'run x' 'resume last' 'cancel last' 'services stop web' 'say last hi' 'trust --yes'; do\n\
         ./other $act >> out 2>&1; echo \"$?\" >> out; done; echo end >> out; exec sleep 1000\n",
        state.display()
    );
    scene.write("work/serve.sh", &script);
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    scene.write("work/go", "");
    let out = until("it has tried", || {
        let out = std::fs::read_to_string(scene.path("work/out")).ok()?;
        out.ends_with("end\n").then_some(out)
    });
    let run = scene.last_run();
    assert_eq!(out.matches(&format!("this was started by run {run}")).count(), 6, "{out}");
    assert_eq!(out.matches("\n2\n").count(), 6, "{out}");
    assert_eq!(scene.listed(&[]).len(), 1, "it still runs");
}

const TWO: &str = "
answers:
  - tools: [{ shell: { command: sleep 1000, keep_running: true, service: web } }]
  - tools: [{ shell: { command: sleep 1001, keep_running: true, service: web } }]
  - expect: { tool_result: { tool: shell, contains: a service `web` runs already } }
    tools: [{ shell: { command: sleep 1002, keep_running: true } }]
  - tools: [{ shell: { command: sleep 1003, keep_running: true } }]
  - tools: [{ shell: { command: sleep 1004, keep_running: true, service: ../web } }]
  - tools: [{ jobs: { job: web, stop: true } }]
  - expect: { tool_result: { tool: jobs, contains: was ended by the agent } }
    tools: [{ shell: { command: sleep 1005, keep_running: true, service: web } }]
  - text: done
";

#[test]
fn a_name_is_taken_while_its_service_runs_and_numbered_where_none_was_asked_for() {
    let scene = Kept::allowed(TWO);
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let services = scene.listed(&[]);
    let named = services.iter().map(|one| format!("{}: {}", one["name"], one["command"])).collect::<Vec<_>>();
    let expected = ["\"sleep\": \"sleep 1002\"", "\"sleep-2\": \"sleep 1003\"", "\"web\": \"sleep 1005\""];
    assert_eq!(named, expected);
    let finished = scene.entries("tool_finished");
    let statuses = finished.iter().map(|entry| entry["status"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(statuses, ["ok", "rejected", "ok", "ok", "rejected", "ok", "ok"]);
    let items = scene.entries("system_item");
    assert!(items.iter().all(|item| item["item"] != "service_ended"), "it ended it itself: {items:#?}");
}

#[test]
fn a_service_that_ignores_sigterm_is_killed_after_the_grace() {
    let answers = "
answers:
  - tools: [{ shell: { command: \"trap '' TERM; echo $$ > server.pid; while :; do sleep 0.1; done\", keep_running: true, service: web } }]
  - text: done
";
    let scene = Kept::allowed(answers);
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let server = line_in(&scene.path("work/server.pid"));
    let began = std::time::Instant::now();
    let stopped = scene.provost(&["services", "stop", "web"]);
    assert_eq!(stopped.status, 0, "{stopped:?}");
    let took = began.elapsed().as_secs();
    assert!((4..20).contains(&took), "{took} s");
    gone(&server);
}

#[test]
fn a_service_ends_when_its_time_is_over_while_the_agent_works_and_the_agent_is_told() {
    let answers = "
answers:
  - tools: [{ shell: { command: sleep 1000, keep_running: true, service: web } }]
  - tools: [{ shell: { command: sleep 2.5 } }]
  - expect: { contains: \"The service `web` has ended: its time of 1 s was over.\" }
    text: done
";
    let settings = format!("{ALLOWED}[limits]\nkeep_running_max = \"1s\"\n");
    let scene = Kept::with(answers, &settings);
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(!ran.stderr.contains("goes on, until"), "{ran:?}");
    assert_eq!(scene.entries("service_noted").len(), 1);
}

/// After a restart of the machine, or long after, another process may have the id of a supervisor.
#[test]
fn a_stranger_with_the_id_of_a_supervisor_is_left_alone() {
    let scene = Kept::allowed(SERVER);
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let pid = scene.pid("web");
    let file = scene.path("state/services/web.json");
    let mut stranger = Command::new("sleep").arg("1000").spawn().unwrap();
    let record = std::fs::read_to_string(&file).unwrap();
    let own = json(&record);
    for (field, other) in [("started", "17"), ("boot", "another")] {
        let mut forged = own.clone();
        forged["supervisor"]["pid"] = stranger.id().into();
        match field {
            "started" => forged["supervisor"]["started"] = other.parse::<u64>().unwrap().into(),
            _ => {
                let stat = std::fs::read_to_string(format!("/proc/{}/stat", stranger.id())).unwrap();
                let started = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap();
                forged["supervisor"]["started"] = started.parse::<u64>().unwrap().into();
                forged["boot"] = other.into();
            }
        }
        std::fs::write(&file, forged.to_string()).unwrap();
        let stopped = scene.provost(&["services", "stop", "web"]);
        assert!(stopped.stdout.contains("already: has ended"), "{field}: {stopped:?}");
        assert!(stranger.try_wait().unwrap().is_none(), "{field}: it was killed");
    }
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    kill(&pid, "TERM");
    gone(&pid);
}

#[test]
fn a_service_that_ends_at_once_is_an_error_with_its_output() {
    let answers = "
answers:
  - tools: [{ shell: { command: \"echo the port is taken; exit 7\", keep_running: true, service: web } }]
  - expect: { tool_result: { tool: shell, contains: \"the service `web` has ended with exit status 7\\nthe port is taken\" } }
    text: done
";
    let scene = Kept::allowed(answers);
    let ran = scene.provost(&["run", "x"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "done\n"), "{ran:?}");
    assert_eq!(scene.listed(&[]).len(), 0);
}

#[test]
fn output_is_followed_until_the_service_ends_and_prune_forgets_it_with_its_run() {
    let answers = "
answers:
  - tools: [{ shell: { command: \"echo one; until test -e go; do sleep 0.02; done; echo two\", keep_running: true, service: web } }]
  - text: done
";
    let scene = Kept::allowed(answers);
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let follows = scene.start(&["services", "logs", "web", "-f"]);
    scene.write("work/go", "");
    let followed = follows.end();
    assert_eq!((followed.status, followed.stdout.as_str()), (0, "one\ntwo\n"), "{followed:?}");
    until("its end is in the log", || (scene.entries("service_noted").len() == 1).then_some(()));
    assert_eq!(scene.listed(&["--all"]).len(), 1);
    let pruned = scene.provost(&["prune", "--yes", "--keep", "0"]);
    assert_eq!(pruned.status, 0, "{pruned:?}");
    assert_eq!(scene.listed(&["--all"]).len(), 0);
    let left = std::fs::read_dir(scene.path("state/services")).unwrap().flatten();
    assert_eq!(left.filter(|file| file.file_name() != ".lock").count(), 0);
}
