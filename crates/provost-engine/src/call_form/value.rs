//! Values of arguments, turned into the tool's own form.

use provost_event::{FieldForm, ValueForm};
use serde_json::{Map, Value};

use super::Fields;

/// Shells whose `-c` is what a command line of the tool is anyway.
const SHELLS: [&str; 2] = ["bash", "sh"];
const SHELL_OPTIONS: [&str; 2] = ["-c", "-lc"];

/// Levels of nested schemas that are compared with the arguments.
const LEVELS_MAX: usize = 4;

/// The value in the tool's own form; none if it is the same as not giving it. One that isn't of the described form
/// stays as it is, for the tool to object to.
pub(super) fn in_own_form(tool: &str, form: &ValueForm, value: &Value) -> Result<Option<Value>, String> {
    let own = match (form, value) {
        (ValueForm::ZeroIsAbsent, _) if number_in(value) == Some(0.0) => return Ok(None),
        (ValueForm::Millis, _) => number_in(value).and_then(secs_of).map(Value::from),
        (ValueForm::Words, Value::Array(words)) => command_line(words).map(Value::from),
        (ValueForm::LineRange { .. }, Value::Array(range)) => range.first().cloned(),
        (ValueForm::Renamed(words), Value::String(word)) => words.get(word).map(|own| own.as_str().into()),
        (ValueForm::Items { fields, ignored }, Value::Array(items)) => {
            let items = items.iter().map(|item| item_of(tool, item, fields, ignored));
            Some(Value::Array(items.collect::<Result<_, _>>()?))
        }
        _ => None,
    };
    Ok(Some(own.unwrap_or_else(|| value.clone())))
}

/// One object of a list, with the tool's own fields.
fn item_of(tool: &str, item: &Value, forms: &[FieldForm], ignored: &[String]) -> Result<Value, String> {
    let Value::Object(given) = item else { return Ok(item.clone()) };
    let mut fields = Fields { tool, own: Map::new(), sources: Vec::new() };
    for (name, value) in given.iter().filter(|(name, _)| !ignored.contains(name)) {
        fields.add(name, value, forms)?;
    }
    Ok(Value::Object(fields.own))
}

/// A number, also as text.
fn number_in(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Whole seconds, rounded up; none without a positive number.
fn secs_of(millis: f64) -> Option<u64> {
    const MILLIS_MAX: f64 = 1e15;
    (millis > 0.0 && millis <= MILLIS_MAX).then(|| whole(millis).div_ceil(1_000))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the caller's bounds: positive, and far below 2^63"
)]
const fn whole(number: f64) -> u64 {
    number as u64
}

/// The number of lines of a range; none if it goes to the end, or isn't one.
pub(super) fn lines_in(range: &Value) -> Option<u64> {
    let [first, last] = range.as_array()?.as_slice() else { return None };
    let last = last.as_u64()?;
    Some(last.checked_sub(first.as_u64()?)?.saturating_add(1))
}

/// The command line of these words; none if they aren't words. A shell's own command line is taken out.
fn command_line(words: &[Value]) -> Option<String> {
    let words = words.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?;
    match words.as_slice() {
        [] => None,
        [program, option, line] if is_shell(program) && SHELL_OPTIONS.contains(option) => {
            Some((*line).to_owned())
        }
        words => Some(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
    }
}

fn is_shell(program: &str) -> bool {
    SHELLS.iter().any(|shell| {
        let folder = program.strip_suffix(shell);
        matches!(folder, Some("" | "/bin/" | "/usr/bin/"))
    })
}

/// A word for a shell, in quotes unless it needs none.
fn quoted(word: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | ',' | '@' | '+');
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Turns texts into the numbers, booleans, lists and objects that `schema` demands, where they read as such.
pub(super) fn fitted(value: &mut Value, schema: &Value) {
    fitted_within(value, schema, LEVELS_MAX);
}

/// Whether a schema might change it: texts that might be another value, and numbers with a fraction. Most arguments have
/// none, and then their schema needn't be read.
pub(super) fn might_fit_otherwise(value: &Value) -> bool {
    const FIRST: &str = "+-.[{tTfFiInN";
    let begins_a_value = |first: char| first.is_ascii_digit() || FIRST.contains(first);
    match value {
        Value::String(text) => text.trim_start().starts_with(begins_a_value),
        Value::Number(number) => !number.is_i64() && !number.is_u64(),
        Value::Array(items) => items.iter().any(might_fit_otherwise),
        Value::Object(fields) => fields.values().any(might_fit_otherwise),
        Value::Bool(_) | Value::Null => false,
    }
}

fn fitted_within(value: &mut Value, schema: &Value, levels: usize) {
    let Some(levels) = levels.checked_sub(1) else { return };
    if let Some(own) = schema.get("type").and_then(Value::as_str).and_then(|kind| of_kind(value, kind)) {
        *value = own;
    }
    match value {
        Value::Object(fields) => {
            let properties = schema.get("properties");
            for (name, field) in fields {
                if let Some(schema) = properties.and_then(|all| all.get(name)) {
                    fitted_within(field, schema, levels);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| fitted_within(item, schema, levels));
            }
        }
        _ => {}
    }
}

/// The value as one of the JSON type `kind`, if it only has another form.
fn of_kind(value: &Value, kind: &str) -> Option<Value> {
    match (kind, value) {
        ("integer", Value::String(text)) => integer_in(text),
        ("integer", Value::Number(number)) => {
            let number = number.as_f64().filter(|_| !number.is_i64() && !number.is_u64())?;
            let is_whole = number.fract() == 0.0 && (0.0..=1e15).contains(&number);
            is_whole.then(|| whole(number).into())
        }
        ("number", Value::String(text)) => text.trim().parse::<f64>().ok().map(Value::from),
        ("boolean", Value::String(text)) => match text.trim() {
            "true" | "True" => Some(true.into()),
            "false" | "False" => Some(false.into()),
            _ => None,
        },
        ("array", Value::String(text)) => serde_json::from_str(text).ok().filter(Value::is_array),
        ("object", Value::String(text)) => serde_json::from_str(text).ok().filter(Value::is_object),
        _ => None,
    }
}

fn integer_in(text: &str) -> Option<Value> {
    let text = text.trim();
    // As programs write whole numbers that are no integers of theirs.
    let text = text.strip_suffix(".0").unwrap_or(text);
    text.parse::<i64>().ok().map(Value::from)
}
