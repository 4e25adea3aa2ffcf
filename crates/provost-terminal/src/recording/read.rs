//! Reading a recording's files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use provost_event::{Exit, WindowSize};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Recording, RecordingError, RecordingStep};
use crate::{KernelSample, Label};
use provost_process::is_shell;

pub(super) const RAW: &str = ".raw.jsonl";
pub(super) const KERNEL: &str = ".proc.jsonl";
pub(super) const ABOUT: &str = ".json";

#[derive(Deserialize)]
struct RawLine {
    t: f64,
    d: String,
    #[serde(default)]
    b64: String,
    #[serde(default)]
    src: Option<String>,
}

#[derive(Deserialize)]
struct KernelLine {
    t: f64,
    fg: Option<i64>,
    echo: Option<bool>,
    icanon: Option<bool>,
    tty_read: Option<bool>,
    #[serde(default)]
    procs: Vec<ProcessLine>,
    /// When the youngest tool was started, in seconds since the program's start.
    #[serde(default)]
    tool: Option<f64>,
    /// Whether the program awaits an answer over the network.
    #[serde(default)]
    awaits: Option<bool>,
    /// The requests to models that have begun.
    #[serde(default)]
    calls: Option<u64>,
}

#[derive(Deserialize)]
struct ProcessLine {
    #[serde(default)]
    comm: String,
    #[serde(default)]
    st: String,
    #[serde(default)]
    sys: String,
    #[serde(default)]
    wchan: String,
    #[serde(default)]
    tty_read: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct About {
    argv: Vec<String>,
    program: Option<String>,
    rows: Option<u16>,
    cols: Option<u16>,
    t_exit: Option<f64>,
    exit_status: Option<i32>,
    events: Option<Vec<Label>>,
}

impl Recording {
    /// Reads one recording. `path` is any of its files, or its folder and name without an extension.
    ///
    /// # Errors
    /// If a file can't be read or has another format. Only the raw bytes are required.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let base = base(path);
        let raw: Vec<RawLine> = lines(&with(&base, RAW))?;
        let kernel: Vec<KernelLine> =
            if with(&base, KERNEL).exists() { lines(&with(&base, KERNEL))? } else { Vec::new() };
        let about: About =
            if with(&base, ABOUT).exists() { whole(&with(&base, ABOUT))? } else { About::default() };
        let steps = raw.iter().enumerate().map(|(index, line)| step(&base, index, line));
        let steps: Vec<(Duration, RecordingStep)> =
            steps.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        let ended = about.t_exit.map(seconds).or_else(|| steps.last().map(|(at, _)| *at)).unwrap_or_default();
        let default = WindowSize::default();
        Ok(Self {
            name: base.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            argv: if about.argv.is_empty() { about.program.into_iter().collect() } else { about.argv },
            size: WindowSize::new(about.rows.unwrap_or(default.rows), about.cols.unwrap_or(default.cols)),
            steps,
            samples: kernel.iter().map(|line| (seconds(line.t), sample(line))).collect(),
            exit: (ended, exit(about.exit_status.unwrap_or(0))),
            labels: about.events,
        })
    }

    /// Reads all recordings of a folder, by name.
    ///
    /// # Errors
    /// If the folder or one of them can't be read.
    pub fn read_folder(folder: &Path) -> Result<Vec<Self>, RecordingError> {
        let unreadable = |source| RecordingError::Unreadable { path: folder.to_owned(), source };
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.to_string_lossy().ends_with(RAW) {
                paths.push(path);
            }
        }
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }
}

pub(super) fn base(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    let ending = [RAW, KERNEL, ".cast", ABOUT].into_iter().find(|ending| text.ends_with(ending));
    ending.and_then(|ending| text.strip_suffix(ending)).map_or_else(|| path.to_owned(), PathBuf::from)
}

pub(super) fn with(base: &Path, ending: &str) -> PathBuf {
    let mut path = base.as_os_str().to_owned();
    path.push(ending);
    PathBuf::from(path)
}

fn text(path: &Path) -> Result<String, RecordingError> {
    std::fs::read_to_string(path)
        .map_err(|source| RecordingError::Unreadable { path: path.to_owned(), source })
}

fn whole<T: DeserializeOwned>(path: &Path) -> Result<T, RecordingError> {
    serde_json::from_str(&text(path)?).map_err(|error| malformed(path, 0, &error.to_string()))
}

fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, RecordingError> {
    let text = text(path)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = lines.map(|(index, line)| {
        serde_json::from_str(line).map_err(|error| malformed(path, index + 1, &error.to_string()))
    });
    read.collect()
}

fn malformed(path: &Path, line: usize, message: &str) -> RecordingError {
    RecordingError::Malformed { path: path.to_owned(), line, message: message.to_owned() }
}

fn step(
    base: &Path,
    index: usize,
    line: &RawLine,
) -> Result<Option<(Duration, RecordingStep)>, RecordingError> {
    let wrong = |message: String| malformed(&with(base, RAW), index + 1, &message);
    let bytes = STANDARD.decode(&line.b64).map_err(|error| wrong(error.to_string()))?;
    let step = match line.d.as_str() {
        "o" => RecordingStep::Output(bytes),
        "i" if line.src.as_deref() == Some("term") => return Ok(None),
        "i" => RecordingStep::Input(bytes),
        "r" => RecordingStep::Resize(size(&bytes).ok_or_else(|| wrong("a size is COLSxROWS".to_owned()))?),
        _ => return Ok(None),
    };
    Ok(Some((seconds(line.t), step)))
}

fn size(bytes: &[u8]) -> Option<WindowSize> {
    let (cols, rows) = std::str::from_utf8(bytes).ok()?.trim().split_once('x')?;
    Some(WindowSize::new(rows.parse().ok()?, cols.parse().ok()?))
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

const fn exit(status: i32) -> Exit {
    if status < 0 { Exit::Signal(-status) } else { Exit::Code(status) }
}

fn sample(line: &KernelLine) -> KernelSample {
    let modes = KernelSample {
        echo: line.echo,
        canonical: line.icanon,
        tool_started: line.tool.map(seconds),
        awaits_answer: line.awaits,
        model_calls: line.calls,
        ..KernelSample::default()
    };
    let Some(foreground) = line.fg.filter(|group| *group > 0) else {
        // There is no foreground group (yet, or any more): no process reads, and the listed processes are the
        // kernel's own.
        return KernelSample { reads_terminal: Some(false), polls: Some(false), ..modes };
    };
    let by_line = line.icanon == Some(true);
    let any = |is: fn(&ProcessLine) -> bool| Some(line.procs.iter().any(is));
    KernelSample {
        reads_terminal: Some(
            line.tty_read == Some(true) || line.procs.iter().any(|process| reads(process, by_line)),
        ),
        polls: any(|process| process.st == "S" && polls(process)),
        is_busy: any(|process| process.st == "R" || process.st == "D"),
        foreground: u32::try_from(foreground).ok(),
        ..modes
    }
}

fn reads(process: &ProcessLine, by_line: bool) -> bool {
    process.tty_read || (by_line && process.st == "S" && is_shell(&process.comm) && polls(process))
}

/// By the system call's number on x86-64 (poll, ppoll, select, pselect6, epoll_wait, epoll_pwait, epoll_pwait2,
/// futex), or the kernel function it sleeps in.
fn polls(process: &ProcessLine) -> bool {
    const CALLS: [&str; 8] = ["7", "271", "23", "270", "232", "281", "441", "202"];
    let sleeps_in = |place: &str| process.wchan.contains(place);
    CALLS.contains(&process.sys.as_str()) || ["poll", "select", "futex"].into_iter().any(sleeps_in)
}
