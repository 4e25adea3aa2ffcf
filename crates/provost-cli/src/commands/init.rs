//! `provost init`: a commented settings file.

use std::io::Write as _;

use anyhow::Context as _;
use provost_config::{FILE_NAME, Folders, init_file};

use super::{current_dir, print, shown};
use crate::cli::InitArgs;
use crate::exit::{Exit, Refusal};

pub(super) fn init(args: &InitArgs) -> anyhow::Result<Exit> {
    let path = if args.user { Folders::of_platform()?.user_file } else { current_dir()?.join(FILE_NAME) };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).truncate(args.force).create(args.force).create_new(!args.force);
    let mut file = match options.open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(
                Refusal::new(format!("{} is there already", shown(&path)), "--force replaces it").into()
            );
        }
        opened => opened.with_context(|| format!("can't write {}", shown(&path)))?,
    };
    file.write_all(init_file(args.user).as_bytes())
        .with_context(|| format!("can't write {}", shown(&path)))?;
    print(&format!("wrote {}\n", shown(&path)))?;
    Ok(Exit::Done)
}
