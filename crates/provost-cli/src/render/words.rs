//! Numbers and texts as people read them.

use provost_event::{Image, Timestamp};
pub(crate) use provost_event::{counted as plural, grouped as amount};

/// Milliseconds as a short time: `80ms`, `12.3s`, `1m20s`, `2h05m`, `3d04h`.
pub(crate) fn duration(ms: u64) -> String {
    let (secs, mins, hours) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{secs}.{}s", ms % 1_000 / 100),
        60_000..3_600_000 => format!("{mins}m{:02}s", secs % 60),
        3_600_000..86_400_000 => format!("{hours}h{:02}m", mins % 60),
        _ => format!("{}d{:02}h", hours / 24, hours % 24),
    }
}

/// How long ago `then` was, in one unit.
pub(crate) fn age(now: Timestamp, then: Timestamp) -> String {
    span(now.since_ms(then))
}

/// Milliseconds in one unit: `12s`, `3m`, `5h`, `2d`.
pub(crate) fn span(ms: u64) -> String {
    let secs = ms / 1_000;
    match secs {
        0..60 => format!("{secs}s"),
        60..3_600 => format!("{}m", secs / 60),
        3_600..86_400 => format!("{}h", secs / 3_600),
        _ => format!("{}d", secs / 86_400),
    }
}

/// A count of tokens: `950`, `12.4k`, `3.2M`.
pub(crate) fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// A count of tokens with its noun, for a line that is to stay short: `1 token`, `12.4k tokens`.
pub(crate) fn tokens_in_short(count: u64) -> String {
    format!("{} {}", tokens(count), if count == 1 { "token" } else { "tokens" })
}

/// A size in bytes, in units of 1024: `340 B`, `12 KB`, `3.6 MB`.
pub(crate) fn size(bytes: u64) -> String {
    const KB: u64 = 1024;
    match bytes {
        0..KB => format!("{bytes} B"),
        // What would be 1024 KB when rounded is 1.0 MB.
        KB..1_048_064 => format!("{} KB", (bytes + KB / 2) / KB),
        _ => {
            let tenths = bytes.saturating_mul(10).saturating_add(KB * KB / 2) / (KB * KB);
            format!("{}.{} MB", tenths / 10, tenths % 10)
        }
    }
}

/// What stands where pictures are: `[image/png 12 KB] [image/gif 340 B]`.
pub(crate) fn pictures<'a>(images: impl IntoIterator<Item = &'a Image>) -> String {
    let shown = |image: &Image| format!("[{} {}]", image.kind.media_type(), size(image.bytes));
    images.into_iter().map(shown).collect::<Vec<_>>().join(" ")
}

/// The first line with something in it, cut to `max` columns; says if there is more.
pub(crate) fn one_line(text: &str, max: usize) -> String {
    let text = super::safe(text);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().replace('\t', " ");
    let more = if lines.next().is_some() { " …" } else { "" };
    console::truncate_str(&format!("{first}{more}"), max, "…").into_owned()
}

/// Lines and characters of a text that is shown in full.
const EXCERPT_LINES: usize = 30;
const EXCERPT_CHARS: usize = 3_000;
/// Lines and characters shown of a longer one.
const BEGINNING_LINES: usize = 6;
const BEGINNING_CHARS: usize = 600;

/// `text`, or of a long one its beginning, its size, and with `rest` where the rest is to be read.
pub(crate) fn excerpt(text: &str, rest: &str) -> String {
    let is_long = |text: &str, lines: usize, chars: usize| {
        text.lines().nth(lines).is_some() || text.chars().nth(chars).is_some()
    };
    if !is_long(text, EXCERPT_LINES, EXCERPT_CHARS) {
        return text.to_owned();
    }
    let begins = text.lines().take(BEGINNING_LINES).collect::<Vec<_>>().join("\n");
    let begins = begins.chars().take(BEGINNING_CHARS).collect::<String>();
    format!("{}\n… ({} in all; {rest})", begins.trim_end(), size(text.len() as u64))
}

/// `text` with its further lines indented; empty lines stay empty.
pub(crate) fn hanging(text: &str, indent: &str) -> String {
    let lines = text.lines().enumerate().map(|(place, line)| match place {
        0 => line.to_owned(),
        _ if line.trim().is_empty() => String::new(),
        _ => format!("{indent}{line}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_at_most_two_units() {
        let shown = [0, 80, 999, 1_000, 12_340, 59_999, 60_000, 80_000, 7_500_000, 273_600_000].map(duration);
        assert_eq!(
            shown,
            ["0ms", "80ms", "999ms", "1.0s", "12.3s", "59.9s", "1m00s", "1m20s", "2h05m", "3d04h"]
        );
    }

    #[test]
    fn counts_stay_short() {
        assert_eq!([0, 999, 1_000, 12_449, 3_250_000].map(tokens), ["0", "999", "1.0k", "12.4k", "3.2M"]);
    }

    #[test]
    fn sizes_are_rounded() {
        let shown = [0, 1_023, 1_024, 1_535, 1_536, 1_048_063, 1_048_064, 3_750_000].map(size);
        assert_eq!(shown, ["0 B", "1023 B", "1 KB", "1 KB", "2 KB", "1023 KB", "1.0 MB", "3.6 MB"]);
    }

    #[test]
    fn a_long_text_is_cut_to_its_beginning_and_tells_its_size() {
        assert_eq!(excerpt("a\nb\n", "x"), "a\nb\n");
        assert_eq!(excerpt(&"a\n".repeat(30), "x"), "a\n".repeat(30));
        assert_eq!(
            excerpt(&"a\n".repeat(31), "all: x"),
            format!("{}… (62 B in all; all: x)", "a\n".repeat(6))
        );
        let line = excerpt(&"漢".repeat(40_000), "all: x");
        assert_eq!(line, format!("{}\n… (117 KB in all; all: x)", "漢".repeat(600)));
    }

    #[test]
    fn one_line_tells_of_more_and_is_cut_to_its_width() {
        assert_eq!(one_line("\n  cargo test\n", 20), "cargo test");
        assert_eq!(one_line("a\nb", 20), "a …");
        assert_eq!(one_line("漢字漢字漢字", 7), "漢字漢…");
        assert_eq!(one_line("", 7), "");
    }
}
