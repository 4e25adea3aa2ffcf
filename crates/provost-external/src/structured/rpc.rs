//! Lines of JSON-RPC, which Codex's app server and the Agent Client Protocol share.

use serde_json::Value;

use super::stream_item::ParsedLine;
use super::value::text;

/// What the lines of the other side mean.
pub(super) trait RpcReader {
    /// It requests something, and waits for an answer to `id`.
    fn requested(&mut self, id: &Value, method: &str, params: &Value) -> ParsedLine;

    /// It says something.
    fn notified(&mut self, method: &str, params: &Value) -> ParsedLine;

    /// It answers the request `id`, with a result or an error.
    fn answered(&mut self, id: u64, answer: &Value) -> ParsedLine;
}

/// Has `reader` take what a line says.
pub(super) fn read(reader: &mut impl RpcReader, line: &str) -> ParsedLine {
    let Ok(message) = serde_json::from_str::<Value>(line) else { return ParsedLine::malformed() };
    let params = message.get("params").unwrap_or(&Value::Null);
    let id = message.get("id").filter(|id| !id.is_null());
    match (text(&message, "/method"), id) {
        (Some(method), Some(id)) => reader.requested(id, method, params),
        (Some(method), None) => reader.notified(method, params),
        (None, Some(id)) if message.get("result").or_else(|| message.get("error")).is_some() => {
            id.as_u64().map(|id| reader.answered(id, &message)).unwrap_or_default()
        }
        (None, _) => ParsedLine::malformed(),
    }
}
