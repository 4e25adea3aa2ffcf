//! The tools of a transcript, and the calls without a result.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use provost_engine::{CallDetails, SPAWN_TOOL, WantedAgent, own_call};
use provost_event::{
    Access, AgentPolicy, CallId, Entry, LifecycleEntry, ToolCall, ToolEntry, ToolIdentity, ToolSpec,
};
use serde_json::Value;

use crate::question::value_of;

/// What a transcript must know of entries before the present one.
#[derive(Default)]
pub(super) struct KnownTools {
    pub(super) workspace: PathBuf,
    /// The branch of git there; empty if there is none.
    pub(super) branch: String,
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
        self.branch = branch_in(&policy.workspace).unwrap_or_default();
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

    /// The call in the form of its tool, as hooks are asked about it.
    fn call(&self, sent: &ToolCall) -> OpenCall {
        let own = own_call(sent, &self.tools);
        let call = ToolCall { name: own.tool, input: own.input, ..sent.clone() };
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

/// The branch that is checked out in `folder`, as git's own files have it.
fn branch_in(folder: &Path) -> Option<String> {
    let git = folder.ancestors().map(|folder| folder.join(".git")).find(|git| git.exists())?;
    let place = match fs::read_to_string(&git) {
        // A worktree's is a file that says where.
        Ok(text) => git.parent()?.join(text.strip_prefix("gitdir:")?.trim()),
        Err(_) => git,
    };
    let head = fs::read_to_string(place.join("HEAD")).ok()?;
    Some(head.trim().strip_prefix("ref: refs/heads/")?.to_owned())
}
