//! Which requests can't be bounded, and are refused: their price or size depends on what the gateway doesn't see.

use provost_llm::WireFormat;
use serde_json::Value;

use crate::refusal::Refusal;

/// Service tiers at the listed price or below.
const TIERS: [&str; 6] = ["auto", "default", "standard", "standard_only", "flex", "on_demand"];

/// What a wire format has that can't be bounded.
struct Bounds {
    /// Members of the request that refer to something of unknown size or price.
    members: &'static [&'static str],
    /// The beginnings of types of tools that the program runs itself.
    own_tools: &'static [&'static str],
    /// The lists of messages.
    messages: &'static [&'static str],
}

impl Bounds {
    const fn of(wire: WireFormat) -> Self {
        match wire {
            WireFormat::Anthropic => Self {
                members: &["mcp_servers", "container", "speed", "models", "fallbacks"],
                own_tools: &["custom", "bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_"],
                messages: &["messages", "system"],
            },
            WireFormat::OpenaiResponses => Self {
                members: &["previous_response_id", "conversation", "prompt", "models", "fallbacks"],
                own_tools: &[
                    "function",
                    "custom",
                    "local_shell",
                    "apply_patch",
                    "computer",
                    "namespace",
                    "tool_search",
                ],
                messages: &["input"],
            },
            WireFormat::OpenaiChat => Self {
                members: &[
                    "web_search_options",
                    "audio",
                    "plugins",
                    "previous_response_id",
                    // Models that answer in place of the one that was asked.
                    "models",
                    "fallbacks",
                    // Caps of other servers' own, beside the one that is lowered.
                    "n_predict",
                    "max_new_tokens",
                    "options",
                ],
                own_tools: &["function", "custom"],
                messages: &["messages"],
            },
            WireFormat::Gemini => Self {
                members: &["cachedContent", "cached_content"],
                own_tools: &[],
                messages: &["contents", "systemInstruction", "system_instruction"],
            },
        }
    }
}

/// Members of a message that refer to a file, an address or an earlier answer.
const REFERENCES: [&str; 6] = ["file_id", "file_url", "fileData", "file_data_uri", "fileUri", "file_uri"];
/// Members with arguments or results of tools, which have members of any name.
const OF_TOOLS: [&str; 5] = ["input", "args", "arguments", "response", "output"];

/// Refuses a request that can't be bounded.
pub(super) fn check(wire: WireFormat, request: &Value) -> Result<(), Refusal> {
    let bounds = Bounds::of(wire);
    for name in bounds.members {
        if request.get(name).is_some_and(is_set) {
            return Err(unbounded(&format!("`{name}`")));
        }
    }
    if request.get("background").and_then(Value::as_bool) == Some(true) {
        return Err(unbounded("work in the background (`background`)"));
    }
    let tiers = ["service_tier", "serviceTier"];
    let tier = tiers.iter().find_map(|name| request.get(*name)?.as_str());
    if let Some(tier) = tier.filter(|tier| !TIERS.contains(&tier.to_lowercase().as_str())) {
        return Err(unbounded(&format!("the service tier `{tier}`")));
    }
    let tools = request.get("tools").and_then(Value::as_array).into_iter().flatten();
    for tool in tools {
        check_tool(wire, &bounds, tool)?;
    }
    let mut lists = bounds.messages.iter().filter_map(|name| request.get(*name));
    lists.try_for_each(check_message)
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

fn check_tool(wire: WireFormat, bounds: &Bounds, tool: &Value) -> Result<(), Refusal> {
    if wire == WireFormat::Gemini {
        const OWN: [&str; 4] =
            ["functionDeclarations", "function_declarations", "computerUse", "computer_use"];
        let names = tool.as_object().into_iter().flat_map(|members| members.keys());
        let other = names.map(String::as_str).find(|name| !OWN.contains(name));
        return other.map_or(Ok(()), |name| Err(server_tool(name)));
    }
    let kind = tool.get("type").and_then(Value::as_str);
    let is_hosted = tool.pointer("/environment/type").and_then(Value::as_str);
    match kind {
        Some("shell") if is_hosted.is_none_or(|kind| kind == "local") => Ok(()),
        Some(kind) if !bounds.own_tools.iter().any(|own| kind.starts_with(own)) => Err(server_tool(kind)),
        Some(_) | None => Ok(()),
    }
}

fn check_message(value: &Value) -> Result<(), Refusal> {
    match value {
        Value::Array(items) => items.iter().try_for_each(check_message),
        Value::Object(members) => {
            let is = |name: &str, kind: &str| members.get(name).and_then(Value::as_str) == Some(kind);
            if is("type", "item_reference") {
                return Err(unbounded("a reference to an earlier item"));
            }
            let source = value.pointer("/source/type").and_then(Value::as_str);
            if is("type", "document") && source == Some("url") {
                return Err(unbounded("a document by its address"));
            }
            if let Some(name) = REFERENCES.iter().find(|name| members.get(**name).is_some_and(is_set)) {
                return Err(unbounded(&format!("a file by its id or address (`{name}`)")));
            }
            let mut inner = members.iter().filter(|(name, _)| !OF_TOOLS.contains(&name.as_str()));
            inner.try_for_each(|(_, member)| check_message(member))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn server_tool(name: &str) -> Refusal {
    unbounded(&format!("the provider's own tool `{name}`"))
}

fn unbounded(what: &str) -> Refusal {
    Refusal::bad(format!(
        "{what} can't be held to the run's budget, and the request was not sent. Turn it off in the program's settings"
    ))
}
