//! Names of the conventions (OpenTelemetry's for generative AI), and Provost's own where there are none.

use provost_event::{AsideCall, ErrorClass, RetryCause, SessionId, StopReason};
use serde::Serialize;

pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub(crate) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(crate) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(crate) const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(crate) const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
pub(crate) const TOKEN_TYPE: &str = "gen_ai.token.type";
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(crate) const TOOL_CALL: &str = "gen_ai.tool.call.id";
pub(crate) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const TOOL_RESULT: &str = "gen_ai.tool.call.result";
pub(crate) const AGENT_ID: &str = "gen_ai.agent.id";
pub(crate) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(crate) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(crate) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(crate) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(crate) const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
pub(crate) const ERROR_TYPE: &str = "error.type";
pub(crate) const HTTP_STATUS: &str = "http.response.status_code";
pub(crate) const RUN: &str = "provost.run.id";
pub(crate) const GOAL: &str = "provost.goal";
pub(crate) const GOAL_FINDING: &str = "provost.goal.finding";
pub(crate) const GOAL_CONFIDENCE: &str = "provost.goal.confidence";
pub(crate) const GOAL_ROUNDS: &str = "provost.goal.rounds";
pub(crate) const GOAL_TRIGGER: &str = "provost.goal.trigger";
pub(crate) const GOAL_GENERATION: &str = "provost.goal.generation";
pub(crate) const GOAL_REASONING: &str = "provost.goal.reasoning";
pub(crate) const GOAL_ACHIEVED: &str = "provost.goal.achieved";
pub(crate) const GOAL_STALE: &str = "provost.goal.stale";
pub(crate) const COST: &str = "provost.cost_usd";
pub(crate) const OUTCOME: &str = "provost.outcome";
pub(crate) const OUTCOME_REASON: &str = "provost.outcome.reason";
pub(crate) const UNFINISHED: &str = "provost.unfinished";
pub(crate) const TURN: &str = "provost.turn";
pub(crate) const ATTEMPT: &str = "provost.attempt";
pub(crate) const PURPOSE: &str = "provost.purpose";
/// The name of a configured sub-agent.
pub(crate) const AGENT_KIND: &str = "provost.agent.kind";
pub(crate) const CHAIN: &str = "provost.chain.id";
pub(crate) const CHAIN_PARENT: &str = "provost.chain.parent";
pub(crate) const CHAIN_DEPTH: &str = "provost.chain.depth";

pub(crate) const CHAT: &str = "chat";
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";
pub(crate) const INVOKE_AGENT: &str = "invoke_agent";

/// The providers whose names in the conventions differ from those in Provost's settings.
const PROVIDERS: &[(&str, &str)] =
    &[("gemini", "gcp.gemini"), ("mistral", "mistral_ai"), ("xai", "x_ai"), ("openai-chat", "openai")];

/// A model as the conventions name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelName {
    pub(crate) provider: String,
    pub(crate) model: String,
}

impl ModelName {
    /// From a policy's name: `PROVIDER/MODEL`, `script:FILE`, `record:FILE=MODEL`, `replay:FILE`. Of a file only
    /// its last component is used. `None` for an empty name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let name = match name.strip_prefix("record:") {
            Some(recorded) => recorded.split_once('=').map_or(recorded, |(_, model)| model),
            None => name,
        };
        for kind in ["script", "replay"] {
            if let Some(path) = name.strip_prefix(kind).and_then(|rest| rest.strip_prefix(':')) {
                let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
                return Some(Self { provider: kind.to_owned(), model: file.to_owned() });
            }
        }
        let (provider, model) = name.split_once('/').unwrap_or(("", name));
        let known = PROVIDERS.iter().find(|(ours, _)| *ours == provider).map(|(_, theirs)| *theirs);
        let provider = known.unwrap_or(if provider.is_empty() { "_OTHER" } else { provider });
        (!model.is_empty()).then(|| Self { provider: provider.to_owned(), model: model.to_owned() })
    }
}

/// An agent's name: the root has a fixed one, the others have numbers.
pub(crate) fn agent_name(session: SessionId) -> String {
    if session.agent == 0 { "root".to_owned() } else { format!("agent-{}", session.agent) }
}

/// The stop reason in the conventions' terms.
pub(crate) const fn finish_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn | StopReason::Commentary => "stop",
        StopReason::ToolUse => "tool_calls",
        StopReason::OutputCap => "length",
        StopReason::Refusal => "content_filter",
    }
}

/// The kind of failure that caused a retry.
pub(crate) fn retry_error(cause: &RetryCause) -> String {
    match cause {
        RetryCause::Failed { class, .. } => word(class),
        RetryCause::EmptyAnswer => "empty_answer".to_owned(),
        RetryCause::Interrupted => "interrupted".to_owned(),
        RetryCause::Compacted => word(&ErrorClass::ContextTooLong),
        RetryCause::UselessSummary { .. } => "useless_summary".to_owned(),
    }
}

/// The kind of failure that left an agent without a final summary. The log only has its message.
pub(crate) fn final_summary_error(call: &AsideCall) -> &'static str {
    if call.model.is_empty() { "_OTHER" } else { "empty_answer" }
}

/// The name of a value without fields, as the log has it.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "_OTHER".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::ModelName;

    fn check(name: &str, provider: &str, model: &str) {
        let expected = ModelName { provider: provider.to_owned(), model: model.to_owned() };
        assert_eq!(ModelName::of(name), Some(expected), "{name}");
    }

    #[test]
    fn names_of_models_lead_to_the_conventions_provider() {
        check("anthropic/claude-x", "anthropic", "claude-x");
        check("openrouter/meta/llama", "openrouter", "meta/llama");
        check("gemini/g-1", "gcp.gemini", "g-1");
        check("xai/g", "x_ai", "g");
        check("record:/home/user/tape=mistral/m", "mistral_ai", "m");
        check("replay:/home/user/tape.jsonl", "replay", "tape.jsonl");
        check("script:/home/user/a/fix.yaml", "script", "fix.yaml");
        check("bare", "_OTHER", "bare");
        assert_eq!(ModelName::of(""), None);
    }
}
