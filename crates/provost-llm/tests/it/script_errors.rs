//! What is wrong with a script is said with its place and a remedy.

use std::fs;

use expect_test::{Expect, expect};
use provost_llm::ScriptedModel;
use tempfile::TempDir;

#[track_caller]
fn check(text: &str, expected: Expect) {
    let error = ScriptedModel::parse(text, "demo.yaml").map(|_| "a script").unwrap_err();
    expected.assert_eq(&error.to_string());
}

#[test]
fn wrong_keys() {
    check("answer: []", expect![""]);
    check("answers:\n  - text: a\n    tols: [ls]\n", expect![""]);
    check("answers:\n  - text: a\n    expect: { containing: a }\n", expect![""]);
    check("answers:\n  - text: a\n    expect: { tool_result: { name: a } }\n", expect![""]);
    check("answers:\n  - text: a\n    usage: { in: 1 }\n", expect![""]);
    check("answers:\n  - text: a\n    text: b\n", expect![""]);
    check("model: a\n", expect![""]);
}

#[test]
fn wrong_values() {
    check("answers:\n  - text: [1, [2]]\n", expect![""]);
    check("answers:\n  - text: { a: b }\n", expect![""]);
    check("answers:\n  - text: a\n    usage: { input: -1 }\n", expect![""]);
    check("answers:\n  - text: a\n    delay_ms: 1.5\n", expect![""]);
    check("answers:\n  - text: a\n    delay_ms: 86400001\n", expect![""]);
    check("chunk_delay_ms: 86400001\nanswers:\n  - text: a\n", expect![""]);
    check("answers:\n  - text: a\n    expect: { turn: 0 }\n", expect![""]);
    check("answers:\n  - text: a\n    expect: { tool_result: { is_error: yes } }\n", expect![""]);
    check("answers: text\n", expect![""]);
    check("window_tokens: 100\noutput_tokens_max: 100\nanswers: [{text: a}]\n", expect![""]);
    check("output_tokens_max: 0\nanswers: [{text: a}]\n", expect![""]);
}

#[test]
fn answers_that_make_no_sense() {
    check("answers: []\n", expect![""]);
    check("answers:\n  - text: a\n  - expect: { turn: 2 }\n", expect![""]);
    check("answers:\n  - text: ''\n", expect![""]);
    check("answers:\n  - text: a\n    stop: tool_use\n", expect![""]);
    check("answers:\n  - tools: [ls]\n    stop: refusal\n", expect![""]);
    check("answers:\n  - text: a\n    stop: finished\n", expect![""]);
}

#[test]
fn wrong_tool_calls() {
    check("answers:\n  - tools:\n      - shell: ls\n", expect![""]);
    check("answers:\n  - tools:\n      - { shell: {}, search: {} }\n", expect![""]);
    check("answers:\n  - tools:\n      - { name: shell, args: {} }\n", expect![""]);
    check("answers:\n  - tools:\n      - { name: shell, id: 5 }\n", expect![""]);
    check("answers:\n  - tools:\n      - { name: '' }\n", expect![""]);
    check("answers:\n  - tools:\n      - { name: a, id: x }\n      - { name: b, id: x }\n", expect![""]);
    check("answers:\n  - tools: shell\n", expect![""]);
}

#[test]
fn wrong_faults() {
    check("answers:\n  - fault: overload\n", expect![""]);
    check("answers:\n  - fault: { class: aborted }\n", expect![""]);
    check("answers:\n  - fault: { status: 500 }\n", expect![""]);
    check("answers:\n  - fault: { class: server, retry: 5 }\n", expect![""]);
    check("answers:\n  - fault: { class: server, status: 99 }\n", expect![""]);
    check("answers:\n  - fault: { class: empty, message: a }\n", expect![""]);
    check("answers:\n  - fault: { class: cut, delay_ms: 86400001 }\n", expect![""]);
    check("answers:\n  - fault: cut\n    text: a\n", expect![""]);
    check("answers:\n  - fault: 5\n", expect![""]);
}

#[test]
fn wrong_yaml() {
    check("", expect![""]);
    check("answers:\n\t- text: a\n", expect![""]);
    check("answers:\n  - text: \"a\n", expect![""]);
    check("answers: [{text: a}]\n---\nanswers: [{text: b}]\n", expect![""]);
}

#[test]
fn wrong_files() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("demo.yaml");
    let error = |path| ScriptedModel::load(path).map(|_| "a script").unwrap_err().to_string();
    assert!(error(&path).ends_with("demo.yaml; check its path"), "{}", error(&path));
    fs::write(&path, vec![b'#'; 4 * 1024 * 1024]).unwrap();
    assert!(error(&path).contains("demo.yaml:1:1: "), "{}", error(&path));
    fs::write(&path, vec![b'#'; 4 * 1024 * 1024 + 1]).unwrap();
    assert!(error(&path).ends_with("demo.yaml is larger than 4194304 bytes; split it"), "{}", error(&path));
    fs::write(&path, b"answers: \xff").unwrap();
    assert!(error(&path).ends_with("demo.yaml; check its path"), "{}", error(&path));
}
