//! A model's capabilities by its name, and its thinking setting.

use provost_event::Effort;
use provost_harness::ModelRequest;
use serde::Serialize;

use crate::Reasoning;

/// A minimum that every model with a thinking budget accepts, unless thinking is off (ai.google.dev, "Thinking":
/// Flash-Lite has the highest minimum, Flash and Flash-Lite the lowest maximum).
const BUDGET_MIN: u32 = 512;
const BUDGET_MAX: u32 = 24_576;
/// The minimum of models that can't turn thinking off.
const BUDGET_LEAST: u32 = 128;
/// Flash models since generation 3 with minimal thinking; all Flash-Lite ones have it. Others refuse it.
const MINIMAL: [&str; 3] = ["gemini-3-flash", "gemini-3.5-flash", "gemini-3.6-flash"];

/// The thinking setting.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThinkingConfig {
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
}

impl ThinkingConfig {
    /// `None` for a model that isn't known to think: one that doesn't refuses the setting.
    pub(super) fn of(request: &ModelRequest<'_>, model: &str, reasoning: Option<Reasoning>) -> Option<Self> {
        let silent = Self { include_thoughts: true, thinking_budget: None, thinking_level: None };
        if reasoning == Some(Reasoning::None) {
            return None;
        }
        let Some(effort) = request.effort else { return reasoning.map(|_| silent) };
        let by_name = if generation(model).is_some_and(|generation| generation < 3) {
            Reasoning::Budget
        } else {
            Reasoning::Effort
        };
        Some(match reasoning.unwrap_or(by_name) {
            Reasoning::Budget => {
                let thinking_budget = Some(budget(effort, model, request.output_tokens_max));
                Self { thinking_budget, ..silent }
            }
            Reasoning::Effort => Self { thinking_level: Some(level(effort, model)), ..silent },
            Reasoning::None => return None,
        })
    }
}

/// The thinking budget, at most half of the answer's cap, which includes thoughts.
fn budget(effort: Effort, model: &str, output_tokens_max: u32) -> u32 {
    let wanted = match effort {
        Effort::Minimal if model.contains("flash") => return 0,
        Effort::Minimal => return BUDGET_LEAST,
        Effort::Low => 4 * 1024,
        Effort::Medium => 16 * 1024,
        Effort::High | Effort::Xhigh | Effort::Max => BUDGET_MAX,
    };
    wanted.min(output_tokens_max / 2).max(BUDGET_MIN)
}

fn level(effort: Effort, model: &str) -> &'static str {
    let can_be_minimal = model.contains("flash-lite") || MINIMAL.iter().any(|known| model.contains(known));
    match effort {
        Effort::Minimal if can_be_minimal => "MINIMAL",
        Effort::Minimal | Effort::Low => "LOW",
        // The first Pro model of its generation has no level in between.
        Effort::Medium if model.contains("gemini-3-pro") => "HIGH",
        Effort::Medium => "MEDIUM",
        Effort::High | Effort::Xhigh | Effort::Max => "HIGH",
    }
}

/// Whether the model's generation requires a seal on each first call, and accepts pictures in a tool's result.
/// `-latest` names are of the newest generation.
pub(super) fn is_since_3(model: &str, reasoning: Option<Reasoning>) -> bool {
    reasoning != Some(Reasoning::Budget)
        && match generation(model) {
            Some(generation) => generation >= 3,
            None => model.contains("gemini-") && model.ends_with("-latest"),
        }
}

/// The `3` of `gemini-3.1-pro`, anywhere in a gateway's name.
fn generation(model: &str) -> Option<u32> {
    let (_, rest) = model.rsplit_once("gemini-")?;
    let digits =
        rest.find(|letter: char| !letter.is_ascii_digit()).map_or(Some(rest), |end| rest.get(..end))?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::is_since_3;
    use crate::Reasoning;

    #[track_caller]
    fn check(model: &str, expected: bool) {
        assert_eq!(is_since_3(model, None), expected, "{model}");
        assert!(!is_since_3(model, Some(Reasoning::Budget)), "{model}");
    }

    #[test]
    fn a_models_generation_is_in_its_name() {
        check("gemini-3-pro-preview", true);
        check("models/gemini-3.1-flash-lite", true);
        check("google/gemini-12-pro", true);
        check("gemini-4", true);
        check("gemini-flash-latest", true);
        check("gemini-2.5-pro", false);
        check("gemini-1.5-flash-latest", false);
        check("gemini-pro", false);
        check("gemma-3-27b-it", false);
        check("claude-latest", false);
        check("", false);
    }
}
