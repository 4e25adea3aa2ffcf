//! The common part of all tools' specs.

use std::time::Duration;

use provost_event::{Access, CallForm, Freeform, ToolSpec, ToolSubject};
use schemars::JsonSchema;

use crate::arguments::schema_of;
use crate::form::owned;

/// Bytes of a tool's output that the model gets; the same for all tools of this crate.
pub const OUTPUT_BYTES_MAX: usize = 32 * 1024;

/// Maximum bytes of a page of output, for tools that can continue: less than [`OUTPUT_BYTES_MAX`], so that the
/// middle is never cut out and the last line is visible.
pub(crate) const PAGE_BYTES_MAX: usize = OUTPUT_BYTES_MAX - 2 * 1024;

/// The time limit of a call on files.
pub(crate) const FILE_TIMEOUT: Duration = Duration::from_secs(30);

/// The parts of a spec that differ between tools, besides the arguments.
pub(crate) struct About {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) access: Access,
    pub(crate) subject: ToolSubject,
    /// Its names in the hook scripts of other agent programs.
    pub(crate) aliases: &'static [&'static str],
    /// Its calls in the forms of other programs.
    pub(crate) forms: Vec<CallForm>,
    /// The grammar of its one argument, if models may write that as it is.
    pub(crate) grammar: Option<&'static str>,
    /// The argument that represents a call, if it isn't that of the subject.
    pub(crate) summary_field: Option<&'static str>,
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
            subject: self.subject,
            aliases: owned(self.aliases),
            forms: self.forms,
            freeform: self.grammar.map(|grammar| Freeform { grammar: grammar.to_owned() }),
            summary_field: self.summary_field.map(str::to_owned),
            idempotent: self.idempotent,
            timeout_ms: u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
            output_bytes_max: OUTPUT_BYTES_MAX,
        }
    }
}
