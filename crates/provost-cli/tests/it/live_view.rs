//! The view of a run at a terminal: what goes on is drawn below what stays, and what is typed reaches the agent.

use provost_event::Exit;

use crate::support::Scene;
use crate::terminal::AtTerminal;

const WAITS: &str = "
answers:
  - text: I look around.
    tools: [{ shell: { command: 'for n in 1 2 3 4 5 6 7; do echo line $n; done; while [ ! -e go ]; do sleep 0.02; done; echo bad; exit 3' } }]
  - expect: { contains: mind the tests }
    text: I heard it.
";

#[test]
fn the_last_lines_of_a_running_command_are_shown_and_of_a_failed_one_its_end() {
    let scene = Scene::scripted(WAITS);
    let mut person = AtTerminal::provost(&scene, &["run", "x"]);
    person.sees("line 7");
    let screen = person.screen();
    assert!(screen.contains("line 3") && !screen.contains("line 2"), "five lines of output: {screen}");
    person.types("mind the tests\r");
    person.hears(": mind the tests");
    scene.write("work/go", "");
    person.sees("exit status 3");
    let screen = person.screen();
    assert!(screen.contains("bad\n") && screen.contains("line 7"), "{screen}");
    assert_eq!(person.end(), Exit::Code(0), "{}", person.heard);
    assert!(person.screen().contains("I heard it."), "{}", person.screen());
}

#[test]
fn an_answer_is_shown_while_it_is_written_and_stands_there_once() {
    let scene = Scene::scripted(
        "answers: [{ text: 'First of all I look around, and then I say much more than fits into one line of this \
         terminal.', chunk_delay_ms: 40 }]",
    );
    let mut person = AtTerminal::provost(&scene, &["run", "x"]);
    person.sees("First of all");
    assert!(!person.screen().contains("terminal."), "it is still written: {}", person.screen());
    assert_eq!(person.end(), Exit::Code(0));
    assert_eq!(person.screen().matches("First of all").count(), 1, "{}", person.screen());
}

#[test]
fn an_edit_shows_its_changed_lines() {
    let scene = Scene::scripted(
        "answers: [{ tools: [{ edit_file: { path: a.txt, old_text: two, new_text: second } }] }, { text: done }]",
    );
    scene.write("work/a.txt", "one\ntwo\n");
    let ran = scene.provost(&["run", "x"]);
    assert!(ran.stderr.contains("\n     2 - two\n     2 + second\n"), "{ran:?}");
}

#[test]
fn the_terminal_is_as_before_after_the_run() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    let provost = env!("CARGO_BIN_EXE_provost");
    let mut person = AtTerminal::shell(&scene, &format!("'{provost}' run x; stty -a"));
    assert_eq!(person.end(), Exit::Code(0));
    assert!(person.heard.contains(" icanon") && person.heard.contains(" echo "), "{}", person.heard);
}

#[test]
fn what_was_typed_and_not_sent_is_told_in_the_end() {
    let scene = Scene::scripted(WAITS);
    let mut person = AtTerminal::provost(&scene, &["run", "x"]);
    person.sees("line 7");
    person.types("mind the tests\rhalf a though");
    person.hears("say › half a though");
    scene.write("work/go", "");
    assert_eq!(person.end(), Exit::Code(0), "{}", person.heard);
    assert!(person.screen().contains("not sent: half a though"), "{}", person.screen());
}

#[test]
fn verbose_shows_every_entry_and_goes_without_quiet() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    let ran = scene.provost(&["run", "x", "--verbose"]);
    assert!(ran.stderr.contains("provost: turn 1, call 1\n"), "{ran:?}");
    assert_eq!(scene.provost(&["run", "x", "--verbose", "--quiet"]).status, 2);
}

#[test]
fn a_pasted_text_is_one_message_with_its_lines() {
    let scene = Scene::scripted(&WAITS.replace("mind the tests", "\"one\\ntwo\""));
    let mut person = AtTerminal::provost(&scene, &["run", "x"]);
    person.sees("line 7");
    person.hears("\u{1b}[?2004h");
    person.types("\u{1b}[200~one\rtwo\u{1b}[201~");
    person.sees("say › one⏎two");
    person.types("\r");
    person.hears(": one");
    scene.write("work/go", "");
    assert_eq!(person.end(), Exit::Code(0), "{}", person.heard);
    assert!(person.screen().contains("I heard it."), "{}", person.screen());
    assert!(person.heard.contains("\u{1b}[?2004l"), "the terminal is as before: {:?}", person.heard);
}

#[test]
fn the_marks_are_ascii_where_the_locale_is_another() {
    let scene = Scene::scripted(WAITS);
    let provost = env!("CARGO_BIN_EXE_provost");
    let script = format!("exec '{provost}' run x");
    let mut person = AtTerminal::with(&scene, &script, &[("LC_ALL", "C")]);
    person.sees("line 7");
    person.types("mind the tests");
    person.sees("say > mind the tests");
    person.types("\r");
    scene.write("work/go", "");
    assert_eq!(person.end(), Exit::Code(0), "{}", person.heard);
    assert!(person.screen().contains("x shell"), "{}", person.screen());
    assert!(person.heard.is_ascii(), "{:?}", person.heard);
}

#[test]
fn ctrl_z_gives_the_terminal_back_and_the_run_goes_on_with_it() {
    let scene = Scene::scripted(WAITS);
    let provost = env!("CARGO_BIN_EXE_provost");
    let stopped = "until grep -q ') T' /proc/$pid/stat; do sleep 0.05; done";
    let script = format!(
        "set -m; '{provost}' run x & pid=$!; fg >/dev/null; stty -a; {stopped}; touch stopped; while [ ! -e on ]; do sleep 0.05; done; fg"
    );
    let mut person = AtTerminal::shell(&scene, &script);
    person.sees("line 7");
    person.types("\u{1a}");
    person.hears(" icanon");
    let given_back = person.heard.rfind("\u{1b}[?2004l").unwrap();
    assert!(given_back < person.heard.find(" icanon").unwrap(), "{:?}", person.heard);
    scene.write("work/on", "");
    crate::support::until("it takes the terminal again", || {
        person.listen();
        (person.heard.rfind("\u{1b}[?2004h") > Some(given_back)).then_some(())
    });
    person.types("mind the tests\r");
    person.hears(": mind the tests");
    scene.write("work/go", "");
    person.end();
    assert!(person.screen().contains("I heard it."), "{}", person.screen());
}
