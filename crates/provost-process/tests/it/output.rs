//! The input of a child, and what is kept of its output.

use std::fs::OpenOptions;
use std::time::Duration;

use provost_process::{Ending, Streams};
use tokio_util::sync::CancellationToken;

use crate::support::Shell;

#[tokio::test]
async fn input_that_is_not_read_is_no_error() {
    let shell = Shell::new();
    let mut spec = shell.spec("exit 5");
    spec.launch.stdio.input = vec![b'x'; 1 << 20];
    assert_eq!(shell.run(spec, &CancellationToken::new()).await.ending, Ending::Exited(5));
}

#[tokio::test]
async fn a_megabyte_goes_in_and_comes_out_unchanged() {
    let shell = Shell::new();
    let mut spec = shell.spec("cat");
    spec.launch.stdio.input = (0..1_u32 << 20).map(|n| n.to_le_bytes()[usize::from(n % 3 == 0)]).collect();
    spec.keep_bytes_max = 2 << 20;
    let input = spec.launch.stdio.input.clone();
    let finished = shell.run(spec, &CancellationToken::new()).await;
    assert_eq!(finished.ending, Ending::Exited(0));
    assert!([finished.stdout.head(), finished.stdout.tail()].concat() == input);
}

#[tokio::test]
async fn without_input_the_child_reads_the_null_device() {
    let finished = Shell::new().script("readlink /proc/self/fd/0; cat").await;
    assert_eq!(finished.stdout.to_text_lossy(), "/dev/null\n");
}

#[tokio::test]
async fn ten_megabytes_are_counted_and_their_head_and_tail_kept() {
    let finished = Shell::new().script("printf start; head -c 10485760 /dev/zero; printf finish").await;
    let total = 10_485_760 + 5 + 6;
    assert_eq!(finished.stdout.total_bytes(), total);
    assert_eq!(finished.stdout.bytes_left_out(), total - 64 * 1024);
    assert_eq!((finished.stdout.head().len(), finished.stdout.tail().len()), (32 * 1024, 32 * 1024));
    assert!(finished.stdout.head().starts_with(b"start\0"));
    assert!(finished.stdout.tail().ends_with(b"\0finish"));
    let text = finished.stdout.to_text_lossy();
    assert!(text.contains(&format!("\n[{} bytes left out]\n", total - 64 * 1024)));
}

#[tokio::test]
async fn merged_streams_keep_the_order_of_writing() {
    let shell = Shell::new();
    let mut spec = shell.spec("i=0; while [ $i -lt 200 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done");
    spec.launch.stdio.streams = Streams::Merged;
    let finished = shell.run(spec, &CancellationToken::new()).await;
    let expected: String = (0..200).map(|i| format!("out{i}\nerr{i}\n")).collect();
    assert_eq!(finished.stdout.to_text_lossy(), expected);
    assert!(finished.stderr.is_empty());
}

#[tokio::test]
async fn streams_apart_are_kept_apart() {
    let finished = Shell::new().script("echo out; echo err >&2").await;
    assert_eq!(finished.stdout.to_text_lossy(), "out\n");
    assert_eq!(finished.stderr.to_text_lossy(), "err\n");
}

#[tokio::test]
async fn bytes_that_are_no_text_are_kept_and_shown_as_replacements() {
    let finished = Shell::new().script(r"printf 'a\377\376b'").await;
    assert_eq!([finished.stdout.head(), finished.stdout.tail()].concat(), b"a\xff\xfeb");
    assert_eq!(finished.stdout.to_text_lossy(), "a\u{fffd}\u{fffd}b");
}

#[tokio::test]
async fn output_of_a_child_that_never_stops_writing_is_bounded_and_ends_with_the_timeout() {
    let shell = Shell::new();
    let mut spec = shell.spec("yes");
    spec.timeout = Some(Duration::from_secs(2));
    let finished = shell.run(spec, &CancellationToken::new()).await;
    assert_eq!(finished.ending, Ending::TimedOut);
    assert_eq!(finished.stdout.head().len() + finished.stdout.tail().len(), 64 * 1024);
}

#[tokio::test]
async fn a_pipe_held_open_by_a_stranger_does_not_hold_up_the_call() {
    let shell = Shell::new();
    let (running, _cancel) =
        shell.in_background(shell.spec("echo told; echo $$ > pid; until [ -e go ]; do :; done"));
    let pid = shell.number_here(&shell.line("pid").await);
    // This process isn't a descendant of the child, so it isn't ended.
    let held = OpenOptions::new().write(true).open(format!("/proc/{pid}/fd/1")).unwrap();
    std::fs::write(shell.path().join("go"), "").unwrap();
    let finished = running.await.unwrap();
    assert_eq!(finished.ending, Ending::Exited(0));
    assert_eq!(finished.stdout.to_text_lossy(), "told\n");
    assert!(finished.duration < Duration::from_secs(10), "{:?}", finished.duration);
    drop(held);
}
