//! Reads a few lines of a stream of any length.

use std::io::{self, BufRead, BufReader, Read};

use crate::text::{count, cut};

/// Maximum bytes of a line to show.
pub(crate) const LINE_BYTES_MAX: usize = 2000;

/// Maximum bytes to read after the last line shown, only to count lines.
const COUNT_BYTES_MAX: u64 = 64 * 1024 * 1024;

const BUFFER_BYTES: usize = 64 * 1024;

/// Which lines to show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// The number of the first, from 1.
    pub(crate) first: usize,
    /// Maximum lines.
    pub(crate) lines_max: usize,
    /// Maximum bytes of text; a line that doesn't fit ends the window, but the first line is always included.
    pub(crate) bytes_max: usize,
}

/// The lines shown, and counts of the others.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// The lines, each with its number and a tab in front, each with its end.
    pub(crate) text: String,
    /// The number of lines shown.
    pub(crate) shown: usize,
    /// The number of lines in the stream, as far as counted.
    pub(crate) counted: usize,
    /// Whether all lines were counted.
    pub(crate) counted_all: bool,
    /// Whether a line shown ends with a carriage return before its line feed.
    pub(crate) has_carriage_returns: bool,
    /// Whether the last line shown has no line end.
    pub(crate) lacks_last_end: bool,
    /// Whether a line shown holds bytes that aren't UTF-8.
    pub(crate) lossy: bool,
}

impl Window {
    /// Reads `stream` as far as `wanted`, and a bit further to count lines.
    pub(crate) fn read(stream: impl Read, wanted: Wanted) -> io::Result<Self> {
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, stream);
        let mut window = Self::default();
        while window.counted + 1 < wanted.first {
            if reader.skip_until(b'\n')? == 0 {
                window.counted_all = true;
                return Ok(window);
            }
            window.counted += 1;
        }
        // The rest of a line is only skipped if something after it is needed: it may be very long.
        let mut within_line = false;
        while window.shown < wanted.lines_max {
            if within_line {
                reader.skip_until(b'\n')?;
            }
            let Some(line) = LineStart::read(&mut reader)? else {
                window.counted_all = true;
                return Ok(window);
            };
            window.counted += 1;
            within_line = !line.complete;
            let text = format!("{}\t{}\n", window.counted, line.shown());
            if window.shown > 0 && window.text.len() + text.len() > wanted.bytes_max {
                break;
            }
            window.add(&line, &text);
        }
        window.count_on(&mut reader, within_line)?;
        Ok(window)
    }

    fn add(&mut self, line: &LineStart, text: &str) {
        self.text.push_str(text);
        self.shown += 1;
        self.has_carriage_returns |= line.kept.ends_with(b"\r\n");
        self.lacks_last_end = line.complete && !line.kept.ends_with(b"\n");
        self.lossy |= std::str::from_utf8(&line.kept).is_err();
    }

    /// Counts the following lines, up to a limit.
    fn count_on(&mut self, reader: &mut impl BufRead, within_line: bool) -> io::Result<()> {
        let mut rest = reader.take(COUNT_BYTES_MAX);
        if within_line {
            rest.skip_until(b'\n')?;
        }
        while rest.skip_until(b'\n')? > 0 {
            self.counted += 1;
        }
        self.counted_all = rest.limit() > 0;
        Ok(())
    }
}

/// The beginning of a line.
struct LineStart {
    kept: Vec<u8>,
    /// Whether the line is complete.
    complete: bool,
}

impl LineStart {
    /// The next line; `None` at the end of the stream.
    fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut kept = Vec::new();
        // One byte more than is shown, and room for the line end, to detect a longer line.
        let room = LINE_BYTES_MAX as u64 + 3;
        let mut part = reader.take(room);
        part.read_until(b'\n', &mut kept)?;
        let complete = kept.ends_with(b"\n") || part.limit() > 0;
        Ok(if kept.is_empty() { None } else { Some(Self { kept, complete }) })
    }

    /// The line without its end, as text.
    fn shown(&self) -> String {
        let bytes = self.kept.strip_suffix(b"\n").unwrap_or(&self.kept);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.contains(&0) {
            return "[bytes that aren't text]".to_owned();
        }
        let text = String::from_utf8_lossy(bytes);
        match cut(text.trim_start_matches('\u{feff}'), LINE_BYTES_MAX) {
            (whole, true) if self.complete => whole.to_owned(),
            (part, _) => format!("{part}… [the line goes on after {}]", count(part.len(), "byte")),
        }
    }
}
