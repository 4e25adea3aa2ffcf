//! Records as they are kept, a line of JSON each, for programs.

use std::io::Write as _;

use provost_event::Record;

use super::View;

pub(super) struct Json;

impl View for Json {
    fn record(&self, record: &Record) {
        if let Ok(mut line) = record.to_line() {
            line.push('\n');
            let mut out = std::io::stdout().lock();
            // Nobody reads it any more, then: the run is what matters.
            let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
        }
    }
}
