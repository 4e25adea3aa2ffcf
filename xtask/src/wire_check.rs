//! `cargo xtask wire-check`: every kind of request against the providers' own types, and recorded answers parsed
//! again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use xtask::shell::{cargo, must, tests_are_built, workspace};

/// How long installing the SDKs may take.
const INSTALL_MAX: Duration = Duration::from_mins(5);
/// How long it may take as part of `ci`.
const INSTALL_UNASKED_MAX: Duration = Duration::from_secs(45);
const POLL: Duration = Duration::from_millis(50);

/// Validates the requests; with a folder of recordings it reads those too.
///
/// # Errors
/// When a request is malformed, a recording is parsed wrongly, or the SDKs can't be installed.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let recordings = match args {
        [] => None,
        ["--recordings", folder] => Some(Path::new(*folder)),
        other => bail!("wire-check takes `--recordings DIR` and nothing else, not `{}`", other.join(" ")),
    };
    let bench = Bench::installed(INSTALL_MAX)?;
    bench.validate()?;
    recordings.map_or(Ok(()), |folder| bench.replay(folder))
}

/// The same without recordings, if the SDKs are installed or can be installed soon; else says that it was skipped.
///
/// # Errors
/// When a request is malformed.
pub(crate) fn if_possible() -> Result<()> {
    match Bench::installed(INSTALL_UNASKED_MAX) {
        Ok(bench) => bench.validate(),
        Err(why) => {
            eprintln!("wire check skipped: {why:#}");
            Ok(())
        }
    }
}

/// The SDKs, in an environment of their own.
struct Bench {
    python: PathBuf,
    /// The folder for the requests to check.
    folder: PathBuf,
}

impl Bench {
    /// Installs missing packages in the versions that `requirements.txt` pins.
    fn installed(within: Duration) -> Result<Self> {
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from);
        let folder = target.join("wire-check");
        let venv = folder.join("venv");
        let python = if cfg!(windows) { venv.join("Scripts/python.exe") } else { venv.join("bin/python") };
        let wanted = std::fs::read_to_string(scripts().join("requirements.txt"))?;
        let mark = folder.join("installed.txt");
        if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) && python.exists() {
            return Ok(Self { python, folder });
        }
        std::fs::create_dir_all(&folder)?;
        let until = Instant::now() + within;
        let system = if cfg!(windows) { "python" } else { "python3" };
        finish(Command::new(system).args(["-m", "venv", "--clear"]).arg(&venv), until)
            .context("no environment for Python's packages can be made")?;
        let pip = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--timeout",
            "5",
            "--retries",
            "1",
        ];
        let requirements = scripts().join("requirements.txt");
        finish(Command::new(&python).args(pip).arg("--requirement").arg(requirements), until)
            .context("the SDKs can't be installed")?;
        std::fs::write(mark, wanted)?;
        Ok(Self { python, folder })
    }

    fn validate(&self) -> Result<()> {
        let bodies = self.folder.join("bodies.jsonl");
        must(
            test("wire_check::every_kind_of_request_is_made_for_every_wire")
                .env("PROVOST_WIRE_BODIES", &bodies),
        )?;
        must(self.script("validate.py").arg(bodies))
    }

    fn replay(&self, folder: &Path) -> Result<()> {
        let (recordings, readings) =
            (self.folder.join("recordings.jsonl"), self.folder.join("readings.jsonl"));
        must(self.script("replay.py").arg("prepare").arg(folder).arg(&recordings))?;
        let mut test = test("wire_check::recorded_answers_are_read");
        must(
            test.args(["--run-ignored", "only"])
                .env("PROVOST_WIRE_RECORDINGS", &recordings)
                .env("PROVOST_WIRE_READINGS", &readings),
        )?;
        must(self.script("replay.py").arg("compare").arg(recordings).arg(readings))
    }

    fn script(&self, name: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.arg("-B").arg(scripts().join(name));
        command
    }
}

fn scripts() -> PathBuf {
    workspace().join("xtask").join("wire_check")
}

/// One test of `provost-llm`.
fn test(name: &str) -> Command {
    let mut command = cargo();
    let scope = if tests_are_built() { &["--workspace"][..] } else { &["--package", "provost-llm"] };
    command.args(["nextest", "run", "--locked"]).args(scope).args([
        "--status-level",
        "fail",
        "--cargo-quiet",
    ]);
    let filter = format!("package(provost-llm) & test(={name})");
    command.args(["--final-status-level", "fail", "-E", &filter]);
    command
}

/// Runs `command` to its end, which must come before `until`.
fn finish(command: &mut Command, until: Instant) -> Result<()> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("can't start {shown}"))?;
    while Instant::now() < until {
        if let Some(status) = child.try_wait()? {
            return if status.success() { Ok(()) } else { bail!("{shown} ended with {status}") };
        }
        std::thread::sleep(POLL);
    }
    child.kill()?;
    child.wait()?;
    bail!("{shown} took too long")
}
