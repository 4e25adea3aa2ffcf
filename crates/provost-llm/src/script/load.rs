//! Parses a script and checks it, so that errors show before a run begins.

use std::fs;
use std::path::Path;

use provost_event::{Json, ModelFailure, StopReason};
use serde_json::Value;
use serde_saphyr::{Location, Spanned};

use super::complaint::{Complaint, SCRIPT_BYTES_MAX, ScriptError};
use super::expect::{Expect, ExpectResult};
use super::fault::fault;
use super::format::{
    OneOrMany, RawAgent, RawCall, RawEntry, RawExpect, RawResult, RawScript, RawUsage, RawVerdict,
};
use super::{stop_of, verdict};

const DELAY_MS_MAX: u64 = 24 * 60 * 60 * 1000;
const WINDOW_TOKENS: u64 = 200_000;
const OUTPUT_TOKENS_MAX: u32 = 8192;
/// Characters of the pieces of a streamed text that the script doesn't split itself.
const PIECE_CHARS: usize = 24;

/// The default output cap is at most this part of a window that the script makes small.
const OUTPUT_DIVISOR: u64 = 4;

/// A checked script.
pub(super) struct Script {
    pub(super) name: String,
    pub(super) model: String,
    pub(super) window_tokens: u64,
    pub(super) output_tokens_max: u32,
    /// The lines of the root, and of sub-agents without lines of their own.
    pub(super) own: Lines,
    /// The lines of sub-agents, by a text in their goal; the first that fits.
    pub(super) agents: Vec<(String, Lines)>,
}

/// The lines of an agent.
pub(super) struct Lines {
    pub(super) answers: Vec<Slot>,
    pub(super) summaries: Vec<Slot>,
    /// Without it the model has no final summary.
    pub(super) final_summary: Option<Slot>,
    /// Its verdicts as a judge; a fault is an entry of its own.
    pub(super) verdicts: Vec<Slot>,
    /// Its answers for hooks that are models; a fault is an entry of its own.
    pub(super) hooks: Vec<Slot>,
}

/// The entry of one answer: the faults before it, then itself; the last may have faults only.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) faults: Vec<Fault>,
    pub(super) answer: Option<Reply>,
}

pub(super) struct Fault {
    pub(super) line: u64,
    pub(super) expect: Expect,
    /// The part of the answer before the failure.
    pub(super) reply: Reply,
    /// `None` for an empty answer.
    pub(super) failure: Option<ModelFailure>,
}

pub(super) struct Reply {
    pub(super) line: u64,
    pub(super) expect: Expect,
    pub(super) thinking: Vec<String>,
    pub(super) text: Vec<String>,
    pub(super) calls: Vec<Call>,
    pub(super) usage: RawUsage,
    pub(super) delay_ms: u64,
    pub(super) chunk_delay_ms: u64,
    pub(super) stop: StopReason,
}

pub(super) struct Call {
    pub(super) name: String,
    pub(super) input: Json,
    pub(super) id: Option<String>,
    pub(super) malformed: Option<String>,
}

pub(super) fn read(path: &Path) -> Result<Script, ScriptError> {
    let file = path.display().to_string();
    let failed = |source| ScriptError::Read { file: file.clone(), source };
    if fs::metadata(path).map_err(failed)?.len() > SCRIPT_BYTES_MAX {
        return Err(ScriptError::TooLarge { file });
    }
    parse(&fs::read_to_string(path).map_err(failed)?, &file)
}

pub(super) fn parse(text: &str, name: &str) -> Result<Script, ScriptError> {
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    let raw = serde_saphyr::from_str_with_options::<RawScript>(text, options);
    let script = raw.map_err(|error| Complaint::from(&error)).and_then(|raw| script(raw, name));
    script.map_err(|complaint| complaint.in_file(name))
}

fn script(raw: RawScript, name: &str) -> Result<Script, Complaint> {
    let (window_tokens, output_tokens_max) = sizes(&raw)?;
    let delays =
        ReplyDelays { delay_ms: delay(raw.delay_ms, 0)?, chunk_delay_ms: delay(raw.chunk_delay_ms, 0)? };
    let RawScript { model, answers, summaries, final_summary, verdicts, hooks, agents: raw_agents, .. } = raw;
    let own =
        lines(RawLines { answers, summaries, final_summary, verdicts, hooks }, delays)?.ok_or_else(|| {
            let remedy = "write a list of answers under `answers:`, or a judge's under `verdicts:`";
            Complaint::new(Location::UNKNOWN, "the script has no answers", remedy)
        })?;
    Ok(Script {
        name: name.to_owned(),
        model: model.unwrap_or_else(|| "scripted".to_owned()),
        window_tokens,
        output_tokens_max,
        own,
        agents: agents(raw_agents.unwrap_or_default(), delays)?,
    })
}

struct RawLines {
    answers: Option<Vec<Spanned<RawEntry>>>,
    summaries: Option<Vec<Spanned<RawEntry>>>,
    final_summary: Option<Spanned<RawEntry>>,
    verdicts: Option<Vec<Spanned<RawVerdict>>>,
    hooks: Option<Vec<Spanned<RawEntry>>>,
}

/// An agent's lines and the verdicts about it; `None` without either.
fn lines(raw: RawLines, delays: ReplyDelays) -> Result<Option<Lines>, Complaint> {
    let answers = slots(raw.answers.unwrap_or_default(), delays, |_| true)?;
    // A summary that can't be retried is skipped: the next one is for the next compaction.
    let is_asked_again =
        |fault: &Fault| fault.failure.as_ref().is_some_and(|failure| failure.class.may_retry());
    let summaries = slots(raw.summaries.unwrap_or_default(), delays, is_asked_again)?;
    // There is no retry of a final summary.
    let final_summary = slots(raw.final_summary.into_iter().collect(), delays, |_| false)?.pop();
    let verdicts = raw.verdicts.unwrap_or_default().into_iter().map(verdict::entry);
    // Each call of a judge counts, even if it fails.
    let verdicts = slots(verdicts.collect::<Result<_, _>>()?, delays, |_| false)?;
    let hooks = slots(raw.hooks.unwrap_or_default(), delays, |_| false)?;
    let says_nothing = answers.is_empty() && verdicts.is_empty() && hooks.is_empty();
    Ok((!says_nothing).then_some(Lines { answers, summaries, final_summary, verdicts, hooks }))
}

/// The lines of sub-agents, each with the text in their goal.
fn agents(raw: Vec<Spanned<RawAgent>>, delays: ReplyDelays) -> Result<Vec<(String, Lines)>, Complaint> {
    let mut agents: Vec<(String, Lines)> = Vec::new();
    for Spanned { value: agent, referenced: at, .. } in raw {
        let RawAgent {
            goal: Spanned { value: goal, referenced: goal_at, .. },
            answers,
            summaries,
            final_summary,
            verdicts,
            hooks,
        } = agent;
        if goal.trim().is_empty() {
            let remedy = "write a text that is in the goals of the agents it is for";
            return Err(Complaint::new(goal_at, "an empty goal fits every agent", remedy));
        }
        if let Some((earlier, _)) = agents.iter().find(|(earlier, _)| goal.contains(earlier.as_str())) {
            let problem = format!("unreachable: `{earlier}` above is in every goal that has `{goal}`");
            return Err(Complaint::new(goal_at, problem, "put the longer one first"));
        }
        let lines = lines(RawLines { answers, summaries, final_summary, verdicts, hooks }, delays)?;
        let remedy = "write a list of answers under its `answers:`, or a judge's under its `verdicts:`";
        let lines = lines.ok_or_else(|| Complaint::new(at, "the agent has no answers", remedy))?;
        agents.push((goal, lines));
    }
    Ok(agents)
}

/// The window, and the output cap. The rest of the window must be larger than the cap: otherwise there is no room
/// for a conversation.
fn sizes(raw: &RawScript) -> Result<(u64, u32), Complaint> {
    let (window, output) = (raw.window_tokens.as_ref(), raw.output_tokens_max.as_ref());
    let window_tokens = window.map_or(WINDOW_TOKENS, |given| given.value);
    let quarter = u32::try_from(window_tokens / OUTPUT_DIVISOR).unwrap_or(u32::MAX).max(1);
    let output_tokens_max = output.map_or(OUTPUT_TOKENS_MAX.min(quarter), |given| given.value);
    if output_tokens_max > 0 && u64::from(output_tokens_max).saturating_mul(2) < window_tokens {
        return Ok((window_tokens, output_tokens_max));
    }
    let at = output.map(|given| given.referenced).or(window.map(|given| given.referenced));
    let problem = match output_tokens_max {
        0 => "answers of 0 tokens say nothing".to_owned(),
        most => format!("answers of {most} tokens leave no room in a window of {window_tokens}"),
    };
    Err(Complaint::new(
        at.unwrap_or(Location::UNKNOWN),
        problem,
        "make `output_tokens_max` at least 1 and less than half of `window_tokens`",
    ))
}

/// The default delays of entries.
#[derive(Clone, Copy)]
pub(super) struct ReplyDelays {
    pub(super) delay_ms: u64,
    pub(super) chunk_delay_ms: u64,
}

/// The slots of answers. A fault stands before the answer that it delays; a fault without a retry has a slot of
/// its own.
fn slots(
    entries: Vec<Spanned<RawEntry>>,
    delays: ReplyDelays,
    is_asked_again: impl Fn(&Fault) -> bool,
) -> Result<Vec<Slot>, Complaint> {
    let mut slots = Vec::new();
    let mut open = Slot::default();
    for Spanned { value: mut entry, referenced: at, .. } in entries {
        let is_complete = match entry.fault.take() {
            Some(given) => {
                let fault = fault(given, entry, delays)?;
                let is_last = !is_asked_again(&fault);
                open.faults.push(fault);
                is_last
            }
            None => {
                open.answer = Some(answer(entry, at, delays)?);
                true
            }
        };
        if is_complete {
            slots.push(std::mem::take(&mut open));
        }
    }
    if !open.faults.is_empty() {
        slots.push(open);
    }
    Ok(slots)
}

fn answer(entry: RawEntry, at: Location, delays: ReplyDelays) -> Result<Reply, Complaint> {
    let calls = entry.tools.unwrap_or_default().into_iter().map(call).collect::<Result<Vec<_>, _>>()?;
    let (thinking, text) = (pieces(entry.thinking), pieces(entry.text));
    let stop = entry.stop.as_ref().map(|stop| stop.value);
    let is_refusal = stop == Some(StopReason::Refusal);
    if thinking.is_empty() && text.is_empty() && calls.is_empty() && !is_refusal {
        let remedy = "give it `text` or `tools`, or write `fault: empty` for an empty answer";
        return Err(Complaint::new(at, "the answer says nothing", remedy));
    }
    if let Some(given) = &entry.stop {
        fitting_stop(given, !calls.is_empty())?;
    }
    Ok(Reply {
        line: at.line(),
        expect: expectations(entry.expect, at)?,
        thinking,
        text,
        stop: stop_of(stop, !calls.is_empty()),
        calls: unique(calls, at)?,
        usage: entry.usage.unwrap_or_default(),
        delay_ms: delay(entry.delay_ms, delays.delay_ms)?,
        chunk_delay_ms: delay(entry.chunk_delay_ms, delays.chunk_delay_ms)?,
    })
}

fn fitting_stop(stop: &Spanned<StopReason>, has_calls: bool) -> Result<(), Complaint> {
    let fits = match stop.value {
        StopReason::OutputCap => true,
        StopReason::ToolUse => has_calls,
        StopReason::EndTurn | StopReason::Refusal | StopReason::Commentary => !has_calls,
    };
    let remedy = "leave `stop` out: it follows from whether there are `tools`";
    if fits {
        Ok(())
    } else {
        Err(Complaint::new(stop.referenced, "that isn't how this answer stops", remedy))
    }
}

fn call(given: Spanned<RawCall>) -> Result<Call, Complaint> {
    let at = given.referenced;
    let RawCall { name, input, id, malformed } = given.value;
    if name.trim().is_empty() || id.as_ref().is_some_and(|id| id.trim().is_empty()) {
        return Err(Complaint::new(
            at,
            "a tool call has an empty name or id",
            "name the tool, or leave `id` out",
        ));
    }
    let input = match input {
        Value::Null => Some(Json::empty_object()),
        Value::Object(_) => Json::of(&input).ok(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    };
    let remedy = format!("write them as a mapping, such as `{name}: {{argument: value}}`");
    let input = input
        .ok_or_else(|| Complaint::new(at, format!("the arguments of `{name}` have no names"), remedy))?;
    Ok(Call { name, input, id, malformed })
}

fn unique(calls: Vec<Call>, at: Location) -> Result<Vec<Call>, Complaint> {
    let ids = calls.iter().filter_map(|call| call.id.as_deref()).collect::<Vec<_>>();
    let twice =
        ids.iter().enumerate().find(|(place, id)| ids.iter().take(*place).any(|earlier| earlier == *id));
    match twice {
        Some((_, id)) => {
            let problem = format!("two tool calls have the id `{id}`");
            Err(Complaint::new(at, problem, "give each its own, or leave `id` out"))
        }
        None => Ok(calls),
    }
}

pub(super) fn expectations(raw: Option<RawExpect>, at: Location) -> Result<Expect, Complaint> {
    let Some(raw) = raw else { return Ok(Expect::default()) };
    if raw.turn == Some(0) {
        return Err(Complaint::new(at, "there is no turn 0", "count turns from 1"));
    }
    Ok(Expect {
        turn: raw.turn,
        messages: raw.messages,
        contains: many(raw.contains),
        not_contains: many(raw.not_contains),
        system: many(raw.system),
        offers: many(raw.offers),
        results: many(raw.tool_result).into_iter().map(result).collect(),
    })
}

fn result(raw: RawResult) -> ExpectResult {
    let RawResult { tool, is_error, contains, not_contains } = raw;
    ExpectResult { tool, is_error, contains: many(contains), not_contains: many(not_contains) }
}

fn many<T>(given: Option<OneOrMany<T>>) -> Vec<T> {
    given.map(|OneOrMany(many)| many).unwrap_or_default()
}

/// A text's pieces: as the script splits it, or else short ones.
pub(super) fn pieces(given: Option<OneOrMany<String>>) -> Vec<String> {
    let pieces = match given.map(|OneOrMany(many)| many).as_deref() {
        Some([one]) => cut(one),
        Some(many) => many.to_vec(),
        None => Vec::new(),
    };
    pieces.into_iter().filter(|piece| !piece.is_empty()).collect()
}

fn cut(text: &str) -> Vec<String> {
    let chars = text.chars().collect::<Vec<_>>();
    chars.chunks(PIECE_CHARS).map(|piece| piece.iter().collect()).collect()
}

fn delay(given: Option<Spanned<u64>>, default: u64) -> Result<u64, Complaint> {
    given.map_or(Ok(default), |ms| checked_delay(ms.value, ms.referenced))
}

pub(super) fn checked_delay(ms: u64, at: Location) -> Result<u64, Complaint> {
    let remedy = format!("write at most {DELAY_MS_MAX} milliseconds, a day");
    if ms > DELAY_MS_MAX { Err(Complaint::new(at, "that delay is too long", remedy)) } else { Ok(ms) }
}
