//! The reference page of all settings.

use std::fmt::Write as _;

use super::default_text;
use crate::agent::{AGENT, AGENTS_WORDS};
use crate::declare::{Kind, Setting, SettingDefault};
use crate::hook::{HOOK, HOOKS_WORDS};
use crate::mcp::{MCP_WORDS, SERVER};
use crate::named::{MODEL, MODELS_WORDS, PROVIDER, PROVIDERS_WORDS};
use crate::stop_hook::{STOP_HOOK, STOP_HOOKS_WORDS};
use crate::table::{SECTIONS, settings};

/// The reference page of all settings, as Markdown.
pub fn reference() -> String {
    let mut out = String::from(INTRODUCTION);
    for (section, words) in SECTIONS {
        let _ = write!(out, "\n## `[{section}]`\n\n{words}\n");
        for setting in settings().filter(|setting| setting.section == *section) {
            let flag = setting.flag.map(|flag| format!(" · flag `{flag}`")).unwrap_or_default();
            let names = setting.all_variables().into_iter().map(|name| format!("`{name}`"));
            let variables = match names.collect::<Vec<_>>() {
                none if none.is_empty() => String::new(),
                names => format!(" · variable {}", names.join(" or ")),
            };
            out.push_str(&entry(setting, &format!("{variables}{flag}")));
        }
    }
    let _ = write!(out, "\n## `[providers.NAME]`\n\n{PROVIDERS_WORDS}\n");
    for field in PROVIDER {
        let own = format!("`PROVOST_PROVIDERS_NAME_{}`", field.name.to_uppercase());
        let theirs = if field.name == "base_url" { " or `NAME_BASE_URL` of built-in ones" } else { "" };
        out.push_str(&entry(field, &format!(" · variable {own}{theirs}")));
    }
    let _ = write!(out, "\n## `[models.\"PROVIDER/MODEL\"]`\n\n{MODELS_WORDS}\n");
    for field in MODEL {
        out.push_str(&entry(field, ""));
    }
    let _ = write!(out, "\n## `[mcp.NAME]`\n\n{MCP_WORDS}\n");
    for field in SERVER {
        out.push_str(&entry(field, ""));
    }
    let _ = write!(out, "\n## `[[stop_hooks]]`\n\n{STOP_HOOKS_WORDS}\n");
    for field in STOP_HOOK {
        out.push_str(&entry(field, ""));
    }
    let _ = write!(out, "\n## `[[hooks]]`\n\n{HOOKS_WORDS}\n");
    for field in HOOK {
        out.push_str(&entry(field, ""));
    }
    let _ = write!(out, "\n## `[[agents]]`\n\n{AGENTS_WORDS}\n");
    for field in AGENT {
        out.push_str(&entry_named(&field.key(), field, ""));
    }
    out
}

const INTRODUCTION: &str = "<!-- Generated from the declaration of the settings; a test keeps it fresh. -->\n
# Settings

Each layer overrides the ones before it: built-in defaults, the user's file (`provost/config.toml` in the platform's
configuration folder), the project's file (`provost.toml` in the working directory or the nearest folder above it; or the
one that `--config` names), environment variables, flags. An empty variable counts as not set. Unknown keys and variables,
invalid values and contradictions are errors. `provost check` shows the effective settings and where they came from;
`provost init` writes a commented file; `provost.schema.json` beside this page is the JSON Schema.
";

fn entry<T>(setting: &Setting<T>, more: &str) -> String {
    entry_named(setting.name, setting, more)
}

fn entry_named<T>(name: &str, setting: &Setting<T>, more: &str) -> String {
    format!(
        "\n### `{}`\n\n{} {}\n\n{}{more} · example `{} = {}`\n",
        name,
        setting.words,
        otherwise_in_code(setting),
        kind(&setting.kind),
        name,
        setting.example,
    )
}

fn otherwise_in_code<T>(setting: &Setting<T>) -> String {
    match setting.default {
        SettingDefault::Is(value) => format!("Default: `{value}`."),
        SettingDefault::Unset(_) | SettingDefault::Required => default_text(setting),
    }
}

fn kind<T>(kind: &Kind<T>) -> String {
    match kind {
        Kind::Line(_) => "Text of one line".to_owned(),
        Kind::Text(_) | Kind::Words(_) => "Text".to_owned(),
        Kind::Fraction(_) => "Number from 0 to 1".to_owned(),
        Kind::Count { min, max: u64::MAX, .. } => format!("Whole number from {min}"),
        Kind::Count { min, max, .. } => format!("Whole number from {min} to {max}"),
        Kind::Money(_) => "US dollars".to_owned(),
        Kind::Time(_) => "Time such as `\"2h 30m\"`".to_owned(),
        Kind::Address(_) => "Address with `http://` or `https://`".to_owned(),
        Kind::Variable(_) => "Name of an environment variable".to_owned(),
        Kind::Folder(_) => "Absolute path".to_owned(),
        Kind::Truth(_) => "`true` or `false`".to_owned(),
        Kind::Price(_) => "US dollars, 0 included".to_owned(),
        Kind::Choice { of, .. } => format!("One of `\"{}\"`", of.join("\"`, `\"")),
        Kind::Checked(_) => "Text of one line".to_owned(),
        Kind::List(_) => "List of texts".to_owned(),
        Kind::Names { max, .. } => format!("List of 1 to {max} texts"),
        Kind::Texts(_) => "Table of texts".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::reference;
    use crate::{init_file, schema};

    #[test]
    fn the_committed_pages_are_fresh() {
        expect_file!["../../../../docs/settings.md"].assert_eq(&reference());
        expect_file!["../../../../docs/provost.schema.json"].assert_eq(&format!("{:#}\n", schema()));
    }

    #[test]
    fn the_committed_init_file_is_fresh() {
        expect_file!["../../../provost-cli/tests/it/init.toml"].assert_eq(&init_file(false));
    }
}
