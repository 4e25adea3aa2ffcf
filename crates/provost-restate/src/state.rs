//! The state of a run's object, and how it is read and written.
//!
//! Each request reads the head, and of each actor that decides two keys more. Which keys it reads, and what it writes
//! and sends, follows from the request and from what it has read: an attempt that is interrupted is repeated by the
//! engine and must ask for the same things in the same order. Everything else (pages of logs, states in memory) is read
//! without the engine.

use std::collections::{BTreeMap, BTreeSet};

use provost_engine::{Effect, EffectRequest};
use provost_event::{ActorKey, Elapsed, RunId, Seq, SessionId, Timestamp};
use restate_sdk::context::{ContextReadState as _, ObjectContext};
use restate_sdk::errors::TerminalError;
use restate_sdk::serde::Json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::pages::Pages;
use crate::payload::Payload;
use crate::wire::{Failed, IndexEntry, IndexPhase, Owner};

pub(crate) const HEAD: &str = "head";
pub(crate) const ROW: &str = "row";

/// An actor within its run: an agent's number; `None` for the run's own.
pub(crate) type Part = Option<u32>;

pub(crate) const fn part_of(actor: ActorKey) -> Part {
    match actor {
        ActorKey::Run(_) => None,
        ActorKey::Session(session) => Some(session.agent),
    }
}

pub(crate) fn actor_of(run: RunId, part: Part) -> ActorKey {
    part.map_or(ActorKey::Run(run), |agent| ActorKey::Session(SessionId { run, agent }))
}

pub(crate) fn log_key(part: Part) -> String {
    part.map_or_else(|| "log:run".to_owned(), |agent| format!("log:{agent}"))
}

pub(crate) fn open_key(part: Part) -> String {
    part.map_or_else(|| "open:run".to_owned(), |agent| format!("open:{agent}"))
}

pub(crate) fn dedup_key(actor: ActorKey, dedup: &str) -> String {
    format!("dedup:{}", blake3::hash(format!("{actor}\0{dedup}").as_bytes()).to_hex())
}

/// What every request reads: small, however long the run is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunHead {
    /// Incremented with each holder.
    pub(crate) epoch: u64,
    pub(crate) owner: Option<Owner>,
    /// Whether the last holder has given the run up itself, or none has had it.
    pub(crate) released: bool,
    /// The run's elapsed time as far as it is known.
    pub(crate) elapsed: Elapsed,
    /// The place of the last entry.
    pub(crate) position: u64,
    /// The entries of all logs, in the order in which they were decided.
    pub(crate) order: Pages,
    /// The agents that have a log.
    pub(crate) agents: BTreeSet<u32>,
    /// The actors that have open effects.
    pub(crate) open: BTreeSet<Part>,
    /// When the deadlines of open effects are looked at next.
    pub(crate) watch: Option<Timestamp>,
    pub(crate) label: Option<String>,
    /// The last worker that could not work on it, since the last holder.
    #[serde(default)]
    pub(crate) failed: Option<Failed>,
    /// When the run was started, and how it stands; absent before.
    pub(crate) started: Option<(Timestamp, IndexPhase)>,
    /// Its key in the index.
    pub(crate) listed: Option<String>,
}

impl Default for RunHead {
    fn default() -> Self {
        Self {
            epoch: 0,
            owner: None,
            released: true,
            elapsed: Elapsed::default(),
            position: 0,
            order: Pages::default(),
            agents: BTreeSet::new(),
            open: BTreeSet::new(),
            watch: None,
            label: None,
            failed: None,
            started: None,
            listed: None,
        }
    }
}

impl RunHead {
    /// The run as the index has it; `None` before it has started.
    pub(crate) fn index_entry(&self, run: RunId) -> Option<IndexEntry> {
        let (started_at, phase) = self.started?;
        let owner = self.owner.clone();
        Some(IndexEntry { started_at, run, phase, label: self.label.clone(), owner })
    }
}

/// The open effects of one actor.
pub(crate) type OpenEffects = BTreeMap<Seq, OpenEffect>;

/// An open effect.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OpenEffect {
    pub(crate) effect: Payload,
    /// The epoch of the holder that it was handed to.
    pub(crate) epoch: Option<u64>,
    /// The invocation that performs it.
    pub(crate) invocation: Option<String>,
    /// Of an effect that must not be performed twice: who began it.
    pub(crate) begun: Option<String>,
    /// Whether its abort was asked for while the run had no holder.
    #[serde(default)]
    pub(crate) abort: bool,
    pub(crate) kind: EffectKind,
    /// The result, if it waits for those of earlier calls: the actor has it in memory only.
    pub(crate) held: Option<Payload>,
    /// When it is overdue, once it was handed to a holder.
    pub(crate) deadline: Option<Timestamp>,
}

/// What must be known of an effect to hand it over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EffectKind {
    Timer {
        due: Timestamp,
        remaining_ms: u64,
    },
    /// It must not be performed twice; it may take so long.
    Tool {
        timeout_ms: u64,
    },
    Other,
}

impl EffectKind {
    fn of(effect: &Effect) -> Self {
        match effect {
            Effect::Timer { due, remaining_ms } => Self::Timer { due: *due, remaining_ms: *remaining_ms },
            Effect::RunTool(run) => Self::Tool { timeout_ms: run.timeout_ms },
            Effect::CallModel(_)
            | Effect::CheckStop(_)
            | Effect::Judge(_)
            | Effect::AskHooks(_)
            | Effect::MakeWorktree(_)
            | Effect::CheckWorktree(_)
            | Effect::CloseTerminal { .. } => Self::Other,
        }
    }

    pub(crate) const fn is_timer(self) -> bool {
        matches!(self, Self::Timer { .. })
    }
}

impl OpenEffect {
    pub(crate) fn new(request: &EffectRequest, effect: Payload) -> Self {
        Self {
            effect,
            epoch: None,
            invocation: None,
            begun: None,
            abort: false,
            kind: EffectKind::of(&request.effect),
            held: None,
            deadline: None,
        }
    }

    /// Whether it is certain that it wasn't begun, or that its result is kept: it isn't lost with its holder.
    pub(crate) const fn is_fresh(&self) -> bool {
        let is_unbegun =
            self.epoch.is_none() || (matches!(self.kind, EffectKind::Tool { .. }) && self.begun.is_none());
        self.held.is_some() || is_unbegun
    }
}

/// Reads a key of the object.
pub(crate) async fn get<'a, T: DeserializeOwned + 'static>(
    ctx: &'a ObjectContext<'a>,
    key: &'a str,
) -> Result<Option<T>, TerminalError> {
    Ok(ctx.get::<Json<T>>(key).await?.map(Json::into_inner))
}
