//! Model calls, retries and changes of the model, in words.

use provost_event::{
    ActorKey, ExternalCallEnd, ExternalModelAnswered, ExternalModelCalled, ExternalModelRefused, ModelCalled,
    ModelChange, ModelChanged, ModelEntry, OutageWaitChanged, ProviderAwaited, Purpose, Retry, RetryCause,
    grouped,
};

use super::saying::{Saying, Tag};
use super::words::{duration, one_line};

/// Columns of a short text in a line.
const WIDTH_MAX: usize = 100;
/// Failures of a model that are over sooner than this aren't shown in passing.
const OUTAGE_UNTOLD_MS: u64 = 10_000;

/// The entry in words.
pub(super) fn in_words(actor: ActorKey, entry: &ModelEntry) -> Saying {
    match entry {
        ModelEntry::Called(entry) => model_called(entry),
        ModelEntry::ExternalCalled(entry) => external_called(entry),
        ModelEntry::ExternalQueued(entry) => Saying::detail(format!(
            "{} call of {} waits for budget that other calls hold",
            whose(entry.of.purpose),
            entry.of.model
        )),
        ModelEntry::ExternalRefused(entry) => external_refused(entry),
        ModelEntry::ExternalAnswered(entry) => external_answered(entry),
        ModelEntry::Retried(entry) => retry(entry),
        ModelEntry::Changed(entry) => model_changed(actor, entry),
        ModelEntry::OutageWaitChanged(entry) => outage_wait_changed(entry),
        ModelEntry::ProviderAwaited(entry) => provider_awaited(entry),
    }
}

fn model_called(entry: &ModelCalled) -> Saying {
    let attempt = if entry.attempt > 1 { format!(", attempt {}", entry.attempt) } else { String::new() };
    let purpose = purpose_in_words(entry.purpose);
    Saying::detail(format!("turn {}, call {}{attempt}{purpose}", entry.turn, entry.call))
}

/// Behind a model call: what it is for, unless that is a turn.
pub(super) const fn purpose_in_words(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Turn => "",
        Purpose::Summary => ", for a summary",
        Purpose::FinalSummary => ", for a final summary",
        Purpose::Judge => ", to a judge",
        Purpose::External => ", by the program",
        Purpose::Hook => ", by a hook",
    }
}

/// Whose a call beside the conversation is.
const fn whose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Hook => "a hook's",
        _ => "the program's",
    }
}

fn external_called(entry: &ExternalModelCalled) -> Saying {
    let cap = grouped(entry.output_tokens_max.into());
    let caller = if entry.of.purpose == Purpose::Hook { "a hook" } else { "the program" };
    Saying::detail(format!("{caller} calls {} (call {}, at most {cap} tokens)", entry.of.model, entry.call))
}

fn external_refused(entry: &ExternalModelRefused) -> Saying {
    let why = match entry.exhausted {
        Some(exhausted) => exhausted.to_string(),
        None => "money is limited, and its price isn't known".to_owned(),
    };
    Saying::kept(Tag::Budget, format!("{} call of {}: {why}", whose(entry.of.purpose), entry.of.model))
}

fn external_answered(entry: &ExternalModelAnswered) -> Saying {
    let tokens = grouped(entry.usage.total());
    let cost = entry.cost.map(|cost| format!(", {cost}")).unwrap_or_default();
    let time = duration(entry.duration_ms);
    let called = format!("{} call {} of {}", whose(entry.purpose), entry.call, entry.model);
    match &entry.end {
        ExternalCallEnd::Answered => {
            let tools = entry.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>();
            let asks =
                if tools.is_empty() { String::new() } else { format!("; asks for {}", tools.join(", ")) };
            Saying::detail(format!("{called}: {tokens} tokens{cost}, {time}{asks}"))
        }
        ExternalCallEnd::Aborted => {
            Saying::detail(format!("{called}: given up by it, {tokens} tokens{cost}"))
        }
        ExternalCallEnd::Lost => Saying::detail(format!("{called}: lost to an interruption")),
        ExternalCallEnd::Failed { class, message } => {
            let status = entry.status.map(|status| format!(" ({status})")).unwrap_or_default();
            let request = entry.request_id.as_ref().map(|id| format!(" [request {id}]")).unwrap_or_default();
            let message = one_line(message, WIDTH_MAX);
            Saying::kept(Tag::Retry, format!("{called}: {}{status}: {message}{request}", class.words()))
        }
    }
}

fn retry(entry: &Retry) -> Saying {
    let cause = match &entry.cause {
        RetryCause::Failed { class, message, status, request_id } => {
            let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
            let request = request_id.as_ref().map(|id| format!(" [request {id}]")).unwrap_or_default();
            format!("{}{status}: {}{request}", class.words(), one_line(message, WIDTH_MAX))
        }
        RetryCause::EmptyAnswer => "the answer was empty".to_owned(),
        RetryCause::Interrupted => "interrupted before the answer was kept".to_owned(),
        RetryCause::Compacted => "the request was too long".to_owned(),
        RetryCause::UselessSummary { why } => format!("no summary to be had: {}", one_line(why, WIDTH_MAX)),
    };
    let then = match (&entry.cause, entry.delay_ms) {
        // How it is shortened follows in the next entry.
        (RetryCause::UselessSummary { .. }, _) => String::new(),
        (RetryCause::Compacted, _) => "; again when it is shorter".to_owned(),
        (RetryCause::Failed { .. }, 0) => String::new(),
        (_, 0) => "; again at once".to_owned(),
        (_, ms) if entry.suspended => format!("; suspended, next try in {}", duration(ms)),
        (_, ms) => format!("; again in {}", duration(ms)),
    };
    let text = format!("{cause}{then}");
    let is_brief = entry.outage_ms.saturating_add(entry.delay_ms) < OUTAGE_UNTOLD_MS;
    match entry.cause {
        // A failure too brief for a user to notice isn't worth a line.
        RetryCause::Failed { .. } if is_brief => Saying::detail(text),
        _ => Saying::kept(Tag::Retry, text),
    }
}

fn model_changed(actor: ActorKey, entry: &ModelChanged) -> Saying {
    let from = &entry.from;
    let to = &entry.to.name;
    let effort =
        entry.to.effort.map(|effort| format!(", effort {effort:?}").to_lowercase()).unwrap_or_default();
    let text = match &entry.why {
        ModelChange::Asked { by } => format!("{to} from here on{effort}, asked by {by}; before: {from}"),
        ModelChange::Fallback { trouble, .. } => {
            format!("{to} stands in for {from}: {}", one_line(&trouble.message, WIDTH_MAX))
        }
        ModelChange::Returned => format!("{to} is tried again, before {from}"),
    };
    match (actor, &entry.why) {
        (ActorKey::Session(_), ModelChange::Fallback { .. }) | (ActorKey::Run(_), _) => {
            Saying::kept(Tag::Retry, text)
        }
        (ActorKey::Session(_), _) => Saying::detail(text),
    }
}

fn outage_wait_changed(entry: &OutageWaitChanged) -> Saying {
    Saying::detail(match entry.outage_max_ms {
        0 => "outages aren't waited out from here on".to_owned(),
        ms => format!("outages are waited out for {}", duration(ms)),
    })
}

fn provider_awaited(entry: &ProviderAwaited) -> Saying {
    let state = if entry.suspended { "suspended: " } else { "waits: " };
    let text = format!("{state}{}", one_line(&entry.trouble.to_string(), WIDTH_MAX));
    Saying::detail(text)
}
