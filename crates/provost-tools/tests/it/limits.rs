//! Large inputs use little memory and time.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use provost_event::ToolStatus;
use provost_tools::OUTPUT_BYTES_MAX;
use serde_json::json;

use crate::fixture::{Fixture, call_in};

#[tokio::test]
async fn a_page_ends_before_the_models_cap_and_pages_add_up_to_the_file() {
    let lines: Vec<_> = (1..=3000).map(|n| format!("{n} {}", "x".repeat(n % 90))).collect();
    let fixture = Fixture::new().file("a.txt", lines.join("\n") + "\n");
    let (mut offset, mut seen) = (1, Vec::new());
    loop {
        let output = fixture.call("read_file", json!({"path": "a.txt", "offset": offset})).await;
        assert!(output.text.len() < OUTPUT_BYTES_MAX, "{}", output.text.len());
        let (page, last) = output.text.rsplit_once('\n').unwrap();
        seen.extend(page.lines().map(|line| line.split_once('\t').unwrap().1.to_owned()));
        let Some((_, next)) = last.split_once("read on with offset ") else { break };
        offset = next.trim_end_matches(']').parse().unwrap();
    }
    assert_eq!(seen, lines);
}

#[tokio::test]
async fn a_very_long_line_is_cut_and_the_next_one_is_right() {
    let exactly = "y".repeat(2000);
    let content = format!("{}\nsecond\n{exactly}\r\n{exactly}z\n", "x".repeat(5_000_000));
    let fixture = Fixture::new().file("a.txt", content);
    let output = fixture.call("read_file", json!({"path": "a.txt"})).await;
    let lines: Vec<_> = output.text.lines().collect();
    assert_eq!(lines[0], format!("1\t{}… [the line goes on after 2000 bytes]", "x".repeat(2000)));
    assert_eq!(lines[1], "2\tsecond");
    assert_eq!(lines[2], format!("3\t{exactly}"));
    assert_eq!(lines[3], format!("4\t{exactly}… [the line goes on after 2000 bytes]"));
    assert_eq!(lines[4], "[lines 1-4 of 4; lines end with CR LF]");
}

/// The file has text at both ends of a hole of a gigabyte; reading it whole would take that much memory.
#[tokio::test]
async fn a_sparse_gigabyte_is_read_with_an_offset() {
    const GIGABYTE: u64 = 1 << 30;
    let fixture = Fixture::new();
    let mut file = File::create(fixture.path("big.log")).unwrap();
    file.write_all("line\n".repeat(5000).as_bytes()).unwrap();
    file.set_len(GIGABYTE).unwrap();
    let began = Instant::now();
    let output = fixture.call("read_file", json!({"path": "big.log", "offset": 4999, "limit": 2})).await;
    assert!(
        output.text.ends_with(
            "4999\tline\n5000\tline\n[lines 4999-5000 of more than 5001 (1.0 GB); read on with offset 5001]"
        ),
        "{}",
        output.text
    );
    let output = fixture.call("read_file", json!({"path": "big.log", "offset": 5001})).await;
    assert!(output.text.starts_with("5001\t[bytes that aren't text]\n"), "{}", output.text);
    let took = began.elapsed();
    println!("two reads of a sparse gigabyte: {took:?}");
    assert!(took < Duration::from_secs(20), "{took:?}");
    if let Some(peak_kib) = peak_memory_kib() {
        assert!(peak_kib < 512 * 1024, "{peak_kib} KiB");
    }
}

/// The peak memory of this process, if the system reports it.
fn peak_memory_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[tokio::test]
async fn a_cancelled_call_does_nothing_and_says_so() {
    let fixture = Fixture::new().file("a.txt", "old\n");
    let context = fixture.context();
    context.cancel.cancel();
    for (tool, input) in [
        ("read_file", json!({"path": "a.txt"})),
        ("write_file", json!({"path": "a.txt", "content": "new"})),
        ("edit_file", json!({"path": "a.txt", "old_text": "old", "new_text": "new"})),
        ("list_dir", json!({})),
        ("search", json!({"pattern": "old"})),
        ("shell", json!({"command": "echo new > a.txt"})),
    ] {
        let output = call_in(&context, tool, input).await;
        assert_eq!(output.status, ToolStatus::Cancelled, "{tool}: {}", output.text);
    }
    assert_eq!(fixture.read("a.txt"), "old\n");
}

/// A hole of a terabyte would take minutes to read.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_read_of_an_endless_line_stops_when_it_is_cancelled() {
    const READ_BYTES: u64 = 64 * 1024 * 1024;
    let fixture = Fixture::new();
    let mut file = File::create(fixture.path("big.log")).unwrap();
    file.write_all("line\n".repeat(5000).as_bytes()).unwrap();
    file.set_len(1 << 40).unwrap();
    let context = fixture.context();
    let deadline = Instant::now() + Duration::from_secs(20);
    let before = bytes_read();
    let cancel = async {
        while bytes_read() < before + READ_BYTES {
            assert!(Instant::now() < deadline);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        context.cancel.cancel();
        Instant::now()
    };
    let input = json!({"path": "big.log", "offset": 6000});
    let (output, cancelled) = tokio::join!(call_in(&context, "read_file", input), cancel);
    assert_eq!(output.status, ToolStatus::Cancelled, "{}", output.text);
    assert_eq!(output.text, "cancelled; nothing was changed");
    assert!(cancelled.elapsed() < Duration::from_secs(1), "{:?}", cancelled.elapsed());
}

/// Bytes this process has read by system calls.
#[cfg(target_os = "linux")]
fn bytes_read() -> u64 {
    let numbers = std::fs::read_to_string("/proc/self/io").unwrap();
    numbers.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}
