//! What native agents are told before their goal: the place they work in, and what files say that are meant for
//! agents. It is put together once, when a run begins, and is part of the policy then.
//!
//! Text of files is quoted: each of its lines has a label and a bar before it, so that none can pass for a line of
//! Provost's.

mod environment;
mod folders;
mod listing;
mod rules;
mod skills;

pub use environment::{ENVIRONMENT_BYTES_MAX, HostFacts, environment};
pub(crate) use folders::rules_of_folder;
pub use rules::{ProjectRules, RULES_BYTES_MAX, RulesFile, project_rules};
pub use skills::skills_preamble;

/// The parts in their order, without those that are empty.
#[must_use]
pub fn preamble(environment: &str, rules: &ProjectRules) -> String {
    let parts = [environment.to_owned(), rules.quoted()];
    let parts = parts.iter().map(|part| part.trim_end()).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n\n")
}
