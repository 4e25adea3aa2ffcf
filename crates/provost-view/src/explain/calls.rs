//! The tool calls of a session: which there are at present, and how many there were of each tool.

use provost_engine::own_call;
use provost_event::{
    AgentPolicy, Block, CallId, ConversationEntry, Entry, GateEntry, ToolCall, ToolEntry, ToolFinished,
    ToolIdentity, ToolSpec,
};

/// Calls of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Calls that the agent asked for.
    pub(super) made: u64,
    /// Calls that the permissions decided on.
    pub(super) ruled: u64,
    /// Calls that were run.
    pub(super) run: u64,
    /// Calls that were run and failed.
    pub(super) failed: u64,
}

/// The calls of a session by tool. Tools that the agent doesn't have are no tools.
pub(super) struct Calls {
    tools: Vec<(ToolIdentity, Counts)>,
    specs: Vec<ToolSpec>,
    present: Vec<Present>,
}

struct Present {
    call: ToolCall,
    is_running: bool,
}

impl Calls {
    pub(super) fn new(policy: &AgentPolicy) -> Self {
        let tools = policy.tools.iter().map(|tool| (tool.identity(), Counts::default()));
        Self { tools: tools.collect(), specs: policy.tools.clone(), present: Vec::new() }
    }

    pub(super) fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Conversation(ConversationEntry::AssistantMessage(answer)) => {
                self.asked_for(&answer.content)
            }
            Entry::Gate(GateEntry::PermissionDecided(decided)) => {
                self.count(&decided.call, |counts| counts.ruled += 1)
            }
            Entry::Tool(ToolEntry::Started(started)) => {
                if let Some(present) = self.present.iter_mut().find(|one| one.call.id == started.call) {
                    present.is_running = true;
                }
            }
            Entry::Tool(ToolEntry::Finished(finished)) => self.finished(finished),
            _ => {}
        }
    }

    fn asked_for(&mut self, content: &[Block]) {
        self.present.clear();
        for block in content {
            let Block::ToolCall(call) = block else { continue };
            let own = own_call(call, &self.specs);
            let call = ToolCall { name: own.tool, input: own.input, ..call.clone() };
            self.present.push(Present { call: call.clone(), is_running: false });
            self.count(&call.id, |counts| counts.made += 1);
        }
    }

    fn finished(&mut self, finished: &ToolFinished) {
        let was_run = self.present.iter().any(|one| one.call.id == finished.call && one.is_running);
        self.count(&finished.call, |counts| {
            counts.run += u64::from(was_run);
            counts.failed += u64::from(was_run && finished.status.is_error());
        });
    }

    fn count(&mut self, call: &CallId, count: impl FnOnce(&mut Counts)) {
        let Some(present) = self.present.iter().find(|one| one.call.id == *call) else { return };
        if let Some((_, counts)) = self.tools.iter_mut().find(|(tool, _)| tool.name == present.call.name) {
            count(counts);
        }
    }

    /// A call of the present answer.
    pub(super) fn present(&self, id: &CallId) -> Option<&ToolCall> {
        self.present.iter().map(|one| &one.call).find(|call| call.id == *id)
    }

    /// The calls of the tools that `is_meant` selects, summed up.
    pub(super) fn of(&self, is_meant: impl Fn(&ToolIdentity) -> bool) -> Counts {
        let meant = self.tools.iter().filter(|(tool, _)| is_meant(tool));
        meant.fold(Counts::default(), |sum, (_, counts)| Counts {
            made: sum.made + counts.made,
            ruled: sum.ruled + counts.ruled,
            run: sum.run + counts.run,
            failed: sum.failed + counts.failed,
        })
    }

    /// The tools that `is_meant` selects.
    pub(super) fn tools(&self, is_meant: impl Fn(&ToolIdentity) -> bool) -> Vec<&ToolIdentity> {
        self.tools.iter().map(|(tool, _)| tool).filter(|tool| is_meant(tool)).collect()
    }

    /// Those tools in words: `shell`, `read_file or write_file`; `tool` where it may be any.
    pub(super) fn in_words(&self, is_meant: impl Fn(&ToolIdentity) -> bool) -> String {
        let meant = self.tools(is_meant);
        match meant.as_slice() {
            [] => "tool".to_owned(),
            all if all.len() == self.tools.len() => "tool".to_owned(),
            some => some.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(" or "),
        }
    }
}
