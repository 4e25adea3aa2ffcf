//! A look at a server without a run: to test it, and to agree to it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use provost_harness::AgentSandbox;
use serde_json::{Map, Value};

use crate::connection::{Call, CallEnd, Connection};
use crate::definition::RefusedTool;
use crate::live::words;
use crate::oauth::tokens;
use crate::result::output_of;
use crate::{ConnectError, Lifecycle, Pins, ServerSetup, estimated_tokens};

/// How long a call of a test may take.
const CALL_MAX: Duration = Duration::from_secs(60);

/// What was seen of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    /// What the user would agree to.
    pub pins: Pins,
    /// The tools that aren't taken.
    pub refused: Vec<RefusedTool>,
    /// The revision of the protocol.
    pub protocol: String,
    /// Tokens of its tools in a request, by an estimate.
    pub tokens: u64,
    /// The time from the start to the list of tools.
    pub took: Duration,
    /// The result of the call, if one was asked for.
    pub called: Option<Result<String, String>>,
    /// What the sandbox denied.
    pub denied: Vec<String>,
}

/// Starts a server in `program_box`, lists its tools, calls one if `call` names one, and ends it.
///
/// # Errors
/// When it can't be reached or listed.
pub async fn inspect(
    setup: &ServerSetup,
    program_box: &Arc<dyn AgentSandbox>,
    remembered: Option<Lifecycle>,
    call: Option<(&str, Map<String, Value>)>,
) -> Result<Inspection, ConnectError> {
    let began = Instant::now();
    let with_denials = |mut error: ConnectError| {
        let denied = if program_box.confines() { program_box.denials(&error.why) } else { Vec::new() };
        if !denied.is_empty() {
            error.why.push_str(&format!("\nsandbox: {}", denied.join("; ")));
        }
        error
    };
    let connection =
        Connection::open(setup, &program_box.confinement(), remembered).await.map_err(with_denials)?;
    let listed = match connection.list().await {
        Ok(listed) => listed,
        Err(failure) => {
            let why = format!("its tools can't be listed: {}", words(&failure));
            connection.end().await;
            return Err(with_denials(ConnectError { server: setup.name.clone(), why }));
        }
    };
    let took = began.elapsed();
    let called = match call {
        Some((tool, arguments)) => {
            let told = called(&connection, tool, arguments).await;
            // What the server says may repeat what it was sent.
            let tokens = tokens(&setup.reach);
            let without =
                |text: String| tokens.iter().fold(text, |text, token| text.replace(token, "[secret]"));
            Some(told.map(without).map_err(without))
        }
        None => None,
    };
    let failed = match &called {
        Some(Err(why)) => why.as_str(),
        _ => "",
    };
    let denied = if program_box.confines() { program_box.denials(failed) } else { Vec::new() };
    let mut pins = Pins::new(&setup.name, &setup.written, listed.tools);
    pins.calls_itself.clone_from(&connection.calls_itself);
    pins.lifecycle = connection.lifecycle;
    let tokens = pins.tools.iter().map(|tool| estimated_tokens(&tool.spec(setup))).sum();
    let protocol = connection.protocol.clone();
    connection.end().await;
    Ok(Inspection { pins, refused: listed.refused, protocol, tokens, took, called, denied })
}

async fn called(
    connection: &Connection,
    tool: &str,
    arguments: Map<String, Value>,
) -> Result<String, String> {
    let call = Call { tool: tool.to_owned(), arguments, waited: None };
    let end = tokio::time::timeout(CALL_MAX, connection.call(call)).await;
    match end {
        Err(_) => Err(format!("no result within {} s", CALL_MAX.as_secs())),
        Ok(Err(failure)) => Err(words(&failure)),
        Ok(Ok(CallEnd::Done(result))) => {
            let output = output_of(&result);
            if output.status.is_error() { Err(output.text) } else { Ok(output.text) }
        }
        Ok(Ok(CallEnd::Refused(why, _))) => Err(why),
        Ok(Ok(CallEnd::Asks(waiting))) => {
            let asked = waiting.question().map(|question| question.message.clone()).unwrap_or_default();
            Err(format!("it asks first: {asked}"))
        }
    }
}
