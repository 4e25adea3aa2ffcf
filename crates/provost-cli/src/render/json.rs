//! Records as they are kept, a line of JSON each, for programs.

use provost_event::{ActorKey, Record};

use super::{View, visible_json};
use crate::output;

pub(super) struct Json;

impl View for Json {
    fn record(&self, record: &Record) {
        if let Ok(line) = record.to_line() {
            let line = format!("{}\n", visible_json(&line));
            // A failed write doesn't stop the run, and its log has it all.
            if output::write(line.as_bytes()).is_err() {
                let run = match record.actor {
                    ActorKey::Run(run) => run,
                    ActorKey::Session(session) => session.run,
                };
                output::tell_of_loss(&format!("the run goes on; all of it: provost logs {run} --json"));
            }
        }
    }
}
