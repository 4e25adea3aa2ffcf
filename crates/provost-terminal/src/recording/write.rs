//! Writing a recording's files.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use provost_event::Exit;
use serde::Serialize;

use super::read::{ABOUT, KERNEL, RAW, base, with};
use super::{Recording, RecordingError, RecordingStep};
use crate::{CastError, CastReader, Happened, KernelSample, Label};

#[derive(Serialize)]
struct RawLine {
    t: f64,
    d: &'static str,
    b64: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    src: Option<&'static str>,
}

#[derive(Serialize)]
struct KernelLine {
    t: f64,
    fg: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    echo: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icanon: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tty_read: Option<bool>,
    procs: Vec<ProcessLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    awaits: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
}

/// Stands for any process of its kind: which one it is doesn't matter to a detector.
#[derive(Serialize)]
struct ProcessLine {
    st: &'static str,
    wchan: &'static str,
}

#[derive(Serialize)]
struct About<'a> {
    name: &'a str,
    argv: &'a [String],
    rows: u16,
    cols: u16,
    t_exit: f64,
    exit_status: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<&'a [Label]>,
}

impl Recording {
    /// The recording of a session that was written as a cast, with the kernel's samples and how it ended.
    ///
    /// # Errors
    /// If the cast can't be read.
    pub fn of_cast(
        cast: impl BufRead,
        argv: Vec<String>,
        samples: Vec<(Duration, KernelSample)>,
        exit: (Duration, Exit),
    ) -> Result<Self, CastError> {
        let cast = CastReader::new(cast)?;
        let size = cast.header().size;
        let mut steps = Vec::new();
        for event in cast {
            let event = event?;
            let step = match event.what {
                Happened::Output(text) => RecordingStep::Output(text.into_bytes()),
                Happened::Input(text) => RecordingStep::Input(text.into_bytes()),
                Happened::Resized(size) => RecordingStep::Resize(size),
                Happened::Marker(_) => continue,
            };
            steps.push((event.at, step));
        }
        Ok(Self { name: String::new(), argv, size, steps, samples, exit, labels: None })
    }

    /// Writes its files. `path` is any of them, or their folder and name without an extension.
    ///
    /// # Errors
    /// If one can't be written.
    pub fn write(&self, path: &Path) -> Result<(), RecordingError> {
        let base = base(path);
        put(with(&base, RAW), &lines(self.steps.iter().map(|(at, step)| raw_line(*at, step))))?;
        let samples = self.samples.iter().map(|(at, sample)| kernel_line(*at, *sample));
        put(with(&base, KERNEL), &lines(samples))?;
        self.write_labels(&base)
    }

    /// Writes only the file with the program, its window and the labels.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_labels(&self, path: &Path) -> Result<(), RecordingError> {
        let base = base(path);
        let name = base.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (ended, exit) = self.exit;
        let about = About {
            name: &name,
            argv: &self.argv,
            rows: self.size.rows,
            cols: self.size.cols,
            t_exit: ended.as_secs_f64(),
            exit_status: match exit {
                Exit::Code(code) => code,
                Exit::Signal(signal) => -signal,
                Exit::Unseen => 0,
            },
            events: self.labels.as_deref(),
        };
        let text = serde_json::to_string_pretty(&about).unwrap_or_default();
        put(with(&base, ABOUT), &format!("{text}\n"))
    }
}

fn put(path: PathBuf, text: &str) -> Result<(), RecordingError> {
    std::fs::write(&path, text).map_err(|source| RecordingError::Unwritable { path, source })
}

/// Each as a line of JSON. Numbers and texts can always be written.
fn lines(all: impl Iterator<Item = impl Serialize>) -> String {
    all.map(|line| serde_json::to_string(&line).unwrap_or_default() + "\n").collect()
}

fn raw_line(at: Duration, step: &RecordingStep) -> RawLine {
    let t = at.as_secs_f64();
    let encoded = |bytes: &[u8]| STANDARD.encode(bytes);
    match step {
        RecordingStep::Output(bytes) => RawLine { t, d: "o", b64: encoded(bytes), src: None },
        RecordingStep::Input(bytes) => RawLine { t, d: "i", b64: encoded(bytes), src: Some("user") },
        RecordingStep::Resize(size) => {
            let size = format!("{}x{}", size.cols, size.rows);
            RawLine { t, d: "r", b64: encoded(size.as_bytes()), src: None }
        }
    }
}

fn kernel_line(at: Duration, sample: KernelSample) -> KernelLine {
    let polls = (sample.polls == Some(true)).then_some(ProcessLine { st: "S", wchan: "poll" });
    let is_busy = (sample.is_busy == Some(true)).then_some(ProcessLine { st: "R", wchan: "" });
    KernelLine {
        t: at.as_secs_f64(),
        fg: sample.foreground.unwrap_or_default(),
        echo: sample.echo,
        icanon: sample.canonical,
        tty_read: sample.reads_terminal,
        procs: polls.into_iter().chain(is_busy).collect(),
        tool: sample.tool_started.map(|started| started.as_secs_f64()),
        awaits: sample.awaits_answer,
        calls: sample.model_calls,
    }
}
