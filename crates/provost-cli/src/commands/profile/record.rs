//! `provost profile record`: a program at this terminal, recorded for a profile.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use provost_config::{DetachKey, Profiles, Request, Scope, load};
use provost_event::{Exit as ProgramExit, TerminalNoted, WindowSize};
use provost_harness::{Redactor, without_keys};
use provost_process::{
    AtTerminal, Confinement, EventSubscription, KernelSample, Launch, Painted, PtyOptions, PtySupervisor,
    QuitPlan, Recorder, WatcherKind,
};
use provost_runtime::{all_secrets, available_tools};
use provost_terminal::{CastHeader, CastWriter, Detector, Mask, Profile, Recording, Typed as TypedInput};

use super::mark;
use crate::attached::{LocalInput, LocalTerminal, Typed, must_be_terminal, read, size};
use crate::cli::ProfileRecordArgs;
use crate::commands::{block_on, current_dir, in_shell_words, shown};
use crate::exit::{Exit, Refusal};
use crate::output::tell;
use crate::wiring::variables;

/// How often the kernel is asked about the terminal and its processes.
const SAMPLES_EVERY: Duration = Duration::from_millis(100);
/// Recordings of one program in a folder.
const NUMBER_MAX: u32 = 10_000;
const BELL: &[u8] = b"\x07";
const RETURN: u8 = b'\r';

/// The bytes of a cast that is being written.
type Writer = CastWriter<BufWriter<File>>;

pub(super) fn record(args: ProfileRecordArgs, profiles: &Profiles) -> anyhow::Result<Exit> {
    must_be_terminal("provost profile record", "it records a program that you use here")?;
    std::fs::create_dir_all(&args.folder).with_context(|| format!("can't make {}", args.folder.display()))?;
    let base = base(&args)?;
    let (program, rest) = args.command.split_first().context("there is no program to run")?;
    let profile = Arc::new(profiles.for_command(program, rest));
    let key = args.mark_key;
    tell(&format!("recording {}; {key} marks a moment to be asked about", shown(&base)));
    let recorded = Arc::new(Mutex::new(None));
    let session =
        Session { command: args.command.clone(), base: base.clone(), key, profile: profile.clone() };
    let result = recorded.clone();
    block_on(async move {
        *locked(&result) = Some(session.work().await?);
        Ok(Exit::Done)
    })?;
    let Some((recording, marks)) = locked(&recorded).take() else { return Ok(Exit::Failed) };
    recording.write(&base)?;
    tell(&format!("recorded {}", shown(&base)));
    if args.no_marks {
        tell(&format!("provost profile mark {} asks what it shows", shown(&base)));
        return Ok(Exit::Done);
    }
    mark::ask(&base, recording, &marks, profile)
}

/// The folder and name of the recording.
fn base(args: &ProfileRecordArgs) -> anyhow::Result<PathBuf> {
    let is_free = |base: &PathBuf| !with(base, "raw.jsonl").exists() && !with(base, "cast").exists();
    if let Some(name) = &args.name {
        let base = args.folder.join(name);
        if is_free(&base) {
            return Ok(base);
        }
        let what = format!("there is a recording {} already", base.display());
        return Err(Refusal::new(what, "give it another --name").into());
    }
    let program = args.command.first().map(Path::new).and_then(Path::file_stem);
    let program = program.map_or_else(|| "program".to_owned(), |name| name.to_string_lossy().into_owned());
    let mut names = (1..NUMBER_MAX).map(|number| args.folder.join(format!("{program}-{number}")));
    names.find(is_free).context("the folder has too many recordings of this program")
}

fn with(base: &Path, ending: &str) -> PathBuf {
    let mut path = base.as_os_str().to_owned();
    path.push(".");
    path.push(ending);
    PathBuf::from(path)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program at this terminal.
struct Session {
    command: Vec<String>,
    base: PathBuf,
    key: DetachKey,
    profile: Arc<Profile>,
}

/// What is recorded besides the output.
struct Recorded {
    began: Instant,
    writer: Arc<Mutex<Option<Writer>>>,
    samples: Vec<(Duration, KernelSample)>,
    marks: Vec<Duration>,
}

impl Session {
    /// Runs it to its end. Returns what was recorded, without secrets, and the marked times.
    async fn work(self) -> anyhow::Result<(Recording, Vec<Duration>)> {
        let cast = with(&self.base, "cast");
        let redactor = Arc::new(redactor()?);
        let writer = Arc::new(Mutex::new(Some(self.writer(&cast, &redactor)?)));
        let mut options = PtyOptions::new(Detector::of_terminal(self.profile.clone()));
        options.hears_events = EventSubscription::Unwanted;
        options.recorder = Some(Box::new(CastRecorder(writer.clone())));
        options.exposed = Some(Box::new({
            let redactor = redactor.clone();
            move |secret| redactor.learn(secret)
        }));
        let pty = PtySupervisor::spawn(self.launch()?, options).await?;
        let recorded = Recorded { began: Instant::now(), writer, samples: Vec::new(), marks: Vec::new() };
        let (exit, recorded) = self.attend(&pty, recorded).await?;
        let ended = recorded.began.elapsed();
        pty.end(QuitPlan::default()).await;
        // The recorder has finished it.
        drop(locked(&recorded.writer).take());
        let file =
            BufReader::new(File::open(&cast).with_context(|| format!("can't read {}", cast.display()))?);
        let argv = without_keys(&self.command);
        let argv = argv.iter().map(|word| redactor.redact(word).into_owned()).collect();
        let recording = Recording::of_cast(file, argv, recorded.samples, (ended, exit))?;
        Ok((recording, recorded.marks))
    }

    fn writer(&self, cast: &Path, redactor: &Arc<Redactor>) -> anyhow::Result<Writer> {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(cast).with_context(|| format!("can't write {}", cast.display()))?;
        let header = CastHeader {
            size: size().unwrap_or_default(),
            command: Some(in_shell_words(&without_keys(&self.command))),
            term: variables().get("TERM").cloned(),
            ..CastHeader::default()
        };
        let redactor = redactor.clone();
        let mask: Mask = Arc::new(move |text| redactor.redact(text));
        Ok(CastWriter::new(BufWriter::new(file), &header, Some(mask))?)
    }

    /// It gets the whole environment: it isn't an agent, but the user's own program.
    fn launch(&self) -> anyhow::Result<Launch<AtTerminal>> {
        let (program, args) = self.command.split_first().context("there is no program to run")?;
        Ok(Launch {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
            env: variables().iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: current_dir()?,
            stdio: AtTerminal { size: size().unwrap_or_default() },
            confinement: Confinement::Guard,
        })
    }

    async fn attend(
        &self,
        pty: &PtySupervisor,
        mut recorded: Recorded,
    ) -> anyhow::Result<(ProgramExit, Recorded)> {
        let mut terminal = LocalTerminal::enter().await.context("can't use this terminal")?;
        let mut watcher = pty.watch(WatcherKind::Copy).await?;
        let mut samples = tokio::time::interval(SAMPLES_EVERY);
        loop {
            tokio::select! {
                biased;
                painted = watcher.next() => match painted {
                    Some(Painted::Snapshot { bytes, .. } | Painted::Output(bytes)) => terminal.show(&bytes).await?,
                    None => break,
                },
                input = terminal.next() => match input {
                    LocalInput::Typed(typed) => self.typed(pty, &typed, &mut recorded, &mut terminal).await?,
                    LocalInput::Resized(size) => _ = pty.resize(size).await,
                    LocalInput::Closed => break,
                },
                _ = samples.tick() => recorded.sample(pty).await,
                _ = pty.wait(), if pty.is_running() => {}
            }
            if !pty.is_running() {
                // What it has written last is shown.
                while let Ok(Some(Painted::Output(bytes))) =
                    tokio::time::timeout(SAMPLES_EVERY, watcher.next()).await
                {
                    terminal.show(&bytes).await?;
                }
                break;
            }
        }
        let exit = if pty.is_running() { pty.end(QuitPlan::default()).await } else { pty.wait().await };
        Ok((exit, recorded))
    }

    async fn typed(
        &self,
        pty: &PtySupervisor,
        typed: &[u8],
        recorded: &mut Recorded,
        terminal: &mut LocalTerminal,
    ) -> anyhow::Result<()> {
        let keys = match read(typed, self.key) {
            Typed::Keys(keys) => keys,
            Typed::Detach { before } => {
                recorded.marks.push(recorded.began.elapsed());
                terminal.show(BELL).await?;
                before
            }
        };
        if !keys.is_empty() {
            recorded.sample(pty).await;
            recorded.input(keys)?;
            // A program that has ended reads nothing.
            let _ = pty.input_raw(keys).await;
        }
        Ok(())
    }
}

impl Recorded {
    /// Notes what the kernel says, if that has changed.
    async fn sample(&mut self, pty: &PtySupervisor) {
        let Ok(sample) = pty.sample().await else { return };
        if self.samples.last().is_none_or(|(_, last)| *last != sample) {
            self.samples.push((self.began.elapsed(), sample));
        }
    }

    /// Of a password only the return.
    fn input(&mut self, keys: &[u8]) -> std::io::Result<()> {
        let known = self.samples.last().map(|(_, sample)| *sample).unwrap_or_default();
        let is_secret = known.echo == Some(false) && known.canonical == Some(true);
        let at = self.began.elapsed();
        match &mut *locked(&self.writer) {
            Some(writer) if !is_secret => writer.input(at, TypedInput::Shown(keys)),
            Some(writer) if keys.contains(&RETURN) => writer.input(at, TypedInput::Shown(&[RETURN])),
            Some(_) | None => Ok(()),
        }
    }
}

/// Knows the values of the variables that hold secrets, and what secrets look like.
fn redactor() -> anyhow::Result<Redactor> {
    let folder = current_dir()?;
    let variables = variables();
    let (loading, _) = load(&Request::new(Scope::User, &folder, &variables, available_tools()))?;
    Ok(Redactor::new(all_secrets(&loading.settled()?.settings, &variables)))
}

/// Writes the program's output.
struct CastRecorder(Arc<Mutex<Option<Writer>>>);

impl CastRecorder {
    fn with(&self, write: impl FnOnce(&mut Writer) -> std::io::Result<()>) -> std::io::Result<()> {
        locked(&self.0).as_mut().map_or(Ok(()), write)
    }
}

impl Recorder for CastRecorder {
    fn output(&mut self, at: Duration, bytes: &[u8]) -> std::io::Result<()> {
        self.with(|writer| writer.output(at, bytes))
    }

    fn input_marker(&mut self, _: Duration, _: &str) -> std::io::Result<()> {
        Ok(())
    }

    fn resize(&mut self, at: Duration, size: WindowSize) -> std::io::Result<()> {
        self.with(|writer| writer.resize(at, size))
    }

    fn event(&mut self, _: Duration, _: &TerminalNoted) -> std::io::Result<()> {
        Ok(())
    }

    fn tick_due(&self) -> Option<Duration> {
        locked(&self.0).as_ref().and_then(Writer::flush_due)
    }

    fn tick(&mut self, at: Duration) -> std::io::Result<()> {
        self.with(|writer| writer.tick(at))
    }

    fn finish(&mut self, at: Duration) -> std::io::Result<()> {
        self.with(|writer| writer.tick(at))?;
        let writer = locked(&self.0).take();
        writer.map_or(Ok(()), |writer| writer.finish().map(drop))
    }
}
