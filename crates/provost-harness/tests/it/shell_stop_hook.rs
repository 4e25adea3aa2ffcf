//! Shell stop hooks with real shells: the right verdict, no hang, nothing left running.

use std::path::Path;
use std::time::{Duration, Instant};

use provost_event::{RunId, SessionId, StopHookVerdict};
use provost_harness::{ShellStopHook, StopHookContext, StopHookHandler};
use tokio_util::sync::CancellationToken;

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn context(&self, final_text: &str) -> StopHookContext {
        let run_id = RunId::from_entropy(7);
        StopHookContext {
            hook_event_name: "Stop",
            run_id,
            session_id: SessionId::root(run_id),
            cwd: self.path().to_owned(),
            transcript_path: None,
            final_text: Some(final_text.to_owned()).filter(|text| !text.is_empty()),
            last_assistant_message: final_text.to_owned(),
            iterations: 3,
            tool_calls: 5,
            tool_calls_made: 5,
            stop_reason: "end_turn",
            stop_hook_active: false,
        }
    }

    async fn verdict_within(&self, command: &str, timeout: Duration) -> StopHookVerdict {
        let hook = ShellStopHook {
            name: "hook".into(),
            command: command.into(),
            timeout,
            ends_within: None,
            confinement: provost_process::Confinement::Strongest,
        };
        hook.evaluate(&self.context("done"), &CancellationToken::new()).await
    }

    async fn verdict(&self, command: &str) -> StopHookVerdict {
        self.verdict_within(command, Duration::from_secs(20)).await
    }

    /// How many processes run in the scene's folder.
    fn left_running(&self) -> usize {
        let here = self.path().canonicalize().expect("a path");
        let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
        processes
            .filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == here))
            .count()
    }
}

#[tokio::test]
async fn exit_statuses_mean_allow_block_halt_and_error() {
    let scene = Scene::new();
    assert_eq!(scene.verdict("exit 0").await, StopHookVerdict::Allow);
    assert_eq!(scene.verdict("echo why; exit 2").await, StopHookVerdict::Block("why".into()));
    assert_eq!(scene.verdict("echo why >&2; exit 2").await, StopHookVerdict::Block("why".into()));
    assert_eq!(scene.verdict("exit 2").await, StopHookVerdict::Block("it gave no reason".into()));
    assert_eq!(scene.verdict("echo no; exit 3").await, StopHookVerdict::Halt("no".into()));
    let error = StopHookVerdict::Error("exit status 101: oops\nand why".into());
    assert_eq!(scene.verdict("echo oops; echo and why >&2; exit 101").await, error);
    assert_eq!(
        scene.verdict("exit 1").await,
        StopHookVerdict::Error("exit status 1: it printed nothing".into())
    );
}

#[tokio::test]
async fn a_check_that_could_not_be_run_is_told_from_one_that_fails() {
    let scene = Scene::new();
    assert_eq!(scene.verdict("kill -9 $$").await, StopHookVerdict::Broken("killed by signal 9".into()));
    assert_eq!(
        scene.verdict("echo no; exit 126").await,
        StopHookVerdict::Broken("exit status 126: no".into())
    );
    let StopHookVerdict::Broken(why) = scene.verdict("no-such-program-at-all").await else { panic!() };
    assert!(why.starts_with("exit status 127") && why.contains("no-such-program-at-all"), "{why}");
}

#[tokio::test]
async fn of_a_long_output_the_end_is_the_reason() {
    let scene = Scene::new();
    let StopHookVerdict::Error(why) = scene.verdict("seq 1 100000; echo it failed; exit 101").await else {
        panic!()
    };
    assert!(why.starts_with("exit status 101: [") && why.ends_with("\n99999\n100000\nit failed"), "{why}");
    assert!(why.len() < 4_200, "{} bytes", why.len());
}

#[tokio::test]
async fn other_harnesses_names_stand_beside_ours_and_no_text_is_null() {
    let scene = Scene::new();
    let hook = ShellStopHook::new("hook", "cat > context.json");
    hook.evaluate(&scene.context(""), &CancellationToken::new()).await;
    let text = std::fs::read_to_string(scene.path().join("context.json")).expect("it was written there");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        (&json["final_text"], &json["last_assistant_message"]),
        (&serde_json::Value::Null, &"".into())
    );
    assert_eq!((&json["tool_calls"], &json["tool_calls_made"]), (&5.into(), &5.into()));
}

#[tokio::test]
async fn it_reads_the_context_as_json_and_works_in_the_workspace() {
    let scene = Scene::new();
    assert_eq!(scene.verdict("cat > context.json").await, StopHookVerdict::Allow);
    let text = std::fs::read_to_string(scene.path().join("context.json")).expect("it was written there");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["final_text"], "done");
    assert_eq!(json["iterations"], 3);
    assert_eq!(json["tool_calls"], 5);
    assert_eq!(json["hook_event_name"], "Stop");
    assert_eq!(json["session_id"], "000000000007.0");
}

#[tokio::test]
async fn one_that_never_reads_its_input_does_not_hang() {
    let scene = Scene::new();
    let hook = ShellStopHook::new("hook", "exit 2");
    let context = scene.context(&"x".repeat(1 << 20));
    let verdict = hook.evaluate(&context, &CancellationToken::new()).await;
    assert_eq!(verdict, StopHookVerdict::Block("it gave no reason".into()));
}

#[tokio::test]
async fn ten_megabytes_of_output_are_drained_and_64_kib_kept() {
    let scene = Scene::new();
    let verdict = scene.verdict("head -c 10485760 /dev/zero | tr '\\0' x; exit 2").await;
    let StopHookVerdict::Block(reason) = verdict else { panic!("{verdict:?}") };
    assert!(reason.starts_with("xxx") && reason.ends_with("xxx"), "its beginning and its end");
    assert!(reason.len() < 65 * 1024, "{} bytes", reason.len());
}

#[tokio::test]
async fn a_child_that_keeps_the_output_open_does_not_hold_up_the_verdict() {
    let scene = Scene::new();
    let started = Instant::now();
    assert_eq!(scene.verdict("sleep 600 & echo why; exit 2").await, StopHookVerdict::Block("why".into()));
    assert!(started.elapsed() < Duration::from_secs(15));
    assert_eq!(scene.left_running(), 0);
}

#[tokio::test]
async fn a_child_with_a_session_of_its_own_ends_too() {
    let scene = Scene::new();
    let verdict = scene.verdict("setsid sh -c 'trap \"\" TERM HUP; sleep 600; :' & sleep 0.1; exit 0").await;
    assert_eq!(verdict, StopHookVerdict::Allow);
    assert_eq!(scene.left_running(), 0);
}

#[tokio::test]
async fn one_that_hangs_is_ended_with_everything_it_started() {
    let scene = Scene::new();
    let verdict =
        scene.verdict_within("sleep 600 & trap '' TERM; sleep 600; :", Duration::from_millis(200)).await;
    assert_eq!(verdict, StopHookVerdict::TimedOut(200));
    assert_eq!(scene.left_running(), 0);
}

#[tokio::test]
async fn one_that_is_not_there_is_an_error() {
    let scene = Scene::new();
    let verdict = scene.verdict("./no-such-hook").await;
    let StopHookVerdict::Broken(message) = verdict else { panic!("{verdict:?}") };
    assert!(message.starts_with("exit status 127") && message.contains("no-such-hook"), "{message}");
}

#[tokio::test]
async fn a_workspace_that_is_gone_is_an_error() {
    let scene = Scene::new();
    let mut context = scene.context("done");
    context.cwd = scene.path().join("gone");
    let verdict = ShellStopHook::new("hook", "exit 0").evaluate(&context, &CancellationToken::new()).await;
    let StopHookVerdict::Broken(message) = verdict else { panic!("{verdict:?}") };
    assert!(message.contains("gone"), "{message}");
}

#[tokio::test]
async fn cancelling_ends_it_at_once() {
    let scene = Scene::new();
    let cancel = CancellationToken::new();
    let hook = ShellStopHook::new("hook", "touch started; sleep 600");
    let context = scene.context("done");
    let marker = scene.path().join("started");
    let cancel_when_it_runs = async {
        while !marker.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (verdict, ()) = tokio::join!(hook.evaluate(&context, &cancel), cancel_when_it_runs);
    assert_eq!(verdict, StopHookVerdict::Error("cancelled".into()));
    assert_eq!(scene.left_running(), 0);
}

#[tokio::test]
async fn it_cannot_see_keys_in_the_environment() {
    let scene = Scene::new();
    assert_eq!(scene.verdict("env > environment").await, StopHookVerdict::Allow);
    let text = std::fs::read_to_string(scene.path().join("environment")).expect("it was written there");
    // Cargo sets this for every test it runs.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!text.contains("CARGO_MANIFEST_DIR"), "{text}");
}
