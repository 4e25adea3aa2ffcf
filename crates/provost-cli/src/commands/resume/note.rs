//! Notes on a settings file that was named and isn't used.

use std::path::Path;

use provost_config::Settled;
use provost_event::PolicyDifference;

use super::change::differences;
use crate::render::safe;
use provost_runtime::{Before, Today, Variables, today, today_in_part};

/// Differences that a note names.
const NAMED_MAX: usize = 5;

/// Settings that decide what an agent may and what holds it back: they are named first.
const RULES: [&str; 4] = ["permissions", "stop_hooks", "hooks", "goal"];

/// How `file` differs from what `whose` was started with, of what `is_meant`; or that it can't be compared.
pub(in crate::commands) fn not_taken(
    before: &Before<'_>,
    (file, whose): (&Path, &str),
    is_meant: impl Fn(&PolicyDifference) -> bool,
    variables: &Variables,
) -> Option<String> {
    let found = |today: &Today| {
        let found = differences(before.policy, &today.policy, &today.redactor);
        named(found.into_iter().filter(&is_meant).collect(), &today.settled)
    };
    let shown = safe(&file.display().to_string());
    let error = match today(before, Some(file), None, variables) {
        Ok(today) => {
            return found(&today).map(|what| {
                format!("note: {shown} differs from what {whose} was started with ({what}); --with-settings takes it")
            });
        }
        Err(error) => error.to_string(),
    };
    let part = today_in_part(before, file, variables).ok();
    let why = error.lines().next().unwrap_or_default();
    let why =
        safe(&part.as_ref().map_or_else(|| why.to_owned(), |today| today.redactor.redact(why).into_owned()));
    Some(match part.as_ref().and_then(found) {
        Some(what) => format!(
            "note: {shown} differs from what {whose} was started with ({what}), and --with-settings can't take it as it is: {why}"
        ),
        None => format!(
            "note: {shown} can't be compared whole with what {whose} was started with, nor taken by --with-settings: {why}"
        ),
    })
}

/// The first of them by name, those of the file before others, and how many more there are. What only follows from
/// other settings isn't named.
fn named(mut found: Vec<PolicyDifference>, settled: &Settled) -> Option<String> {
    if found.iter().any(|one| !follows(one, settled)) {
        found.retain(|one| !follows(one, settled));
    }
    let is_rule = |one: &PolicyDifference| {
        let section = one.what.split('.').next().unwrap_or_default();
        one.to.is_some() && RULES.contains(&section)
    };
    found.sort_by_key(|one| (!is_rule(one), !settled.is_in_file_of_folder(&one.what)));
    let mut all = Vec::new();
    for name in found.iter().map(|one| in_one_word(&one.what)) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    let names = all.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    match (names.as_str(), all.len().saturating_sub(NAMED_MAX)) {
        ("", _) => None,
        (names, 0) => Some(names.to_owned()),
        (names, more) => Some(format!("{names} and {more} more")),
    }
}

/// The name of a difference: the rules of permissions have one name.
fn in_one_word(what: &str) -> &str {
    if what.starts_with("permissions.") { "permissions" } else { what }
}

/// Whether this is no setting of its own: the forms of tools, who judges goals that agents give, and a limit that
/// another one lifts.
fn follows(one: &PolicyDifference, settled: &Settled) -> bool {
    let mut parts = one.what.split('.');
    parts.any(|part| part == "tools" || part == "judging")
        || one.what.ends_with("max_turns") && !settled.is_in_file_of_folder(&one.what)
}
