//! Writing requests: JSON put together from pieces that mostly are JSON already.

use serde::Serialize;

/// Puts `value` behind `out`.
pub(crate) fn put<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    // Texts, numbers and JSON that already is JSON always have a JSON form, and a Vec takes every byte.
    let _ = serde_json::to_writer(out, value);
}

/// Puts `fragments` behind `out` with commas between them; empty ones are none.
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

/// What a tool that failed said, in formats that have no mark for it.
pub(crate) fn failed(output: &str) -> String {
    if is_blank(output) { "failed without output".to_owned() } else { format!("The tool failed:\n{output}") }
}

/// Whether nothing can be seen of `text`; providers refuse such blocks.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
