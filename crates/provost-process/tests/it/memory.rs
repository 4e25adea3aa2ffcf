//! What a guard keeps of its caller's memory: nothing that a program could read from it.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};

use provost_process::{Ending, guards_are_out_of_reach};
use tokio_util::sync::CancellationToken;

use crate::support::{Shell, is_root, until};

/// A text that this process has in memory, once: each of its bytes is one more than that of the text to look for.
fn secret() -> Vec<u8> {
    format!("tfdsfu-{}-{}", std::process::id(), "pg!uif!dbmmfs").into_bytes()
}

fn looked_for(secret: &[u8]) -> Vec<u8> {
    secret.iter().map(|byte| byte + 1).collect()
}

/// The writable memory of a process, and whether it holds the text.
fn memory_of(pid: u32, text: &[u8]) -> Memory {
    let mut memory = Memory { writable_bytes: 0, holds_it: false };
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let Ok(mut file) = File::open(format!("/proc/{pid}/mem")) else { return memory };
    for line in maps.lines() {
        let (range, rest) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let start = u64::from_str_radix(start, 16).unwrap();
        let bytes = u64::from_str_radix(end, 16).unwrap() - start;
        if !rest.starts_with("rw") || file.seek(SeekFrom::Start(start)).is_err() {
            continue;
        }
        let mut content = Vec::new();
        let _ = (&mut file).take(bytes).read_to_end(&mut content);
        memory.writable_bytes += if rest.contains('/') { 0 } else { content.len() };
        memory.holds_it |= content.windows(text.len()).any(|window| window == text);
    }
    memory
}

struct Memory {
    writable_bytes: usize,
    holds_it: bool,
}

/// The ancestors of a process, up to this one.
fn guards_of(pid: u32) -> Vec<u32> {
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse::<u32>().unwrap()
    };
    let mut guards = Vec::new();
    let mut next = parent(pid);
    while next != std::process::id() {
        guards.push(next);
        next = parent(next);
    }
    guards
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_holds_nothing_of_its_callers_memory() {
    if !is_root() {
        return;
    }
    let held = secret();
    let text = looked_for(&held);
    let held: Vec<Vec<u8>> = (0..1000).map(|_| text.clone()).collect();
    assert!(memory_of(std::process::id(), &text).holds_it, "else this shows nothing");
    let shell = Shell::new();
    let (running, cancel) = shell.in_background(shell.spec("echo $$ > pid; sleep 1000"));
    let program = shell.number_here(&shell.line("pid").await);
    let guards = guards_of(program);
    assert_eq!(guards.len(), if guards_are_out_of_reach() { 2 } else { 1 });
    for guard in guards {
        let memory = memory_of(guard, &text);
        assert!(
            !memory.holds_it,
            "guard {guard}: {}",
            fs::read_to_string(format!("/proc/{guard}/maps")).unwrap()
        );
        assert!(memory.writable_bytes > 0, "its stack was read");
        assert!(memory.writable_bytes < 1 << 20, "{} bytes are left", memory.writable_bytes);
        assert_eq!(fs::read(format!("/proc/{guard}/environ")).unwrap(), b"", "nor an environment");
        assert_eq!(fs::read(format!("/proc/{guard}/cmdline")).unwrap(), b"", "nor arguments");
    }
    cancel.cancel();
    running.await.unwrap();
    drop(held);
}

#[tokio::test]
async fn a_program_of_roots_finds_no_process_outside_of_its_namespace_not_even_without_its_proc() {
    if !guards_are_out_of_reach() {
        return;
    }
    let shell = Shell::new();
    let outside = std::process::id();
    let script = format!("umount -l /proc; ls -d /proc/{outside} /proc/{outside}/mem && echo found; exit 3");
    let finished = shell.run(shell.spec(&script), &CancellationToken::new()).await;
    assert_eq!(finished.ending, Ending::Exited(3));
    assert_eq!(finished.stdout.to_text_lossy(), "");
    until("the test's own are still there", || fs::read_dir(format!("/proc/{outside}")).is_ok()).await;
}
