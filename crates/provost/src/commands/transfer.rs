//! `provost export` and `import`: a run as a file.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::Path;

use anyhow::Context as _;
use provost_event::RunId;
use provost_store::{ImportChange, Imported, LocalHome, export_run, import_run};

use super::find::find;
use super::{home, home_to_read, print};
use crate::cli::{ExportArgs, ImportArgs};
use crate::exit::Exit;
use crate::output::{Stdout, tell};
use crate::render::plural;

pub(super) async fn export(args: ExportArgs) -> anyhow::Result<Exit> {
    let home = home_to_read()?;
    let run = find(&home, &args.run).await?;
    match &args.output {
        Some(file) => to_file(&home, run, file).await?,
        None => {
            let mut out = BufWriter::new(Stdout);
            export_run(&*home, run, &mut out).await?;
            out.flush().context("can't write to standard output")?;
        }
    }
    Ok(Exit::Done)
}

/// What is to be known of a run that was imported; nothing of one that is new.
fn in_words(imported: &Imported) -> Option<String> {
    let run = imported.run;
    match imported.change {
        ImportChange::New => None,
        ImportChange::Extended(entries) => {
            let entries = plural(entries as u64, "entry");
            Some(format!("run {run} was there already: {entries} added"))
        }
        ImportChange::Known => {
            Some(format!("run {run} was there already, with all that the file has: nothing changed"))
        }
    }
}

/// Whole or not at all: an export that breaks off leaves what was there.
async fn to_file(home: &LocalHome, run: RunId, file: &Path) -> anyhow::Result<()> {
    let draft = file.with_added_extension("new");
    let written = write_draft(home, run, &draft).await.and_then(|lines| {
        std::fs::rename(&draft, file)?;
        Ok(lines)
    });
    let lines = written.inspect_err(|_| drop(std::fs::remove_file(&draft)));
    let lines = lines.with_context(|| format!("can't export run {run} to {}", file.display()))?;
    tell(&format!("run {run}: {} in {}", plural(lines as u64, "line"), file.display()));
    Ok(())
}

async fn write_draft(home: &LocalHome, run: RunId, draft: &Path) -> anyhow::Result<usize> {
    let mut out = BufWriter::new(File::create(draft)?);
    let lines = export_run(home, run, &mut out).await?;
    out.into_inner()?.sync_all()?;
    Ok(lines)
}

pub(super) async fn import(args: ImportArgs) -> anyhow::Result<Exit> {
    let home = home()?;
    let cant = || format!("can't import {}", args.file.display());
    let imported = if args.file == Path::new("-") {
        import_run(&home, &mut BufReader::new(std::io::stdin())).await
    } else {
        import_run(&home, &mut BufReader::new(File::open(&args.file).with_context(cant)?)).await
    };
    let imported = imported.with_context(cant)?;
    imported.iter().filter_map(in_words).for_each(|line| tell(&line));
    let run = imported.first().context("there is no run in it")?.run;
    print(&format!("{run}\n"))?;
    Ok(Exit::Done)
}
