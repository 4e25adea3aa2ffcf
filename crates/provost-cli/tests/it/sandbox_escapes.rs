//! Attacks by a program in the sandbox, as root and as an ordinary user: each is seen to succeed outside, and to fail
//! inside.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::thread;

use crate::sandbox_stage::{Stage, User};

const PROBES: &str = include_str!("sandbox_probes.txt");

/// Probes at the same time.
const AT_ONCE: usize = 3;

/// The exit status when no sandbox could be made.
const NO_SANDBOX: i32 = 125;

/// Who succeeds outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    All,
    Root,
    /// Whether this kernel has it isn't known.
    Unknown,
}

struct Probe {
    name: &'static str,
    who: Who,
    script: String,
}

fn probes() -> Vec<Probe> {
    let lines = PROBES.lines().filter(|line| !line.starts_with('#'));
    let probe = |line: &'static str| {
        let [name, who, script] = line.splitn(3, '\t').collect::<Vec<_>>().try_into().unwrap();
        let who = match who {
            "all" => Who::All,
            "root" => Who::Root,
            "none" => Who::Unknown,
            other => panic!("{other}"),
        };
        Probe { name, who, script: script.replace('␤', "\n") }
    };
    lines.map(probe).collect()
}

/// A file that is only seen outside counts there, and must not be seen outside when it was made inside.
const SEEN: &str = "export LATER='test -e' LEFT='test -e' STAYS='test -s pid';";

impl Probe {
    fn key(&self, user: User) -> String {
        let name = self.name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        format!("{name}-{user:?}-{}", std::process::id())
    }

    fn succeeds_outside(&self, user: User) -> Result<(), String> {
        let expected = match self.who {
            Who::All => true,
            Who::Root => user.is_root(),
            Who::Unknown => return Ok(()),
        };
        let stage = Stage::new(user, &self.key(user));
        let script = format!("{SEEN} export OUTSIDE=1; exec 9</dev/null; {}", self.script);
        let done = stage.outside(&script);
        self.clean_up(user);
        if let Ok(pid) = fs::read_to_string(stage.path("work/pid")) {
            stage.outside(&format!("kill {pid}"));
        }
        match expected && !done.status.success() {
            true => Err(format!("{} ({user:?}) fails outside too: {done:?}", self.name)),
            false => Ok(()),
        }
    }

    fn fails_inside(&self, user: User) -> Result<(), String> {
        let stage = Stage::new(user, &self.key(user));
        // In the box the file may be there: what counts is whether it is outside.
        let script = format!("export LATER=true LEFT=true STAYS=true; {}", self.script);
        let held = fs::File::open("/dev/null").unwrap();
        assert!(held.as_raw_fd() > 2);
        let done = stage.provost(&["sandbox", "run", "--", "sh", "-c", &script]);
        if done.status.code() == Some(NO_SANDBOX) {
            return Err(format!("{} ({user:?}): no sandbox: {done:?}", self.name));
        }
        let has_succeeded = if self.script.contains("$LATER") {
            ["/tmp", "/dev/shm"].iter().any(|folder| {
                std::path::Path::new(&format!("{folder}/provost-probe-{}", self.key(user))).exists()
            })
        } else if let Some((_, path)) = self.script.split_once("$LEFT ") {
            stage.path(&format!("work/{path}")).exists()
        } else if self.script.contains("$STAYS") {
            let left = stage.outside("grep -lsa 'sleep.60' /proc/[0-9]*/cmdline; true");
            let listed = String::from_utf8_lossy(&left.stdout).into_owned();
            let here = stage.path("work").display().to_string();
            listed.lines().any(|line| {
                let cwd = line.replace("cmdline", "cwd");
                fs::read_link(cwd).is_ok_and(|cwd| cwd.display().to_string() == here)
            })
        } else {
            done.status.success()
        };
        self.clean_up(user);
        match has_succeeded {
            true => Err(format!("{} ({user:?}) succeeds in the sandbox: {done:?}", self.name)),
            false => Ok(()),
        }
    }

    fn clean_up(&self, user: User) {
        for folder in ["/tmp", "/dev/shm"] {
            let _ = fs::remove_file(format!("{folder}/provost-probe-{}", self.key(user)));
        }
    }
}

/// Runs `check` for each probe and user; panics with all complaints.
fn check_all(check: fn(&Probe, User) -> Result<(), String>) {
    let probes = probes();
    assert!(probes.len() >= 60, "{}", probes.len());
    let all = probes.iter().flat_map(|probe| User::all().into_iter().map(move |user| (probe, user)));
    let all = all.collect::<Vec<_>>();
    let share = all.len().div_ceil(AT_ONCE);
    let complaints = thread::scope(|scope| {
        let threads = all.chunks(share).map(|some| {
            scope.spawn(move || {
                some.iter().filter_map(|(probe, user)| check(probe, *user).err()).collect::<Vec<_>>()
            })
        });
        let threads = threads.collect::<Vec<_>>();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(complaints.is_empty(), "{}:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn each_attack_succeeds_outside_of_the_sandbox() {
    check_all(Probe::succeeds_outside);
}

#[test]
fn each_attack_fails_in_the_sandbox() {
    check_all(Probe::fails_inside);
}
