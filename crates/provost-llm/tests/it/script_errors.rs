//! What is wrong with a script is said with its place and a remedy.

use std::fs;

use expect_test::{Expect, expect};
use provost_llm::ScriptedModel;
use tempfile::TempDir;

/// Shows the complaint about each script, a line each.
#[track_caller]
fn check(scripts: &[&str], expected: Expect) {
    let complaint = |text: &&str| match ScriptedModel::parse(text, "demo.yaml") {
        Ok(_) => panic!("a script: {text}"),
        Err(error) => format!("{error}\n"),
    };
    expected.assert_eq(&scripts.iter().map(complaint).collect::<String>());
}

#[test]
fn wrong_keys() {
    check(
        &[
            "answer: []",
            "answers:\n  - text: a\n    tols: [ls]\n",
            "answers:\n  - text: a\n    expect: { containing: a }\n",
            "answers:\n  - text: a\n    expect: { tool_result: { name: a } }\n",
            "answers:\n  - text: a\n    usage: { in: 1 }\n",
            "answers:\n  - text: a\n    text: b\n",
            "model: a\n",
        ],
        expect![[""]],
    );
}

#[test]
fn wrong_values() {
    check(
        &[
            "answers:\n  - text: [1, [2]]\n",
            "answers:\n  - text: 42\n",
            "answers:\n  - text: { a: b }\n",
            "answers:\n  - text: a\n    expect: { tool_result: shell }\n",
            "answers:\n  - text: a\n    usage: { input: -1 }\n",
            "answers:\n  - text: a\n    delay_ms: 1.5\n",
            "answers:\n  - text: a\n    delay_ms: 86400001\n",
            "chunk_delay_ms: 86400001\nanswers:\n  - text: a\n",
            "answers:\n  - text: a\n    expect: { turn: 0 }\n",
            "answers:\n  - text: a\n    expect: { tool_result: { is_error: yes } }\n",
            "answers: text\n",
            "answers: [text]\n",
            "window_tokens: 100\noutput_tokens_max: 100\nanswers: [{text: a}]\n",
            "output_tokens_max: 0\nanswers: [{text: a}]\n",
        ],
        expect![[""]],
    );
}

#[test]
fn answers_that_make_no_sense() {
    check(
        &[
            "answers: []\n",
            "answers:\n  - text: a\n  - expect: { turn: 2 }\n",
            "answers:\n  - text: ''\n",
            "answers:\n  - text:\n",
            "answers:\n  - text: a\n    stop: tool_use\n",
            "answers:\n  - tools: [ls]\n    stop: refusal\n",
            "answers:\n  - text: a\n    stop: finished\n",
        ],
        expect![[r#"
            demo.yaml:1:1: the script has no answers; write a list of answers under `answers:`
            demo.yaml:3:5: the answer says nothing; give it `text` or `tools`, or write `fault: empty` for an empty answer
            demo.yaml:2:5: the answer says nothing; give it `text` or `tools`, or write `fault: empty` for an empty answer
            demo.yaml:2:5: the answer says nothing; give it `text` or `tools`, or write `fault: empty` for an empty answer
            demo.yaml:3:11: that isn't how this answer stops; leave `stop` out: it follows from whether there are `tools`
            demo.yaml:3:11: that isn't how this answer stops; leave `stop` out: it follows from whether there are `tools`
            demo.yaml:3:11: `finished` isn't known here; write one of `end_turn`, `tool_use`, `output_cap`, `refusal`
        "#]],
    );
}

#[test]
fn wrong_tool_calls() {
    check(
        &[
            "answers:\n  - tools:\n      - shell: ls\n",
            "answers:\n  - tools:\n      - { shell: {}, search: {} }\n",
            "answers:\n  - tools:\n      - { name: shell, args: {} }\n",
            "answers:\n  - tools:\n      - { name: shell, id: 5 }\n",
            "answers:\n  - tools:\n      - { name: '' }\n",
            "answers:\n  - tools:\n      - { name: a, id: x }\n      - { name: b, id: x }\n",
            "answers:\n  - tools: shell\n",
        ],
        expect![[""]],
    );
}

#[test]
fn wrong_faults() {
    check(
        &[
            "answers:\n  - fault: overload\n",
            "answers:\n  - fault: { class: aborted }\n",
            "answers:\n  - fault: { status: 500 }\n",
            "answers:\n  - fault: { class: server, retry: 5 }\n",
            "answers:\n  - fault: { class: server, status: 99 }\n",
            "answers:\n  - fault: { class: empty, message: a }\n",
            "answers:\n  - fault: { class: cut, delay_ms: 86400001 }\n",
            "answers:\n  - fault: cut\n    text: a\n",
            "answers:\n  - fault: 5\n",
        ],
        expect![[""]],
    );
}

#[test]
fn wrong_yaml() {
    check(
        &[
            "",
            "# nothing\n",
            "answers:\n\t- text: a\n",
            "answers:\n  - text: \"a\n",
            "answers: [{text: a}]\n---\nanswers: [{text: b}]\n",
        ],
        expect![[""]],
    );
}

#[test]
fn wrong_files() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("demo.yaml");
    let error = || match ScriptedModel::load(&path) {
        Ok(_) => panic!("a script"),
        Err(error) => error.to_string(),
    };
    assert!(error().ends_with("demo.yaml; check its path"), "{}", error());
    fs::write(&path, vec![b'#'; 4 * 1024 * 1024]).unwrap();
    assert!(error().contains("demo.yaml:1:1: the script is empty"), "{}", error());
    fs::write(&path, vec![b'#'; 4 * 1024 * 1024 + 1]).unwrap();
    assert!(error().ends_with("demo.yaml is larger than 4194304 bytes; split it"), "{}", error());
    fs::write(&path, b"answers: \xff").unwrap();
    assert!(error().ends_with("demo.yaml; check its path"), "{}", error());
}
