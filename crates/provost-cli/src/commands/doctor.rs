//! `provost doctor`: what this machine can do. With `--store`: checks the store, and saves what can be read of damaged runs.

mod machine;

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use provost_backend::{Lost, export_run};
use provost_event::RunId;
use provost_harness::Backend;
use provost_sqlite::{Inspection, SqliteStore, inspect};
use provost_view::{CheckedStore, FoundProblem, SalvagedRun, ViewVersion};

use super::descent::Act;
use super::{backend_to_read, place, print, print_json, shown};
use crate::cli::DoctorArgs;
use crate::exit::Exit;
use crate::render::{plural, safe, size};

pub(super) const fn act_of(args: &DoctorArgs) -> Act {
    if args.acknowledge { Act::Acts("doctor --acknowledge") } else { Act::Looks }
}

pub(super) async fn doctor(args: DoctorArgs) -> anyhow::Result<Exit> {
    if !args.store {
        return machine::doctor(args.json);
    }
    let database = place()?.database()?;
    let found = inspect(&database).with_context(|| {
        let hint = "nothing of it can be read: restore a backup";
        format!("can't check {} ({hint})", database.display())
    })?;
    let salvaged = match &args.salvage {
        Some(folder) => salvage(&*backend_to_read().await?, &found, folder).await?,
        None => Vec::new(),
    };
    if args.acknowledge {
        SqliteStore::open(&database)?.acknowledge_losses()?;
    }
    if args.json {
        print_json(&checked(database, &found, &salvaged))?;
    } else {
        print(&in_words(&database, &found, &salvaged, &args))?;
    }
    Ok(if found.is_whole() { Exit::Done } else { Exit::Failed })
}

/// What was saved of a run.
struct Salvaged {
    run: RunId,
    /// Where it is, or why nothing of it can be read.
    file: Result<PathBuf, String>,
    lost: Vec<Lost>,
}

/// Exports each damaged run as far as it can be read.
async fn salvage(backend: &dyn Backend, found: &Inspection, folder: &Path) -> anyhow::Result<Vec<Salvaged>> {
    std::fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
    let mut salvaged = Vec::new();
    // Damage that isn't of one run's log may be of any: then all of them are saved.
    let damaged = found.damaged_runs();
    let all = found.problems.iter().filter(|problem| problem.is_loss()).count() > damaged.len();
    for run in found.runs.iter().copied().filter(|run| all || damaged.contains(run)) {
        let file = folder.join(format!("{run}.jsonl"));
        let out = File::create_new(&file).with_context(|| format!("can't write {}", file.display()))?;
        let mut out = BufWriter::new(out);
        let exported = export_run(backend, run, &mut out).await;
        let (file, lost) = match exported {
            Ok(exported) => (Ok(file), exported.lost),
            Err(error) => {
                let _ = std::fs::remove_file(&file);
                (Err(error.to_string()), Vec::new())
            }
        };
        salvaged.push(Salvaged { run, file, lost });
    }
    Ok(salvaged)
}

fn checked(database: PathBuf, found: &Inspection, salvaged: &[Salvaged]) -> CheckedStore {
    let problems = found
        .problems
        .iter()
        .map(|problem| FoundProblem { what: problem.to_string(), lost: problem.is_loss() });
    let salvaged = salvaged.iter().map(|salvaged| SalvagedRun {
        run: salvaged.run,
        file: salvaged.file.as_ref().ok().cloned(),
        error: salvaged.file.as_ref().err().cloned(),
        lost: salvaged.lost.iter().map(ToString::to_string).collect(),
    });
    CheckedStore {
        v: ViewVersion,
        database,
        whole: found.is_whole(),
        runs: found.runs.len(),
        entries: found.entries,
        outputs: found.outputs,
        bytes: found.bytes,
        free_bytes: found.free_bytes,
        lost_entries: found.loss.as_ref().map(|loss| loss.expected.saturating_sub(loss.found)),
        problems: problems.collect(),
        salvaged: salvaged.collect(),
    }
}

fn in_words(database: &Path, found: &Inspection, salvaged: &[Salvaged], args: &DoctorArgs) -> String {
    let mut text = format!(
        "{}: {}, {}, {}; {}, of it {} free\n",
        safe(&shown(database)),
        plural(found.runs.len() as u64, "run"),
        plural_entries(found.entries),
        plural(found.outputs, "output"),
        size(found.bytes),
        size(found.free_bytes),
    );
    for problem in &found.problems {
        let word = if problem.is_loss() { "damaged" } else { "note" };
        text.push_str(&format!("{word}: {}\n", safe(&problem.to_string())));
    }
    if let Some(loss) = &found.loss {
        let note = if args.acknowledge {
            "taken note of"
        } else {
            "`provost doctor --store --acknowledge` takes note of it"
        };
        text.push_str(&format!("lost: {}; runs may read as interrupted ({note})\n", safe(&loss.to_string())));
    }
    for salvaged in salvaged {
        match &salvaged.file {
            Ok(file) => text.push_str(&format!("saved: run {} in {}\n", salvaged.run, safe(&shown(file)))),
            Err(error) => text.push_str(&format!("not saved: run {}: {}\n", salvaged.run, safe(error))),
        }
        for lost in &salvaged.lost {
            text.push_str(&format!("  without {}\n", safe(&lost.to_string())));
        }
    }
    if found.is_whole() {
        text.push_str("nothing is damaged, nothing is lost\n");
    } else if args.salvage.is_none() && found.problems.iter().any(provost_sqlite::StoreProblem::is_loss) {
        text.push_str("`provost doctor --store --salvage DIR` saves what can be read of it\n");
    }
    text
}

fn plural_entries(count: u64) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}
