//! One cell of the matrix: a run that is killed at one point or two, resumed each time, and checked.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::CHILD;
use super::approver::Approver;
use super::fault::{Of, Point, Side};
use super::files::{Files, FinalState};
use super::scenario::{Answers, Scenario, waits_for_consent};

/// A run that reports no entry for this long hangs, unless it is suspended or has ended.
const SILENT_MAX: Duration = Duration::from_secs(20);
/// The interval at which its reports are checked.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// The interval at which a process is polled.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// The maximum number of processes for one run.
const PROCESSES_MAX: usize = 12;

/// The result of a run.
#[derive(Default)]
pub(super) struct Course {
    /// The report of each process that saw the run suspended or ended.
    pub(super) final_states: Vec<FinalState>,
    /// How often a process was killed.
    pub(super) kills: usize,
    /// Whether it was neither suspended for good nor ended.
    pub(super) hangs: bool,
}

/// Runs processes on the run in `files` until it is suspended for good or ended; each may be killed at its own one
/// of `points`.
pub(super) fn play(scenario: &Scenario, files: &Files, points: &[Option<Point>]) -> Result<Course> {
    let approver = match scenario.answers {
        Answers::None => None,
        Answers::AtOnce | Answers::AtRest => Some(Approver::new(files)?),
    };
    let at_once = approver.as_ref().filter(|_| scenario.answers == Answers::AtOnce);
    let mut points = points.iter().copied();
    let mut course = Course::default();
    for _ in 0..PROCESSES_MAX {
        files.forget_rest();
        let point = points.next().flatten();
        let mut process = Process { child: start(scenario, files.folder(), point)?, point, answered: 0 };
        let Some(status) = process.wait(at_once, &files.shown())? else { break };
        match (files.read_final_state()?, status.code()) {
            (Some(rest), Some(0)) => {
                let waits = waits_for_consent(&rest.outcome);
                course.final_states.push(FinalState { answers: process.answered, ..rest });
                match &approver {
                    Some(approver) if waits => answer_all(approver)?,
                    _ => return Ok(course),
                }
            }
            _ if was_killed(status) => {
                course.kills += 1;
                at_once.map_or(Ok(()), answer_all)?;
            }
            _ => bail!("a process ended with {status}; see {}", stderr(files.folder()).display()),
        }
    }
    course.hangs = true;
    Ok(course)
}

#[cfg(unix)]
fn was_killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    status.signal() == Some(9)
}

#[cfg(not(unix))]
fn was_killed(status: ExitStatus) -> bool {
    !status.success()
}

fn answer_all(approver: &Approver) -> Result<()> {
    while let Some(question) = approver.question()? {
        approver.answer(&question)?;
    }
    Ok(())
}

fn stderr(folder: &Path) -> std::path::PathBuf {
    folder.join("stderr.txt")
}

fn start(scenario: &Scenario, folder: &Path, point: Option<Point>) -> Result<Child> {
    let program = std::env::current_exe()?;
    let stderr = std::fs::OpenOptions::new().create(true).append(true).open(stderr(folder))?;
    let point = point.map_or_else(|| "nowhere".to_owned(), |point| point.to_string());
    let mut command = Command::new(&program);
    command.args([CHILD, scenario.name]).arg(folder).arg(point);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    command.spawn().with_context(|| format!("can't start {}", program.display()))
}

struct Process {
    child: Child,
    point: Option<Point>,
    /// Questions answered while it worked.
    answered: usize,
}

impl Process {
    /// Waits for its end, and answers questions meanwhile. `None` if it hangs; it is killed then.
    fn wait(&mut self, approver: Option<&Approver>, shown: &Path) -> Result<Option<ExitStatus>> {
        let (mut deadline, mut next_check) = (Instant::now() + SILENT_MAX, Instant::now());
        let mut bytes_before = 0;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            let now = Instant::now();
            if now >= next_check {
                next_check = now + CHECK_EVERY;
                let bytes = std::fs::metadata(shown).map_or(0, |metadata| metadata.len());
                if std::mem::replace(&mut bytes_before, bytes) != bytes {
                    deadline = now + SILENT_MAX;
                }
            }
            if now > deadline {
                self.child.kill()?;
                self.child.wait()?;
                return Ok(None);
            }
            if let Some(approver) = approver {
                self.answer(approver)?;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn answer(&mut self, approver: &Approver) -> Result<()> {
        let Some(question) = approver.question()? else { return Ok(()) };
        self.answered += 1;
        let here = |side| self.point == Some(Point { side, of: Of::Answer, number: self.answered });
        if here(Side::Before) {
            self.child.kill()?;
        }
        approver.answer(&question)?;
        if here(Side::After) {
            self.child.kill()?;
        }
        Ok(())
    }
}
