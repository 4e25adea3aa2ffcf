//! From a value as it was written to what its setting takes.

use std::path::Path;
use std::time::Duration;

use provost_event::MicroDollars;
use toml::de::DeValue;

use super::declare::{Kind, Setting, SettingDefault};

/// A year: what an unattended run may take at most.
const TIME_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const MONEY_DECIMALS_MAX: usize = 6;

/// A value as it was written.
#[derive(Clone, Copy)]
pub(crate) enum Raw<'a> {
    /// In a TOML file.
    Toml(&'a DeValue<'a>),
    /// In a list of a TOML file.
    Item(&'a DeValue<'a>),
    /// As plain text, in a variable or behind a flag.
    Text(&'a str),
}

impl<T> Setting<T> {
    /// Takes `raw` for this setting of `target`.
    ///
    /// # Errors
    /// Why it can't be the value, as `must be …`.
    pub(crate) fn take(&self, target: &mut T, raw: Raw<'_>) -> Result<(), String> {
        match self.kind {
            Kind::Line(put) => put(target, line(raw)?),
            Kind::Text(put) => put(target, text(raw)?),
            Kind::Words(put) => put(target, words(raw)?),
            Kind::Fraction(put) => put(target, fraction(raw)?),
            Kind::Count { min, max, put } => put(target, count(raw, min, max)?),
            Kind::Money(put) => put(target, money(raw)?),
            Kind::Time(put) => put(target, time(raw)?),
            Kind::Address(put) => put(target, address(raw)?),
            Kind::Variable(put) => put(target, variable(raw)?),
            Kind::Folder(put) => put(target, folder(raw)?.into()),
            Kind::Truth(put) => put(target, truth(raw)?),
            Kind::Price(put) => put(target, amount(raw)?),
            Kind::Choice { of, put } => put(target, choice(raw, of)?),
            Kind::Checked(put) => put(target, line(raw)?)?,
            Kind::List(put) => put(target, item(raw)?)?,
            Kind::Names { max, put } => put(target, names(raw, max)?),
            Kind::Texts(put) => texts(raw)?.into_iter().for_each(|(name, value)| put(target, name, value)),
        }
        Ok(())
    }

    /// The environment variable that `raw` names, if this setting is the name of one.
    pub(crate) fn variable_named(&self, raw: Raw<'_>) -> Option<String> {
        matches!(self.kind, Kind::Variable(_)).then(|| raw.shown())
    }
}

impl Raw<'_> {
    /// The value as it would be written.
    pub(crate) fn shown(self) -> String {
        match self {
            Self::Text(text) => text.to_owned(),
            Self::Toml(value) | Self::Item(value) => match value {
                DeValue::String(text) => text.to_string(),
                DeValue::Integer(number) => number.to_string(),
                DeValue::Float(number) => number.to_string(),
                DeValue::Boolean(truth) => truth.to_string(),
                DeValue::Datetime(moment) => moment.to_string(),
                DeValue::Array(items) => {
                    let items = items.iter().map(|item| Self::Item(item.get_ref()).shown());
                    items.collect::<Vec<_>>().join(", ")
                }
                DeValue::Table(_) => "{…}".to_owned(),
            },
        }
    }

    /// What it is instead of what it should be.
    fn misfit(self) -> String {
        match self {
            Self::Text(text) => format!("`{text}`"),
            Self::Toml(value) | Self::Item(value) => match value {
                DeValue::String(_) => "text".to_owned(),
                DeValue::Integer(number) => number.to_string(),
                DeValue::Float(number) => number.to_string(),
                DeValue::Boolean(truth) => truth.to_string(),
                DeValue::Datetime(_) => "a date".to_owned(),
                DeValue::Array(_) => "a list".to_owned(),
                DeValue::Table(_) => "a table".to_owned(),
            },
        }
    }
}

fn text(raw: Raw<'_>) -> Result<String, String> {
    match raw {
        Raw::Text(text) => Ok(text.to_owned()),
        Raw::Toml(DeValue::String(text)) => Ok(text.to_string()),
        Raw::Toml(_) | Raw::Item(_) => Err(format!("must be text in quotes (is {})", raw.misfit())),
    }
}

fn item(raw: Raw<'_>) -> Result<String, String> {
    match raw {
        Raw::Item(DeValue::String(text)) => Ok(text.to_string()),
        Raw::Item(_) => Err(format!("each must be text in quotes (is {})", raw.misfit())),
        Raw::Toml(_) | Raw::Text(_) => {
            Err(format!("must be a list of texts in [brackets] (is {})", raw.misfit()))
        }
    }
}

fn texts(raw: Raw<'_>) -> Result<Vec<(String, String)>, String> {
    let Raw::Toml(DeValue::Table(table)) = raw else {
        return Err(format!("must be a table of texts in {{braces}} (is {})", raw.misfit()));
    };
    let text = |name: &str, value| text(Raw::Toml(value)).map_err(|what| format!("`{name}` {what}"));
    let pairs = table
        .iter()
        .map(|(name, value)| Ok((name.get_ref().to_string(), text(name.get_ref(), value.get_ref())?)));
    pairs.collect()
}

fn line(raw: Raw<'_>) -> Result<String, String> {
    let text = text(raw)?;
    if text.trim().is_empty() {
        return Err("must not be empty".to_owned());
    }
    if text.contains(char::is_control) {
        return Err("must be one line without control characters".to_owned());
    }
    Ok(text.trim().to_owned())
}

fn words(raw: Raw<'_>) -> Result<String, String> {
    let words = text(raw)?.trim().to_owned();
    if words.is_empty() { Err("must not be empty".to_owned()) } else { Ok(words) }
}

/// The names in a list; behind a flag and in a variable, with commas between them.
fn names(raw: Raw<'_>, max: u64) -> Result<Vec<String>, String> {
    let names = match raw {
        Raw::Text(text) => text.split(',').map(|name| line(Raw::Text(name))).collect::<Result<Vec<_>, _>>(),
        Raw::Toml(DeValue::Array(items)) => {
            items.iter().map(|item| line(Raw::Toml(item.get_ref()))).collect::<Result<Vec<_>, _>>()
        }
        Raw::Toml(_) | Raw::Item(_) => {
            return Err(format!("must be a list of texts in [brackets] (is {})", raw.misfit()));
        }
    };
    let names = names.map_err(|what| format!("each {what}"))?;
    match names.len() as u64 {
        0 => Err("must not be empty".to_owned()),
        n if n > max => Err(format!("must be at most {max} (are {n})")),
        _ => Ok(names),
    }
}

fn fraction(raw: Raw<'_>) -> Result<f64, String> {
    let written = match raw {
        Raw::Text(text) => text.trim(),
        Raw::Toml(DeValue::Float(number)) => number.as_str(),
        Raw::Toml(DeValue::Integer(number)) if number.radix() == 10 => number.as_str(),
        Raw::Toml(_) | Raw::Item(_) => {
            return Err(format!("must be a number from 0 to 1 (is {})", raw.misfit()));
        }
    };
    let number =
        written.parse::<f64>().map_err(|_| format!("must be a number from 0 to 1 (is {})", raw.misfit()))?;
    // What is no number at all is in no range either.
    if (0.0..=1.0).contains(&number) {
        Ok(number)
    } else {
        Err(format!("must be from 0 to 1 (is {written})"))
    }
}

fn count(raw: Raw<'_>, min: u64, max: u64) -> Result<u64, String> {
    let not_one = || format!("must be a whole number (is {})", raw.misfit());
    let number = match raw {
        Raw::Text(text) => text.trim().replace('_', "").parse::<i128>().map_err(|_| not_one())?,
        Raw::Toml(DeValue::Integer(number)) => {
            i128::from_str_radix(number.as_str(), number.radix()).map_err(|_| not_one())?
        }
        Raw::Toml(_) | Raw::Item(_) => return Err(not_one()),
    };
    match u64::try_from(number) {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        _ if number > i128::from(max) => Err(format!("must be at most {max} (is {number})")),
        _ => Err(format!("must be {} (is {number})", bounds(min, max))),
    }
}

fn bounds(min: u64, max: u64) -> String {
    if min == 0 { format!("from 0 to {max}") } else { format!("at least {min}") }
}

/// An amount that limits something.
fn money(raw: Raw<'_>) -> Result<MicroDollars, String> {
    match amount(raw) {
        Ok(MicroDollars(0)) => Err(format!("must be more than 0 (is {})", raw.shown())),
        Err(_) if raw.shown().trim().starts_with('-') => {
            Err(format!("must be more than 0 (is {})", raw.shown()))
        }
        money => money,
    }
}

/// Reads the decimal as it is written: no float is ever involved.
fn amount(raw: Raw<'_>) -> Result<MicroDollars, String> {
    let written = match raw {
        Raw::Text(text) => text.trim().trim_start_matches('$').replace('_', ""),
        Raw::Toml(DeValue::Float(number)) => number.as_str().to_owned(),
        Raw::Toml(DeValue::Integer(number)) if number.radix() == 10 => number.as_str().to_owned(),
        Raw::Toml(_) | Raw::Item(_) => {
            return Err(format!("must be an amount in dollars (is {})", raw.misfit()));
        }
    };
    let bare = written.trim_start_matches(['+', '-']);
    if bare.eq_ignore_ascii_case("nan") || bare.eq_ignore_ascii_case("inf") {
        return Err(format!("must be a finite amount (is {written})"));
    }
    let (whole, decimals) = bare.split_once('.').unwrap_or((bare, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(decimals) {
        return Err(format!("must be a plain decimal of dollars (is {})", raw.shown()));
    }
    if decimals.trim_end_matches('0').len() > MONEY_DECIMALS_MAX {
        return Err(format!("must have at most {MONEY_DECIMALS_MAX} decimals (is {written})"));
    }
    let digits = format!("{whole}{:0<6.6}", decimals);
    let micros = digits.parse::<u64>().map_err(|_| format!("is more than there is (is {written})"))?;
    if written.starts_with('-') {
        return Err(format!("must not be negative (is {written})"));
    }
    Ok(MicroDollars(micros))
}

fn truth(raw: Raw<'_>) -> Result<bool, String> {
    match raw {
        Raw::Text("true") | Raw::Toml(DeValue::Boolean(true)) => Ok(true),
        Raw::Text("false") | Raw::Toml(DeValue::Boolean(false)) => Ok(false),
        _ => Err(format!("must be true or false (is {})", raw.misfit())),
    }
}

fn choice(raw: Raw<'_>, of: &[&'static str]) -> Result<&'static str, String> {
    let word = text(raw)?;
    let found = of.iter().find(|known| **known == word.trim());
    found.copied().ok_or_else(|| format!("must be one of {} (is `{word}`)", of.join(", ")))
}

fn time(raw: Raw<'_>) -> Result<u64, String> {
    let written = match raw {
        Raw::Text(text) => text.to_owned(),
        Raw::Toml(DeValue::String(text)) => text.to_string(),
        Raw::Toml(_) | Raw::Item(_) => {
            return Err(format!("must be a time with its unit, in quotes (is {})", raw.misfit()));
        }
    };
    let time = humantime::parse_duration(written.trim())
        .map_err(|_| format!("must be a time with its unit (is `{written}`)"))?;
    if time < Duration::from_secs(1) {
        return Err(format!("must be at least 1s (is `{written}`)"));
    }
    if time > TIME_MAX {
        return Err(format!("must be at most a year (is `{written}`)"));
    }
    Ok(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn address(raw: Raw<'_>) -> Result<String, String> {
    let address = line(raw)?;
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.contains(char::is_whitespace) => Ok(address),
        _ => Err("must be an address that begins with http:// or https://".to_owned()),
    }
}

fn variable(raw: Raw<'_>) -> Result<String, String> {
    variable_name(line(raw)?)
}

/// The name of a variable.
///
/// # Errors
/// When it can't be one.
pub(crate) fn variable_name(name: String) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.is_empty() && name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(name);
    }
    // It may be the key itself, which must not be shown.
    Err("must be the name of an environment variable, not a key".to_owned())
}

fn folder(raw: Raw<'_>) -> Result<String, String> {
    let folder = line(raw)?;
    if Path::new(&folder).is_absolute() {
        Ok(folder)
    } else {
        Err(format!("must be an absolute path (is `{folder}`)"))
    }
}

impl<T> Setting<T> {
    /// Takes the default, if there is one, and returns it in readable form.
    pub(crate) fn take_default(&self, target: &mut T) -> Option<String> {
        let SettingDefault::Is(default) = self.default else { return None };
        // A test takes every default: none is wrong.
        let value = DeValue::parse(default).ok()?;
        self.take(target, Raw::Toml(value.get_ref())).ok()?;
        Some(Raw::Toml(value.get_ref()).shown())
    }
}
