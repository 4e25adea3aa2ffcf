//! `[[hooks]]`: programs, servers and models that decide at hook points of a run.

mod fields;

use std::collections::BTreeMap;
use std::path::PathBuf;

use provost_engine::Pattern;
use provost_event::{
    HookContract, HookModel, HookModelWork, HookPoint, HookPolicy, HookProgram, HookSetup, HookTimes,
    ModelPolicy, OnFailure,
};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::Settings;
use super::declare::Setting;
use super::errors::Source;
use super::imported::{Import, ImportSource};
use super::item::{Item, Objection};
pub(crate) use fields::HOOK;

/// What the list of hooks is for.
pub(crate) const HOOKS_WORDS: &str = "Programs, servers and models that decide at hook points of a run: before a \
    tool call, after it, before a model call, at the session's start and end. They get JSON on standard input. \
    Those of one hook point are called in the order of the files, the user's first, and the first denial decides. \
    Each names its event and exactly one of command, program, url, prompt or agent; or import alone. See \
    docs/hooks.md.";

/// The fields of which a hook has exactly one.
const PROGRAMS: [&str; 5] = ["command", "program", "url", "prompt", "agent"];
/// Characters of a command that a name is made from.
const NAME_MAX: usize = 48;

/// A variable that hooks get besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookVariable {
    /// Its name.
    pub name: String,
    /// Where it was given; absent for an item of a list, which the list's source tells.
    pub(crate) source: Option<Source>,
}

/// A hook and where it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    name: Option<String>,
    point: Option<HookPoint>,
    matcher: Option<String>,
    condition: Option<String>,
    command: Option<String>,
    program: Option<String>,
    args: Vec<String>,
    url: Option<String>,
    prompt: Option<String>,
    agent: Option<String>,
    model: Option<String>,
    continue_on_block: bool,
    once: bool,
    headers: Vec<(String, String)>,
    allowed_env: Vec<String>,
    timeout_secs: u64,
    contract: HookContract,
    on_failure: Option<OnFailure>,
    reminders: Option<bool>,
    import: Option<ImportSource>,
    env: Vec<String>,
    /// The folder of the project, from which its relative paths are.
    pub(crate) project: Option<PathBuf>,
    /// Where it begins.
    pub source: Source,
    /// Where each of its fields was given.
    places: BTreeMap<&'static str, Source>,
}

impl Hook {
    /// Its name: the given one, or one made of its hook point and its program.
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| {
            let point = self.point.map_or("", HookPoint::name);
            let runs = self.program().map(|program| runs(&program)).unwrap_or_default();
            format!("{point}: {}", first_line(&runs, NAME_MAX))
        })
    }

    /// Whether the user chose its name.
    pub(crate) const fn is_named(&self) -> bool {
        self.name.is_some()
    }

    /// Where `field` was given, or else the hook.
    pub fn source_of(&self, field: &str) -> &Source {
        self.places.get(field).unwrap_or(&self.source)
    }

    /// Whether `field` was given, and isn't the default.
    pub(crate) fn has_given(&self, field: &str) -> bool {
        self.places.contains_key(field)
    }

    /// How long it may take.
    pub const fn timeout_ms(&self) -> u64 {
        self.timeout_secs.saturating_mul(1_000)
    }

    /// The variables with which headers are filled. Their values are secrets, whatever the header's name: a
    /// server's own header for keys may have any.
    pub fn header_variables(&self) -> impl Iterator<Item = &String> {
        let names = |text: &str, name: &str| {
            text.contains(&format!("${name}")) || text.contains(&format!("${{{name}}}"))
        };
        let fills = move |name: &&String| self.headers.iter().any(|(_, text)| names(text, name));
        self.allowed_env.iter().filter(fills)
    }

    fn program(&self) -> Option<HookProgram> {
        let shell = || self.command.clone().map(|command| HookProgram::Shell { command });
        let exec = || Some(HookProgram::Exec { program: self.program.clone()?, args: self.args.clone() });
        let http = || {
            let (headers, allowed_env) = (self.headers.clone(), self.allowed_env.clone());
            Some(HookProgram::Http { url: self.url.clone()?, headers, allowed_env })
        };
        let model = |prompt: &String, work| {
            let model = ModelPolicy::new(self.model.clone().unwrap_or_default(), 0);
            let (prompt, continue_on_block) = (prompt.clone(), self.continue_on_block);
            HookProgram::Model(Box::new(HookModel { prompt, model, work, continue_on_block }))
        };
        let asked = || self.prompt.as_ref().map(|prompt| model(prompt, HookModelWork::Answers));
        let reader = || self.agent.as_ref().map(|prompt| model(prompt, HookModelWork::Reads));
        shell().or_else(exec).or_else(http).or_else(asked).or_else(reader)
    }

    /// The hook as a run's policy has it; `None` for one that isn't complete, which is an error elsewhere.
    pub fn policy(&self) -> Option<HookPolicy> {
        let point = self.point?;
        let is_foreign = self.contract.is_foreign();
        let times = if self.once { HookTimes::Once } else { HookTimes::Always };
        let on_failure = if is_foreign { OnFailure::ContinueIfRun } else { OnFailure::default_at(point) };
        Some(HookPolicy {
            name: self.name(),
            point,
            matcher: self.matcher.clone(),
            condition: self.condition.clone(),
            program: Some(self.program()?),
            contract: self.contract,
            timeout_ms: self.timeout_ms(),
            on_failure: self.on_failure.unwrap_or(on_failure),
            may_remind: self.reminders.unwrap_or(is_foreign),
            setup: HookSetup { times, project: self.project.clone(), ..HookSetup::default() },
        })
    }

    /// Whether it is no hook: an import, or variables for all hooks.
    fn is_no_hook(&self) -> bool {
        self.import.is_some() || !self.env.is_empty()
    }

    fn objection_to_import(&self) -> Option<Objection> {
        let other = self.places.keys().find(|field| !matches!(**field, "import" | "env"))?;
        let what = match self.import {
            Some(_) => "an import stands alone, without other fields",
            None => "variables for all hooks stand alone, without other fields",
        };
        Some(Objection::new(other, what, "write this hook as a [[hooks]] of its own"))
    }

    fn objection_to_program(&self) -> Option<Objection> {
        let given = PROGRAMS.map(|field| (field, self.places.contains_key(field)));
        let given = given.into_iter().filter_map(|(field, is_given)| is_given.then_some(field));
        match *given.collect::<Vec<_>>() {
            [] => Some(Objection::new(
                "",
                "nothing says what to run",
                "give it one of command, program, url, prompt or agent, e.g. command = \"./scripts/check.sh\"",
            )),
            [_] => None,
            [first, second, ..] => Some(Objection::new(
                second,
                format!("there is a {first} already"),
                "a hook has exactly one of command, program, url, prompt and agent",
            )),
        }
    }

    fn lonely_fields(&self) -> Vec<Objection> {
        let of_models: &[&str] = &["prompt", "agent"];
        let needs = [
            ("args", &["program"] as &[&str]),
            ("headers", &["url"]),
            ("allowed_env", &["url"]),
            ("model", of_models),
            ("continue_on_block", of_models),
        ];
        let lonely = needs.into_iter().filter(|(field, of)| {
            self.places.contains_key(field) && of.iter().all(|one| !self.places.contains_key(one))
        });
        let objection = |(field, of): (&'static str, &[&str])| {
            let of = of.join("` or `");
            Objection::new(field, format!("belongs to `{of}`, which isn't there"), "leave it out")
        };
        lonely.map(objection).collect()
    }

    fn objections_at(&self, point: HookPoint) -> Vec<Objection> {
        let mut found = Vec::new();
        if let Some(Err(what)) = self.matcher.as_ref().map(|text| provost_hooks::check_matcher(point, text)) {
            found.push(Objection::new("matcher", what, ""));
        }
        if self.condition.is_some() && !is_about_a_call(point) {
            let what = format!("{} is about no tool call", point.name());
            found.push(Objection::new("if", what, "`if` is for pre_tool_call, approval and post_tool_…"));
        }
        let given = ["prompt", "agent"].into_iter().find(|field| self.places.contains_key(field));
        if let Some(field) = given.filter(|_| !point.takes_models()) {
            let what = format!("no model is asked at {}: nothing waits for its answer there", point.name());
            found.push(Objection::new(field, what, "use a command, or another event"));
        }
        found
    }
}

/// Whether what a matcher is held against is a tool's name.
pub(crate) const fn is_about_a_tool(point: HookPoint) -> bool {
    use HookPoint as M;
    is_about_a_call(point) && !matches!(point, M::Spawn | M::ChildEnd)
}

const fn is_about_a_call(point: HookPoint) -> bool {
    use HookPoint as M;
    matches!(
        point,
        M::PreToolCall
            | M::Spawn
            | M::Approval
            | M::ChildEnd
            | M::PostToolCall
            | M::PostToolSuccess
            | M::PostToolFailure
    )
}

impl Item for Hook {
    const LIST: &'static str = "hooks";
    const ONE: &'static str = "a hook";
    const LEAST: &'static str = "event and command";
    const FIELDS: &'static [Setting<Self>] = HOOK;

    fn at(source: Source) -> Self {
        let mut hook = Self {
            name: None,
            point: None,
            matcher: None,
            condition: None,
            command: None,
            program: None,
            args: Vec::new(),
            url: None,
            prompt: None,
            agent: None,
            model: None,
            continue_on_block: false,
            once: false,
            headers: Vec::new(),
            allowed_env: Vec::new(),
            timeout_secs: 0,
            contract: HookContract::default(),
            on_failure: None,
            reminders: None,
            import: None,
            env: Vec::new(),
            project: None,
            source,
            places: BTreeMap::new(),
        };
        for field in HOOK {
            field.take_default(&mut hook);
        }
        hook
    }

    fn note(&mut self, field: &'static str, source: Source) {
        self.places.insert(field, source);
    }

    fn objections(&self) -> Vec<Objection> {
        if self.is_no_hook() {
            return self.objection_to_import().into_iter().collect();
        }
        let Some(point) = self.point else {
            return vec![Objection::new("", "`event` is missing", "e.g. event = \"pre_tool_call\"")];
        };
        let mut all = self.objections_at(point);
        all.extend(self.objection_to_program());
        all.extend(self.lonely_fields());
        all
    }

    fn put(self, settings: &mut Settings) {
        if !self.is_no_hook() {
            return settings.hooks.push(self);
        }
        let source = self.source_of("import").clone();
        if let Some(of) = self.import.clone() {
            settings.import(Import { of, source: Some(source) });
        }
        let source = self.source_of("env").clone();
        let named = |name| HookVariable { name, source: Some(source.clone()) };
        settings.hook_env.extend(self.env.into_iter().map(named));
    }
}

/// What `program` is, in words, as it would be typed.
pub fn runs(program: &HookProgram) -> String {
    match program {
        HookProgram::Shell { command } => command.clone(),
        HookProgram::Exec { program, args } => {
            let quoted = args.iter().map(|arg| format!(" {arg:?}"));
            format!("{program}{}", quoted.collect::<String>())
        }
        HookProgram::Http { url, .. } => format!("POST {}", super::without_password(url)),
        HookProgram::Model(model) => {
            let reads = match model.work {
                HookModelWork::Answers => "",
                HookModelWork::Reads => " that reads files",
            };
            format!("asks a model{reads}: {}", model.prompt)
        }
    }
}

/// A pattern of tool calls, as it was written.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn pattern(text: String) -> Result<String, String> {
    match Pattern::parse(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(error.to_string()),
    }
}

/// The first line of `text` that isn't blank, in at most `max` columns, without control characters.
fn first_line(text: &str, max: usize) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().replace('\t', " ");
    let more = if lines.next().is_some() { " …" } else { "" };
    let line = format!("{first}{more}").replace(char::is_control, "");
    if line.width() <= max {
        return line;
    }
    let mut cut = String::new();
    for c in line.chars() {
        if cut.width() + c.width().unwrap_or_default() >= max {
            break;
        }
        cut.push(c);
    }
    cut + "…"
}

#[cfg(test)]
mod tests {
    use super::first_line;

    #[test]
    fn a_name_is_one_line_of_a_bounded_width() {
        assert_eq!(first_line("\n  cargo\ttest\n", 20), "cargo test");
        assert_eq!(first_line("a\nb", 20), "a …");
        assert_eq!(first_line("abcdef", 6), "abcdef");
        assert_eq!(first_line("abcdefg", 6), "abcde…");
        assert_eq!(first_line("漢字漢字漢字", 7), "漢字漢…");
        assert_eq!(first_line("a\u{1b}[8mb", 20), "a[8mb");
        assert_eq!(first_line("", 7), "");
    }
}
