//! What is wrong with `[goal]` beside the rest of the settings.

use crate::errors::{Problem, Source};
use crate::{Loading, Settings};

const KEYS: [&str; 2] = ["goal.judge", "goal.judges"];

/// Everything that is; and of one judge and several, the weaker layer's is forgotten.
pub(crate) fn check(loading: &mut Loading) -> Vec<Problem> {
    let mut problems = Vec::from_iter(one_and_several(loading));
    let weaker = KEYS.into_iter().find(|key| *key != loading.settings.goal.judges_key());
    weaker.and_then(|key| loading.given.remove(key));
    problems.extend(too_few_judges(loading));
    problems.extend(slow_judges(loading));
    problems
}

/// If one place names both, it isn't clear which of them is meant.
fn one_and_several(loading: &Loading) -> Option<Problem> {
    let [one, several] = KEYS.map(|key| loading.given.get(key));
    let (one, several) = (one?, several?);
    is_one_place(&one.source, &several.source).then(|| Problem {
        source: several.source.clone(),
        key: "goal.judges".to_owned(),
        what: format!("there is goal.judge too, from {}", one.source),
        remedy: "keep one of the two".to_owned(),
    })
}

fn is_one_place(one: &Source, other: &Source) -> bool {
    match (one, other) {
        (Source::File(one), Source::File(other)) => one.file == other.file,
        (Source::Variable(_), Source::Variable(_)) => true,
        _ => false,
    }
}

fn too_few_judges(loading: &Loading) -> Option<Problem> {
    let goal = &loading.settings.goal;
    let judges = goal.judges.len().max(1);
    let agree = goal.agree?;
    let is_too_many = usize::try_from(agree).is_ok_and(|agree| agree > judges);
    is_too_many.then(|| Problem {
        source: loading.source("goal.agree"),
        key: "goal.agree".to_owned(),
        what: match judges {
            1 => format!("{agree} judges can't agree where there is one"),
            _ => format!("{agree} judges can't agree where there are {judges}"),
        },
        remedy: "lower it, or name more in goal.judges".to_owned(),
    })
}

/// The default is shortened to what the run has.
fn slow_judges(loading: &Loading) -> Option<Problem> {
    let Settings { goal, budget, .. } = &loading.settings;
    let (source, limit_ms) = (loading.source("goal.timeout"), budget.wall_time_ms?);
    (source != Source::Default && goal.timeout_ms > limit_ms).then(|| Problem {
        source,
        key: "goal.timeout".to_owned(),
        what: format!(
            "a judge may take longer ({} s) than the whole run (budget.wall_time is {} s, from {})",
            goal.timeout_ms / 1_000,
            limit_ms / 1_000,
            loading.source("budget.wall_time"),
        ),
        remedy: format!("e.g. timeout = \"{}s\"", (limit_ms / 10_000).max(1)),
    })
}
