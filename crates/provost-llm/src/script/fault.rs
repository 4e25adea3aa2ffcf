//! Parses the faults of a script.

use provost_event::{Certainty, ErrorClass, ModelFailure, StopReason, Usage};
use serde_saphyr::Spanned;

use super::complaint::Complaint;
use super::expect::Expect;
use super::format::{RawEntry, RawFault, RawUsage};
use super::load::{Fault, Reply, ReplyDelays, checked_delay, expectations, pieces};

/// A fault; `entry` is the rest of its entry.
pub(super) fn fault(
    given: Spanned<RawFault>,
    entry: RawEntry,
    delays: ReplyDelays,
) -> Result<Fault, Complaint> {
    let at = given.referenced;
    let RawEntry { expect, fault: _, text, thinking, tools, usage, delay_ms, chunk_delay_ms, stop } = entry;
    let answers = text.is_some() || thinking.is_some() || tools.is_some() || stop.is_some();
    if answers || usage.is_some() || delay_ms.is_some() || chunk_delay_ms.is_some() {
        let remedy =
            "put the answer in an entry of its own behind it, and what belongs to the fault under `fault:`";
        return Err(Complaint::new(at, "an entry is either a fault or an answer", remedy));
    }
    let RawFault(fields) = given.value;
    let (class, status) = fields.class.failure();
    if class.is_none() && (fields.status.is_some() || fields.message.is_some() || fields.text.is_some()) {
        let remedy = "leave out `status`, `message` and `text`";
        return Err(Complaint::new(at, "an empty answer is no failure and says nothing", remedy));
    }
    if fields.status.is_some_and(|status| !(100..600).contains(&status)) {
        return Err(Complaint::new(at, "that isn't an HTTP status", "write one from 100 to 599"));
    }
    let usage = fields.usage.unwrap_or_default();
    let failure = class.map(|class| ModelFailure {
        class,
        status: fields.status.or(status),
        message: fields.message.unwrap_or_else(|| words(class)),
        request_id: fields.request_id,
        retry_after_ms: fields.retry_after_ms,
        hint: String::new(),
        usage: reported(usage),
    });
    let reply = Reply {
        line: at.line(),
        expect: Expect::default(),
        thinking: Vec::new(),
        text: pieces(fields.text),
        calls: Vec::new(),
        usage,
        delay_ms: fields.delay_ms.map_or(Ok(delays.delay_ms), |ms| checked_delay(ms, at))?,
        chunk_delay_ms: fields
            .chunk_delay_ms
            .map_or(Ok(delays.chunk_delay_ms), |ms| checked_delay(ms, at))?,
        stop: StopReason::EndTurn,
    };
    Ok(Fault { line: at.line(), expect: expectations(expect, at)?, reply, failure })
}

/// A failure's usage is what was reported until then, without estimates.
fn reported(usage: RawUsage) -> Usage {
    Usage {
        input_tokens: usage.input.unwrap_or(0),
        output_tokens: usage.output.unwrap_or(0),
        cache_read_tokens: usage.cache_read.unwrap_or(0),
        cache_write_tokens: usage.cache_write.unwrap_or(0),
        reasoning_tokens: 0,
        certainty: Certainty::Reported,
    }
}

fn words(class: ErrorClass) -> String {
    format!("{} (scripted)", class.words())
}
