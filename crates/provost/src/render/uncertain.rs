//! Amounts that no provider has reported, or not all of them, as a short mark: `~$0.15`.

use provost_engine::Ledger;

/// Before an amount that is in part estimated or unconfirmed.
const MARK: char = '~';

/// Which amounts of a run are in part estimated or unconfirmed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Uncertain {
    tokens: bool,
    money: bool,
}

impl Uncertain {
    /// Of what was charged; what calls take that have no report yet isn't in it.
    pub(crate) fn of(ledger: &Ledger) -> Self {
        let is_open = ledger.run().tokens_set_aside > 0;
        Self {
            tokens: is_open || ledger.estimated.tokens > 0 || ledger.unconfirmed.tokens > 0,
            money: is_open || ledger.estimated.cost.0 > 0 || ledger.unconfirmed.cost.0 > 0,
        }
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
