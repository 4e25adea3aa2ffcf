//! Further observers of a run: the file and the collector of `[trace]`, and how they fared.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use provost_config::{Problem, Problems, Settled};
use provost_event::{RunId, Timestamp};
use provost_harness::{JsonlTrace, ObserverOptions, ObserverReport, ObserverState, Observers, Redactor};
use provost_telemetry::{Content, Telemetry, TelemetryOptions};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use crate::{RuntimeError, Variables, all_secrets, beside};

/// The observer that writes a file, as reports name it.
const FILE: &str = "trace.file";
/// The observer that sends to a collector.
const OTLP: &str = "trace.otlp";

/// The observers that the settings name. Makes no connection and writes nothing yet.
///
/// # Errors
/// [`Problems`] that name the setting.
pub fn observers(settled: &Settled, folder: &Path, variables: &Variables) -> Result<Observers, Problems> {
    let mut observers = Observers::new();
    let trace = &settled.settings.trace;
    if let Some(file) = &trace.file {
        let path = beside(&settled.source("trace.file"), folder).join(file);
        if path.is_dir() || !path.parent().is_some_and(Path::is_dir) {
            let what = format!("{} can't be a file: its folder must be there", path.display());
            return Err(problem(settled, "trace.file", what, "make the folder first"));
        }
        let redactor = Redactor::new(all_secrets(&settled.settings, variables));
        let trace = JsonlTrace::new(path, Arc::new(redactor));
        observers = observers.with_trace(FILE, ObserverOptions::default(), trace.sink());
    }
    if let Some(options) = telemetry(settled, variables)? {
        let telemetry = Telemetry::new(options)
            .map_err(|error| problem(settled, "trace.otlp_endpoint", error.to_string(), ""))?;
        observers = observers.with(OTLP, ObserverOptions::default(), move |run| telemetry.observer(run));
    }
    Ok(observers)
}

fn problem(settled: &Settled, key: &str, what: String, remedy: &str) -> Problems {
    let source = settled.source(key);
    Problems(vec![Problem { source, key: key.to_owned(), what, remedy: remedy.to_owned() }])
}

/// The options of the observer that sends to the collector; `None` without one.
///
/// # Errors
/// When its headers can't be had.
pub(crate) fn telemetry(
    settled: &Settled,
    variables: &Variables,
) -> Result<Option<TelemetryOptions>, Problems> {
    let trace = &settled.settings.trace;
    let Some(endpoint) = &trace.otlp_endpoint else { return Ok(None) };
    let mut options = TelemetryOptions::new(endpoint);
    options.content = if trace.otlp_content { Content::On } else { Content::Off };
    options.secrets = all_secrets(&settled.settings, variables);
    if let Some(name) = &trace.otlp_headers_env {
        let wrong =
            |what: String| problem(settled, "trace.otlp_headers_env", what, "e.g. x-api-key=…,tenant=…");
        let value = variables.get(name).filter(|value| !value.trim().is_empty());
        let value = value.ok_or_else(|| wrong(format!("{name} isn't set")))?;
        options.headers = headers(value).ok_or_else(|| wrong(format!("{name} holds no list of headers")))?;
    }
    Ok(Some(options))
}

/// Headers as OpenTelemetry's own variable has them: `name=value` with commas between, values with `%` escapes.
pub(crate) fn headers(text: &str) -> Option<Vec<(String, SecretString)>> {
    let pairs = text.split(',').filter(|pair| !pair.trim().is_empty());
    let header = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let value = percent_encoding::percent_decode_str(value.trim()).decode_utf8().ok()?;
        (!name.trim().is_empty()).then(|| (name.trim().to_owned(), SecretString::from(value.into_owned())))
    };
    pairs.map(header).collect()
}

/// The values of headers in `text`, as they are sent and as they are written there.
pub(crate) fn header_values(text: &str) -> Vec<String> {
    let written = text.split(',').filter_map(|pair| Some(pair.split_once('=')?.1.trim().to_owned()));
    let sent = headers(text).unwrap_or_default();
    written.chain(sent.iter().map(|(_, value)| value.expose_secret().to_owned())).collect()
}

/// Adds how observers fared in a segment of work on `run` to its file in `folder`, a line each.
///
/// # Errors
/// When it can't be written.
pub fn keep(
    folder: &Path,
    run: RunId,
    at: Timestamp,
    reports: &[ObserverReport],
) -> Result<(), RuntimeError> {
    if reports.is_empty() {
        return Ok(());
    }
    let path = folder.join(format!("{run}.jsonl"));
    let lines = reports.iter().map(|report| format!("{}\n", line(report, at))).collect::<String>();
    let write = || {
        std::fs::create_dir_all(folder)?;
        let mut options = std::fs::OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        // One write, so that lines of two processes don't mix.
        options.open(&path)?.write_all(lines.as_bytes())
    };
    write().map_err(|source| RuntimeError::Write { path, source })
}

fn line(report: &ObserverReport, at: Timestamp) -> serde_json::Value {
    let ObserverReport { name, state, delivered, lost, waiting, failed, panicked, hung } = report;
    json!({
        "observer": name,
        "at": at,
        "state": state_name(*state),
        "delivered": delivered,
        "lost": lost,
        "waiting": waiting,
        "failed": failed,
        "panicked": panicked,
        "hung": hung,
    })
}

const fn state_name(state: ObserverState) -> &'static str {
    match state {
        ObserverState::Waiting => "waiting",
        ObserverState::Working => "working",
        ObserverState::Finishing => "finishing",
        ObserverState::Finished => "finished",
        ObserverState::LeftBehind => "left_behind",
        ObserverState::Unable => "unable",
    }
}

/// Notes for the user on how observers fared: a line for each that missed something or failed.
pub fn complaints(reports: &[ObserverReport]) -> Vec<String> {
    let complaint = |report: &ObserverReport| {
        let counts = [
            (report.lost + report.waiting, "events lost"),
            (report.failed, "calls failed"),
            (report.panicked, "calls panicked"),
            (report.hung, "calls hung"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts = counts.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>();
        (!counts.is_empty()).then(|| format!("{} didn't see or do all: {}", report.name, counts.join(", ")))
    };
    reports.iter().filter_map(complaint).collect()
}
