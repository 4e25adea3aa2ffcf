//! What the kernel shows of a program's work: the tools that it runs, the requests without an answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use provost_process::{KernelConnections, KernelSample, ModelConnections as _, PtySupervisor};

use crate::pty::{DEADLINE, read_until, start};
use crate::support::Shell;

/// Samples until this holds.
async fn sampled(terminal: &PtySupervisor, holds: impl Fn(&KernelSample) -> bool) -> KernelSample {
    let begun = Instant::now();
    loop {
        let sample = terminal.sample().await.unwrap();
        if holds(&sample) {
            return sample;
        }
        assert!(begun.elapsed() < DEADLINE, "{sample:?}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_command_of_the_program_is_a_tool_while_it_runs() {
    let shell = Shell::new();
    let script = "echo helped; read x; sleep 50 < /dev/null & echo started; read x; kill $!; wait $!; echo ended; read x";
    let terminal = start(&shell, script).await;
    read_until(&terminal, "helped").await;
    sampled(&terminal, |sample| sample.tool_started.is_none()).await;
    terminal.send_input("\r").await.unwrap();
    read_until(&terminal, "started").await;
    sampled(&terminal, |sample| sample.tool_started.is_some()).await;
    terminal.send_input("\r").await.unwrap();
    read_until(&terminal, "ended").await;
    sampled(&terminal, |sample| sample.tool_started.is_none()).await;
}

#[tokio::test]
async fn a_server_with_a_pipe_for_its_input_and_what_it_starts_are_no_tools() {
    let shell = Shell::new();
    let server = "import subprocess, sys; subprocess.Popen(['sleep', '60'], stdin=subprocess.DEVNULL); \
                  print('ready', flush=True); sys.stdin.read()";
    std::fs::write(shell.path().join("server.py"), server).unwrap();
    let program = "import subprocess; child = subprocess.Popen(['python3', 'server.py'], stdin=subprocess.PIPE); \
                   input()";
    std::fs::write(shell.path().join("program.py"), program).unwrap();
    let terminal = start(&shell, "exec python3 program.py").await;
    read_until(&terminal, "ready").await;
    let sample = terminal.sample().await.unwrap();
    assert_eq!(sample.tool_started, None, "{sample:?}");
}

#[tokio::test]
async fn a_shell_that_the_program_keeps_for_its_commands_is_a_tool_while_one_runs() {
    let shell = Shell::new();
    let program = "import os, pty\n\
                   child, master = pty.fork()\n\
                   if child == 0: os.execvp('sh', ['sh', '-i'])\n\
                   os.read(master, 1)\n\
                   print('kept', flush=True)\n\
                   input()\n\
                   os.write(master, b'sleep 50\\n')\n\
                   input()\n";
    std::fs::write(shell.path().join("program.py"), program).unwrap();
    let terminal = start(&shell, "exec python3 program.py").await;
    read_until(&terminal, "kept").await;
    sampled(&terminal, |sample| sample.tool_started.is_none()).await;
    terminal.send_input("\r").await.unwrap();
    sampled(&terminal, |sample| sample.tool_started.is_some()).await;
}

/// A client that sends its input's lines, each as long as a request.
struct Client {
    child: Child,
    socket: TcpStream,
}

impl Client {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{port}; while read what; do case $what in \
             request) printf '%0400d' 1 >&3;; ping) printf ping >&3;; answer) head -c 500 <&3 >/dev/null;; esac; \
             echo $what; done"
        );
        let child = Command::new("bash")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let socket = listener.accept().unwrap().0;
        Self { child, socket }
    }

    fn does(&mut self, what: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{what}").unwrap();
        let mut said = [0; 16];
        let output = self.child.stdout.as_mut().unwrap();
        let count = output.read(&mut said).unwrap();
        assert_eq!(std::str::from_utf8(&said[..count]).unwrap().trim(), what);
    }

    fn reaches(&self, connections: &mut KernelConnections, awaits: bool) {
        let begun = Instant::now();
        while connections.awaits_answer(&[self.child.id()]) != Some(awaits) {
            assert!(begun.elapsed() < DEADLINE, "{awaits} was never seen");
            std::thread::yield_now();
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn a_request_without_an_answer_is_seen_and_an_idle_connection_is_none() {
    let mut client = Client::start();
    let mut connections = KernelConnections::default();
    client.reaches(&mut connections, false);
    client.does("request");
    client.reaches(&mut connections, true);
    client.socket.write_all(&[b'x'; 500]).unwrap();
    client.does("answer");
    client.reaches(&mut connections, false);
    client.does("ping");
    for _ in 0..20 {
        assert_eq!(connections.awaits_answer(&[client.child.id()]), Some(false));
    }
    client.does("request");
    client.reaches(&mut connections, true);
}

#[test]
fn a_request_that_was_sent_before_the_first_look_is_seen() {
    let mut client = Client::start();
    client.does("request");
    client.reaches(&mut KernelConnections::default(), true);
    assert_eq!(KernelConnections::default().awaits_answer(&[]), Some(false));
    assert!(client.socket.set_read_timeout(Some(Duration::from_secs(1))).is_ok());
}

/// Answers the first request of each connection, of 400 bytes, at once.
const SERVER: &str = "
import socket
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
connections = []
while True:
    connections.append(listener.accept()[0])
    got = connections[-1].recv(400, socket.MSG_WAITALL)
    connections[-1].sendall(got + got)
";

#[test]
fn a_request_that_was_answered_within_a_tick_before_the_first_look_isnt_open() {
    let mut server = Command::new("python3").args(["-c", SERVER]).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let port = said.trim().parse::<u16>().unwrap();
    for _ in 0..50 {
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        client.write_all(&[b'x'; 400]).unwrap();
        client.read_exact(&mut [0; 800]).unwrap();
        let mut connections = KernelConnections::default();
        assert_eq!(connections.awaits_answer(&[std::process::id()]), Some(false));
        client.write_all(&[b'x'; 400]).unwrap();
        let begun = Instant::now();
        while connections.awaits_answer(&[std::process::id()]) != Some(true) {
            assert!(begun.elapsed() < DEADLINE, "the next request is open");
        }
    }
    server.kill().unwrap();
    server.wait().unwrap();
}
