//! `shell` in the background, and `jobs`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use provost_event::{Json, Timestamp, ToolStatus};
use provost_harness::{ServiceStarter, Services, SimulatedClock, ToolOutput, ToolRegistry};
use provost_tools::{BackgroundJobs, builtin_with};
use serde_json::{Value, json};

use crate::fixture::Fixture;
use crate::shell::runs;

/// Tools whose jobs outlast a call.
struct Scene {
    fixture: Fixture,
    tools: ToolRegistry,
    clock: Arc<SimulatedClock>,
}

impl Scene {
    fn new() -> Self {
        let fixture = Fixture::new();
        let clock = Arc::new(SimulatedClock::at(Timestamp(0)));
        let jobs = BackgroundJobs::in_folder(fixture.outside().join("jobs")).with_clock(clock.clone());
        let tools = builtin_with(jobs, no_services(&fixture));
        Self { fixture, tools, clock }
    }

    async fn call(&self, tool: &str, input: Value) -> ToolOutput {
        self.tools.get(tool).unwrap().call(&Json::of(&input).unwrap(), &self.fixture.context()).await
    }

    async fn start(&self, command: &str) -> ToolOutput {
        self.call("shell", json!({ "command": command, "background": true })).await
    }

    async fn jobs(&self, input: Value) -> String {
        let output = self.call("jobs", input).await;
        assert_eq!(output.status, ToolStatus::Ok, "{output:?}");
        output.text
    }

    fn over(&self) {
        let session = match self.fixture.context().effect.actor {
            provost_event::ActorKey::Session(session) => session,
            provost_event::ActorKey::Run(_) => unreachable!("calls are an agent's"),
        };
        self.tools.get("shell").unwrap().session_over(session);
        self.tools.get("jobs").unwrap().session_over(session);
    }
}

/// Services whose supervisor can't be started.
fn no_services(fixture: &Fixture) -> ServiceStarter {
    ServiceStarter {
        services: Services::in_folder(fixture.outside().join("services")),
        program: "/no/such/program".into(),
        args: Vec::new(),
        keep: Duration::from_secs(1),
    }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits that are over can be repeated for as long as the build takes; they are no circle, and the end is told.
#[tokio::test]
async fn a_build_of_more_than_twenty_minutes_is_waited_for() {
    let scene = Scene::new();
    let began = Instant::now();
    let started =
        scene.start("echo compiling; until test -e go; do sleep 0.02; done; echo built; exit 3").await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(
        started
            .text
            .starts_with("job1 runs in the background; read_file and search take its output as path "),
        "{started:?}"
    );
    let log = scene.fixture.outside().join("jobs");
    assert!(!started.text.contains(log.to_str().unwrap()), "it can't read it: {started:?}");
    assert_eq!(started.facts.jobs.as_ref().map(Vec::len), Some(1), "{started:?}");
    let first = loop {
        let text = scene.jobs(json!({ "job": "job1" })).await;
        if text.ends_with("\ncompiling") {
            break text;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert!(first.contains(
        "job1 (`echo compiling; until test -e go; do sleep 0.02; done; echo built; exit 3`): running"
    ));

    for waited in [590, 1_180, 1_770] {
        let wait = scene.call("jobs", json!({ "job": "job1", "wait_secs": 100_000 }));
        let (output, _) = tokio::join!(wait, scene.clock.advance_to_next_sleeper());
        assert!(output.facts.waited && output.status == ToolStatus::Ok, "{output:?}");
        assert!(output.text.contains(&format!("running for {waited} s\n")), "{output:?}");
    }

    std::fs::write(scene.fixture.path("go"), "").unwrap();
    let done = scene.call("jobs", json!({ "job": "job1", "wait_secs": 60 })).await;
    assert!(done.facts.waited && done.facts.jobs.as_ref().is_some_and(Vec::is_empty), "{done:?}");
    assert!(
        done.text.contains("ended with exit status 3, after 1770 s")
            && done.text.ends_with("compiling\nbuilt"),
        "{done:?}"
    );
    let again = scene.call("jobs", json!({ "job": "job1", "wait_secs": 590 })).await;
    assert!(!again.facts.waited, "an ended job isn't waited for: {again:?}");
    assert_eq!(again.text, done.text);
}

#[tokio::test]
async fn a_server_serves_the_next_calls_and_is_ended_by_name_with_all_it_started() {
    let scene = Scene::new();
    scene.start("sleep 1000.7531 & echo ready > served; wait").await;
    until("the server has begun", || scene.fixture.path("served").exists() && runs("1000.7531")).await;
    let read = scene.call("shell", json!({ "command": "cat served" })).await;
    assert_eq!(read.text, "ready");
    let listed = scene.jobs(json!({})).await;
    assert!(listed.starts_with("job1 (`sleep 1000.7531 &") && listed.contains(": running for "), "{listed}");
    let stopped = scene.jobs(json!({ "job": "job1", "stop": true })).await;
    assert!(stopped.contains("stopped as you asked, after "), "{stopped}");
    assert!(!runs("1000.7531"));
}

#[tokio::test]
async fn the_whole_output_of_a_job_is_read_and_searched_by_its_name() {
    let scene = Scene::new();
    let started = scene.start("seq 20000; echo needle").await;
    assert!(started.text.ends_with("take its output as path \"output:job1\""), "{started:?}");
    let shown = scene.jobs(json!({ "job": "job1", "wait_secs": 60 })).await;
    assert!(shown.contains("take the whole as path \"output:job1\""), "{shown}");
    let read = scene.call("read_file", json!({ "path": "output:job1", "offset": 7, "limit": 1 })).await;
    assert!(read.text.contains("7\t7"), "{read:?}");
    let found = scene.call("search", json!({ "path": "output:job1", "pattern": "needle|^19999$" })).await;
    assert!(found.text.contains("19999") && found.text.contains("20001"), "{found:?}");
    scene.over();
    let read = scene.call("read_file", json!({ "path": "output:job1", "offset": 20001 })).await;
    assert!(read.text.contains("needle"), "also when its session was suspended: {read:?}");
    let none = scene.call("read_file", json!({ "path": "output:job9" })).await;
    assert!(none.text.contains("there is no kept output `output:job9`"), "{none:?}");
}

#[tokio::test]
async fn a_folder_to_run_in_is_refused_with_what_to_do_instead() {
    let scene = Scene::new();
    for name in ["workdir", "cwd"] {
        let refused = scene.call("shell", json!({ "command": "touch made", name: "sub" })).await;
        assert_eq!(refused.status, ToolStatus::Rejected, "{refused:?}");
        assert!(refused.text.contains("`cd FOLDER && `"), "{refused:?}");
    }
    assert!(!scene.fixture.path("made").exists());
}

#[tokio::test]
async fn a_job_ends_with_its_session_and_a_later_process_says_so() {
    let scene = Scene::new();
    scene.start("sleep 1000.8642").await;
    scene.start("echo quick").await;
    scene.jobs(json!({ "job": "job2", "wait_secs": 60 })).await;
    until("the job has begun", || runs("1000.8642")).await;
    scene.over();
    until("the job is gone", || !runs("1000.8642")).await;

    let folder = scene.fixture.outside().join("jobs");
    let services = no_services(&scene.fixture);
    let later = Scene { tools: builtin_with(BackgroundJobs::in_folder(folder), services), ..scene };
    let listed = later.jobs(json!({})).await;
    let lines = listed.lines().collect::<Vec<_>>();
    assert!(
        lines[0].contains("no longer running: it was not seen to end before you were suspended"),
        "{listed}"
    );
    assert!(lines[1].contains("(`echo quick`): ended with exit status 0, after 0 s"), "{listed}");
    assert!(later.jobs(json!({ "job": "job2" })).await.ends_with("\nquick"));
    let next = later.start("true").await;
    assert!(next.text.starts_with("job3 "), "{next:?}");
}

#[tokio::test]
async fn at_most_eight_jobs_run_at_once_and_unknown_ones_are_named() {
    let scene = Scene::new();
    for _ in 0..8 {
        assert_eq!(scene.start("sleep 1000").await.status, ToolStatus::Ok);
    }
    let ninth = scene.start("sleep 1000").await;
    assert_eq!(ninth.status, ToolStatus::Error);
    assert!(ninth.text.starts_with("at most 8 background jobs at once: end one of job1, job2"), "{ninth:?}");
    let unknown = scene.call("jobs", json!({ "job": "server" })).await;
    assert_eq!(unknown.status, ToolStatus::Rejected);
    assert!(unknown.text.starts_with("there is no job `server`: there is job1, "), "{unknown:?}");
}

#[tokio::test]
async fn a_service_whose_supervisor_cannot_be_started_is_an_error_and_leaves_no_record() {
    let scene = Scene::new();
    let failed = scene.call("shell", json!({ "command": "sleep 1", "keep_running": true })).await;
    assert_eq!(failed.status, ToolStatus::Error, "{failed:?}");
    assert!(
        failed.text.contains("its supervisor could not be started: \"/no/such/program\" was not found"),
        "{failed:?}"
    );
    assert_eq!(scene.jobs(json!({})).await, "There are no background jobs.");
}

#[tokio::test]
async fn where_no_services_are_kept_the_call_is_rejected_and_says_what_to_use() {
    let rejected = Fixture::new().call("shell", json!({ "command": "sleep 1", "keep_running": true })).await;
    assert_eq!(rejected.status, ToolStatus::Rejected, "{rejected:?}");
    assert_eq!(rejected.text, "`keep_running` isn't possible here: use `background`");
}
