//! `provost backup`: the whole store as one file.

use anyhow::Context as _;
use provost_sqlite::back_up;
use provost_view::{StoreBackup, ViewVersion};

use super::{place, print, print_json, shown};
use crate::cli::BackupArgs;
use crate::exit::Exit;
use crate::render::{plural, safe, size};

pub(super) fn backup(args: &BackupArgs) -> anyhow::Result<Exit> {
    let database = place()?.database()?;
    let made = back_up(&database, &args.file)
        .with_context(|| format!("can't back up {} to {}", database.display(), args.file.display()))?;
    let (runs, bytes) = (made.runs.len(), made.bytes);
    if args.json {
        let file = args.file.clone();
        print_json(&StoreBackup { v: ViewVersion, file, runs, entries: made.entries, bytes })?;
    } else {
        let runs = plural(runs as u64, "run");
        print(&format!("{runs}, {}, in {}; checked\n", size(bytes), safe(&shown(&args.file))))?;
    }
    Ok(Exit::Done)
}
