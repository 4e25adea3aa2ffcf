//! `cargo xtask recording`: `provost demo` at a terminal, as a recording that `provost replay` plays, and as an
//! animated SVG.

mod svg;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use provost_event::WindowSize;
use provost_process::{
    AtTerminal, Confinement, EventSubscription, Launch, OutputSubscription, PtyOptions, PtySupervisor,
};
use provost_terminal::{CastHeader, CastWriter, Detector, Profile};
use xtask::shell::built_provost;

const ROWS: u16 = 32;
const COLUMNS: u16 = 104;

/// Records the demo to `demo.cast` and `demo.svg` in `folder`.
///
/// # Errors
/// When the demo fails or a file can't be written.
pub(crate) fn record(folder: &Path) -> Result<()> {
    let program = built_provost(&[])?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let recording = runtime.block_on(recorded(&program))?;
    let (cast, drawn) = (folder.join("demo.cast"), folder.join("demo.svg"));
    fs::write(&cast, &recording).with_context(|| format!("can't write {}", cast.display()))?;
    fs::write(&drawn, svg::svg(recording.as_slice())?)
        .with_context(|| format!("can't write {}", drawn.display()))?;
    eprintln!("wrote {} and {}", cast.display(), drawn.display());
    Ok(())
}

/// The recording of a run in a home of its own.
async fn recorded(program: &Path) -> Result<Vec<u8>> {
    let home = tempfile::tempdir()?;
    let variables =
        [("HOME", home.path().into()), ("TERM", "xterm-256color".into()), ("LANG", "C.UTF-8".into())];
    let inherited = std::env::var_os("PATH").map(|path| ("PATH", path));
    let variables = variables.into_iter().chain(inherited);
    let launch = Launch {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), "echo '$ provost demo'; exec \"$0\" demo".into(), program.into()],
        env: variables.map(|(name, value)| (name.into(), value)).collect(),
        cwd: home.path().to_owned(),
        stdio: AtTerminal { size: WindowSize::new(ROWS, COLUMNS) },
        confinement: Confinement::Strongest,
    };
    let profile = Profile::named("generic").context("there is no profile for other programs")?;
    let mut options = PtyOptions::new(Detector::of_terminal(Arc::new(profile)));
    options.hears_output = OutputSubscription::Wanted;
    options.hears_events = EventSubscription::Unwanted;
    let header = CastHeader {
        size: WindowSize::new(ROWS, COLUMNS),
        command: Some("provost demo".to_owned()),
        ..CastHeader::default()
    };
    let mut writer = CastWriter::new(Vec::new(), &header, None)?;
    let started = Instant::now();
    let pty = PtySupervisor::spawn(launch, options).await?;
    while let Some(text) = pty.read_output().await {
        writer.output(started.elapsed(), text.as_bytes())?;
    }
    let exit = pty.wait().await;
    ensure!(exit.is_success(), "the demo ended with {exit:?}");
    Ok(writer.finish()?)
}
