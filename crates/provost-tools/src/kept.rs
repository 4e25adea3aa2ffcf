//! Stored outputs of calls, of which the model was shown only part, and those of background jobs.

use provost_event::{BlobId, Seq};
use provost_harness::{BLOB_URI, BackendError, ToolContext};

use crate::BackgroundJobs;
use crate::failure::{Failure, chain};
use crate::jobs::session_of;

/// The stored output `name`: the number of the entry that began the call, the blob's own name, or a background job.
pub(crate) async fn output(
    name: &str,
    context: &ToolContext,
    jobs: &BackgroundJobs,
) -> Result<Vec<u8>, Failure> {
    if let Ok(session) = session_of(context) {
        let (jobs, job) = (jobs.clone(), name.to_owned());
        let log = tokio::task::spawn_blocking(move || jobs.whole_log(session, &job)).await;
        if let Ok(Some(log)) = log {
            return Ok(log);
        }
    }
    match context.cancel.run_until_cancelled(body(name, context)).await.ok_or(Failure::Cancelled)? {
        Ok(Some(body)) => Ok(body),
        Ok(None) => Err(Failure::Said(format!(
            "there is no kept output `{BLOB_URI}{name}`: use the name exactly as it was given"
        ))),
        Err(error) => Err(Failure::Said(format!("can't read `{BLOB_URI}{name}`: {}", chain(&error)))),
    }
}

async fn body(name: &str, context: &ToolContext) -> Result<Option<Vec<u8>>, BackendError> {
    let blob = match name.parse() {
        Ok(call) => context.log.whole_output(Seq(call)).await?,
        Err(_) => Some(BlobId(name.into())),
    };
    match blob {
        Some(blob) => context.blobs.get_blob(&blob).await,
        None => Ok(None),
    }
}
