//! Amounts that no provider has reported, or not all of them, as a short mark: `~$0.15`.

use provost_engine::{RunState, Uncertain};
use provost_view::RunListItem;

/// Before an amount that is in part estimated or unconfirmed.
const MARK: char = '~';

/// Which amounts of a run are in part estimated or unconfirmed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UncertaintyMarks {
    tokens: bool,
    money: bool,
}

impl UncertaintyMarks {
    /// Of a run in a list; while calls of it have no report yet, all is uncertain.
    pub(crate) fn of_listed(run: &RunListItem) -> Self {
        if run.reserved_tokens > 0 {
            return Self { tokens: true, money: true };
        }
        Self { tokens: run.uncertain_tokens > 0, money: run.uncertain_cost_micro_usd.0 > 0 }
    }

    fn of(uncertain: Uncertain) -> Self {
        Self { tokens: uncertain.tokens > 0, money: uncertain.cost.0 > 0 }
    }

    /// Of what was charged to a run; while calls of it have no report yet, all is uncertain.
    pub(crate) fn of_run(state: &RunState) -> Self {
        let ledger = state.ledger();
        if ledger.run().tokens_set_aside > 0 {
            return Self { tokens: true, money: true };
        }
        Self::of(ledger.uncertain())
    }

    /// A count of tokens, with the mark where it is uncertain.
    pub(crate) fn marked_tokens(self, amount: String) -> String {
        marked(amount, self.tokens)
    }

    /// An amount of money, with the mark where it is uncertain.
    pub(crate) fn marked_money(self, amount: String) -> String {
        marked(amount, self.money)
    }
}

fn marked(amount: String, is_uncertain: bool) -> String {
    if is_uncertain { format!("{MARK}{amount}") } else { amount }
}
