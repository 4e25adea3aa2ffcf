//! What `provost init` asks, what it suggests, and which answers it takes.

use std::io::{BufRead as _, IsTerminal as _, stdin, stdout};
use std::path::Path;

use anyhow::Context as _;
use provost_config::{Override, Request, Scope, Settings, ShortFile, ShortSandbox, Source, load};
use provost_event::MicroDollars;
use provost_llm::{ProviderSettings, ResolveError, resolve};

use super::super::{place, print};
use crate::cli::InitArgs;
use crate::exit::Refusal;
use crate::render::safe;
use crate::wiring::variables;
use provost_runtime::{Variables, available_tools, providers};

/// The answer for none.
const NONE: &str = "-";
/// What a run may cost where it is known what it costs.
const USD: &str = "5";
/// How long a run may take where it isn't.
const TIME: &str = "2h";

/// A build tool's file, and the command that checks a project that has it.
const CHECKS: [(&str, &str); 7] = [
    ("Cargo.toml", "cargo test"),
    ("package.json", "npm test"),
    ("go.mod", "go test ./..."),
    ("pyproject.toml", "python3 -m pytest"),
    ("pom.xml", "mvn -q test"),
    ("build.gradle", "./gradlew test"),
    ("Makefile", "make test"),
];

/// The settings for a short file: of the flags, of the user at a terminal, or as suggested; `None` if the user ends
/// the input.
///
/// # Errors
/// When a flag has an impossible value, or the terminal can't be read.
pub(super) fn answers(
    args: &InitArgs,
    folder: &Path,
    variables: &Variables,
) -> anyhow::Result<Option<ShortFile>> {
    let is_asked = stdin().is_terminal() && stdout().is_terminal();
    let request = Request::new(Scope::User, folder, variables, available_tools());
    let settings = load(&request)?.0.settings;
    let providers = providers(&settings, variables);

    let question = Question {
        text: "Model, as provider/model. `provost models` lists them; ollama/NAME is one on this machine",
        suggested: suggested_model(&settings, &providers),
        flag: "--model",
        given: args.model.as_deref(),
        is_asked,
    };
    let Some(model) = question.answer(|model| model_of(model, folder, &providers))? else {
        return Ok(None);
    };
    let check = if args.user {
        None
    } else {
        let question = Question {
            text: "Command that checks the work: an agent that says it is done goes on until it passes; - for none",
            suggested: suggested_check(folder),
            flag: "--check",
            given: args.check.as_deref(),
            is_asked,
        };
        match question.answer(|command| Ok(Some(command).filter(|one| *one != NONE).map(str::to_owned)))? {
            Some(check) => check,
            None => return Ok(None),
        }
    };
    let price = providers.facts(&model).and_then(|facts| facts.price);
    let has_price = price.is_some_and(|price| price.output > MicroDollars(0));
    let question = Question {
        text: "Budget of a run: US dollars such as 5, or a time such as 2h; - for none",
        suggested: if has_price { USD } else { TIME }.to_owned(),
        flag: "--budget",
        given: args.budget.as_deref(),
        is_asked,
    };
    let Some(limit) = question.answer(|limit| limit_of(limit, folder))? else { return Ok(None) };
    Ok(Some(ShortFile { model, limit, check, sandbox: sandbox()? }))
}

/// Whether a sandbox is possible here: one is tried.
fn sandbox() -> anyhow::Result<ShortSandbox> {
    Ok(match place()?.sandbox(variables()).try_it() {
        Ok(()) => ShortSandbox::Possible,
        Err(why) => ShortSandbox::Impossible(why),
    })
}

struct Question<'a> {
    text: &'a str,
    /// What Enter stands for.
    suggested: String,
    flag: &'static str,
    /// The flag's value.
    given: Option<&'a str>,
    is_asked: bool,
}

impl Question<'_> {
    /// The answer as `read` takes it; asks again after one that it refuses. `None` at the end of the input.
    fn answer<T>(self, read: impl Fn(&str) -> Result<T, String>) -> anyhow::Result<Option<T>> {
        if let Some(given) = self.given {
            let wrong = |why| Refusal::new(format!("{}: {why}", self.flag), "");
            return Ok(Some(read(given).map_err(wrong)?));
        }
        if !self.is_asked {
            let wrong = |why| Refusal::new(why, format!("{} names another", self.flag));
            return Ok(Some(read(&self.suggested).map_err(wrong)?));
        }
        print(&format!("{}\n", self.text))?;
        loop {
            print(&format!("  [{}] ", safe(&self.suggested)))?;
            let mut line = String::new();
            if stdin().lock().read_line(&mut line).context("can't read the answer")? == 0 {
                return Ok(None);
            }
            let typed = line.trim();
            match read(if typed.is_empty() { &self.suggested } else { typed }) {
                Ok(answer) => return Ok(Some(answer)),
                Err(why) => print(&safe(&format!("  {why}\n")))?,
            }
        }
    }
}

/// The model that the settings say, unless only others have their key.
fn suggested_model(settings: &Settings, providers: &ProviderSettings) -> String {
    let is_ready = |name: &str| {
        let provider = name.split_once('/').and_then(|(provider, _)| providers.providers.get(provider));
        provider.is_none_or(|one| !one.key_required || providers.key(&one.name).is_some())
    };
    if is_ready(&settings.model) {
        return settings.model.clone();
    }
    let mut with_key = providers.providers.iter().filter(|one| providers.key(&one.name).is_some());
    let first = with_key.find_map(|one| {
        providers
            .catalog
            .of_provider(&one.name)
            .find(|facts| facts.retires.is_none() && facts.price.is_some())
    });
    first.map_or_else(|| settings.model.clone(), |facts| facts.name.clone())
}

fn suggested_check(folder: &Path) -> String {
    let found = CHECKS.iter().find(|(file, _)| folder.join(file).is_file());
    found.map_or(NONE, |(_, command)| command).to_owned()
}

/// A model's name, of a provider that there is. A script or a recording may come later.
fn model_of(name: &str, folder: &Path, providers: &ProviderSettings) -> Result<String, String> {
    checked("--model", name, folder)?;
    match resolve(name, providers) {
        Err(error @ (ResolveError::UnknownProvider { .. } | ResolveError::NoModel { .. })) => {
            Err(error.to_string())
        }
        _ => Ok(name.to_owned()),
    }
}

/// A key of `[budget]` with its value.
fn limit_of(text: &str, folder: &Path) -> Result<Option<(&'static str, String)>, String> {
    if text == NONE {
        return Ok(None);
    }
    let with_hint = |why: String| format!("{why}; write 5 for US dollars, 2h for a time");
    let amount = text.strip_prefix('$').unwrap_or(text).trim();
    if let Ok(usd) = amount.parse::<f64>() {
        checked("--usd", amount, folder).map_err(with_hint)?;
        // As TOML has numbers: `.5` isn't one.
        return Ok(Some(("usd", format!("{usd:?}"))));
    }
    checked("--wall-time", text, folder).map_err(with_hint)?;
    Ok(Some(("wall_time", toml_string(text))))
}

fn toml_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Whether the setting of `flag` takes `value`; else why not.
fn checked(flag: &'static str, value: &str, folder: &Path) -> Result<(), String> {
    let variables = variables();
    let flags = [Override::new(flag, value)];
    let request =
        Request { flags: &flags, ..Request::new(Scope::User, folder, &variables, available_tools()) };
    let (loading, _) = load(&request).map_err(|error| error.to_string())?;
    let problem = loading.problems.iter().find(|problem| problem.source == Source::Flag(flag));
    problem.map_or(Ok(()), |problem| Err(problem.what.clone()))
}
