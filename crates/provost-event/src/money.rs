//! Tokens and money.

use std::fmt;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// Money in millionths of a US dollar; never a float.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroDollars(pub u64);

impl MicroDollars {
    /// The rest after taking `other` away; nothing if that is more.
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
    /// Dollars with two decimals, four below ten cents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, millionths) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if self.0 > 0 && self.0 < 100_000 {
            write!(f, "${whole}.{:04}", millionths.div_ceil(100))
        } else {
            write!(f, "${whole}.{:02}", millionths / 10_000)
        }
    }
}

/// What a model call consumed, as its provider reported it. The four counts don't overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
}

impl Usage {
    /// All tokens.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.prompt_tokens().saturating_add(self.output_tokens)
    }

    /// Everything that was sent, cached or not.
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
    }
}

/// Micro-dollars per million tokens, by kind of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// For input that came from no cache.
    pub input: MicroDollars,
    /// For output.
    pub output: MicroDollars,
    /// For input read from the cache.
    pub cache_read: MicroDollars,
    /// For input written to the cache.
    pub cache_write: MicroDollars,
}

impl Price {
    /// What `usage` costs, rounded up to a whole micro-dollar.
    #[must_use]
    pub fn cost(&self, usage: Usage) -> MicroDollars {
        let part = |tokens: u64, price: MicroDollars| u128::from(tokens) * u128::from(price.0);
        let sum = part(usage.input_tokens, self.input)
            + part(usage.output_tokens, self.output)
            + part(usage.cache_read_tokens, self.cache_read)
            + part(usage.cache_write_tokens, self.cache_write);
        MicroDollars(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// How many output tokens `money` buys; all that fit a `u64` when they are free.
    #[must_use]
    pub fn output_tokens_for(&self, money: MicroDollars) -> u64 {
        let millionths = u128::from(money.0) * 1_000_000;
        let tokens = millionths.checked_div(u128::from(self.output.0)).unwrap_or(u128::MAX);
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}
