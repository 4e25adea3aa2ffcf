//! A model's entry in a public table: its numbers, each with its position for errors.

use provost_event::{LongPrice, MicroDollars, Price};
use serde_json::{Map, Value};

use super::PublicTableError;

/// More tokens than any model supports.
const TOKENS_MAX: u64 = 1_000_000_000;
/// More than any model costs, in dollars per million tokens.
const USD_MAX: f64 = 100_000.0;
/// Less than any model costs that isn't free: a cost limit would hardly apply.
const USD_MIN: f64 = 0.000_5;
/// A window that is too small for a conversation.
const WINDOW_MIN: u64 = 512;
const MICRO: f64 = 1_000_000.0;

/// A part of a table, and its position.
pub(super) struct Entry<'a> {
    pub(super) fields: &'a Map<String, Value>,
    pub(super) place: String,
    /// Dollars per million tokens for a price of 1.
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

    /// The object below `field`; `None` if it is absent.
    pub(super) fn below(&self, field: &str) -> Result<Option<Entry<'a>>, PublicTableError> {
        let below = self.get(field).map(|value| Entry::new(value, self.place_of(field), self.usd_of_one));
        below.transpose()
    }

    fn get(&self, field: &str) -> Option<&'a Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    /// A text; `None` if it is absent.
    pub(super) fn text(&self, field: &str) -> Option<&'a str> {
        self.get(field).and_then(Value::as_str)
    }

    /// A boolean; `None` if it is absent.
    pub(super) fn truth(&self, field: &str) -> Option<bool> {
        self.get(field).and_then(Value::as_bool)
    }

    /// A number of tokens; `None` if it is absent, or 0, which tables use for unknown.
    pub(super) fn tokens(&self, field: &str) -> Result<Option<u64>, PublicTableError> {
        let Some(number) = self.number(field)? else { return Ok(None) };
        match whole(number).filter(|_| number.fract() == 0.0) {
            Some(0) => Ok(None),
            Some(tokens) if tokens <= TOKENS_MAX => Ok(Some(tokens)),
            Some(_) => Err(self.wrong(field, format!("is {number}: no model takes that many tokens"))),
            None => Err(self.wrong(field, format!("is {number}, which can't be a number of tokens"))),
        }
    }

    /// The tokens of a model's window; `None` if it is absent.
    pub(super) fn window(&self, field: &str) -> Result<Option<u64>, PublicTableError> {
        match self.tokens(field)? {
            Some(tokens) if tokens < WINDOW_MIN => {
                let what = format!("is {tokens}: no conversation has room in so small a window");
                Err(self.wrong(field, what))
            }
            tokens => Ok(tokens),
        }
    }

    /// A price per million tokens; `None` if it is absent.
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

/// The parts of a price in a table; `None` if absent.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) input: Option<MicroDollars>,
    pub(super) output: Option<MicroDollars>,
    pub(super) cache_read: Option<MicroDollars>,
    pub(super) cache_write: Option<MicroDollars>,
    /// The prices of long requests, and their threshold in tokens.
    pub(super) long: Option<LongParts>,
}

/// The prices of input and output in requests above a threshold of tokens.
pub(super) struct LongParts {
    pub(super) above_tokens: u64,
    pub(super) input: MicroDollars,
    pub(super) output: MicroDollars,
}

impl Parts {
    /// The price. Cached input without a price of its own costs as much as other input. A zero price isn't
    /// accepted: tables also use it for unknown prices, and it would disable a budget.
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

/// The number between `before` and `after` in `field`, in thousands, as tokens.
pub(super) fn threshold(field: &str, before: &str, after: &str) -> Option<u64> {
    field.strip_prefix(before)?.strip_suffix(after)?.parse::<u64>().ok()?.checked_mul(1_000)
}

/// The nearest whole number; `None` below 0.
fn whole(number: f64) -> Option<u64> {
    // A cast of a floating point number would lose digits silently.
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
