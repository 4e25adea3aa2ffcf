//! Folders of its own for each test: home, state, workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// The deadline for every wait of a test.
const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct Scene {
    folder: TempDir,
}

/// The result of a command, as text.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["home", "work", "state"] {
            fs::create_dir(scene.folder.path().join(name)).unwrap();
        }
        scene
    }

    /// A scene with `answers` as the script `agent.yaml`, and settings that name it.
    pub(crate) fn scripted(answers: &str) -> Self {
        let scene = Self::new();
        scene.write("work/agent.yaml", answers);
        scene.write("work/provost.toml", "[agent]\nmodel = \"script:agent.yaml\"\n");
        scene
    }

    /// The same, with more settings.
    pub(crate) fn with_settings(self, more: &str) -> Self {
        let before = fs::read_to_string(self.path("work/provost.toml")).unwrap();
        self.write("work/provost.toml", &format!("{before}{more}"));
        self
    }

    /// The same, after its files were trusted.
    #[track_caller]
    pub(crate) fn trusted(self) -> Self {
        let done = self.provost(&["trust", "--yes"]);
        assert_eq!(done.status, 0, "{done:?}");
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        self.write_bytes(name, text.as_bytes());
    }

    pub(crate) fn write_bytes(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_provost"));
        command.args(args).current_dir(self.path("work")).stdin(Stdio::null());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.env("HOME", self.path("home")).env("PROVOST_STATE_DIR", self.path("state"));
        command
    }

    pub(crate) fn provost(&self, args: &[&str]) -> Done {
        done(&self.command(args).output().unwrap())
    }

    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Self::spawn(self.command(args))
    }

    pub(crate) fn spawn(mut command: Command) -> Running {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Running { child: Some(child) }
    }

    /// The newest run's id.
    pub(crate) fn last_run(&self) -> String {
        let listed = self.provost(&["ps", "--json", "-n", "1"]);
        json(listed.stdout.trim())["run"].as_str().expect("a run").to_owned()
    }

    /// `text` without the parts that differ from run to run, and without the note before the first run in a folder
    /// that has no rules.
    pub(crate) fn stable(&self, text: &str) -> String {
        let folder = self.folder.path().canonicalize().unwrap();
        let text = text.replace(folder.to_str().unwrap(), "/FOLDER");
        let text = text.replace(self.folder.path().to_str().unwrap(), "/FOLDER");
        let is_note = |line: &&str| {
            ["note: no rules are set: ", "note: no sandbox is set: "]
                .iter()
                .any(|note| line.starts_with(note))
        };
        let lines = text.split_inclusive('\n').filter(|line| !is_note(line));
        let text = lines.collect::<String>();
        let words = text.split_inclusive([' ', '\n', '(', ')', '.', ',', ';', '`', ':']).map(stable_word);
        words.collect()
    }
}

/// Ids and times.
fn stable_word(word: &str) -> String {
    let bare = word.trim_end_matches([' ', '\n', '(', ')', '.', ',', ';', '`', ':']);
    let rest = &word[bare.len()..];
    let is_id = bare.len() == 12 && bare.bytes().all(|b| b"0123456789abcdefghjkmnpqrstvwxyz".contains(&b));
    let is_time = bare
        .strip_suffix("ms")
        .or(bare.strip_suffix('s'))
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()));
    match bare {
        _ if is_id => format!("RUN{rest}"),
        _ if is_time => format!("TIME{rest}"),
        _ => word.to_owned(),
    }
}

pub(crate) fn done(output: &Output) -> Done {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    Done {
        status: output.status.code().unwrap_or(-1),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A command that is running; killed if a test loses it.
pub(crate) struct Running {
    child: Option<Child>,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    pub(crate) fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Done {
        until("the command ends", || self.child.as_mut().unwrap().try_wait().unwrap());
        done(&self.child.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Polls until there is a value.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(started.elapsed() < DEADLINE, "waited {DEADLINE:?} until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the file is there with a whole line in it, and returns that. Process ids in it are mapped to those
/// outside a namespace.
#[track_caller]
pub(crate) fn line_in(file: &Path) -> String {
    until(&format!("{} has a line", file.display()), || {
        let text = fs::read_to_string(file).ok()?;
        let folder = file.parent()?.canonicalize().ok()?;
        let name = file.file_name()?.to_str()?;
        let lines = text.strip_suffix('\n')?.lines().map(|line| outside(line, &folder, name));
        Some(lines.collect::<Vec<_>>().join("\n"))
    })
}

/// The id outside of a process in `folder` or below whose own id is `pid`: programs of root's agents are in a pid
/// namespace. Of several, the one whose command line has `word` in it. Any other text stays as it is.
fn outside(pid: &str, folder: &Path, word: &str) -> String {
    if pid.parse::<u32>().is_err() {
        return pid.to_owned();
    }
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut found = processes.map(|process| process.path()).collect::<Vec<_>>();
    found.retain(|process| {
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
        let is_it = numbers.split_whitespace().next_back() == Some(pid);
        is_it && fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    });
    let says_word = |process: &&std::path::PathBuf| {
        fs::read(process.join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(word))
    };
    let found = found.iter().find(says_word).or(found.first());
    let name = found.and_then(|process| process.file_name()).and_then(|name| name.to_str());
    name.unwrap_or(pid).to_owned()
}

/// Waits until no process has this id, other than a zombie. A kernel thread may have the id that a program had in
/// a pid namespace.
#[track_caller]
pub(crate) fn gone(pid: &str) {
    until(&format!("process {pid} is gone"), || {
        let listed = Command::new("ps").args(["-o", "stat=,ppid=,pid=", "-p", pid]).output().unwrap();
        let facts = String::from_utf8_lossy(&listed.stdout).trim().to_owned();
        let mut facts = facts.split_whitespace();
        let (stat, parent, pid) = (facts.next(), facts.next(), facts.next());
        let is_kernels = parent == Some("2") || matches!(pid, Some("1" | "2"));
        (stat.is_none_or(|stat| stat.starts_with('Z')) || is_kernels).then_some(())
    });
}

/// The lines as a valid export: without the beginnings of the logs' hashes, and with a last line of their own.
pub(crate) fn sealed(text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines().filter(|line| !line.contains("\"type\":\"end\"")) {
        let chain = line.rfind(",\"chain\":").unwrap_or(line.len() - 1);
        lines.push_str(&format!("{}}}\n", &line[..chain]));
    }
    let (count, hash) = (lines.lines().count(), blake3::hash(lines.as_bytes()).to_hex());
    format!("{lines}{{\"v\":1,\"type\":\"end\",\"lines\":{count},\"hash\":\"{hash}\"}}\n")
}
