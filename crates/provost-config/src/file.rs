//! One settings file: looks up each key, hands each value to its setting, and collects all problems.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::Loading;
use super::agent::Agent;
use super::declare::{From, Setting, SettingDefault};
use super::errors::{Problem, Source, Spot};
use super::hook::Hook;
use super::item::{Item, Objection};
use super::mcp::{MCP, McpTable};
use super::named::{self, MODELS, ModelTable, PROVIDERS, ProviderTable, Table};
use super::nearest::{advice, fields, nearest};
use super::stop_hook::StopHook;
use super::table::{SECTIONS, settings};
use super::value::Raw;

/// A file and its origin.
pub(crate) struct File<'a> {
    /// Its name for people.
    pub name: &'a str,
    /// What is in it.
    pub text: &'a str,
    /// Settings that it may have.
    pub from: From,
    /// Where the user would set what a project may not.
    pub user_file: &'a str,
}

impl File<'_> {
    /// Takes all valid settings of the file, and notes all problems.
    pub(crate) fn load(&self, loading: &mut Loading) {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            let span = error.span().unwrap_or_default();
            loading.problems.push(self.problem(&span, "", format!("not TOML: {}", error.message())));
        }
        if errors.is_empty() {
            self.table("", table.get_ref(), loading);
        }
    }

    fn table(&self, section: &str, table: &DeTable<'_>, loading: &mut Loading) {
        for (name, value) in table {
            let key = if section.is_empty() {
                name.get_ref().to_string()
            } else {
                format!("{section}.{}", name.get_ref())
            };
            self.item(&key, &name.span(), value.get_ref(), loading);
        }
    }

    fn item(&self, key: &str, span: &Range<usize>, value: &DeValue<'_>, loading: &mut Loading) {
        if let Some(setting) = settings().find(|setting| setting.key() == key) {
            return self.setting(setting, span, value, loading);
        }
        let is_section =
            SECTIONS.iter().any(|(section, _)| *section == key || section.starts_with(&format!("{key}.")));
        match value {
            DeValue::Table(table) if is_section => self.table(key, table, loading),
            DeValue::Array(hooks) if key == StopHook::LIST => self.list::<StopHook>(hooks, loading),
            DeValue::Array(hooks) if key == Hook::LIST => self.list::<Hook>(hooks, loading),
            DeValue::Array(agents) if key == Agent::LIST => self.list::<Agent>(agents, loading),
            DeValue::Table(tables) if key == PROVIDERS => self.named::<ProviderTable>(tables, loading),
            DeValue::Table(tables) if key == MODELS => self.named::<ModelTable>(tables, loading),
            DeValue::Table(tables) if key == MCP => self.named::<McpTable>(tables, loading),
            _ if [StopHook::LIST, Hook::LIST, Agent::LIST].contains(&key) => {
                let what = format!("must be a list: write [[{key}]] on a line of its own, once for each");
                loading.problems.push(self.problem(span, key, what));
            }
            _ if is_section || [PROVIDERS, MODELS, MCP].contains(&key) => {
                let problem =
                    self.problem(span, key, format!("must be a table: write [{key}] on a line of its own"));
                loading.problems.push(problem);
            }
            _ => loading.problems.push(Problem { remedy: advice(key), ..self.problem(span, key, unknown()) }),
        }
    }

    fn named<T: Table>(&self, tables: &DeTable<'_>, loading: &mut Loading) {
        for (name, value) in tables {
            let (span, key) = (name.span(), named::key(T::SECTION, name.get_ref(), ""));
            match value.get_ref() {
                _ if let Some(what) = T::objection(name.get_ref()) => {
                    loading.problems.push(self.problem(&span, &key, what.to_owned()));
                }
                DeValue::Table(fields) => self.named_fields::<T>(name.get_ref(), fields, loading),
                _ => {
                    let what = format!("must be a table: write [{key}] on a line of its own");
                    loading.problems.push(self.problem(&span, &key, what));
                }
            }
        }
    }

    fn named_fields<T: Table>(&self, name: &str, fields: &DeTable<'_>, loading: &mut Loading) {
        for (field, value) in fields {
            let (span, key) = (field.span(), named::key(T::SECTION, name, field.get_ref()));
            let problem = |what: String, remedy| Problem { remedy, ..self.problem(&span, &key, what) };
            match T::FIELDS.iter().find(|known| known.name == field.get_ref()) {
                None => loading.problems.push(problem(unknown(), field_advice::<T>(field.get_ref()))),
                Some(known) if self.from == From::Anywhere && known.from == From::User => {
                    let what = "a project's file may not set this".to_owned();
                    loading.problems.push(problem(what, format!("set it in {}", self.user_file)));
                }
                Some(known) => {
                    loading.take_named(name, known, Raw::Toml(value.get_ref()), self.source(&span));
                }
            }
        }
    }

    fn setting(
        &self,
        setting: &'static Setting<super::Settings>,
        span: &Range<usize>,
        value: &DeValue<'_>,
        loading: &mut Loading,
    ) {
        if self.from == From::Anywhere && setting.from == From::User {
            let what = "a project's file may not set this".to_owned();
            let variables = setting.all_variables();
            let variable = variables.first().map(|name| format!(", or as {name}")).unwrap_or_default();
            let remedy = format!("set it in {}{variable}", self.user_file);
            return loading.problems.push(Problem { remedy, ..self.problem(span, &setting.key(), what) });
        }
        for (span, raw) in parts(setting, span, value) {
            loading.take(setting, raw, self.source(&span));
        }
    }

    fn list<T: Item>(&self, items: &DeArray<'_>, loading: &mut Loading) {
        for item in items {
            match item.get_ref() {
                DeValue::Table(table) => self.list_item::<T>(&item.span(), table, loading),
                _ => {
                    let what = format!("each must be a table with {}", T::LEAST);
                    loading.problems.push(self.problem(&item.span(), T::LIST, what));
                }
            }
        }
    }

    fn list_item<T: Item>(&self, span: &Range<usize>, table: &DeTable<'_>, loading: &mut Loading) {
        let mut item = T::at(self.source(span));
        let mut spans = BTreeMap::new();
        let wrong_before = loading.problems.len();
        for (name, value) in table {
            let section = T::FIELDS.iter().map(|field| field.section).find(|of| *of == name.get_ref());
            match (section, value.get_ref()) {
                (Some(section), DeValue::Table(fields)) => {
                    fields.iter().for_each(|pair| self.field(&mut item, section, pair, loading));
                }
                _ => {
                    spans.insert(name.get_ref().to_string(), name.span());
                    self.field(&mut item, "", (name, value), loading);
                }
            }
        }
        for field in T::FIELDS {
            if matches!(field.default, SettingDefault::Required) && table.get(field.name).is_none() {
                let what = format!("`{}` is missing", field.name);
                let remedy = example_within(field);
                loading.problems.push(Problem { remedy, ..self.problem(span, T::LIST, what) });
            }
        }
        if loading.problems.len() > wrong_before {
            return;
        }
        let objections = item.objections();
        if objections.is_empty() {
            return item.put(&mut loading.settings);
        }
        for Objection { field, what, remedy } in objections {
            let (span, key) = match spans.get(field) {
                Some(span) => (span, format!("{}.{field}", T::LIST)),
                None => (span, T::LIST.to_owned()),
            };
            loading.problems.push(Problem { remedy, ..self.problem(span, &key, what) });
        }
    }

    fn field<T: Item>(
        &self,
        item: &mut T,
        section: &str,
        (name, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>),
        loading: &mut Loading,
    ) {
        let own = if section.is_empty() {
            name.get_ref().to_string()
        } else {
            format!("{section}.{}", name.get_ref())
        };
        let key = format!("{}.{own}", T::LIST);
        let span = name.span();
        let Some(field) = T::FIELDS.iter().find(|field| field.key() == own) else {
            let (what, remedy) = no_field::<T>(&own);
            return loading.problems.push(Problem { remedy, ..self.problem(&span, &key, what) });
        };
        for (span, raw) in parts(field, &span, value.get_ref()) {
            if let Err(what) = field.take(item, raw) {
                let remedy = example_within(field);
                loading.problems.push(Problem { remedy, ..self.problem(&span, &key, what) });
            }
        }
        item.note(field.name, self.source(&span));
    }

    fn source(&self, span: &Range<usize>) -> Source {
        Source::File(Spot { from: self.from, ..Spot::at(self.name, self.text, span.start) })
    }

    fn problem(&self, span: &Range<usize>, key: &str, what: String) -> Problem {
        Problem { source: self.source(span), key: key.to_owned(), what, remedy: String::new() }
    }
}

/// What of `value` is taken by itself: the items of a list, each with its place; of everything else the whole.
fn parts<'a, T>(
    setting: &Setting<T>,
    span: &Range<usize>,
    value: &'a DeValue<'a>,
) -> Vec<(Range<usize>, Raw<'a>)> {
    match value {
        DeValue::Array(items) if setting.is_list() => {
            items.iter().map(|item| (item.span(), Raw::Item(item.get_ref()))).collect()
        }
        _ => vec![(span.clone(), Raw::Toml(value))],
    }
}

fn field_advice<T: Table>(name: &str) -> String {
    let all = T::FIELDS.iter().map(|field| field.name.to_owned());
    match nearest(name, all.clone()) {
        Some(known) => format!("did you mean `{known}`?"),
        None => format!("there are {}", all.collect::<Vec<_>>().join(", ")),
    }
}

/// What is wrong with a key that an item doesn't have, and what would be right.
fn no_field<T: Item>(key: &str) -> (String, String) {
    match T::FIELDS.iter().find(|field| field.section == key) {
        Some(within) => ("must be a table".to_owned(), example_within(within)),
        None => (unknown(), fields::<T>(key)),
    }
}

fn unknown() -> String {
    "there is no such setting".to_owned()
}

/// The setting as it could stand in a file.
pub(crate) fn example<T>(setting: &Setting<T>) -> String {
    format!("e.g. {} = {}", setting.name, setting.example)
}

/// The field as it could stand in an item.
fn example_within<T>(field: &Setting<T>) -> String {
    format!("e.g. {} = {}", field.key(), field.example)
}
