//! `provost top` in a terminal: what it shows, what its keys do to runs of other processes, and the terminal after it.

use provost_event::Exit;

use crate::approvals::{asks, waiting};
use crate::support::{Scene, json, until};
use crate::terminal::AtTerminal;

const PUBLISH: &str = "
answers:
  - tools: [{ shell: { command: echo published >> effects } }]
  - text: 'It is published. VERDICT: PASS'
";
const UTF8: (&str, &str) = ("LANG", "C.UTF-8");

fn top(scene: &Scene) -> AtTerminal {
    let provost = env!("CARGO_BIN_EXE_provost");
    AtTerminal::with(scene, &format!("exec '{provost}' top"), &[UTF8])
}

fn status(scene: &Scene, run: &str) -> String {
    json(scene.provost(&["show", run, "--json"]).stdout.trim())["status"].as_str().unwrap().to_owned()
}

#[test]
fn a_question_of_another_process_is_answered_and_its_run_goes_on() {
    let scene = asks(PUBLISH);
    let mut person = top(&scene);
    person.sees("no runs yet");
    let (running, _) = waiting(&scene);
    person.sees("NEEDS YOU 1");
    person.sees("it asks: echo published >> effects");
    person.types("a");
    person.sees("May the agent use shell?");
    // Keys are dead for a moment: none that was meant for another question counts.
    person.types("a");
    person.sees("has just come up");
    until("the question has been in view", || {
        person.listen();
        if person.screen().contains("May the agent use shell?") {
            person.types("a");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        person.screen().contains("Nothing waits for you.").then_some(())
    });
    assert_eq!(running.end().status, 0);
    assert_eq!(std::fs::read_to_string(scene.path("work/effects")).unwrap(), "published\n");
    person.types("\u{1b}");
    person.sees("FINISHED, NOT LOOKED AT 1");
    person.types("\r");
    person.sees("It is published.");
    person.types("q");
    assert_eq!(person.end(), Exit::Code(0));
}

#[test]
fn a_run_is_started_and_goes_on_when_the_dashboard_is_left() {
    let scene = Scene::scripted(
        "answers: [{ tools: [{ shell: { command: 'while [ ! -e go ]; do sleep 0.02; done' } }] }, { text: 'Ready. VERDICT: PASS' }]",
    );
    let provost = env!("CARGO_BIN_EXE_provost");
    let script = format!("'{provost}' top; echo left; while [ ! -e seen ]; do sleep 0.05; done");
    let mut person = AtTerminal::with(&scene, &script, &[UTF8]);
    person.sees("no runs yet");
    person.types("nMake it so\r");
    person.sees("WORKING 1");
    person.types("q");
    person.hears("left");
    let run = scene.last_run();
    assert_eq!(status(&scene, &run), "running");
    scene.write("work/go", "");
    until("it is completed", || (status(&scene, &run) == "completed").then_some(()));
    scene.write("work/seen", "");
    assert_eq!(person.end(), Exit::Code(0));
}

#[test]
fn why_a_run_cant_be_started_is_said() {
    let scene = Scene::new();
    scene.write("work/provost.toml", "[agent]\nmodel = \"script:gone.yaml\"\n");
    let mut person = top(&scene);
    person.sees("no runs yet");
    person.types("nMake it so\r");
    person.sees("gone.yaml");
    person.sees("error:");
    person.types("q");
    assert_eq!(person.end(), Exit::Code(0));
}

#[test]
fn a_suspended_run_goes_on_with_more_of_what_it_has_used_up() {
    let scene = Scene::scripted(
        "answers: [{ tools: [{ shell: { command: 'true' } }], usage: { input: 4500, output: 100 } }, { text: 'Done now. VERDICT: PASS', usage: { input: 1, output: 1 } }]",
    );
    let ran = scene.provost(&["run", "x", "--tokens", "5000"]);
    assert_eq!(ran.status, 3, "{ran:?}");
    let run = scene.last_run();
    let mut person = top(&scene);
    person.sees("FAILED 1");
    person.types("p");
    person.sees("resume with this much more tokens");
    person.types("100000\r");
    until("it is completed", || (status(&scene, &run) == "completed").then_some(()));
    person.sees("FINISHED, NOT LOOKED AT 1");
    person.types("q");
    assert_eq!(person.end(), Exit::Code(0));
}

/// What was written until a shell after it has said how the terminal is. Beside it a shell does `meanwhile`, which knows
/// the process as `$(cat pid)`: its number outside is another one.
fn left_by(scene: &Scene, meanwhile: &str, how: impl FnOnce(&mut AtTerminal)) -> String {
    let provost = env!("CARGO_BIN_EXE_provost");
    let script = format!(
        "({meanwhile}) 2> /dev/null & sh -c 'echo $$ > pid; exec \"{provost}\" top'; echo left $?; stty -a"
    );
    let mut person = AtTerminal::with(scene, &script, &[UTF8]);
    person.sees("no runs yet");
    how(&mut person);
    person.hears("left 0");
    person.end();
    person.heard.clone()
}

/// A shell command that waits for a file and then sends a signal.
fn signals(name: &str) -> String {
    format!("while [ ! -e {name} ]; do sleep 0.05; done; kill -s {name} $(cat pid)")
}

#[track_caller]
fn is_restored(heard: &str) {
    let after = heard.rsplit("left ").next().unwrap_or_default();
    assert!(after.contains(" icanon") && after.contains(" echo "), "{after}");
    let (leaves, enters) = (heard.matches("\u{1b}[?1049l").count(), heard.matches("\u{1b}[?1049h").count());
    assert_eq!(leaves, enters, "it is on the screen that it came from");
    assert!(heard.contains("\u{1b}[?25h") && heard.contains("\u{1b}[?2004l"), "cursor and paste: {heard:?}");
}

#[test]
fn the_terminal_is_as_before_after_ctrl_c_and_signals() {
    let scene = Scene::new();
    is_restored(&left_by(&scene, "true", |person| person.types("\u{3}")));
    for name in ["TERM", "HUP", "INT"] {
        is_restored(&left_by(&scene, &signals(name), |_| scene.write(&format!("work/{name}"), "")));
    }
}

#[test]
fn it_stops_for_the_shell_and_comes_back() {
    let scene = Scene::new();
    let stopped = "until grep -q ') T' /proc/$(cat pid)/stat; do sleep 0.05; done";
    let meanwhile = format!(
        "{stopped}; kill -s CONT $(cat pid); {}; {stopped}; kill -s CONT $(cat pid); touch came",
        signals("TSTP")
    );
    let heard = left_by(&scene, &meanwhile, |person| {
        person.types("\u{1a}");
        until("it is back", || {
            person.listen();
            (person.heard.matches("\u{1b}[?1049h").count() >= 2).then_some(())
        });
        scene.write("work/TSTP", "");
        until("it was stopped again and goes on", || {
            person.listen();
            scene.path("work/came").exists().then_some(())
        });
        person.sees("no runs yet");
        until("it hears keys", || {
            person.types("?");
            person.listen();
            person.screen().contains("leave; runs go on").then_some(())
        });
        person.types("qq");
    });
    is_restored(&heard);
}

#[test]
fn without_a_utf8_locale_and_colours_it_is_ascii_without_colours() {
    let scene = asks(PUBLISH);
    let (_running, _) = waiting(&scene);
    let provost = env!("CARGO_BIN_EXE_provost");
    let mut person =
        AtTerminal::with(&scene, &format!("exec '{provost}' top"), &[("LANG", "C"), ("NO_COLOR", "1")]);
    person.sees("it asks: echo published");
    assert!(person.screen().is_ascii(), "{}", person.screen());
    assert!(person.screen().contains(">! publish it"), "{}", person.screen());
    for colour in ["\u{1b}[33m", "\u{1b}[34m", "\u{1b}[38;5;3m", "\u{1b}[38;5;4m"] {
        assert!(!person.heard.contains(colour), "{:?}", person.heard);
    }
    person.types("q");
    assert_eq!(person.end(), Exit::Code(0));
}

#[test]
fn without_a_terminal_it_says_what_does_the_same() {
    let scene = Scene::new();
    let done = scene.provost(&["top"]);
    assert_eq!(done.status, 2, "{done:?}");
    assert!(done.stderr.contains("provost ps"), "{done:?}");
}

#[test]
fn an_imported_run_is_shown() {
    let from = Scene::scripted("answers: [{ text: 'Said elsewhere. VERDICT: PASS' }]");
    assert_eq!(from.provost(&["run", "the goal from elsewhere"]).status, 0);
    let file = from.path("work/run.export");
    let exported = from.provost(&["export", "last", "--output", file.to_str().unwrap()]);
    assert_eq!(exported.status, 0, "{exported:?}");
    let scene = Scene::new();
    let imported = scene.provost(&["import", file.to_str().unwrap()]);
    assert_eq!(imported.status, 0, "{imported:?}");
    let mut person = top(&scene);
    person.sees("the goal from elsewhere");
    person.types("\r");
    person.sees("Said elsewhere.");
    person.types("q");
    assert_eq!(person.end(), Exit::Code(0));
}

#[test]
fn it_is_not_for_programs_that_a_run_has_started() {
    let scene = Scene::scripted(
        "answers: [{ tools: [{ shell: { command: 'provost top; echo status $?' } }] }, { expect: { tool_result: [{ contains: status 2 }] }, text: 'VERDICT: PASS' }]",
    );
    let provost = std::path::Path::new(env!("CARGO_BIN_EXE_provost"));
    let mut command = scene.command(&["run", "x"]);
    let path = format!("{}:{}", provost.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let ran = crate::support::done(&command.env("PATH", path).output().unwrap());
    assert_eq!(ran.status, 0, "{ran:?}");
}
