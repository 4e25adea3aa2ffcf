//! The cases that run in a child.

use std::path::{Path, PathBuf};

use provost_llm::WireFormat;
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;

use crate::agent::Store;
use crate::sample::Sample;
use crate::{
    agents, appends, dispatch, fold, gateway, hooks, http, mcp, observers, sessions, slots, spawn, terminal,
    turn,
};

/// One thing to measure.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Case {
    /// A run of a scripted model.
    Turn { store: Store, turns: usize },
    /// A run of a scripted model, the log in memory, with a goal that is verified once, at its end.
    TurnWithGoal { turns: usize },
    /// A conversation with a server.
    Http { client: http::Client, wire: WireFormat, calls: usize, port: u16 },
    /// A conversation with a server, of an agent with tools of an MCP server.
    Mcp { shown: mcp::ShownTools, calls: usize, port: u16 },
    /// Appends of many sessions at once.
    Appends { store: Store, sessions: usize, seconds: u64 },
    /// A log read and folded.
    Fold { work: fold::Work, entries: usize, log: PathBuf },
    /// Questions to hooks.
    Dispatch { hooks: usize, matcher: dispatch::Matcher, questions: usize },
    /// Scripts that are hooks.
    Hooks { work: hooks::Work, hooks: usize },
    /// Sessions that wait for a model.
    Sessions { model: sessions::SlowModel, sessions: usize, port: u16 },
    /// Slots that are taken and released.
    Slots { agents: usize, busy: slots::Busy, pairs: usize },
    /// A tree of agents that call a server.
    Agents { store: Store, size: agents::Size, port: u16 },
    /// Programs that are started.
    Spawn { guard: spawn::Guard, programs: usize },
    /// Programs at a terminal.
    Terminal(terminal::Work),
    /// Requests and streams through the gateway, and directly.
    Gateway { work: gateway::Work, ways: gateway::Ways },
    /// Events sent to observers.
    Observers { rate: observers::EventRate, observers: usize, events: usize },
}

impl Case {
    /// Runs it here, with its files in `dir`.
    pub(crate) fn run(&self, dir: &Path) -> anyhow::Result<Sample> {
        let mut builder = match self {
            // As `provost run` does it; the clients that it is compared with do the same.
            Self::Turn { .. }
            | Self::TurnWithGoal { .. }
            | Self::Http { .. }
            | Self::Mcp { .. }
            | Self::Dispatch { .. }
            | Self::Hooks { .. }
            | Self::Spawn { .. }
            | Self::Slots { .. } => Builder::new_current_thread(),
            Self::Appends { .. }
            | Self::Fold { .. }
            | Self::Sessions { .. }
            | Self::Agents { .. }
            | Self::Terminal(_)
            | Self::Gateway { .. }
            | Self::Observers { .. } => Builder::new_multi_thread(),
        };
        builder.enable_all().build()?.block_on(async {
            match self {
                Self::Turn { store, turns } => turn::case(*store, *turns, dir).await,
                Self::TurnWithGoal { turns } => turn::case_with_goal(*turns, dir).await,
                Self::Http { client, wire, calls, port } => {
                    http::case(*client, *wire, *calls, *port, dir).await
                }
                Self::Mcp { shown, calls, port } => mcp::case(*shown, *calls, *port, dir).await,
                Self::Appends { store, sessions, seconds } => {
                    appends::case(*store, *sessions, *seconds, dir).await
                }
                Self::Dispatch { hooks, matcher, questions } => {
                    dispatch::case(*hooks, *matcher, *questions, dir).await
                }
                Self::Hooks { work, hooks } => hooks::case(*work, *hooks, dir).await,
                Self::Spawn { guard, programs } => spawn::case(*guard, *programs, dir).await,
                Self::Terminal(work) => terminal::case(work, dir).await,
                Self::Gateway { work, ways } => gateway::case(*work, ways).await,
                Self::Slots { agents, busy, pairs } => slots::case(*agents, *busy, *pairs),
                Self::Agents { store, size, port } => agents::case(*store, *size, *port, dir).await,
                Self::Fold { work, entries, log } => fold::case(*work, *entries, log).await,
                Self::Observers { rate, observers, events } => {
                    observers::case(*rate, *observers, *events).await
                }
                Self::Sessions { model, sessions, port } => {
                    sessions::case(*model, *sessions, *port, dir).await
                }
            }
        })
    }
}
