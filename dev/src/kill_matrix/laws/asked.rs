//! Hooks and people: each question has one answer, and every answer of a hook is in the log.

use std::collections::BTreeMap;

use provost_event::{Entry, GateEntry, HookDecision, Seq, SessionId};

use super::super::evidence::Evidence;
use super::super::scenario::STOP_HOOK;
use super::Breaches;

/// Hooks of one hook point that may run at a time: as many as a scenario's answer has calls.
const SIDE_BY_SIDE: usize = 4;

pub(super) fn check(seen: &Evidence, found: &mut Breaches) {
    let mut heard = BTreeMap::<String, usize>::new();
    for session in seen.sessions() {
        check_one(seen, session, &mut heard, found);
    }
    were_asked(seen, &heard, found);
}

/// The questions of one session and their answers; adds the hooks' answers to `heard`, by hook point.
fn check_one(seen: &Evidence, session: SessionId, heard: &mut BTreeMap<String, usize>, found: &mut Breaches) {
    let mut hooks = BTreeMap::<Seq, usize>::new();
    let mut people = BTreeMap::<Seq, usize>::new();
    for (seq, entry) in seen.session(session) {
        match entry {
            Entry::Gate(GateEntry::HooksAsked(_)) => drop(hooks.insert(seq, 0)),
            Entry::Gate(GateEntry::HooksDecided(decided)) => {
                *hooks.entry(decided.asked).or_default() += 1;
                for report in &decided.reports {
                    *heard.entry(report.point.name().to_owned()).or_default() += 1;
                    if let HookDecision::Failed(why) = &report.decision {
                        found.wrong(format!("hook {} gave no answer: {why}", report.hook));
                    }
                }
            }
            Entry::Gate(GateEntry::StopChecked(verdicts)) => {
                for report in &verdicts.reports {
                    let point = if report.hook == STOP_HOOK { STOP_HOOK } else { "stop" };
                    *heard.entry(point.to_owned()).or_default() += 1;
                    if let Some(why) = report.decision.failure() {
                        found.wrong(format!("stop hook {} gave no answer: {why}", report.hook));
                    }
                }
            }
            Entry::Gate(GateEntry::ApprovalRequested(_)) => drop(people.insert(seq, 0)),
            Entry::Gate(GateEntry::ApprovalResolved(resolved)) => {
                *people.entry(resolved.asked).or_default() += 1
            }
            _ => {}
        }
    }
    for (seq, times) in hooks {
        found.one(times, || format!("answer of hooks to entry {seq}"));
    }
    for (seq, times) in people {
        found.one(times, || format!("consent or refusal to entry {seq}"));
    }
}

/// Each answer in the log was given, and no hook was asked more often than it was interrupted.
fn were_asked(seen: &Evidence, heard: &BTreeMap<String, usize>, found: &mut Breaches) {
    let asked = seen.counted(&seen.files.hooks());
    for (point, times) in heard {
        if asked.get(point).copied().unwrap_or_default() < *times {
            found.lost(format!("the log has {times} answers of {point} hooks, who were asked less often"));
        }
    }
    for (point, times) in asked {
        let most = heard.get(&point).copied().unwrap_or_default() + seen.kills * SIDE_BY_SIDE;
        if times > most {
            found.doubled(format!("{point} hooks were asked {times} times, at most {most} are due"));
        }
    }
}
