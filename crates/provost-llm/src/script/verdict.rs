//! Parses a script's verdicts.

use provost_event::StopReason;
use serde::Serialize;
use serde_saphyr::{Location, Spanned};

use super::complaint::Complaint;
use super::format::{OneOrMany, RawEntry, RawSaid, RawVerdict};

/// The default confidence of a judge.
const CONFIDENCE: f64 = 1.0;

/// A verdict, in the format of a judge's answer.
#[derive(Serialize)]
struct Verdict {
    achieved: bool,
    confidence: f64,
    reasoning: String,
    suggestions: Vec<String>,
}

/// The entry in the format of an answer.
pub(super) fn entry(given: Spanned<RawVerdict>) -> Result<Spanned<RawEntry>, Complaint> {
    let Spanned { value: raw, referenced: at, defined } = given;
    let RawVerdict {
        expect,
        fault,
        text,
        thinking,
        achieved,
        confidence,
        reasoning,
        suggestions,
        usage,
        delay_ms,
        chunk_delay_ms,
        stop,
    } = raw;
    let verdict = verdict(RawSaid { achieved, confidence, reasoning, suggestions }, at)?;
    let text = match (text, verdict) {
        (Some(_), Some(_)) => {
            let remedy = "leave `text` out, or write the whole answer as `text`";
            return Err(Complaint::new(at, "an entry is either a text or a verdict", remedy));
        }
        (text, None) => text,
        (None, Some(verdict)) => Some(OneOrMany(vec![verdict])),
    };
    let is_refusal = stop.as_ref().is_some_and(|stop| stop.value == StopReason::Refusal);
    if fault.is_none() && text.is_none() && thinking.is_none() && !is_refusal {
        let remedy = "give it `achieved` and `reasoning`, or `text`, or write `fault: empty`";
        return Err(Complaint::new(at, "the judge says nothing", remedy));
    }
    let entry =
        RawEntry { expect, fault, text, thinking, tools: None, usage, delay_ms, chunk_delay_ms, stop };
    Ok(Spanned::new(entry, at, defined))
}

/// The verdict as JSON; `None` if no field of one is set.
fn verdict(raw: RawSaid, at: Location) -> Result<Option<String>, Complaint> {
    let RawSaid { achieved, confidence, reasoning, suggestions } = raw;
    let Some(achieved) = achieved else {
        if confidence.is_none() && reasoning.is_none() && suggestions.is_none() {
            return Ok(None);
        }
        let remedy = "add `achieved: true` or `achieved: false`; what is no verdict is written as `text`";
        return Err(Complaint::new(at, "the verdict doesn't say what it is", remedy));
    };
    let reasoning = reasoning.filter(|reasoning| !reasoning.trim().is_empty()).ok_or_else(|| {
        let remedy = "add `reasoning`; what is no verdict is written as `text`";
        Complaint::new(at, "the verdict has no reasons", remedy)
    })?;
    let suggestions = suggestions.map(|OneOrMany(many)| many).unwrap_or_default();
    let verdict = Verdict { achieved, confidence: sure(confidence)?, reasoning, suggestions };
    let json = serde_json::to_string(&verdict);
    json.map(Some).map_err(|error| Complaint::new(at, error.to_string(), "write the verdict as `text`"))
}

fn sure(given: Option<Spanned<f64>>) -> Result<f64, Complaint> {
    match given {
        None => Ok(CONFIDENCE),
        Some(given) if (0.0..=1.0).contains(&given.value) => Ok(given.value),
        Some(given) => {
            let remedy = "write a number from 0 to 1, or the whole answer as `text`";
            Err(Complaint::new(given.referenced, "that is no confidence", remedy))
        }
    }
}
