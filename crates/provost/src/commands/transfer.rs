//! `provost export` and `import`: a run as a file.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write as _};
use std::path::Path;

use anyhow::Context as _;
use provost_event::RunId;
use provost_store::{
    Exported, ImportChange, Imported, LocalHome, Salvaged, export_run, import_incomplete, import_run,
};

use super::find::find;
use super::{home, home_to_read, print};
use crate::cli::{ExportArgs, ImportArgs};
use crate::exit::Exit;
use crate::output::{Stdout, tell};
use crate::render::plural;

pub(super) async fn export(args: ExportArgs) -> anyhow::Result<Exit> {
    let home = home_to_read()?;
    let run = find(&home, &args.run).await?;
    let exported = match &args.output {
        Some(file) => to_file(&home, run, file).await?,
        None => {
            let mut out = BufWriter::new(Stdout);
            let exported = export_run(&*home, run, &mut out).await?;
            out.flush().context("can't write to standard output")?;
            exported
        }
    };
    if exported.lost.is_empty() {
        return Ok(Exit::Done);
    }
    exported.lost.iter().for_each(|lost| tell(&format!("error: the export is incomplete: {lost}")));
    tell("hint: `provost import --incomplete` takes what is in it");
    Ok(Exit::Failed)
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
async fn to_file(home: &LocalHome, run: RunId, file: &Path) -> anyhow::Result<Exported> {
    let draft = file.with_added_extension("new");
    let written = write_draft(home, run, &draft).await.and_then(|exported| {
        std::fs::rename(&draft, file)?;
        Ok(exported)
    });
    let exported = written.inspect_err(|_| drop(std::fs::remove_file(&draft)));
    let exported = exported.with_context(|| format!("can't export run {run} to {}", file.display()))?;
    let lines = plural(exported.lines as u64, "line");
    tell(&format!("run {run}: {lines} in {}", file.display()));
    Ok(exported)
}

async fn write_draft(home: &LocalHome, run: RunId, draft: &Path) -> anyhow::Result<Exported> {
    let mut out = BufWriter::new(File::create(draft)?);
    let exported = export_run(home, run, &mut out).await?;
    out.into_inner()?.sync_all()?;
    Ok(exported)
}

pub(super) async fn import(args: ImportArgs) -> anyhow::Result<Exit> {
    let home = home()?;
    let cant = || format!("can't import {}", args.file.display());
    let mut input: Box<dyn BufRead + Send> = if args.file == Path::new("-") {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        Box::new(BufReader::new(File::open(&args.file).with_context(cant)?))
    };
    let imported = if args.incomplete {
        let Salvaged { runs, lost } = import_incomplete(&home, &mut input).await.with_context(cant)?;
        lost.iter().for_each(|lost| tell(&format!("warning: not imported: {lost}")));
        runs
    } else {
        import_run(&home, &mut input).await.with_context(cant)?
    };
    imported.iter().filter_map(in_words).for_each(|line| tell(&line));
    let run = imported.first().context("there is no run in it")?.run;
    print(&format!("{run}\n"))?;
    Ok(Exit::Done)
}
