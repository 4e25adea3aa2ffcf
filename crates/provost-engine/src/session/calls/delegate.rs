//! Calls that another agent works for. The run starts the other agent and reports its result; the session only
//! waits.

use provost_event::{CallFacts, HookTrigger, Outcome, Seq, SubAgentResumed, SubAgentSuspended, ToolStatus};

use super::call::{CallStage, TrackedCall};
use crate::event::ToolResult;
use crate::session::{Deciding, calls::run};
use crate::{RunEvent, SubAgentReport, reminder};

/// Requests an agent from the run; the entry just committed identifies the call.
pub(in crate::session) fn delegate(deciding: &mut Deciding<'_>, tool: String, input: provost_event::Json) {
    let call = deciding.state.head;
    deciding.tell_run(RunEvent::Spawn { parent: deciding.state.session, call, tool, input });
}

/// The other agent is done, or there is none. A suspended session records this too: the event isn't repeated.
pub(in crate::session) fn sub_agent_finished(
    deciding: &mut Deciding<'_>,
    started: Seq,
    report: SubAgentReport,
) {
    let Some(call) = deciding.state.calls.of_answer.delegated_by(started).cloned() else { return };
    let limit = deciding.state.assignment.tool(&call.tool).map_or(usize::MAX, |spec| spec.output_bytes_max);
    let limit = limit.min(deciding.state.calls.output_share(deciding.state.window().room()));
    let SubAgentReport { status, text, status_line, duration_ms, ended } = report;
    let id = deciding.state.assignment.reminder_id();
    let output = with_status(text, status_line.as_deref(), id, limit);
    let result = ToolResult {
        tools: Vec::new(),
        asks: None,
        status,
        output,
        images: Vec::new(),
        whole: None,
        duration_ms,
        memory: None,
        plan: None,
        facts: CallFacts::default(),
    };
    let is_error = status.is_error();
    let about = match ended {
        Some((child, outcome)) => HookTrigger::ChildEnd { call: call.id.clone(), is_error, child, outcome },
        None => HookTrigger::Result { call: call.id.clone(), is_error },
    };
    run::finish_with(deciding, call, result, about);
    if deciding.state.lifecycle.is_live() {
        run::advance(deciding);
    }
}

/// The other agent is suspended: so is this one, once it has nothing else to do.
pub(in crate::session) fn sub_agent_suspended(deciding: &mut Deciding<'_>, started: Seq, outcome: Outcome) {
    let works = |call: &TrackedCall| !call.stage.is_suspended();
    if deciding.state.lifecycle.outcome().is_some()
        || !deciding.state.calls.of_answer.delegated_by(started).is_some_and(works)
    {
        return;
    }
    deciding.commit(SubAgentSuspended { started, outcome });
    run::advance(deciding);
}

/// The other agent works again, or is about to.
pub(in crate::session) fn sub_agent_resumed(deciding: &mut Deciding<'_>, started: Seq) {
    let is_suspended = |call: &TrackedCall| call.stage.is_suspended();
    if deciding.state.lifecycle.is_live()
        && deciding.state.calls.of_answer.delegated_by(started).is_some_and(is_suspended)
    {
        deciding.commit(SubAgentResumed { started });
    }
}

/// Gives each call that a sub-agent works for a result that says that it was stopped: the run stops that
/// agent.
pub(in crate::session) fn cut_delegated(deciding: &mut Deciding<'_>) {
    for call in deciding.state.calls.of_answer.delegated() {
        // No hook is called about work that wasn't done.
        let call = TrackedCall { stage: CallStage::Pending, ..call };
        let text = "The agent was stopped, and with it the one that worked for it.";
        run::finish(deciding, call, ToolResult::without_run(ToolStatus::Cancelled, text));
    }
}

/// Maximum bytes at the end of a text that are kept when its middle is left out.
const END_BYTES: usize = 2 * 1024;

/// What an agent said and, between the tags of Provost's messages, how it ended: the agent can't write these tags,
/// since it doesn't know the id. The status is never cut.
fn with_status(said: String, status_line: Option<&str>, id: &str, bytes_max: usize) -> String {
    let Some(line) = status_line else { return cut(said, bytes_max) };
    let status = reminder(line, id);
    let said = cut(said, bytes_max.saturating_sub(status.len()));
    format!("{said}\n\n{status}")
}

/// A text without its middle if it is too long, with a note in its place.
fn cut(text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let end = END_BYTES.min(bytes_max / 2);
    let beginning = text.get(..text.floor_char_boundary(bytes_max.saturating_sub(end))).unwrap_or_default();
    let end = text.get(text.ceil_char_boundary(text.len().saturating_sub(end))..).unwrap_or_default();
    let whole = text.len();
    format!("{beginning}\n[{whole} bytes in all; what is missing here is in that agent's log]\n{end}")
}
