//! Processes that are told apart by their ids and start times.

use std::process::{Command, Stdio};

use provost_process::ProcessIdentity;

use crate::support::until;

/// The first thread ends, and another goes on.
const HEADLESS: &str = "import ctypes, platform, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).syscall({'x86_64': 60}.get(platform.machine(), 93), 0)";

#[tokio::test]
async fn a_process_lives_as_long_as_one_of_its_threads() {
    let argument = format!("headless-{}", std::process::id());
    let mut child = Command::new("python3")
        .args(["-c", HEADLESS, &argument])
        .stdout(Stdio::null())
        .spawn()
        .expect("python3 starts");
    let status = format!("/proc/{}/status", child.id());
    let is_headless = || std::fs::read_to_string(&status).is_ok_and(|text| text.contains("State:\tZ"));
    until("its first thread has ended", is_headless).await;
    let found = ProcessIdentity::with_argument(argument.as_ref());
    assert_eq!(found.iter().map(|process| process.pid).collect::<Vec<_>>(), [child.id()]);
    let process = found[0];
    assert!(process.exists());
    let ended = tokio::task::spawn_blocking(move || process.end_tree()).await.expect("it was tried");
    assert!(ended && !process.exists());
    child.wait().expect("it has ended");
}
