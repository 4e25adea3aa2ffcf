//! Removes Provost's own keys from the output of hooks, checks and failed calls before it goes to the log, a model
//! or a screen, however a program got one. Tools' output is masked before it is cut (`tool.rs`).

use provost_engine::{SessionEvent, StopCheckResult, WorktreeResult};
use provost_event::HookReport;

use crate::Redactor;

/// `event` without keys in the output of programs.
pub(super) fn masked(mut event: SessionEvent, redactor: &Redactor) -> SessionEvent {
    let mask = |text: Option<&mut String>| text.into_iter().for_each(|text| redactor.mask_known(text));
    match &mut event {
        SessionEvent::StopChecked { result: StopCheckResult { reports, .. }, .. }
        | SessionEvent::HooksAnswered { reports, .. } => {
            reports.iter_mut().flat_map(HookReport::texts_mut).for_each(|text| mask(Some(text)));
        }
        SessionEvent::ModelFailed { failure, .. } => {
            redactor.mask_known(&mut failure.message);
            mask(failure.request_id.as_mut());
        }
        SessionEvent::WorktreeReady { result: WorktreeResult::Failed { message }, .. } => mask(Some(message)),
        _ => {}
    }
    event
}
