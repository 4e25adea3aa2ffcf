//! Codex's app server.

use expect_test::expect;

use super::super::app_server::AppServer;
use super::super::format::{Format, NoReply, Opening};
use super::{OPENING, check};

/// A reader that has started thread `t`; its prompt, request 4, is turn `u`.
fn at_work() -> AppServer {
    let mut server = AppServer::new(OPENING);
    server.open();
    server.read(r#"{"id":1,"result":{"userAgent":"codex/1"}}"#);
    server.read(r#"{"id":2,"result":{"account":null,"requiresOpenaiAuth":false}}"#);
    server.read(r#"{"id":3,"result":{"thread":{"id":"t"},"model":"m"}}"#);
    assert!(server.is_ready());
    server.prompt("do it");
    server.read(r#"{"id":4,"result":{"turn":{"id":"u","status":"inProgress"}}}"#);
    server
}

#[test]
fn codex_starts_a_thread_and_tells_its_messages_its_usage_and_its_end() {
    let mut server = AppServer::new(OPENING);
    assert!(server.open()[0].contains(r#""method":"initialize""#));
    check(
        &mut server,
        r#"
        {"id":1,"result":{"userAgent":"codex/1"}}
        {"method":"remoteControl/status/changed","params":{"status":"disabled"}}
        {"id":2,"result":{"account":{"type":"apiKey"},"requiresOpenaiAuth":true}}
        {"id":3,"result":{"thread":{"id":"t"},"model":"m"}}
        "#,
        expect![[r#"
            > {"method":"initialized"}
            > {"id":2,"method":"account/read","params":{"refreshToken":false}}
            > {"id":3,"method":"thread/start","params":{"cwd":"/w"}}
            < Session("t")
            < Model("m")
        "#]],
    );
    assert_eq!(
        server.prompt("two\nlines"),
        [
            r#"{"id":4,"method":"turn/start","params":{"threadId":"t","input":[{"type":"text","text":"two\nlines","text_elements":[]}]}}"#
        ]
    );
    check(
        &mut server,
        r#"
        {"id":4,"result":{"turn":{"id":"u","status":"inProgress"}}}
        {"method":"warning","params":{"threadId":"t","message":"Model metadata not found."}}
        {"method":"turn/started","params":{"threadId":"t","turn":{"id":"u","status":"inProgress"}}}
        {"method":"item/completed","params":{"threadId":"t","item":{"type":"userMessage","id":"1","content":[]}}}
        {"method":"item/completed","params":{"threadId":"t","item":{"type":"commandExecution","id":"c","command":"/bin/bash -lc 'touch a'","status":"completed","exitCode":1}}}
        {"method":"item/agentMessage/delta","params":{"threadId":"t","turnId":"u","itemId":"m","delta":"Cre"}}
        {"method":"item/completed","params":{"threadId":"t","item":{"type":"agentMessage","id":"m","text":"Created."}}}
        {"method":"item/completed","params":{"threadId":"sub","item":{"type":"agentMessage","id":"m","text":"Of a sub-agent."}}}
        {"method":"turn/completed","params":{"threadId":"sub","turn":{"id":"v","status":"completed"}}}
        {"method":"thread/tokenUsage/updated","params":{"threadId":"t","turnId":"u","tokenUsage":{"total":{"inputTokens":200,"cachedInputTokens":50,"cacheWriteInputTokens":10,"outputTokens":40,"reasoningOutputTokens":5}}}}
        {"method":"error","params":{"threadId":"t","turnId":"u","willRetry":true,"error":{"message":"Reconnecting... 1/5","additionalDetails":"status 500"}}}
        {"method":"turn/completed","params":{"threadId":"t","turn":{"id":"earlier","status":"completed"}}}
        {"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"completed","error":null}}}
        [1, 2]
        "#,
        expect![[r#"
            < Notice("Model metadata not found.")
            < Begun
            < Begun
            < Activity(Call(ProgramCall { kind: Command, subject: "touch a", succeeded: false, changes: [] }))
            < Begun
            < Begun
            < Break
            < Text("Created.")
            < Used by session 140 40 50 10 5
            < Error("Reconnecting... 1/5 (status 500)")
            < Done(Whole)
            malformed
        "#]],
    );
}

#[test]
fn codex_asks_with_the_script_that_a_shell_runs_and_with_the_folder_where_it_is_another() {
    check(
        &mut at_work(),
        r#"
        {"method":"item/commandExecution/requestApproval","id":0,"params":{"kind":"command","threadId":"t","turnId":"u","itemId":"c","reason":"May I?","command":"/bin/bash -lc 'touch proof.txt'","cwd":"/w"}}
        {"method":"item/commandExecution/requestApproval","id":1,"params":{"threadId":"t","turnId":"u","itemId":"c","command":"/bin/bash -lc \"touch it\\\\'s && echo \\\"a 'b' \"'$HOME\" > '\"'x y'\"","cwd":"/w/it's"}}
        {"method":"item/commandExecution/requestApproval","id":2,"params":{"threadId":"t","turnId":"u","itemId":"c","command":"/bin/bash -lc 'touch a' b","cwd":"/w"}}
        {"method":"item/commandExecution/requestApproval","id":3,"params":{"kind":"writeStdin","threadId":"t","turnId":"u","itemId":"c","command":"rm x","cwd":"/w"}}
        {"method":"item/commandExecution/requestApproval","id":4,"params":{"threadId":"t","turnId":"u","itemId":"c","networkApprovalContext":{"host":"example.org","protocol":"https"}}}
        {"method":"item/started","params":{"threadId":"t","item":{"type":"fileChange","id":"f","changes":[{"path":"/w/a","kind":{"type":"update","move_path":null},"diff":""}]}}}
        {"method":"item/fileChange/requestApproval","id":5,"params":{"threadId":"t","turnId":"u","itemId":"f"}}
        {"method":"item/fileChange/requestApproval","id":6,"params":{"threadId":"t","turnId":"u","itemId":"f","grantRoot":"/w"}}
        {"method":"item/started","params":{"threadId":"t","item":{"type":"fileChange","id":"g","changes":[{"path":"/w/a","kind":{"type":"update","move_path":"/etc/b"},"diff":""}]}}}
        {"method":"item/fileChange/requestApproval","id":7,"params":{"threadId":"t","turnId":"u","itemId":"g"}}
        {"method":"item/permissions/requestApproval","id":8,"params":{"threadId":"t","turnId":"u","itemId":"p","reason":"More","permissions":{"network":{"enabled":true}}}}
        {"method":"mcpServer/elicitation/request","id":9,"params":{"threadId":"t","serverName":"s","mode":"form","message":"Really?","requestedSchema":{"type":"object","properties":{}}}}
        {"method":"mcpServer/elicitation/request","id":10,"params":{"threadId":"t","serverName":"s","mode":"form","message":"Name?","requestedSchema":{"type":"object","properties":{"name":{}}}}}
        {"method":"item/tool/requestUserInput","id":11,"params":{"threadId":"t","questions":[]}}
        "#,
        expect![[r#"
            < Begun
            < Ask codex-7-1 Command `touch proof.txt` (May I?) accept=ApproveOnce, decline=Deny
            < Begun
            < Ask codex-7-2 Command `cd '/w/it'\''s' && touch it\'s && echo "a 'b' $HOME" > 'x y'` (Run this command?) accept=ApproveOnce, decline=Deny
            < Begun
            < Ask codex-7-3 Command `/bin/bash -lc 'touch a' b` (Run this command?) accept=ApproveOnce, decline=Deny
            < Begun
            < Ask codex-7-4 Other `-` (It asks for consent: rm x) accept=ApproveOnce, decline=Deny
            < Begun
            < Ask codex-7-5 Network `https://example.org` (Let it use the network?) accept=ApproveOnce, decline=Deny
            < Begun
            < Begun
            < Ask codex-7-6 Edit `/w/a` (Make these changes?) accept=ApproveOnce, decline=Deny
            < Begun
            < Ask codex-7-7 Edit `-` (Make these changes?: /w/a (and later changes below /w)) accept=ApproveOnce, decline=Deny
            < Begun
            < Begun
            < Ask codex-7-8 Edits `/w/a
            /etc/b` (Make these changes?) accept=ApproveOnce, decline=Deny
            < Begun
            < Ask codex-7-9 Other `-` (More: {"network":{"enabled":true}}) accept=ApproveOnce, decline=Deny
            < Begun
            < Ask codex-7-10 Other `-` (Really?: s) accept=ApproveOnce, decline=Deny
            > {"id":10,"error":{"code":-32601,"message":"not offered"}}
            > {"id":11,"error":{"code":-32601,"message":"not offered"}}
        "#]],
    );
}

#[test]
fn codex_is_answered_once_and_a_refusal_is_followed_by_its_reason() {
    const ASKED: &str = r#"{"method":"item/commandExecution/requestApproval","id":"q","params":{"threadId":"t","turnId":"u","itemId":"c","command":"ls","cwd":"/w"}}"#;
    let mut server = at_work();
    server.read(ASKED);
    let reply = server.approve("codex-7-1").unwrap();
    assert_eq!(reply.lines, [r#"{"id":"q","result":{"decision":"accept"}}"#]);
    assert_eq!(server.approve("codex-7-1"), Err(NoReply::NotAsked));
    server.read(ASKED);
    let reply = server.refuse("codex-7-2", "not today").unwrap();
    assert!(reply.tells_reason);
    assert_eq!(
        reply.lines,
        [
            r#"{"id":"q","result":{"decision":"decline"}}"#,
            r#"{"id":5,"method":"turn/steer","params":{"threadId":"t","expectedTurnId":"u","input":[{"type":"text","text":"not today","text_elements":[]}]}}"#
        ]
    );
    check(
        &mut server,
        r#"{"id":5,"error":{"code":-32600,"message":"no active turn to steer"}}"#,
        expect![[r#"
            < Untold("not today")
        "#]],
    );
    server.read(ASKED);
    check(
        &mut server,
        r#"{"method":"serverRequest/resolved","params":{"threadId":"t","requestId":"q"}}"#,
        expect![[r#"
            < Withdrawn("codex-7-3")
        "#]],
    );
    server.read(ASKED);
    assert_eq!(
        server.interrupt(),
        [
            r#"{"id":"q","result":{"decision":"cancel"}}"#,
            r#"{"id":6,"method":"turn/interrupt","params":{"threadId":"t","turnId":"u"}}"#
        ]
    );
}

#[test]
fn codex_is_done_once_the_commands_that_it_began_have_ended() {
    check(
        &mut at_work(),
        r#"
        {"method":"item/started","params":{"threadId":"t","item":{"type":"commandExecution","id":"c","command":"make"}}}
        {"method":"item/started","params":{"threadId":"sub","item":{"type":"commandExecution","id":"d","command":"make"}}}
        {"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"completed"}}}
        {"method":"item/completed","params":{"threadId":"t","item":{"type":"commandExecution","id":"c","command":"make","status":"completed","exitCode":0}}}
        "#,
        expect![[r#"
            < Begun
            < Begun
            < Begun
            < Activity(Call(ProgramCall { kind: Command, subject: "make", succeeded: true, changes: [] }))
            < Done(Whole)
        "#]],
    );
    let mut server = at_work();
    server.read(r#"{"method":"item/started","params":{"threadId":"t","item":{"type":"commandExecution","id":"c","command":"make"}}}"#);
    server.read(
        r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"completed"}}}"#,
    );
    // Only its end stops the command.
    assert!(server.interrupt().is_empty());
}

#[test]
fn codex_fails_with_the_class_that_it_names() {
    for (error, expected) in [
        (
            r#"{"message":"status 401","codexErrorInfo":{"httpConnectionFailed":{"httpStatusCode":401}}}"#,
            "Unauthorized",
        ),
        (r#"{"message":"high demand","codexErrorInfo":"internalServerError"}"#, "Server"),
        (
            r#"{"message":"x","codexErrorInfo":{"responseTooManyFailedAttempts":{"httpStatusCode":429}}}"#,
            "RateLimited",
        ),
        (
            r#"{"message":"{\"error\":{\"message\":\"x\",\"quoted\":1}}","codexErrorInfo":"usageLimitExceeded"}"#,
            "QuotaUsedUp",
        ),
        (r#"{"message":"x","codexErrorInfo":"contextWindowExceeded"}"#, "ContextExhausted"),
        (
            r#"{"message":"x","codexErrorInfo":{"responseStreamDisconnected":{"httpStatusCode":null}}}"#,
            "Transport",
        ),
    ] {
        let line = format!(
            r#"{{"method":"turn/completed","params":{{"threadId":"t","turn":{{"id":"u","status":"failed","error":{error}}}}}}}"#
        );
        let heard = at_work().read(&line);
        let said = format!("{:?}", heard.said);
        assert!(!said.contains("quoted"), "{said}");
        assert!(said.contains(&format!("class: Some({expected})")), "{said}");
    }
}

#[test]
fn codex_resumes_a_thread_and_starts_another_where_it_is_lost() {
    let mut server = AppServer::new(Opening { session: Some("old"), ..OPENING });
    server.open();
    check(
        &mut server,
        r#"
        {"id":1,"result":{"userAgent":"codex/1"}}
        {"error":{"code":-32601,"message":"unknown method"},"id":2}
        {"error":{"code":-32600,"message":"no rollout found for thread id old"},"id":3}
        {"id":4,"result":{"thread":{"id":"new"},"model":"m"}}
        "#,
        expect![[r#"
            > {"method":"initialized"}
            > {"id":2,"method":"account/read","params":{"refreshToken":false}}
            > {"id":3,"method":"thread/resume","params":{"threadId":"old","cwd":"/w","excludeTurns":true}}
            < Lost("no rollout found for thread id old")
            > {"id":4,"method":"thread/start","params":{"cwd":"/w"}}
            < Session("new")
            < Model("m")
        "#]],
    );
}
