//! A program in the box that looks from inside whether the box holds, before a program is trusted to it.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::steps::say;

/// How long connecting to this machine may take. It is refused at once where the network is another.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// Looks from inside the box. `port` is one of the host's loopback interface that must not be reached, 0 if it may be;
/// `secret` a file of Provost's that must be neither read nor written. The exit status; what doesn't hold is said.
pub(super) fn run(port: i32, secret: Option<&OsStr>) -> i32 {
    let holds =
        filtered().and_then(|()| unreached(port)).and_then(|()| unread(secret)).and_then(|()| works());
    match holds {
        Ok(()) => 0,
        Err(what) => {
            say(&what);
            1
        }
    }
}

/// The kernel's own account: no capabilities, no new rights, a filter of system calls.
fn filtered() -> Result<(), String> {
    let status = fs::read_to_string("/proc/self/status");
    let status = status.map_err(|error| format!("/proc can't be read in the box: {error}"))?;
    let has = |line: &str| status.lines().any(|found| found.split_whitespace().eq(line.split_whitespace()));
    for line in ["NoNewPrivs: 1", "Seccomp: 2", "CapEff: 0000000000000000"] {
        if !has(line) {
            return Err(format!("a program in the box isn't held: it lacks `{line}`"));
        }
    }
    Ok(())
}

fn unreached(port: i32) -> Result<(), String> {
    let Some(port) = u16::try_from(port).ok().filter(|port| *port != 0) else { return Ok(()) };
    let connected = TcpStream::connect_timeout(&([127, 0, 0, 1], port).into(), CONNECT_MAX);
    // What answers could be a program of the box on the same port of its own interface: the host's greets.
    let greeting = connected.and_then(|mut stream| {
        stream.set_read_timeout(Some(CONNECT_MAX))?;
        let mut byte = [0];
        stream.read_exact(&mut byte).map(|()| byte)
    });
    if greeting.is_ok_and(|byte| byte == *GREETING) {
        return Err("a program in the box reaches this machine's loopback interface".to_owned());
    }
    Ok(())
}

/// What the host says to what connects to the port that must not be reached.
pub(crate) const GREETING: &[u8; 1] = b"p";

fn unread(secret: Option<&OsStr>) -> Result<(), String> {
    let Some(secret) = secret.map(Path::new) else { return Err("the trial names no file".to_owned()) };
    if fs::read(secret).is_ok_and(|text| !text.is_empty()) {
        return Err("a program in the box reads Provost's own files".to_owned());
    }
    if OpenOptions::new().append(true).open(secret).is_ok() {
        return Err("a program in the box writes Provost's own files".to_owned());
    }
    Ok(())
}

/// Programs run in the box: a shell starts, and what it writes is there.
fn works() -> Result<(), String> {
    let file = std::env::temp_dir().join("canary");
    let wrote = || -> io::Result<bool> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "echo sings > \"$0\""]).arg(&file).stdin(Stdio::null());
        let ended = shell.status()?;
        let text = fs::read_to_string(&file)?;
        fs::remove_file(&file)?;
        Ok(ended.success() && text == "sings\n")
    };
    match wrote() {
        Ok(true) => Ok(()),
        Ok(false) => Err("a shell in the box doesn't run".to_owned()),
        Err(error) => Err(format!("programs don't run in the box: {error}")),
    }
}
