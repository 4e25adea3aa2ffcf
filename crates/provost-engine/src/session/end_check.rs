//! What an agent is asked before its end counts: once to go on or to close, if its answer has neither a tool call
//! nor a verdict; and once what proves its first `VERDICT: PASS` after it acted, where nothing else checks it.

use provost_event::{EndedCommand, ItemKind, PlanStatus, ToolFinished, ToolStatus, Verdict};
use serde::{Deserialize, Serialize};

use super::fingerprint::fingerprint;
use super::{Deciding, SessionState};
use crate::session::calls::FinishedCall;
use crate::session::segment;

/// Failed commands that are remembered, the newest.
const FAILED_MAX: usize = 32;
/// Files without a later command that are remembered, the first.
const FILES_MAX: usize = 64;
/// Bytes of a command that are kept.
const COMMAND_BYTES_MAX: usize = 400;

const TO_CLOSE: &str = "Your last answer calls no tool and has no VERDICT line, so that it says neither how you go on nor that \
    you are done. If work is left, go on now, with the next tool call. Otherwise give your last answer again in full, \
    since only the last one is passed on, and close it with one line: VERDICT: PASS, FAIL or PARTIAL.";

/// What the log knows about an agent's claim to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EndCheck {
    /// It was asked to go on or to close, since its goal or the last message.
    asked_to_close: bool,
    /// It was asked what proves its claim, since its goal or the last message.
    asked_for_proof: bool,
    /// A call since then may have changed something.
    has_acted: bool,
    /// Files that it wrote after the last command, the first of them.
    unchecked_files: Vec<String>,
    /// How many more there are.
    unchecked_more: u32,
    /// Commands whose last run didn't succeed, by that run, oldest first.
    failed: Vec<FailedCommand>,
}

/// A command whose last run didn't succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FailedCommand {
    /// The fingerprint of the whole command.
    id: u64,
    /// The command, cut to [`COMMAND_BYTES_MAX`].
    command: String,
    /// Its exit status; absent if it didn't run to completion.
    status: Option<i32>,
}

/// How entries change it.
impl EndCheck {
    /// The agent has another task: its next claim is another claim.
    pub(super) const fn begin_anew(&mut self) {
        self.asked_to_close = false;
        self.asked_for_proof = false;
        self.has_acted = false;
    }

    pub(super) const fn asked_to_close(&mut self) {
        self.asked_to_close = true;
    }

    pub(super) const fn asked_for_proof(&mut self) {
        self.asked_for_proof = true;
    }

    /// A call has its result. A change of the plan changes nothing else.
    pub(super) fn called(&mut self, call: &FinishedCall, finished: &ToolFinished) {
        for EndedCommand { command, exit_status } in &finished.facts.ended {
            self.ended(command, *exit_status);
        }
        let was_run = !matches!(finished.status, ToolStatus::Rejected | ToolStatus::Denied);
        if call.reads || !was_run || finished.plan.is_some() || finished.facts.waited {
            return;
        }
        self.has_acted = true;
        if finished.status == ToolStatus::Ok {
            call.writes.iter().for_each(|path| self.wrote(path));
        }
        if let Some(command) = &call.command {
            self.ran(command, finished);
        }
    }

    fn wrote(&mut self, path: &str) {
        if self.unchecked_files.iter().any(|known| known == path) {
        } else if self.unchecked_files.len() < FILES_MAX {
            self.unchecked_files.push(path.to_owned());
        } else {
            self.unchecked_more = self.unchecked_more.saturating_add(1);
        }
    }

    fn ran(&mut self, command: &str, finished: &ToolFinished) {
        let status = finished.facts.exit_status;
        let is_cut_short =
            matches!(finished.status, ToolStatus::TimedOut | ToolStatus::Cancelled | ToolStatus::Unknown);
        if status.is_none() && !is_cut_short {
            return;
        }
        self.unchecked_files.clear();
        self.unchecked_more = 0;
        self.ended(command, status.filter(|_| !is_cut_short || status != Some(0)));
    }

    /// A command has ended, also one that no call waited for.
    fn ended(&mut self, command: &str, status: Option<i32>) {
        let id = fingerprint([command]);
        self.failed.retain(|failed| failed.id != id);
        if status == Some(0) {
            return;
        }
        if self.failed.len() >= FAILED_MAX {
            self.failed.remove(0);
        }
        let command = command.trim();
        let end = command.floor_char_boundary(COMMAND_BYTES_MAX);
        let cut = command.get(..end).unwrap_or_default();
        let command = if end < command.len() { format!("{cut}…") } else { cut.to_owned() };
        self.failed.push(FailedCommand { id, command, status });
    }
}

impl FailedCommand {
    fn words(&self) -> String {
        let Self { command, status, .. } = self;
        let ended = match status {
            Some(status) => format!("ended with exit status {status}"),
            None => "didn't run to completion".to_owned(),
        };
        format!("`{command}` {ended}, and the same command hasn't succeeded since")
    }
}

/// Asks the agent whether its end is one, if it is to be asked. Returns whether it is: then the next turn begins.
pub(in crate::session) fn asks(deciding: &mut Deciding<'_>) -> bool {
    let Some((item, body)) = question(deciding.state) else { return false };
    deciding.say(item, body);
    deciding.end_turn(0);
    segment::next_turn(deciding);
    true
}

fn question(state: &SessionState) -> Option<(ItemKind, String)> {
    let SessionState { assignment, turns, end_check, .. } = state;
    let is_asked = assignment.policy().is_some_and(|policy| policy.final_check) && !assignment.is_external();
    // In the last turn no answer can follow, and a message that waits is answered in any case.
    let may_answer = !turns.is_last() && !turns.knows_last_turn();
    if !is_asked || !may_answer || turns.is_unheard() || state.hooks.have_prompts() {
        return None;
    }
    let is_checked = assignment.has_stop_checks() || state.goal.in_force(assignment).is_some();
    match Verdict::find(turns.text()) {
        None if !end_check.asked_to_close => Some((ItemKind::EndQuestion, TO_CLOSE.to_owned())),
        Some(Verdict::Pass) if !is_checked && end_check.has_acted && !end_check.asked_for_proof => {
            Some((ItemKind::FinalCheck, final_check(state)))
        }
        _ => None,
    }
}

fn final_check(state: &SessionState) -> String {
    let mut parts = vec![
        "You say that all of the goal is reached. Nothing else checks this, so check it once more yourself. The goal, as it \
         was given:"
            .to_owned(),
        state.assignment.goal().trim().to_owned(),
    ];
    parts.extend(facts(state));
    parts.push(
        "Go through the goal requirement by requirement, also those that it only implies. For each, name the command or \
         the call that proves it on the files as they are now; where there is none, make it now. Repair what fails. Then \
         give your last answer again in full, since only the last one is passed on, with the VERDICT line that is \
         true."
            .to_owned(),
    );
    parts.join("\n\n")
}

/// What the log knows that speaks against the claim.
fn facts(state: &SessionState) -> Option<String> {
    let EndCheck { unchecked_files, unchecked_more, failed, .. } = &state.end_check;
    let mut lines = Vec::new();
    let plan = state.conversation.plan().map(|plan| plan.items.as_slice()).unwrap_or_default();
    let open = plan.iter().filter(|step| step.status != PlanStatus::Done);
    lines.extend(open.map(|step| format!("- This step of your plan is open: {}", step.text)));
    lines.extend(failed.last().map(|failed| format!("- {}.", failed.words())));
    let running = state.calls.jobs();
    if !running.is_empty() {
        lines.push(format!(
            "- Background commands still ran when you last used them, and how they end isn't known: {}.",
            running.join(", ")
        ));
    }
    if !unchecked_files.is_empty() {
        let more = if *unchecked_more > 0 { format!(" and {unchecked_more} more") } else { String::new() };
        lines.push(format!(
            "- No command was run after these files were written: {}{more}.",
            unchecked_files.join(", ")
        ));
    }
    (!lines.is_empty()).then(|| format!("What the log of your work says:\n\n{}", lines.join("\n")))
}
