//! What the specs of all tools have in common.

use std::time::Duration;

use provost_event::{Access, ToolSpec};
use schemars::JsonSchema;

use crate::arguments::schema_of;

/// Bytes of a tool's output that the model gets to see; the same for all tools of this crate.
pub const OUTPUT_BYTES_MAX: usize = 32 * 1024;

/// Bytes that a tool which can be asked to go on writes at most: less than [`OUTPUT_BYTES_MAX`], so that its
/// middle is never cut out and its last line is seen.
pub(crate) const PAGE_BYTES_MAX: usize = OUTPUT_BYTES_MAX - 2 * 1024;

/// How long a call on files may take.
pub(crate) const FILE_TIMEOUT: Duration = Duration::from_secs(30);

/// What differs from tool to tool, beside its arguments.
pub(crate) struct About {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) access: Access,
    pub(crate) idempotent: bool,
    pub(crate) timeout: Duration,
}

impl About {
    /// The spec of a tool with arguments of type `A`.
    pub(crate) fn spec<A: JsonSchema>(self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            input_schema: schema_of::<A>(),
            access: self.access,
            idempotent: self.idempotent,
            timeout_ms: u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
            output_bytes_max: OUTPUT_BYTES_MAX,
        }
    }
}

/// The access of a tool that changes what its `path` argument names.
pub(crate) fn writes_path() -> Access {
    Access::Writes { path_field: "path".to_owned() }
}
