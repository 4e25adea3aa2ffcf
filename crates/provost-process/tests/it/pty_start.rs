//! The environment of a program at its terminal.

use provost_event::{Exit, WindowSize};
use provost_process::{PtySupervisor, SpawnError};

use crate::pty::{command, in_time, options, outcome, read_to_end, read_until, start};
use crate::support::{Shell, until, zombies};

#[tokio::test]
async fn it_leads_a_session_and_the_foreground_of_its_terminal() {
    let script = "read -r pid _ _ _ group session tty foreground _ < /proc/$$/stat
        [ $$ = $pid ] && [ $$ = $group ] && [ $$ = $session ] && [ $$ = $foreground ] && [ $tty != 0 ] && echo leads
        [ \"$(readlink /proc/$$/fd/0)\" = \"$(tty < /dev/tty)\" ] || [ \"$(tty)\" != 'not a tty' ] && echo at a terminal
        stty size; exit 3";
    assert_eq!(outcome(script).await, ("leads\r\nat a terminal\r\n40 120\r\n".into(), Exit::Code(3)));
}

#[tokio::test]
async fn it_inherits_three_descriptors_and_no_ignored_signals() {
    let (text, _) = outcome("ls -C /proc/$$/fd; exec grep -E '^Sig(Blk|Ign)' /proc/self/status").await;
    let (descriptors, signals) = text.split_once("\r\n").unwrap();
    assert_eq!(descriptors, "0  1  2");
    for line in signals.lines() {
        let set = u64::from_str_radix(line.split_once('\t').unwrap().1.trim(), 16).unwrap();
        assert_eq!(set & !(0b11 << 31), 0, "{line}");
    }
}

#[tokio::test]
async fn its_environment_is_what_was_given_and_a_terminals_name() {
    let shell = Shell::new();
    let mut command = command(&shell, "");
    command.program = "/usr/bin/env".into();
    command.args = vec![];
    command.env = vec![("ONE".into(), "1".into())];
    let terminal = PtySupervisor::spawn(command.clone(), options()).await.unwrap();
    assert_eq!(read_to_end(&terminal).await, "ONE=1\r\nTERM=xterm-256color\r\n");
    command.env = vec![("TERM".into(), "dumb".into())];
    let terminal = PtySupervisor::spawn(command, options()).await.unwrap();
    assert_eq!(read_to_end(&terminal).await, "TERM=dumb\r\n");
}

#[tokio::test]
async fn the_guard_holds_neither_side_of_the_terminal() {
    let guard = "$(ls /proc/$PPID/fd | wc -l) $(readlink /proc/$PPID/fd/* | grep -c -e pts -e ptmx)";
    let (_, exit) = outcome(&format!("until [ \"{guard}\" = '2 0' ]; do sleep 0.01; done; exit 4")).await;
    assert_eq!(exit, Exit::Code(4));
}

#[tokio::test]
async fn a_new_size_reaches_the_program_and_is_never_nothing() {
    let shell = Shell::new();
    let script = "trap 'stty size; [ \"$(stty size)\" = \"1 1\" ] && exit 5' WINCH; echo ready
        while :; do sleep 0.01; done";
    let terminal = start(&shell, script).await;
    read_until(&terminal, "ready").await;
    terminal.resize(WindowSize { rows: 30, cols: 90 }).await.unwrap();
    read_until(&terminal, "30 90\r\n").await;
    assert_eq!(terminal.view().await.unwrap().size, WindowSize { rows: 30, cols: 90 });
    terminal.resize(WindowSize { rows: 0, cols: 0 }).await.unwrap();
    assert_eq!(in_time("the exit", terminal.wait()).await, Exit::Code(5));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named_and_nothing_is_left() {
    let shell = Shell::new();
    let mut command = command(&shell, "");
    command.program = "no-such-program".into();
    let error = PtySupervisor::spawn(command, options()).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, SpawnError::ProgramNotFound { .. }), "{error:?}");
    until("the guard is reaped", || zombies() == 0).await;
}

#[tokio::test]
async fn its_number_is_told() {
    let shell = Shell::new();
    let terminal = start(&shell, "echo $$ > pid; read -r _").await;
    let inner = shell.line("pid").await;
    assert_eq!(shell.number_here(&inner), terminal.pid());
    assert!(terminal.is_running());
}
