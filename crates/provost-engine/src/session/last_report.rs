//! What an agent leaves to the one that asked for it: its last text, or an account of its work if it has none.

use provost_event::{Outcome, Plan, PlanStatus, counted};

use super::{SessionState, worktree};

/// Maximum files that an account names.
const FILES_MAX: usize = 20;

/// The agent's last text with what it leaves in its worktree. An agent that was stopped with `outcome` and without
/// words leaves what its log knows of its work.
pub(in crate::session) fn last_report(state: &SessionState, outcome: &Outcome) -> String {
    let text = match state.last_text().trim() {
        "" if !matches!(outcome, Outcome::Completed { .. }) => account(state),
        _ => state.last_text().to_owned(),
    };
    match worktree::report(state) {
        Some(left) => format!("{}\n\n[{left}]", text.trim()).trim_start().to_owned(),
        None => text,
    }
}

/// Empty for an agent that has made no call.
fn account(state: &SessionState) -> String {
    let calls = state.calls.made();
    if calls == 0 {
        return String::new();
    }
    let mut said =
        vec![format!("It was stopped without words, after {}.", counted(calls.into(), "tool call"))];
    let files = state.conversation.written().collect::<Vec<_>>();
    let more = files.len().saturating_sub(FILES_MAX);
    let named = files.into_iter().skip(more).collect::<Vec<_>>().join(", ");
    let more = if more > 0 { format!(" (and {more} before)") } else { String::new() };
    said.push(match named.is_empty() {
        true => "No file was written but by its commands, if any.".to_owned(),
        false => format!("Files written: {named}{more}; its commands may have changed others."),
    });
    said.extend(state.plan().map(plan_in_words));
    format!("({})", said.join(" "))
}

fn plan_in_words(plan: &Plan) -> String {
    let of = |status| plan.items.iter().filter(move |item| item.status == status);
    let all = counted(u64::try_from(plan.items.len()).unwrap_or(u64::MAX), "step");
    let texts = |status| of(status).map(|item| item.text.trim()).collect::<Vec<_>>().join("; ");
    let parts = [("in progress", texts(PlanStatus::InProgress)), ("not begun", texts(PlanStatus::Pending))];
    let parts = parts.into_iter().filter(|(_, texts)| !texts.is_empty());
    let parts = parts.map(|(what, texts)| format!("; {what}: {texts}")).collect::<String>();
    format!("{} of {all} of its plan done{parts}.", of(PlanStatus::Done).count())
}
