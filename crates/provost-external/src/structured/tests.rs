//! Readers as scripts: lines in, events and replies out. The lines are those of real programs, shortened.

use expect_test::{Expect, expect};
use provost_event::{MicroDollars, Usage};
use provost_terminal::{StreamFormat, StructuredChannel};

use super::acp::Acp;
use super::codex::CodexExec;
use super::format::{Format, NoReply, Opening, arguments};
use super::meter::Meter;
use super::stream_item::{Cost, StreamItem, Used};
use super::stream_json::StreamJson;

const OPENING: Opening<'_> = Opening { folder: "/w", session: None, pid: 7 };

/// The results of the lines: `<` events, `>` replies.
fn script(reader: &mut dyn Format, lines: &str) -> String {
    let mut told = String::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let heard = reader.read(line);
        for said in heard.said {
            told.push_str(&format!("< {}\n", shown(&said)));
        }
        for reply in heard.replies {
            told.push_str(&format!("> {reply}\n"));
        }
        if heard.is_nonsense {
            told.push_str("malformed\n");
        }
    }
    told
}

fn shown(said: &StreamItem) -> String {
    match said {
        StreamItem::Ask(ask) => {
            let options: Vec<_> =
                ask.options.iter().map(|option| format!("{}={:?}", option.label, option.meaning)).collect();
            let subject = ask.subject.as_deref().unwrap_or("-");
            format!(
                "Ask {} {:?} `{subject}` ({}) {}",
                ask.fingerprint,
                ask.kind,
                ask.question,
                options.join(", ")
            )
        }
        StreamItem::Used(used) => {
            let (what, usage) = match used {
                Used::Call(usage) => ("call", usage),
                Used::Prompt(usage) => ("prompt", usage),
                Used::Session(usage) => ("session", usage),
            };
            let Usage {
                input_tokens,
                output_tokens,
                cache_read_tokens,
                cache_write_tokens,
                reasoning_tokens,
                certainty: _,
            } = usage;
            format!(
                "Used by {what} {input_tokens} {output_tokens} {cache_read_tokens} {cache_write_tokens} {reasoning_tokens}"
            )
        }
        other => format!("{other:?}"),
    }
}

fn check(reader: &mut dyn Format, lines: &str, expected: Expect) {
    expected.assert_eq(&script(reader, lines));
}

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

#[test]
fn arguments_take_the_session_up_again_where_that_is_done_by_arguments() {
    let of = |format, session| {
        let channel = StructuredChannel { format, args: vec!["speak".to_owned()] };
        arguments(&channel, session).join(" ")
    };
    assert_eq!(of(StreamFormat::CodexExec, None), "speak -");
    assert_eq!(of(StreamFormat::CodexExec, Some("a")), "speak resume a -");
    assert_eq!(of(StreamFormat::StreamJson, None), "speak");
    assert_eq!(of(StreamFormat::StreamJson, Some("a")), "speak --resume a");
    assert_eq!(of(StreamFormat::Acp, Some("a")), "speak");
}

const GREETED: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}"#;

/// A reader that has opened session `s` and was given a prompt, which is request 3.
fn at_work() -> Acp {
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
            r#"{{"id":1,"jsonrpc":"2.0","method":"initialize","params":{{"clientCapabilities":{{"fs":{{"readTextFile":false,"writeTextFile":false}},"terminal":false}},"clientInfo":{{"name":"provost","title":"Provost","version":"{version}"}},"protocolVersion":1}}}}"#
        )]
    );
    check(
        &mut acp,
        &format!("{GREETED}\n{}", r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","modes":null}}"#),
        expect![[r#"
            > {"id":2,"jsonrpc":"2.0","method":"session/new","params":{"cwd":"/w","mcpServers":[]}}
            < Session("s")
        "#]],
    );
    assert_eq!(
        acp.prompt("two\nlines"),
        [
            r#"{"id":3,"jsonrpc":"2.0","method":"session/prompt","params":{"prompt":[{"text":"two\nlines","type":"text"}],"sessionId":"s"}}"#
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
            < Ask acp-7-0 Command `touch proof.txt && ls` (bash) Allow always=ApproveAlways, Allow=ApproveOnce, Reject=Deny
            < Begun
            < Ask acp-7-x Command `cat > x <<E
            hi
            E` (cat > x <<E
            hi
            E) 
            < Begun
            < Ask acp-7-2 Edit `/w/notes.txt` (Writing to notes.txt) 
            < Begun
            < Ask acp-7-3 Tool `-` (It asks for consent, and doesn't say to what.) 
            > {"error":{"code":-32601,"message":"not offered"},"id":4,"jsonrpc":"2.0"}
        "#]],
    );
}

const ASKED: &str = r#"{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"always","name":"Allow always","kind":"allow_always"},{"optionId":"once","name":"Allow","kind":"allow_once"},{"optionId":"no","name":"Reject","kind":"reject_once"}],"toolCall":{"toolCallId":"c","title":"ls","kind":"execute"}}}"#;

#[test]
fn acp_is_answered_once_and_only_for_this_time() {
    let mut acp = at_work();
    acp.read(ASKED);
    let reply = acp.approve("acp-7-9").unwrap();
    assert_eq!(
        reply.line,
        r#"{"id":9,"jsonrpc":"2.0","result":{"outcome":{"optionId":"once","outcome":"selected"}}}"#
    );
    assert_eq!(reply.choice, "Allow");
    assert_eq!(acp.approve("acp-7-9"), Err(NoReply::NotAsked));
    acp.read(ASKED);
    assert!(acp.refuse("acp-7-9", "why").unwrap().line.contains(r#""optionId":"no""#));
    acp.read(&ASKED.replace("allow_once", "allow_always").replace("reject_once", "reject_never"));
    assert_eq!(acp.approve("acp-7-9"), Err(NoReply::NotOffered));
    assert!(acp.refuse("acp-7-9", "why").unwrap().line.contains(r#""outcome":{"outcome":"cancelled"}"#));
}

#[test]
fn acp_takes_its_questions_back_when_it_is_done_or_stopped() {
    let mut acp = at_work();
    acp.read(ASKED);
    check(
        &mut acp,
        r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"max_turn_requests"}}"#,
        expect![[r#"
            < Withdrawn("acp-7-9")
            < Done(Short("max turn requests"))
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
            r#"{"id":9,"jsonrpc":"2.0","result":{"outcome":{"outcome":"cancelled"}}}"#,
        ]
    );
}

#[test]
fn acp_fails_with_what_the_agent_tells() {
    for (error, expected) in [
        (
            r#"{"code":400,"message":"{\"error\":{\"message\":\"the mock is broken\"}}"}"#,
            "the mock is broken",
        ),
        (
            r#"{"code":-32603,"message":"Internal error","data":{"details":"400 the mock is broken"}}"#,
            "Internal error: 400 the mock is broken",
        ),
        (
            r#"{"code":-32000,"message":"Authentication required"}"#,
            "Authentication required (log in with the program itself first)",
        ),
    ] {
        let heard = at_work().read(&format!(r#"{{"jsonrpc":"2.0","id":3,"error":{error}}}"#));
        assert_eq!(shown(&heard.said[0]), format!("Done(Failed({expected:?}))"));
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
            > {"id":2,"jsonrpc":"2.0","method":"session/load","params":{"cwd":"/w","mcpServers":[],"sessionId":"old"}}
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
            > {"id":2,"jsonrpc":"2.0","method":"session/load","params":{"cwd":"/w","mcpServers":[],"sessionId":"old"}}
            < Lost("Internal error: No previous sessions found for this project.")
            > {"id":3,"jsonrpc":"2.0","method":"session/new","params":{"cwd":"/w","mcpServers":[]}}
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
            < Done(Failed("API Error: 400 the mock is broken"))
            < Done(Short("error max turns"))
            < Done(Failed("it broke"))
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
            > {"response":{"error":"not offered","request_id":"r4","subtype":"error"},"type":"control_response"}
            < Withdrawn("r3")
        "#]],
    );
    assert_eq!(
        reader.approve("r1").unwrap().line,
        r#"{"response":{"request_id":"r1","response":{"behavior":"allow","updatedInput":{"command":"touch a","description":"Touch"}},"subtype":"success"},"type":"control_response"}"#
    );
    assert_eq!(
        reader.refuse("r2", "not there").unwrap().line,
        r#"{"response":{"request_id":"r2","response":{"behavior":"deny","message":"not there"},"subtype":"success"},"type":"control_response"}"#
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
        [r#"{"request":{"subtype":"interrupt"},"request_id":"interrupt-1","type":"control_request"}"#]
    );
    let line = r#"{"type":"result","subtype":"error_during_execution","is_error":true}"#;
    assert_eq!(script(&mut reader, line), "< Done(Short(\"error during execution\"))\n");
    assert_eq!(script(&mut reader, line), "< Done(Failed(\"error_during_execution\"))\n");
}

/// Readers survive lines that are cut, mangled or left out.
#[test]
fn no_piece_of_a_line_stops_a_reader() {
    let lines = [
        ASKED,
        GREETED,
        r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":-1,"outputTokens":1e99}}}"#,
        r#"{"type":"result","subtype":"success","total_cost_usd":-1e300,"usage":{"input_tokens":"many"}}"#,
        r#"{"type":"item.completed","item":{"type":"agent_message","text":"ä€𝄞"}}"#,
        r#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","input":[1]}}"#,
    ];
    for line in lines {
        let mut readers: [Box<dyn Format>; 3] =
            [Box::new(at_work()), Box::new(CodexExec::new(OPENING)), Box::new(StreamJson::new())];
        for reader in &mut readers {
            for (at, _) in line.char_indices() {
                reader.read(&line[..at]);
                reader.read(&line[at..]);
                reader.read(&format!("{} {}", &line[..at], &line[at..]));
            }
            reader.read(line);
        }
    }
}

fn tokens(input: u64, output: u64) -> Usage {
    Usage { input_tokens: input, output_tokens: output, ..Usage::default() }
}

#[test]
fn each_token_is_charged_once_whatever_the_figures_count() {
    let mut meter = Meter::from(tokens(300, 60), MicroDollars(0));
    // Per session: earlier usage is already charged.
    meter.begin();
    meter.count(Used::Session(tokens(400, 80)));
    assert_eq!(meter.charge(), (tokens(100, 20), None));
    assert_eq!(meter.charge(), (tokens(0, 0), None));
    // Per call, and then for the whole prompt.
    meter.begin();
    meter.count(Used::Call(tokens(10, 1)));
    assert_eq!(meter.charge().0, tokens(10, 1));
    meter.count(Used::Call(tokens(20, 2)));
    meter.count(Used::Prompt(tokens(35, 3)));
    assert_eq!(meter.charge().0, tokens(25, 2));
    // The next prompt's figures begin anew.
    meter.begin();
    meter.count(Used::Prompt(tokens(35, 3)));
    assert_eq!(meter.charge().0, tokens(35, 3));
}

#[test]
fn money_is_charged_once_and_a_report_without_it_is_not_believed() {
    let mut meter = Meter::from(Usage::default(), MicroDollars(500));
    meter.pay(Cost::Process(MicroDollars(0)));
    assert_eq!(meter.charge().1, None);
    meter.pay(Cost::Process(MicroDollars(200)));
    assert_eq!(meter.charge().1, Some(MicroDollars(200)));
    meter.pay(Cost::Process(MicroDollars(250)));
    assert_eq!(meter.charge().1, Some(MicroDollars(50)));
    assert_eq!(meter.charge().1, Some(MicroDollars(0)));
    meter.forget_process();
    meter.pay(Cost::Process(MicroDollars(30)));
    meter.pay(Cost::Session(MicroDollars(560)));
    assert_eq!(meter.charge().1, Some(MicroDollars(90)));
}
