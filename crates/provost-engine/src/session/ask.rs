//! Which hooks are called when, and with what input.

use provost_event::{HookPoint, HookTrigger, HooksAsked, Outcome, Priority, Seq, SessionSource};

use super::{Call, Deciding, Phase, SessionState, Stage};
use crate::run::SPAWN_TOOL;
use crate::{CallDetails, Effect, HookCall, HookCallDetails, WantedAgent};

/// The author of the goal text in the prompt hooks.
const GOAL: &str = "goal";

impl Deciding<'_> {
    /// Calls the hooks for `about`. While the session is suspended the question is only recorded, and asked when
    /// the session is resumed.
    pub(super) fn ask(&mut self, about: HookTrigger) {
        self.commit(HooksAsked { about });
        if self.state.outcome.is_none() {
            self.open_question(self.state.head);
        }
    }

    /// Calls the hooks for the question of entry `seq`.
    pub(super) fn open_question(&mut self, seq: Seq) {
        let Some(about) = self.state.questions.get(&seq).cloned() else { return };
        let details = self.state.details(&about);
        self.step.effect(
            seq,
            Effect::AskHooks(HookCall {
                session: self.state.session,
                turn: self.state.next_turn(),
                about,
                details,
                limit_ms: self.limit_left_ms(),
            }),
        );
    }

    pub(super) fn stop_asking(&mut self) {
        let open = self.state.questions.keys().copied().collect::<Vec<_>>();
        open.into_iter().for_each(|seq| self.step.abort(seq));
    }
}

impl SessionState {
    /// The question to hooks before the next model call.
    pub(super) fn preparation(&self) -> Option<HookTrigger> {
        let call = self.counters.calls.saturating_add(1);
        let beginning = match (self.assignment.parent(), self.source) {
            (Some(_), SessionSource::Startup) => HookTrigger::Subagent,
            (_, source) => HookTrigger::Session { source },
        };
        // A goal from another agent is no prompt of a person: hooks have seen it in that agent's call.
        let is_somebodys = self.assignment.parent().is_none();
        if !self.told.session && self.assignment.has_hooks_for(&beginning) {
            Some(beginning)
        } else if is_somebodys && !self.told.goal && self.assignment.has_hook(HookPoint::PromptSubmit) {
            Some(HookTrigger::Prompt { text: self.assignment.goal().to_owned(), by: GOAL.to_owned() })
        } else if self.told.compaction_untold && self.assignment.has_hook(HookPoint::PostCompact) {
            Some(HookTrigger::Compacted)
        } else if self.told.request < call && self.assignment.has_hook(HookPoint::PreLlmRequest) {
            Some(HookTrigger::Request { call })
        } else {
            None
        }
    }

    pub(super) fn is_goal(&self, about: &HookTrigger) -> bool {
        matches!(about, HookTrigger::Prompt { text, by } if by == GOAL && text == self.assignment.goal() && !self.told.goal)
    }

    /// The open question before the session stops: to hooks, to the terminal, or about the worktree.
    pub(super) fn closing(&self) -> Option<Seq> {
        let is_closing = |about: &HookTrigger| matches!(about, HookTrigger::Closing { .. });
        let asked = self.questions.iter().find(|(_, about)| is_closing(about)).map(|(seq, _)| *seq);
        asked.or_else(|| self.terminal.question()).or_else(|| self.worktree.question())
    }

    /// Whether a message waits for hooks to accept it.
    pub(super) fn has_open_prompts(&self) -> bool {
        self.questions.values().any(|about| matches!(about, HookTrigger::Prompt { .. }))
    }

    fn details(&self, about: &HookTrigger) -> HookCallDetails {
        match about {
            HookTrigger::Session { .. }
            | HookTrigger::Subagent
            | HookTrigger::Prompt { .. }
            | HookTrigger::Compaction => HookCallDetails::None,
            HookTrigger::Request { .. } => HookCallDetails::Request {
                items: self.conversation.items(),
                input_tokens: self.conversation.last_input_tokens(),
                tool_calls: self.tool_calls_since_stop(),
            },
            HookTrigger::Call { call } | HookTrigger::Spawn { call } | HookTrigger::Approval { call } => self
                .call(call)
                .map_or(HookCallDetails::None, |call| HookCallDetails::Call(self.call_details(call))),
            HookTrigger::Result { call, .. } | HookTrigger::ChildEnd { call, .. } => {
                self.result_details(call).unwrap_or(HookCallDetails::None)
            }
            HookTrigger::Batch { .. } => HookCallDetails::Batch {
                calls: self
                    .calls
                    .iter()
                    .filter_map(|call| Some((self.call_details(call), call.finished?)))
                    .collect(),
            },
            HookTrigger::TurnEnd { .. } => HookCallDetails::Text {
                tool_calls: self.tool_calls_since_stop(),
                last_text: self.last_text().to_owned(),
            },
            HookTrigger::Closing { .. } => HookCallDetails::Text {
                tool_calls: self.counters.tool_calls,
                last_text: self.last_text().to_owned(),
            },
            HookTrigger::Compacted => {
                HookCallDetails::Compacted { summary: self.conversation.summary().to_owned() }
            }
        }
    }

    /// Tools called since the agent last ended a turn without a call, or since it began.
    const fn tool_calls_since_stop(&self) -> u32 {
        self.counters.tool_calls.saturating_sub(self.counters.tool_calls_at_stop)
    }

    fn result_details(&self, call: &provost_event::CallId) -> Option<HookCallDetails> {
        let call = self.call(call)?;
        Some(HookCallDetails::Result { call: self.call_details(call), finished: call.finished? })
    }

    fn call_details(&self, call: &Call) -> CallDetails {
        let why = match call.stage {
            Stage::Asking(_) => self.why_ask(call),
            _ => String::new(),
        };
        let wanted = self.assignment.delegates(&call.tool).then(|| Box::new(self.wanted_agent(call)));
        let memory = self.memories.get(&call.tool).cloned();
        CallDetails {
            call: call.id.clone(),
            tool: call.tool.clone(),
            input: call.input.clone(),
            memory,
            why,
            wanted,
        }
    }

    fn wanted_agent(&self, call: &Call) -> WantedAgent {
        let said = call.input.read::<SpawnPreview>().unwrap_or_default();
        let agent = (call.tool != SPAWN_TOOL).then(|| call.tool.clone());
        let (name, goal) = (agent.clone().or(said.name).unwrap_or_default(), said.goal.unwrap_or_default());
        let priority = said.priority.filter(|_| agent.is_none());
        WantedAgent { agent, name, goal, priority, depth: self.assignment.depth().saturating_add(1) }
    }

    /// The trigger for hooks on an outcome like this, if any is configured.
    pub(super) fn closing_trigger(&self, outcome: &Outcome) -> Option<HookTrigger> {
        let about = HookTrigger::Closing { outcome: outcome.clone() };
        // Hooks run in the session's folder.
        let has_begun = self.phase != Phase::New && !self.worktree.is_missing();
        (has_begun && self.assignment.has_hooks_for(&about)).then_some(about)
    }
}

/// The agent that a call requests, as far as its arguments are valid.
#[derive(Debug, Default, serde::Deserialize)]
struct SpawnPreview {
    goal: Option<String>,
    name: Option<String>,
    priority: Option<Priority>,
}
