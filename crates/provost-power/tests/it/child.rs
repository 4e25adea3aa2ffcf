//! A process that keeps the machine awake on orders of the test. The bus address is in its environment, which a
//! test can't change for itself.

use std::io::{BufRead as _, BufReader, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use provost_harness::{Power as _, PowerGuard};
use provost_power::{KeepAwake, KeepAwakeOptions};

const REASON: &str = "Provost agent loop";
const OPTIONS: &str = "KEEP_AWAKE_TEST_OPTIONS";
const ANSWER: &str = "took_us=";
/// How long a line may take before a test fails.
const DEADLINE: Duration = Duration::from_secs(10);

/// Not a test: the process's main function. Without orders it does nothing.
#[test]
fn does_as_told() {
    let Ok(options) = std::env::var(OPTIONS) else { return };
    let options = options.split(' ').map(|option| option.parse().unwrap()).collect::<Vec<u64>>();
    let options = KeepAwakeOptions {
        linger: Duration::from_millis(options[0]),
        answer_max: Duration::from_millis(options[1]),
        blocks_sleep: options[2] == 1,
    };
    tracing_subscriber::fmt()
        .with_env_filter("provost_power=debug")
        .without_time()
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
    let mut power = Some(KeepAwake::new(options));
    let mut guards = Vec::new();
    for order in std::io::stdin().lines() {
        let began = Instant::now();
        obey(&order.unwrap(), &mut power, &mut guards);
        println!("{ANSWER}{}", began.elapsed().as_micros());
    }
}

fn obey(order: &str, power: &mut Option<KeepAwake>, guards: &mut Vec<Box<dyn PowerGuard>>) {
    let hold = |power: &Option<KeepAwake>| power.as_ref().unwrap().hold(REASON);
    match order {
        "hold" => guards.push(hold(power)),
        "release" => drop(guards.pop().unwrap()),
        "release later" => guards.pop().unwrap().release_after(Duration::from_secs(600)),
        "panic" => {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                let _guard = hold(power);
                panic!("as told");
            }));
            assert!(panicked.is_err());
        }
        "hold and release often" => (0..10_000).for_each(|_| drop(hold(power))),
        "end" => drop(power.take()),
        _ => panic!("`{order}` is no order"),
    }
}

/// Such a process, as a test uses it.
pub(crate) struct Holder {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    said: Receiver<String>,
}

impl Holder {
    /// A process whose system bus is at `address`.
    pub(crate) fn new(address: &str, options: KeepAwakeOptions) -> Self {
        let KeepAwakeOptions { linger, answer_max, blocks_sleep } = options;
        let options = format!("{} {} {}", linger.as_millis(), answer_max.as_millis(), u8::from(blocks_sleep));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::does_as_told", "--nocapture"])
            .env(OPTIONS, options)
            .env("DBUS_SYSTEM_BUS_ADDRESS", address)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (sender, said) = channel();
        thread::spawn(move || errors.lines().for_each(|line| drop(sender.send(line.unwrap()))));
        Self { child, orders, answers, said }
    }

    /// Sends an order, and returns how long the process took for it.
    #[track_caller]
    pub(crate) fn order(&mut self, order: &str) -> Duration {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
        loop {
            let mut line = String::new();
            let length = self.answers.read_line(&mut line).unwrap();
            assert!(length > 0, "it ended at `{order}`");
            // The text before it is the test runner's.
            if let Some((_, time)) = line.split_once(ANSWER) {
                return Duration::from_micros(time.trim().parse().unwrap());
            }
        }
    }

    /// Waits for a line that the process logs, and returns it.
    #[track_caller]
    pub(crate) fn line(&self) -> String {
        self.said.recv_timeout(DEADLINE).expect("a line")
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Makes it end by itself, and returns the lines that weren't read yet.
    pub(crate) fn end(mut self) -> Vec<String> {
        drop(self.orders.take());
        let said = self.said.iter().collect::<Vec<_>>();
        assert!(self.child.wait().unwrap().success(), "{said:?}");
        said
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
