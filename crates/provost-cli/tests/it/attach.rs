//! A person at a program: `provost exec` attended, `provost attach`, and the reports to the outer terminal.

use provost_event::Exit;

use crate::support::{Scene, until};
use crate::terminal::AtTerminal;

const DETACH: &str = "\u{1c}";
/// Reads names and greets each, until the name `bye`.
const GREETER: &str =
    "while printf 'who? '; read who; do echo \"hello $who\"; [ \"$who\" = bye ] && exit; done";

#[test]
fn an_attended_program_has_the_terminal_and_gives_it_back() {
    let scene = Scene::new();
    scene.write("work/greeter.sh", GREETER);
    let provost = env!("CARGO_BIN_EXE_provost");
    let mut person =
        AtTerminal::shell(&scene, &format!("'{provost}' exec -- sh greeter.sh; echo status $?; stty -a"));
    person.sees("who?");
    person.types("ann\r");
    person.sees("hello ann");
    person.types("bye\r");
    assert_eq!(person.end(), Exit::Code(0));
    assert!(person.heard.contains("status 0"), "{:?}", person.heard);
    let after = person.heard.split("status 0").nth(1).unwrap();
    for mode in ["icanon", "echo", "isig", "opost"] {
        assert!(after.split_whitespace().any(|word| word == mode), "{mode}: {after}");
    }
    assert!(person.heard.contains("completed"), "the summary comes after: {:?}", person.heard);
}

#[test]
fn a_person_detaches_and_comes_back_from_another_terminal() {
    let scene = Scene::new();
    scene.write("work/greeter.sh", GREETER);
    // The terminal itself stays: what this one has started ends with it.
    let provost = env!("CARGO_BIN_EXE_provost");
    let script = format!("'{provost}' exec -- sh greeter.sh; echo status $?; exec sleep 1000");
    let mut first = AtTerminal::shell(&scene, &script);
    first.sees("who?");
    first.types("ann\r");
    first.sees("hello ann");
    first.types(DETACH);
    first.hears("detached; the run goes on");
    first.hears("status 0");
    let mut second = AtTerminal::provost(&scene, &["attach", "last"]);
    second.hears("Ctrl-\\ detaches");
    second.sees("hello ann");
    let mut watcher = AtTerminal::provost(&scene, &["attach", "last", "--read-only"]);
    watcher.sees("hello ann");
    watcher.types("eve\r");
    second.types("bob\r");
    second.sees("hello bob");
    watcher.sees("hello bob");
    assert!(!second.screen().contains("eve"), "{}", second.screen());
    second.types(DETACH);
    second.hears("detached; it goes on");
    assert_eq!(second.end(), Exit::Code(0));
    let mut third = AtTerminal::provost(&scene, &["attach", "last"]);
    third.sees("hello bob");
    third.types("bye\r");
    third.hears("the program has ended: exit status 0");
    assert_eq!(third.end(), Exit::Code(0));
    assert_eq!(watcher.end(), Exit::Code(0));
}

#[test]
fn a_killed_run_gives_an_attached_terminal_back() {
    let scene = Scene::new();
    let running = scene.start(&["exec", "--unattended", "--", "sh", "-c", GREETER]);
    let provost = env!("CARGO_BIN_EXE_provost");
    until("it runs", || scene.provost(&["explain", "last"]).stdout.contains("who?").then_some(()));
    let mut person = AtTerminal::shell(&scene, &format!("'{provost}' attach last; echo status $?; stty -a"));
    person.sees("who?");
    running.kill();
    person.hears("the program is no longer driven");
    person.hears("status 0");
    person.hears("isig icanon");
    person.end();
}

#[test]
fn what_cant_be_attached_to_is_told() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    assert_eq!(scene.provost(&["attach", "last"]).status, 2, "no terminal");
    let refused = |args: &[&str], part: &str| {
        let mut person = AtTerminal::provost(&scene, args);
        assert_eq!(person.end(), Exit::Code(2), "{:?}", person.heard);
        assert!(person.heard.contains(part), "{part}: {:?}", person.heard);
    };
    refused(&["attach", "nothere"], "no run");
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    refused(&["attach", "last"], "has ended");
    refused(&["attach", "last", "--agent", "7"], "has no agent 7");
}

#[test]
fn a_native_agent_has_no_terminal_to_attach_to() {
    let scene = Scene::scripted("answers: [{ tools: [{ shell: { command: \"echo > began; sleep 60\" } }] }]");
    let running = scene.start(&["run", "x"]);
    until("it works", || scene.path("work/began").exists().then_some(()));
    let mut person = AtTerminal::provost(&scene, &["attach", "last"]);
    assert_eq!(person.end(), Exit::Code(2), "{:?}", person.heard);
    assert!(person.heard.contains("is no external agent"), "{:?}", person.heard);
    running.kill();
}

#[test]
fn the_terminal_around_is_told_how_a_run_stands_and_forgets_it_in_the_end() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    let mut person = AtTerminal::provost(&scene, &["run", "say done"]);
    assert_eq!(person.end(), Exit::Code(0));
    let heard = &person.heard;
    let at = |part: &str| heard.find(part).unwrap_or_else(|| panic!("{part:?}: {heard:?}"));
    assert!(at("]7501;state=working:app=provost") < at("]7501;state=done:app=provost"));
    assert!(at("]7501;state=done:app=provost") < at("]7501;state=clear"));
    assert!(at("]9;4;3") < heard.rfind("]9;4;0").unwrap());
    assert!(at("]2;provost working: say done") < heard.rfind("]2;\u{1b}").unwrap());
    for (name, value) in [("PROVOST_TERMINAL_REPORTS", "off"), ("TERM", "dumb")] {
        let script = format!("'{}' run x", env!("CARGO_BIN_EXE_provost"));
        let mut person = AtTerminal::with(&scene, &script, &[(name, value)]);
        assert_eq!(person.end(), Exit::Code(0), "{:?}", person.heard);
        assert!(!person.heard.contains("7501"), "{name}={value}: {:?}", person.heard);
    }
}

#[test]
fn a_question_and_ctrl_c_are_told_to_the_terminal_too() {
    let scene = Scene::scripted("answers: [{ tools: [{ shell: { command: \"true\" } }] }, { text: done }]")
        .with_settings("[permissions]\nask = [\"shell\"]\n");
    let mut person = AtTerminal::provost(&scene, &["run", "x"]);
    person.hears("]7501;state=blocked:app=provost:kind=permission");
    // What is typed before the question is there is no answer to it.
    person.hears("v whole text");
    person.types("\u{3}");
    person.hears("]7501;state=clear");
    assert_eq!(person.end(), Exit::Code(130));
}

#[test]
fn the_window_goes_along_with_the_persons() {
    let scene = Scene::new();
    let script = "trap 'stty size' WINCH; echo ready; while :; do read x; done";
    let mut person = AtTerminal::provost(&scene, &["exec", "--", "sh", "-c", script]);
    person.sees("ready");
    person.resize(20, 70);
    person.types("\r");
    person.sees("20 70");
    person.types(DETACH);
    person.hears("detached");
    let pid = person.pid().to_string();
    assert!(!pid.is_empty());
}
