//! A process that acts as Provost: this test program again, with one script to run.

use std::process::{Child, Command, Stdio};

use provost_process::run;
use tokio_util::sync::CancellationToken;

use crate::support::{MARKER_NAME, Shell, path, spec_in};

const SCRIPT_NAME: &str = "PROVOST_PROCESS_SCRIPT";

/// Starts it in the folder of `shell`, by a shell that first runs `before`.
pub(crate) fn start_helper(shell: &Shell, script: &str, before: &str) -> Child {
    let (name, value) = shell.marker.split_once('=').unwrap();
    Command::new("/bin/sh")
        .args(["-c", &format!("{before}\nexec \"$0\" helper::helper --exact --ignored")])
        .arg(std::env::current_exe().unwrap())
        .env(name, value)
        .env(SCRIPT_NAME, script)
        .current_dir(shell.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Writes the script's output to the file `output`.
#[tokio::test]
#[ignore = "only a helper of other tests"]
async fn helper() {
    let (Some(marker), Ok(script)) = (std::env::var_os(MARKER_NAME), std::env::var(SCRIPT_NAME)) else {
        return;
    };
    let folder = std::env::current_dir().unwrap();
    let spec = spec_in(&folder, &script, vec![("PATH".into(), path()), (MARKER_NAME.into(), marker)]);
    let finished = run(spec, &CancellationToken::new()).await.unwrap();
    std::fs::write("output", finished.stdout.to_text_lossy()).unwrap();
}
