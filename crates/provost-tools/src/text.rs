//! Text and numbers in outputs.

use std::fmt::Write as _;

/// The beginning of `text`, at most `bytes_max` bytes and whole characters; and whether that is all of it.
pub(crate) fn cut(text: &str, bytes_max: usize) -> (&str, bool) {
    let end = text.floor_char_boundary(bytes_max);
    (text.get(..end).unwrap_or_default(), end == text.len())
}

/// A size for display: `340 B`, `1.2 KB`, `5.0 GB`; a KB is 1024 bytes.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    // Tenths of the unit, rounded.
    let mut tenths = u128::from(bytes) * 10;
    let mut unit = "B";
    for larger in UNITS {
        if tenths < 10_240 {
            break;
        }
        tenths = (tenths + 512) / 1024;
        unit = larger;
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// `1 line`, `2 lines`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    let plural = match thing.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{thing}s"),
    };
    if number == 1 { format!("1 {thing}") } else { format!("{number} {plural}") }
}

/// The first `max` of `names`, and how many more there are.
pub(crate) fn some_of<T: ToString>(names: &[T], max: usize) -> String {
    let mut text = names.iter().take(max).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if names.len() > max {
        // Writing to a string can't fail.
        let _ = write!(text, " and {} more", names.len() - max);
    }
    text
}

/// How many lines `text` has; a last one without its end counts.
pub(crate) fn line_count(text: &str) -> usize {
    text.lines().count()
}

#[cfg(test)]
mod tests {
    use super::{count, cut, size, some_of};

    #[test]
    fn sizes_change_their_unit_at_1024() {
        let sizes: Vec<_> = [0, 1023, 1024, 1536, 1024 * 1024, 5 << 30, u64::MAX].map(size).into();
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KB", "1.5 KB", "1.0 MB", "5.0 GB", "16777216.0 TB"]);
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(cut("aä", 2), ("a", false));
        assert_eq!(cut("aä", 3), ("aä", true));
        assert_eq!(cut("", 0), ("", true));
    }

    #[test]
    fn numbers_have_their_plural() {
        assert_eq!(
            [count(0, "entry"), count(1, "entry"), count(2, "line")],
            ["0 entries", "1 entry", "2 lines"]
        );
        assert_eq!(some_of(&[1, 2, 3], 2), "1, 2 and 1 more");
        assert_eq!(some_of(&[1, 2], 2), "1, 2");
    }
}
