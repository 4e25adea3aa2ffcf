//! What this process has used so far, as the system counts it.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};

use crate::sample::Sample;

/// A moment to measure from.
pub(crate) struct Start {
    wall: Instant,
    cpu: Duration,
    system: Duration,
}

impl Start {
    /// From now on.
    pub(crate) fn now() -> anyhow::Result<Self> {
        Ok(Self { cpu: process_cpu()?, system: system_cpu()?, wall: Instant::now() })
    }

    /// What `count` pieces of work have taken since then.
    pub(crate) fn sample(&self, count: usize) -> anyhow::Result<Sample> {
        let wall = self.wall.elapsed();
        Ok(Sample {
            count,
            wall,
            cpu: process_cpu()?.saturating_sub(self.cpu),
            system: system_cpu()?.saturating_sub(self.system),
            peak_kib: memory_kib("VmHWM")?,
            ..Sample::default()
        })
    }
}

fn process_cpu() -> anyhow::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

fn system_cpu() -> anyhow::Result<Duration> {
    let microseconds = getrusage(UsageWho::RUSAGE_SELF)?.system_time().num_microseconds();
    Ok(Duration::from_micros(microseconds.unsigned_abs()))
}

/// A field of the process's status, such as `VmRSS`, in KiB.
pub(crate) fn memory_kib(field: &str) -> anyhow::Result<u64> {
    memory_kib_of(std::process::id(), field)
}

/// The same of another process.
pub(crate) fn memory_kib_of(process: u32, field: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.context("reading the process's status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let number = line.and_then(|rest| rest.split_whitespace().next()).context("no such field")?;
    Ok(number.parse()?)
}

/// User and system time of another process, in the system's ticks.
pub(crate) fn ticks_of(process: u32) -> anyhow::Result<Duration> {
    let stat =
        std::fs::read_to_string(format!("/proc/{process}/stat")).context("reading a process's times")?;
    let after = stat.rsplit_once(')').context("no name in it")?.1;
    let ticks = after.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    let ticks = ticks.sum::<Result<u64, _>>()?;
    let a_second = sysconf(SysconfVar::CLK_TCK)?.and_then(|ticks| u32::try_from(ticks).ok());
    Ok(Duration::from_secs(ticks) / a_second.filter(|ticks| *ticks > 0).context("no ticks")?)
}

/// Allows as many open files as the system lets us.
pub(crate) fn raise_open_files() -> anyhow::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).context("raising the limit of open files")
}
