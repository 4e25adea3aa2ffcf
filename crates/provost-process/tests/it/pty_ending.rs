//! How a program at a terminal ends, without leftovers.

use std::time::{Duration, Instant};

use provost_event::{Exit, TerminalEvent};
use provost_process::{PtyError, PtySignal, QuitPlan, QuitStep, WatcherKind};

use crate::pty::{FAR_AWAY, in_time, options, outcome, quit, read_to_end, read_until, start, start_with};
use crate::support::{Shell, until, zombies};

const STUBBORN: &str = "trap '' TERM HUP INT; echo ready; while :; do sleep 1000; done";

/// Much less than the grace in the options.
const PROMPTLY: Duration = Duration::from_secs(10);

#[tokio::test]
async fn exit_codes_and_signals_are_told() {
    assert_eq!(outcome("exit 77").await.1, Exit::Code(77));
    assert_eq!(outcome("kill -USR1 $$").await.1, Exit::Signal(10));
}

#[tokio::test]
async fn a_megabyte_written_just_before_the_end_is_read_to_its_last_byte() {
    let shell = Shell::new();
    let terminal = start(&shell, "stty -opost; head -c 1048576 /dev/zero | tr '\\0' x; printf END").await;
    let text = read_to_end(&terminal).await;
    assert_eq!(text.len(), 1_048_576 + 3);
    assert!(text.ends_with("xEND"));
}

#[tokio::test]
async fn the_final_summary_of_a_program_are_read_before_its_exit_is_told() {
    let shell = Shell::new();
    for _ in 0..8 {
        let terminal = start(&shell, "stty -opost; head -c 3000 /dev/zero | tr '\\0' x; printf END").await;
        in_time("the exit", terminal.wait()).await;
        let (text, exit) = (terminal.read_output().await.unwrap(), terminal.view().await.unwrap());
        assert!(text.ends_with("END") && text.len() == 3003, "{}", text.len());
        assert!(exit.rows.iter().any(|row| row.ends_with("END")));
    }
}

#[tokio::test]
async fn the_exit_is_told_at_once_though_the_terminal_stays_open() {
    let shell = Shell::new();
    let script =
        "(trap '' HUP TERM; touch up; sleep 1000) & until [ -e up ]; do sleep 0.01; done; echo bye; exit 3";
    let terminal = start(&shell, script).await;
    let began = Instant::now();
    assert_eq!(in_time("the exit", terminal.wait()).await, Exit::Code(3));
    let mut events = terminal.events();
    while !matches!(in_time("events", events.next()).await.unwrap().noted.event, TerminalEvent::Exited { .. })
    {
    }
    assert!(began.elapsed() < PROMPTLY);
    assert!(!terminal.is_running());
    assert!(!shell.processes().is_empty());
    assert_eq!(terminal.read_output().await.unwrap(), "bye\r\n");
    // It was asked already; the second call kills it.
    in_time("the end", terminal.end(quit(Duration::ZERO))).await;
    shell.until_nothing_left().await;
}

#[tokio::test]
async fn a_process_that_goes_on_writing_does_not_delay_the_exit() {
    let shell = Shell::new();
    let script = "(trap '' HUP TERM; touch up; exec yes) & until [ -e up ]; do sleep 0.01; done; exit 3";
    let mut options = options();
    options.hears_output = provost_process::OutputSubscription::Unwanted;
    let terminal = start_with(&shell, script, options).await;
    assert_eq!(in_time("the exit", terminal.wait()).await, Exit::Code(3));
    in_time("the end", terminal.end(quit(Duration::ZERO))).await;
    shell.until_nothing_left().await;
}

#[tokio::test]
async fn a_program_that_closes_its_terminal_lives_on() {
    let shell = Shell::new();
    let script =
        "echo shown; exec 0<&- 1>&- 2>&-; touch closed; until [ -e go ]; do sleep 0.01; done; exit 7";
    let terminal = start(&shell, script).await;
    shell.until_file("closed").await;
    assert!(terminal.is_running());
    assert_eq!(terminal.view().await.unwrap().rows[0], "shown");
    std::fs::write(shell.path().join("go"), "").unwrap();
    assert_eq!(in_time("the exit", terminal.wait()).await, Exit::Code(7));
}

#[tokio::test]
async fn a_program_that_ignores_all_requests_is_killed_after_the_grace() {
    let shell = Shell::new();
    let terminal = start(&shell, STUBBORN).await;
    read_until(&terminal, "ready").await;
    let began = Instant::now();
    assert_eq!(in_time("the end", terminal.end(quit(Duration::from_millis(200)))).await, Exit::Signal(9));
    assert!(began.elapsed() >= Duration::from_millis(200), "{:?}", began.elapsed());
    shell.assert_nothing_left();
}

#[tokio::test]
async fn a_second_wish_kills_during_the_grace() {
    let shell = Shell::new();
    let terminal = start(
        &shell,
        &format!(
            "stty -icanon; trap 'echo asked' HUP; {}",
            STUBBORN.replace("HUP ", "").replace("1000", "0.05")
        ),
    )
    .await;
    read_until(&terminal, "ready").await;
    let (first, second) = tokio::join!(terminal.end(quit(FAR_AWAY)), async {
        read_until(&terminal, "asked").await;
        in_time("the end", terminal.end(quit(FAR_AWAY))).await
    });
    assert_eq!((first, second), (Exit::Signal(9), Exit::Signal(9)));
    shell.assert_nothing_left();
}

#[tokio::test]
async fn a_dropped_wish_goes_on() {
    let shell = Shell::new();
    let terminal = start(&shell, "trap 'exit 9' HUP TERM; echo ready; while :; do sleep 0.01; done").await;
    read_until(&terminal, "ready").await;
    tokio::select! {
        biased;
        _ = terminal.end(quit(FAR_AWAY)) => panic!("not so soon"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(in_time("the exit", terminal.wait()).await, Exit::Code(9));
}

#[tokio::test]
async fn daemons_and_sessions_below_it_are_ended_with_it() {
    let shell = Shell::new();
    let script = "trap '' TERM HUP
        setsid sh -c 'trap \"\" TERM HUP; setsid sleep 1000 & touch ready-1; sleep 1000' &
        (setsid sh -c '(touch ready-2; exec sleep 1000 </dev/null >/dev/null 2>&1) &' &)
        until [ -e ready-1 ] && [ -e ready-2 ]; do sleep 0.01; done; touch ready; sleep 1000";
    let terminal = start(&shell, script).await;
    shell.until_file("ready").await;
    in_time("the end", terminal.end(quit(Duration::from_millis(50)))).await;
    shell.assert_nothing_left();
}

#[tokio::test]
async fn what_it_leaves_behind_at_its_own_end_is_ended_too() {
    let shell = Shell::new();
    let script = "(setsid sh -c '(touch up; exec sleep 1000 </dev/null >/dev/null 2>&1) &' &)
        until [ -e up ]; do sleep 0.01; done; exit 3";
    let terminal = start(&shell, script).await;
    assert_eq!(in_time("the end", terminal.gone()).await, Exit::Code(3));
    shell.assert_nothing_left();
}

#[tokio::test]
async fn dropping_it_leaves_nothing() {
    let shell = Shell::new();
    let terminal = start(&shell, &format!("setsid sh -c \"{STUBBORN}\" & (sleep 1000 &) ; {STUBBORN}")).await;
    read_until(&terminal, "ready").await;
    let mut watcher = terminal.watch(WatcherKind::Copy).await.unwrap();
    drop(terminal);
    shell.until_nothing_left().await;
    until("the guard is reaped", || zombies() == 0).await;
    while in_time("the watcher's end", watcher.next()).await.is_some() {}
}

#[tokio::test]
async fn its_own_keys_come_first_and_end_it_civilly() {
    let shell = Shell::new();
    let terminal =
        start(&shell, "trap '' TERM HUP; echo ready; read first; read second; echo $first $second; exit 6")
            .await;
    read_until(&terminal, "ready").await;
    let step = |keys: &str| QuitStep { keys: keys.to_owned(), wait: Duration::from_millis(100) };
    let plan = QuitPlan { steps: vec![step("/quit\r"), step("y\r")], grace: FAR_AWAY };
    assert_eq!(in_time("the end", terminal.end(plan)).await, Exit::Code(6));
    assert!(read_to_end(&terminal).await.contains("/quit y\r\n"));
}

#[tokio::test]
async fn without_keys_of_its_own_the_end_of_input_comes_first() {
    let shell = Shell::new();
    let terminal = start(&shell, "trap '' TERM HUP; echo ready; cat; exit 8").await;
    read_until(&terminal, "ready").await;
    assert_eq!(in_time("the end", terminal.end(quit(FAR_AWAY))).await, Exit::Code(8));
}

#[tokio::test]
async fn signals_reach_the_foreground_and_what_stops_goes_on() {
    let shell = Shell::new();
    // It starts no programs: if it is stopped between a shell's vfork and the exec, the shell waits instead of
    // stopping.
    let terminal =
        start(&shell, "trap 'echo interrupted' INT; echo ready; while :; do read line; done").await;
    read_until(&terminal, "ready").await;
    terminal.signal(PtySignal::Interrupt).await.unwrap();
    read_until(&terminal, "interrupted").await;
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", terminal.pid())).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    };
    terminal.signal(PtySignal::Stop).await.unwrap();
    until("it is stopped", || state() == 'T').await;
    terminal.signal(PtySignal::Continue).await.unwrap();
    until("it goes on", || state() != 'T').await;
    terminal.signal(PtySignal::Terminate).await.unwrap();
    assert_eq!(in_time("the exit", terminal.wait()).await, Exit::Signal(15));
    assert!(matches!(terminal.signal(PtySignal::Terminate).await, Err(PtyError::Ended)));
    assert!(matches!(terminal.send_input("x").await, Err(PtyError::Ended)));
}

#[tokio::test]
async fn a_question_that_stands_is_not_answered_by_the_keys_that_quit() {
    let shell = Shell::new();
    let script = "trap 'exit 9' HUP TERM; printf 'Remove all files? [y/N] '; read answer; echo \"took $answer\"; exit 3";
    let terminal = start(&shell, script).await;
    let mut events = terminal.events();
    while terminal.view().await.unwrap().ask.is_none() {
        in_time("the question", events.next()).await.unwrap();
    }
    let plan = QuitPlan { steps: vec![QuitStep { keys: "y\r".into(), wait: FAR_AWAY }], grace: FAR_AWAY };
    assert_eq!(in_time("the end", terminal.end(plan)).await, Exit::Code(9));
    assert!(!read_to_end(&terminal).await.contains("took"));
}
