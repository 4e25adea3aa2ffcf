//! Typed input: whole, in order, and without showing secrets.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use provost_event::{Exit, TerminalNoted, WindowSize};
use provost_process::{PtyError, PtySupervisor, Recorder};
use tokio::time::timeout;

use crate::pty::{in_time, options, quit, read_to_end, read_until, start, start_with};
use crate::support::Shell;

/// Reads a line, possibly in several reads, and prints its length and its checksum.
const READER: &str = "import sys, os
data = b''
print('ready', flush=True)
while not data.endswith(b'\\n'):
    data += os.read(0, 65536)
print(len(data) - 1, sum(data) - 10, flush=True)
";

fn python(script: &str) -> String {
    format!("exec python3 -c \"$(cat <<'E'\n{script}E\n)\"")
}

#[tokio::test]
async fn lines_of_any_length_reach_a_program_that_reads_by_the_line() {
    for length in [4095, 4096, 20_000] {
        let shell = Shell::new();
        let terminal = start(&shell, &format!("stty -echo; {}", python(READER))).await;
        read_until(&terminal, "ready").await;
        in_time("it is typed", terminal.send_input(&("a".repeat(length) + "\n"))).await.unwrap();
        let text = read_until(&terminal, "\n").await + &read_to_end(&terminal).await;
        assert!(text.contains(&format!("{length} {}", length * 97)), "{length}: {text}");
    }
}

#[tokio::test]
async fn long_lines_typed_in_pieces_are_whole_too() {
    let shell = Shell::new();
    let terminal = start(&shell, &format!("stty -echo; {}", python(READER))).await;
    read_until(&terminal, "ready").await;
    for _ in 0..100 {
        in_time("it is typed", terminal.send_input(&"a".repeat(99))).await.unwrap();
    }
    in_time("it is typed", terminal.send_input("\r")).await.unwrap();
    assert!(read_to_end(&terminal).await.contains(&format!("9900 {}", 9900 * 97)));
}

#[tokio::test]
async fn what_several_type_at_once_is_not_mixed() {
    let shell = Shell::new();
    let terminal = start(&shell, "stty -echo; echo ready; head -n 20 > lines; echo done").await;
    read_until(&terminal, "ready").await;
    let lines: Vec<String> = (0..20).map(|n| format!("{}\n", n.to_string().repeat(300))).collect();
    let terminal = Arc::new(terminal);
    let tasks: Vec<_> = lines
        .iter()
        .cloned()
        .map(|line| {
            let terminal = Arc::clone(&terminal);
            tokio::spawn(async move { terminal.send_input(&line).await.unwrap() })
        })
        .collect();
    for task in tasks {
        in_time("it is typed", task).await.unwrap();
    }
    read_until(&terminal, "done").await;
    let text = std::fs::read_to_string(shell.path().join("lines")).unwrap();
    let mut found: Vec<_> = text.split_inclusive('\n').collect();
    let mut expected: Vec<_> = lines.iter().map(String::as_str).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_program_that_does_not_read_delays_only_its_input() {
    let shell = Shell::new();
    let script = "stty raw -echo; echo ready; until [ -e go ]; do sleep 0.01; done; echo going
        head -c 100003 | tr -d x; exit 3";
    let terminal = start(&shell, script).await;
    read_until(&terminal, "ready").await;
    let flood = "x".repeat(1_000_000);
    let blocked = timeout(Duration::from_millis(300), terminal.send_input(&flood)).await;
    assert!(blocked.is_err(), "a terminal takes no megabyte");
    // Withdrawn by the timeout. The next input waits, the screen and the reader don't.
    assert_eq!(terminal.view().await.unwrap().rows[0], "ready");
    let typed = terminal.send_input("end");
    tokio::pin!(typed);
    assert!(timeout(Duration::from_millis(50), &mut typed).await.is_err());
    std::fs::write(shell.path().join("go"), "").unwrap();
    read_until(&terminal, "going").await;
    in_time("it is typed", &mut typed).await.unwrap();
    let fill = "x".repeat(100_000);
    let _ended_before_it_took_all = in_time("the fill", terminal.send_input(&fill)).await;
    assert_eq!(in_time("the exit", terminal.wait()).await, Exit::Code(3));
    assert!(read_to_end(&terminal).await.contains("end"));
}

#[tokio::test]
async fn who_waits_for_a_program_that_ends_is_told() {
    let shell = Shell::new();
    let terminal = start(&shell, "stty raw -echo; echo ready; sleep 1000").await;
    read_until(&terminal, "ready").await;
    let flood = "x".repeat(1_000_000);
    let (typed, _) = tokio::join!(terminal.send_input(&flood), async {
        tokio::task::yield_now().await;
        terminal.end(quit(Duration::ZERO)).await
    });
    assert!(matches!(typed, Err(PtyError::Ended)), "{typed:?}");
}

#[tokio::test]
async fn queries_are_answered_before_all_that_has_not_begun() {
    let shell = Shell::new();
    let script = r"stty raw -echo; printf ready; dd bs=1 count=1 status=none of=/dev/null; printf '\033[5nasked'
        until [ -e go ]; do sleep 0.01; done
        head -c 100009 | tail -c 12 | od -An -c | tr -s ' \n' ' '; exit 3";
    let terminal = start(&shell, script).await;
    read_until(&terminal, "ready").await;
    // More than the terminal takes, so that the rest waits here. The program asks when it has the first byte of it.
    let flood = "x".repeat(100_000);
    let steps = async {
        read_until(&terminal, "asked").await;
        std::fs::write(shell.path().join("go"), "").unwrap();
        read_to_end(&terminal).await
    };
    let (_, _, text) =
        tokio::join!(biased; terminal.send_input(&flood), terminal.send_input("typed!"), steps);
    assert!(text.contains("x x 033 [ 0 n t y p e d !"), "{text:?}");
}

#[tokio::test]
async fn an_answer_is_typed_only_if_the_screen_still_asks() {
    let shell = Shell::new();
    let terminal =
        start(&shell, "printf 'Sure? '; read first; read second; echo $first/$second; exit 3").await;
    read_until(&terminal, "Sure?").await;
    let asks = |view: &provost_process::TerminalView| view.rows[0].starts_with("Sure?");
    assert!(!terminal.send_if("no\r", move |view| !asks(view)).await.unwrap());
    assert!(terminal.send_if("yes\r", asks).await.unwrap());
    terminal.send_input("end\r").await.unwrap();
    assert!(read_to_end(&terminal).await.contains("yes/end\r\n"));
}

/// Records all calls.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<u8>>>);

impl Notes {
    fn add(&self, text: &[u8]) -> std::io::Result<()> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Recorder for Notes {
    fn output(&mut self, _at: Duration, bytes: &[u8]) -> std::io::Result<()> {
        self.add(bytes)
    }

    fn input_marker(&mut self, _at: Duration, label: &str) -> std::io::Result<()> {
        self.add(format!("<{label}>").as_bytes())
    }

    fn resize(&mut self, _at: Duration, size: WindowSize) -> std::io::Result<()> {
        self.add(format!("<{}x{}>", size.rows, size.cols).as_bytes())
    }

    fn event(&mut self, _at: Duration, noted: &TerminalNoted) -> std::io::Result<()> {
        self.add(format!("<{noted:?}>").as_bytes())
    }

    fn finish(&mut self, _at: Duration) -> std::io::Result<()> {
        self.add(b"<finished>")
    }
}

#[tokio::test]
async fn a_session_is_recorded_in_order_and_to_its_end() {
    let shell = Shell::new();
    let (notes, mut options) = (Notes::default(), options());
    options.recorder = Some(Box::new(notes.clone()));
    let terminal = start_with(&shell, "printf 'name? '; read name; echo hello $name", options).await;
    read_until(&terminal, "name?").await;
    terminal.resize(WindowSize::new(20, 60)).await.unwrap();
    terminal.send_input("you\r").await.unwrap();
    in_time("the end", terminal.gone()).await;
    let text = notes.text();
    let places = ["name? ", "<20x60>", "<input>", "hello you", "<finished>"].map(|part| text.find(part));
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{places:?} {text}");
}

const GETPASS: &str = "import getpass
print('ready', flush=True)
print('first', input('name? '))
secret = getpass.getpass('Password: ')
print('length', len(secret), flush=True)
";

async fn kernel_says(
    terminal: &PtySupervisor,
    what: &str,
    is: impl Fn(provost_process::KernelSample) -> bool,
) {
    let mut sample = terminal.sample().await.unwrap();
    for _ in 0..2000 {
        if is(sample) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        sample = terminal.sample().await.unwrap();
    }
    panic!("{what}: {sample:?}");
}

#[tokio::test]
async fn a_secret_is_typed_while_the_echo_is_off_only_and_shown_nowhere() {
    let shell = Shell::new();
    let (notes, mut options) = (Notes::default(), options());
    options.recorder = Some(Box::new(notes.clone()));
    let terminal = start_with(&shell, &python(GETPASS), options).await;
    read_until(&terminal, "name?").await;
    // Python reads a name by the key or by the line, with an echo of its own or the terminal's: input() goes by
    // readline, which turns the echo off, only if that is installed.
    terminal.send_input("me\r").await.unwrap();
    let mut text = read_until(&terminal, "Password:").await;
    kernel_says(&terminal, "it reads a secret", |sample| {
        sample.echo == Some(false)
            && sample.canonical == Some(true)
            && sample.reads_terminal == Some(true)
            && sample.is_busy == Some(false)
            && sample.foreground == Some(terminal.pid())
    })
    .await;
    in_time("the secret", terminal.send_secret("hunter2 of many".into())).await.unwrap();
    text.push_str(&read_to_end(&terminal).await);
    assert!(text.contains("length 15"), "{text}");
    in_time("the end", terminal.gone()).await;
    let notes = notes.text();
    assert!(notes.contains("<secret>") && notes.contains("length 15"), "{notes}");
    assert!(!text.contains("hunter2") && !notes.contains("hunter2"), "{notes}");
}

#[tokio::test]
async fn a_secret_is_refused_while_the_terminal_shows_what_is_typed() {
    let shell = Shell::new();
    let terminal = start(&shell, "printf 'name? '; read name; echo \"[$name]\"").await;
    read_until(&terminal, "name?").await;
    kernel_says(&terminal, "it reads a line", |sample| {
        sample.echo == Some(true) && sample.canonical == Some(true) && sample.reads_terminal == Some(true)
    })
    .await;
    let refused = terminal.send_secret("hunter2".into()).await;
    assert!(matches!(refused, Err(PtyError::EchoNotOff)), "{refused:?}");
    let too_long = terminal.send_secret("x".repeat(5000).into()).await;
    assert!(matches!(too_long, Err(PtyError::TooLong { bytes_max: 4095 })), "{too_long:?}");
    terminal.send_input("me\r").await.unwrap();
    let text = read_to_end(&terminal).await;
    assert!(text.contains("[me]") && !text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn the_kernel_tells_a_sleeper_from_a_worker_and_a_line_editor() {
    let shell = Shell::new();
    let terminal = start(&shell, "while [ ! -e go ]; do :; done; exec sleep 1000").await;
    kernel_says(&terminal, "it works", |sample| sample.is_busy == Some(true)).await;
    std::fs::write(shell.path().join("go"), "").unwrap();
    kernel_says(&terminal, "it sleeps", |sample| {
        sample.is_busy == Some(false) && sample.reads_terminal == Some(false) && sample.polls == Some(false)
    })
    .await;
    let terminal = start(&shell, "exec bash -c 'read -t 1000 x'").await;
    kernel_says(&terminal, "it reads with a limit", |sample| sample.reads_terminal == Some(true)).await;
    let terminal = start(&shell, "exec python3 -c 'import select, sys; select.select([0], [], [])'").await;
    kernel_says(&terminal, "it polls", |sample| sample.polls == Some(true)).await;
}
