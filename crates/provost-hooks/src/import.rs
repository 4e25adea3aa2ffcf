//! Hooks of a `.claude/settings.json`.
//!
//! Nothing of the file is dropped silently: each hook that can't be run is listed with its place and a reason.

mod handler;
mod name;

use std::collections::HashSet;

use provost_event::{HookPoint, HookPolicy, HookProgram};
use serde_json::Value;

use crate::matcher::check_matcher;
use crate::point::{hook_point_of, rules};
use handler::{Handler, session_end_timeouts};

/// The hooks of a settings file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// The hooks that can be run, with unique names: ordered by event name, those of one event in the file's
    /// order.
    pub hooks: Vec<HookPolicy>,
    /// What was left out, or runs differently from what the file says.
    pub skipped: Vec<Skipped>,
    /// What would be run: commands and addresses, each once, to show before the file is trusted.
    pub programs: Vec<String>,
}

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
}

/// Imports the hooks of a settings file of Claude Code. `source` names the file in places and messages.
///
/// The hooks have the contract of existing scripts: they fail open, may remind the model, and have that contract's
/// timeouts (600 s; 30 s if a prompt waits; 1.5 s at the end of a session). A file that isn't JSON has no hooks.
#[must_use]
pub fn import_claude(text: &str, source: &str) -> Imported {
    let mut import = Import { source, out: Imported::default() };
    import.file(text);
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
    });
    all.filter(|program| seen.insert(program.clone())).collect()
}

struct Import<'a> {
    source: &'a str,
    out: Imported,
}

impl Import<'_> {
    fn skip(&mut self, place: &str, what: impl Into<String>, why: impl Into<String>) {
        let place =
            if place.is_empty() { self.source.to_owned() } else { format!("{}: {place}", self.source) };
        self.out.skipped.push(Skipped { place, what: what.into(), why: why.into() });
    }

    fn file(&mut self, text: &str) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let settings: Value = match serde_json::from_str(text) {
            Ok(settings) => settings,
            Err(error) => return self.skip("", "the file", format!("it can't be read as JSON: {error}")),
        };
        let Some(settings) = settings.as_object() else {
            return self.skip("", "the file", "it is no JSON object");
        };
        match settings.get("hooks") {
            None | Some(Value::Null) => {}
            Some(_) if settings.get("disableAllHooks") == Some(&Value::Bool(true)) => {
                self.skip("disableAllHooks", "all hooks", "the file switches them off");
            }
            Some(Value::Object(events)) => {
                // A stable order, independent of the parser.
                let mut events: Vec<_> = events.iter().collect();
                events.sort_by_key(|(event, _)| *event);
                for (event, groups) in events {
                    self.event(event, groups);
                }
            }
            Some(_) => self.skip("hooks", "all hooks", "`hooks` is no object of events"),
        }
    }

    fn event(&mut self, event: &str, groups: &Value) {
        let place = format!("hooks.{event}");
        let point = match hook_point_of(event) {
            // Provost's own names are only for its own settings.
            Ok(point) if point.name() != event => point,
            Ok(_) => return self.skip(&place, format!("the event `{event}`"), "there is no such event"),
            Err(unknown) => return self.skip(&place, format!("the event `{event}`"), unknown.to_string()),
        };
        let Some(groups) = groups.as_array() else {
            return self.skip(&place, format!("the event `{event}`"), "it is no list");
        };
        let first = self.out.hooks.len();
        let mut number = 0;
        for (at, group) in groups.iter().enumerate() {
            let group_place = format!("{place}[{at}]");
            let matcher = self.matcher(point, &group_place, group);
            let Some(handlers) = group.get("hooks").and_then(Value::as_array) else {
                self.skip(&group_place, "the entry", "it has no list of `hooks`");
                continue;
            };
            for (at, value) in handlers.iter().enumerate() {
                number += 1;
                let handler =
                    Handler { event, point, number, value, place: format!("{group_place}.hooks[{at}]") };
                // An entry with an invalid matcher is left out as a whole, each hook with its place.
                match &matcher {
                    Ok(matcher) => self.handler(&handler, matcher.clone()),
                    Err(why) => self.skip(&handler.place, handler.what(), why.clone()),
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
        if !rules(point).has_matchers {
            let why = "this event has no matchers: the hooks are asked each time";
            self.skip(place, format!("the matcher `{matcher}`"), why);
            return Ok(None);
        }
        check_matcher(point, matcher).map(|()| Some(matcher.to_owned()))
    }

    fn handler(&mut self, handler: &Handler<'_>, matcher: Option<String>) {
        let mut remarks = Vec::new();
        let policy = match handler.policy(matcher, &mut remarks) {
            Ok(policy) => policy,
            Err(why) => return self.skip(&handler.place, handler.what(), why),
        };
        for why in remarks {
            self.skip(&handler.place, handler.what(), why);
        }
        match self.out.hooks.iter().find(|known| is_double(known, &policy)) {
            Some(known) => {
                let why = format!("it is the same as {}, and runs once", known.name);
                self.skip(&handler.place, handler.what(), why);
            }
            None => self.out.hooks.push(policy),
        }
    }
}
