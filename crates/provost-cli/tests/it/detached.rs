//! A person's terminal is a client of the process that works on the run: it may leave, be closed or killed, and the
//! program goes on.

use provost_event::Exit;

use crate::support::{Scene, until};
use crate::terminal::AtTerminal;

const DETACH: &str = "\u{1c}";
/// Reads names and greets each, until the name `bye`.
const GREETER: &str =
    "while printf 'who? '; read who; do echo \"hello $who\"; [ \"$who\" = bye ] && exit 7; done";

/// A terminal at which `provost exec` with these arguments is started, and killed with the signal that is written to the
/// file `signal`. The terminal itself stays.
fn attended(scene: &Scene, args: &str) -> AtTerminal {
    let provost = env!("CARGO_BIN_EXE_provost");
    let script = format!(
        "(until test -s signal; do sleep 0.02; done; kill -$(cat signal) $(cat client)) & \
         sh -c 'echo $$ > client; exec \"$0\" exec {args}' '{provost}'; echo client left $?; exec sleep 1000"
    );
    AtTerminal::shell(scene, &script)
}

fn status(scene: &Scene) -> String {
    let listed = scene.provost(&["ps", "--json", "-n", "1"]);
    crate::support::json(listed.stdout.trim())["status"].as_str().expect("a status").to_owned()
}

/// Comes back from another terminal and ends the program.
#[track_caller]
fn comes_back(scene: &Scene, known: &str) {
    let mut second = AtTerminal::provost(scene, &["attach", "last"]);
    second.sees(known);
    second.types("bob\r");
    second.sees("hello bob");
    second.types("bye\r");
    second.hears("the program has ended: exit status 7");
    assert_eq!(second.end(), Exit::Code(0));
    until("the run has ended", || (status(scene) == "failed").then_some(()));
}

#[test]
fn a_closed_terminal_leaves_the_run_working_and_its_program_where_it_was() {
    let scene = Scene::new();
    scene.write("work/greeter.sh", GREETER);
    let mut first = attended(&scene, "-- sh greeter.sh");
    first.sees("who?");
    first.types("ann\r");
    first.sees("hello ann");
    scene.write("work/signal", "HUP");
    first.hears("client left 0");
    assert!(["running", "needs input"].contains(&status(&scene).as_str()), "{}", status(&scene));
    comes_back(&scene, "hello ann");
}

#[test]
fn a_killed_client_leaves_the_run_working() {
    let scene = Scene::new();
    scene.write("work/greeter.sh", GREETER);
    let mut first = attended(&scene, "-- sh greeter.sh");
    first.sees("who?");
    first.types("ann\r");
    first.sees("hello ann");
    scene.write("work/signal", "KILL");
    first.hears("client left 137");
    assert!(["running", "needs input"].contains(&status(&scene).as_str()), "{}", status(&scene));
    comes_back(&scene, "hello ann");
}

#[test]
fn a_client_that_detaches_is_over_and_names_the_way_back() {
    let scene = Scene::new();
    scene.write("work/greeter.sh", GREETER);
    let mut first = attended(&scene, "-- sh greeter.sh");
    first.sees("who?");
    first.types("ann\r");
    first.sees("hello ann");
    first.types(DETACH);
    first.hears("client left 0");
    let run = scene.last_run();
    assert!(first.heard.contains(&format!("provost attach {run} comes back to it")), "{:?}", first.heard);
    comes_back(&scene, "hello ann");
}

#[test]
fn a_client_that_is_asked_to_end_suspends_the_run_as_before() {
    let scene = Scene::new();
    scene.write("work/greeter.sh", GREETER);
    let mut first = attended(&scene, "-- sh greeter.sh");
    first.sees("who?");
    scene.write("work/signal", "TERM");
    first.hears("client left 130");
    assert!(first.heard.contains("paused by SIGTERM"), "{:?}", first.heard);
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains("paused by SIGTERM"), "{shown}");
}

#[test]
fn a_killed_worker_leaves_the_run_interrupted_and_the_terminal_says_so() {
    let scene = Scene::new();
    scene.write("work/greeter.sh", &format!("echo $PPID > guard; {GREETER}"));
    let provost = env!("CARGO_BIN_EXE_provost");
    // The worker is the client's only child.
    let script = format!(
        "(until test -s signal; do sleep 0.02; done; kill -KILL $(cat /proc/$(cat client)/task/*/children)) & \
         sh -c 'echo $$ > client; exec \"$0\" exec -- sh greeter.sh' '{provost}'; echo client left $?; exec sleep 1000"
    );
    let mut first = AtTerminal::shell(&scene, &script);
    first.sees("who?");
    scene.write("work/signal", "KILL");
    first.hears("client left 4");
    assert!(first.heard.contains("the process that worked on it was killed"), "{:?}", first.heard);
    assert!(first.heard.contains("go on with: provost resume"), "{:?}", first.heard);
    assert_eq!(status(&scene), "interrupted");
}

#[test]
fn a_terminal_that_comes_back_gets_everything_from_the_first_byte() {
    let scene = Scene::new();
    // It writes before any terminal can be attached, and again while none is.
    let script = "seq -f 'first %g' 1 300; until test -e go; do sleep 0.02; done; seq -f 'second %g' 1 300; echo > written; cat";
    scene.write("work/writes.sh", script);
    let mut first = attended(&scene, "-- sh writes.sh");
    first.hears("first 300");
    for number in 1..=300 {
        assert!(first.heard.contains(&format!("first {number}")), "first {number}");
    }
    first.types(DETACH);
    first.hears("client left 0");
    scene.write("work/go", "");
    until("it has written", || scene.path("work/written").exists().then_some(()));
    let mut second = AtTerminal::provost(&scene, &["attach", "last"]);
    second.hears("second 300");
    for (word, number) in ["first", "second"].into_iter().flat_map(|word| (1..=300).map(move |n| (word, n))) {
        assert!(second.heard.contains(&format!("{word} {number}")), "{word} {number}");
    }
    second.types("\u{3}");
    second.end();
}

#[test]
fn a_terminal_resized_while_nobody_was_attached_gets_a_screen_of_its_size() {
    let scene = Scene::new();
    scene.write(
        "work/size.sh",
        "trap 'echo now $(stty size)' WINCH; echo ready $(stty size); while :; do read x; done",
    );
    let mut first = attended(&scene, "-- sh size.sh");
    first.sees("ready 30 100");
    first.types(DETACH);
    first.hears("client left 0");
    let provost = env!("CARGO_BIN_EXE_provost");
    let mut second =
        AtTerminal::shell(&scene, &format!("stty rows 20 cols 70; exec '{provost}' attach last"));
    second.sees("now 20 70");
    second.types(DETACH);
    second.hears("detached");
}

#[test]
fn a_question_that_comes_up_while_nobody_is_attached_is_asked_of_approvers() {
    let scene = Scene::new();
    scene.write("work/asks.sh", "read x; rm -i kept; echo > asked; cat");
    scene.write("work/kept", "");
    let mut first = attended(&scene, "-- sh asks.sh");
    first.hears("Ctrl-\\ detaches");
    until("it reads", || scene.provost(&["explain", "last"]).stdout.contains("waits").then_some(()));
    first.types("\r");
    first.sees("remove");
    first.types(DETACH);
    first.hears("client left 0");
    let listed = until("it is asked", || {
        let listed = scene.provost(&["approvals"]).stdout;
        listed.contains("rm: remove").then_some(listed)
    });
    assert!(listed.contains("kept"), "{listed}");
    assert_eq!(scene.provost(&["deny", "last"]).status, 0);
    until("it goes on", || scene.path("work/asked").exists().then_some(()));
    assert!(scene.path("work/kept").exists());
    assert_eq!(scene.provost(&["cancel", "last"]).status, 0);
}

#[test]
fn a_password_prompt_waits_for_the_person_who_comes_back() {
    let scene = Scene::new();
    // `exec`: dash forgets a signal that comes while it is about to start another program.
    let script =
        "stty -echo; printf 'Password: '; read secret; stty echo; echo; echo ${#secret} characters; exec cat";
    scene.write("work/secret.sh", script);
    let mut first = attended(&scene, "-- sh secret.sh");
    first.sees("Password:");
    first.types(DETACH);
    first.hears("client left 0");
    let mut second = AtTerminal::provost(&scene, &["attach", "last"]);
    second.sees("Password:");
    second.types("hunter22\r");
    second.sees("8 characters");
    assert!(!second.heard.contains("hunter22"));
    let recordings = std::fs::read_dir(scene.path("state/terminals/recordings")).unwrap();
    for recording in recordings {
        let text = std::fs::read_to_string(recording.unwrap().path()).unwrap();
        assert!(!text.contains("hunter22"), "{text}");
    }
    second.types("\u{3}");
    second.end();
}

#[test]
fn a_program_that_nobody_attends_is_suspended_after_the_idle_time() {
    let scene = Scene::new();
    scene.write("work/greeter.sh", GREETER);
    let mut first = attended(&scene, "--idle-time 2s -- sh greeter.sh");
    first.sees("who?");
    // It waits longer than that for a person who is there.
    first.types("ann\r");
    first.sees("hello ann");
    first.types(DETACH);
    first.hears("client left 0");
    until("the run is suspended", || (status(&scene) == "paused").then_some(()));
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains("waits for an answer to: who?"), "{shown}");
}

#[test]
fn quiet_adds_no_word_to_what_the_program_shows_and_the_status_stays() {
    let scene = Scene::new();
    scene.write("work/ends.sh", "echo shown; exit 3");
    let provost = env!("CARGO_BIN_EXE_provost");
    let script = format!("'{provost}' exec -q -- sh ends.sh; echo status $?");
    let mut person = AtTerminal::shell(&scene, &script);
    person.end();
    let words = console_text(&person.heard);
    let words = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    let notes = words.iter().filter(|line| line.starts_with("note: ")).count();
    assert_eq!(words[notes..], ["shown", "status 1"], "{words:?}");
}

#[test]
fn what_is_wrong_is_said_at_the_terminal_and_nothing_is_left() {
    let scene = Scene::new();
    let provost = env!("CARGO_BIN_EXE_provost");
    let mut person =
        AtTerminal::shell(&scene, &format!("'{provost}' exec -- no-such-program; echo status $?"));
    person.end();
    assert!(person.heard.contains("there is no program `no-such-program`"), "{:?}", person.heard);
    assert!(person.heard.contains("hint: it must be in PATH"), "{:?}", person.heard);
    assert!(person.heard.contains("status 2"), "{:?}", person.heard);
    assert_eq!(scene.provost(&["ps"]).stdout.lines().filter(|line| line.contains("no-such")).count(), 0);
}

/// Without escape sequences.
fn console_text(heard: &str) -> String {
    let mut text = String::new();
    let mut rest = heard;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        text.push_str(before);
        let end = match after.chars().next() {
            Some('[') => after[1..].find(|c: char| ('@'..='~').contains(&c)).map(|at| at + 2),
            Some(']') => after.find("\u{1b}\\").map(|at| at + 2),
            Some('(') => Some(2),
            _ => Some(1),
        };
        rest = &after[end.unwrap_or(after.len()).min(after.len())..];
    }
    (text + rest).replace('\u{f}', "")
}
