//! `provost export` and `import`: a run as a file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal as _, Write};
use std::path::Path;

use anyhow::Context as _;
use provost_backend::{
    Exported, ImportChange, Imported, Salvaged, export_run, import_incomplete, import_run,
};
use provost_event::RunId;
use provost_harness::Backend;

use super::find::find;
use super::{backend_to_read, place, print};
use crate::cli::{ExportArgs, ImportArgs};
use crate::exit::Exit;
use crate::output::{Stdout, tell};
use crate::render::{plural, visible_json};

pub(super) async fn export(args: ExportArgs) -> anyhow::Result<Exit> {
    let backend = backend_to_read().await?;
    let run = find(&*backend, &args.run).await?;
    let exported = match &args.output {
        Some(file) => to_file(&*backend, run, file).await?,
        None if io::stdout().is_terminal() => {
            to_stdout(&*backend, run, &mut Visible { out: BufWriter::new(Stdout), line: Vec::new() }).await?
        }
        None => to_stdout(&*backend, run, &mut BufWriter::new(Stdout)).await?,
    };
    if exported.lost.is_empty() {
        return Ok(Exit::Done);
    }
    exported.lost.iter().for_each(|lost| tell(&format!("error: the export is incomplete: {lost}")));
    tell("hint: `provost import --incomplete` takes what is in it");
    Ok(Exit::Failed)
}

async fn to_stdout<W: Write + Send>(
    backend: &dyn Backend,
    run: RunId,
    out: &mut W,
) -> anyhow::Result<Exported> {
    let exported = export_run(backend, run, out).await?;
    out.flush().context("can't write to standard output")?;
    Ok(exported)
}

/// Lines of JSON on their way to a terminal: what it would obey, or not show, is escaped in them.
struct Visible<W: Write> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> Visible<W> {
    fn pass(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        self.out.write_all(visible_json(&String::from_utf8_lossy(&line)).as_bytes())
    }
}

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        let part = bytes.get(..end).unwrap_or_default();
        self.line.extend_from_slice(part);
        if part.ends_with(b"\n") {
            self.pass()?;
        }
        Ok(end)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass()?;
        self.out.flush()
    }
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
async fn to_file(backend: &dyn Backend, run: RunId, file: &Path) -> anyhow::Result<Exported> {
    // A device or a pipe is written to; a file in its place would reach no reader.
    let is_special = std::fs::metadata(file).is_ok_and(|facts| !facts.is_file());
    let exported = if is_special {
        write_special(backend, run, file).await
    } else {
        let draft = file.with_added_extension("new");
        let written = write_draft(backend, run, &draft).await.and_then(|exported| {
            std::fs::rename(&draft, file)?;
            Ok(exported)
        });
        written.inspect_err(|_| drop(std::fs::remove_file(&draft)))
    };
    let exported = exported.with_context(|| format!("can't export run {run} to {}", file.display()))?;
    let lines = plural(exported.lines as u64, "line");
    tell(&format!("run {run}: {lines} in {}", file.display()));
    Ok(exported)
}

async fn write_special(backend: &dyn Backend, run: RunId, file: &Path) -> anyhow::Result<Exported> {
    let mut out = BufWriter::new(File::options().write(true).open(file)?);
    let exported = export_run(backend, run, &mut out).await?;
    out.flush()?;
    Ok(exported)
}

async fn write_draft(backend: &dyn Backend, run: RunId, draft: &Path) -> anyhow::Result<Exported> {
    let mut out = BufWriter::new(new_file(draft)?);
    let exported = export_run(backend, run, &mut out).await?;
    out.into_inner()?.sync_all()?;
    Ok(exported)
}

/// A file that only its owner can read: a log holds whatever the agent has read. What is left of an earlier attempt goes, and no
/// link is followed.
fn new_file(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

pub(super) async fn import(args: ImportArgs) -> anyhow::Result<Exit> {
    let backend = place()?.open_store()?;
    let cant = || format!("can't import {}", args.file.display());
    let mut input: Box<dyn BufRead + Send> = if args.file == Path::new("-") {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        Box::new(BufReader::new(File::open(&args.file).with_context(cant)?))
    };
    let imported = if args.incomplete {
        let Salvaged { runs, lost } = import_incomplete(&backend, &mut input).await.with_context(cant)?;
        lost.iter().for_each(|lost| tell(&format!("warning: not imported: {lost}")));
        runs
    } else {
        import_run(&backend, &mut input).await.with_context(cant)?
    };
    imported.iter().filter_map(in_words).for_each(|line| tell(&line));
    let run = imported.first().context("there is no run in it")?.run;
    print(&format!("{run}\n"))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::Visible;

    #[test]
    fn what_a_terminal_would_obey_is_escaped_however_the_bytes_come() {
        let text = "{\"a\":\"é \u{9b}31m \u{202e}x\"}\n{\"b\":1}\nend";
        for size in 1..text.len() {
            let mut visible = Visible { out: Vec::new(), line: Vec::new() };
            for chunk in text.as_bytes().chunks(size) {
                visible.write_all(chunk).unwrap();
            }
            visible.flush().unwrap();
            let shown = String::from_utf8(visible.out).unwrap();
            assert_eq!(shown, "{\"a\":\"é \\u009b31m \\u202ex\"}\n{\"b\":1}\nend");
        }
    }
}
