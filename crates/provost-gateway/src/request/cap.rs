//! Where each wire format has its output cap and the budget of its thinking.

use provost_llm::{OutputCapField, WireFormat};

use crate::json::{Edit, Members};

/// The least budget of thinking that Anthropic accepts.
const THINKING_MIN: u64 = 1_024;

/// Where the cap stands.
pub(super) struct CapRule {
    /// The object that it stands in, by its names; empty: the request itself.
    inside: &'static [&'static str],
    /// Its names.
    names: &'static [&'static str],
    /// The name to set if there is none.
    default: &'static str,
    /// The object with the budget of thinking, by its names.
    thinking: &'static [&'static str],
    /// The names of that budget.
    budget: &'static [&'static str],
    /// The value that turns thinking off, where a budget below the minimum isn't accepted.
    off: Option<&'static str>,
}

impl CapRule {
    pub(super) const fn of(wire: WireFormat, chat: OutputCapField) -> Self {
        let none: &[&str] = &[];
        match wire {
            WireFormat::Anthropic => Self {
                inside: none,
                names: &["max_tokens"],
                default: "max_tokens",
                thinking: &["thinking"],
                budget: &["budget_tokens"],
                off: Some(r#"{"type":"disabled"}"#),
            },
            WireFormat::OpenaiResponses => Self {
                inside: none,
                names: &["max_output_tokens"],
                default: "max_output_tokens",
                thinking: none,
                budget: none,
                off: None,
            },
            WireFormat::OpenaiChat => Self {
                inside: none,
                names: &["max_completion_tokens", "max_tokens"],
                default: match chat {
                    OutputCapField::MaxTokens => "max_tokens",
                    OutputCapField::MaxCompletionTokens => "max_completion_tokens",
                },
                thinking: none,
                budget: none,
                off: None,
            },
            WireFormat::Gemini => Self {
                inside: &["generationConfig", "generation_config"],
                names: &["maxOutputTokens", "max_output_tokens"],
                default: "maxOutputTokens",
                thinking: &["thinkingConfig", "thinking_config"],
                budget: &["thinkingBudget", "thinking_budget"],
                off: None,
            },
        }
    }

    /// The cap that a request has. Where it stands under two names, the higher one counts.
    pub(super) fn cap(&self, members: &Members<'_>) -> Result<Option<u32>, serde_json::Error> {
        let Some(inside) = self.object(members)? else { return Ok(None) };
        let given = self.names.iter().filter_map(|name| inside.get(name)?.trim().parse::<u64>().ok());
        Ok(given.max().map(|cap| u32::try_from(cap).unwrap_or(u32::MAX)))
    }

    /// The changes that lower the cap to `cap`, with the budget of thinking below it.
    pub(super) fn lowered(&self, members: &Members<'_>, cap: u32) -> Vec<Edit> {
        let Ok(inside) = self.object(members) else { return Vec::new() };
        let Some(inside) = inside else {
            let name = self.inside.first().copied().unwrap_or_default();
            return vec![members.set(name, &format!("{{\"{}\":{cap}}}", self.default))];
        };
        let at = self.inside_text(members).map_or(0, |text| members.place(text));
        let text = cap.to_string();
        let present = self.names.iter().filter(|name| inside.get(name).is_some()).collect::<Vec<_>>();
        let mut edits = present.iter().map(|name| inside.set(name, &text).within(at)).collect::<Vec<_>>();
        if present.is_empty() {
            edits.push(inside.set(self.default, &text).within(at));
        }
        edits.extend(self.less_thinking(&inside, cap).map(|edit| edit.within(at)));
        edits
    }

    fn inside_text<'t>(&self, members: &Members<'t>) -> Option<&'t str> {
        members.first(self.inside).map(|(_, text)| text).filter(|text| text.starts_with('{'))
    }

    /// The object that the cap stands in; `None` if it is absent.
    fn object<'t>(&self, members: &'t Members<'t>) -> Result<Option<Members<'t>>, serde_json::Error> {
        if self.inside.is_empty() {
            return Ok(Some(members.copied()));
        }
        self.inside_text(members).map(Members::of).transpose()
    }

    /// The change that brings the budget of thinking below the cap, if it isn't.
    fn less_thinking(&self, inside: &Members<'_>, cap: u32) -> Option<Edit> {
        let (name, text) = inside.first(self.thinking)?;
        let thinking = Members::of(text).ok()?;
        let (field, budget) = thinking.first(self.budget)?;
        let budget = budget.trim().parse::<u64>().ok()?;
        let most = u64::from(cap) - u64::from(cap) / 4;
        if budget < most {
            return None;
        }
        match self.off {
            Some(off) if most < THINKING_MIN => Some(inside.set(name, off)),
            _ => Some(thinking.set(field, &most.to_string()).within(inside.place(text))),
        }
    }
}
