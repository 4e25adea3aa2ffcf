//! The supervisor of one service, which an agent's tool starts. No user calls it.

use std::ffi::OsString;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use anyhow::Context as _;
use provost_harness::{Sandbox, ServiceRecord, Supervision, SystemClock, report_service, supervise_service};
use provost_runtime::StateDir;
use tokio_util::sync::CancellationToken;

use crate::cli::SuperviseArgs;
use crate::exit::Exit;
use crate::signals::Signals;
use crate::wiring::variables;

pub(super) async fn supervise(args: SuperviseArgs) -> anyhow::Result<Exit> {
    // Nobody reads what it says.
    let place =
        StateDir::of_service(&args.record, |_| {}).context("a record is in a folder of a state folder")?;
    place.keep_ledger();
    let sandbox = place.sandbox(variables());
    let ended = until_end(&args.record, &sandbox).await?;
    // Removes the folder of its box, and covers.
    drop(sandbox);
    // Lists of services read from the record how it ended, also where the log can't be written.
    let backend = place.open().await?;
    report_service(&*backend, &ended).await?;
    Ok(Exit::Done)
}

async fn until_end(record: &Path, sandbox: &dyn Sandbox) -> anyhow::Result<ServiceRecord> {
    let mut signals = Signals::listen().context("can't listen for SIGTERM")?;
    let stop = CancellationToken::new();
    let supervision = Supervision {
        env: environment(),
        clock: Arc::new(SystemClock),
        sandbox,
        stop: &stop,
        started: Box::new(|| {
            // The process that waits for this line may have been killed.
            let _ = crate::output::write(b"started\n");
        }),
    };
    let mut work = pin!(supervise_service(record, supervision));
    loop {
        tokio::select! {
            biased;
            ended = &mut work => return Ok(ended?),
            _ = signals.next() => stop.cancel(),
        }
    }
}

/// This process's environment is that of the service, with the values that were hidden at the start.
fn environment() -> Vec<(OsString, OsString)> {
    let read = variables();
    let value = |name: &OsString, now: OsString| match name.to_str().and_then(|name| read.get(name)) {
        Some(value) if *value != now.to_string_lossy() => value.into(),
        Some(_) | None => now,
    };
    std::env::vars_os().map(|(name, now)| (name.clone(), value(&name, now))).collect()
}
