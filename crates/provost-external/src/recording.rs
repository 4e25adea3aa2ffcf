//! Where a terminal is recorded.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use provost_event::{SessionId, TerminalEvent, TerminalNoted, WindowSize};
use provost_harness::Redactor;
use provost_process::{AtTerminal, Launch, Recorder};
use provost_terminal::{CastHeader, CastWriter, Mask};

use crate::driver::private_folder;

const FOLDER: &str = "recordings";
/// The recordings of one session.
const NUMBER_MAX: u32 = 100_000;
/// The supervisor's label for a typed secret, of which not even the time is recorded.
const SECRET: &str = "secret";

/// A recording that isn't open yet.
pub(crate) struct RecordingTarget {
    pub(crate) path: PathBuf,
    redactor: Arc<Redactor>,
}

impl RecordingTarget {
    /// The next one of `session`: they are numbered from 1.
    pub(crate) fn next(folder: &Path, session: SessionId, redactor: Arc<Redactor>) -> io::Result<Self> {
        let folder = folder.join(FOLDER);
        private_folder(&folder)?;
        let mut paths =
            (1..NUMBER_MAX).map(|n| folder.join(format!("{}-{}-{n}.cast", session.run, session.agent)));
        let free = paths.find(|path| !path.exists());
        free.map(|path| Self { path, redactor }).ok_or_else(|| io::ErrorKind::AlreadyExists.into())
    }

    /// Opens it for `command`.
    pub(crate) fn open(&self, launch: &Launch<AtTerminal>) -> io::Result<Box<dyn Recorder>> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let out = BufWriter::new(options.open(&self.path)?);
        let redactor = self.redactor.clone();
        let mask: Mask = Arc::new(move |text| redactor.redact(text));
        let writer = CastWriter::new(out, &header(launch), Some(mask))?;
        Ok(Box::new(Recording { writer: Some(writer) }))
    }
}

fn header(launch: &Launch<AtTerminal>) -> CastHeader {
    let words = std::iter::once(&launch.program).chain(&launch.args);
    let variable = |wanted: &str| {
        let found = launch.env.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.to_string_lossy().into_owned())
    };
    CastHeader {
        size: launch.stdio.size,
        timestamp: SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs()),
        command: Some(words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")),
        title: None,
        term: variable("TERM"),
        shell: variable("SHELL"),
    }
}

/// An open recording.
struct Recording {
    writer: Option<CastWriter<BufWriter<File>>>,
}

impl Recording {
    /// Does nothing once the recording is finished.
    fn with(
        &mut self,
        record: impl FnOnce(&mut CastWriter<BufWriter<File>>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), record)
    }
}

impl Recorder for Recording {
    fn output(&mut self, at: Duration, bytes: &[u8]) -> io::Result<()> {
        self.with(|writer| writer.output(at, bytes))
    }

    fn input_marker(&mut self, at: Duration, label: &str) -> io::Result<()> {
        if label == SECRET { Ok(()) } else { self.with(|writer| writer.marker(at, label)) }
    }

    fn resize(&mut self, at: Duration, size: WindowSize) -> io::Result<()> {
        self.with(|writer| writer.resize(at, size))
    }

    fn event(&mut self, at: Duration, noted: &TerminalNoted) -> io::Result<()> {
        // The end of the recording has the time of the exit.
        if matches!(noted.event, TerminalEvent::Exited { .. }) {
            return Ok(());
        }
        self.with(|writer| writer.marker(at, &noted.event.to_string()))
    }

    fn tick_due(&self) -> Option<Duration> {
        self.writer.as_ref().and_then(CastWriter::flush_due)
    }

    fn tick(&mut self, at: Duration) -> io::Result<()> {
        self.with(|writer| writer.tick(at))
    }

    fn finish(&mut self, at: Duration) -> io::Result<()> {
        self.with(|writer| writer.tick(at))?;
        self.writer.take().map_or(Ok(()), |writer| writer.finish().map(drop))
    }
}
