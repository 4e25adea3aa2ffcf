//! `provost profile`: the profiles of external programs, and how well they do on recordings.

mod mark;
mod record;
mod test;

use std::fmt::Write as _;

use provost_config::Folders;
use provost_config::Profiles;
use provost_terminal::{Profile, ProgramChannel, ProgramKind};
use serde_json::json;

use super::{current_dir, print, shown};
use crate::cli::ProfileCommand;
use crate::exit::Exit;
use crate::render::safe;

pub(super) fn profile(command: ProfileCommand) -> anyhow::Result<Exit> {
    match command {
        ProfileCommand::List { json } => list(&load()?, json),
        ProfileCommand::Show { name } => {
            let profile = load()?.named(&name)?;
            print(&safe(&profile.source))?;
            Ok(Exit::Done)
        }
        ProfileCommand::Test(args) => test::test(&args, &load()?, &current_dir()?),
        ProfileCommand::Record(args) => record::record(args, &load()?),
        ProfileCommand::Mark(args) => mark::mark(&args, &load()?),
    }
}

fn load() -> anyhow::Result<Profiles> {
    Ok(Profiles::load(&Folders::of_platform()?.user_file)?)
}

fn list(profiles: &Profiles, as_json: bool) -> anyhow::Result<Exit> {
    let all = profiles.all();
    let width = all.iter().map(|(_, profile)| profile.name.chars().count()).max().unwrap_or_default();
    let mut out = String::new();
    for (file, profile) in all {
        let from = file.map_or_else(|| "shipped".to_owned(), shown);
        let channels: Vec<_> = profile.channels.iter().map(ProgramChannel::name).collect();
        // Writing to a String can't fail.
        let _ = if as_json {
            writeln!(
                out,
                "{}",
                json!({
                    "name": profile.name,
                    "kind": kind(&profile),
                    "version": profile.version,
                    "tested": profile.tested,
                    "channels": channels,
                    "from": from,
                })
            )
        } else {
            let channels = format!(", driven by {}", channels.join(", "));
            let tested = match profile.tested.as_str() {
                "" => String::new(),
                tested => format!(", checked with {tested}"),
            };
            let version = profile.version;
            writeln!(
                out,
                "{:width$}  {}, version {version}{tested}{channels}  ({from})",
                profile.name,
                kind(&profile)
            )
        };
    }
    print(&safe(&out))?;
    Ok(Exit::Done)
}

const fn kind(profile: &Profile) -> &'static str {
    match profile.kind {
        ProgramKind::Agent => "agent",
        ProgramKind::Plain => "plain",
    }
}
