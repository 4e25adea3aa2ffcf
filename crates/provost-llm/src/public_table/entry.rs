//! One model's entry in a public table: its numbers, each with its place for when it can't be right.

use provost_event::{LongPrice, MicroDollars, Price};
use serde_json::{Map, Value};

use super::PublicTableError;

/// More tokens than any model takes.
const TOKENS_MAX: u64 = 1_000_000_000;
/// Dollars for a million tokens that no model costs.
const USD_MAX: f64 = 100_000.0;
/// Less than this, unless nothing, no model costs: a limit of money would hardly bind.
const USD_MIN: f64 = 0.000_5;
/// A window in which no conversation has room.
const WINDOW_MIN: u64 = 512;
const MICRO: f64 = 1_000_000.0;

/// A part of a table, and where it stands.
pub(super) struct Entry<'a> {
    pub(super) fields: &'a Map<String, Value>,
    pub(super) place: String,
    /// Dollars for a million tokens that a price of 1 means.
    pub(super) usd_of_one: f64,
}

impl<'a> Entry<'a> {
    /// `value` at `place`.
    pub(super) fn new(value: &'a Value, place: String, usd_of_one: f64) -> Result<Self, PublicTableError> {
        if place.contains(|c: char| c.is_control() || ('\u{200b}'..='\u{202e}').contains(&c)) {
            let (place, what) =
                (place.escape_debug().to_string(), "has a name with control characters".to_owned());
            return Err(PublicTableError::Entry { place, what });
        }
        match value.as_object() {
            Some(fields) => Ok(Self { fields, place, usd_of_one }),
            None => {
                Err(PublicTableError::Entry { place, what: format!("is {}, not an object", kind_of(value)) })
            }
        }
    }

    /// The object below `field`; `None` where there is none.
    pub(super) fn below(&self, field: &str) -> Result<Option<Entry<'a>>, PublicTableError> {
        let below = self.get(field).map(|value| Entry::new(value, self.place_of(field), self.usd_of_one));
        below.transpose()
    }

    fn get(&self, field: &str) -> Option<&'a Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    /// A text; `None` where there is none.
    pub(super) fn text(&self, field: &str) -> Option<&'a str> {
        self.get(field).and_then(Value::as_str)
    }

    /// Whether something holds; `None` where that isn't said.
    pub(super) fn truth(&self, field: &str) -> Option<bool> {
        self.get(field).and_then(Value::as_bool)
    }

    /// A number of tokens; `None` where there is none, or 0, which tables write for it.
    pub(super) fn tokens(&self, field: &str) -> Result<Option<u64>, PublicTableError> {
        let Some(number) = self.number(field)? else { return Ok(None) };
        match whole(number).filter(|_| number.fract() == 0.0) {
            Some(0) => Ok(None),
            Some(tokens) if tokens <= TOKENS_MAX => Ok(Some(tokens)),
            Some(_) => Err(self.wrong(field, format!("is {number}: no model takes that many tokens"))),
            None => Err(self.wrong(field, format!("is {number}, which can't be a number of tokens"))),
        }
    }

    /// The tokens of a model's window; `None` where they aren't told.
    pub(super) fn window(&self, field: &str) -> Result<Option<u64>, PublicTableError> {
        match self.tokens(field)? {
            Some(tokens) if tokens < WINDOW_MIN => {
                let what = format!("is {tokens}: no conversation has room in so small a window");
                Err(self.wrong(field, what))
            }
            tokens => Ok(tokens),
        }
    }

    /// A price for a million tokens; `None` where there is none.
    pub(super) fn price(&self, field: &str) -> Result<Option<MicroDollars>, PublicTableError> {
        let Some(number) = self.number(field)? else { return Ok(None) };
        let usd = number * self.usd_of_one;
        match whole(usd * MICRO) {
            None => Err(self.wrong(field, format!("is {number}, which can't be a price"))),
            Some(_) if usd > USD_MAX => {
                Err(self.wrong(field, format!("is {number}: no model costs ${usd} for a million tokens")))
            }
            Some(_) if usd > 0.0 && usd < USD_MIN => {
                let what = format!("is {number}: no model costs less than ${USD_MIN} for a million tokens");
                Err(self.wrong(field, what))
            }
            Some(micro) => Ok(Some(MicroDollars(micro))),
        }
    }

    fn number(&self, field: &str) -> Result<Option<f64>, PublicTableError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let number =
            value.as_f64().ok_or_else(|| self.wrong(field, format!("is {}, not a number", kind_of(value))));
        number.map(Some)
    }

    pub(super) fn wrong(&self, field: &str, what: String) -> PublicTableError {
        PublicTableError::Entry { place: self.place_of(field), what }
    }

    fn place_of(&self, field: &str) -> String {
        format!("{}.{field}", self.place)
    }
}

/// What a price consists of in a table; `None` is what it doesn't say.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) input: Option<MicroDollars>,
    pub(super) output: Option<MicroDollars>,
    pub(super) cache_read: Option<MicroDollars>,
    pub(super) cache_write: Option<MicroDollars>,
    /// What long requests cost, and from how many tokens on.
    pub(super) long: Option<LongParts>,
}

/// What input and output cost in requests above so many tokens.
pub(super) struct LongParts {
    pub(super) above_tokens: u64,
    pub(super) input: MicroDollars,
    pub(super) output: MicroDollars,
}

impl Parts {
    /// The price. Input for which no cache's price is said costs as without one. A price of nothing isn't believed:
    /// tables write it also where they don't know, and it would unbind a budget.
    pub(super) fn whole(self) -> Option<Price> {
        let (input, output) = self.input.zip(self.output)?;
        if input.0 == 0 && output.0 == 0 {
            return None;
        }
        let costs = |price: &MicroDollars| price.0 > 0;
        let long = self.long.map(|long| LongPrice {
            above_tokens: long.above_tokens,
            input_percent: percent(long.input, input),
            output_percent: percent(long.output, output),
        });
        Some(Price {
            input,
            output,
            cache_read: self.cache_read.filter(costs).unwrap_or(input),
            cache_write: self.cache_write.filter(costs).unwrap_or(input),
            long: long.filter(|long| long.input_percent > 100 || long.output_percent > 100),
        })
    }
}

/// `of` in percent of `one`, at least 100.
fn percent(of: MicroDollars, one: MicroDollars) -> u32 {
    let percent = of.0.saturating_mul(100).checked_div(one.0).unwrap_or(100);
    u32::try_from(percent).unwrap_or(u32::MAX).max(100)
}

/// The thousands of tokens that stand between `before` and `after` in `field`, in tokens.
pub(super) fn threshold(field: &str, before: &str, after: &str) -> Option<u64> {
    field.strip_prefix(before)?.strip_suffix(after)?.parse::<u64>().ok()?.checked_mul(1_000)
}

/// The nearest whole number; `None` below 0.
fn whole(number: f64) -> Option<u64> {
    // No cast of floating point numbers says what it loses.
    format!("{number:.0}").parse().ok()
}

const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
