//! `provost backup`: the whole store as one file.

use anyhow::Context as _;
use provost_sqlite::back_up;
use serde_json::json;

use super::{place, print, shown};
use crate::cli::BackupArgs;
use crate::exit::Exit;
use crate::render::{plural, safe, size};

pub(super) fn backup(args: &BackupArgs) -> anyhow::Result<Exit> {
    let database = place()?.database();
    let made = back_up(&database, &args.file)
        .with_context(|| format!("can't back up {} to {}", database.display(), args.file.display()))?;
    let (runs, bytes) = (made.runs.len(), made.bytes);
    if args.json {
        let file = args.file.display().to_string();
        print(&format!(
            "{}\n",
            json!({ "file": file, "runs": runs, "entries": made.entries, "bytes": bytes })
        ))?;
    } else {
        let runs = plural(runs as u64, "run");
        print(&format!("{runs}, {}, in {}; checked\n", size(bytes), safe(&shown(&args.file))))?;
    }
    Ok(Exit::Done)
}
