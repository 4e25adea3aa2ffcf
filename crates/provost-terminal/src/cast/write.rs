//! Writing recordings.

use std::io;
use std::time::Duration;

use provost_event::WindowSize;

use super::header::CastHeader;
use super::veil::{Released, Veil};
use crate::Mask;

/// How long text that could still become a secret is held.
const HELD_MAX: Duration = Duration::from_secs(2);
/// How long lines are gathered before they are handed to the system.
const GATHERED_MAX: Duration = Duration::from_millis(500);
/// How many bytes of them are.
const GATHERED_BYTES_MAX: usize = 64 * 1_024;

/// What somebody typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed<'a> {
    /// The terminal echoed it, or the program shows what is typed by itself.
    Shown(&'a [u8]),
    /// The terminal's echo was off: it is a secret. Nothing of it is kept, not even that it was.
    Hidden,
}

/// Writes a recording. All times are since its start; one that goes back counts as the one before.
///
/// Output is decoded as it comes: a character cut in two is one, bytes that aren't UTF-8 become U+FFFD.
///
/// With a mask, output goes through it line by line, whatever chunks it came in and whatever colours are in it: a line is
/// held until it ends, the cursor leaves it, 8 KiB are there, or two seconds have passed, and keeps its times. So a secret
/// isn't found if it is
/// - painted more slowly than that, or in parts that aren't next to each other or not from left to right,
/// - broken by the program over several rows (a private key with its first and last line is found),
/// - encoded (the clipboard's base64), or of several lines that aren't a private key,
/// - typed key by key, in what was typed: each write goes through the mask for itself.
///
/// What is put in its place can be of another length, so what follows in the same row moves.
pub struct CastWriter<W> {
    out: W,
    gathered: Vec<u8>,
    veil: Veil,
    partial: Vec<u8>,
    mask: Option<Mask>,
    now: Duration,
    /// Since when lines are gathered.
    gathered_since: Option<Duration>,
}

impl<W: io::Write> CastWriter<W> {
    /// Writes the first line. The mask also covers command and title.
    ///
    /// # Errors
    /// What the writer says.
    pub fn new(out: W, header: &CastHeader, mask: Option<Mask>) -> io::Result<Self> {
        let mut line = header.to_line(mask.as_ref())?.into_bytes();
        line.push(b'\n');
        let veil = Veil::new(mask.clone());
        let mut writer = Self {
            out,
            gathered: line,
            veil,
            partial: Vec::new(),
            mask,
            now: Duration::ZERO,
            gathered_since: None,
        };
        writer.hand_over()?;
        Ok(writer)
    }

    /// The program wrote this.
    ///
    /// # Errors
    /// What the writer says; what couldn't be written is dropped.
    pub fn output(&mut self, at: Duration, bytes: &[u8]) -> io::Result<()> {
        self.pass(at);
        let text = self.decoded(bytes);
        self.veil.output(self.now, &text);
        self.gather()
    }

    /// Somebody typed this.
    ///
    /// # Errors
    /// What the writer says.
    pub fn input(&mut self, at: Duration, typed: Typed<'_>) -> io::Result<()> {
        match typed {
            Typed::Shown(bytes) => self.event(at, 'i', &String::from_utf8_lossy(bytes)),
            Typed::Hidden => Ok(()),
        }
    }

    /// The window has another size.
    ///
    /// # Errors
    /// What the writer says.
    pub fn resize(&mut self, at: Duration, size: WindowSize) -> io::Result<()> {
        self.event(at, 'r', &format!("{}x{}", size.cols, size.rows))
    }

    /// Something happened that whoever plays it may look for.
    ///
    /// # Errors
    /// What the writer says.
    pub fn marker(&mut self, at: Duration, label: &str) -> io::Result<()> {
        self.event(at, 'm', label)
    }

    /// By when [`tick`](Self::tick) is to be called, so that a killed Provost loses no more than the last two and a half
    /// seconds; `None`: nothing is kept back.
    #[must_use]
    pub fn flush_due(&self) -> Option<Duration> {
        let held = self.veil.waits_since().map(|since| since + HELD_MAX);
        let gathered = self.gathered_since.map(|since| since + GATHERED_MAX);
        held.into_iter().chain(gathered).min()
    }

    /// Time has passed: what is due goes out.
    ///
    /// # Errors
    /// What the writer says.
    pub fn tick(&mut self, at: Duration) -> io::Result<()> {
        self.pass(at);
        if self.veil.waits_since().is_some_and(|since| since + HELD_MAX <= self.now) {
            self.veil.release_all();
            self.gather()?;
        }
        if self.gathered_since.is_some_and(|since| since + GATHERED_MAX <= self.now) {
            self.hand_over()
        } else {
            Ok(())
        }
    }

    /// Everything goes out, also text that could still become a secret.
    ///
    /// # Errors
    /// What the writer says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.veil.release_all();
        self.gather()?;
        self.hand_over()
    }

    /// Everything goes out, and the writer is given back.
    ///
    /// # Errors
    /// What the writer says.
    pub fn finish(mut self) -> io::Result<W> {
        let rest = std::mem::take(&mut self.partial);
        if !rest.is_empty() {
            self.veil.output(self.now, "\u{fffd}");
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
        self.veil.event(self.now, code, &data);
        self.gather()
    }

    /// The text of the bytes so far; the start of a character stays for the next.
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
        for Released { at, code, data } in self.veil.take() {
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
