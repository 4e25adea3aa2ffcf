//! Programs at a terminal: no process of them is left, the log has one end for each start, and none has
//! done its work more often than it was started.

use provost_event::{Entry, TerminalEntry, TerminalEvent};

use super::super::evidence::Evidence;
use super::super::files::lines;
use super::Breaches;

/// The program's output for each finished task.
const NOTES: &str = "notes.txt";

pub(super) fn check(seen: &Evidence, found: &mut Breaches) {
    let mut starts = 0;
    for session in seen.sessions() {
        let mut runs = None;
        for (_, entry) in seen.session(session) {
            let Entry::Terminal(TerminalEntry::Noted(noted)) = entry else { continue };
            match &noted.event {
                TerminalEvent::Started { pid, .. } => {
                    starts += 1;
                    runs = Some(*pid);
                    if is_alive(*pid) {
                        found.wrong(format!("process {pid} is left running"));
                    }
                }
                TerminalEvent::Exited { .. } if runs.take().is_none() => {
                    found.doubled("the end of a program");
                }
                _ => {}
            }
        }
        if let Some(pid) = runs {
            found.lost(format!("the end of process {pid}"));
        }
    }
    if starts == 0 {
        return;
    }
    let done = lines(&seen.files.workspace().join(NOTES)).len();
    if done == 0 {
        found.lost("the program's work");
    }
    if done > starts {
        found.doubled(format!("{done} times the work of a program that was started {starts} times"));
    }
}

/// Whether a shell with this pid still exists.
fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.contains("(sh)") && !stat.contains(") Z"))
}
