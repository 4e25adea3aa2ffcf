//! The Agent Client Protocol.

use expect_test::expect;

use super::super::acp::Acp;
use super::super::format::{Format, NoReply, Opening};
use super::{OPENING, check, shown};

pub(super) const GREETED: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}"#;

/// A reader that has opened session `s` and was given a prompt, which is request 3.
pub(super) fn at_work() -> Acp {
    let mut acp = Acp::new(OPENING);
    acp.open();
    acp.read(GREETED);
    acp.read(r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}"#);
    assert!(acp.is_ready());
    acp.prompt("do it");
    acp
}

#[test]
fn acp_greets_opens_a_session_and_gives_it_the_prompt() {
    let mut acp = Acp::new(OPENING);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        acp.open(),
        [format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":1,"clientCapabilities":{{"fs":{{"readTextFile":false,"writeTextFile":false}},"terminal":false}},"clientInfo":{{"name":"provost","title":"Provost","version":"{version}"}}}}}}"#
        )]
    );
    check(
        &mut acp,
        &format!("{GREETED}\n{}", r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","modes":null}}"#),
        expect![[r#"
            > {"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}
            < Session("s")
        "#]],
    );
    assert_eq!(
        acp.prompt("two\nlines"),
        [
            r#"{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"two\nlines"}]}}"#
        ]
    );
}

#[test]
fn acp_tells_text_by_messages_and_usage_as_each_agent_counts_it() {
    check(
        &mut at_work(),
        r#"
        {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}
        {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Let me"}}}}
        {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"_meta":{"usage":{"inputTokens":100,"outputTokens":20,"totalTokens":120,"thoughtTokens":5,"cachedReadTokens":30}}}}}
        {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"ls","kind":"execute","status":"pending"}}}
        not of the protocol
        {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"text","text":"Done."}}}}
        {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"usage_update","used":100,"size":100000,"cost":{"amount":0.0123,"currency":"USD"}}}}
        {"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":100,"outputTokens":20,"totalTokens":165,"cachedReadTokens":45}}}
        "#,
        expect![[r#"
            < Begun
            < Text("Let me")
            < Begun
            < Used by call 70 20 30 0 5
            < Begun
            < Break
            malformed
            < Break
            < Begun
            < Text("Done.")
            < Cost(Session(MicroDollars(12300)))
            < Used by prompt 100 20 45 0 0
            < Done(Whole)
        "#]],
    );
}

#[test]
fn acp_asks_with_what_is_known_of_the_call_and_offers_nothing_itself() {
    check(
        &mut at_work(),
        r#"
        {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"bash","kind":"execute","status":"pending","rawInput":{}}}}
        {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress","rawInput":{"command":"touch proof.txt && ls"}}}}
        {"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"always","name":"Allow always","kind":"allow_always"},{"optionId":"once","name":"Allow","kind":"allow_once"},{"optionId":"no","name":"Reject","kind":"reject_once"}],"toolCall":{"toolCallId":"c"}}}
        {"jsonrpc":"2.0","id":"x","method":"session/request_permission","params":{"sessionId":"s","options":[],"toolCall":{"toolCallId":"d","title":"cat > x <<E\nhi\nE","kind":"execute"}}}
        {"jsonrpc":"2.0","id":2,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"e","title":"Writing to notes.txt","content":[{"type":"diff","path":"/w/notes.txt"}],"locations":[],"kind":"edit"}}}
        {"jsonrpc":"2.0","id":3,"method":"session/request_permission","params":{"sessionId":"s","options":null,"toolCall":null}}
        {"jsonrpc":"2.0","id":4,"method":"fs/write_text_file","params":{"path":"/etc/passwd","content":""}}
        "#,
        expect![[r#"
            < Begun
            < Break
            < Begun
            < Break
            < Begun
            < Ask acp-7-1 Command `touch proof.txt && ls` (bash) Allow always=ApproveAlways, Allow=ApproveOnce, Reject=Deny
            < Begun
            < Ask acp-7-2 Command `cat > x <<E
            hi
            E` (cat > x <<E
            hi
            E) 
            < Begun
            < Ask acp-7-3 Edit `/w/notes.txt` (Writing to notes.txt) 
            < Begun
            < Ask acp-7-4 Tool `-` (It asks for consent, and doesn't say to what.) 
            > {"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"not offered"}}
        "#]],
    );
}

pub(super) const ASKED: &str = r#"{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"always","name":"Allow always","kind":"allow_always"},{"optionId":"once","name":"Allow","kind":"allow_once"},{"optionId":"no","name":"Reject","kind":"reject_once"}],"toolCall":{"toolCallId":"c","title":"ls","kind":"execute"}}}"#;

#[test]
fn acp_is_answered_once_and_only_for_this_time() {
    let mut acp = at_work();
    acp.read(ASKED);
    let reply = acp.approve("acp-7-1").unwrap();
    assert_eq!(
        reply.lines.concat(),
        r#"{"jsonrpc":"2.0","id":9,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}"#
    );
    assert_eq!(reply.choice, "Allow");
    assert_eq!(acp.approve("acp-7-1"), Err(NoReply::NotAsked));
    acp.read(ASKED);
    assert!(acp.refuse("acp-7-2", "why").unwrap().lines.concat().contains(r#""optionId":"no""#));
    acp.read(&ASKED.replace("allow_once", "allow_always").replace("reject_once", "reject_never"));
    assert_eq!(acp.approve("acp-7-3"), Err(NoReply::NotOffered));
    assert!(
        acp.refuse("acp-7-3", "why").unwrap().lines.concat().contains(r#""outcome":{"outcome":"cancelled"}"#)
    );
}

#[test]
fn acp_takes_its_questions_back_when_it_is_done_or_stopped() {
    let mut acp = at_work();
    acp.read(ASKED);
    check(
        &mut acp,
        r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"max_turn_requests"}}"#,
        expect![[r#"
            < Withdrawn("acp-7-1")
            < Done(Cut("it has reached its own limit of requests"))
        "#]],
    );
    assert!(acp.interrupt().is_empty());
    // Asked while it has no prompt.
    assert!(acp.read(ASKED).replies[0].contains("cancelled"));
    acp.prompt("again");
    acp.read(ASKED);
    assert_eq!(
        acp.interrupt(),
        [
            r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#,
            r#"{"jsonrpc":"2.0","id":9,"result":{"outcome":{"outcome":"cancelled"}}}"#,
        ]
    );
}

#[test]
fn acp_fails_with_what_the_agent_tells() {
    for (error, expected) in [
        (
            r#"{"code":400,"message":"{\"error\":{\"message\":\"the mock is broken\"}}"}"#,
            ("the mock is broken", "Some(InvalidRequest)"),
        ),
        (
            r#"{"code":-32603,"message":"Internal error","data":{"details":"400 the mock is broken"}}"#,
            ("Internal error: 400 the mock is broken", "None"),
        ),
        (
            r#"{"code":-32000,"message":"Authentication required"}"#,
            ("Authentication required (log in with the program itself first)", "Some(Unauthorized)"),
        ),
    ] {
        let heard = at_work().read(&format!(r#"{{"jsonrpc":"2.0","id":3,"error":{error}}}"#));
        let (why, class) = expected;
        let failing = format!("Failing {{ why: {why:?}, class: {class} }}");
        assert_eq!(shown(&heard.said[0]), format!("Done(Failed({failing}))"));
    }
}

#[test]
fn acp_takes_a_session_up_without_repeating_it_and_begins_another_where_it_is_lost() {
    let resumed = Opening { session: Some("old"), ..OPENING };
    let mut acp = Acp::new(resumed);
    acp.open();
    check(
        &mut acp,
        &format!(
            "{GREETED}\n{}\n{}",
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"said long ago"}}}}"#,
            r#"{"jsonrpc":"2.0","id":2,"result":{}}"#,
        ),
        expect![[r#"
            > {"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":"old","cwd":"/w","mcpServers":[]}}
            < Session("old")
        "#]],
    );
    let mut acp = Acp::new(resumed);
    acp.open();
    check(
        &mut acp,
        &format!(
            "{GREETED}\n{}",
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"Internal error","data":{"details":"No previous sessions found for this project."}}}"#,
        ),
        expect![[r#"
            > {"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":"old","cwd":"/w","mcpServers":[]}}
            < Lost("Internal error: No previous sessions found for this project.")
            > {"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}
        "#]],
    );
    let mut acp = Acp::new(OPENING);
    acp.open();
    check(
        &mut acp,
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2}}"#,
        expect![[r#"
            < Unfit("it speaks version 2 of the Agent Client Protocol, Provost version 1")
        "#]],
    );
}
