//! Hashes of rows outside of logs.

use provost_event::{ActorKey, Seq};
use provost_harness::EntryChain;

use super::int;
use provost_backend::StoredRun;

/// A column as hashed.
enum Column<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
    Number(i64),
    Null,
}

/// Enough for most rows.
const ROW_BYTES: usize = 512;

/// The first eight bytes of a hash over all of it.
fn sum(table: &str, columns: &[Column<'_>]) -> i64 {
    // In one piece, as each update of a hash has its cost.
    let mut row = Vec::with_capacity(ROW_BYTES);
    row.extend_from_slice(table.as_bytes());
    for column in columns {
        let number;
        let (tag, bytes): (u8, &[u8]) = match column {
            Column::Text(text) => (1, text.as_bytes()),
            Column::Bytes(bytes) => (2, bytes),
            Column::Number(value) => {
                number = value.to_le_bytes();
                (3, &number)
            }
            Column::Null => (4, &[]),
        };
        row.push(tag);
        row.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        row.extend_from_slice(bytes);
    }
    let hash = blake3::hash(&row);
    i64::from_le_bytes(hash.as_bytes().first_chunk().copied().unwrap_or_default())
}

/// The sum of the row with a log's end.
pub(super) fn of_head(key: &str, actor: i64, head: Seq, chain: &EntryChain) -> i64 {
    let columns = [
        Column::Text(key),
        Column::Number(actor),
        Column::Number(int(head.0)),
        Column::Bytes(chain.as_bytes()),
    ];
    sum("heads", &columns)
}

/// The sum of an open effect.
pub(super) fn of_effect(actor: ActorKey, seq: Seq, kind: &str) -> i64 {
    let columns = [Column::Text(&actor.to_string()), Column::Number(int(seq.0)), Column::Text(kind)];
    sum("effects", &columns)
}

/// The sum of a request in a run's mailbox, or of its reply.
pub(super) fn of_request(run: &str, answered: bool, body: &str) -> i64 {
    sum("mailbox", &[Column::Text(run), Column::Number(answered.into()), Column::Text(body)])
}

/// The sum of a run's row.
pub(super) fn of_run(run: &StoredRun, outcome: Option<&str>) -> i64 {
    let columns = [
        Column::Text(&run.run.to_string()),
        Column::Number(int(run.started_at.0)),
        Column::Number(int(run.updated_at.0)),
        Column::Number(run.turns.into()),
        Column::Number(int(run.tokens)),
        Column::Number(int(run.cost.0)),
        outcome.map_or(Column::Null, Column::Text),
        Column::Text(&run.model),
        Column::Text(&run.workspace.to_string_lossy()),
        Column::Text(&run.goal),
        Column::Number(int(run.uncertain.tokens)),
        Column::Number(int(run.uncertain.cost.0)),
        Column::Number(int(run.elapsed.0)),
    ];
    sum("runs", &columns)
}
