//! Tool calls that need approval: where the question is shown, where it can be answered, and that one answer
//! counts.

use expect_test::expect;

use crate::on_terminal::{on_terminal, program_on_terminal};
use crate::support::{Done, Running, Scene, done, json, until};

const PUBLISH: &str = r"
answers:
  - tools:
      - shell: { command: echo published >> effects }
  - text: done
";

const ASK: &str = "[permissions]\nask = [\"shell\"]\n";
const PROMPT: &str = "v whole text ›";

pub(crate) fn asks(script: &str) -> Scene {
    Scene::scripted(script).with_settings(ASK)
}

/// The names of the open questions.
fn names(scene: &Scene) -> Vec<String> {
    let listed = scene.provost(&["approvals", "--json"]).stdout;
    listed.lines().map(|line| json(line)["id"].as_str().unwrap().to_owned()).collect()
}

/// A run that waits for an answer to a question with this name.
pub(crate) fn waiting(scene: &Scene) -> (Running, String) {
    let before = names(scene).len();
    let running = scene.start(&["run", "publish it"]);
    let mut all = until("a question is asked", || Some(names(scene)).filter(|names| names.len() > before));
    (running, all.remove(0))
}

/// A run that was killed while it waited.
pub(crate) fn killed(scene: &Scene) -> String {
    let (running, name) = waiting(scene);
    running.kill();
    name
}

fn effects(scene: &Scene) -> String {
    std::fs::read_to_string(scene.path("work/effects")).unwrap_or_default()
}

#[track_caller]
fn check(done: &Done, status: i32, said: &str) {
    assert_eq!(done.status, status, "{done:?}");
    let all = format!("{}{}", done.stdout, done.stderr);
    assert!(all.contains(said), "`{said}` isn't in {all}");
}

#[test]
fn nothing_waits_at_first() {
    let scene = asks(PUBLISH);
    assert_eq!(scene.provost(&["approvals"]).stdout, "nothing waits for approval\n");
    assert_eq!(scene.provost(&["approvals", "--json"]).stdout, "");
    check(&scene.provost(&["approve"]), 2, "error: nothing waits for approval\n");
    scene.provost(&["run", "x", "--model", "unknown/x"]);
    check(&scene.provost(&["deny", "last"]), 2, "error: there are no runs yet");
}

#[test]
fn without_a_terminal_the_run_waits_says_how_to_answer_and_goes_on() {
    let scene = asks(PUBLISH);
    let (running, name) = waiting(&scene);
    let run = scene.last_run();
    assert_eq!(name, format!("{run}.0#5"));
    let ps = scene.provost(&["ps"]).stdout;
    assert!(ps.contains("needs approval"), "{ps}");
    assert_eq!(json(&scene.provost(&["ps", "--json"]).stdout)["approvals"][0], *name);
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains("\nwaits for approval\n  shell\n    │ echo published >> effects\n"), "{shown}");
    let listed = scene.provost(&["approvals"]).stdout;
    let listed = listed.lines().filter(|line| !["asked", "left"].iter().any(|row| line.contains(row)));
    expect![[r"
        RUN#5  shell
          │ echo published >> effects
          why     `ask shell` requires approval
          pattern shell(echo published >> effects)
          goal    publish it
        
        answer with: provost approve RUN#5, or provost deny RUN#5 REASON"]]
    .assert_eq(&listed.collect::<Vec<_>>().join("\n").replace(&run, "RUN"));
    let approved = scene.provost(&["approve"]);
    assert_eq!(
        approved.stdout,
        format!("{run}#5 allowed once: shell echo published >> effects\n"),
        "{approved:?}"
    );
    let ended = running.end();
    check(&ended, 0, "hooks: approved by provost approve\n");
    let said = ended.stderr.lines().filter(|line| !line.contains("left: ")).collect::<Vec<_>>().join("\n");
    let asked = format!(
        "approval: may it? shell\n  │ echo published >> effects\n  why: `ask shell` requires \
         approval\n  provost approve {run}#5\n  provost deny {run}#5\n"
    );
    assert!(said.contains(&asked), "{said}");
    assert_eq!(effects(&scene), "published\n");
}

#[test]
fn a_refusal_is_told_to_the_agent_with_its_reason() {
    let script = "
answers:
  - tools: [{ shell: { command: echo published >> effects } }]
  - expect: { tool_result: { tool: shell, is_error: true, contains: too risky } }
    text: as you wish
";
    let scene = asks(script);
    let (running, _) = waiting(&scene);
    check(&scene.provost(&["deny", "last", "too", "risky"]), 0, "#5 denied (too risky): shell echo");
    let ended = running.end();
    check(&ended, 0, "as you wish\n");
    check(&ended, 0, "failed: shell echo published >> effects (denied)\n");
    assert_eq!(effects(&scene), "");
}

#[test]
fn a_question_is_found_by_its_name_by_its_run_and_alone() {
    let scene = asks(PUBLISH);
    let (first, second) = (killed(&scene).replace(".0#5", ""), scene.start(&["run", "another"]));
    let both = until("both ask", || Some(names(&scene)).filter(|names| names.len() == 2));
    let unclear = scene.provost(&["approve"]);
    check(&unclear, 2, "error: 2 questions wait for approval:\n  ");
    check(
        &unclear,
        2,
        &format!("\n    {first}#5  shell echo published >> effects\nhint: name one of them\n"),
    );
    check(&scene.provost(&["approve", &format!("{first}#4")]), 2, "asks nothing:\n");
    check(&scene.provost(&["approve", &format!("{first}.1#5")]), 2, "asks nothing:\n");
    check(&scene.provost(&["approve", "last#five"]), 2, "error: `last#five` names no question\n");
    check(&scene.provost(&["approve", "zzzz#5"]), 2, "error: there is no run `zzzz`\n");
    check(&scene.provost(&["deny", &format!("{}#5", &first[..9])]), 0, &format!("{first}#5 denied"));
    check(&scene.provost(&["approve", &first]), 2, &format!("error: nothing of run {first} waits"));
    check(&scene.provost(&["approve", &both[0]]), 0, "#5 allowed once: ");
    check(&second.end(), 0, "done\n");
}

#[test]
fn a_log_that_cant_be_read_hides_no_other_question() {
    let scene = asks(PUBLISH);
    let (damaged, _) = (killed(&scene), killed(&scene));
    let store = rusqlite::Connection::open(scene.path("state/provost.db")).unwrap();
    let newer = "UPDATE entries SET v = 99 WHERE seq = 3 AND actor = (SELECT id FROM actors WHERE key = ?1)";
    assert_eq!(store.execute(newer, [damaged.trim_end_matches("#5")]).unwrap(), 1);
    drop(store);
    assert_eq!(scene.provost(&["ps"]).stdout.lines().count(), 3);
    let listed = scene.provost(&["approvals"]);
    check(&listed, 1, "#5  shell\n");
    let warning = format!("warning: can't tell what run {} waits for: ", damaged.trim_end_matches(".0#5"));
    assert!(listed.stderr.starts_with(&warning), "{listed:?}");
    check(&scene.provost(&["deny"]), 0, "#5 denied: shell");
}

#[test]
fn of_two_who_answer_at_once_one_counts() {
    let scene = asks(PUBLISH);
    let (running, _) = waiting(&scene);
    let both = [scene.start(&["approve", "last#5"]), scene.start(&["deny", "last#5"])];
    let [yes, no] = both.map(Running::end);
    assert_eq!(yes.status + no.status, 1, "{yes:?} {no:?}");
    let late = if yes.status == 1 { &yes } else { &no };
    check(
        late,
        1,
        if yes.status == 1 { "#5 has its answer: denied by " } else { "#5 has its answer: allowed once by" },
    );
    assert_eq!(running.end().status, 0);
    assert_eq!(effects(&scene), if yes.status == 0 { "published\n" } else { "" });
    let log = scene.provost(&["logs", "last"]).stdout;
    assert_eq!(log.matches("approval_resolved").count(), 1, "{log}");
}

#[test]
fn a_question_outlives_its_process_and_its_call_is_made_once() {
    let scene = asks(PUBLISH);
    let name = killed(&scene);
    assert!(scene.provost(&["ps"]).stdout.contains("interrupted, needs approval"));
    let approved = scene.provost(&["approve", &name]);
    check(&approved, 0, "it goes on with: provost resume ");
    assert_eq!(effects(&scene), "", "no process works on it");
    check(&scene.provost(&["deny", &name]), 1, "has its answer: allowed once by provost approve, ");
    let late = scene.provost(&["deny", "last"]);
    check(&late, 2, " waits for approval; ");
    assert!(late.stderr.contains("#5 has its answer: allowed once by provost approve, "), "{late:?}");
    check(&scene.provost(&["resume", "last"]), 0, "done\n");
    assert_eq!(effects(&scene), "published\n");
}

#[test]
fn an_open_question_is_asked_again_after_an_interruption() {
    let scene = asks(PUBLISH);
    let name = killed(&scene);
    let resumed = scene.start(&["resume", "last"]);
    until("it is worked on", || scene.provost(&["ps"]).stdout.contains("  needs approval").then_some(()));
    assert_eq!(names(&scene), [name]);
    check(&scene.provost(&["approve"]), 0, "allowed once");
    check(&resumed.end(), 0, "approval: may it? shell\n");
    assert_eq!(effects(&scene), "published\n");
}

#[test]
fn a_question_that_times_out_is_denied() {
    let scene = asks(PUBLISH).with_settings("approval_timeout = \"1s\"\n");
    let ran = scene.provost(&["run", "publish it"]);
    check(&ran, 0, "hooks: denied by timeout");
    assert_eq!(effects(&scene), "");
    let late = scene.provost(&["approve", "last#5"]);
    check(&late, 1, "#5 has its answer: denied (no answer in time) by timeout, ");
}

#[test]
fn or_the_run_is_suspended_until_the_answer() {
    let scene = asks(PUBLISH).with_settings("approval_timeout = \"1s\"\nunanswered = \"pause\"\n");
    let ran = scene.provost(&["run", "publish it"]);
    let run = scene.last_run();
    check(&ran, 4, "a `shell` call waits for approval");
    let hint = format!(
        "waits for approval: shell echo published >> effects\n  answer with: provost approve {run}#5, \
         or provost deny {run}#5\ngo on with: provost resume {run}\n"
    );
    assert!(ran.stderr.ends_with(&hint), "{}", ran.stderr);
    assert!(scene.provost(&["ps"]).stdout.contains("  needs approval"));
    check(&scene.provost(&["approvals"]), 0, "any time: the run is suspended");
    check(&scene.provost(&["approve"]), 0, &format!("it goes on with: provost resume {run}\n"));
    check(&scene.provost(&["resume", &run]), 0, "done\n");
    assert_eq!(effects(&scene), "published\n");
}

#[test]
fn what_is_allowed_for_always_is_kept_and_not_asked_again() {
    let scene = asks(PUBLISH);
    let (running, _) = waiting(&scene);
    let approved = scene.provost(&["approve", "--always"]);
    check(&approved, 0, "allowed shell(echo published >> effects) for all runs: shell");
    check(&approved, 0, "added to permissions.approved in ");
    assert_eq!(running.end().status, 0);
    let file = std::fs::read_to_string(scene.path("home/.config/provost/config.toml")).unwrap();
    assert_eq!(file, "[permissions]\napproved = [\n  \"shell(echo published >> effects)\",\n]\n");
    check(&scene.provost(&["run", "publish it"]), 0, "done\n");
    assert_eq!(effects(&scene), "published\npublished\n");
}

#[test]
fn settings_that_cant_be_read_are_told_and_nothing_is_answered() {
    let scene = asks(PUBLISH);
    let (running, name) = waiting(&scene);
    scene.write("home/.config/provost/config.toml", "\n[permissions]\napproved = 3\n");
    let refused = scene.provost(&["approve", "--always"]);
    check(&refused, 2, "config.toml:3");
    scene.write("home/.config/provost/config.toml", "");
    assert_eq!(names(&scene), [name]);
    scene.provost(&["approve", "--for-run"]);
    assert_eq!(running.end().status, 0);
}

#[test]
fn a_pattern_must_cover_the_call_and_say_for_how_long() {
    let scene = asks(PUBLISH);
    let (running, _) = waiting(&scene);
    check(&scene.provost(&["approve", "--pattern", "shell"]), 2, "hint: give --for-run or --always too");
    let narrow = scene.provost(&["approve", "--always", "--pattern", "shell(cargo *)"]);
    check(&narrow, 2, "error: --pattern `shell(cargo *)` doesn't cover the call that waits: shell echo");
    check(&narrow, 2, "hint: the narrowest that covers it is `shell(echo published >> effects)`\n");
    check(&scene.provost(&["approve", "--for-run", "--pattern", "shell(("]), 2, "error: --pattern: ");
    assert!(!scene.path("home/.config/provost/config.toml").exists());
    let wide = scene.provost(&["approve", "--for-run", "--pattern", "shell(echo * >> *)", "last"]);
    assert_eq!((wide.status, running.end().status), (0, 0), "{wide:?}");
}

#[test]
fn for_the_run_it_isnt_asked_again_in_it() {
    let script = "
answers:
  - tools: [{ shell: { command: echo 1 >> effects } }]
  - tools: [{ shell: { command: echo 1 >> effects } }]
  - text: done
";
    let scene = asks(script);
    let (running, _) = waiting(&scene);
    check(&scene.provost(&["approve", "--for-run"]), 0, "allowed shell(echo 1 >> effects) for this run");
    assert_eq!((running.end().status, effects(&scene).as_str()), (0, "1\n1\n"));
}

#[test]
fn what_cant_be_seen_in_a_call_is_spelled_out() {
    let script = r#"
answers:
  - tools: [{ shell: { command: "echo safe #\e[2K\rrm -rf /tmp/\u202Egpj" } }]
  - text: done
"#;
    let scene = asks(script);
    let (running, _) = waiting(&scene);
    let line = r"│ echo safe #\u{1b}[2K\rrm -rf /tmp/\u{202e}gpj";
    check(&scene.provost(&["approvals"]), 0, line);
    check(&scene.provost(&["show", "last"]), 0, line);
    scene.provost(&["deny"]);
    check(&running.end(), 0, line);
}

#[test]
fn with_json_only_records_are_printed_and_quietly_the_question_all_the_same() {
    for (flag, is_said) in [("--json", false), ("--quiet", true)] {
        let scene = asks(PUBLISH);
        let running = scene.start(&["run", "publish it", flag]);
        until("a question is asked", || names(&scene).pop());
        scene.provost(&["approve"]);
        let ended = running.end();
        assert_eq!(ended.status, 0, "{ended:?}");
        assert_eq!(ended.stderr.starts_with("approval: may it? shell\n"), is_said, "{}", ended.stderr);
        assert_eq!(ended.stderr.is_empty(), !is_said, "{}", ended.stderr);
    }
}

#[test]
fn on_a_terminal_it_is_asked_there() {
    let scene = asks(PUBLISH);
    let ran = on_terminal(&scene, &["run", "publish it"], &[(PROMPT, "sure\n"), (PROMPT, "y\n")]);
    check(&ran, 0, "? may it? shell\n     │ echo published >> effects\n     why     `ask shell`");
    check(&ran, 0, "a letter and Enter, please");
    check(&ran, 0, "◆ approved by a person at the terminal\n");
    assert_eq!(effects(&scene), "published\n");
}

#[test]
fn on_a_terminal_a_no_has_its_reason() {
    let scene = asks(PUBLISH);
    let steps = [(PROMPT, "n\n"), ("Enter for nothing) ›", "not today\n")];
    let ran = on_terminal(&scene, &["run", "publish it"], &steps);
    check(&ran, 0, "◆ denied by a person at the terminal: not today\n");
    assert_eq!(effects(&scene), "");
}

#[test]
fn on_a_terminal_always_is_kept_too() {
    let scene = asks(PUBLISH);
    check(&on_terminal(&scene, &["run", "publish it"], &[(PROMPT, "A\n")]), 0, "for all runs: shell(echo");
    let file = std::fs::read_to_string(scene.path("home/.config/provost/config.toml")).unwrap();
    assert!(file.contains("\"shell(echo published >> effects)\""), "{file}");
}

#[test]
fn an_answer_from_elsewhere_withdraws_the_question() {
    let scene = asks(PUBLISH);
    let steps = [(PROMPT, "y"), ("y", "!$PROVOST deny last#5 no")];
    let ran = on_terminal(&scene, &["run", "publish it"], &steps);
    check(&ran, 0, "◆ denied by provost deny: no\n");
    assert_eq!(effects(&scene), "");
}

#[test]
fn an_answer_to_a_question_that_was_withdrawn_isnt_one_to_the_next() {
    let script = "
answers:
  - tools: [{ shell: { command: echo 1 >> effects } }, { shell: { command: echo 2 >> effects } }]
  - text: done
";
    let scene = asks(script);
    let steps = [
        (PROMPT, "!$PROVOST deny last#5"),
        ("denied by", "y\n"),
        ("│ echo 2", ""),
        (PROMPT, "n\n"),
        ("nothing) ›", "\n"),
    ];
    check(&on_terminal(&scene, &["run", "publish it"], &steps), 0, "denied by a person at the terminal");
    assert_eq!(effects(&scene), "");
}

#[test]
fn what_is_put_off_stays_open() {
    let scene = asks(PUBLISH);
    let steps = [(PROMPT, "l\n"), ("left open; ", "!$PROVOST approve last")];
    let ran = on_terminal(&scene, &["run", "publish it"], &steps);
    check(&ran, 0, "approved by provost approve");
    assert_eq!(effects(&scene), "published\n");
}

#[test]
fn ctrl_c_at_a_question_pauses_the_run_and_the_question_stays() {
    let scene = asks(PUBLISH);
    let ran = on_terminal(&scene, &["run", "publish it"], &[(PROMPT, "\u{3}")]);
    check(&ran, 130, "paused by Ctrl-C");
    check(&ran, 130, "answer with: provost approve ");
    check(
        &on_terminal(&scene, &["resume", "last"], &[(PROMPT, "y\n")]),
        0,
        "approved by a person at the terminal",
    );
    assert_eq!(effects(&scene), "published\n");
}

#[test]
fn what_was_typed_before_a_question_doesnt_answer_it() {
    let script = "
answers:
  - { text: thinking, tools: [list_dir] }
  - { delay_ms: 300, tools: [{ shell: { command: echo published >> effects } }] }
  - text: done
";
    let scene = asks(script);
    let steps = [("list_dir (", "y\n"), (PROMPT, "n\n"), ("nothing) ›", "\n")];
    check(&on_terminal(&scene, &["run", "publish it"], &steps), 0, "denied by a person at the terminal\n");
    assert_eq!(effects(&scene), "");
}

#[test]
fn what_is_typed_after_the_run_is_for_the_shell() {
    let scene = asks(PUBLISH);
    scene.write("work/both.sh", "$PROVOST run 'publish it'; echo over; read rest; echo \"got: $rest\"\n");
    let steps = [(PROMPT, "y\n"), ("over", "ls -l\n")];
    let ran = program_on_terminal(&scene, &["sh", "both.sh"], &steps);
    check(&ran, 0, "got: ls -l\n");
}

#[test]
fn a_long_call_is_shown_to_its_end_when_asked_for() {
    let lines = (1..60).map(|line| format!("echo line {line}\\n")).collect::<String>();
    let script =
        format!("answers: [{{ tools: [{{ shell: {{ command: \"{lines}\" }} }}] }}, {{ text: done }}]");
    let scene = asks(&script);
    let steps = [(PROMPT, "v\n"), (PROMPT, "n\n"), ("nothing) ›", "\n")];
    let ran = on_terminal(&scene, &["run", "publish it"], &steps);
    check(&ran, 0, "… 39 more lines: v and Enter shows all\n");
    check(&ran, 0, "│ echo line 59\n");
}

/// An agent can't approve, even if it may run any command.
#[cfg(target_os = "linux")]
#[test]
fn an_agent_can_t_approve_in_a_persons_place() {
    let program = env!("CARGO_BIN_EXE_provost");
    let attempts =
        format!("for what in approve deny 'trust --yes'; do (setsid {program} $what); echo $?; done");
    let scene = Scene::scripted(&format!(
        "answers:\n  - tools:\n      - shell: {{ command: \"{attempts} > out 2>&1\" }}\n  - text: done\n"
    ));
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let out = std::fs::read_to_string(scene.path("work/out")).unwrap();
    assert_eq!(out.matches("this was started by run ").count(), 3, "{out}");
    assert_eq!(out.matches("\n2\n").count(), 3, "{out}");
}

/// The system protects Provost's memory from other processes only if Provost doesn't run as root; its environment
/// is protected in both cases.
#[cfg(target_os = "linux")]
#[test]
fn an_agent_finds_no_key_in_the_environment_of_provost() {
    let look = "cat /proc/[0-9]*/environ | tr '\\\\0' '\\\\n' | grep -a canary";
    let scene = Scene::scripted(&format!(
        "answers:\n  - tools:\n      - shell: {{ command: \"{look} > out 2>/dev/null; cat /proc/$$/environ | wc -c > seen\" }}\n  - text: done\n"
    ));
    let keys =
        [("ANTHROPIC_API_KEY", "sk-canary-1"), ("OTEL_EXPORTER_OTLP_HEADERS", "k=canary-2"), ("PLAIN", "x")];
    assert_eq!(done(&scene.command(&["run", "x"]).envs(keys).output().unwrap()).status, 0);
    assert_eq!(std::fs::read_to_string(scene.path("work/out")).unwrap(), "");
    assert_ne!(std::fs::read_to_string(scene.path("work/seen")).unwrap().trim(), "0", "it could look");
}
