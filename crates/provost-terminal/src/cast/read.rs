//! Reading recordings.

use std::io::{self, BufRead, Read as _};
use std::time::Duration;

use provost_event::WindowSize;

use super::header::{CastHeader, VERSION};

/// The longest line that is read, in bytes.
const LINE_BYTES_MAX: u64 = 64 * 1_024 * 1_024;

/// Why a recording couldn't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CastError {
    /// The file couldn't be read.
    #[error("line {line} of the recording couldn't be read")]
    Read {
        /// The line, from 1.
        line: u64,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// It isn't a recording.
    #[error("this is no recording: its first line isn't the header of an asciicast ({message})")]
    Foreign {
        /// What is wrong.
        message: String,
    },
    /// It is a recording of another version.
    #[error(
        "this recording is an asciicast of version {version}; Provost reads version 2 (`asciinema convert -f asciicast-v2` makes one)"
    )]
    Version {
        /// The version.
        version: u64,
    },
    /// A line is no event.
    #[error("line {line} of the recording is no event: {message}")]
    Malformed {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        message: String,
    },
}

/// An event at the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// The program wrote this.
    Output(String),
    /// Typed input.
    Input(String),
    /// The window has a new size.
    Resized(WindowSize),
    /// A marker, with its label.
    Marker(String),
}

/// An event and its time since the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CastEvent {
    /// The time.
    pub at: Duration,
    /// The event.
    pub what: Happened,
}

/// Reads a recording event by event. A last line that was cut off, as a killed recorder leaves it, is the end.
/// Events of kinds that version 2 doesn't have are skipped.
pub struct CastReader<R> {
    input: R,
    header: CastHeader,
    line: u64,
    was_cut: bool,
    is_over: bool,
}

impl<R: BufRead> CastReader<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// It can't be read, isn't a recording's, or is of another version.
    pub fn new(mut input: R) -> Result<Self, CastError> {
        let line = read_line(&mut input, 1)?.map(|line| line.text).unwrap_or_default();
        let header = header(&line, &mut input)?;
        Ok(Self { input, header, line: 1, was_cut: false, is_over: false })
    }

    /// The recording's metadata.
    #[must_use]
    pub const fn header(&self) -> &CastHeader {
        &self.header
    }

    /// Whether the last line was cut off. Known once the last event has been read.
    #[must_use]
    pub const fn was_cut(&self) -> bool {
        self.was_cut
    }

    fn next_event(&mut self) -> Result<Option<CastEvent>, CastError> {
        loop {
            self.line += 1;
            let Some(line) = read_line(&mut self.input, self.line)? else { return Ok(None) };
            if line.text.trim().is_empty() {
                continue;
            }
            match event(&line.text) {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => {}
                Err(_) if !line.is_whole => {
                    self.was_cut = true;
                    return Ok(None);
                }
                Err(message) => return Err(CastError::Malformed { line: self.line, message }),
            }
        }
    }
}

impl<R: BufRead> Iterator for CastReader<R> {
    type Item = Result<CastEvent, CastError>;

    /// `None` after the first error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.next_event().transpose();
        self.is_over = !matches!(next, Some(Ok(_)));
        next
    }
}

struct CastLine {
    text: String,
    /// Whether it ends with a line end.
    is_whole: bool,
}

fn read_line(input: &mut impl BufRead, line: u64) -> Result<Option<CastLine>, CastError> {
    let mut bytes = Vec::new();
    let read = input.take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes);
    read.map_err(|source| CastError::Read { line, source })?;
    let is_whole = bytes.ends_with(b"\n");
    if !is_whole && u64::try_from(bytes.len()).is_ok_and(|len| len >= LINE_BYTES_MAX) {
        return Err(CastError::Malformed {
            line,
            message: format!("it is longer than {LINE_BYTES_MAX} bytes"),
        });
    }
    // The cut may be within a character.
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok((!bytes.is_empty()).then_some(CastLine { text, is_whole }))
}

/// A recording of version 1 is one JSON object, which may span many lines.
fn header(line: &str, input: &mut impl BufRead) -> Result<CastHeader, CastError> {
    let foreign = |error: &dyn std::fmt::Display| CastError::Foreign { message: error.to_string() };
    let value = match serde_json::from_str::<serde_json::Value>(line) {
        Ok(value) => value,
        Err(error) if error.is_eof() && line.starts_with('{') => {
            let mut rest = Vec::new();
            let read = input.take(LINE_BYTES_MAX).read_to_end(&mut rest);
            read.map_err(|source| CastError::Read { line: 2, source })?;
            let all = format!("{line}{}", String::from_utf8_lossy(&rest));
            serde_json::from_str(&all).map_err(|_| foreign(&error))?
        }
        Err(error) => return Err(foreign(&error)),
    };
    match value.get("version").and_then(serde_json::Value::as_u64) {
        Some(version) if version == u64::from(VERSION) => {
            CastHeader::from_line(line).map_err(|error| foreign(&error))
        }
        Some(version) => Err(CastError::Version { version }),
        None => Err(foreign(&"it has no version")),
    }
}

/// `None`: an event of another kind.
fn event(line: &str) -> Result<Option<CastEvent>, String> {
    let (seconds, code, data): (f64, String, String) =
        serde_json::from_str(line).map_err(|error| error.to_string())?;
    let at = Duration::try_from_secs_f64(seconds).map_err(|error| format!("its time: {error}"))?;
    let what = match code.as_str() {
        "o" => Happened::Output(data),
        "i" => Happened::Input(data),
        "m" => Happened::Marker(data),
        "r" => Happened::Resized(size(&data).ok_or_else(|| format!("`{data}` is no size"))?),
        _ => return Ok(None),
    };
    Ok(Some(CastEvent { at, what }))
}

/// Columns, `x`, rows.
fn size(text: &str) -> Option<WindowSize> {
    let (cols, rows) = text.split_once('x')?;
    Some(WindowSize::new(rows.parse().ok()?, cols.parse().ok()?))
}
