//! Tools whose effects can be counted afterwards, and at which the process may be killed.

use std::sync::Arc;

use async_trait::async_trait;
use provost_event::{Access, Json, ToolSpec, ToolSubject};
use provost_harness::{Tool, ToolContext, ToolOutput, ToolRegistry};
use provost_tools::{Shell, UpdatePlan, WriteFile};
use serde::Deserialize;

use super::fault::Fault;
use super::files::{Files, append};
use super::scenario::filler;

/// Adds a line to the file of effects: its own name and its key.
struct EffectLine {
    spec: ToolSpec,
    files: Files,
    fault: Arc<Fault>,
}

#[derive(Deserialize)]
struct Arguments {
    key: String,
    /// Bytes of output.
    #[serde(default)]
    bytes: usize,
}

/// `note`, which must not be repeated, `mark`, which may be, and some of the built-in tools.
pub(super) fn tool_registry(files: &Files, fault: &Arc<Fault>) -> ToolRegistry {
    let line = |name: &str, idempotent: bool| EffectLine {
        spec: ToolSpec {
            name: name.to_owned(),
            description: "Adds a line to the notes.".to_owned(),
            input_schema: Json::empty_object(),
            access: Access::Reads,
            subject: ToolSubject::Opaque,
            aliases: Vec::new(),
            forms: Vec::new(),
            freeform: None,
            summary_field: None,
            idempotent,
            timeout_ms: 60_000,
            output_bytes_max: 64 * 1_024,
        },
        files: files.clone(),
        fault: Arc::clone(fault),
    };
    let shell = Shell::new().with_program("/bin/sh");
    let own = ToolRegistry::new().with(line("note", false)).with(line("mark", true));
    own.with(shell).with(WriteFile::new()).with(UpdatePlan::new())
}

#[async_trait]
impl Tool for EffectLine {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Json, _context: &ToolContext) -> ToolOutput {
        let Ok(Arguments { key, bytes }) = input.read::<Arguments>() else {
            return ToolOutput::rejected("It needs a key.");
        };
        let line = format!("{} {key}", self.spec.name);
        match self.fault.effect(|| append(&self.files.effects(), &line)) {
            Ok(()) => ToolOutput::ok(format!("{line}: {}", filler(&key, bytes))),
            Err(error) => ToolOutput::error(error.to_string()),
        }
    }
}
