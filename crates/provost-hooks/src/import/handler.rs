//! One handler of a settings file, as a hook's policy.

use provost_event::{
    HookContract, HookModel, HookModelWork, HookPoint, HookPolicy, HookProgram, HookSetup, HookWaiting,
    ModelPolicy, OnFailure,
};
use serde_json::Value;

use super::HookFile;
use super::name::name_of;
use crate::command::PLUGIN_PREFIX;
use crate::point::rules;
use crate::{condition, http};

const TIMEOUT_MS: u64 = 600_000;
const PROMPT_TIMEOUT_MS: u64 = 30_000;
/// The same for hooks that are models: with an answer at once, and after reading files.
const MODEL_TIMEOUT_MS: u64 = 30_000;
const READER_TIMEOUT_MS: u64 = 60_000;
/// The total time of all hooks at a session's end, unless one sets more.
const SESSION_END_MS: u64 = 1_500;
const SESSION_END_MS_MAX: u64 = 60_000;
/// The longest meaningful timeout, a year.
const TIMEOUT_SECS_MAX: f64 = 31_536_000.0;
/// Stands for "not set" until all hooks of the event are read.
const NOT_SAID: u64 = 0;

/// A handler and its place.
pub(super) struct Handler<'a> {
    pub(super) event: &'a str,
    pub(super) point: HookPoint,
    pub(super) of: HookFile<'a>,
    pub(super) value: &'a Value,
    /// The entry that it stands in.
    pub(super) group: &'a Value,
    pub(super) place: String,
}

impl Handler<'_> {
    /// A short description.
    pub(super) fn what(&self) -> String {
        let of = |name: &str| self.value.get(name).and_then(Value::as_str);
        let kind = of("type").unwrap_or("unknown");
        let told = ["command", "url", "prompt", "tool"].iter().find_map(|name| of(name));
        match told {
            Some(text) => format!("the {kind} hook `{}`", text.chars().take(80).collect::<String>()),
            None => format!("a hook of type {kind}"),
        }
    }

    /// The hook, if it can be run. Differences from the file go to `remarks`.
    pub(super) fn policy(
        &self,
        matcher: Option<String>,
        others: &[HookPolicy],
        remarks: &mut Vec<String>,
    ) -> Result<HookPolicy, String> {
        let program = self.program()?;
        remarks.extend(self.foreign_model());
        if self.flag("once")? {
            remarks.push("`once` counts only in a skill: it is asked each time".to_owned());
        }
        Ok(HookPolicy {
            name: name_of((self.event, matcher.as_deref()), self.label(), &self.as_written(&program), others),
            point: self.point,
            matcher,
            condition: self.condition()?,
            program: Some(program),
            contract: self.of.contract,
            timeout_ms: self.timeout_ms()?,
            on_failure: OnFailure::ContinueIfRun,
            may_remind: true,
            setup: HookSetup { waiting: self.waiting()?, ..HookSetup::default() },
        })
    }

    /// The program with its command as the file has it, without the shell around it.
    fn as_written(&self, program: &HookProgram) -> HookProgram {
        match (program, self.value.get("command").and_then(Value::as_str)) {
            (HookProgram::Shell { .. }, Some(command)) => HookProgram::Shell { command: command.to_owned() },
            _ => program.clone(),
        }
    }

    /// How its file calls it, if it does.
    fn label(&self) -> Option<&str> {
        let all = ["id", "description"].into_iter();
        let mut all = all.flat_map(|name| [self.value.get(name), self.group.get(name)]);
        all.find_map(|label| label?.as_str()).filter(|label| !label.trim().is_empty())
    }

    fn program(&self) -> Result<HookProgram, String> {
        match self.text("type")?.ok_or("it has no `type`")? {
            "command" => self.command(),
            "http" => self.http(),
            "prompt" => self.model(HookModelWork::Answers),
            "agent" => self.model(HookModelWork::Reads),
            "mcp_tool" => {
                Err("Provost runs hooks of the types command, http, prompt and agent, not mcp_tool"
                    .to_owned())
            }
            other => Err(format!("there are no hooks of type `{other}`")),
        }
    }

    /// The model is chosen where a run's models are: what the file names stands in its place until then.
    fn model(&self, work: HookModelWork) -> Result<HookProgram, String> {
        if !self.point.takes_models() {
            return Err("this event takes no prompt and agent hooks".to_owned());
        }
        let prompt = self.text("prompt")?.filter(|prompt| !prompt.trim().is_empty());
        let prompt = prompt.ok_or("it has no `prompt`")?.to_owned();
        let named = self.text("model")?.filter(|name| is_provosts(name));
        let model = ModelPolicy::new(named.unwrap_or_default(), 0);
        let continue_on_block = self.flag("continueOnBlock")?;
        Ok(HookProgram::Model(Box::new(HookModel { prompt, model, work, continue_on_block })))
    }

    /// A remark on a model that another program's file names in that program's words.
    fn foreign_model(&self) -> Option<String> {
        let name = self.text("model").ok()??;
        (!is_provosts(name)).then(|| {
            format!(
                "its model `{name}` isn't named as provider/model: the one that [hooks] model names is asked"
            )
        })
    }

    fn command(&self) -> Result<HookProgram, String> {
        let command = self.text("command")?.filter(|command| !command.trim().is_empty());
        let command = command.ok_or("it has no `command`")?.to_owned();
        self.refuse_unset(&command)?;
        if let Some(args) = self.value.get("args").filter(|args| !args.is_null()) {
            let args = texts(args).ok_or("its `args` are no list of texts")?;
            args.iter().try_for_each(|arg| self.refuse_unset(arg))?;
            return Ok(HookProgram::Exec { program: command, args });
        }
        match self.text("shell")? {
            // Codex runs its hooks in the user's own shell, as at a login.
            None if self.of.contract == HookContract::Codex => {
                let command = format!("exec \"${{SHELL:-/bin/sh}}\" -lc {}", quoted(&command));
                Ok(HookProgram::Shell { command })
            }
            None => Ok(HookProgram::Shell { command }),
            Some("bash") => Ok(HookProgram::Shell { command: format!("exec bash -c {}", quoted(&command)) }),
            Some(other) => Err(format!("Provost runs commands in sh and bash, not in {other}")),
        }
    }

    /// A command without a value that it needs would run something else.
    fn refuse_unset(&self, text: &str) -> Result<(), String> {
        match plugin_variables(text).find(|name| !self.of.variables.contains(name)) {
            Some(name) => Err(format!(
                "it needs the variable {name}, which is set only for a plugin's hooks: import them with \
                 \"claude-plugin:FOLDER\""
            )),
            None => Ok(()),
        }
    }

    fn waiting(&self) -> Result<HookWaiting, String> {
        let wakes = self.flag("asyncRewake")?;
        Ok(match (wakes, self.flag("async")?) {
            (true, _) => HookWaiting::Wakes,
            (false, true) => HookWaiting::Background,
            (false, false) => HookWaiting::Waits,
        })
    }

    fn http(&self) -> Result<HookProgram, String> {
        if self.point == HookPoint::SessionStart {
            return Err("this event takes no http hooks".to_owned());
        }
        let url = self.text("url")?.ok_or("it has no `url`")?;
        http::parse(url)?;
        let headers = match self.value.get("headers") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Object(headers)) => {
                let pair =
                    |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
                let headers: Option<Vec<_>> = headers.iter().map(pair).collect();
                headers.ok_or("its `headers` are no texts")?
            }
            Some(_) => return Err("its `headers` are no object".to_owned()),
        };
        let allowed_env = match self.value.get("allowedEnvVars") {
            None | Some(Value::Null) => Vec::new(),
            Some(names) => texts(names).ok_or("its `allowedEnvVars` are no list of texts")?,
        };
        Ok(HookProgram::Http { url: url.to_owned(), headers, allowed_env })
    }

    fn condition(&self) -> Result<Option<String>, String> {
        let Some(condition) = self.text("if")? else { return Ok(None) };
        if !rules(self.point).is_about_a_call {
            return Err("a hook with `if` never runs at an event that isn't about one tool call".to_owned());
        }
        condition::read(condition)?;
        Ok(Some(condition.to_owned()))
    }

    fn timeout_ms(&self) -> Result<u64, String> {
        let secs = match self.value.get("timeout") {
            None | Some(Value::Null) => {
                return Ok(match (self.text("type")?, self.point) {
                    (Some("prompt"), _) => MODEL_TIMEOUT_MS,
                    (Some("agent"), _) => READER_TIMEOUT_MS,
                    (_, HookPoint::PromptSubmit) => PROMPT_TIMEOUT_MS,
                    (_, HookPoint::SessionEnd) => NOT_SAID,
                    _ => TIMEOUT_MS,
                });
            }
            Some(value) => value.as_f64().filter(|secs| *secs > 0.0 && *secs <= TIMEOUT_SECS_MAX),
        };
        let secs = secs.ok_or("its `timeout` is no number of seconds above 0")?;
        let ms = std::time::Duration::from_secs_f64(secs).as_millis();
        Ok(u64::try_from(ms).unwrap_or(u64::MAX).max(1))
    }

    fn text(&self, name: &str) -> Result<Option<&str>, String> {
        match self.value.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("its `{name}` is no text")),
        }
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        match self.value.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(format!("its `{name}` is neither true nor false")),
        }
    }
}

/// Whether a model is named as Provost does.
fn is_provosts(name: &str) -> bool {
    name.contains(['/', ':'])
}

/// Sets the timeouts of the hooks at a session's end: 1.5 s, or the longest timeout that one of them sets, at most
/// a minute; and for each at most its own timeout.
pub(super) fn session_end_timeouts(hooks: &mut [HookPolicy]) {
    let most = hooks.iter().map(|hook| hook.timeout_ms).max().unwrap_or_default();
    let budget = most.clamp(SESSION_END_MS, SESSION_END_MS_MAX);
    for hook in hooks {
        hook.timeout_ms = if hook.timeout_ms == NOT_SAID { budget } else { hook.timeout_ms.min(budget) };
    }
}

/// The variables of plugins in `text` that have no default there.
fn plugin_variables(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(PLUGIN_PREFIX).filter_map(move |(at, _)| {
        let before = text.get(..at)?;
        let rest = text.get(at..)?;
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let has_default = before.ends_with("${") && !rest.get(end..)?.starts_with('}');
        let is_used = before.ends_with('$') || before.ends_with("${");
        (is_used && !has_default).then(|| rest.get(..end)).flatten()
    })
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// `text` as one shell word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
