//! The program at a terminal of its own.

use std::time::{Duration, Instant};

use provost_event::{Exit, WindowSize};
use provost_process::{Confinement, Launch, OutputSubscription, PtyOptions, PtySupervisor};
use provost_terminal::{Detector, Profile};
use tokio::runtime::Runtime;

use crate::support::Scene;

const DEADLINE: Duration = Duration::from_secs(30);
/// The timeout of one read.
const LISTEN: Duration = Duration::from_millis(5);

pub(crate) struct AtTerminal {
    runtime: Runtime,
    pty: PtySupervisor,
    /// The whole output, sequences included.
    pub(crate) heard: String,
}

impl AtTerminal {
    /// `provost` with these arguments at a terminal.
    #[track_caller]
    pub(crate) fn provost(scene: &Scene, args: &[&str]) -> Self {
        let words = std::iter::once(env!("CARGO_BIN_EXE_provost")).chain(args.iter().copied());
        let quoted = words.map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect::<Vec<_>>();
        // Without a shell beside it, which a Ctrl-C would end too.
        Self::shell(scene, &format!("exec {}", quoted.join(" ")))
    }

    /// A shell with this script at a terminal.
    #[track_caller]
    pub(crate) fn shell(scene: &Scene, script: &str) -> Self {
        Self::with(scene, script, &[])
    }

    /// The same, with more variables.
    #[track_caller]
    pub(crate) fn with(scene: &Scene, script: &str, more: &[(&str, &str)]) -> Self {
        let of_scene = scene.command(&[]);
        let env = of_scene.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let more = more.iter().map(|&(name, value)| (name.into(), value.into()));
        let command = Launch {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: env.chain(more).collect(),
            cwd: scene.path("work"),
            stdio: provost_process::AtTerminal { size: WindowSize::new(30, 100) },
            confinement: Confinement::Strongest,
        };
        let mut options =
            PtyOptions::new(Detector::of_terminal(std::sync::Arc::new(Profile::named("generic").unwrap())));
        options.hears_output = OutputSubscription::Wanted;
        options.hears_events = provost_process::EventSubscription::Unwanted;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let pty = runtime.block_on(PtySupervisor::spawn(command, options)).unwrap();
        Self { runtime, pty, heard: String::new() }
    }

    /// Waits until the screen shows this.
    #[track_caller]
    pub(crate) fn sees(&mut self, text: &str) {
        let started = Instant::now();
        while !self.screen().contains(text) {
            assert!(started.elapsed() < DEADLINE, "never saw {text:?}:\n{}\n{:?}", self.screen(), self.heard);
            self.listen();
        }
    }

    /// Waits until this was written.
    #[track_caller]
    pub(crate) fn hears(&mut self, text: &str) {
        let started = Instant::now();
        while !self.heard.contains(text) {
            assert!(started.elapsed() < DEADLINE, "never heard {text:?}: {:?}", self.heard);
            self.listen();
        }
    }

    pub(crate) fn types(&self, keys: &str) {
        self.runtime.block_on(self.pty.input_raw(keys.as_bytes())).unwrap();
    }

    pub(crate) fn resize(&self, rows: u16, cols: u16) {
        self.runtime.block_on(self.pty.resize(WindowSize::new(rows, cols))).unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pty.pid()
    }

    pub(crate) fn screen(&self) -> String {
        self.runtime.block_on(self.pty.view()).unwrap().rows.join("\n")
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(&mut self) -> Exit {
        let started = Instant::now();
        while self.pty.is_running() {
            assert!(started.elapsed() < DEADLINE, "never ended:\n{}\n{:?}", self.screen(), self.heard);
            self.listen();
        }
        let exit = self.runtime.block_on(self.pty.wait());
        while let Some(text) = self.runtime.block_on(self.pty.read_output()) {
            self.heard.push_str(&text);
        }
        exit
    }

    /// Takes in what is written within a moment.
    pub(crate) fn listen(&mut self) {
        let heard =
            self.runtime.block_on(async { tokio::time::timeout(LISTEN, self.pty.read_output()).await });
        match heard {
            Ok(Some(text)) => self.heard.push_str(&text),
            Ok(None) => std::thread::sleep(LISTEN),
            Err(_) => {}
        }
    }
}
