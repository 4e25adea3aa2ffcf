//! Writes requests: JSON from pieces that mostly are JSON already.

use serde::Serialize;

/// Appends `value` to `out`.
pub(crate) fn put<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    // Texts, numbers and raw JSON can always be serialized, and a Vec accepts every byte.
    let _ = serde_json::to_writer(out, value);
}

/// Appends `fragments` to `out`, separated by commas; empty ones are skipped.
pub(crate) fn list(out: &mut Vec<u8>, fragments: &[impl AsRef<[u8]>]) {
    for (place, fragment) in
        fragments.iter().map(AsRef::as_ref).filter(|fragment| !fragment.is_empty()).enumerate()
    {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(fragment);
    }
}

/// The output of a failed tool, for formats without a mark for failures.
pub(crate) fn failed(output: &str) -> String {
    if is_blank(output) { "failed without output".to_owned() } else { format!("The tool failed:\n{output}") }
}

/// Whether `text` has no visible character; providers refuse such blocks.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
