//! JSON streams of Claude Code and its like.

use expect_test::expect;

use super::super::format::{Format, NoReply};
use super::super::stream_json::StreamJson;
use super::{check, script};

#[test]
fn stream_json_tells_each_message_once_and_charges_each_call_once() {
    check(
        &mut StreamJson::new(),
        r#"
        {"type":"system","subtype":"init","cwd":"/w","session_id":"85","model":"m"}
        {"type":"system","subtype":"hook_response"}
        {"type":"assistant","message":{"id":"msg_1","content":[{"type":"text","text":"First"}],"usage":{"input_tokens":100,"output_tokens":20,"cache_read_input_tokens":3,"cache_creation_input_tokens":4}},"parent_tool_use_id":null}
        {"type":"assistant","message":{"id":"msg_1","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}],"usage":{"input_tokens":100,"output_tokens":20}},"parent_tool_use_id":null}
        {"type":"assistant","message":{"id":"msg_2","content":[{"type":"text","text":"of a helper"}],"usage":{"input_tokens":1,"output_tokens":1}},"parent_tool_use_id":"t"}
        {"type":"result","subtype":"success","is_error":false,"result":"First","total_cost_usd":0.002,"usage":{"input_tokens":101,"output_tokens":21}}
        {"type":"result","subtype":"success","is_error":false,"result":"Only here"}
        {"type":"result","subtype":"success","is_error":true,"result":"API Error: 400 the mock is broken"}
        {"type":"result","subtype":"error_max_turns","is_error":true}
        {"type":"result","subtype":"error_during_execution","is_error":true,"errors":["it broke"]}
        warning: something
        "#,
        expect![[r#"
            < Session("85")
            < Model("m")
            < Begun
            < Begun
            < Used by call 100 20 3 4 0
            < Break
            < Text("First")
            < Begun
            < Begun
            < Used by call 1 1 0 0 0
            < Used by prompt 101 21 0 0 0
            < Cost(Process(MicroDollars(2000)))
            < Done(Whole)
            < Break
            < Text("Only here")
            < Done(Whole)
            < Done(Failed(Failing { why: "API Error: 400 the mock is broken", class: None }))
            < Done(Cut("it has reached its own limit of turns"))
            < Done(Failed(Failing { why: "it broke", class: None }))
            malformed
        "#]],
    );
}

#[test]
fn stream_json_asks_and_is_answered_with_the_very_arguments_or_the_reason() {
    let mut reader = StreamJson::new();
    check(
        &mut reader,
        r#"
        {"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch a","description":"Touch"},"description":"Touch"}}
        {"type":"control_request","request_id":"r2","request":{"subtype":"can_use_tool","tool_name":"Write","input":{"file_path":"/w/a","content":"x"}}}
        {"type":"control_request","request_id":"r3","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{"questions":[{"question":"Which one?"}]}}}
        {"type":"control_request","request_id":"r4","request":{"subtype":"hook_callback"}}
        {"type":"control_cancel_request","request_id":"r3"}
        {"type":"control_cancel_request","request_id":"r9"}
        "#,
        expect![[r#"
            < Begun
            < Ask r1 Command `touch a` (Bash: Touch) allow=ApproveOnce, deny=Deny
            < Begun
            < Ask r2 Edit `/w/a` (Write: ) allow=ApproveOnce, deny=Deny
            < Begun
            < Ask r3 Other `-` (AskUserQuestion: Which one?) allow=ApproveOnce, deny=Deny
            > {"type":"control_response","response":{"subtype":"error","request_id":"r4","error":"not offered"}}
            < Withdrawn("r3")
        "#]],
    );
    assert_eq!(
        reader.approve("r1").unwrap().lines.concat(),
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{"behavior":"allow","updatedInput":{"command":"touch a","description":"Touch"}}}}"#
    );
    assert_eq!(
        reader.refuse("r2", "not there").unwrap().lines.concat(),
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"r2","response":{"behavior":"deny","message":"not there"}}}"#
    );
    for gone in ["r1", "r2", "r3"] {
        assert_eq!(reader.approve(gone), Err(NoReply::NotAsked));
    }
}

#[test]
fn stream_json_that_was_interrupted_has_stopped_and_not_failed() {
    let mut reader = StreamJson::new();
    assert_eq!(
        reader.interrupt(),
        [r#"{"type":"control_request","request_id":"interrupt-1","request":{"subtype":"interrupt"}}"#]
    );
    let line = r#"{"type":"result","subtype":"error_during_execution","is_error":true}"#;
    assert_eq!(script(&mut reader, line), "< Done(Cancelled)\n");
    let failed = "< Done(Failed(Failing { why: \"error_during_execution\", class: None }))\n";
    assert_eq!(script(&mut reader, line), failed);
}
