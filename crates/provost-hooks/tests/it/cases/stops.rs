//! Hooks that look at an agent before it stops: at its final answer, and at the transcript.

use provost_event::{Entry, HookContract};
use serde_json::json;

use super::{Case, Situation, case, check};
use crate::transcripts::{answer, begun, call, finished, text};

const STOP: &str = "Stop";

/// A session whose last answer is this.
fn that_said(words: &str) -> Vec<Entry> {
    vec![begun(), answer(vec![text("I begin.")]), answer(vec![text(words)])]
}

fn promised() -> Vec<Entry> {
    that_said("All green. <promise>DONE</promise>")
}

fn not_promised() -> Vec<Entry> {
    that_said("Half of it works.")
}

/// A session with a plan whose second step has this status.
fn planned(status: &str) -> Vec<Entry> {
    let steps =
        json!({ "items": [{ "text": "one", "status": "done" }, { "text": "two", "status": status }] });
    vec![
        begun(),
        answer(vec![call("c1", "update_plan", &steps)]),
        finished("c1", "update_plan", provost_event::ToolStatus::Ok, "noted"),
        answer(vec![text("Done.")]),
    ]
}

fn open_step() -> Vec<Entry> {
    planned("pending")
}

fn no_open_step() -> Vec<Entry> {
    planned("done")
}

fn many_answers() -> Vec<Entry> {
    std::iter::once(begun()).chain((0..40).map(|_| answer(vec![text("more")]))).collect()
}

/// A session that ran this command.
fn that_ran(command: &str) -> Vec<Entry> {
    vec![
        begun(),
        answer(vec![call("c1", "shell", &json!({ "command": command }))]),
        finished("c1", "shell", provost_event::ToolStatus::Ok, "fine"),
        answer(vec![text("Done.")]),
    ]
}

fn tested() -> Vec<Entry> {
    that_ran("cargo test")
}

fn untested() -> Vec<Entry> {
    that_ran("ls")
}

fn failed() -> Vec<Entry> {
    vec![
        begun(),
        answer(vec![call("c1", "shell", &json!({ "command": "make" }))]),
        finished("c1", "shell", provost_event::ToolStatus::Error, "red\nexit status 2"),
        answer(vec![text("Done.")]),
    ]
}

fn of_transcripts() -> Vec<Case> {
    use Situation::StopAfter as After;
    vec![
        case(
            "a loop until a promise",
            STOP,
            "#!/bin/bash\nt=$(jq -r .transcript_path)\nlast=$(grep '\"role\":\"assistant\"' \"$t\" | tail -1 | jq -r '.message.content | map(select(.type == \"text\")) | map(.text) | join(\"\\n\")')\n[[ $last == *'<promise>DONE</promise>'* ]] && exit 0\njq -n --arg r 'go on with the task' '{decision: \"block\", reason: $r}'\n",
            After("x", not_promised),
            After("x", promised),
        ),
        case(
            "the last hundred lines",
            STOP,
            "#!/bin/bash\nt=$(jq -r .transcript_path)\ngrep '\"role\":\"assistant\"' \"$t\" | tail -n 100 | jq -rs 'map(.message.content[]? | select(.type == \"text\") | .text) | last // \"\"' | grep -q DONE || { echo 'not yet' >&2; exit 2; }\n",
            After("x", not_promised),
            After("x", promised),
        ),
        case(
            "open todos",
            STOP,
            "#!/usr/bin/env python3\nimport json, sys\nopen_todos = []\nfor line in open(json.load(sys.stdin)['transcript_path']):\n    result = json.loads(line).get('toolUseResult')\n    if isinstance(result, dict) and 'newTodos' in result:\n        open_todos = [t for t in result['newTodos'] if t['status'] != 'completed']\nif open_todos:\n    print(json.dumps({'decision': 'block', 'reason': 'open: ' + open_todos[0]['content']}))\n",
            After("x", open_step),
            After("x", no_open_step),
        ),
        case(
            "todos of the last call",
            STOP,
            "#!/bin/sh\nt=$(jq -r .transcript_path)\njq -se '[.[] | select(.type == \"assistant\") | .message.content[]? | select(.type == \"tool_use\" and .name == \"TodoWrite\")] | last | .input.todos | map(select(.status == \"pending\")) | length == 0' \"$t\" >/dev/null || { echo 'still open' >&2; exit 2; }\n",
            After("x", open_step),
            After("x", no_open_step),
        ),
        case(
            "a counter of tokens",
            STOP,
            "#!/bin/sh\nt=$(jq -r .transcript_path)\nsum=$(jq -s '[.[] | .message.usage? // empty | .input_tokens + .output_tokens] | add' \"$t\")\n[ \"$sum\" -lt 1000 ] || { echo \"{\\\"continue\\\": false, \\\"stopReason\\\": \\\"$sum tokens\\\"}\"; }\n",
            After("x", many_answers),
            After("x", promised),
        ),
        case(
            "tests were run",
            STOP,
            "#!/usr/bin/env python3\nimport json, sys\nran = False\nfor line in open(json.load(sys.stdin)['transcript_path']):\n    entry = json.loads(line)\n    if entry['type'] != 'assistant':\n        continue\n    for block in entry['message']['content']:\n        if block['type'] == 'tool_use' and block['name'] == 'Bash' and 'test' in block['input']['command']:\n            ran = True\nif not ran:\n    sys.stderr.write('run the tests')\n    sys.exit(2)\n",
            After("x", untested),
            After("x", tested),
        ),
        case(
            "a failed call",
            STOP,
            "#!/bin/sh\nt=$(jq -r .transcript_path)\njq -se '[.[] | select(.type == \"user\") | .message.content | arrays | .[] | select(.is_error == true)] | length == 0' \"$t\" >/dev/null || { echo 'something failed' >&2; exit 2; }\n",
            After("x", failed),
            After("x", tested),
        ),
        case(
            "the number of turns",
            STOP,
            "#!/bin/sh\nt=$(jq -r .transcript_path)\n[ \"$(grep -c '\"type\":\"assistant\"' \"$t\")\" -lt 10 ] || { echo 'that was long: sum up' >&2; exit 2; }\n",
            After("x", many_answers),
            After("x", promised),
        ),
        case(
            "a chain from the last line to the first",
            STOP,
            "#!/usr/bin/env python3\nimport json, sys\nlines = [json.loads(line) for line in open(json.load(sys.stdin)['transcript_path'])]\nby_id = {line['uuid']: line for line in lines}\nat, steps = lines[-1], 1\nwhile at['parentUuid']:\n    at, steps = by_id[at['parentUuid']], steps + 1\nif steps > 10:\n    sys.stderr.write('a long way')\n    sys.exit(2)\n",
            After("x", many_answers),
            After("x", promised),
        ),
    ]
}

fn of_words() -> Vec<Case> {
    use Situation::{Stop, With};
    vec![
        case(
            "weasel words",
            STOP,
            "#!/bin/sh\njq -r .last_assistant_message | grep -qiE 'should work|probably' && { echo 'show that it works' >&2; exit 2; }\nexit 0\n",
            Stop("It should work now."),
            Stop("It works: 12 passed."),
        ),
        case(
            "an answer in JSON",
            STOP,
            "#!/bin/sh\njq -c 'if (.last_assistant_message | test(\"Verified\")) then {} else {decision: \"block\", reason: \"verify it\"} end'\n",
            Stop("Done."),
            Stop("Verified."),
        ),
        case(
            "context that sends on",
            STOP,
            "#!/bin/sh\njq -r .last_assistant_message | grep -q docs || echo '{\"hookSpecificOutput\": {\"hookEventName\": \"Stop\", \"additionalContext\": \"also the docs\"}}'\nexit 0\n",
            Stop("Done."),
            Stop("Done, with docs."),
        ),
        case(
            "once only",
            STOP,
            "#!/bin/sh\nin=$(cat)\n[ \"$(echo \"$in\" | jq .stop_hook_active)\" = true ] && exit 0\necho \"$in\" | jq -r .last_assistant_message | grep -q sure || { echo 'are you sure?' >&2; exit 2; }\n",
            Stop("Done."),
            Stop("I am sure."),
        ),
        case(
            "a reason of 104 KB",
            STOP,
            "#!/usr/bin/env python3\nimport json, sys\nif 'Short' not in json.load(sys.stdin)['last_assistant_message']:\n    print(json.dumps({'decision': 'block', 'reason': 'x' * 104_000}))\n",
            Stop("Done."),
            Stop("Short."),
        ),
        case(
            "a check of the tree",
            STOP,
            "#!/bin/sh\ntest ! -e core || { echo 'remove the dump' >&2; exit 2; }\n",
            With("core", ""),
            With("main.c", ""),
        ),
        case(
            "a linter's status",
            STOP,
            "#!/bin/bash\nif grep -rn 'debugger' --include=*.js . >/tmp/lint.$$; then cat /tmp/lint.$$ >&2; rm -f /tmp/lint.$$; exit 2; fi\nrm -f /tmp/lint.$$\n",
            With("a.js", "debugger;"),
            With("a.js", "run();"),
        ),
        case(
            "a sub-agent's final answer",
            "SubagentStop",
            "#!/bin/sh\njq -r .last_assistant_message | grep -q SUMMARY || { echo 'give a SUMMARY' >&2; exit 2; }\n",
            Stop("Read it."),
            Stop("SUMMARY: fine"),
        ),
        case(
            "the end of all",
            STOP,
            "#!/bin/sh\njq -r .last_assistant_message | grep -q 'give up' && echo '{\"continue\": false, \"stopReason\": \"it gives up\"}'\nexit 0\n",
            Stop("I give up."),
            Stop("Done."),
        ),
    ]
}

#[tokio::test]
async fn loops_counters_and_checks_that_read_the_transcript() {
    check(of_transcripts(), HookContract::Claude).await;
}

#[tokio::test]
async fn checks_of_the_last_message_and_the_tree() {
    check(of_words(), HookContract::Claude).await;
}
