//! Decisions before an action, in words: hooks, permissions, approvals.

use provost_event::{
    ApprovalAnswer, ApprovalRequested, ApprovalResolved, ApprovalScope, HookDecision, HookPoint, HookReport,
    HookTrigger, HooksAsked, HooksDecided, Permission, PermissionDecided, StopCheckCutShort, StopHookVerdict,
    StopVerdicts,
};

use provost_process::MAYBE_LEFT;

use super::arguments;
use super::question::{UNNAMED, outside_in_words, script_in_words};
use super::saying::{Saying, Tag};
use super::words::{duration, one_line, plural};

/// Columns of a short text in a line.
const WIDTH_MAX: usize = 100;
/// Lines shown of a stop hook's reason.
const REASON_LINES_MAX: usize = 12;
/// Columns of each.
const REASON_WIDTH_MAX: usize = 400;

pub(super) fn hooks_asked(entry: &HooksAsked) -> Saying {
    match &entry.about {
        HookTrigger::Prompt { text, by } => {
            Saying::kept(Tag::User, format!("{by}: {} (hooks are asked)", one_line(text, WIDTH_MAX)))
        }
        about => {
            Saying::detail(about.points().iter().map(|point| point.name()).collect::<Vec<_>>().join(", "))
        }
    }
}

pub(super) fn hooks_decided(entry: &HooksDecided) -> Saying {
    let lines = entry.reports.iter().filter_map(report).collect::<Vec<_>>();
    let Some((first, others)) = lines.split_first() else {
        let names = |allows: bool| {
            let of = entry.reports.iter().filter(|report| (report.decision == HookDecision::Allow) == allows);
            of.map(|report| report.hook.as_str()).collect::<Vec<_>>().join(", ")
        };
        let (allow, others) = (names(true), names(false));
        return Saying::detail(match (allow.as_str(), others.as_str()) {
            ("", "") => "no hook was asked".to_owned(),
            ("", others) => format!("nothing against it: {others}"),
            (allow, "") => format!("allowed by {allow}"),
            (allow, others) => format!("allowed by {allow}; nothing against it: {others}"),
        });
    };
    Saying::kept(Tag::HooksObject, first).with(others.iter().cloned())
}

/// What a user who watches should see of a hook's report; nothing of one that lets pass.
fn report(report: &HookReport) -> Option<String> {
    let (name, took) = (&report.hook, duration(report.duration_us / 1_000));
    let point = report.point.name();
    let because = |reason: &str| match reason.trim() {
        "" => String::new(),
        reason => format!(": {}", one_line(reason, WIDTH_MAX)),
    };
    let said = match &report.decision {
        HookDecision::Continue => None,
        HookDecision::Allow if report.point == HookPoint::Approval => {
            Some(format!("hook {name} agrees to it"))
        }
        HookDecision::Allow => None,
        HookDecision::Ask(reason) => Some(format!("hook {name} requires approval{}", because(reason))),
        HookDecision::Deny(reason) => Some(format!("hook {name} says no{}", because(reason))),
        HookDecision::Pause(reason) => Some(format!("hook {name} pauses the run{}", because(reason))),
        HookDecision::Abort(reason) => Some(format!("hook {name} ends the run{}", because(reason))),
        HookDecision::Failed(_) | HookDecision::Broken(_) | HookDecision::TimedOut(_) => {
            let why = report.decision.failure().unwrap_or_default();
            Some(format!("hook {name} gave no answer at {point} ({took}){}", because(&why)))
        }
    };
    let replaces = report
        .replacement
        .as_ref()
        .map(|input| format!("hook {name} wants other arguments: {}", one_line(input.text(), WIDTH_MAX)));
    let said = match (said, replaces) {
        (Some(said), Some(replaces)) => Some(format!("{said}; {replaces}")),
        (said, replaces) => said.or(replaces),
    };
    let note = report.note.as_ref().map(|note| one_line(note, WIDTH_MAX));
    match (said, note) {
        (Some(said), Some(note)) => Some(format!("{said} ({note})")),
        (Some(said), None) => Some(said),
        (None, Some(note)) => Some(format!("hook {name}: {note}")),
        (None, None) => None,
    }
}

pub(super) fn permission_decided(entry: &PermissionDecided) -> Saying {
    let rule = entry.rule.as_ref().map(|rule| format!(" by {rule}")).unwrap_or_default();
    match entry.permission {
        Permission::Allow => Saying::detail(format!("allowed{rule}")),
        Permission::Ask => Saying::detail(format!("to be asked{rule}")),
        Permission::Deny => Saying::kept(Tag::HooksObject, format!("not allowed: {}", entry.why)),
    }
}

/// The question as it stands in a log; the terminal asks in its own way.
pub(super) fn approval_requested(entry: &ApprovalRequested) -> Saying {
    let call = arguments::call(&entry.tool, &entry.input);
    let scripts = entry.scripts.iter().map(|script| format!("script: {}", script_in_words(script)));
    let unnamed = entry.unnamed.then(|| format!("script: {UNNAMED}"));
    let outside = entry.outside.as_ref().map(|outside| format!("leaves: {}", outside_in_words(outside)));
    Saying::kept(Tag::Asks, format!("may it? {call}"))
        .with([entry.why.clone()].into_iter().chain(scripts).chain(unnamed).chain(outside))
}

pub(super) fn approval_resolved(entry: &ApprovalResolved) -> Saying {
    let by = &entry.by;
    match &entry.answer {
        ApprovalAnswer::Allow { scope, pattern } => {
            let scope = match (scope, pattern) {
                (ApprovalScope::Once, _) => String::new(),
                (ApprovalScope::Run, pattern) => format!(", for this run{}", named(pattern.as_deref())),
                (ApprovalScope::Always, pattern) => format!(", for all runs{}", named(pattern.as_deref())),
            };
            Saying::kept(Tag::HooksAgree, format!("approved by {by}{scope}"))
        }
        ApprovalAnswer::Answered { content } => {
            let content = one_line(content.text(), WIDTH_MAX);
            Saying::kept(Tag::HooksAgree, format!("answered by {by}: {content}"))
        }
        ApprovalAnswer::Deny { reason } if reason.is_empty() => {
            Saying::kept(Tag::HooksObject, format!("denied by {by}"))
        }
        ApprovalAnswer::Deny { reason } => {
            Saying::kept(Tag::HooksObject, format!("denied by {by}: {}", one_line(reason, WIDTH_MAX)))
        }
    }
}

fn named(pattern: Option<&str>) -> String {
    pattern.map(|pattern| format!(": {pattern}")).unwrap_or_default()
}

/// What an agent waits for while hooks of a hook point are asked.
pub(super) fn waits_for(about: &HookTrigger) -> &'static str {
    match about.points().first() {
        Some(HookPoint::PreToolCall) => "asking the hooks about a tool call",
        _ => "asking the hooks",
    }
}

pub(super) fn stop_verdicts(entry: &StopVerdicts) -> Saying {
    let longest = entry.reports.iter().map(|report| report.duration_us / 1_000).max().unwrap_or_default();
    let names = |fits: fn(&StopHookVerdict) -> bool| {
        let found = entry.reports.iter().filter(|report| fits(&report.stop_verdict()));
        found.map(|report| report.hook.as_str()).collect::<Vec<_>>().join(", ")
    };
    let halting = names(|verdict| matches!(verdict, StopHookVerdict::Halt(_)));
    let blocking = names(|verdict| matches!(verdict, StopHookVerdict::Block(_)));
    let broken = names(|verdict| matches!(verdict, StopHookVerdict::Broken(_)));
    let late = names(|verdict| matches!(verdict, StopHookVerdict::TimedOut(_)));
    let agreeing = names(|verdict| matches!(verdict, StopHookVerdict::Allow));
    let took = duration(longest);
    let saying = if !halting.is_empty() {
        Saying::kept(Tag::HooksObject, format!("stop hook ends the run: {halting} ({took})"))
    } else if !blocking.is_empty() {
        Saying::kept(Tag::HooksObject, format!("stop hooks say no: {blocking} ({took})"))
    } else if !broken.is_empty() {
        Saying::kept(Tag::HooksObject, format!("stop hooks are broken: {broken} ({took})"))
    } else if !late.is_empty() {
        Saying::kept(Tag::HooksObject, format!("stop hooks took too long: {late} ({took})"))
    } else if entry.reports.is_empty() {
        Saying::kept(Tag::HooksAgree, "hooks that ran beside the turn have ended")
    } else if agreeing.is_empty() {
        Saying::kept(Tag::HooksAgree, format!("no stop hook gave an answer ({took})"))
    } else {
        Saying::kept(Tag::HooksAgree, format!("stop hooks agree: {agreeing} ({took})"))
    };
    saying.with(entry.reports.iter().flat_map(reason))
}

/// For hooks that were cut short only processes that they left running are worth a line at once.
pub(super) fn stop_check_cut_short(entry: &StopCheckCutShort) -> Saying {
    let names = entry.reports.iter().map(|report| report.hook.as_str()).collect::<Vec<_>>().join(", ");
    let said = entry.reports.iter().flat_map(reason).collect::<Vec<_>>();
    let text = format!("stop hooks were cut short: {names}");
    let saying = match said.iter().any(|line| line.contains(MAYBE_LEFT)) {
        true => Saying::kept(Tag::HooksObject, text),
        false => Saying::detail(text),
    };
    saying.with(said)
}

fn reason(report: &HookReport) -> Vec<String> {
    let name = &report.hook;
    let verdict = report.stop_verdict();
    let error = verdict.error().unwrap_or_default();
    let (why, text) = match &verdict {
        StopHookVerdict::Allow => {
            return report.note.iter().map(|note| format!("{name}: {}", one_line(note, WIDTH_MAX))).collect();
        }
        StopHookVerdict::Block(text) => (format!("{name}: "), text),
        StopHookVerdict::Halt(text) => (format!("{name} (halt): "), text),
        StopHookVerdict::Error(_) | StopHookVerdict::TimedOut(_) => {
            (format!("{name} gave no answer: "), &error)
        }
        StopHookVerdict::Broken(_) => (format!("{name} couldn't be run: "), &error),
    };
    let cut = |line: &str| console::truncate_str(line, REASON_WIDTH_MAX, "…").into_owned();
    let all = text.lines().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>();
    let count = all.len();
    let mut lines = all.into_iter().take(REASON_LINES_MAX).map(cut).collect::<Vec<_>>();
    if let Some(first) = lines.first_mut() {
        first.insert_str(0, &why);
    }
    if count > REASON_LINES_MAX {
        lines.push(format!("… {} more", plural((count - REASON_LINES_MAX) as u64, "line")));
    }
    lines
}
