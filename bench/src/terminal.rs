//! (k) Programs at a terminal: how fast they are read, what they cost while they wait, and how soon a question is
//! detected.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use nix::pty::openpty;
use nix::time::{ClockId, clock_gettime};
use provost_event::{Exit, TerminalEvent, TerminalNoted, WindowSize};
use provost_process::{
    AtTerminal, Confinement, EventSubscription, Launch, PtyOptions, PtySupervisor, QuitPlan, Recorder,
    allowed_env,
};
use provost_terminal::{CastHeader, CastWriter, Detector, Profile};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::Options;
use crate::case::Case;
use crate::measure::{Start, memory_kib};
use crate::sample::{Sample, count, in_child, repeated};
use crate::table::{self, Target};

/// The target, as a part of a bare reader's rate.
const RATIO_TARGET: f64 = 0.5;
/// Percent of one core that idle terminals may take together.
const IDLE_PERCENT_TARGET: f64 = 1.0;
/// Microseconds that an event may come after a frame settles.
const LATE_US_TARGET: f64 = 50_000.0;

const MIB: usize = 1024 * 1024;
/// Bytes of the file that is written again and again.
const FILE_BYTES: usize = 4 * MIB;
/// Terminals whose idle cost is measured, and how long they are left alone before and meanwhile.
const TERMINALS: usize = 100;
const CALM: Duration = Duration::from_secs(8);
const WATCHED: Duration = Duration::from_secs(10);

/// What is measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Work {
    /// A program's output is read and discarded.
    Bare { mib: usize, what: Output },
    /// The same below a supervisor, with emulation and detection, and perhaps with a recording.
    Supervised { mib: usize, what: Output, is_recorded: bool },
    /// Shells at their prompts.
    Idle,
    /// This many questions.
    Delay { questions: usize },
}

/// What a program writes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Output {
    /// Lines of a build.
    Log,
    /// The same with colours.
    Colours,
}

/// Measures and prints.
pub(crate) fn report(options: &Options) -> anyhow::Result<()> {
    table::head("Programs at a terminal: emulation, detection, recording");
    let mib = options.sized(64, 1024);
    let size = format!("{mib} MiB");
    for (what, name) in [(Output::Log, "plain lines"), (Output::Colours, "coloured lines")] {
        let rates = |work: &Work| -> anyhow::Result<Vec<f64>> {
            let samples = repeated(&Case::Terminal(work.clone()), options.dir(), options.runs)?;
            Ok(samples.iter().map(|sample| sample.per_second() / count(MIB)).collect())
        };
        let row = |how: &str, values: &[f64]| {
            table::row(&format!("{name}, {how}"), &size, "MiB/s", values, Target::None)
        };
        let bare = row("bare reader", &rates(&Work::Bare { mib, what })?);
        row("supervised", &rates(&Work::Supervised { mib, what, is_recorded: false })?);
        let recorded =
            row("supervised and recorded", &rates(&Work::Supervised { mib, what, is_recorded: true })?);
        let ratio = [recorded / bare];
        table::row(
            &format!("{name}, recorded to bare"),
            &size,
            "times",
            &ratio,
            Target::AtLeast(RATIO_TARGET),
        );
    }
    idle(options)?;
    delay(options)
}

fn idle(options: &Options) -> anyhow::Result<()> {
    let size = format!("{TERMINALS} shells, {} s", WATCHED.as_secs());
    let sample = in_child(&Case::Terminal(Work::Idle), options.dir())?;
    let percent = [sample.cpu.as_secs_f64() / sample.wall.as_secs_f64() * 100.0];
    table::row(
        "CPU of idle terminals, all together",
        &size,
        "%",
        &percent,
        Target::AtMost(IDLE_PERCENT_TARGET),
    );
    let each = [f64::from(u32::try_from(sample.grown_kib)?) / count(TERMINALS)];
    table::row("memory of a terminal", &size, "KiB", &each, Target::None);
    Ok(())
}

fn delay(options: &Options) -> anyhow::Result<()> {
    let questions = options.sized(100, 1000);
    let sample = in_child(&Case::Terminal(Work::Delay { questions }), options.dir())?;
    // The first check is made when a first frame would have settled.
    let settle = Detector::new(Arc::new(generic()?), WindowSize::default()).next_sample().unwrap_or_default();
    let settle = settle.as_secs_f64() * 1e6;
    for (name, late) in ["p50", "p99"].into_iter().zip(sample.asked_us) {
        let late = [f64::from(u32::try_from(late)?)];
        let what = format!("question painted to event, {name}");
        table::row(
            &what,
            &format!("{questions} questions"),
            "µs",
            &late,
            Target::AtMost(settle + LATE_US_TARGET),
        );
    }
    table::row("… of which a frame settles", "", "µs", &[settle], Target::None);
    Ok(())
}

/// One run.
pub(crate) async fn case(work: &Work, dir: &Path) -> anyhow::Result<Sample> {
    match work {
        Work::Bare { mib, what } => bare(&writer(dir, *mib, *what)?),
        Work::Supervised { mib, what, is_recorded } => {
            supervised(&writer(dir, *mib, *what)?, is_recorded.then(|| dir.join("recording.cast"))).await
        }
        Work::Idle => idle_case(dir).await,
        Work::Delay { questions } => delay_case(dir, *questions).await,
    }
}

fn generic() -> anyhow::Result<Profile> {
    Profile::named("generic").context("no generic profile")
}

/// A script that writes this much.
fn writer(dir: &Path, mib: usize, what: Output) -> anyhow::Result<String> {
    let file = dir.join("written");
    let mut text = Vec::with_capacity(FILE_BYTES + 200);
    let mut number = 0_usize;
    while text.len() < FILE_BYTES {
        number += 1;
        let (name, version) = (number.wrapping_mul(2_654_435_761) % 100_000, number % 97);
        match what {
            Output::Log => writeln!(
                text,
                "   Compiling package-{name} v0.{version}.3 (/home/someone/source/{name}/lib)"
            )?,
            Output::Colours => writeln!(
                text,
                "\x1b[0m\x1b[1m\x1b[32m   Compiling\x1b[0m package-{name} \x1b[2mv0.{version}.3\x1b[0m (\x1b[34mlib\x1b[0m)"
            )?,
        }
    }
    std::fs::write(&file, text)?;
    let times = mib * MIB / FILE_BYTES;
    Ok(format!("i=0; while [ $i -lt {times} ]; do cat '{}'; i=$((i+1)); done", file.display()))
}

fn bare(script: &str) -> anyhow::Result<Sample> {
    let pty = openpty(None, None)?;
    let start = Start::now()?;
    let mut child = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::null())
        .stdout(pty.slave)
        .stderr(Stdio::null())
        .spawn()?;
    let (mut master, mut buffer, mut bytes) = (File::from(pty.master), vec![0; 64 * 1024], 0);
    // The end is an error on Linux.
    while let Ok(read @ 1..) = master.read(&mut buffer) {
        bytes += read;
    }
    let sample = start.sample(bytes)?;
    ensure!(child.wait()?.success(), "the writer failed");
    Ok(sample)
}

/// Counts what comes in, and may keep it.
struct Counting {
    bytes: Arc<AtomicUsize>,
    kept: Option<CastWriter<File>>,
}

impl Recorder for Counting {
    fn output(&mut self, at: Duration, bytes: &[u8]) -> io::Result<()> {
        self.bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        self.kept.as_mut().map_or(Ok(()), |kept| kept.output(at, bytes))
    }

    fn input_marker(&mut self, _at: Duration, _label: &str) -> io::Result<()> {
        Ok(())
    }

    fn resize(&mut self, _at: Duration, _size: WindowSize) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, _at: Duration, _noted: &TerminalNoted) -> io::Result<()> {
        Ok(())
    }

    fn tick_due(&self) -> Option<Duration> {
        self.kept.as_ref().and_then(CastWriter::flush_due)
    }

    fn tick(&mut self, at: Duration) -> io::Result<()> {
        self.kept.as_mut().map_or(Ok(()), |kept| kept.tick(at))
    }

    fn finish(&mut self, _at: Duration) -> io::Result<()> {
        self.kept.take().map_or(Ok(()), |kept| kept.finish().map(drop))
    }
}

fn command(program: &str, args: &[&str], dir: &Path) -> Launch<AtTerminal> {
    Launch {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        env: allowed_env(&[]),
        cwd: dir.to_owned(),
        stdio: AtTerminal { size: WindowSize::default() },
        confinement: Confinement::Strongest,
    }
}

async fn supervised(script: &str, recording: Option<PathBuf>) -> anyhow::Result<Sample> {
    let bytes = Arc::<AtomicUsize>::default();
    let kept = recording
        .map(|path| CastWriter::new(File::create(path)?, &CastHeader::default(), None))
        .transpose()?;
    let mut options = PtyOptions::new(Detector::of_terminal(Arc::new(generic()?)));
    options.hears_events = EventSubscription::Unwanted;
    options.recorder = Some(Box::new(Counting { bytes: Arc::clone(&bytes), kept }));
    let start = Start::now()?;
    let terminal = PtySupervisor::spawn(command("sh", &["-c", script], Path::new("/")), options).await?;
    let exit = terminal.gone().await;
    let sample = start.sample(bytes.load(Ordering::Relaxed))?;
    ensure!(exit == Exit::Code(0), "the writer failed: {exit}");
    Ok(sample)
}

async fn idle_case(dir: &Path) -> anyhow::Result<Sample> {
    let profile = Arc::new(generic()?);
    let before = memory_kib("VmRSS")?;
    let mut terminals = Vec::new();
    for _ in 0..TERMINALS {
        let shell = command("bash", &["--norc", "--noprofile", "-i"], dir);
        terminals.push(
            PtySupervisor::spawn(shell, PtyOptions::new(Detector::of_terminal(Arc::clone(&profile)))).await?,
        );
    }
    sleep(CALM).await;
    for terminal in &terminals {
        let view = terminal.view().await?;
        ensure!(view.rows.iter().any(|row| row.ends_with(['$', '#'])), "a shell has no prompt: {view:?}");
    }
    let grown = memory_kib("VmRSS")?.saturating_sub(before);
    let start = Start::now()?;
    sleep(WATCHED).await;
    let mut sample = start.sample(TERMINALS)?;
    sample.grown_kib = grown;
    Ok(sample)
}

/// Asks, after printing the time by the clock that all programs share.
const ASKER: &str = "import sys, time
told = open(sys.argv[1], 'w')
for number in range(int(sys.argv[2])):
    told.write('%d\\n' % time.clock_gettime_ns(time.CLOCK_MONOTONIC))
    told.flush()
    sys.stdout.write('Remove package %d? [y/N] ' % number)
    sys.stdout.flush()
    sys.stdin.readline()
    time.sleep(0.02)
";

async fn delay_case(dir: &Path, questions: usize) -> anyhow::Result<Sample> {
    let told = dir.join("told");
    let (file, times) = (told.display().to_string(), questions.to_string());
    let asker = command("python3", &["-c", ASKER, &file, &times], dir);
    let terminal =
        PtySupervisor::spawn(asker, PtyOptions::new(Detector::of_terminal(Arc::new(generic()?)))).await?;
    let start = Start::now()?;
    let mut events = terminal.events();
    let mut seen = Vec::new();
    while seen.len() < questions {
        let Some(detected) = events.next().await else { bail!("the program ended too early") };
        if let TerminalEvent::ApprovalRequest(_) | TerminalEvent::WaitingForInput { .. } =
            detected.noted.event
        {
            seen.push(Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?));
            terminal.send_input("y\r").await?;
        }
    }
    terminal.end(QuitPlan::default()).await;
    let asked = BufReader::new(File::open(told)?).lines();
    let mut late = Vec::new();
    for (seen, asked) in seen.into_iter().zip(asked) {
        late.push(seen.saturating_sub(Duration::from_nanos(asked?.parse()?)));
    }
    late.sort_unstable();
    let at = |hundredths: usize| late.get(late.len() * hundredths / 100).copied().unwrap_or_default();
    let mut sample = start.sample(questions)?;
    sample.asked_us = [u64::try_from(at(50).as_micros())?, u64::try_from(at(99).as_micros())?];
    Ok(sample)
}
