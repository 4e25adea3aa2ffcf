//! One settings file: each key is looked up, each value goes to its setting, and all that is wrong is told.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::declare::{From, Otherwise, Setting};
use super::errors::{Problem, Source, Spot};
use super::named::{self, MODELS, ModelTable, PROVIDERS, ProviderTable, Table};
use super::nearest::{advice, fields, nearest};
use super::table::{SECTIONS, SETTINGS, STOP_HOOK};
use super::value::Raw;
use super::{Loading, StopHook};

/// The one list.
const STOP_HOOKS: &str = "stop_hooks";

/// A file and who wrote it.
pub(super) struct File<'a> {
    /// As people call it.
    pub(super) name: &'a str,
    /// What is in it.
    pub(super) text: &'a str,
    /// Settings that it may have.
    pub(super) from: From,
    /// Where the user would set what a project may not.
    pub(super) user_file: &'a str,
}

impl File<'_> {
    /// Takes all of the file that is right, and notes all that isn't.
    pub(super) fn load(&self, loading: &mut Loading) {
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
        if let Some(setting) = SETTINGS.iter().find(|setting| setting.key() == key) {
            return self.setting(setting, span, value, loading);
        }
        let is_section =
            SECTIONS.iter().any(|(section, _)| *section == key || section.starts_with(&format!("{key}.")));
        match value {
            DeValue::Table(table) if is_section => self.table(key, table, loading),
            DeValue::Array(hooks) if key == STOP_HOOKS => self.stop_hooks(hooks, loading),
            DeValue::Table(tables) if key == PROVIDERS => self.named::<ProviderTable>(tables, loading),
            DeValue::Table(tables) if key == MODELS => self.named::<ModelTable>(tables, loading),
            _ if is_section || [PROVIDERS, MODELS].contains(&key) => {
                let problem =
                    self.problem(span, key, format!("must be a table: write [{key}] on a line of its own"));
                loading.problems.push(problem);
            }
            _ if key == STOP_HOOKS => {
                let what =
                    "must be a list: write [[stop_hooks]] on a line of its own, once for each".to_owned();
                loading.problems.push(self.problem(span, key, what));
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
                Some(_) if self.from == From::Anywhere => {
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
            let remedy = format!("set it in {}, or as {}", self.user_file, setting.own_variable());
            return loading.problems.push(Problem { remedy, ..self.problem(span, &setting.key(), what) });
        }
        loading.take(setting, Raw::Toml(value), self.source(span));
    }

    fn stop_hooks(&self, hooks: &DeArray<'_>, loading: &mut Loading) {
        for hook in hooks {
            match hook.get_ref() {
                DeValue::Table(table) => self.stop_hook(&hook.span(), table, loading),
                _ => {
                    let what = "each must be a table with name and command".to_owned();
                    loading.problems.push(self.problem(&hook.span(), STOP_HOOKS, what));
                }
            }
        }
    }

    fn stop_hook(&self, span: &Range<usize>, table: &DeTable<'_>, loading: &mut Loading) {
        let mut hook = StopHook::at(self.source(span));
        let wrong_before = loading.problems.len();
        for (name, value) in table {
            self.field(&mut hook, name, value.get_ref(), loading);
        }
        for field in STOP_HOOK {
            if matches!(field.otherwise, Otherwise::Required) && table.get(field.name).is_none() {
                let what = format!("`{}` is missing", field.name);
                let remedy = example(field);
                loading.problems.push(Problem { remedy, ..self.problem(span, STOP_HOOKS, what) });
            }
        }
        if loading.problems.len() == wrong_before {
            loading.settings.stop_hooks.push(hook);
        }
    }

    fn field(
        &self,
        hook: &mut StopHook,
        name: &Spanned<std::borrow::Cow<'_, str>>,
        value: &DeValue<'_>,
        loading: &mut Loading,
    ) {
        let key = format!("{STOP_HOOKS}.{}", name.get_ref());
        let span = name.span();
        let Some(field) = STOP_HOOK.iter().find(|field| field.name == name.get_ref()) else {
            let remedy = fields(name.get_ref());
            return loading.problems.push(Problem { remedy, ..self.problem(&span, &key, unknown()) });
        };
        if let Err(what) = field.take(hook, Raw::Toml(value)) {
            let remedy = example(field);
            loading.problems.push(Problem { remedy, ..self.problem(&span, &key, what) });
        }
        if field.name == "timeout_secs" {
            hook.timeout_source = self.source(&span);
        }
    }

    fn source(&self, span: &Range<usize>) -> Source {
        Source::File(Spot::at(self.name, self.text, span.start))
    }

    fn problem(&self, span: &Range<usize>, key: &str, what: String) -> Problem {
        Problem { source: self.source(span), key: key.to_owned(), what, remedy: String::new() }
    }
}

fn field_advice<T: Table>(name: &str) -> String {
    let all = T::FIELDS.iter().map(|field| field.name.to_owned());
    match nearest(name, all.clone()) {
        Some(known) => format!("did you mean `{known}`?"),
        None => format!("there are {}", all.collect::<Vec<_>>().join(", ")),
    }
}

fn unknown() -> String {
    "there is no such setting".to_owned()
}

/// The setting as it could stand in a file.
pub(super) fn example<T>(setting: &Setting<T>) -> String {
    format!("e.g. {} = {}", setting.name, setting.example)
}
