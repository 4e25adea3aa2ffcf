//! Unfinished tool calls. In the format each piece has its call's index, and the first one also its id and name;
//! servers leave out, repeat and mix up all three.

use serde_json::Value;

use super::event::{WireFunction, text};
use crate::piece::Piece;

/// A call, as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// The last event with a piece of it.
    event: u64,
}

/// A piece of a call.
pub(super) struct CallPiece {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: Arguments,
}

enum Arguments {
    None,
    /// The next piece of the text.
    More(String),
    /// All arguments, from servers that send JSON instead of a text.
    Whole(String),
}

impl CallPiece {
    pub(super) fn of(index: Option<Value>, id: Option<Value>, function: Option<WireFunction<'_>>) -> Self {
        let (name, arguments) = function.map_or((None, None), |function| (function.name, function.arguments));
        let arguments = match arguments.map(|raw| (raw.get(), serde_json::from_str(raw.get()))) {
            None | Some((_, Ok(Value::Null))) => Arguments::None,
            Some((_, Ok(Value::String(text)))) if text.is_empty() => Arguments::None,
            Some((_, Ok(Value::String(text)))) => Arguments::More(text),
            Some((json, _)) => Arguments::Whole(json.to_owned()),
        };
        Self { index: index.as_ref().and_then(Value::as_u64), id: text(id), name: text(name), arguments }
    }

    const fn has_arguments(&self) -> bool {
        !matches!(self.arguments, Arguments::None)
    }
}

impl Call {
    /// The call among `calls` that `piece` belongs to; `None` if it begins a new one. `event` numbers the events.
    pub(super) fn place(calls: &[&mut Self], piece: &CallPiece, event: u64) -> Option<usize> {
        let same_id = |call: &&mut Self| {
            !piece.id.is_empty()
                && call.id == piece.id
                && (piece.index.is_none() || call.index.is_none() || call.index == piece.index)
        };
        if let Some(place) = calls.iter().rposition(same_id) {
            return Some(place);
        }
        let place = match piece.index {
            Some(index) => calls.iter().rposition(|call| call.index == Some(index))?,
            // An event never has two pieces of one call.
            None => calls
                .len()
                .checked_sub(1)
                .filter(|last| calls.get(*last).is_some_and(|call| call.event != event))?,
        };
        let call = calls.get(place)?;
        (!call.is_over(piece)).then_some(place)
    }

    /// Whether `piece` begins another call, although its position fits this one.
    fn is_over(&self, piece: &CallPiece) -> bool {
        let is_other = !piece.id.is_empty() && !self.id.is_empty() && piece.id != self.id;
        if is_other && piece.index.is_none() {
            return true;
        }
        if piece.name.is_empty() || self.name.is_empty() {
            // Old versions of vLLM send a different id in each piece.
            return false;
        }
        is_other || piece.name != self.name || piece.has_arguments() && self.is_whole()
    }

    /// Whether its arguments are a complete object, which can't be the beginning of another.
    fn is_whole(&self) -> bool {
        serde_json::from_str::<serde_json::Map<String, Value>>(&self.arguments).is_ok()
    }

    /// A call that the server refused; `written` is the model's text for it.
    pub(super) fn failed(written: &str) -> Self {
        // An object would be taken as its arguments.
        let arguments = format!("not a call: {written}");
        Self { name: name_in(written), arguments, ..Self::default() }
    }

    /// A new call, beginning with `piece`.
    pub(super) fn begun(piece: CallPiece, event: u64) -> Self {
        let mut call = Self::default();
        call.grow(piece, event);
        call
    }

    pub(super) fn grow(&mut self, piece: CallPiece, event: u64) {
        self.event = event;
        self.index = self.index.or(piece.index);
        if self.id.is_empty() {
            self.id = piece.id;
        }
        if self.name.is_empty() {
            self.name = piece.name;
        }
        match piece.arguments {
            Arguments::None => {}
            Arguments::More(text) => self.arguments.push_str(&text),
            Arguments::Whole(json) => self.arguments = json,
        }
    }

    pub(super) const fn is_nameless(&self) -> bool {
        self.name.is_empty()
    }

    pub(super) const fn written_bytes(&self) -> usize {
        self.name.len().saturating_add(self.arguments.len())
    }
}

impl From<Call> for Piece {
    fn from(call: Call) -> Self {
        Self::Call { id: call.id, name: call.name, given: None, written: call.arguments }
    }
}

/// The tool that a failed call seems to name: `"name": "TOOL"` or `<function=TOOL`.
fn name_in(written: &str) -> String {
    let behind = |mark: &str| written.split_once(mark).map(|(_, rest)| rest);
    let rest = behind("function=").or_else(|| behind("\"name\"")).unwrap_or_default();
    let rest = rest.trim_start_matches([' ', ':', '"']);
    let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-')).next();
    name.filter(|name| !name.is_empty()).unwrap_or(UNKNOWN_TOOL).to_owned()
}

/// The tool name of a call without one.
const UNKNOWN_TOOL: &str = "unknown";
