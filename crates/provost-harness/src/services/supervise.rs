//! The supervisor of one service.

use std::ffi::OsString;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use provost_process::{
    ChildSpec, Confinement, Ending, Finished, Launch, LogFile, MAYBE_LEFT, SpawnError, Stdio, Streams,
    run_logged,
};
use tokio_util::sync::CancellationToken;

use super::files::{ServiceFiles, read_record};
use super::record::own_stamp;
use super::{ServiceEnd, ServiceError, ServiceRecord, StoppedBy};
use crate::sandbox::sandbox_of;
use crate::{Clock, Sandbox, SandboxRequest};

/// The time between the request to end a service and the kill.
pub const SERVICE_GRACE: Duration = Duration::from_secs(5);

/// Maximum bytes of a service's log.
const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long a command is watched before it counts as started: one with a mistake in it ends at once.
const SETTLES: Duration = Duration::from_millis(300);

/// Why a service is ended that hasn't ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopOrder {
    Expired,
    Requested,
}

/// What a supervisor works with.
pub struct Supervision<'a> {
    /// The environment of the service.
    pub env: Vec<(OsString, OsString)>,
    /// Measures how long it may run.
    pub clock: Arc<dyn Clock>,
    /// Makes the box that it runs in, if its agent was confined.
    pub sandbox: &'a dyn Sandbox,
    /// Fires when it is to be ended.
    pub stop: &'a CancellationToken,
    /// Called once it runs, or has ended at once.
    pub started: Box<dyn FnOnce() + Send>,
}

/// Runs the service of the record at `path` until it ends, its time is over, or it is to be ended, and records each.
/// Returns the record of the ended service.
///
/// # Errors
/// When the record can't be read or written; then the service isn't started, or is killed.
///
/// # Cancellation
/// Dropping the future kills the service without a record of that.
pub async fn supervise_service(
    path: &Path,
    supervision: Supervision<'_>,
) -> Result<ServiceRecord, ServiceError> {
    let Supervision { env, clock, sandbox, stop, started } = supervision;
    let files = ServiceFiles::new(path.parent().unwrap_or(path).to_owned());
    let mut record = read_record(path)?;
    record.supervisor = Some(own_stamp().ok_or(ServiceError::Unsupported)?);
    files.write(&record)?;
    let cancel = CancellationToken::new();
    let log = LogFile { path: record.log.clone(), bytes_max: LOG_BYTES_MAX };
    let request =
        SandboxRequest { policy: &record.sandbox, session: record.session, workspace: &record.workspace };
    let sandbox = sandbox_of(sandbox, request);
    let spec = spec_of(&record, env, sandbox.confinement());
    let mut run = pin!(run_logged(spec, &log, &cancel));
    let at_once = tokio::select! {
        biased;
        ended = &mut run => Some(ended),
        () = tokio::time::sleep(SETTLES) => None,
    };
    if let Some(ended) = at_once {
        let record = finish(&files, record, &Observed { ended, order: None }, &*clock)?;
        started();
        return Ok(record);
    }
    started();
    let order = tokio::select! {
        biased;
        ended = &mut run => {
            return finish(&files, record, &Observed { ended, order: None }, &*clock);
        }
        () = clock.sleep(Duration::from_millis(record.keep_ms)) => StopOrder::Expired,
        () = stop.cancelled() => StopOrder::Requested,
    };
    cancel.cancel();
    let observed = Observed { ended: run.await, order: Some(order) };
    finish(&files, record, &observed, &*clock)
}

/// How a service ended, and why.
struct Observed {
    ended: Result<Finished, SpawnError>,
    /// Absent if it ended by itself.
    order: Option<StopOrder>,
}

fn finish(
    files: &ServiceFiles,
    mut record: ServiceRecord,
    observed: &Observed,
    clock: &dyn Clock,
) -> Result<ServiceRecord, ServiceError> {
    let by = observed.order.filter(|order| *order == StopOrder::Requested);
    let by = by.and_then(|_| files.stop_request(&record.name));
    let how = match (&observed.ended, observed.order, &by) {
        (Err(error), _, _) => format!("couldn't be started: {}", chain(error)),
        (Ok(_), Some(StopOrder::Expired), _) => {
            format!("has ended: its time of {} was over", in_words(record.keep_ms))
        }
        (Ok(_), Some(StopOrder::Requested), Some(StoppedBy::Agent)) => "was ended by the agent".to_owned(),
        (Ok(_), Some(StopOrder::Requested), Some(StoppedBy::Command(command))) => {
            format!("was ended by `{command}`")
        }
        (Ok(_), Some(StopOrder::Requested), None) => "was ended: its supervisor got SIGTERM".to_owned(),
        (Ok(finished), None, _) => by_itself(finished),
    };
    let may_be_left = observed.ended.as_ref().is_ok_and(|finished| !finished.is_all_ended);
    let left = if may_be_left { format!(" [{MAYBE_LEFT}]") } else { String::new() };
    record.end =
        Some(ServiceEnd { how: how + &left, at: clock.now(), by_agent: by == Some(StoppedBy::Agent) });
    files.write(&record)?;
    Ok(record)
}

fn by_itself(finished: &Finished) -> String {
    match finished.ending {
        Ending::Exited(status) => format!("has ended with exit status {status}"),
        Ending::Signalled(signal) => format!("was ended by signal {signal}"),
        Ending::Cancelled | Ending::TimedOut => "was ended".to_owned(),
    }
}

fn spec_of(record: &ServiceRecord, env: Vec<(OsString, OsString)>, confinement: Confinement) -> ChildSpec {
    ChildSpec {
        launch: Launch {
            program: record.shell.clone().into(),
            args: vec!["-c".into(), record.command.clone().into()],
            env,
            cwd: record.cwd.clone(),
            stdio: Stdio { input: Vec::new(), streams: Streams::Merged },
            confinement,
        },
        keep_bytes_max: 0,
        timeout: None,
        grace: SERVICE_GRACE,
        ends_within: None,
    }
}

/// A duration in its largest whole unit.
fn in_words(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{} s", ms / 1_000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(&format!(": {next}"));
        cause = next.source();
    }
    text
}
