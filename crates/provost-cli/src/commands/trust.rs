//! `provost trust`: the user's consent to what a project's files request.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use provost_config::{FlowFile, Request, Scope, Skills, load};
use provost_config::{TrustState, TrustStore, Trusted, grant, trust_in};
use provost_event::{SandboxMode, Timestamp};
use provost_harness::{Clock as _, SystemClock};

use super::descent::Act;
use super::{print, shown};
use crate::cli::TrustArgs;
use crate::exit::{Exit, Refusal};
use crate::render::{Cells, Table, age, safe, terminal_width};
use crate::wiring::{state_dir, variables};
use provost_runtime::available_tools;

pub(super) const fn act_of(args: &TrustArgs) -> Act {
    if args.list { Act::Looks } else { Act::Acts("trust") }
}

pub(super) fn trust(args: &TrustArgs) -> anyhow::Result<Exit> {
    let folder = folder(args.dir.as_deref())?;
    if args.list {
        return list(&store(&folder)?);
    }
    if let Some(which) = &args.revoke {
        return revoke(&store(&folder)?, which.as_deref(), &folder);
    }
    let variables = variables();
    let file = args.config.as_deref();
    // `sandbox run` confines also where the settings don't, and takes no more than this from the project.
    let assumed_mode = SandboxMode::Workspace;
    let request = Request {
        file,
        assumed_mode,
        ..Request::new(Scope::Project, &folder, &variables, available_tools())
    };
    let (loading, folders) = load(&request)?;
    let mut settled = loading.settled()?;
    if let Some(file) = &args.flow {
        settled = settled.with_flow(&FlowFile::read(file)?);
    }
    let store = state_dir(&settled.settings, &folders).trust();
    let project = Skills::find(&folders.user_file, &folder, &store)?.with_requests(settled.project);
    let needed = match trust_in(&store, &project)? {
        TrustState::NotNeeded => return said("nothing here needs your trust\n"),
        TrustState::Trusted { .. } => return said("you trust this already\n"),
        TrustState::Needed(needed) => needed,
    };
    let whose = safe(&shown(&project.folder));
    print(&format!("The files of {whose} want this:\n\n{}\n", needed.listed()))?;
    if !args.yes && !asked()? {
        print("Nothing was changed.\n")?;
        return Ok(Exit::Usage);
    }
    // What was shown is what is kept: the files aren't read again.
    grant(&store, &project, SystemClock.now())?;
    said("Trusted. When one of these files changes you are asked again.\n")
}

fn said(text: &str) -> anyhow::Result<Exit> {
    print(text)?;
    Ok(Exit::Done)
}

/// Asks the user at the terminal; refuses without one.
fn asked() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Refusal::new(
            "this is no terminal, so you can't be asked",
            "`provost trust --yes` agrees to what is listed above, unasked",
        )
        .into());
    }
    print("What runs there runs as you. Trust it? [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("can't read the answer")?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

fn folder(dir: Option<&Path>) -> anyhow::Result<PathBuf> {
    let dir = dir.unwrap_or(Path::new("."));
    let found = dir.canonicalize().ok().filter(|folder| folder.is_dir());
    Ok(found.ok_or_else(|| {
        Refusal::new(format!("{} is no folder", dir.display()), "give --dir an existing folder")
    })?)
}

/// Where trust is kept, by the user's own settings: a project's settings, which may be wrong, don't count.
fn store(folder: &Path) -> anyhow::Result<TrustStore> {
    let variables = variables();
    let request = Request::new(Scope::User, folder, &variables, available_tools());
    let (loading, folders) = load(&request)?;
    Ok(state_dir(&loading.settled()?.settings, &folders).trust())
}

fn list(store: &TrustStore) -> anyhow::Result<Exit> {
    let all = store.all()?;
    if all.is_empty() {
        return said("you trust no project yet\n");
    }
    let now = SystemClock.now();
    let columns = [("FOLDER", Cells::CutAtStart), ("TRUSTED", Cells::Text), ("FILES", Cells::Text)];
    let mut table = Table::new(&columns);
    for (folder, trusted) in &all {
        table.row(vec![safe(&shown(folder)), since(now, trusted), safe(&files(folder, trusted))]);
    }
    print(&table.lines(terminal_width()))?;
    Ok(Exit::Done)
}

fn since(now: Timestamp, trusted: &Trusted) -> String {
    format!("{} ago", age(now, trusted.at))
}

fn files(folder: &Path, trusted: &Trusted) -> String {
    let files = trusted.files.iter().map(|(name, file)| match std::fs::read(folder.join(name)) {
        Ok(bytes) if blake3::hash(&bytes).to_hex().as_str() == file.blake3 => name.clone(),
        Ok(_) => format!("{name} (changed)"),
        Err(_) => format!("{name} (gone)"),
    });
    files.collect::<Vec<_>>().join(", ")
}

fn revoke(store: &TrustStore, which: Option<&Path>, here: &Path) -> anyhow::Result<Exit> {
    let candidates = match which {
        // One that is gone is named as it was.
        Some(folder) => vec![folder.canonicalize().unwrap_or(std::path::absolute(folder)?)],
        None => here.ancestors().map(Path::to_owned).collect(),
    };
    let revoked = store.change(|projects| {
        let found = candidates.iter().find(|folder| projects.contains_key(*folder)).cloned();
        found.inspect(|folder| drop(projects.remove(folder)))
    })?;
    match revoked {
        Some(folder) => said(&format!("no longer trusted: {}\n", safe(&shown(&folder)))),
        None => {
            let what = format!("you don't trust {}", shown(which.unwrap_or(here)));
            Err(Refusal::new(what, "`provost trust --list` shows what you trust").into())
        }
    }
}
