//! Tokens and money.

use std::fmt;
use std::ops::{Add, AddAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::grouped;

/// Money in millionths of a US dollar; never a float.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct MicroDollars(pub u64);

impl MicroDollars {
    /// The difference to `other`; 0 if `other` is more.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for MicroDollars {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for MicroDollars {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl fmt::Display for MicroDollars {
    /// Dollars with two decimals; four below ten cents, six below a hundredth of a cent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, millionths) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if self.0 > 0 && self.0 < 100 {
            write!(f, "$0.{millionths:06}")
        } else if self.0 > 0 && self.0 < 100_000 {
            write!(f, "${whole}.{:04}", millionths.div_ceil(100))
        } else {
            write!(f, "${}.{:02}", grouped(whole), millionths / 10_000)
        }
    }
}

/// How certain a model call's usage is.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Reported by the provider at the end of the call.
    #[default]
    Reported,
    /// Estimated by Provost: the call ended without a final report, and this is an upper bound as far as known.
    Estimated,
    /// Unknown: the call was lost to a crash, and this is what was reserved for it.
    Unconfirmed,
}

impl Certainty {
    /// Whether it is from the provider's final report.
    #[must_use]
    pub fn is_reported(&self) -> bool {
        *self == Self::Reported
    }
}

/// The usage of a model call. The first four counts don't overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Input tokens that came from no cache.
    pub input_tokens: u64,
    /// Output tokens, reasoning included.
    pub output_tokens: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Input tokens written to the provider's cache.
    pub cache_write_tokens: u64,
    /// Output tokens spent on reasoning, if the provider reports them.
    #[serde(skip_serializing_if = "is_none")]
    pub reasoning_tokens: u64,
    /// How certain it is.
    #[serde(skip_serializing_if = "Certainty::is_reported")]
    pub certainty: Certainty,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
const fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Usage of a call lost to a crash: it is unknown, so the reservation counts.
    #[must_use]
    pub fn unconfirmed() -> Self {
        Self { certainty: Certainty::Unconfirmed, ..Self::default() }
    }

    /// All tokens.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.prompt_tokens().saturating_add(self.output_tokens)
    }

    /// All tokens sent, cached or not.
    #[must_use]
    pub const fn prompt_tokens(self) -> u64 {
        self.input_tokens.saturating_add(self.cache_read_tokens).saturating_add(self.cache_write_tokens)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
        self.certainty = self.certainty.max(other.certainty);
    }
}

/// Micro-dollars per million tokens, by kind of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// For input that came from no cache.
    pub input: MicroDollars,
    /// For output.
    pub output: MicroDollars,
    /// For input read from the cache.
    pub cache_read: MicroDollars,
    /// For input written to the cache.
    pub cache_write: MicroDollars,
    /// The prices of long requests, if they are higher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<LongPrice>,
}

/// The surcharge for requests above a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LongPrice {
    /// Maximum tokens of a prompt at the usual price, cached ones included.
    pub above_tokens: u64,
    /// The price of input, cached or not, as a percentage of the usual one.
    pub input_percent: u32,
    /// The price of output as a percentage of the usual one.
    pub output_percent: u32,
}

impl Price {
    /// Nothing.
    pub const FREE: Self = Self {
        input: MicroDollars(0),
        output: MicroDollars(0),
        cache_read: MicroDollars(0),
        cache_write: MicroDollars(0),
        long: None,
    };

    /// Whether input and output cost nothing.
    #[must_use]
    pub fn is_free(self) -> bool {
        self.input.0 == 0 && self.output.0 == 0
    }

    /// This price with all input written to the cache, if that costs more.
    #[must_use]
    pub fn worst(self) -> Self {
        Self { input: self.input.max(self.cache_write), ..self }
    }

    /// The price for a request whose prompt has this many tokens.
    #[must_use]
    pub fn for_prompt(self, tokens: u64) -> Self {
        let Some(long) = self.long.filter(|long| tokens > long.above_tokens) else { return self };
        let of = |price: MicroDollars, percent: u32| {
            MicroDollars(price.0.saturating_mul(percent.into()).div_ceil(100))
        };
        Self {
            input: of(self.input, long.input_percent),
            output: of(self.output, long.output_percent),
            cache_read: of(self.cache_read, long.input_percent),
            cache_write: of(self.cache_write, long.input_percent),
            long: None,
        }
    }

    /// The cost of this many output tokens, rounded up to a whole micro-dollar.
    #[must_use]
    pub fn output_cost(&self, output_tokens: u64) -> MicroDollars {
        self.cost(Usage { output_tokens, ..Usage::default() })
    }

    /// The cost of `usage`, rounded up to a whole micro-dollar.
    #[must_use]
    pub fn cost(&self, usage: Usage) -> MicroDollars {
        let price = self.for_prompt(usage.prompt_tokens());
        let part = |tokens: u64, price: MicroDollars| u128::from(tokens) * u128::from(price.0);
        let sum = part(usage.input_tokens, price.input)
            + part(usage.output_tokens, price.output)
            + part(usage.cache_read_tokens, price.cache_read)
            + part(usage.cache_write_tokens, price.cache_write);
        MicroDollars(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// The output tokens that `money` buys; `u64::MAX` if they are free.
    #[must_use]
    pub fn output_tokens_for(&self, money: MicroDollars) -> u64 {
        let millionths = u128::from(money.0) * 1_000_000;
        let tokens = millionths.checked_div(u128::from(self.output.0)).unwrap_or(u128::MAX);
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{LongPrice, MicroDollars, Price, Usage};

    #[test]
    fn a_prompt_over_the_bound_costs_the_long_price_and_one_at_it_doesnt() {
        let long = LongPrice { above_tokens: 1_000, input_percent: 200, output_percent: 150 };
        let price = Price {
            input: MicroDollars(1_000_000),
            output: MicroDollars(10_000_000),
            cache_read: MicroDollars(100_000),
            cache_write: MicroDollars(1_250_000),
            long: Some(long),
        };
        let usage =
            Usage { input_tokens: 500, cache_read_tokens: 500, output_tokens: 100, ..Usage::default() };
        assert_eq!(price.cost(usage), MicroDollars(500 + 50 + 1_000));
        let longer = Usage { cache_read_tokens: 510, ..usage };
        assert_eq!(price.cost(longer), MicroDollars(1_000 + 102 + 1_500));
    }

    #[test]
    fn no_amount_is_shown_as_a_hundred_times_as_much() {
        let shown = |micro: u64| MicroDollars(micro).to_string();
        assert_eq!([shown(0), shown(1), shown(99)], ["$0.00", "$0.000001", "$0.000099"]);
        assert_eq!([shown(100), shown(150), shown(99_950)], ["$0.0001", "$0.0002", "$0.1000"]);
        assert_eq!([shown(100_000), shown(1_234_567)], ["$0.10", "$1.23"]);
    }
}
