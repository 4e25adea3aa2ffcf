//! `cargo xtask kill-loop`: kills `provost run` with -9 at random moments, resumes it, and checks from outside
//! that nothing was lost or duplicated, and nothing done twice without a note in the log.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::log_check;
use xtask::shell::{built_provost, workspace};

/// Steps of the scripted agent, each with an effect that can be counted afterwards.
const STEPS: usize = 10;
/// Resumes of one run before the loop gives up on it.
const RESUMES_MAX: u32 = 20;

/// The loop's counts.
#[derive(Default)]
struct Tally {
    /// Runs that were killed before their first entry.
    too_early: u32,
    kills: u32,
    /// Calls that the log has as interrupted with unknown effect.
    unknown: usize,
    entries: usize,
    /// Lines that were shown before a kill and found again.
    shown: usize,
}

/// Kills `times` runs.
pub(crate) fn run(times: u32) -> Result<()> {
    let program = built_provost(&[])?;
    let folder = workspace().join("target").join("kill-loop");
    let seed = std::env::var("KILL_LOOP_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    let mut random = fastrand::Rng::with_seed(seed);
    let length = undisturbed(&Scene::new(&program, &folder.join("undisturbed"))?)?;
    let mut tally = Tally::default();
    for number in 0..times {
        let scene = Scene::new(&program, &folder.join(number.to_string()))?;
        one(&scene, length, &mut random, &mut tally).with_context(|| {
            format!("kill {number} of seed {seed}; what is left of it: {}", scene.folder.display())
        })?;
        fs::remove_dir_all(&scene.folder)?;
    }
    println!(
        "{times} runs killed {} times ({} before they had begun), seed {seed}: {} entries, 0 lost, 0 doubled; \
         {} lines shown before a kill, all found again; {} calls with unknown effect, all said so",
        tally.kills, tally.too_early, tally.entries, tally.shown, tally.unknown
    );
    Ok(())
}

/// A fresh workspace and state folder.
struct Scene {
    program: PathBuf,
    folder: PathBuf,
}

impl Scene {
    fn new(program: &Path, folder: &Path) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder.join("work"))?;
        fs::write(folder.join("work/agent.yaml"), script())?;
        fs::write(folder.join("work/provost.toml"), SETTINGS)?;
        let scene = Self { program: program.to_owned(), folder: folder.to_owned() };
        let trusted = scene.provost(&["trust", "--yes"]).output()?;
        ensure!(trusted.status.success(), "trust: {}", String::from_utf8_lossy(&trusted.stderr));
        Ok(scene)
    }

    fn provost(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(self.folder.join("work"));
        command.env("PROVOST_STATE_DIR", self.folder.join("state")).env("HOME", &self.folder);
        command.stdin(Stdio::null());
        command
    }

    fn is_completed(&self) -> Result<bool> {
        let output = self.provost(&["show", "last", "--json"]).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).contains("\"status\":\"completed\""))
    }

    fn effects(&self) -> String {
        fs::read_to_string(self.folder.join("work/effects.txt")).unwrap_or_default()
    }

    /// The entries of all logs, in the lines that `run --json` shows too.
    fn entries(&self) -> Result<Vec<String>> {
        let output = self.provost(&["logs", "last", "--json"]).output()?;
        ensure!(output.status.success(), "logs: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
    }
}

const SETTINGS: &str = "\
[agent]
model = \"script:agent.yaml\"

[[stop_hooks]]
name = \"effects\"
command = \"test -s effects.txt || exit 2\"
";

fn script() -> String {
    let mut text = "answers:\n".to_owned();
    for step in 0..STEPS {
        text.push_str(&format!(
            "  - text: step {step}\n    tools:\n      - list_dir: {{}}\n      - shell: {{ command: 'echo effect-{step} >> effects.txt; sleep 0.03' }}\n"
        ));
    }
    text.push_str("  - text: 'done. VERDICT: PASS'\n");
    text
}

fn undisturbed(scene: &Scene) -> Result<Duration> {
    let started = Instant::now();
    let output = scene.provost(&["run", "count", "--json"]).output()?;
    ensure!(output.status.success(), "undisturbed: {}", String::from_utf8_lossy(&output.stderr));
    let length = started.elapsed();
    check(scene, &[], &mut Tally::default())?;
    Ok(length)
}

fn one(scene: &Scene, length: Duration, random: &mut fastrand::Rng, tally: &mut Tally) -> Result<()> {
    let mut shown = killed(scene, &["run", "count", "--json"], length.mul_f64(random.f64()), tally)?;
    if random.u8(..) < 100 && !scene.is_completed()? {
        shown.extend(killed(
            scene,
            &["resume", "last", "--json"],
            length.mul_f64(random.f64() / 2.0),
            tally,
        )?);
    }
    for _ in 0..RESUMES_MAX {
        // The kill came after the end: a resume would begin another segment.
        if scene.is_completed()? {
            return check(scene, &shown, tally);
        }
        let output = scene.provost(&["resume", "last", "--json"]).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => return check(scene, &shown, tally),
            // The kill came before the run was created.
            Some(2) if shown.is_empty() && scene.effects().is_empty() => {
                tally.too_early += 1;
                return Ok(());
            }
            // A crash loop pauses; the next resume goes on.
            Some(4) => {}
            other => bail!("resume ended with {other:?}: {said}"),
        }
    }
    bail!("not done after {RESUMES_MAX} resumes")
}

/// Runs a command, kills it after `delay` or lets it end before, and returns the whole lines that it printed.
fn killed(scene: &Scene, args: &[&str], delay: Duration, tally: &mut Tally) -> Result<Vec<String>> {
    let mut child = scene.provost(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let stdout = child.stdout.take().context("a pipe")?;
    let reader = std::thread::spawn(move || {
        let mut reader = BufReader::new(stdout);
        let mut lines = Vec::new();
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            if let Some(whole) = line.strip_suffix('\n') {
                lines.push(whole.to_owned());
            }
            line.clear();
        }
        lines
    });
    std::thread::sleep(delay);
    child.kill()?;
    child.wait()?;
    tally.kills += 1;
    Ok(reader.join().unwrap_or_default())
}

fn check(scene: &Scene, shown: &[String], tally: &mut Tally) -> Result<()> {
    let lines = scene.entries()?;
    let logs = log_check::check(&lines)?;
    ensure!(logs.calls == STEPS * 2, "{} calls", logs.calls);
    let known = lines.iter().map(String::as_str).collect::<HashSet<_>>();
    for line in shown {
        ensure!(known.contains(line.as_str()), "was shown but isn't in the log: {line}");
    }
    check_effects(scene, logs.unknown)?;
    tally.unknown += logs.unknown;
    tally.entries += lines.len();
    tally.shown += shown.len();
    Ok(())
}

/// Each effect happened once; one that is unknown in the log may not have happened.
fn check_effects(scene: &Scene, unknown: usize) -> Result<()> {
    let effects = scene.effects();
    let mut missing = 0;
    for step in 0..STEPS {
        let times = effects.lines().filter(|line| *line == format!("effect-{step}")).count();
        ensure!(times <= 1, "effect-{step} happened {times} times:\n{effects}");
        missing += 1 - times;
    }
    ensure!(
        missing <= unknown,
        "{missing} effects are missing, {unknown} are said to be unknown:\n{effects}"
    );
    Ok(())
}
