//! Helpers to read JSON of other programs.

use provost_event::MicroDollars;
use serde_json::Value;

/// The text at `pointer`, if there is one.
pub(super) fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// The first of these texts that exists and isn't empty.
pub(super) fn first_text<'v>(value: &'v Value, pointers: &[&str]) -> Option<&'v str> {
    pointers.iter().filter_map(|pointer| text(value, pointer)).find(|text| !text.trim().is_empty())
}

/// The count at `pointer`; 0 if there is none.
pub(super) fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

/// The texts of a list of content parts; parts of other kinds are left out.
pub(super) fn texts(parts: &Value) -> impl Iterator<Item = &str> {
    let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().filter(|part| text(part, "/type") == Some("text")).filter_map(|part| text(part, "/text"))
}

/// The dollars at `pointer`, rounded up to a whole micro-dollar.
pub(super) fn dollars(value: &Value, pointer: &str) -> Option<MicroDollars> {
    /// Micro-dollars beyond which a figure is invalid.
    const MAX: f64 = 1e15;
    let micros = (value.pointer(pointer)?.as_f64()? * 1e6).ceil();
    // As text, since a cast would need a justification: a whole number in this range is written with digits only.
    (0.0..MAX).contains(&micros).then(|| format!("{micros:.0}").parse().ok().map(MicroDollars)).flatten()
}
