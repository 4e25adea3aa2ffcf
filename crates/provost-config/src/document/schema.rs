//! The JSON Schema of a settings file.
#![expect(clippy::indexing_slicing, reason = "a JSON object indexed by a new name gets that field")]

use serde_json::{Value, json};

use super::default_text;
use crate::agent::{AGENTS_WORDS, Agent};
use crate::declare::{Kind, Setting, SettingDefault};
use crate::hook::{HOOKS_WORDS, Hook};
use crate::item::Item;
use crate::mcp::{MCP, MCP_WORDS, SERVER};
use crate::named::{MODEL, MODELS, MODELS_WORDS, PROVIDER, PROVIDERS, PROVIDERS_WORDS};
use crate::stop_hook::{STOP_HOOKS_WORDS, StopHook};
use crate::table::{SECTIONS, settings};

/// The JSON Schema of a settings file.
pub fn schema() -> Value {
    let mut root = object();
    for (section, words) in SECTIONS {
        let table = section.split('.').fold(&mut root, |table, name| {
            let tables = &mut table["properties"];
            if tables.get(name).is_none() {
                tables[name] = object();
            }
            &mut tables[name]
        });
        table["description"] = json!(words);
        for setting in settings().filter(|setting| setting.section == *section) {
            table["properties"][setting.name] = setting_schema(setting);
        }
    }
    root["properties"][PROVIDERS] = named_schema(PROVIDERS_WORDS, PROVIDER);
    root["properties"][MODELS] = named_schema(MODELS_WORDS, MODEL);
    root["properties"][MCP] = named_schema(MCP_WORDS, SERVER);
    root["properties"][StopHook::LIST] = list_schema::<StopHook>(STOP_HOOKS_WORDS);
    root["properties"][Agent::LIST] = list_schema::<Agent>(AGENTS_WORDS);
    // A list of hooks, or a table of what is to be imported.
    let table = root["properties"][Hook::LIST].take();
    root["properties"][Hook::LIST] = json!({ "anyOf": [list_schema::<Hook>(HOOKS_WORDS), table] });
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("provost.toml");
    root
}

fn object() -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": {} })
}

fn named_schema<T>(words: &str, fields: &[Setting<T>]) -> Value {
    let mut table = object();
    for field in fields {
        table["properties"][field.name] = setting_schema(field);
    }
    json!({ "type": "object", "description": words, "additionalProperties": table })
}

fn list_schema<T: Item>(words: &str) -> Value {
    let mut item = object();
    for field in T::FIELDS {
        let table = match field.section {
            "" => &mut item,
            section => {
                let within = &mut item["properties"][section];
                if within.is_null() {
                    *within = object();
                }
                within
            }
        };
        table["properties"][field.name] = setting_schema(field);
    }
    let required = T::FIELDS.iter().filter(|field| matches!(field.default, SettingDefault::Required));
    item["required"] = required.map(|field| field.name).collect();
    json!({ "type": "array", "description": words, "items": item })
}

fn setting_schema<T>(setting: &Setting<T>) -> Value {
    let mut schema = match setting.kind {
        Kind::Line(_) => json!({ "type": "string", "minLength": 1 }),
        Kind::Text(_) => json!({ "type": "string" }),
        Kind::Words(_) => json!({ "type": "string", "pattern": "\\S" }),
        Kind::Fraction(_) => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Kind::Count { min, max: u64::MAX, .. } => json!({ "type": "integer", "minimum": min }),
        Kind::Count { min, max, .. } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Money(_) => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Kind::Time(_) => json!({ "type": "string", "examples": ["2h 30m"] }),
        Kind::Address(_) => json!({ "type": "string", "pattern": "^https?://" }),
        Kind::Variable(_) => json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }),
        Kind::Folder(_) => json!({ "type": "string" }),
        Kind::Truth(_) => json!({ "type": "boolean" }),
        Kind::Price(_) => json!({ "type": "number", "minimum": 0 }),
        Kind::Choice { of, .. } => json!({ "enum": of }),
        Kind::Checked(_) => json!({ "type": "string", "minLength": 1 }),
        Kind::List(_) => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Names { max, .. } => {
            json!({ "type": "array", "items": { "type": "string", "minLength": 1 }, "minItems": 1, "maxItems": max })
        }
        Kind::Texts(_) => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
    };
    schema["description"] = json!(format!("{} {}", setting.words, default_text(setting)));
    if let SettingDefault::Is(default) = setting.default
        && let Ok(default) = default.parse::<toml::Value>()
    {
        schema["default"] = json!(default);
    }
    schema
}
