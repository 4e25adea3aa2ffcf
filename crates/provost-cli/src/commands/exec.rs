//! `provost exec`: an external program as the agent of a run.

mod attended;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use provost_event::{Channel, Metering, RunId, RunPolicy, WindowSize};
use provost_harness::{Goal, without_keys};
use provost_terminal::Profile;
use serde::{Deserialize, Serialize};

use super::run::{Ready, Shape, read_file, read_stdin, tell, with_stdin};
use super::target::Target;
use super::{backend_to_show, place};
use crate::attached::{must_be_terminal, size};
use crate::cli::{BackgroundArgs, ChannelArg, ExecArgs};
use crate::exit::{Exit, Refusal};
use crate::input::tell_of_unread;
use crate::render::Progress;
use crate::stands_for::StandsFor;
use crate::unattended::work_for;
use crate::wiring::{attended, with_person};
use provost_runtime::require;
use provost_runtime::{Manner, Team, Variables, WantedProgram, external_policy, metering_of, profile_of};

const STDIN: &str = "-";
const EXAMPLE: &str =
    "e.g. provost exec -- codex; or provost exec --unattended --prompt \"Make the tests pass\" -- codex";
const UNATTENDED: &str = "--unattended runs it without a person at the terminal, e.g. provost exec --unattended --prompt \"…\" -- codex";

/// The name of the command that works on a run in the background of a person's terminal.
pub(super) const IN_BACKGROUND: &str = "work-attended";

pub(super) async fn exec(mut args: ExecArgs) -> anyhow::Result<Exit> {
    if let Some(run) = &mut args.calls.replay_calls {
        let backend = backend_to_show().await?;
        *run = Target::whole_run(&*backend, run, "exec --replay-calls").await?.to_string();
    }
    let is_apart = args.unattended && !args.stands_for_program;
    if let Some(engine) = place()?.engine().filter(|_| !is_apart) {
        let refusal = match args.stands_for_program {
            true => Refusal::new(
                format!(
                    "the model gateway works on this machine only, and runs are kept in the engine {engine}"
                ),
                "run it where neither PROVOST_ENGINE_URL nor engine.url in your settings names an engine",
            ),
            false => Refusal::new(
                format!("a program at this terminal can't be worked on by workers of the engine {engine}"),
                UNATTENDED,
            ),
        };
        return Err(refusal.into());
    }
    if args.unattended {
        return work(args, None).await;
    }
    if args.shown.json {
        let what = "--json prints to standard output, which an attended program has for itself";
        return Err(Refusal::new(what, UNATTENDED).into());
    }
    must_be_terminal("provost exec", UNATTENDED)?;
    attended::attend(args).await
}

/// Works on a run whose program a person's terminal is attached to. No user calls it.
pub(super) async fn in_background(args: BackgroundArgs) -> anyhow::Result<Exit> {
    work_for(args.run.parse::<RunId>().ok().context("a run's id is expected")?);
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("can't read the work")?;
    let AttendedWork { args, terminal } = serde_json::from_str(&text).context("work is expected, as JSON")?;
    work(args, Some(terminal)).await
}

/// A program that a person works at.
#[derive(Serialize, Deserialize)]
struct AttendedWork {
    args: ExecArgs,
    terminal: PersonsTerminal,
}

/// What a program has to know of a person's terminal from its start on.
#[derive(Serialize, Deserialize)]
struct PersonsTerminal {
    size: Option<WindowSize>,
    /// Its `TERM`, and the other variables that describe it.
    variables: BTreeMap<String, String>,
}

/// Variables that describe a terminal besides `COLORTERM`, which every program gets.
const OF_TERMINAL: [&str; 7] =
    ["TERM", "TERMINFO", "TERMINFO_DIRS", "COLORFGBG", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "VTE_VERSION"];

impl PersonsTerminal {
    /// That of this process.
    fn here(variables: &Variables) -> Self {
        let known = OF_TERMINAL.into_iter().filter_map(|name| Some((name, variables.get(name)?)));
        let known = known.filter(|(_, value)| !value.is_empty());
        let known = known.filter(|(name, value)| *name != "TERM" || *value != "dumb");
        let variables = known.map(|(name, value)| (name.to_owned(), value.clone())).collect();
        Self { size: size(), variables }
    }

    /// The program begins at the size of the terminal, and with the variables that describe it.
    fn told(self, mut policy: RunPolicy) -> RunPolicy {
        let Some(external) = policy.agent.external.as_mut() else { return policy };
        external.size = self.size.unwrap_or(external.size);
        for (name, value) in self.variables {
            external.env.entry(name).or_insert(value);
        }
        policy
    }
}

/// Works on a run of the program in this process, with or without a person's terminal elsewhere.
async fn work(args: ExecArgs, person: Option<PersonsTerminal>) -> anyhow::Result<Exit> {
    let prompt = prompt(&args)?;
    let passes_streams = args.channel == ChannelArg::Streams;
    if !passes_streams {
        tell_of_unread("; `--prompt -` tells it to the program, --stdin adds it to what that is told");
    }
    let ready = Ready::new(&args.work(), args.flags())?;
    require(&ready.place.trust(), &ready.settled.project)?;
    let (program, program_args) = command(&args, &ready.folder, &ready.variables)?;
    let profiles = ready.settled.profiles()?;
    let profile = profile_of(&profiles, args.profile.as_deref(), (&program, &program_args))?;
    may_be_spoken_to(args.channel, &profile, &args)?;
    let metering = metering_of(&ready.settled, &profile, &ready.variables);
    if args.stands_for_program && metering != Metering::Gateway {
        let what = "no provider of the model gateway can be called: none has its key";
        let remedy =
            "set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or name another provider in [gateway]";
        return Err(Refusal::new(what, remedy).into());
    }
    let team = Team::of_program(&ready.settled, (&program, metering), &ready.folder, &ready.variables)?;
    let manner = match (args.unattended, prompt.is_some()) {
        (true, true) => Manner::Prompted,
        (true, false) => Manner::Alone,
        (false, true) => Manner::AttendedPrompted,
        (false, false) => Manner::Attended,
    };
    let goal = prompt.unwrap_or_else(|| in_shell_words(&without_keys(&args.command)));
    let notes = notes(&ready, metering);
    let channel = args.channel.into();
    let wanted = WantedProgram { program, args: program_args, profile, channel, manner, metering };
    let policy = external_policy(&ready.settled, &team, &ready.folder, wanted);
    tell(&notes);
    let goal = Goal { text: goal, images: Vec::new() };
    let (policy, shape) = match person {
        Some(terminal) => {
            let stands_for = if args.stands_for_program { StandsFor::Program } else { StandsFor::Run };
            (terminal.told(with_person(policy)), Shape { progress: Progress::Silent, stands_for })
        }
        None => {
            let policy = attended(policy);
            let stands_for = match args.stands_for_program {
                true if passes_streams => StandsFor::of(&policy, args.shown),
                true => StandsFor::Program,
                false => StandsFor::Run,
            };
            let is_here = passes_streams.then(|| PersonsTerminal::here(&ready.variables));
            let policy = is_here.into_iter().fold(policy, |policy, terminal| terminal.told(policy));
            (policy, Shape { progress: stands_for.progress(args.shown), stands_for })
        }
    };
    ready.begin(goal, policy, team.models, shape).await?.finish().await
}

/// The program's prompt; absent where its arguments say what it does.
fn prompt(args: &ExecArgs) -> anyhow::Result<Option<String>> {
    let text = match (&args.prompt, &args.file) {
        (_, Some(file)) => read_file(file)?,
        (Some(text), None) if text != STDIN => text.clone(),
        (None, None) if args.stdin => args.condition.clone().unwrap_or_default(),
        (Some(_), None) if !args.unattended || std::io::stdin().is_terminal() => {
            let what = "--prompt -: standard input is a terminal";
            return Err(Refusal::new(what, "give the text, or --file FILE").into());
        }
        (Some(_), None) => read_stdin()?,
        (None, None) => return Ok(args.condition.clone()),
    };
    let text = if args.stdin { with_stdin(&text)? } else { text };
    match text.trim() {
        "" => {
            Err(Refusal::new("the prompt is empty", "leave it out, or say what the program should do").into())
        }
        text => Ok(Some(text.to_owned())),
    }
}

/// The program, with its path where it isn't to be looked for in `PATH`, and its arguments.
fn command(args: &ExecArgs, folder: &Path, variables: &Variables) -> Result<(String, Vec<String>), Refusal> {
    let Some((program, rest)) = args.command.split_first().filter(|(program, _)| !program.is_empty()) else {
        return Err(Refusal::new("there is no program to run", EXAMPLE));
    };
    let program = if program.contains('/') {
        // The shell that it was typed in means its own folder.
        let path = std::env::current_dir().unwrap_or_else(|_| folder.to_owned()).join(program);
        is_program(&path).then(|| path.display().to_string())
    } else {
        in_path(program, variables).then(|| program.clone())
    };
    let program = program.ok_or_else(|| {
        let what = format!("there is no program `{}`", args.command.first().map_or("", String::as_str));
        Refusal::new(what, "it must be in PATH, or be given with its path")
    })?;
    Ok((program, rest.to_vec()))
}

fn in_path(program: &str, variables: &Variables) -> bool {
    let path = variables.get("PATH").map(OsStr::new).unwrap_or_default();
    std::env::split_paths(path).any(|folder: PathBuf| is_program(&folder.join(program)))
}

fn is_program(path: &Path) -> bool {
    let Ok(facts) = path.metadata() else { return false };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&facts.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    facts.is_file() && may_run
}

fn may_be_spoken_to(channel: ChannelArg, profile: &Profile, args: &ExecArgs) -> Result<(), Refusal> {
    if Channel::from(channel) != Channel::Structured {
        return Ok(());
    }
    if profile.streams().next().is_none() {
        let what = format!("--channel structured: the profile {} names no structured stream", profile.name);
        return Err(Refusal::new(what, "leave it out: the terminal is the way that any program has"));
    }
    if !args.unattended {
        let what = "--channel structured: a person works at a terminal";
        return Err(Refusal::new(what, UNATTENDED));
    }
    Ok(())
}

/// Notes on limits that may not bind, and on missing variables.
fn notes(ready: &Ready, metering: Metering) -> Vec<String> {
    let settings = &ready.settled.settings;
    let (tokens, money) = (settings.budget.tokens.is_some(), settings.budget.money.is_some());
    let mut notes = Vec::new();
    if metering == Metering::Unmetered && money {
        notes.push(
            "the program is unmetered: budget.usd doesn't bind it; --wall-time always binds".to_owned(),
        );
    } else if metering == Metering::Reported && (tokens || money) {
        let which = match (tokens, money) {
            (true, true) => "budget.tokens and budget.usd bind",
            (true, false) => "budget.tokens binds",
            _ => "budget.usd binds",
        };
        notes.push(format!(
            "{which} only as far as the program tells what it takes; --wall-time always binds"
        ));
    }
    let missing = settings.exec.passes.iter().filter(|name| !ready.variables.contains_key(*name));
    notes.extend(missing.map(|name| format!("exec.env names {name}, which isn't set here")));
    notes
}

/// The command as it could be typed.
pub(crate) fn in_shell_words(command: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
    let word = |word: &String| match word.is_empty() || !word.chars().all(is_plain) {
        true => format!("'{}'", word.replace('\'', "'\\''")),
        false => word.clone(),
    };
    command.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::in_shell_words;

    #[test]
    fn a_command_is_told_as_it_could_be_typed() {
        let words =
            |all: &[&str]| in_shell_words(&all.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&["git", "commit", "-m", "it's done", ""]), r"git commit -m 'it'\''s done' ''");
    }
}
