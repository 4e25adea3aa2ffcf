//! Assembles an answer from the events of its stream.
//!
//! Servers that follow the format identify each item by its index and its id. Compatible servers use ids that
//! don't match, the same index for all items, or neither: then an event belongs to the last open item of its type.
//! Content that arrived in pieces isn't applied again where the stream repeats it as a whole.

use provost_engine::Answer;
use provost_event::{DeltaKind, ModelFailure, StopReason, Usage};
use provost_harness::DeltaSink;
use serde_json::value::RawValue;

use super::WIRE;
use super::error::WireError;
use super::event::{WireEvent, WireResponse, parse, read};
use super::item::{Body, CALL, CUSTOM_CALL, Item, MESSAGE, PartKind, REASONING, ReceivedItem};
use crate::piece::{Facts, assemble};
use crate::stream::malformed;
use crate::wire::{Progress, Reader};

/// An unfinished answer.
pub(super) struct ResponsesReader<'a> {
    deltas: &'a dyn DeltaSink,
    model: Option<String>,
    usage: Usage,
    items: Vec<Item>,
    stop: Option<StopReason>,
    answers_before: u32,
}

impl Reader for ResponsesReader<'_> {
    fn take(&mut self, data: &str) -> Result<Progress, ModelFailure> {
        let Some(event) = parse(data)? else { return Ok(Progress::Nothing) };
        match event.r#type.as_ref() {
            "response.output_item.added" => self.begin(&event)?,
            "response.output_item.done" => self.close(&event)?,
            "response.output_text.delta" => self.grow(&event, MESSAGE, PartKind::Text),
            "response.refusal.delta" => self.grow(&event, MESSAGE, PartKind::Refusal),
            "response.reasoning_summary_text.delta" => self.grow(&event, REASONING, PartKind::Summary),
            "response.reasoning_text.delta" => self.grow(&event, REASONING, PartKind::Thought),
            "response.function_call_arguments.delta" => {
                if let Some(call) = self.about(&event, CALL) {
                    call.write(event.delta.as_deref().unwrap_or_default());
                }
            }
            "response.custom_tool_call_input.delta" => {
                if let Some(call) = self.about(&event, CUSTOM_CALL) {
                    call.write(event.delta.as_deref().unwrap_or_default());
                }
            }
            "response.function_call_arguments.done" => self.end_arguments(&event, CALL),
            "response.custom_tool_call_input.done" => self.end_arguments(&event, CUSTOM_CALL),
            "response.completed" | "response.incomplete" | "response.done" => {
                self.end(&event)?;
                return Ok(Progress::Done);
            }
            "response.failed" | "response.cancelled" => {
                let response = event.response.map(|raw| read::<WireResponse<'_>>("a failed response", raw));
                return Err(self.failure(response.transpose()?, event.error));
            }
            // A gateway's error has no type.
            "error" => return Err(failure_in(data, event.error)),
            _ if event.error.is_some() => return Err(failure_in(data, event.error)),
            _ => return Err(malformed("an event of the stream has no type")),
        }
        Ok(Progress::Token)
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn written_bytes(&self) -> usize {
        self.items.iter().map(Item::written_bytes).sum()
    }

    fn finish(&mut self, asked: &str) -> Result<Answer, ModelFailure> {
        let stop = self.stop.ok_or_else(|| malformed("the answer doesn't say that it is over"))?;
        let items = std::mem::take(&mut self.items);
        if items.iter().any(|item| matches!(&item.body, Body::Call { name, .. } if name.is_empty())) {
            return Err(malformed("a tool call doesn't name its tool"));
        }
        let declines = items.iter().any(Item::declines);
        let stop = match stop {
            StopReason::EndTurn if ends_with_comment(&items) => StopReason::Commentary,
            stop => stop,
        };
        let facts = Facts {
            wire: WIRE,
            usage: self.usage,
            model: self.model.take().unwrap_or_else(|| asked.to_owned()),
            stop: if declines { StopReason::Refusal } else { stop },
            answers_before: self.answers_before,
        };
        assemble(items.into_iter().flat_map(Item::pieces).collect(), facts)
    }
}

/// Whether the answer calls no tool, and its last message is a comment on the work.
fn ends_with_comment(items: &[Item]) -> bool {
    let calls_tool = items.iter().any(|item| matches!(item.body, Body::Call { .. }));
    !calls_tool && items.iter().rev().find_map(Item::is_comment).unwrap_or_default()
}

impl<'a> ResponsesReader<'a> {
    pub(super) fn new(deltas: &'a dyn DeltaSink, answers_before: u32) -> Self {
        Self { deltas, model: None, usage: Usage::default(), items: Vec::new(), stop: None, answers_before }
    }

    fn begin(&mut self, event: &WireEvent<'_>) -> Result<(), ModelFailure> {
        let told = told(event)?;
        let (id, index) = (told.id.as_deref(), event.output_index);
        let is_named = |item: &Item| is_same(item.id.as_deref(), id) && is_same(item.index, index);
        let of_kind = |item: &Item| item.kind() == told.kind && item.is_open;
        if self.items.iter().any(|item| of_kind(item) && item.is_announced && is_named(item)) {
            return Err(malformed(format!("item {} begins twice", id.unwrap_or_default())));
        }
        // Its first piece may have arrived before its announcement.
        let is_early = |item: &Item| {
            let is_known = is_same(item.id.as_deref(), id) || is_same(item.index, index);
            of_kind(item) && !item.is_announced && is_known
        };
        let at = self.items.iter().rposition(is_early);
        let at = at.unwrap_or_else(|| self.push(Item::new(&told.kind, id, index)));
        if let Some(item) = self.items.get_mut(at) {
            item.announce(&told)?;
        }
        Ok(())
    }

    fn close(&mut self, event: &WireEvent<'_>) -> Result<(), ModelFailure> {
        let told = told(event)?;
        let (kind, call) = (told.kind.as_ref(), told.call_id());
        let by_call =
            |item: &Item| matches!((&item.body, &call), (Body::Call { id, .. }, Some(call)) if id == call);
        let at = match self.items.iter().rposition(by_call) {
            Some(at) => at,
            None => {
                let known = self.find(kind, told.id.as_deref(), event.output_index);
                let known = known.filter(|at| {
                    !self.items.get(*at).is_some_and(|item| item.is_other_call(call.as_deref()))
                });
                known.unwrap_or_else(|| self.push(Item::new(kind, told.id.as_deref(), event.output_index)))
            }
        };
        let deltas = self.deltas;
        if let Some(item) = self.items.get_mut(at) {
            item.settle(&told, &|kind, text| deltas.delta(kind, text))?;
            item.is_open = false;
        }
        Ok(())
    }

    fn grow(&mut self, event: &WireEvent<'_>, kind: &str, part: PartKind) {
        let deltas = self.deltas;
        let index = if part == PartKind::Summary { event.summary_index } else { event.content_index };
        if let Some(item) = self.about(event, kind) {
            let text = event.delta.as_deref().unwrap_or_default();
            item.grow(part, index, text, &|kind: DeltaKind, text: &str| deltas.delta(kind, text));
        }
    }

    /// If a server doesn't identify the call of these arguments, it ends its calls in the order in which it began
    /// them.
    fn end_arguments(&mut self, event: &WireEvent<'_>, kind: &str) {
        let is_waiting = |item: &Item| {
            item.is_open && item.kind() == kind && matches!(item.body, Body::Call { is_final: false, .. })
        };
        let is_nameless = event.item_id.is_none() && event.output_index.is_none();
        let waiting = if is_nameless { self.items.iter().position(is_waiting) } else { None };
        let call = match waiting {
            Some(at) => self.items.get_mut(at),
            None => self.about(event, kind),
        };
        if let Some(call) = call {
            let written = event.arguments.as_ref().or(event.input.as_ref());
            call.set_arguments(written.cloned().unwrap_or_default());
        }
    }

    /// The item of an event; a new one if there is none.
    fn about(&mut self, event: &WireEvent<'_>, kind: &str) -> Option<&mut Item> {
        let (id, index) = (event.item_id.as_deref(), event.output_index);
        let at = self.find(kind, id, index).unwrap_or_else(|| self.push(Item::new(kind, id, index)));
        self.items.get_mut(at)
    }

    fn push(&mut self, item: Item) -> usize {
        self.items.push(item);
        self.items.len() - 1
    }

    /// The open item of this type that the event means. Closed items don't count: some servers reuse ids.
    fn find(&self, kind: &str, id: Option<&str>, index: Option<i64>) -> Option<usize> {
        let last = |wanted: &dyn Fn(&Item) -> bool| {
            self.items.iter().rposition(|item| item.kind() == kind && item.is_open && wanted(item))
        };
        last(&|item| is_same(item.id.as_deref(), id))
            .or_else(|| last(&|item| is_same(item.index, index)))
            .or_else(|| last(&|_| true))
    }

    /// The response has ended: its usage, its stop reason, and items that only its last event has.
    fn end(&mut self, event: &WireEvent<'_>) -> Result<(), ModelFailure> {
        self.stop = Some(StopReason::EndTurn);
        let Some(raw) = event.response else { return Ok(()) };
        let response: WireResponse<'_> = read("the response", raw)?;
        let status = response.status.as_deref();
        if matches!(status, Some("failed" | "cancelled")) {
            return Err(self.failure(Some(response), None));
        }
        if let Some(usage) = &response.usage {
            self.usage = usage.usage();
        }
        let is_incomplete = status == Some("incomplete") || event.r#type == "response.incomplete";
        if is_incomplete {
            let reason = response.incomplete_details.and_then(|details| details.reason);
            let is_filtered = reason.as_deref() == Some("content_filter");
            self.stop = Some(if is_filtered { StopReason::Refusal } else { StopReason::OutputCap });
        }
        self.model = response.model.filter(|model| !model.is_empty());
        self.list(response.output.unwrap_or_default())
    }

    /// Adds what the stream left out of the response's items. They are matched by type and order: some servers
    /// give them other ids here.
    fn list(&mut self, output: Vec<&RawValue>) -> Result<(), ModelFailure> {
        let (deltas, mut next) = (self.deltas, 0);
        for raw in output {
            let told = ReceivedItem::read(raw)?;
            let call = told.call_id();
            let same = |item: &Item| {
                item.kind() == told.kind && !item.is_listed && !item.is_other_call(call.as_deref())
            };
            let at = self.items.iter().position(same).unwrap_or_else(|| {
                self.items.insert(next, Item::new(&told.kind, told.id.as_deref(), None));
                next
            });
            if let Some(item) = self.items.get_mut(at) {
                item.is_listed = true;
                item.settle(&told, &|kind, text| deltas.delta(kind, text))?;
            }
            next = at + 1;
        }
        Ok(())
    }

    fn failure(&mut self, response: Option<WireResponse<'_>>, error: Option<WireError>) -> ModelFailure {
        let (usage, inner) = response.map_or((None, None), |response| (response.usage, response.error));
        if let Some(usage) = usage {
            self.usage = usage.usage();
        }
        inner.or(error).unwrap_or_else(|| WireError::Words(String::new())).failure()
    }
}

fn told<'a>(event: &WireEvent<'a>) -> Result<ReceivedItem<'a>, ModelFailure> {
    ReceivedItem::read(event.item.ok_or_else(|| malformed(format!("{} lacks its item", event.r#type)))?)
}

/// Whether both are known and equal.
fn is_same<T: PartialEq>(known: Option<T>, told: Option<T>) -> bool {
    known.is_some() && known == told
}

/// The error in an event: its fields are in the event, or below `error`.
fn failure_in(data: &str, error: Option<WireError>) -> ModelFailure {
    match error {
        Some(error) => error.failure(),
        None => super::error::flat(data).failure(),
    }
}
