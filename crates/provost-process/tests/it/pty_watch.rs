//! Watchers of a terminal.

use std::time::Duration;

use provost_event::{Exit, WindowSize};
use provost_process::{Painted, Watcher, WatcherKind};
use provost_terminal::Screen;

use crate::pty::{in_time, options, quit, read_until, start, start_with};
use crate::support::Shell;

/// The screen of a watching terminal.
struct Looker {
    watcher: Watcher,
    screen: Screen,
    snapshots: usize,
    live: Vec<u8>,
}

impl Looker {
    fn new(watcher: Watcher) -> Self {
        Self { watcher, screen: Screen::new(WindowSize::default()), snapshots: 0, live: Vec::new() }
    }

    async fn next(&mut self) -> bool {
        match in_time("something to paint", self.watcher.next()).await {
            Some(Painted::Snapshot { size, bytes, .. }) => {
                self.screen = Screen::new(size);
                self.screen.feed(&bytes);
                self.snapshots += 1;
                self.live.clear();
            }
            Some(Painted::Output(bytes)) => {
                self.screen.feed(&bytes);
                self.live.extend_from_slice(&bytes);
            }
            None => return false,
        }
        true
    }

    async fn run_to_end(&mut self) {
        while self.next().await {}
    }
}

/// Rows that each have a number and colours, in small and odd pieces.
const COUNTER: &str = "stty raw -echo; exec python3 -c 'import sys, time
out = sys.stdout.buffer
for n in range(3000):
    line = (\"\\x1b[3%dm%05d \\u20ac\\x1b[0m\\x1b[5n\\r\\n\" % (n % 8, n)).encode()
    cut = n % len(line)
    out.write(line[:cut]); out.flush(); out.write(line[cut:]); out.flush()
'";

#[tokio::test]
async fn whenever_one_joins_it_sees_what_the_program_shows() {
    let shell = Shell::new();
    let mut options = options();
    options.hears_output = provost_process::OutputSubscription::Unwanted;
    let terminal = start_with(&shell, COUNTER, options).await;
    let mut lookers = Vec::new();
    let mut changes = terminal.changes();
    while terminal.is_running() && lookers.len() < 40 {
        lookers.push(Looker::new(terminal.watch(WatcherKind::Copy).await.unwrap()));
        tokio::select! {
            _ = changes.next() => {}
            () = tokio::time::sleep(Duration::from_millis(3)) => {}
        }
    }
    in_time("the exit", terminal.wait()).await;
    let rows = terminal.view().await.unwrap().rows;
    assert!(rows.contains(&"02999 €".to_owned()), "{rows:?}");
    for looker in &mut lookers {
        looker.run_to_end().await;
        assert_eq!(looker.screen.rows(), rows);
        assert_eq!(looker.snapshots, 1);
        assert!(looker.screen.take_replies().is_empty(), "a query reached one who looks on");
        let text = String::from_utf8_lossy(&looker.live).into_owned();
        let numbers: Vec<usize> = text
            .split("\r\n")
            .filter_map(|row| row.split_once('m').and_then(|(_, rest)| rest.get(..5)?.parse().ok()))
            .collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    }
}

#[tokio::test]
async fn a_slow_one_gets_a_new_snapshot_and_delays_no_other() {
    let shell = Shell::new();
    let script = "echo ready; read x; head -c 3000000 /dev/zero | tr '\\0' x; printf '\\033[2J\\033[Hlast\\r\\n'; read x; echo more";
    let mut options = options();
    options.hears_output = provost_process::OutputSubscription::Unwanted;
    let terminal = start_with(&shell, script, options).await;
    let mut looker = Looker::new(terminal.watch(WatcherKind::Copy).await.unwrap());
    while looker.screen.rows()[0] != "ready" {
        assert!(looker.next().await);
    }
    let snapshots = looker.snapshots;
    terminal.send_input("\r").await.unwrap();
    let mut changes = terminal.changes();
    while terminal.view().await.unwrap().rows[0] != "last" {
        in_time("a change", changes.next()).await.unwrap();
    }
    while looker.screen.rows()[0] != "last" {
        assert!(looker.next().await);
    }
    assert_eq!(looker.snapshots, snapshots + 1);
    terminal.send_input("\r").await.unwrap();
    looker.run_to_end().await;
    assert!(looker.screen.rows().contains(&"more".to_owned()), "{:?}", looker.screen.rows());
}

#[tokio::test]
async fn a_new_size_is_a_new_snapshot() {
    let shell = Shell::new();
    let terminal = start(&shell, "echo ready; read x").await;
    read_until(&terminal, "ready").await;
    let mut watcher = terminal.watch(WatcherKind::Copy).await.unwrap();
    terminal.resize(WindowSize::new(7, 20)).await.unwrap();
    loop {
        if let Painted::Snapshot { size: WindowSize { rows: 7, cols: 20 }, .. } =
            in_time("a snapshot", watcher.next()).await.unwrap()
        {
            break;
        }
    }
    in_time("the end", terminal.end(quit(Duration::ZERO))).await;
}

#[tokio::test]
async fn one_who_comes_after_the_end_sees_the_last_screen() {
    let shell = Shell::new();
    let terminal = start(&shell, "echo last words; exit 3").await;
    assert_eq!(in_time("the end", terminal.gone()).await, Exit::Code(3));
    let mut looker = Looker::new(terminal.watch(WatcherKind::Copy).await.unwrap());
    looker.run_to_end().await;
    assert_eq!(looker.screen.rows()[0], "last words");
    let view = terminal.view().await.unwrap();
    assert_eq!(view.rows[0], "last words");
    assert!(in_time("no change", terminal.changes().next()).await.is_none());
}

#[tokio::test]
async fn a_change_is_told_when_the_screen_has_settled() {
    let shell = Shell::new();
    let terminal = start(&shell, "read x; printf 'one '; printf two; read x").await;
    let mut changes = terminal.changes();
    terminal.send_input("\r").await.unwrap();
    let mut view = in_time("a change", changes.next()).await.unwrap();
    while !view.rows.contains(&"one two".to_owned()) {
        view = in_time("a change", changes.next()).await.unwrap();
    }
    assert_eq!(view.fingerprint, terminal.view().await.unwrap().fingerprint);
}

#[tokio::test]
async fn a_terminal_misses_nothing_however_slowly_it_takes_it_and_the_program_waits() {
    let mut options = options();
    options.hears_output = provost_process::OutputSubscription::Unwanted;
    let shell = Shell::new();
    let terminal = start_with(&shell, "read go; seq 1 300000; echo the end", options).await;
    let mut watcher = terminal.watch(WatcherKind::Terminal).await.unwrap();
    terminal.send_input("\r").await.unwrap();
    // It writes as much as it can while nothing is taken.
    // The last row may be a part of a number.
    let is_far = |row: &String| row.parse::<u32>().is_ok_and(|number| number > 39_030);
    while !in_time("a view", terminal.view()).await.unwrap().rows.iter().any(is_far) {}
    let mut seen = Vec::new();
    while let Some(painted) = in_time("something to paint", watcher.next()).await {
        match painted {
            Painted::Snapshot { scrollback, bytes, .. } => {
                assert!(seen.is_empty(), "a snapshot amid the output");
                seen.extend(scrollback);
                seen.extend(bytes);
            }
            Painted::Output(bytes) => seen.extend(bytes),
        }
    }
    let text = String::from_utf8_lossy(&seen);
    let numbers =
        text.split("\r\n").filter_map(|line| line.rsplit(['H', 'm', 'J', 'K']).next()?.parse::<u32>().ok());
    let missing = numbers.fold(1, |next, number| if number == next { next + 1 } else { next });
    assert_eq!(missing, 300_001, "the first that is missing");
    assert!(text.contains("the end"));
}
