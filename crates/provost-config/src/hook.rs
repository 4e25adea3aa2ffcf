//! `[[hooks]]`: programs and servers that decide at hook points of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use provost_engine::Pattern;
use provost_event::{HookContract, HookPoint, HookPolicy, HookProgram, HookSetup, OnFailure};
use provost_hooks::UnknownEvent;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::Settings;
use super::declare::{Kind, Setting, SettingDefault};
use super::errors::Source;
use super::imported::{Import, ImportSource};
use super::item::{Item, Objection};
use super::stop_hook::HOOK_SECS_MAX;

/// What the list of hooks is for.
pub(crate) const HOOKS_WORDS: &str = "Programs and servers that decide at points of a run: before a tool call, after \
    it, before a model call, at the session's begin and end. They get JSON on standard input. Those \
    of one point are asked in the order in which they stand, the user's first, and the first that doesn't let it \
    pass decides. Each names its event and exactly one of command, program or url; or stands alone with import. \
    docs/hooks.md tells more.";

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
        shell().or_else(exec).or_else(http)
    }

    /// The hook as a run's policy has it; `None` for one that isn't complete, which is an error elsewhere.
    pub fn policy(&self) -> Option<HookPolicy> {
        let point = self.point?;
        let is_foreign = self.contract.is_foreign();
        let on_failure = if is_foreign { OnFailure::Continue } else { OnFailure::default_at(point) };
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
            setup: HookSetup { project: self.project.clone(), ..HookSetup::default() },
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
        let given = ["command", "program", "url"].map(|field| (field, self.places.contains_key(field)));
        let given = given.into_iter().filter_map(|(field, is_given)| is_given.then_some(field));
        match *given.collect::<Vec<_>>() {
            [] => Some(Objection::new(
                "",
                "nothing says what to run",
                "give it one of command, program or url, e.g. command = \"./scripts/check.sh\"",
            )),
            [_] => None,
            [first, second, ..] => Some(Objection::new(
                second,
                format!("there is a {first} already"),
                "a hook has exactly one of command, program and url",
            )),
        }
    }

    fn lonely_fields(&self) -> Vec<Objection> {
        let needs = [("args", "program"), ("headers", "url"), ("allowed_env", "url")];
        let lonely = needs
            .into_iter()
            .filter(|(field, of)| self.places.contains_key(field) && !self.places.contains_key(of));
        let objection = |(field, of)| {
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
    }
}

/// The fields of a `[[hooks]]`.
pub(crate) const HOOK: &[Setting<Hook>] = &[
    Setting {
        kind: Kind::Checked(|hook, event| {
            hook.point = Some(provost_hooks::hook_point_of(&event).map_err(|error| no_event(&error))?);
            Ok(())
        }),
        default: SettingDefault::Unset("must be there, but for an import"),
        example: r#""pre_tool_call""#,
        words: "When it is asked: session_start, subagent_start, prompt_submit, pre_llm_request, pre_tool_call, spawn, \
                approval, notification, child_end, post_tool_call, post_tool_success, post_tool_failure, \
                post_tool_batch, turn_end, stop, subagent_stop, pre_compact, post_compact, abort, stop_failure, \
                session_end; or as Claude Code calls it, such as PreToolUse.",
        ..field("event")
    },
    Setting {
        kind: Kind::Line(|hook, text| hook.matcher = Some(text)),
        default: SettingDefault::Unset("everything"),
        example: r#""shell|write_file""#,
        words: "Which tools it is asked about, by exact names with | between them, or by a regular expression: its \
                own names and Claude Code's (Bash, Edit) both count. At the session's begin and end, which source or \
                reason.",
        ..field("matcher")
    },
    Setting {
        kind: Kind::Checked(|hook, text| {
            hook.condition = Some(pattern(text)?);
            Ok(())
        }),
        default: SettingDefault::Unset("every call that the matcher lets through"),
        example: r#""shell(git push *)""#,
        words: "A pattern as in [permissions] that the tool call must meet besides.",
        ..field("if")
    },
    Setting {
        kind: Kind::Words(|hook, text| hook.command = Some(text)),
        default: SettingDefault::Unset("there is a program or url"),
        example: r#""./scripts/no-force-push.sh""#,
        words: "A command for `sh -c`, run in the agent's current folder; one that names a script by a relative path, in the project's.",
        ..field("command")
    },
    Setting {
        kind: Kind::Line(|hook, text| hook.program = Some(text)),
        default: SettingDefault::Unset("there is a command or url"),
        example: r#""/usr/local/bin/guard""#,
        words: "A program that is run without a shell; a relative path is one from the project's folder.",
        ..field("program")
    },
    Setting {
        kind: Kind::List(|hook, text| {
            hook.args.push(text);
            Ok(())
        }),
        default: SettingDefault::Unset("none"),
        example: r#"["--strict"]"#,
        words: "The program's arguments.",
        ..field("args")
    },
    Setting {
        kind: Kind::Address(|hook, url| hook.url = Some(url)),
        default: SettingDefault::Unset("there is a command or program"),
        example: r#""http://127.0.0.1:8080/hook""#,
        words: "An address that the question is posted to.",
        ..field("url")
    },
    Setting {
        kind: Kind::Texts(|hook, name, value| hook.headers.push((name, value))),
        default: SettingDefault::Unset("none"),
        example: r#"{ Authorization = "Bearer $HOOK_TOKEN" }"#,
        words: "Headers of that request. They may name variables as $NAME or ${NAME}; a secret belongs into a \
                variable, since everything else here stands in the run's log.",
        ..field("headers")
    },
    Setting {
        kind: Kind::List(|hook, name| {
            hook.allowed_env.push(super::value::variable_name(name)?);
            Ok(())
        }),
        default: SettingDefault::Unset("none"),
        example: r#"["HOOK_TOKEN"]"#,
        words: "The variables that the headers may name; others are empty there.",
        ..field("allowed_env")
    },
    Setting {
        kind: Kind::Line(|hook, name| hook.name = Some(name)),
        default: SettingDefault::Unset("made from its event and what it runs"),
        example: r#""no-force-push""#,
        words: "Its name in the log, unique among all hooks.",
        ..field("name")
    },
    Setting {
        kind: Kind::Count { min: 1, max: HOOK_SECS_MAX, put: |hook, n| hook.timeout_secs = n },
        default: SettingDefault::Is("60"),
        example: "10",
        words: "Seconds it may take; at most what the run may (budget.wall_time), to which the default is shortened. Then it is ended and has given no \
                answer.",
        ..field("timeout_secs")
    },
    Setting {
        kind: Kind::Choice {
            of: &["provost", "claude", "codex"],
            put: |hook, word| {
                hook.contract = match word {
                    "claude" => HookContract::Claude,
                    "codex" => HookContract::Codex,
                    _ => HookContract::Provost,
                };
            },
        },
        default: SettingDefault::Is(r#""provost""#),
        example: r#""claude""#,
        words: "How it is asked and how its answer is read. provost: exit status 0 lets it pass, 2 says no with standard \
                output as the reason, 3 ends the run, everything else is no answer. claude: as Claude Code has it. codex: as Codex has it.",
        ..field("contract")
    },
    Setting {
        kind: Kind::Choice {
            of: &["deny", "continue"],
            put: |hook, word| {
                hook.on_failure =
                    Some(if word == "continue" { OnFailure::Continue } else { OnFailure::Deny });
            },
        },
        default: SettingDefault::Unset("deny at pre_tool_call if its contract is provost, else continue"),
        example: r#""deny""#,
        words: "What it means when it gives no answer: as if it had said no, or as if it had said nothing.",
        ..field("on_failure")
    },
    Setting {
        kind: Kind::Truth(|hook, truth| hook.reminders = Some(truth)),
        default: SettingDefault::Unset("true if its contract is claude or codex, else false"),
        example: "true",
        words: "Whether it may have the model reminded of something.",
        ..field("reminders")
    },
    Setting {
        kind: Kind::Checked(|hook, word| {
            hook.import = Some(ImportSource::parse(&word)?);
            Ok(())
        }),
        default: SettingDefault::Unset("nothing is imported"),
        example: r#""claude""#,
        words: "In a [[hooks]] of its own: takes hooks and permissions of another program (claude, claude-user, \
                claude-plugin:FOLDER, codex), after all others. The same as import = [\"claude\"] in a table [hooks].",
        ..field("import")
    },
    Setting {
        kind: Kind::List(|hook, name| {
            hook.env.push(super::value::variable_name(name)?);
            Ok(())
        }),
        default: SettingDefault::Unset("none"),
        example: r#"["SLACK_WEBHOOK_URL"]"#,
        words: "In a [[hooks]] of its own: variables that all hooks get besides, by name, as env in a table [hooks].",
        ..field("env")
    },
];

const fn field(name: &'static str) -> Setting<Hook> {
    Setting::declared("", name)
}

fn no_event(error: &UnknownEvent) -> String {
    match error {
        UnknownEvent::Unknown { nearest: Some(name) } => {
            format!("there is no such event (did you mean `{name}`?)")
        }
        UnknownEvent::Unknown { nearest: None } | UnknownEvent::NotImplemented(_) => error.to_string(),
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
