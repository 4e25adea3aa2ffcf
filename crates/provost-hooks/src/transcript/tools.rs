//! The tools of a transcript, and the calls without a result.

use std::collections::HashMap;
use std::path::PathBuf;

use provost_engine::{CallDetails, SPAWN_TOOL, WantedAgent};
use provost_event::{
    Access, AgentPolicy, CallId, Entry, LifecycleEntry, ToolCall, ToolEntry, ToolIdentity, ToolSpec,
};
use serde_json::Value;

use crate::question::value_of;

/// What a transcript must know of entries before the present one.
#[derive(Default)]
pub(super) struct KnownTools {
    pub(super) workspace: PathBuf,
    tools: Vec<ToolSpec>,
    /// Calls whose result is still to come.
    open: HashMap<CallId, OpenCall>,
}

/// A call, as a script would see it.
pub(super) struct OpenCall {
    pub(super) details: CallDetails,
    pub(super) input: Value,
}

impl KnownTools {
    /// Notes what an entry says of the tools and the workspace.
    pub(super) fn note(&mut self, entry: &Entry) {
        match entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => self.policy(&started.policy),
            Entry::Lifecycle(LifecycleEntry::AgentPolicyChanged(changed)) => self.policy(&changed.policy),
            Entry::Tool(ToolEntry::Changed(changed)) => self.tools = changed.applied_to(&self.tools),
            // Hooks may have replaced the arguments.
            Entry::Tool(ToolEntry::Started(started)) => {
                if let Some(open) = self.open.get_mut(&started.call) {
                    open.details.input.clone_from(&started.input);
                    open.input = value_of(&started.input);
                }
            }
            _ => {}
        }
    }

    fn policy(&mut self, policy: &AgentPolicy) {
        self.workspace.clone_from(&policy.workspace);
        self.tools.clone_from(&policy.tools);
    }

    /// Keeps a call until its result comes.
    pub(super) fn called(&mut self, call: &ToolCall) -> &OpenCall {
        let open = self.call(call);
        self.open.entry(call.id.clone()).insert_entry(open).into_mut()
    }

    /// The call that has its result.
    pub(super) fn finished(&mut self, call: &CallId) -> Option<OpenCall> {
        self.open.remove(call)
    }

    /// The agent's next answer: calls of the last one that have no result get none.
    pub(super) fn answered(&mut self) {
        self.open.clear();
    }

    fn call(&self, call: &ToolCall) -> OpenCall {
        let spec = self.tools.iter().find(|tool| tool.name == call.name);
        let tool = spec.map_or_else(|| ToolIdentity::unknown(&call.name), ToolSpec::identity);
        let input = value_of(&call.input);
        let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let delegates = spec.is_some_and(|spec| spec.access == Access::Delegates);
        let wanted = delegates.then(|| {
            let agent = (call.name != SPAWN_TOOL).then(|| call.name.clone());
            let name = agent.clone().unwrap_or_else(|| text("name"));
            Box::new(WantedAgent { agent, name, goal: text("goal"), priority: None, depth: 0 })
        });
        let details = CallDetails {
            call: call.id.clone(),
            tool: Box::new(tool),
            input: call.input.clone(),
            memory: None,
            why: String::new(),
            wanted,
        };
        OpenCall { details, input }
    }
}
