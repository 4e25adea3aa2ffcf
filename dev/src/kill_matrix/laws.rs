//! What must be true of a suspended or ended run, however often it was killed before. Checked from outside.

mod agents;
mod asked;
mod budget;
mod calls;
mod forks;
mod goals;
mod logs;
mod programs;

use super::evidence::Evidence;
use super::files::FinalState;
use super::scenario::{Same, Scenario};

/// A violated law.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Breach {
    pub(super) kind: Kind,
    pub(super) what: String,
}

/// The kind of violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Something is missing or didn't happen.
    Lost,
    /// Something happened twice that may happen once.
    Doubled,
    /// Something else isn't as it should be.
    Wrong,
}

/// The violations found so far.
#[derive(Default)]
pub(super) struct Breaches(Vec<Breach>);

impl Breaches {
    fn lost(&mut self, what: impl Into<String>) {
        self.0.push(Breach { kind: Kind::Lost, what: what.into() });
    }

    fn doubled(&mut self, what: impl Into<String>) {
        self.0.push(Breach { kind: Kind::Doubled, what: what.into() });
    }

    fn wrong(&mut self, what: impl Into<String>) {
        self.0.push(Breach { kind: Kind::Wrong, what: what.into() });
    }

    /// Requires exactly one.
    fn one(&mut self, times: usize, what: impl FnOnce() -> String) {
        match times {
            0 => self.lost(format!("no {}", what())),
            1 => {}
            more => self.doubled(format!("{more} times: {}", what())),
        }
    }
}

/// All violations. `undisturbed` is the evidence of the same run without kills.
pub(super) fn broken(scenario: &Scenario, seen: &Evidence, undisturbed: &FinalState) -> Vec<Breach> {
    let mut found = Breaches::default();
    logs::check(seen, &mut found);
    agents::check(seen, &mut found);
    calls::check(seen, &mut found);
    asked::check(seen, &mut found);
    budget::check(seen, &mut found);
    goals::check(seen, &mut found);
    programs::check(seen, &mut found);
    forks::check(scenario, seen, &mut found);
    ends_alike(scenario, &seen.rest, undisturbed, &mut found);
    for complaint in super::files::lines(&seen.files.complaints()) {
        found.wrong(format!("a process complains: {complaint}"));
    }
    found.0
}

fn ends_alike(scenario: &Scenario, rest: &FinalState, undisturbed: &FinalState, found: &mut Breaches) {
    let (outcome, expected) = (&rest.outcome, &undisturbed.outcome);
    let is_same = match scenario.same {
        Same::Exactly => (outcome, &rest.text) == (expected, &undisturbed.text),
        Same::Kind => outcome.word() == expected.word(),
    };
    if !is_same {
        found.wrong(format!(
            "it is suspended as `{outcome}` with {:?}, and undisturbed as `{expected}` with {:?}",
            rest.text, undisturbed.text
        ));
    }
}
