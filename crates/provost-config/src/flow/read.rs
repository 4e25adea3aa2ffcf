//! Reads the file of a workflow: looks up each key, and collects all problems with their places.

use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::fields::STEP;
use super::{FlowFile, StepHook, StepSettings, sorted};
use crate::declare::{Setting, SettingDefault};
use crate::errors::{Problem, Problems, Source, Spot};
use crate::item::Item as _;
use crate::nearest::nearest;
use crate::stop_hook::{STOP_HOOK, StopHook};
use crate::value::Raw;

const STEPS: &str = "flow.steps";
const HOOKS: &str = "flow.steps.stop_hooks";
/// The fields of a step that are lists.
const LISTS: [&str; 2] = ["needs", "stop_hooks"];

type Field<'a> = (&'a Spanned<Cow<'a, str>>, &'a Spanned<DeValue<'a>>);

/// A file that is being read.
pub(super) struct Reader<'a> {
    name: &'a str,
    text: &'a str,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    /// The file called `name` with this `text`.
    pub(super) const fn new(name: &'a str, text: &'a str) -> Self {
        Self { name, text, problems: Vec::new() }
    }

    /// The workflow in it.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub(super) fn flow(mut self) -> Result<FlowFile, Problems> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            self.wrong(&error.span().unwrap_or_default(), "", format!("not TOML: {}", error.message()), "");
        }
        if !errors.is_empty() {
            return Err(sorted(self.problems));
        }
        let mut flow = FlowFile {
            name: String::new(),
            steps: Vec::new(),
            source: self.source(&(0..0)),
            path: PathBuf::new(),
            text: self.text.to_owned(),
        };
        let mut is_there = false;
        for (name, value) in table.get_ref() {
            match (name.get_ref().as_ref(), value.get_ref()) {
                ("flow", DeValue::Table(fields)) => {
                    is_there = true;
                    flow.source = self.source(&name.span());
                    self.fields(fields, &mut flow);
                }
                ("flow", _) => {
                    self.wrong(&name.span(), "flow", "must be a table", "write [flow] on a line of its own")
                }
                (other, _) => {
                    let remedy = "the file of a workflow has [flow] and [[flow.steps]]";
                    self.wrong(&name.span(), other, "doesn't belong here", remedy);
                }
            }
        }
        if !is_there && self.problems.is_empty() {
            self.wrong(&(0..0), "flow", "is missing", "write [flow] with a name, and [[flow.steps]]");
        }
        if self.problems.is_empty() { Ok(flow) } else { Err(sorted(self.problems)) }
    }

    fn fields(&mut self, fields: &DeTable<'_>, flow: &mut FlowFile) {
        for (name, value) in fields {
            let span = name.span();
            match (name.get_ref().as_ref(), value.get_ref()) {
                ("name", DeValue::String(text)) if is_line(text) => flow.name = text.trim().to_owned(),
                ("name", _) => {
                    self.wrong(
                        &span,
                        "flow.name",
                        "must be a line of text in quotes",
                        r#"e.g. name = "release""#,
                    );
                }
                ("steps", DeValue::Array(steps)) => self.steps(steps, flow),
                ("steps", _) => {
                    let remedy = "write [[flow.steps]] on a line of its own, once for each";
                    self.wrong(&span, STEPS, "must be a list", remedy);
                }
                (other, _) => {
                    let remedy = meant(other, ["name", "steps"].map(str::to_owned).into_iter());
                    self.wrong(&span, &format!("flow.{other}"), "there is no such key", remedy);
                }
            }
        }
        if fields.get("name").is_none() {
            self.problems.push(Problem {
                source: flow.source.clone(),
                key: "flow".to_owned(),
                what: "`name` is missing".to_owned(),
                remedy: r#"e.g. name = "release""#.to_owned(),
            });
        }
    }

    fn steps(&mut self, steps: &DeArray<'_>, flow: &mut FlowFile) {
        for step in steps {
            match step.get_ref() {
                DeValue::Table(fields) => {
                    let step = self.step(&step.span(), fields);
                    flow.steps.push(step);
                }
                _ => self.wrong(&step.span(), STEPS, "each must be a table with name and goal", ""),
            }
        }
    }

    fn step(&mut self, span: &Range<usize>, fields: &DeTable<'_>) -> StepSettings {
        let mut step = StepSettings::at(self.source(span));
        for field in fields {
            match (field.0.get_ref().as_ref(), field.1.get_ref()) {
                ("budget", DeValue::Table(limits)) => {
                    limits.iter().for_each(|limit| self.field(&mut step, "budget.", limit));
                }
                ("needs", DeValue::Array(needs)) => self.needs(&mut step, needs),
                ("stop_hooks", DeValue::Array(hooks)) => self.stop_hooks(&mut step, hooks),
                (list, _) if LISTS.contains(&list) => {
                    let remedy = format!("e.g. {list} = [\"…\"]");
                    self.wrong(
                        &field.0.span(),
                        &format!("{STEPS}.{list}"),
                        "must be a list in [brackets]",
                        remedy,
                    );
                }
                _ => self.field(&mut step, "", field),
            }
            let place = self.source(&field.0.span());
            step.places.insert(field.0.get_ref().to_string(), place);
        }
        for field in STEP.iter().filter(|field| matches!(field.default, SettingDefault::Required)) {
            if fields.get(field.name).is_none() {
                self.wrong(span, STEPS, format!("`{}` is missing", field.name), example(field));
            }
        }
        step
    }

    fn field(&mut self, step: &mut StepSettings, within: &str, (name, value): Field<'_>) {
        let own = format!("{within}{}", name.get_ref());
        let (span, key) = (name.span(), format!("{STEPS}.{own}"));
        let Some(field) = STEP.iter().find(|field| field.key() == own) else {
            let all = STEP.iter().map(Setting::key).chain(LISTS.map(str::to_owned));
            return self.wrong(&span, &key, "there is no such key", meant(&own, all));
        };
        if let Err(what) = field.take(step, Raw::Toml(value.get_ref())) {
            self.wrong(&span, &key, what, example(field));
        }
        step.places.insert(own, self.source(&span));
    }

    fn needs(&mut self, step: &mut StepSettings, needs: &DeArray<'_>) {
        for need in needs {
            match need.get_ref() {
                DeValue::String(name) => step.needs.push((name.trim().to_owned(), self.source(&need.span()))),
                _ => {
                    let what = "each must be the name of a step, in quotes";
                    self.wrong(&need.span(), &format!("{STEPS}.needs"), what, "");
                }
            }
        }
    }

    fn stop_hooks(&mut self, step: &mut StepSettings, hooks: &DeArray<'_>) {
        for (place, hook) in hooks.iter().enumerate() {
            match hook.get_ref() {
                DeValue::String(name) => {
                    let source = self.source(&hook.span());
                    step.stop_hooks.push(StepHook::Named(name.trim().to_owned(), source));
                }
                DeValue::Table(fields) => self.inline(step, place, &hook.span(), fields),
                _ => {
                    let what = "each must be the name of a stop hook, or a table with a command";
                    self.wrong(&hook.span(), HOOKS, what, r#"e.g. { command = "make check || exit 2" }"#);
                }
            }
        }
    }

    fn inline(&mut self, step: &mut StepSettings, place: usize, span: &Range<usize>, fields: &DeTable<'_>) {
        let mut hook = StopHook::at(self.source(span));
        for (name, value) in fields {
            let (span, key) = (name.span(), format!("{HOOKS}.{}", name.get_ref()));
            let Some(field) = STOP_HOOK.iter().find(|field| field.name == name.get_ref()) else {
                let all = STOP_HOOK.iter().map(|field| field.name.to_owned());
                self.wrong(&span, &key, "there is no such key", meant(name.get_ref(), all));
                continue;
            };
            if let Err(what) = field.take(&mut hook, Raw::Toml(value.get_ref())) {
                self.wrong(&span, &key, what, example(field));
            }
        }
        if hook.command.trim().is_empty() {
            self.wrong(span, HOOKS, "`command` is missing", r#"e.g. { command = "make check || exit 2" }"#);
        }
        if hook.name.is_empty() {
            hook.name = format!("check-{}", place.saturating_add(1));
        }
        step.stop_hooks.push(StepHook::Inline(hook));
    }

    fn source(&self, span: &Range<usize>) -> Source {
        Source::File(Spot::at(self.name, self.text, span.start))
    }

    fn wrong(&mut self, span: &Range<usize>, key: &str, what: impl Into<String>, remedy: impl Into<String>) {
        let (source, key) = (self.source(span), key.to_owned());
        self.problems.push(Problem { source, key, what: what.into(), remedy: remedy.into() });
    }
}

fn is_line(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(char::is_control)
}

fn example<T>(field: &Setting<T>) -> String {
    format!("e.g. {} = {}", field.key(), field.example)
}

fn meant(wrong: &str, all: impl Iterator<Item = String>) -> String {
    let all = all.collect::<Vec<_>>();
    match nearest(wrong, all.iter().cloned()) {
        Some(known) => format!("did you mean `{known}`?"),
        None => format!("there are {}", all.join(", ")),
    }
}
