//! Secrets that stand in settings which every run's log holds.

use provost_event::HookProgram;
use provost_harness::Redactor;

use super::errors::{Problem, Source, Spot};
use super::hook::Hook;
use super::item::Item as _;
use super::stop_hook::StopHook;
use super::{Agent, Loading};

/// Parts of the names of headers that hold secrets: `Authorization`, `X-Api-Key`, `Cookie` …
const SECRET_HEADERS: [&str; 7] = ["AUTH", "KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "COOKIE"];

/// Whether a header or a variable of this name holds a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_HEADERS.iter().any(|part| name.contains(part))
}

/// Programs of hooks, stop hooks and external agents with a secret in them: their policy is in the log.
pub(crate) fn check(loading: &Loading) -> Vec<Problem> {
    let shapes = Redactor::default();
    let settings = &loading.settings;
    let mut found = Vec::new();
    for hook in &settings.hooks {
        if let Some((field, secret)) = hook.policy().and_then(|hook| secret_of(&hook.program?, &shapes)) {
            let key = format!("{}.{field}", Hook::LIST);
            found.push(problem(hook.source_of(field).clone(), key, &secret, "a hook"));
        }
    }
    for placed in &settings.imported {
        let secret = placed.policy.program.as_ref().and_then(|program| secret_of(program, &shapes));
        if let Some((field, secret)) = secret {
            let place = Source::File(Spot::at(&placed.place, "", 0));
            found.push(problem(place, format!("{}.{field}", Hook::LIST), &secret, "a hook"));
        }
    }
    for hook in settings.stop_hooks.iter().filter(|hook| is_secret(&hook.command, &shapes)) {
        let key = format!("{}.command", StopHook::LIST);
        found.push(problem(hook.source.clone(), key, "it", "a stop hook"));
    }
    for agent in &settings.agents {
        if agent.external().is_some_and(|program| is_any_secret(&program.command(), &shapes)) {
            let source = agent.source_of("args").clone();
            found.push(problem(source, format!("{}.args", Agent::LIST), "one", "an external agent"));
        }
    }
    found
}

/// The field of `program` that has a secret, and what of it.
fn secret_of(program: &HookProgram, shapes: &Redactor) -> Option<(&'static str, String)> {
    match program {
        HookProgram::Shell { command } => is_secret(command, shapes).then(|| ("command", "it".to_owned())),
        HookProgram::Exec { program, args } => {
            let is_secret = is_secret(program, shapes) || is_any_secret(args, shapes);
            is_secret.then(|| ("args", "one".to_owned()))
        }
        HookProgram::Model(model) => is_secret(&model.prompt, shapes).then(|| ("prompt", "it".to_owned())),
        HookProgram::Http { url, .. } if is_secret(url, shapes) => Some(("url", "it".to_owned())),
        HookProgram::Http { headers, .. } => {
            let has_secret = |(name, text): &&(String, String)| {
                let names_variable = text.contains('$');
                is_secret(text, shapes) || is_secret_name(name) && !text.is_empty() && !names_variable
            };
            headers.iter().find(has_secret).map(|(name, _)| ("headers", format!("`{name}`")))
        }
    }
}

pub(crate) fn is_secret(text: &str, shapes: &Redactor) -> bool {
    matches!(shapes.redact(text), std::borrow::Cow::Owned(_))
}

fn is_any_secret(texts: &[String], shapes: &Redactor) -> bool {
    texts.iter().any(|text| is_secret(text, shapes))
}

fn problem(source: Source, key: String, secret: &str, program: &str) -> Problem {
    let remedy = if key.ends_with("headers") {
        "put it into a variable, e.g. \"Bearer $HOOK_TOKEN\", and name that in allowed_env".to_owned()
    } else {
        format!("let {program} read it from a variable or a file")
    };
    let what = format!("{secret} holds a secret, and every run's log would hold it too");
    Problem { source, key, what, remedy }
}
