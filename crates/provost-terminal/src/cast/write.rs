//! Writing recordings.

use std::io;
use std::time::Duration;

use provost_event::WindowSize;

use super::header::CastHeader;
use super::redacting::{RedactingBuffer, Released};
use crate::Mask;

/// How long text that may still become a secret is held.
const HELD_MAX: Duration = Duration::from_secs(2);
/// How long lines are buffered before they are written.
const GATHERED_MAX: Duration = Duration::from_millis(500);
/// Maximum bytes in that buffer.
const GATHERED_BYTES_MAX: usize = 64 * 1_024;

/// Typed input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed<'a> {
    /// The terminal or the program echoed it.
    Shown(&'a [u8]),
    /// The terminal's echo was off: it is a secret. Nothing is recorded, not even the time.
    Hidden,
}

/// Writes a recording. All times are since its start; a time before the previous one counts as the previous one.
///
/// Output is decoded as it comes: a character cut in two is restored, bytes that aren't UTF-8 become U+FFFD.
///
/// With a mask, output is masked line by line, for any chunks and colours: a line is held until it ends, the
/// cursor leaves it, it has 8 KiB, or two seconds have passed, and keeps its times. So a secret isn't found if it
/// is
/// - painted more slowly than that, or in parts that aren't adjacent or not from left to right,
/// - broken by the program over several rows (a private key with its first and last line is found),
/// - encoded (the clipboard's base64), or has several lines and isn't a private key,
/// - typed key by key, in the input: each write is masked by itself.
///
/// The replacement may have another length, so what follows in the same row moves.
pub struct CastWriter<W> {
    out: W,
    gathered: Vec<u8>,
    redacting: RedactingBuffer,
    partial: Vec<u8>,
    mask: Option<Mask>,
    now: Duration,
    /// The time of the oldest buffered line.
    gathered_since: Option<Duration>,
}

impl<W: io::Write> CastWriter<W> {
    /// Writes the first line. The mask also covers command and title.
    ///
    /// # Errors
    /// The writer's errors.
    pub fn new(out: W, header: &CastHeader, mask: Option<Mask>) -> io::Result<Self> {
        let mut line = header.to_line(mask.as_ref())?.into_bytes();
        line.push(b'\n');
        let redacting = RedactingBuffer::new(mask.clone());
        let mut writer = Self {
            out,
            gathered: line,
            redacting,
            partial: Vec::new(),
            mask,
            now: Duration::ZERO,
            gathered_since: None,
        };
        writer.hand_over()?;
        Ok(writer)
    }

    /// Records output of the program.
    ///
    /// # Errors
    /// The writer's errors; what couldn't be written is dropped.
    pub fn output(&mut self, at: Duration, bytes: &[u8]) -> io::Result<()> {
        self.pass(at);
        let text = self.decoded(bytes);
        self.redacting.output(self.now, &text);
        self.gather()
    }

    /// Records typed input.
    ///
    /// # Errors
    /// The writer's errors.
    pub fn input(&mut self, at: Duration, typed: Typed<'_>) -> io::Result<()> {
        match typed {
            Typed::Shown(bytes) => self.event(at, 'i', &String::from_utf8_lossy(bytes)),
            Typed::Hidden => Ok(()),
        }
    }

    /// Records a new window size.
    ///
    /// # Errors
    /// The writer's errors.
    pub fn resize(&mut self, at: Duration, size: WindowSize) -> io::Result<()> {
        self.event(at, 'r', &format!("{}x{}", size.cols, size.rows))
    }

    /// Records a marker that a viewer may search for.
    ///
    /// # Errors
    /// The writer's errors.
    pub fn marker(&mut self, at: Duration, label: &str) -> io::Result<()> {
        self.event(at, 'm', label)
    }

    /// When [`tick`](Self::tick) is due, so that a killed Provost loses at most the last two and a half seconds;
    /// `None`: no data is buffered.
    #[must_use]
    pub fn flush_due(&self) -> Option<Duration> {
        let held = self.redacting.waits_since().map(|since| since + HELD_MAX);
        let gathered = self.gathered_since.map(|since| since + GATHERED_MAX);
        held.into_iter().chain(gathered).min()
    }

    /// Time has passed: writes what is due.
    ///
    /// # Errors
    /// The writer's errors.
    pub fn tick(&mut self, at: Duration) -> io::Result<()> {
        self.pass(at);
        if self.redacting.waits_since().is_some_and(|since| since + HELD_MAX <= self.now) {
            self.redacting.release_all();
            self.gather()?;
        }
        if self.gathered_since.is_some_and(|since| since + GATHERED_MAX <= self.now) {
            self.hand_over()
        } else {
            Ok(())
        }
    }

    /// Writes everything, including text that may still become a secret.
    ///
    /// # Errors
    /// The writer's errors.
    pub fn flush(&mut self) -> io::Result<()> {
        self.redacting.release_all();
        self.gather()?;
        self.hand_over()
    }

    /// Writes everything, and returns the writer.
    ///
    /// # Errors
    /// The writer's errors.
    pub fn finish(mut self) -> io::Result<W> {
        let rest = std::mem::take(&mut self.partial);
        if !rest.is_empty() {
            self.redacting.output(self.now, "\u{fffd}");
        }
        self.flush()?;
        Ok(self.out)
    }

    fn pass(&mut self, at: Duration) {
        self.now = self.now.max(at);
    }

    fn event(&mut self, at: Duration, code: char, data: &str) -> io::Result<()> {
        self.pass(at);
        let data = self.mask.as_ref().map_or(data.into(), |mask| mask(data));
        self.redacting.event(self.now, code, &data);
        self.gather()
    }

    /// The text of the bytes so far; an incomplete character is kept for the next call.
    fn decoded(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.partial);
        all.extend_from_slice(bytes);
        let mut text = String::with_capacity(all.len());
        let mut chunks = all.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            let is_cut = std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if is_cut && chunks.peek().is_none() {
                self.partial = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push('\u{fffd}');
            }
        }
        text
    }

    fn gather(&mut self) -> io::Result<()> {
        for Released { at, code, data } in self.redacting.take() {
            let data = serde_json::to_string(&data)?;
            self.gathered
                .extend_from_slice(format!("[{:.6},\"{code}\",{data}]\n", at.as_secs_f64()).as_bytes());
        }
        self.gathered_since = self.gathered_since.or(Some(self.now)).filter(|_| !self.gathered.is_empty());
        if self.gathered.len() >= GATHERED_BYTES_MAX { self.hand_over() } else { Ok(()) }
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.gathered_since = None;
        let gathered = std::mem::take(&mut self.gathered);
        self.out.write_all(&gathered)?;
        self.out.flush()
    }
}
