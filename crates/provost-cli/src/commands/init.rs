//! `provost init`: a settings file, short or with everything.

mod questions;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use provost_config::{FILE_NAME, Folders, Request, Scope, TrustState, init_file, load, short_file, trust_in};
use provost_llm::{ResolveError, resolve};

use self::questions::answers;
use super::{current_dir, print, shown};
use crate::cli::InitArgs;
use crate::exit::{Exit, Refusal};
use crate::render::safe;
use crate::wiring::{state_dir, variables};
use provost_runtime::{Variables, available_tools, providers};

pub(super) fn init(args: &InitArgs) -> anyhow::Result<Exit> {
    let (folder, variables) = (current_dir()?, variables());
    let path = if args.user { Folders::of_platform()?.user_file } else { folder.join(FILE_NAME) };
    // Asked before the questions, and again when it is written.
    if !args.force && path.symlink_metadata().is_ok() {
        return Err(there_already(&path).into());
    }
    let text = if args.all {
        init_file(args.user)
    } else {
        match answers(args, &folder, &variables)? {
            Some(short) => short_file(&short),
            None => {
                print("\nNothing was written.\n")?;
                return Ok(Exit::Cancelled);
            }
        }
    };
    write(&path, &text, args.force)?;
    print(&format!("wrote {}\n{}", shown(&path), safe(&next(&folder, &variables)?)))?;
    Ok(Exit::Done)
}

fn there_already(path: &Path) -> Refusal {
    Refusal::new(format!("{} is there already", shown(path)), "--force replaces it")
}

fn write(path: &Path, text: &str, force: bool) -> anyhow::Result<()> {
    let cant = || format!("can't write {}", shown(path));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
    }
    let mut options = OpenOptions::new();
    options.write(true).truncate(force).create(force).create_new(!force);
    match options.open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(there_already(path).into()),
        opened => opened.and_then(|mut file| file.write_all(text.as_bytes())).with_context(cant),
    }
}

/// What is left to do before a run, with the commands.
fn next(folder: &Path, variables: &Variables) -> anyhow::Result<String> {
    let request = Request::new(Scope::Project, folder, variables, available_tools());
    let (loading, folders) = load(&request)?;
    let Ok(settled) = loading.settled() else {
        return Ok("\nNext:\n  provost check           shows what is wrong with the settings\n".to_owned());
    };
    let mut steps = String::new();
    let resolved = resolve(&settled.settings.model, &providers(&settled.settings, variables));
    if let Err(ResolveError::MissingKey { key_env, .. }) = resolved {
        steps.push_str(&format!("  export {key_env}=…\n"));
    }
    let store = state_dir(&settled.settings, &folders).trust();
    if let TrustState::Needed(_) = trust_in(&store, &settled.project)? {
        steps.push_str("  provost trust           shows what the file runs, and asks for your consent\n");
    }
    Ok(format!("\nNext:\n{steps}  provost run \"Make the tests pass.\"      or another goal\n"))
}
