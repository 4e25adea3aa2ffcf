//! The evidence in a judge's prompt: a section for each kind, each within its share of the tokens, and the actions
//! in the rest.

use provost_event::{HookReport, PlanStatus, StopHookVerdict, ToolStatus};

use super::sheet::{Ends, Sheet, beginning, ends};
use super::{Action, Evidence, Since};
use crate::fence::Label;

/// Maximum bytes shown of a name: a tool's, a hook's, a file's.
const NAME_BYTES: usize = 300;
/// Maximum bytes shown of a plan's step.
const STEP_BYTES: usize = 500;
/// Tokens reserved for notes about what is left out.
const NOTE_TOKENS: u64 = 48;

/// How much is shown of a call: of its arguments, and of its result, whose end says more than its beginning.
#[derive(Debug, Clone, Copy)]
struct Detail {
    input: Ends,
    output: Ends,
}

impl Detail {
    const fn new(input_bytes: usize, head_bytes: usize, tail_bytes: usize) -> Self {
        let input = Ends { head: input_bytes * 2 / 3, tail: input_bytes / 3 };
        Self { input, output: Ends { head: head_bytes, tail: tail_bytes } }
    }
}

/// How much is shown of the newest calls, and of how many; then of those before them, and so on.
const DETAILS: [(usize, Detail); 4] = [
    (3, Detail::new(1_200, 1_200, 2_800)),
    (12, Detail::new(450, 400, 1_000)),
    (40, Detail::new(240, 150, 350)),
    (usize::MAX, Detail::new(150, 60, 150)),
];

/// How much is shown of a requested tool.
const REQUESTED: Detail = Detail::new(300, 0, 0);

/// The evidence within this many tokens.
pub(super) fn account(evidence: &Evidence, tokens_max: u64) -> String {
    let mut sheet = Sheet::new(tokens_max);
    let part = |parts: u64| tokens_max.saturating_mul(parts) / 16;
    sheet.within(part(3), |sheet| task(sheet, evidence));
    sheet.within(part(1), |sheet| {
        passage(sheet, "THE CONVERSATION IN SHORT\n", Label::Summary, &evidence.summary);
    });
    sheet.within(part(2), |sheet| stop_hooks(sheet, &evidence.stop_hooks));
    sheet.within(part(2), |sheet| files(sheet, evidence));
    sheet.within(part(4), |sheet| hunks(sheet, evidence));
    sheet.within(part(1), |sheet| plan(sheet, evidence));
    sheet.within(part(2), |sheet| requested(sheet, &evidence.requested));
    // The last section has its share all the same.
    let claim_tokens = part(2);
    sheet.within(sheet.tokens_left().saturating_sub(claim_tokens), |sheet| actions(sheet, evidence));
    sheet.within(claim_tokens, |sheet| claim(sheet, evidence));
    sheet.into_text()
}

fn passage(sheet: &mut Sheet, heading: &str, label: Label, text: &str) {
    if !text.trim().is_empty() && sheet.put_heading(heading) {
        sheet.put_ends(label, text);
    }
}

fn task(sheet: &mut Sheet, evidence: &Evidence) {
    let told_tokens = if evidence.told.is_empty() { 0 } else { sheet.tokens_left() / 3 };
    sheet.within(sheet.tokens_left().saturating_sub(told_tokens), |sheet| {
        passage(sheet, "THE TASK\nWhat the agent was asked to do:\n", Label::Task, &evidence.task);
    });
    let heading = "WHAT IT WAS TOLD SINCE\nThe newest first.\n";
    list(sheet, heading, &evidence.told, |sheet, number, told| {
        let is_there = sheet.put(&format!("message {number}\n"));
        if is_there {
            sheet.within(sheet.tokens_left() / 2, |sheet| sheet.put_ends(Label::Told, told));
        }
        is_there
    });
}

/// Appends a heading, if there is room for it and for a note that its section is left out.
fn opened(sheet: &mut Sheet, heading: &str) -> bool {
    let mut is_opened = false;
    sheet.within(sheet.tokens_left().saturating_sub(NOTE_TOKENS), |sheet| {
        is_opened = sheet.put_heading(heading)
    });
    is_opened
}

/// A section with as many of `items` as fit, and the number of the others.
fn list<T>(
    sheet: &mut Sheet,
    heading: &str,
    items: &[T],
    mut put: impl FnMut(&mut Sheet, usize, &T) -> bool,
) {
    if items.is_empty() || !opened(sheet, heading) {
        return;
    }
    let mut shown = 0;
    sheet.within(sheet.tokens_left().saturating_sub(NOTE_TOKENS), |sheet| {
        shown = items.iter().zip(1..).take_while(|(item, number)| put(sheet, *number, item)).count();
    });
    if shown < items.len() {
        let _ = sheet.put(&format!("({} more are left out here)\n", items.len().saturating_sub(shown)));
    }
}

fn stop_hooks(sheet: &mut Sheet, reports: &[HookReport]) {
    let heading = "CHECKS\nChecks of the user's, not of the agent's, that were made for this verification:\n";
    list(sheet, heading, reports, |sheet, number, report| {
        let HookReport { hook, note, .. } = report;
        let (what, words) = match report.stop_verdict() {
            StopHookVerdict::Allow => ("nothing stands against it", None),
            StopHookVerdict::Block(reason) => ("it FAILED", Some(reason)),
            StopHookVerdict::Halt(reason) => ("it FAILED, and the work shall stop", Some(reason)),
            StopHookVerdict::Error(_) | StopHookVerdict::Broken(_) | StopHookVerdict::TimedOut(_) => {
                ("it couldn't be made, so it shows nothing", report.decision.failure())
            }
        };
        let name = beginning(Label::Hook, hook, NAME_BYTES);
        if !sheet.put(&format!("check {number}: {what}\n{name}")) {
            return false;
        }
        let half = sheet.tokens_left() / 2;
        if let Some(words) = words {
            sheet.within(half, |sheet| sheet.put_ends(Label::Says, &words));
        }
        if let Some(note) = note
            && sheet.put("besides:\n")
        {
            sheet.within(half, |sheet| sheet.put_ends(Label::Says, note));
        }
        true
    });
}

fn files(sheet: &mut Sheet, evidence: &Evidence) {
    let files = &evidence.files;
    let heading = match files.since {
        Since::Unknown => {
            let _ = sheet.put_heading("FILES\nIt is unknown which files were changed.\n");
            return;
        }
        _ if files.diffstat.is_empty() => {
            let _ = sheet.put_heading("FILES\nNo file differs from how it was when the agent began.\n");
            return;
        }
        Since::WorktreeMade => "FILES\nWhat differs from the commit that the agent began with:\n",
        Since::RunBegan => "FILES\nWhat differs from how it was when the run began:\n",
        Since::AgentBegan => {
            "FILES\nWhat differs from the last commit before the agent began. What wasn't committed then is among it.\n"
        }
        Since::Written => "FILES\nWhat the agent wrote with its tools, and how large that is now:\n",
    };
    list(sheet, heading, &files.diffstat, |sheet, _, line| {
        sheet.put(&beginning(Label::File, line, NAME_BYTES))
    });
    if files.more > 0 {
        let _ = sheet.put(&format!("({} more files were changed)\n", files.more));
    }
}

fn hunks(sheet: &mut Sheet, evidence: &Evidence) {
    let heading = "CHANGED LINES\nThe hunks of these changes, the latest changed file first:\n";
    list(sheet, heading, &evidence.files.hunks, |sheet, _, file| {
        let is_there = sheet.put(&beginning(Label::File, &file.path, NAME_BYTES));
        if is_there {
            sheet.within(sheet.tokens_left() / 2, |sheet| {
                sheet.put_ends(Label::Diff, &file.hunks);
            });
        }
        is_there
    });
}

fn plan(sheet: &mut Sheet, evidence: &Evidence) {
    let heading = "THE AGENT'S PLAN\nSteps that it has not ticked itself:\n";
    list(sheet, heading, &evidence.open_steps, |sheet, _, step| {
        let label = match step.status {
            PlanStatus::InProgress => Label::Begun,
            PlanStatus::Pending => Label::Pending,
            PlanStatus::Done => return true,
        };
        sheet.put(&beginning(label, &step.text, STEP_BYTES))
    });
}

fn requested(sheet: &mut Sheet, requested: &[(String, String)]) {
    let heading = "WHAT ITS MODEL ASKED FOR\nTools that the agent's model asked its program to run, the newest first. That they were run, \
                   and how they ended, isn't known:\n";
    list(sheet, heading, requested, |sheet, number, (tool, input)| {
        let tool = beginning(Label::Tool, tool, NAME_BYTES);
        let input = ends(Label::Input, input, REQUESTED.input);
        sheet.put(&format!("request {number}\n{tool}{input}"))
    });
}

fn claim(sheet: &mut Sheet, evidence: &Evidence) {
    let heading = "THE AGENT'S OWN WORDS\nWhat it said last. It proves nothing:\n";
    passage(sheet, heading, Label::Claim, &evidence.claim);
}

fn actions(sheet: &mut Sheet, evidence: &Evidence) {
    let heading = "WHAT THE AGENT DID\nCalls that it made, with their results, the newest first:\n";
    if evidence.actions.is_empty() {
        let _ = sheet.put_heading("WHAT THE AGENT DID\nIt made no calls that are known.\n");
        return;
    }
    if !opened(sheet, heading) {
        return;
    }
    let mut shown = 0;
    sheet.within(sheet.tokens_left().saturating_sub(NOTE_TOKENS), |sheet| {
        shown = evidence
            .actions
            .iter()
            .zip(1..)
            .take_while(|(call, number)| action(sheet, *number, call))
            .count();
    });
    let older = evidence.actions.len().saturating_sub(shown);
    let note = match (older, evidence.earlier_turns) {
        (0, 0) => return,
        (older, 0) => format!("({older} calls before these are left out)\n"),
        (0, turns) => format!("(all calls of the first {turns} turns are left out)\n"),
        (older, turns) => {
            format!("({older} calls before these and all calls of the first {turns} turns are left out)\n")
        }
    };
    let _ = sheet.put(&note);
}

/// Appends a call, in less detail if more doesn't fit.
fn action(sheet: &mut Sheet, number: usize, action: &Action) -> bool {
    let mut details = DETAILS.iter().filter(|(newest, _)| number <= *newest);
    details.any(|(_, detail)| sheet.put(&shown(number, action, *detail)))
}

fn shown(number: usize, action: &Action, detail: Detail) -> String {
    let how = match action.status {
        ToolStatus::Ok => "it succeeded",
        ToolStatus::Error => "it FAILED",
        ToolStatus::Rejected => "it was not made, for it made no sense",
        ToolStatus::Denied => "it was not made, for it is not allowed",
        ToolStatus::TimedOut => "it ran too long and was stopped",
        ToolStatus::Cancelled => "it was stopped",
        ToolStatus::Unknown => "it was interrupted, and what it did isn't known",
    };
    let tool = beginning(Label::Tool, &action.tool, NAME_BYTES);
    let input = ends(Label::Input, &action.arguments, detail.input);
    let output = ends(Label::Output, &action.result, detail.output);
    format!("call {number}: {how}\n{tool}{input}{output}")
}
