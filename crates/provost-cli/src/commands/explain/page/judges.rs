//! How the judges of a goal took effect, for people.

use provost_event::OnHookError;
use provost_view::explain::{GoalExplanation, JudgeExplanation};

use super::{NAME, NUMBER, in_words, took};
use crate::commands::explain::block::{Block, name};
use crate::render::{Cells, amount, plural};

pub(super) fn judges(title: &str, goal: &GoalExplanation, width: Option<usize>) -> String {
    let mut block = Block::new(
        title,
        &[
            ("JUDGE", NAME),
            ("CONSULTED", NUMBER),
            ("TIME", Cells::LeftOut),
            ("LONGEST", Cells::LeftOut),
            ("COST", Cells::LeftOutLast),
        ],
    );
    for JudgeExplanation { judge, standing } in &goal.judges {
        let said = in_words(&[
            ("reached", judge.achieved),
            ("not reached", judge.not_achieved),
            ("gave no verdict", judge.failed),
            ("too late to count", judge.stale),
        ]);
        let mut cells = vec![name(&judge.name), amount(judge.consulted)];
        cells.extend(took(judge.times, judge.consulted));
        let is_known = judge.consulted > judge.judging.unknown_price_calls;
        cells.push(if is_known { judge.judging.cost.to_string() } else { String::new() });
        block.row(standing, cells, vec![said.join(", ")]);
    }
    let mut text = block.text(width);
    for line in verified(goal) {
        text.push_str(&format!("   {line}\n"));
    }
    text
}

/// How often the goal was verified, why, and with which result.
fn verified(goal: &GoalExplanation) -> Vec<String> {
    let checks = goal.checks;
    let why = in_words(&[
        ("at claims", checks.claims),
        ("in between", checks.intervals),
        ("at limits", checks.limits),
    ]);
    let found = in_words(&[
        ("reached", checks.achieved),
        ("not reached", checks.not_achieved),
        ("couldn't be told", checks.unverified),
        ("not concluded", checks.begun().saturating_sub(checks.concluded())),
    ]);
    let mut lines = Vec::new();
    if checks.begun() > 0 {
        lines.push(format!("verified {}: {}", plural(checks.begun(), "time"), why.join(", ")));
        lines.push(format!("what that came to: {}", found.join(", ")));
    }
    let errors = plural(goal.stop_hooks_without_answer, "time");
    match (goal.stop_hook_errors, goal.stop_hooks_without_answer) {
        (_, 0) => {}
        (OnHookError::Block, _) => {
            lines.push(format!("a stop hook gave no answer {errors}: that stood in the way of the goal"));
        }
        (OnHookError::Ignore, _) => {
            lines.push(format!("a stop hook gave no answer {errors}: that was ignored, as is set"));
        }
    }
    if goal.cleared {
        lines.push("the goal was cleared, and bound the agent no longer".to_owned());
    }
    lines
}
