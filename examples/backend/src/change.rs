//! What the journal's lines hold.

use std::path::PathBuf;
use std::sync::Arc;

use provost_backend::{OpenEffect, StoredRun};
use provost_engine::{Effect, Uncertain};
use provost_event::{
    ActorKey, BlobId, EffectId, Elapsed, FormatError, MicroDollars, Outcome, Record, RunId, Timestamp,
};
use serde::{Deserialize, Serialize};

/// A change of the store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Change {
    Append(Line),
    PutEffect { id: EffectId, effect: Effect, epoch: Option<u64>, abort: bool },
    CloseEffect(EffectId),
    MarkPost { actor: ActorKey, dedup: String },
    PutRun(Row),
    PutBody { id: BlobId, body: Vec<u8> },
    RemoveBodies(Vec<BlobId>),
    RemoveRun(RunId),
    SetEpoch { run: RunId, epoch: u64 },
    PutRequest { number: u64, run: RunId, text: String },
    Answer { number: u64, reply: String },
    RemoveRequest { number: u64 },
}

impl Change {
    pub(crate) fn put_effect(open: &OpenEffect) -> Self {
        let OpenEffect { id, effect, epoch, abort } = open.clone();
        Self::PutEffect { id, effect, epoch, abort }
    }
}

/// A record as a line of the log's own format.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Line {
    pub(crate) record: Arc<Record>,
    text: String,
}

impl Line {
    /// # Errors
    /// When the record has no JSON form.
    pub(crate) fn new(record: Arc<Record>) -> Result<Self, serde_json::Error> {
        Ok(Self { text: record.to_line()?, record })
    }
}

impl TryFrom<String> for Line {
    type Error = FormatError;

    fn try_from(text: String) -> Result<Self, FormatError> {
        Ok(Self { record: Arc::new(Record::from_line(&text)?), text })
    }
}

impl From<Line> for String {
    fn from(line: Line) -> Self {
        line.text
    }
}

/// A run's row for lists.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    run: RunId,
    goal: String,
    workspace: PathBuf,
    model: String,
    outcome: Option<Outcome>,
    started_at: Timestamp,
    updated_at: Timestamp,
    turns: u32,
    tokens: u64,
    cost: MicroDollars,
    uncertain: Uncertain,
    elapsed: Elapsed,
}

impl From<&StoredRun> for Row {
    fn from(run: &StoredRun) -> Self {
        Self {
            run: run.run,
            goal: run.goal.clone(),
            workspace: run.workspace.clone(),
            model: run.model.clone(),
            outcome: run.outcome.clone(),
            started_at: run.started_at,
            updated_at: run.updated_at,
            turns: run.turns,
            tokens: run.tokens,
            cost: run.cost,
            uncertain: run.uncertain,
            elapsed: run.elapsed,
        }
    }
}

impl From<Row> for StoredRun {
    fn from(row: Row) -> Self {
        Self {
            run: row.run,
            goal: row.goal,
            workspace: row.workspace,
            model: row.model,
            outcome: row.outcome,
            started_at: row.started_at,
            updated_at: row.updated_at,
            turns: row.turns,
            tokens: row.tokens,
            cost: row.cost,
            uncertain: row.uncertain,
            elapsed: row.elapsed,
            damage: None,
        }
    }
}
