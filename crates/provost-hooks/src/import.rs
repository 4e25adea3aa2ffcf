//! Hooks and permissions of the settings files of other programs.
//!
//! Nothing of the file is dropped silently: each hook that can't be run is listed with its place and a reason.

mod handler;
mod name;
mod rules;

use std::collections::HashSet;

use provost_event::{HookContract, HookPoint, HookPolicy, HookProgram, PointRefusal};
use serde_json::Value;

use crate::matcher::check_matcher;
use crate::point::{self, UnknownEvent, hook_point_of};
use handler::{Handler, session_end_timeouts};
pub use rules::{ImportedRule, RuleList};

/// The hooks of a settings file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// The hooks that can be run, with unique names: ordered by event name, those of one event in the file's
    /// order.
    pub hooks: Vec<HookPolicy>,
    /// What was left out, or runs differently from what the file says.
    pub skipped: Vec<Skipped>,
    /// The rules of its permissions.
    pub rules: Vec<ImportedRule>,
    /// The variables that it sets for its programs.
    pub env: Vec<(String, String)>,
    /// Whether it switches all hooks off, if it says so.
    pub disables_hooks: Option<bool>,
    /// What would be run: commands and addresses, each once, to show before the file is trusted.
    pub programs: Vec<String>,
}

/// Settings that guard something and aren't taken, and what to do instead.
const NOT_TAKEN: [(&str, &str); 2] = [
    (
        "enabledPlugins",
        "plugins aren't taken with it: name the folder of each in import, as \"claude-plugin:FOLDER\"",
    ),
    ("sandbox", "it isn't taken over: Provost's own [sandbox] says what programs may reach"),
];

/// Whether two hooks do the same at the same hook points.
fn is_double(one: &HookPolicy, other: &HookPolicy) -> bool {
    let key = |hook: &HookPolicy| (hook.point, hook.matcher.clone(), hook.condition.clone());
    let same_program = match (&one.program, &other.program) {
        (Some(HookProgram::Http { url, .. }), Some(HookProgram::Http { url: other, .. })) => url == other,
        (one, other) => one == other,
    };
    key(one) == key(other) && same_program
}

/// A part of a settings file that isn't run as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its place, such as `.claude/settings.json: hooks.PreToolUse[0].hooks[1]`.
    pub place: String,
    /// What it is.
    pub what: String,
    /// Why it isn't run, or how it runs.
    pub why: String,
    /// It would decide whether something may happen, and isn't in force.
    pub is_guard: bool,
}

/// A settings file with hooks.
#[derive(Debug, Clone, Copy)]
pub struct HookFile<'a> {
    /// Its text: JSON.
    pub text: &'a str,
    /// Its name in places and messages.
    pub source: &'a str,
    /// Whose hooks it has.
    pub contract: HookContract,
    /// The names of a plugin's variables that are set for its hooks.
    pub variables: &'a [&'a str],
}

impl<'a> HookFile<'a> {
    /// A file of Claude Code, which is no plugin's.
    #[must_use]
    pub const fn claude(text: &'a str, source: &'a str) -> Self {
        Self { text, source, contract: HookContract::Claude, variables: &[] }
    }
}

/// Imports a settings file of Claude Code, or one of Codex with hooks in the same form.
///
/// The hooks have the contract of existing scripts: they fail open, may remind the model, and have that contract's
/// timeouts (600 s; 30 s if a prompt waits; 1.5 s at the end of a session). A file that isn't JSON has no hooks.
#[must_use]
pub fn import_hooks(file: HookFile<'_>) -> Imported {
    let mut import = Import { of: file, out: Imported::default() };
    import.file();
    let hooks = &import.out.hooks;
    import.out.programs = programs(hooks);
    import.out
}

fn programs(hooks: &[HookPolicy]) -> Vec<String> {
    let mut seen = HashSet::new();
    let all = hooks.iter().filter_map(|hook| hook.program.as_ref()).map(|program| match program {
        HookProgram::Shell { command } => command.clone(),
        HookProgram::Exec { program, args } => {
            std::iter::once(program).chain(args).map(String::as_str).collect::<Vec<_>>().join(" ")
        }
        HookProgram::Http { url, .. } => format!("POST {url}"),
        HookProgram::Model(model) => format!("a model is asked: {}", model.prompt),
    });
    all.filter(|program| seen.insert(program.clone())).collect()
}

struct Import<'a> {
    of: HookFile<'a>,
    out: Imported,
}

impl Import<'_> {
    /// Notes what runs otherwise than the file says.
    fn remark(&mut self, place: &str, what: impl Into<String>, why: impl Into<String>) {
        self.note(place, (what.into(), why.into()), false);
    }

    /// Notes what isn't in force; whether that is a guard is seen by its event.
    fn skip(&mut self, event: &str, place: &str, what: impl Into<String>, why: impl Into<String>) {
        // One that can't be told from a guard counts as one.
        let refuses = hook_point_of(event).map_or_else(
            |error| matches!(error, UnknownEvent::Unknown { .. }),
            |point| point.refusal() == PointRefusal::Deny,
        );
        self.note(place, (what.into(), why.into()), refuses);
    }

    fn note(&mut self, place: &str, (what, why): (String, String), is_guard: bool) {
        let source = self.of.source;
        let place = if place.is_empty() { source.to_owned() } else { format!("{source}: {place}") };
        self.out.skipped.push(Skipped { place, what, why, is_guard });
    }

    fn file(&mut self) {
        let text = self.of.text.strip_prefix('\u{feff}').unwrap_or(self.of.text);
        let settings: Value = match serde_json::from_str(text) {
            Ok(settings) => settings,
            Err(error) => return self.skip("", "", "the file", format!("it can't be read as JSON: {error}")),
        };
        let Some(settings) = settings.as_object() else {
            return self.skip("", "", "the file", "it is no JSON object");
        };
        self.out.disables_hooks = settings.get("disableAllHooks").and_then(Value::as_bool);
        self.env(settings.get("env"));
        if let Some(permissions) = settings.get("permissions") {
            self.permissions(permissions);
        }
        for (name, why) in NOT_TAKEN.iter().filter(|(name, _)| settings.contains_key(*name)) {
            self.remark(name, format!("`{name}`"), *why);
        }
        match settings.get("hooks") {
            None | Some(Value::Null) => {}
            Some(Value::Object(events)) => {
                // A stable order, independent of the parser.
                let mut events: Vec<_> = events.iter().collect();
                events.sort_by_key(|(event, _)| *event);
                for (event, groups) in events {
                    self.event(event, groups);
                }
            }
            Some(_) => self.skip("", "hooks", "all hooks", "`hooks` is no object of events"),
        }
    }

    fn env(&mut self, env: Option<&Value>) {
        for (name, value) in env.and_then(Value::as_object).into_iter().flatten() {
            match value.as_str() {
                Some(value) => self.out.env.push((name.clone(), value.to_owned())),
                None => self.remark("env", format!("the variable {name}"), "its value is no text"),
            }
        }
        self.out.env.sort();
    }

    fn permissions(&mut self, permissions: &Value) {
        for (list, written, patterns) in rules::rules_in(permissions) {
            match patterns {
                Ok(patterns) => self.out.rules.push(ImportedRule { list, written, patterns }),
                Err(why) => {
                    let what = format!("the rule `{written}`");
                    let place = format!("permissions.{}", list.name());
                    self.note(&place, (what, why), list != RuleList::Allow);
                }
            }
        }
        let others = permissions.as_object().into_iter().flatten();
        for (name, _) in others.filter(|(name, _)| RuleList::ALL.iter().all(|list| list.name() != *name)) {
            let why = "it isn't taken over: Provost's own settings say what it would";
            self.remark(&format!("permissions.{name}"), format!("`{name}`"), why);
        }
    }

    fn event(&mut self, event: &str, groups: &Value) {
        let place = format!("hooks.{event}");
        let point = match hook_point_of(event) {
            // Provost's own names are only for its own settings.
            Ok(point) if point.name() != event => point,
            Ok(_) => {
                return self.skip(event, &place, format!("the event `{event}`"), "there is no such event");
            }
            Err(unknown) => {
                return self.skip(event, &place, format!("the event `{event}`"), unknown.to_string());
            }
        };
        let Some(groups) = groups.as_array() else {
            return self.skip(event, &place, format!("the event `{event}`"), "it is no list");
        };
        let first = self.out.hooks.len();
        for (at, group) in groups.iter().enumerate() {
            let group_place = format!("{place}[{at}]");
            let matcher = self.matcher(point, &group_place, group);
            let Some(handlers) = group.get("hooks").and_then(Value::as_array) else {
                self.skip(event, &group_place, "the entry", "it has no list of `hooks`");
                continue;
            };
            for (at, value) in handlers.iter().enumerate() {
                let place = format!("{group_place}.hooks[{at}]");
                let handler = Handler { event, point, value, group, of: self.of, place };
                // An entry with an invalid matcher is left out as a whole, each hook with its place.
                match &matcher {
                    Ok(matcher) => self.handler(&handler, matcher.clone()),
                    Err(why) => self.skip(event, &handler.place, handler.what(), why.clone()),
                }
            }
        }
        if point == HookPoint::SessionEnd {
            session_end_timeouts(self.out.hooks.get_mut(first..).unwrap_or_default());
        }
    }

    fn matcher(&mut self, point: HookPoint, place: &str, group: &Value) -> Result<Option<String>, String> {
        let matcher = match group.get("matcher") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(matcher)) => matcher.as_str(),
            Some(other) => return Err(format!("its `matcher` is {other}, which is no text")),
        };
        if matches!(matcher, "" | "*") {
            return Ok(None);
        }
        if !point::rules(point).has_matchers {
            let why = "this event has no matchers: the hooks are asked each time";
            self.remark(place, format!("the matcher `{matcher}`"), why);
            return Ok(None);
        }
        check_matcher(point, matcher).map(|()| Some(matcher.to_owned()))
    }

    fn handler(&mut self, handler: &Handler<'_>, matcher: Option<String>) {
        let mut remarks = Vec::new();
        let policy = match handler.policy(matcher, &self.out.hooks, &mut remarks) {
            Ok(policy) => policy,
            Err(why) => return self.skip(handler.event, &handler.place, handler.what(), why),
        };
        for why in remarks {
            self.remark(&handler.place, handler.what(), why);
        }
        match self.out.hooks.iter().find(|known| is_double(known, &policy)) {
            Some(known) => {
                let why = format!("it is the same as {}, and runs once", known.name);
                self.remark(&handler.place, handler.what(), why);
            }
            None => self.out.hooks.push(policy),
        }
    }
}
