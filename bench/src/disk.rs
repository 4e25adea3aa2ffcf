//! What the disk itself can do, for comparison.

use std::fs::OpenOptions;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::measure::thread_cpu;
use crate::sample::count;

/// How long the disk is tried.
const TRIED_FOR: Duration = Duration::from_secs(2);
const PAGE: [u8; 4096] = [7; 4096];
/// The file is written over from its start when it is about this long: as long as SQLite's log may become.
const PAGES_MAX: usize = 1000;

/// Syncs one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Syncs {
    pub(crate) per_second: f64,
    /// CPU time of one sync, in microseconds, without what is written before it.
    pub(crate) cpu_us: f64,
}

/// Tries `fsync` in `dir`, as SQLite calls it, each time after `pages` pages of 4 KiB.
pub(crate) fn syncs(dir: &Path, pages: usize) -> anyhow::Result<Syncs> {
    let path = dir.join("syncs");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
    for _ in 0..PAGES_MAX {
        file.write_all(&PAGE)?;
    }
    file.sync_all()?;
    let (started, mut done, mut cpu) = (Instant::now(), 0, Duration::ZERO);
    while started.elapsed() < TRIED_FOR {
        if done % (PAGES_MAX / pages.max(1)).max(1) == 0 {
            file.rewind()?;
        }
        for _ in 0..pages {
            file.write_all(&PAGE)?;
        }
        let before = thread_cpu();
        file.sync_all()?;
        cpu += thread_cpu().saturating_sub(before);
        done += 1;
    }
    let per_second = count(done) / started.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    Ok(Syncs { per_second, cpu_us: cpu.as_secs_f64() * 1e6 / count(done) })
}
