//! The declarations as data: what can be set, for programs that list them.

use crate::agent::Agent;
use crate::declare::{Setting, SettingDefault};
use crate::hook::Hook;
use crate::item::Item;
use crate::mcp::{MCP, McpTable};
use crate::named::{MODELS, ModelTable, PROVIDERS, ProviderTable, Table};
use crate::stop_hook::StopHook;
use crate::table::settings;

/// One setting, as it is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingInfo {
    /// The list or the group of named tables whose items have it: `hooks`, `stop_hooks`, `agents`, `providers`,
    /// `models`, `mcp`; empty for a setting that stands alone.
    pub group: &'static str,
    /// The table that it stands in, such as `budget`; within an item mostly empty.
    pub section: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// Its value when it isn't set, as TOML, if it has one.
    pub default: Option<&'static str>,
    /// A value that makes sense, as TOML.
    pub example: &'static str,
    /// One or two sentences.
    pub description: &'static str,
}

impl SettingInfo {
    /// The name with its section: `budget.usd`.
    pub fn key(&self) -> String {
        if self.section.is_empty() { self.name.to_owned() } else { format!("{}.{}", self.section, self.name) }
    }
}

/// Everything that can be set, in the order of declaration.
pub fn declared() -> Vec<SettingInfo> {
    let mut all = settings().map(|setting| info("", setting)).collect::<Vec<_>>();
    all.extend(StopHook::FIELDS.iter().map(|field| info(StopHook::LIST, field)));
    all.extend(Hook::FIELDS.iter().map(|field| info(Hook::LIST, field)));
    all.extend(Agent::FIELDS.iter().map(|field| info(Agent::LIST, field)));
    all.extend(ProviderTable::FIELDS.iter().map(|field| info(PROVIDERS, field)));
    all.extend(ModelTable::FIELDS.iter().map(|field| info(MODELS, field)));
    all.extend(McpTable::FIELDS.iter().map(|field| info(MCP, field)));
    all
}

fn info<T>(group: &'static str, setting: &Setting<T>) -> SettingInfo {
    let default = match setting.default {
        SettingDefault::Is(default) => Some(default),
        SettingDefault::Unset(_) | SettingDefault::Required => None,
    };
    SettingInfo {
        group,
        section: setting.section,
        name: setting.name,
        default,
        example: setting.example,
        description: setting.words,
    }
}
