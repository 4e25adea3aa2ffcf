//! Which hooks are asked about a tool call, by their matchers and conditions. Nothing is run.

use std::collections::HashMap;
use std::sync::Arc;

use provost_engine::{CallDetails, HookCall, HookCallDetails};
use provost_event::{AgentPolicy, HookPoint, HookPolicy, HookTrigger, SessionId, ToolCall, ToolIdentity};
use provost_harness::{HookAgent, HookPrograms as _, HookQuestion, HookQuestionTrigger, SystemClock};
use provost_hooks::{ProgramHooks, ProgramHooksOptions};
use provost_process::Confinement;

/// The hook points that are about one call, before it is made or after.
const ABOUT_A_CALL: [HookPoint; 5] = [
    HookPoint::PreToolCall,
    HookPoint::Approval,
    HookPoint::PostToolCall,
    HookPoint::PostToolSuccess,
    HookPoint::PostToolFailure,
];

/// Compares hooks with tool calls.
pub struct HookMatching(ProgramHooks);

impl Default for HookMatching {
    fn default() -> Self {
        Self(ProgramHooks::new(ProgramHooksOptions {
            clock: Arc::new(SystemClock),
            spill: None,
            header_env: HashMap::new(),
            redactor: Arc::default(),
            extra_env: Vec::new(),
        }))
    }
}

impl HookMatching {
    /// Whether a hook is about single tool calls.
    #[must_use]
    pub fn is_about_calls(hook: &HookPolicy) -> bool {
        ABOUT_A_CALL.contains(&hook.point)
    }

    /// Whether `hook`, which is about single calls, would be asked about a call of `agent`. One whose matcher or
    /// condition can't be read is always asked, and reports that.
    #[must_use]
    pub fn wants(
        &self,
        hook: &HookPolicy,
        (session, agent): (SessionId, &AgentPolicy),
        call: &ToolCall,
    ) -> bool {
        let known = agent.tools.iter().find(|tool| tool.name == call.name);
        let tool = known.map_or_else(|| ToolIdentity::unknown(&call.name), provost_event::ToolSpec::identity);
        let details = CallDetails {
            call: call.id.clone(),
            tool: Box::new(tool),
            input: call.input.clone(),
            memory: None,
            why: String::new(),
            wanted: None,
        };
        let about = HookTrigger::Call { call: call.id.clone(), proposer: None };
        let details = HookCallDetails::Call(details);
        let asked =
            HookCall { session, turn: 1, about, details, limit_ms: None, shell: None, spent: Vec::new() };
        let question = HookQuestion {
            trigger: HookQuestionTrigger::HookCall(asked),
            workspace: agent.workspace.as_path().into(),
            folder: agent.workspace.as_path().into(),
            agent: HookAgent::default(),
            model: agent.model.clone(),
            transcript_path: None,
            root_transcript_path: None,
            env_file: None,
            records: Vec::new(),
            confinement: Confinement::Strongest,
            voice: None,
        };
        // What a matcher compares is the same before and after the call.
        self.0.wants(hook, &question, HookPoint::PreToolCall)
    }
}
