//! A program's output, for a reader that is slow or cuts characters.

use std::time::Duration;

use provost_event::Exit;
use provost_process::{OUTPUT_BYTES_MAX, PtySupervisor};

use crate::pty::{in_time, outcome, quit, start};
use crate::support::{Shell, until};

#[tokio::test]
async fn a_character_written_in_two_pieces_is_one_and_no_text_is_replaced() {
    let (text, _) = outcome(r"printf 'a\303'; sleep 0.1; printf '\244b\377c'").await;
    assert_eq!(text, "aäb\u{fffd}c");
}

/// The resident memory of this process, in bytes.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Whether this process is blocked in a write, and how much it has written by then.
fn blocked_in_write(pid: u32) -> Option<String> {
    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    call.starts_with("1 0x1 ").then(|| io.lines().find(|line| line.starts_with("wchar")).unwrap().to_owned())
}

/// Waits until the program can't write any more.
async fn until_blocked(terminal: &PtySupervisor) {
    let (mut last, mut times) = (None, 0);
    until("the program sits in a write", || {
        let now = blocked_in_write(terminal.pid());
        times = if now.is_some() && last == now { times + 1 } else { 0 };
        last = now;
        // `until` pauses between two checks.
        times == 20 || !terminal.is_running()
    })
    .await;
}

#[tokio::test]
async fn a_slow_reader_slows_the_program_and_memory_stays_flat() {
    let shell = Shell::new();
    let length = 12 * 1024 * 1024;
    let script = format!("stty -opost; exec head -c {length} /dev/zero");
    let terminal = start(&shell, &script).await;
    let before = resident();
    let mut read = 0;
    for _ in 0..3 {
        until_blocked(&terminal).await;
        assert!(terminal.is_running(), "nothing has held it up");
        let text = in_time("output", terminal.read_output()).await.unwrap();
        assert!(text.len() <= OUTPUT_BYTES_MAX + 64 * 1024, "{}", text.len());
        read += text.len();
    }
    while let Some(text) = in_time("output", terminal.read_output()).await {
        read += text.len();
    }
    assert_eq!(read, length);
    assert!(resident() < before + 6 * 1024 * 1024, "{before} {}", resident());
    assert_eq!(in_time("the exit", terminal.gone()).await, Exit::Code(0));
}

#[tokio::test]
async fn a_program_whose_output_isn_t_read_waits_and_can_be_ended() {
    let shell = Shell::new();
    let terminal = start(&shell, "exec yes").await;
    until_blocked(&terminal).await;
    assert_eq!(terminal.view().await.unwrap().rows[0], "y");
    in_time("the end", terminal.end(quit(Duration::ZERO))).await;
    shell.assert_nothing_left();
}

#[tokio::test]
async fn what_a_slow_reader_kept_in_the_terminal_is_taken_in_before_the_exit_is_told() {
    let shell = Shell::new();
    // Its reader is behind from the last byte of this on.
    let first = "GO".len();
    let length = OUTPUT_BYTES_MAX - first;
    let fill = |length: usize| format!("head -c {length} /dev/zero | tr '\\0' x");
    let script =
        format!("stty -opost -echo; {}; printf GO; read go; {}; printf END", fill(length), fill(3000));
    let terminal = start(&shell, &script).await;
    while !in_time("a view", terminal.view()).await.unwrap().rows.concat().ends_with("GO") {}
    terminal.send_input("\r").await.unwrap();
    assert_eq!(in_time("the exit", terminal.wait()).await, Exit::Code(0));
    let text = terminal.read_output().await.unwrap();
    assert!(text.ends_with("xEND"), "{}", text.len());
    assert_eq!(text.len(), OUTPUT_BYTES_MAX + 3000 + "END".len());
}
