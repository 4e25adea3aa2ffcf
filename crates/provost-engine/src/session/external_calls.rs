//! Model calls beside the conversation: those that an external agent's program makes itself, through the gateway, and those
//! of hooks that are models. Each has its budget before it is made, several may be open at once, and none outlives a
//! segment unsettled.

use std::collections::{BTreeMap, VecDeque};

use provost_event::{
    Exhausted, ExternalCall, ExternalCallEnd, ExternalModelAnswered, ExternalModelCalled,
    ExternalModelQueued, ExternalModelRefused, MicroDollars, Outcome, Price, Purpose, Retry, RetryCause, Seq,
    Usage,
};
use serde::{Deserialize, Serialize};

use super::{Deciding, Phase, SessionState};
use crate::event::{ExternalCallRequest, ExternalCallResult};
use crate::session::segment;
use crate::{ReserveRequest, RunEvent, SessionEvent, SettleNote};

/// How long a program has to show its user that the budget is used up, before its exchange is aborted.
const SHOWS_REFUSAL_MS: u64 = 5_000;

/// The model calls beside the conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ExternalCalls {
    made: u32,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    open: BTreeMap<u32, OpenCall>,
    /// Requests that wait until an open call is settled, oldest first.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    queue: VecDeque<ExternalCallRequest>,
    /// The limit that left no budget for a call of this segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<Exhausted>,
    /// The entry whose timer ends the exchange of a program that was refused a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    grace: Option<Seq>,
}

/// A call that isn't settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OpenCall {
    #[serde(default = "external")]
    purpose: Purpose,
    request: String,
    model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price: Option<Price>,
    turn: u32,
}

/// How entries change them.
impl ExternalCalls {
    pub(super) fn called(&mut self, called: &ExternalModelCalled) {
        self.made = called.call;
        self.forget(&called.of.request);
        let ExternalCall { purpose, request, model, price, .. } = called.of.clone();
        self.open.insert(called.call, OpenCall { purpose, request, model, price, turn: called.turn });
    }

    pub(super) fn answered(&mut self, answered: &ExternalModelAnswered) {
        self.open.remove(&answered.call);
    }

    pub(super) fn queued(&mut self, queued: &ExternalModelQueued) {
        let ExternalModelQueued { of, input_tokens, output_tokens_max } = queued.clone();
        self.queue.push_back(ExternalCallRequest { call: of, input_tokens, output_tokens_max });
    }

    fn forget(&mut self, request: &str) {
        self.queue.retain(|queued| queued.call.request != request);
    }

    /// The entry `head` refuses a call; amid an exchange it sets a timer.
    pub(super) fn refused(&mut self, refused: &ExternalModelRefused, head: Seq, amid_exchange: bool) {
        self.forget(&refused.of.request);
        self.refused = refused.exhausted.or(self.refused);
        let is_programs = refused.of.purpose == Purpose::External;
        if amid_exchange && is_programs && refused.exhausted.is_some() {
            self.grace = Some(head);
        }
    }

    /// A stop was requested, or the exchange is over.
    pub(super) const fn grace_ended(&mut self) {
        self.grace = None;
    }

    pub(super) fn segment_ended(&mut self) {
        self.queue.clear();
        self.grace = None;
        self.refused = None;
    }

    /// Whether any call of the program has passed the gateway.
    pub(super) const fn has_made(&self) -> bool {
        self.made > 0
    }

    /// The timer that ends the exchange.
    pub(super) const fn timer(&self) -> Option<Seq> {
        self.grace
    }
}

/// An event about these calls.
pub(in crate::session) fn on(deciding: &mut Deciding<'_>, event: SessionEvent) {
    match event {
        SessionEvent::ExternalCall(request) => requested(deciding, *request),
        SessionEvent::ExternalReserved { request, number, output_tokens_max } => {
            reserved(deciding, *request, number, output_tokens_max);
        }
        SessionEvent::ExternalRefused { request, exhausted } => refused(deciding, *request, exhausted),
        SessionEvent::ExternalAnswered(result) => answered(deciding, *result),
        _ => {}
    }
}

/// A model is to be called: asks the run for the budget.
fn requested(deciding: &mut Deciding<'_>, request: ExternalCallRequest) {
    let purpose = request.call.purpose;
    if !may_call(deciding.state, purpose) {
        return;
    }
    let (input_tokens, output_tokens_max) = (request.input_tokens, request.output_tokens_max);
    let reserve = ReserveRequest {
        session: deciding.state.session,
        call: deciding.state.external_calls.made.saturating_add(1),
        turn: deciding.state.turns.next(),
        model: request.call.model.clone(),
        input_tokens,
        estimated_tokens: input_tokens,
        is_counted: false,
        output_tokens_max,
        price: request.call.price,
        keeps_back: false,
        thinking_tokens: 0,
        kept_tokens: 0,
        kept_cost: MicroDollars(0),
        judges_percent: deciding.state.assignment.goal_policy().map_or(100, |policy| policy.budget_percent),
        ends_work: true,
        purpose,
        external: Some(Box::new(request)),
    };
    deciding.tell_run(RunEvent::Reserve(reserve));
}

/// The run has reserved budget for call number `number`.
fn reserved(deciding: &mut Deciding<'_>, request: ExternalCallRequest, number: u32, output_tokens_max: u32) {
    let next = deciding.state.external_calls.made.saturating_add(1);
    if !may_call(deciding.state, request.call.purpose) || number != next {
        return;
    }
    let turn = deciding.state.turns.next();
    deciding.commit(ExternalModelCalled { turn, call: number, of: request.call, output_tokens_max });
    ask_for_queued(deciding);
}

/// The run has no budget for the call. The program is told so, and the session is suspended: after the exchange, or
/// when the program has had time to show it. What a hook was to decide on waits until the session is resumed.
fn refused(deciding: &mut Deciding<'_>, request: ExternalCallRequest, exhausted: Option<Exhausted>) {
    if !may_call(deciding.state, request.call.purpose) {
        return;
    }
    let ExternalCallRequest { call: of, input_tokens, output_tokens_max } = request;
    let Some(exhausted) = exhausted else {
        return deciding.commit(ExternalModelRefused { of, exhausted });
    };
    let calls = &deciding.state.external_calls;
    if exhausted.shortfall.is_some_and(|shortfall| shortfall.reserved > 0) && !calls.open.is_empty() {
        if !calls.queue.iter().any(|queued| queued.call.request == of.request) {
            deciding.commit(ExternalModelQueued { of, input_tokens, output_tokens_max });
        }
        return;
    }
    deciding.commit(ExternalModelRefused { of, exhausted: Some(exhausted) });
    // No further call is granted in this segment: those that wait get their answer now, too.
    while let Some(queued) = deciding.state.external_calls.queue.front().cloned() {
        deciding.commit(ExternalModelRefused { of: queued.call, exhausted: Some(exhausted) });
    }
    if deciding.state.external_calls.timer().is_some() {
        let timer = deciding.step.now().timer(SHOWS_REFUSAL_MS);
        deciding.open(timer);
    } else {
        segment::stop(deciding, Outcome::BudgetExhausted(exhausted));
    }
}

/// The time to show the refusal is over.
pub(in crate::session) fn grace_is_over(deciding: &mut Deciding<'_>) {
    if let Some(exhausted) = deciding.state.external_calls.refused {
        segment::stop(deciding, Outcome::BudgetExhausted(exhausted));
    }
}

/// The exchange is over. If a call was refused in it, what the program says is no result: the session is suspended, and
/// continues where the program was. Returns whether it does.
pub(in crate::session) fn suspends(deciding: &mut Deciding<'_>, usage: Usage) -> bool {
    let Some(exhausted) = deciding.state.external_calls.refused else { return false };
    if deciding.state.lifecycle.is_stopping() || deciding.state.turns.purpose() != Purpose::Turn {
        return false;
    }
    end_grace(deciding);
    let call = deciding.state.turns.model_calls();
    deciding.commit(Retry::at_once(call, RetryCause::Interrupted, usage));
    segment::finish(deciding, Outcome::BudgetExhausted(exhausted));
    true
}

/// Closes the timer of a refusal. The entry that follows clears it: one that requests a stop, or that ends the exchange.
pub(in crate::session) fn end_grace(deciding: &mut Deciding<'_>) {
    if let Some(timer) = deciding.state.external_calls.timer() {
        deciding.step.close(timer);
    }
}

/// A call is over: it is charged.
fn answered(deciding: &mut Deciding<'_>, result: ExternalCallResult) {
    let open = deciding.state.external_calls.open.iter();
    let number = open.filter(|(_, open)| open.request == result.request).map(|(number, _)| *number).next();
    if let Some(number) = number {
        settle(deciding, number, result);
        ask_for_queued(deciding);
    }
}

/// Asks for the budget of the request that waits longest.
fn ask_for_queued(deciding: &mut Deciding<'_>) {
    if let Some(request) = deciding.state.external_calls.queue.front().cloned() {
        requested(deciding, request);
    }
}

/// The calls that are still open are lost: each is charged with what was reserved for it.
pub(in crate::session) fn settle_lost(deciding: &mut Deciding<'_>) {
    let open = deciding.state.external_calls.open.iter();
    let open = open.map(|(number, open)| (*number, open.request.clone())).collect::<Vec<_>>();
    for (number, request) in open {
        settle(deciding, number, ExternalCallResult::lost(request));
    }
}

fn settle(deciding: &mut Deciding<'_>, call: u32, result: ExternalCallResult) {
    let Some(OpenCall { purpose, request, model, price, turn }) =
        deciding.state.external_calls.open.get(&call).cloned()
    else {
        return;
    };
    let ExternalCallResult { end, usage, cost, status, request_id, duration_ms, tools, body, .. } = result;
    let cost = cost.or_else(|| price.map(|price| price.cost(usage)));
    deciding.tell_run(RunEvent::Settle(SettleNote {
        session: deciding.state.session,
        call,
        turn,
        model: model.clone(),
        usage,
        cost,
        purpose,
    }));
    deciding.commit(ExternalModelAnswered {
        call,
        purpose,
        request,
        model,
        end,
        usage,
        cost,
        status,
        request_id,
        duration_ms,
        tools,
        body,
    });
}

/// Whether a model may be called for this purpose now.
fn may_call(state: &SessionState, purpose: Purpose) -> bool {
    (purpose == Purpose::Hook || state.assignment.is_metered())
        && state.lifecycle.is_live()
        && !state.lifecycle.is_stopping()
        && state.closing().is_none()
        && state.external_calls.refused.is_none()
}

/// Whether an exchange is open.
pub(in crate::session) const fn amid_exchange(state: &SessionState) -> bool {
    matches!(state.lifecycle.phase(), Phase::Thinking(_))
}

const fn external() -> Purpose {
    Purpose::External
}

impl ExternalCallResult {
    /// A call whose answer is unknown.
    fn lost(request: String) -> Self {
        Self { usage: Usage::unconfirmed(), ..Self::new(request, ExternalCallEnd::Lost) }
    }
}

impl SessionState {
    /// The model calls beside the conversation that are open, by the ids of their requests.
    pub fn open_external_calls(&self) -> impl Iterator<Item = &str> {
        self.external_calls.open.values().map(|open| open.request.as_str())
    }
}
