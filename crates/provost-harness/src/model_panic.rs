//! Calls a model whose adapter may panic: the call has failed then, and it may have cost money.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use provost_engine::{Answer, IMAGE_TOKENS, tokens_of};
use provost_event::{Block, Certainty, DeltaKind, ErrorClass, ModelFailure, Usage};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tracing::field::Empty;

use crate::spans::{self, span};
use crate::{DeltaSink, Model, ModelRequest, Part};

/// Bytes of a token at least, in what an adapter passed on before it panicked.
const BYTES_PER_TOKEN: usize = 3;

/// The answer of `model`. An adapter that panics has failed with a malformed response, and with the estimated usage of
/// the request and of what it passed on: nothing else is known of it.
///
/// # Errors
/// Those of the model.
///
/// # Cancellation
/// As [`Model::answer`].
pub(crate) async fn answer_of(
    model: &dyn Model,
    request: ModelRequest<'_>,
    deltas: &dyn DeltaSink,
    cancel: &CancellationToken,
) -> Result<Answer, ModelFailure> {
    let span = span!(
        "model.call",
        turn = request.turn,
        purpose = ?request.purpose,
        model = Empty,
        input_tokens = Empty,
        output_tokens = Empty,
        error = Empty,
    );
    let counted = Counted { deltas, bytes: AtomicUsize::new(0) };
    let answer = AssertUnwindSafe(model.answer(request, &counted, cancel)).catch_unwind();
    let answer = answer.instrument(span.clone()).await.unwrap_or_else(|_| {
        let written = counted.bytes.load(Ordering::Relaxed).div_ceil(BYTES_PER_TOKEN);
        let usage = Usage {
            input_tokens: request_tokens(&request),
            output_tokens: u64::try_from(written).unwrap_or(u64::MAX),
            certainty: Certainty::Estimated,
            ..Usage::default()
        };
        let failure = ModelFailure::new(ErrorClass::MalformedResponse, "the model's adapter panicked");
        Err(ModelFailure { usage, ..failure })
    });
    spans::model_answered(&span, &answer);
    answer
}

/// Passes pieces on, and counts their bytes.
struct Counted<'a> {
    deltas: &'a dyn DeltaSink,
    bytes: AtomicUsize,
}

impl DeltaSink for Counted<'_> {
    fn delta(&self, kind: DeltaKind, text: &str) {
        self.bytes.fetch_add(text.len(), Ordering::Relaxed);
        self.deltas.delta(kind, text);
    }
}

fn request_tokens(request: &ModelRequest<'_>) -> u64 {
    let parts = request.messages.iter().flat_map(|message| &message.parts).map(part_tokens);
    let tools = request.tools.iter();
    let tools =
        tools.map(|tool| tokens_of(&tool.description).saturating_add(tokens_of(tool.input_schema.text())));
    parts.chain(tools).fold(tokens_of(request.system), u64::saturating_add)
}

fn part_tokens(part: &Part) -> u64 {
    match part {
        Part::Block(Block::Text(text) | Block::Thinking { text, .. }) => tokens_of(text),
        Part::Block(Block::Opaque { json, .. }) => tokens_of(json.text()),
        Part::Block(Block::ToolCall(call)) => {
            tokens_of(&call.name).saturating_add(tokens_of(call.input.text()))
        }
        Part::Block(Block::Image(_)) | Part::Image(_) => IMAGE_TOKENS,
        Part::ToolResult { output, images, .. } => {
            let images = u64::try_from(images.len()).unwrap_or(u64::MAX).saturating_mul(IMAGE_TOKENS);
            tokens_of(output).saturating_add(images)
        }
    }
}
