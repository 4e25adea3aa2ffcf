//! The machine is kept awake while an agent works, by the calls to a fake logind.

use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Done, Scene, done, until};

#[path = "../../../provost-power/tests/it/logind.rs"]
pub(crate) mod logind;

use logind::{Logind, Manner};

/// Its tool works until there is a file `go`.
const WORKS: &str = "
answers:
  - tools:
      - shell: { command: 'echo $$ > up; until [ -e go ]; do sleep 0.01; done' }
  - text: done
";

const IDLE: &str = "Provost, Provost agent loop: idle, block";
const SLEEP: &str = "Provost, Provost agent loop: sleep, block";

/// A run whose system bus is at an address.
struct Run<'a> {
    scene: &'a Scene,
    child: Option<Child>,
}

impl<'a> Run<'a> {
    fn start(scene: &'a Scene, address: &str) -> Self {
        let mut command = scene.command(&["run", "go"]);
        command.env("DBUS_SYSTEM_BUS_ADDRESS", address).env("PROVOST_LOG", "provost_power=debug");
        let errors = File::create(scene.path("said")).unwrap();
        let child = command.stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
        Self { scene, child: Some(child) }
    }

    #[track_caller]
    fn wait_for_the_tool(&self) {
        until("its tool works", || self.scene.path("work/up").exists().then_some(()));
    }

    /// Lets its tool end.
    fn go(&self) {
        self.scene.write("work/go", "");
    }

    fn signal(&self, name: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(
            std::process::Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success()
        );
    }

    #[track_caller]
    fn end(mut self) -> Done {
        let child = self.child.as_mut().unwrap();
        until("the run ends", || child.try_wait().unwrap());
        done(&self.child.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// A run's output lines about keeping the machine awake.
fn said(scene: &Scene) -> Vec<String> {
    let said = fs::read_to_string(scene.path("said")).unwrap();
    said.lines().filter(|line| line.contains("provost_power")).map(str::to_owned).collect()
}

#[test]
fn a_run_keeps_the_machine_awake_until_it_ends() {
    let (logind, scene) = (Logind::start(Manner::Grants), Scene::scripted(WORKS));
    let run = Run::start(&scene, logind.address());
    logind.wait_until_held(1);
    run.wait_for_the_tool();
    assert_eq!(logind.held(), [IDLE]);
    run.go();
    let ended = run.end();
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "done\n"), "{ended:?}");
    logind.wait_until_held(0);
    assert_eq!(logind.asked(), [IDLE], "its steps share one request");
}

#[test]
fn a_setting_holds_off_sleep_too_and_its_refusal_leaves_idling_held_off() {
    for (manner, held) in [(Manner::Grants, &[IDLE, SLEEP][..]), (Manner::RefusesSleep, &[IDLE])] {
        let scene = Scene::scripted(WORKS).with_settings("block_sleep = true\n");
        let logind = Logind::start(manner);
        let run = Run::start(&scene, logind.address());
        logind.wait_until_asked(2);
        run.wait_for_the_tool();
        logind.wait_until_held(held.len());
        assert_eq!(logind.held(), held);
        run.go();
        assert_eq!(run.end().status, 0);
    }
}

#[test]
fn an_interrupted_run_lets_the_machine_sleep() {
    let (logind, scene) = (Logind::start(Manner::Grants), Scene::scripted(WORKS));
    let run = Run::start(&scene, logind.address());
    logind.wait_until_held(1);
    run.wait_for_the_tool();
    run.signal("INT");
    assert_eq!(run.end().status, 130);
    logind.wait_until_held(0);
}

/// Its tool's processes don't hold the lock either, though they may outlive Provost briefly.
#[test]
fn a_killed_run_lets_the_machine_sleep() {
    let (logind, scene) = (Logind::start(Manner::Grants), Scene::scripted(WORKS));
    let run = Run::start(&scene, logind.address());
    logind.wait_until_held(1);
    run.wait_for_the_tool();
    run.signal("KILL");
    logind.wait_until_held(0);
}

#[test]
fn while_approval_is_waited_for_the_machine_may_sleep() {
    let scene = Scene::scripted(WORKS).with_settings("[permissions]\nask = [\"shell\"]\n");
    let logind = Logind::start(Manner::Grants);
    let run = Run::start(&scene, logind.address());
    logind.wait_until_held(1);
    logind.wait_until_held(0);
    assert!(scene.provost(&["ps"]).stdout.contains("needs approval"));
    assert_eq!(scene.provost(&["approve"]).status, 0);
    logind.wait_until_held(1);
    run.wait_for_the_tool();
    run.go();
    assert_eq!(run.end().status, 0);
}

#[test]
fn a_setting_lets_the_machine_sleep() {
    let scene = Scene::scripted(WORKS).with_settings("keep_awake = false\n");
    let logind = Logind::start(Manner::Grants);
    let run = Run::start(&scene, logind.address());
    run.wait_for_the_tool();
    run.go();
    assert_eq!(run.end().status, 0);
    assert_eq!(logind.asked(), [""; 0]);
}

#[test]
fn a_logind_that_never_answers_holds_up_no_run() {
    let (logind, scene) = (Logind::start(Manner::NeverAnswers), Scene::scripted(WORKS));
    let began = Instant::now();
    let run = Run::start(&scene, logind.address());
    logind.wait_until_asked(1);
    run.wait_for_the_tool();
    run.go();
    assert_eq!(run.end().status, 0);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn without_a_bus_a_run_goes_on_and_says_so_once() {
    let scene = Scene::scripted(WORKS);
    let run = Run::start(&scene, "unix:path=/nowhere/bus");
    run.wait_for_the_tool();
    let told = until("it says so", || Some(said(&scene)).filter(|said| !said.is_empty()));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("the machine may fall asleep while agents work"), "{told:?}");
    assert!(told[0].contains("idle: system: Failed to connect to address"), "{told:?}");
    run.go();
    let ended = run.end();
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "done\n"), "{ended:?}");
    assert_eq!(said(&scene), told);
}
