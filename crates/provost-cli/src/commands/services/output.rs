//! The output of a service, to its end or as it comes.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use provost_harness::{ServiceRecord, ServiceState, Services};

use crate::commands::print;
use crate::exit::Exit;
use crate::render::safe;

/// Bytes read of a log before it is followed: all that is kept of it.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;
const READ_BYTES: u64 = 64 * 1024;
/// The interval at which a log is looked at.
const LOOK: Duration = Duration::from_millis(100);

pub(super) async fn print_output(
    services: &Services,
    service: ServiceRecord,
    follow: bool,
) -> anyhow::Result<Exit> {
    let unreadable = || format!("can't read {}", service.log.display());
    if !follow {
        let kept = services.output(&service, KEPT_BYTES_MAX).with_context(unreadable)?;
        print(&safe(&String::from_utf8_lossy(&kept.bytes)))?;
        return Ok(Exit::Done);
    }
    let mut tail = Tail::new(&service.log).with_context(unreadable)?;
    loop {
        // Before the log is read: what was written until then is printed.
        let is_running = service.state() == ServiceState::Running
            && services.get(&service.name).is_some_and(|now| now == service);
        let text = tail.next().with_context(unreadable)?;
        if !text.is_empty() {
            print(&safe(&text))?;
        } else if !is_running {
            return Ok(Exit::Done);
        } else {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// A log that grows, and is begun anew when it has reached its limit.
struct Tail<'a> {
    path: &'a Path,
    file: File,
    /// The beginning of a character that was cut.
    rest: Vec<u8>,
}

impl<'a> Tail<'a> {
    fn new(path: &'a Path) -> io::Result<Self> {
        Ok(Self { path, file: File::open(path)?, rest: Vec::new() })
    }

    /// What was written since the last call, or a part of it; empty if there is nothing new.
    fn next(&mut self) -> io::Result<String> {
        let mut bytes = std::mem::take(&mut self.rest);
        if (&self.file).take(READ_BYTES).read_to_end(&mut bytes)? == 0 {
            let newest = File::open(self.path)?;
            if is_another(&newest, &self.file)? {
                self.file = newest;
                (&self.file).take(READ_BYTES).read_to_end(&mut bytes)?;
            }
        }
        let whole = match std::str::from_utf8(&bytes) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => bytes.len(),
        };
        self.rest = bytes.split_off(whole);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(unix)]
fn is_another(one: &File, other: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    Ok(one.metadata()?.ino() != other.metadata()?.ino())
}

/// Only a file that was begun anew is shorter.
#[cfg(not(unix))]
fn is_another(one: &File, other: &File) -> io::Result<bool> {
    Ok(one.metadata()?.len() < other.metadata()?.len())
}
