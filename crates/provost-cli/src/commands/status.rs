//! The wait of a run for its provider, in words.

use provost_view::{ProviderWait, WaitLeft};

use crate::render::whole_seconds;

/// The status with its cause, and with the next try if there is one.
pub(super) fn in_words(wait: &ProviderWait) -> String {
    let word = wait.word();
    let cause = wait.awaited.trouble.words();
    match wait.next_try {
        None => format!("{word}: {}", wait.awaited.trouble.past()),
        Some(Some(WaitLeft::Of(ms))) => format!("{word}: {cause}, next try in {}", whole_seconds(ms)),
        Some(Some(WaitLeft::AtMost(ms))) => {
            format!("{word}: {cause}, next try in at most {}", whole_seconds(ms))
        }
        Some(Some(WaitLeft::Over)) => format!("{word}: {cause}, next try now"),
        Some(None) => format!("{word}: {cause}"),
    }
}

/// The status with its cause and the models that were asked before.
pub(super) fn in_full(wait: &ProviderWait) -> String {
    in_words(wait) + &wait.awaited.trouble.tried_in_words()
}

/// The model's failure in full, and what must change: nothing, while it is tried again.
pub(super) fn trouble(wait: &ProviderWait) -> String {
    let trouble = &wait.awaited.trouble;
    match wait.next_try {
        Some(_) => format!(
            "{}; it is tried again by itself. For another model: provost pause {run}, then provost resume {run} --model \
             NAME",
            trouble.what(),
            run = wait.awaited.session.run,
        ),
        None => trouble.to_string(),
    }
}
