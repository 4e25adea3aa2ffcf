//! `provost check`: what the settings come to, and what is wrong with them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use provost_llm::{ResolveError, resolve};
use serde_json::json;

use super::{current_dir, print, shown};
use crate::cli::CheckArgs;
use crate::exit::Exit;
use crate::render::{one_line, safe};
use crate::settings::{Given, Loading, Problem, Request, Scope, Settled, keys, load, named_keys, schema};
use crate::wiring::{Variables, choose_model, model_name, providers, variables};

const VALUE_WIDTH: usize = 60;

pub(super) fn check(args: &CheckArgs) -> anyhow::Result<Exit> {
    if args.schema {
        print(&format!("{:#}\n", schema()))?;
        return Ok(Exit::Done);
    }
    let (folder, variables) = (current_dir()?, variables());
    let file = args.config.as_deref();
    let request = Request { scope: Scope::Project, folder: &folder, file, variables: &variables, flags: &[] };
    let (loading, _) = load(&request)?;
    let mut found = Found::of(loading);
    found.check_model(&folder, &variables);
    print(&if args.json { found.json() } else { safe(&found.page()) })?;
    Ok(if found.problems.is_empty() { Exit::Done } else { Exit::Usage })
}

fn shown_value(given: &Given) -> String {
    let value = one_line(&given.shown, VALUE_WIDTH);
    format!("{}  ({})", if value.is_empty() { "\"\"" } else { &value }, given.source)
}

struct Found {
    files: Vec<String>,
    given: BTreeMap<String, Given>,
    hooks: Vec<(String, String, String)>,
    problems: Vec<Problem>,
    warnings: Vec<String>,
    /// Only settings without a problem are looked at further.
    settled: Option<Settled>,
}

impl Found {
    fn of(loading: Loading) -> Self {
        let hooks = loading.settings.stop_hooks.iter();
        let hooks = hooks.map(|hook| (hook.name.clone(), hook.command.clone(), hook.source.to_string()));
        Self {
            files: loading.files.iter().map(|file| shown(file)).collect(),
            given: loading.given.clone(),
            hooks: hooks.collect(),
            problems: loading.problems.clone(),
            warnings: Vec::new(),
            settled: loading.settled().ok(),
        }
    }

    /// A missing key is no fault of the settings; everything else is.
    fn check_model(&mut self, folder: &std::path::Path, variables: &Variables) {
        let Some(settled) = &self.settled else { return };
        let name = model_name(&settled.settings, &settled.source("agent.model"), folder);
        match resolve(&name, &providers(&settled.settings, variables)) {
            Err(error @ ResolveError::MissingKey { .. }) => self.warnings.push(error.to_string()),
            _ => {
                if let Err(problems) = choose_model(settled, folder, variables) {
                    self.problems.extend(problems.0);
                }
            }
        }
    }

    fn page(&self) -> String {
        let mut out = String::new();
        // Writing to a String can't fail, here and below.
        for file in &self.files {
            let _ = writeln!(out, "read {file}");
        }
        if self.files.is_empty() {
            out.push_str("no settings file; `provost init` writes one\n");
        }
        out.push('\n');
        let named = named_keys(&self.given).map(|(key, _)| key.len());
        let width = keys().map(|(key, _)| key.len()).chain(named).max().unwrap_or_default();
        for (key, unset) in keys() {
            let value = self.given.get(&key).map_or_else(|| format!("not set: {unset}"), shown_value);
            let _ = writeln!(out, "{key:<width$}  {value}");
        }
        for (key, given) in named_keys(&self.given) {
            let _ = writeln!(out, "{key:<width$}  {}", shown_value(given));
        }
        for (name, command, source) in &self.hooks {
            let _ = writeln!(out, "stop hook {name}  {}  ({source})", one_line(command, VALUE_WIDTH));
        }
        out.push('\n');
        for problem in &self.problems {
            let _ = writeln!(out, "error: {problem}");
        }
        for warning in &self.warnings {
            let _ = writeln!(out, "warning: {warning}");
        }
        if self.problems.is_empty() && self.warnings.is_empty() {
            out.push_str("all right\n");
        }
        out
    }

    fn json(&self) -> String {
        let settings = self.given.iter().map(
            |(key, given)| json!({ "key": key, "value": given.shown, "source": given.source.to_string() }),
        );
        let hooks = self
            .hooks
            .iter()
            .map(|(name, command, source)| json!({ "name": name, "command": command, "source": source }));
        let problems = self.problems.iter().map(|problem| {
            json!({
                "source": problem.source.to_string(),
                "key": problem.key,
                "what": problem.what,
                "remedy": problem.remedy,
            })
        });
        let whole = json!({
            "ok": self.problems.is_empty(),
            "files": self.files,
            "settings": settings.collect::<Vec<_>>(),
            "stop_hooks": hooks.collect::<Vec<_>>(),
            "problems": problems.collect::<Vec<_>>(),
            "warnings": self.warnings,
        });
        format!("{whole}\n")
    }
}
