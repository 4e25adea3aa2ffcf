//! `provost demo`: a scripted agent repairs a small project, so that a run can be seen without a key.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{print, run, shown, trust};
use crate::cli::{DemoArgs, RunArgs, TrustArgs};
use crate::exit::{Exit, Refusal};
use crate::output::tell;
use crate::render::safe;

const GOAL: &str = "Make the tests of this project pass.";

/// The project's files.
const FILES: [(&str, &str); 4] = [
    ("agent.yaml", include_str!("../../demo/project/agent.yaml")),
    ("provost.toml", include_str!("../../demo/project/provost.toml")),
    ("tests.sh", include_str!("../../demo/project/tests.sh")),
    ("till.sh", include_str!("../../demo/project/till.sh")),
];

pub(super) async fn demo(args: DemoArgs) -> anyhow::Result<Exit> {
    let folder = match args.folder {
        Some(folder) => fresh(folder)?,
        None => fresh(std::env::temp_dir().join(format!("provost-demo-{:08x}", fastrand::u32(..))))?,
    };
    for (name, text) in FILES {
        let file = folder.join(name);
        std::fs::write(&file, text).with_context(|| format!("can't write {}", shown(&file)))?;
    }
    let place = safe(&shown(&folder));
    tell(&format!(
        "A small project with two bugs is in {place}. An agent with scripted answers repairs it;\n\
         its tools, the check of its work, the budget and the log are real.\n\n\
         $ provost trust --yes"
    ));
    let trusted = TrustArgs { yes: true, dir: Some(folder.clone()), ..TrustArgs::default() };
    trust::trust(&trusted)?;
    tell(&format!("\n$ provost run \"{GOAL}\""));
    // Over what the user's own settings and variables say.
    let model = format!("script:{}", folder.join("agent.yaml").display());
    let exit = run::run(RunArgs::of_demo(GOAL, folder, model)).await?;
    print(&format!(
        "\nThe project is in {place}. See more of the run:\n\
         \x20 provost show last --global       what it used, and how it was checked\n\
         \x20 provost explain last --global    which limits and checks were consulted\n\
         \x20 provost logs last --global       everything that happened\n"
    ))?;
    Ok(exit)
}

/// The folder, which must be new or empty.
fn fresh(folder: PathBuf) -> anyhow::Result<PathBuf> {
    let cant = || format!("can't make {}", shown(&folder));
    std::fs::create_dir_all(&folder).with_context(cant)?;
    if std::fs::read_dir(&folder).with_context(cant)?.next().is_some() {
        let what = format!("{} isn't empty", shown(&folder));
        return Err(Refusal::new(what, "name a folder that isn't there yet").into());
    }
    canonical(&folder)
}

fn canonical(folder: &Path) -> anyhow::Result<PathBuf> {
    folder.canonicalize().with_context(|| format!("can't find {}", shown(folder)))
}
