//! Leaving the sandbox: a person lets each call, seeing what was denied inside; alone nothing leaves.

use std::process::Output;

use crate::sandbox_stage::{Stage, User};

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// An agent that is denied a command, and makes it again outside, as often as `times`.
fn stage(name: &str, times: usize) -> Stage {
    let stage = Stage::new(User::Mine, &format!("{name}-{}", std::process::id()));
    let out = stage.path("out/new").display().to_string();
    let inside = format!("{{ tools: [{{ shell: {{ command: 'echo x >> {out}' }} }}] }}");
    let outside =
        format!("{{ tools: [{{ shell: {{ command: 'echo x >> {out}', outside_sandbox: true }} }}] }}");
    let answers = std::iter::once(inside).chain(std::iter::repeat_n(outside, times)).collect::<Vec<_>>();
    let script = format!("answers: [{}, {{ text: done }}]", answers.join(", "));
    std::fs::write(stage.path("work/agent.yaml"), script).unwrap();
    let settings = "[agent]\nmodel = \"script:agent.yaml\"\n[sandbox]\nmode = \"workspace\"\n[permissions]\nallow = [\"shell\"]\n";
    std::fs::write(stage.path("work/provost.toml"), settings).unwrap();
    let trusted = stage.provost(&["trust", "--yes"]);
    assert!(trusted.status.success(), "{trusted:?}");
    stage
}

#[test]
fn each_call_that_leaves_the_sandbox_is_asked_about_with_what_was_denied_inside() {
    let stage = stage("asked", 2);
    let steps = [("may it?", ""), ("whole text", "a\r"), ("may it?", ""), ("whole text", "d\r")];
    let shown = stage.on_terminal(&["run", "do it"], &steps);
    let said = text(&shown).replace(['\r', '\n'], " ");
    let said = console::strip_ansi_codes(&said).split_whitespace().collect::<Vec<_>>().join(" ");
    let made = std::fs::read_to_string(stage.path("out/new")).unwrap_or_default();
    assert_eq!(made, "x\n", "the first is agreed to, and that doesn't cover the second: {said}");
    assert!(said.contains("it is to run outside of the sandbox, with all rights of the user"), "{said}");
    let denied = format!(
        "the sandbox, which denied: as its output has it, {} may not be written",
        stage.path("out/new").display()
    );
    // A path may be broken where a line ends.
    let joined = |text: &str| text.replace(' ', "");
    assert!(joined(&said).contains(&joined(&denied)), "{said}");
    assert!(said.contains("a once · d deny"), "{said}");
    assert!(!said.contains("r this run") && !said.contains("A always"), "it counts once: {said}");
    let log = text(&stage.provost(&["export", "last"]));
    assert!(log.contains("make the call with `outside_sandbox`"), "the model is told of the way: {log}");
    assert_eq!(log.matches("\"outside\":true").count(), 1, "{log}");
    let explained = text(&stage.provost(&["explain", "last"]));
    assert!(explained.contains("outside of the sandbox: shell"), "{explained}");
    let logs = text(&stage.provost(&["logs", "last"]));
    assert!(logs.contains("(outside of the sandbox)"), "{logs}");
}

#[test]
fn nothing_leaves_the_sandbox_where_no_one_can_be_asked() {
    let stage = stage("alone", 1);
    let done = stage.provost(&["run", "do it"]);
    assert!(done.status.success(), "{}", text(&done));
    assert!(!stage.path("out/new").exists());
    let log = text(&stage.provost(&["export", "last"]));
    assert!(log.contains("no one can be asked here"), "{log}");
    assert!(!log.contains("make the call with `outside_sandbox`"), "it isn't offered: {log}");
}
