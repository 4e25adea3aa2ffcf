//! Errors in a script have a position and a remedy.

use std::fs;

use expect_test::{Expect, expect};
use provost_llm::ScriptedModel;
use tempfile::TempDir;

/// Shows the error of each script, one per line.
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
        expect![[r#"
            demo.yaml:1:1: there is no key `answer` here; did you mean `answers`? The names are `model`, `window_tokens`, `output_tokens_max`, `delay_ms`, `chunk_delay_ms`, `answers`, `summaries`, `final_summary`, `verdicts`, `hooks`, `agents`
            demo.yaml:3:5: there is no key `tols` here; did you mean `tools`? The names are `expect`, `fault`, `text`, `thinking`, `tools`, `usage`, `delay_ms`, `chunk_delay_ms`, `stop`
            demo.yaml:3:15: there is no key `containing` here; write one of `turn`, `messages`, `contains`, `not_contains`, `system`, `offers`, `tool_result`
            demo.yaml:3:30: there is no key `name` here; write one of `tool`, `is_error`, `contains`, `not_contains`
            demo.yaml:3:14: there is no key `in` here; write one of `input`, `output`, `cache_read`, `cache_write`
            demo.yaml:3:5: the key `text` is there twice; remove one of them
            demo.yaml:1:1: the script has no answers; write a list of answers under `answers:`, or a judge's under `verdicts:`
        "#]],
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
            "window_tokens: 100\noutput_tokens_max: 50\nanswers: [{text: a}]\n",
            "window_tokens: 2\nanswers: [{text: a}]\n",
            "output_tokens_max: 0\nanswers: [{text: a}]\n",
        ],
        expect![[r#"
            demo.yaml:2:15: something else stands where a text belongs; docs/script.md describes the format
            demo.yaml:2:5: integer `42` stands where a text or a list of texts belongs; text that looks like something else goes in quotes
            demo.yaml:2:11: map stands where a string belongs; text that looks like something else goes in quotes
            demo.yaml:3:15: string "shell" stands where a mapping or a list of mappings belongs; text that looks like something else goes in quotes
            demo.yaml:3:21: that isn't the number that belongs here; write a whole number from 0
            demo.yaml:3:15: that isn't the number that belongs here; write a whole number from 0
            demo.yaml:3:15: that delay is too long; write at most 86400000 milliseconds, a day
            demo.yaml:1:17: that delay is too long; write at most 86400000 milliseconds, a day
            demo.yaml:2:5: there is no turn 0; count turns from 1
            demo.yaml:3:40: that is neither true nor false; write `true` or `false`
            demo.yaml:1:10: something else stands where a list belongs; docs/script.md describes the format
            demo.yaml:1:11: something else stands where a mapping belongs; docs/script.md describes the format
            demo.yaml:2:20: answers of 100 tokens leave no room in a window of 100; make `output_tokens_max` at least 1 and less than half of `window_tokens`
            demo.yaml:2:20: answers of 50 tokens leave no room in a window of 100; make `output_tokens_max` at least 1 and less than half of `window_tokens`
            demo.yaml:1:16: answers of 1 tokens leave no room in a window of 2; make `output_tokens_max` at least 1 and less than half of `window_tokens`
            demo.yaml:1:20: answers of 0 tokens say nothing; make `output_tokens_max` at least 1 and less than half of `window_tokens`
        "#]],
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
            demo.yaml:1:1: the script has no answers; write a list of answers under `answers:`, or a judge's under `verdicts:`
            demo.yaml:3:5: the answer says nothing; give it `text` or `tools`, or write `fault: empty` for an empty answer
            demo.yaml:2:5: the answer says nothing; give it `text` or `tools`, or write `fault: empty` for an empty answer
            demo.yaml:2:5: the answer says nothing; give it `text` or `tools`, or write `fault: empty` for an empty answer
            demo.yaml:3:11: that isn't how this answer stops; leave `stop` out: it follows from whether there are `tools`
            demo.yaml:3:11: that isn't how this answer stops; leave `stop` out: it follows from whether there are `tools`
            demo.yaml:3:11: `finished` isn't known here; write one of `end_turn`, `tool_use`, `output_cap`, `refusal`, `commentary`
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
        expect![[r#"
            demo.yaml:3:9: the arguments of `shell` have no names; write them as a mapping, such as `shell: {argument: value}`
            demo.yaml:3:9: a tool call is `NAME: {arguments}`, or a mapping with `name`; docs/script.md describes the format
            demo.yaml:3:24: there is no key `args` here; write one of `name`, `input`, `id`, `malformed`
            demo.yaml:3:9: `id` of a tool call is a text; docs/script.md describes the format
            demo.yaml:3:9: a tool call has an empty name or id; name the tool, or leave `id` out
            demo.yaml:2:5: two tool calls have the id `x`; give each its own, or leave `id` out
            demo.yaml:2:12: something else stands where a list belongs; docs/script.md describes the format
        "#]],
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
        expect![[r#"
            demo.yaml:2:5: `overload` isn't known here; did you mean `overloaded`? The names are `transport`, `cut`, `stalled`, `silent`, `rate_limited`, `quota_used_up`, `overloaded`, `server`, `malformed_response`, `invalid_request`, `unauthorized`, `forbidden`, `not_found`, `context_too_long`, `empty`
            demo.yaml:2:21: `aborted` isn't known here; write one of `transport`, `cut`, `stalled`, `silent`, `rate_limited`, `quota_used_up`, `overloaded`, `server`, `malformed_response`, `invalid_request`, `unauthorized`, `forbidden`, `not_found`, `context_too_long`, `empty`
            demo.yaml:2:14: the key `class` is missing; add it
            demo.yaml:2:29: there is no key `retry` here; write one of `class`, `status`, `message`, `request_id`, `retry_after_ms`, `usage`, `text`, `delay_ms`, `chunk_delay_ms`
            demo.yaml:2:12: that isn't an HTTP status; write one from 100 to 599
            demo.yaml:2:12: an empty answer is no failure and says nothing; leave out `status`, `message` and `text`
            demo.yaml:2:12: that delay is too long; write at most 86400000 milliseconds, a day
            demo.yaml:2:12: an entry is either a fault or an answer; put the answer in an entry of its own behind it, and what belongs to the fault under `fault:`
            demo.yaml:2:5: integer `5` stands where a kind of fault such as `overloaded`, or a mapping with `class` belongs; text that looks like something else goes in quotes
        "#]],
    );
}

#[test]
fn wrong_agents() {
    const OWN: &str = "answers: [{text: a}]\nagents:\n";
    let script = |agents: &str| format!("{OWN}{agents}");
    let scripts = [
        "  - answers: [{text: a}]\n",
        "  - goal: a\n",
        "  - goal: a\n    answers: []\n",
        "  - goal: ' '\n    answers: [{text: a}]\n",
        "  - goal: a\n    answer: [{text: a}]\n",
        "  - goal: a\n    answers:\n      - text: ''\n",
        "  - goal: a\n    answers: [{text: a}]\n    final_summary: { texts: a }\n",
        "  - goal: a\n    answers: [{text: a}]\n    model: b\n",
        "  - goal: read\n    answers: [{text: a}]\n  - goal: read it\n    answers: [{text: a}]\n",
        "  - read\n",
    ]
    .map(script);
    check(
        &scripts.each_ref().map(String::as_str),
        expect![[r#"
            demo.yaml:3:5: the key `goal` is missing; add it
            demo.yaml:3:5: the agent has no answers; write a list of answers under its `answers:`, or a judge's under its `verdicts:`
            demo.yaml:3:5: the agent has no answers; write a list of answers under its `answers:`, or a judge's under its `verdicts:`
            demo.yaml:3:11: an empty goal fits every agent; write a text that is in the goals of the agents it is for
            demo.yaml:4:5: there is no key `answer` here; did you mean `answers`? The names are `goal`, `answers`, `summaries`, `final_summary`, `verdicts`, `hooks`
            demo.yaml:5:9: the answer says nothing; give it `text` or `tools`, or write `fault: empty` for an empty answer
            demo.yaml:5:22: there is no key `texts` here; did you mean `text`? The names are `expect`, `fault`, `text`, `thinking`, `tools`, `usage`, `delay_ms`, `chunk_delay_ms`, `stop`
            demo.yaml:5:5: there is no key `model` here; write one of `goal`, `answers`, `summaries`, `final_summary`, `verdicts`, `hooks`
            demo.yaml:5:11: unreachable: `read` above is in every goal that has `read it`; put the longer one first
            demo.yaml:3:5: something else stands where a mapping belongs; docs/script.md describes the format
        "#]],
    );
}

#[test]
fn wrong_verdicts() {
    check(
        &[
            "verdicts: []\n",
            "answers: [{text: a}]\nverdicts: text\n",
            "verdicts:\n  - achieve: true\n",
            "verdicts:\n  - text: a\n    tools: [shell]\n",
            "verdicts:\n  - achieved: yes\n    reasoning: a\n",
            "verdicts:\n  - achieved: true\n",
            "verdicts:\n  - { achieved: true, reasoning: ' ' }\n",
            "verdicts:\n  - reasoning: a\n",
            "verdicts:\n  - { achieved: true, reasoning: a, confidence: 1.01 }\n",
            "verdicts:\n  - { achieved: true, reasoning: a, confidence: -0.1 }\n",
            "verdicts:\n  - { achieved: true, reasoning: a, confidence: .nan }\n",
            "verdicts:\n  - { achieved: true, reasoning: a, confidence: high }\n",
            "verdicts:\n  - { achieved: true, reasoning: a, text: b }\n",
            "verdicts:\n  - { achieved: true, reasoning: a, fault: cut }\n",
            "verdicts:\n  - { achieved: true, reasoning: a, stop: tool_use }\n",
            "verdicts:\n  - expect: { turn: 2 }\n",
            "verdicts:\n  - text: ''\n",
            "answers: [{text: a}]\nagents:\n  - goal: a\n    verdicts: []\n",
        ],
        expect![[r#"
            demo.yaml:1:1: the script has no answers; write a list of answers under `answers:`, or a judge's under `verdicts:`
            demo.yaml:2:11: something else stands where a list belongs; docs/script.md describes the format
            demo.yaml:2:5: there is no key `achieve` here; did you mean `achieved`? The names are `expect`, `fault`, `text`, `thinking`, `achieved`, `confidence`, `reasoning`, `suggestions`, `usage`, `delay_ms`, `chunk_delay_ms`, `stop`
            demo.yaml:3:5: there is no key `tools` here; write one of `expect`, `fault`, `text`, `thinking`, `achieved`, `confidence`, `reasoning`, `suggestions`, `usage`, `delay_ms`, `chunk_delay_ms`, `stop`
            demo.yaml:2:15: that is neither true nor false; write `true` or `false`
            demo.yaml:2:5: the verdict has no reasons; add `reasoning`; what is no verdict is written as `text`
            demo.yaml:2:5: the verdict has no reasons; add `reasoning`; what is no verdict is written as `text`
            demo.yaml:2:5: the verdict doesn't say what it is; add `achieved: true` or `achieved: false`; what is no verdict is written as `text`
            demo.yaml:2:49: that is no confidence; write a number from 0 to 1, or the whole answer as `text`
            demo.yaml:2:49: that is no confidence; write a number from 0 to 1, or the whole answer as `text`
            demo.yaml:2:49: that is no confidence; write a number from 0 to 1, or the whole answer as `text`
            demo.yaml:2:49: that isn't the number that belongs here; write a number such as 0.9
            demo.yaml:2:5: an entry is either a text or a verdict; leave `text` out, or write the whole answer as `text`
            demo.yaml:2:44: an entry is either a fault or an answer; put the answer in an entry of its own behind it, and what belongs to the fault under `fault:`
            demo.yaml:2:43: that isn't how this answer stops; leave `stop` out: it follows from whether there are `tools`
            demo.yaml:2:5: the judge says nothing; give it `achieved` and `reasoning`, or `text`, or write `fault: empty`
            demo.yaml:2:5: the answer says nothing; give it `text` or `tools`, or write `fault: empty` for an empty answer
            demo.yaml:3:5: the agent has no answers; write a list of answers under its `answers:`, or a judge's under its `verdicts:`
        "#]],
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
        expect![[r#"
            demo.yaml:1:1: the script has no answers; write a list of answers under `answers:`, or a judge's under `verdicts:`
            demo.yaml:1:1: the script has no answers; write a list of answers under `answers:`, or a judge's under `verdicts:`
            demo.yaml:2:2: tabs disallowed within this context (block indentation); docs/script.md describes the format
            demo.yaml:3:1: invalid indentation in multiline quoted scalar; docs/script.md describes the format
            demo.yaml:3:1: a second script begins here; remove it, or put it in a file of its own
        "#]],
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
    assert!(error().contains("demo.yaml:1:1: the script has no answers"), "{}", error());
    fs::write(&path, vec![b'#'; 4 * 1024 * 1024 + 1]).unwrap();
    assert!(error().ends_with("demo.yaml is larger than 4194304 bytes; split it"), "{}", error());
    fs::write(&path, b"answers: \xff").unwrap();
    assert!(error().ends_with("demo.yaml; check its path"), "{}", error());
}
