//! Codex' events.

use expect_test::expect;

use super::super::codex::CodexExec;
use super::super::format::Opening;
use super::{OPENING, check};

#[test]
fn codex_tells_its_thread_its_messages_its_usage_and_its_end() {
    check(
        &mut CodexExec::new(OPENING),
        r#"
        {"type":"thread.started","thread_id":"01a1"}
        {"type":"item.completed","item":{"id":"item_0","type":"error","message":"Model metadata not found."}}
        {"type":"turn.started"}
        {"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"ls","status":"in_progress"}}
        {"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"ls","exit_code":0}}
        Reading additional input from stdin...
        {"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"Created proof.txt."}}
        {"type":"turn.completed","usage":{"input_tokens":200,"cached_input_tokens":50,"cache_write_input_tokens":10,"output_tokens":40,"reasoning_output_tokens":5}}
        {"type":"some.novelty"}
        [1, 2]
        "#,
        expect![[r#"
            < Session("01a1")
            < Error("Model metadata not found.")
            < Begun
            < Begun
            < Begun
            malformed
            < Begun
            < Break
            < Text("Created proof.txt.")
            < Used by session 140 40 50 10 5
            < Done(Whole)
            malformed
        "#]],
    );
}

#[test]
fn codex_fails_in_the_providers_words() {
    check(
        &mut CodexExec::new(OPENING),
        r#"
        {"type":"error","message":"{\"type\": \"error\", \"error\": {\"message\": \"the key is bad\", \"code\": 401}}"}
        {"type":"turn.failed","error":{"message":"{\"error\": {\"message\": \"the key is bad\"}}"}}
        {"type":"turn.failed"}
        "#,
        expect![[r#"
            < Error("the key is bad")
            < Done(Failed("the key is bad"))
            < Done(Failed("it gave no reason"))
        "#]],
    );
}

#[test]
fn another_thread_than_the_one_that_was_to_be_resumed_means_that_it_is_lost() {
    let resumed = Opening { session: Some("01a1"), ..OPENING };
    check(
        &mut CodexExec::new(resumed),
        r#"
        {"type":"thread.started","thread_id":"01a1"}
        {"type":"thread.started","thread_id":"02b2"}
        "#,
        expect![[r#"
            < Session("01a1")
            < Lost("it doesn't know its session 01a1 any more")
        "#]],
    );
}
