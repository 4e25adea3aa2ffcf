//! (d) How soon after the start of `provost run` the first request is out.

use std::io::Read as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::table::{self, Target};
use crate::{Options, agent};

/// Milliseconds until the first request.
const TARGET_MS: f64 = 30.0;
/// The deadline.
const DEADLINE: Duration = Duration::from_secs(20);

/// Measures and prints.
pub(crate) fn report(options: &Options) -> anyhow::Result<()> {
    table::head("The first request after process start");
    let Some(program) = options.provost().filter(|program| program.is_file()) else {
        println!("| skipped: no `provost` binary; build it, or name it with --provost | | | | | |");
        return Ok(());
    };
    let (port, requests) = listen()?;
    let runs = options.sized(20, 100);
    let size = format!("{runs} starts");
    let http = format!("http://127.0.0.1:{port}");
    let home = tempfile::tempdir_in(options.dir())?;
    first_bytes(&program, home.path(), &http, &requests)?;
    let print = |what: &str, url: &str, home: Option<&Path>, target| -> anyhow::Result<()> {
        let once = |_| {
            let new = tempfile::tempdir_in(options.dir())?;
            first_bytes(&program, home.unwrap_or(new.path()), url, &requests)
        };
        let times = (0..runs).map(once).collect::<anyhow::Result<Vec<_>>>()?;
        table::row(what, &size, "ms", &times, target);
        Ok(())
    };
    let target = Target::AtMost(TARGET_MS);
    print("request, where there is a store", &http, Some(home.path()), target)?;
    print("request, where a store is made first", &http, None, target)?;
    // A provider's address adds the reading of the platform's certificates. No server answers the TLS hello.
    let https = format!("https://127.0.0.1:{port}");
    print("TLS hello, where there is a store", &https, Some(home.path()), target)
}

/// Milliseconds from before the process is made until its first bytes are here. The process ends with that.
fn first_bytes(program: &Path, home: &Path, url: &str, requests: &Receiver<Instant>) -> anyhow::Result<f64> {
    let workspace = home.join("workspace");
    std::fs::create_dir_all(&workspace)?;
    let mut command = Command::new(program);
    command
        .args(["run", agent::GOAL, "--model", agent::MODEL])
        .current_dir(workspace)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .env("ANTHROPIC_API_KEY", "bench")
        .env("ANTHROPIC_BASE_URL", url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let started = Instant::now();
    let mut child = command.spawn().context("starting provost")?;
    let first = requests.recv_timeout(DEADLINE);
    child.kill().and_then(|()| child.wait())?;
    let first = first.context("nothing came; try `provost run` by hand")?;
    Ok(first.duration_since(started).as_secs_f64() * 1e3)
}

/// Reports when each connection's first bytes came; answers none, so that no client retries.
fn listen() -> anyhow::Result<(u16, Receiver<Instant>)> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut byte, mut held) = ([0], Vec::new());
        for mut stream in listener.incoming().flatten() {
            // A connection that ends without a byte doesn't count.
            if matches!(stream.read(&mut byte), Ok(1)) && sender.send(Instant::now()).is_err() {
                return;
            }
            held.push(stream);
        }
    });
    Ok((port, requests))
}
