//! Programs that attack their guard, started by a run in each way that a run starts programs, as root and as an
//! ordinary user: when the run's process has ended no process of them is left, and the log's statement about their
//! end is true.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use crate::support::{Running, Scene, until};

/// The programs that the guards' own tests use too.
const PROGRAMS: &str = include_str!("../../../provost-process/tests/it/hostile_programs.txt");

/// An ordinary user, without a home folder and rights.
const NOBODY: &str = "65534";

/// The log's text if not all processes were seen to end.
const MAYBE_LEFT: &str = "could not be ended and may still run";

/// Runs at the same time: most of a run's time is spent waiting.
const AT_ONCE: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum User {
    Mine,
    Nobody,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Tool,
    Hook,
    StopHook,
    ExternalAgent,
}

impl Way {
    const ALL: [Self; 4] = [Self::Tool, Self::Hook, Self::StopHook, Self::ExternalAgent];

    /// A scene in which a run starts `attack.sh` in this way.
    fn scene(self, script: &str) -> Scene {
        let says_done = "{ text: done }, { text: done }, { text: done }";
        let scene = match self {
            Self::Tool => Scene::scripted(&format!(
                "answers: [{{ tools: [{{ shell: {{ command: exec sh attack.sh }} }}] }}, {says_done}]"
            )),
            Self::Hook => Scene::scripted(&format!("answers: [{{ tools: [list_dir] }}, {says_done}]"))
                .with_settings("[[hooks]]\nevent = \"pre_tool_call\"\ncommand = \"exec sh attack.sh\"\n")
                .trusted(),
            Self::StopHook => Scene::scripted(&format!("answers: [{says_done}]"))
                .with_settings("[[stop_hooks]]\nname = \"check\"\ncommand = \"exec sh attack.sh\"\n")
                .trusted(),
            Self::ExternalAgent => Scene::new(),
        };
        scene.write("work/attack.sh", script);
        scene
    }

    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Tool | Self::Hook | Self::StopHook => &["run", "do it"],
            Self::ExternalAgent => &["exec", "--unattended", "--", "sh", "attack.sh"],
        }
    }
}

impl User {
    fn start(self, scene: &Scene, arguments: &[&str]) -> Running {
        let mut command = scene.command(arguments);
        if self == Self::Nobody {
            give_to_nobody(scene);
            command = as_nobody(&command);
        }
        Scene::spawn(command)
    }
}

fn give_to_nobody(scene: &Scene) {
    fs::set_permissions(scene.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let mut owned = Command::new("chown");
    owned.args(["-R", NOBODY, "home", "state", "work"]).current_dir(scene.path(""));
    assert!(owned.status().unwrap().success());
}

/// `command`, started by an ordinary user.
fn as_nobody(command: &Command) -> Command {
    let mut other = Command::new("setpriv");
    other.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups", "--"]);
    other.arg(command.get_program()).args(command.get_args());
    other.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    other.current_dir(command.get_current_dir().unwrap()).stdin(Stdio::null());
    other
}

fn is_root() -> bool {
    fs::read_to_string("/proc/self/status").unwrap().lines().any(|line| line.starts_with("Uid:\t0\t0"))
}

fn hostile() -> Vec<(&'static str, String)> {
    let rows = PROGRAMS.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.map(|line| line.split_once('\t').unwrap());
    rows.map(|(what, script)| (what, script.replace('␤', "\n"))).collect()
}

/// The processes with `folder` as their working directory, as all that are started there: their ids and command
/// lines.
fn left(folder: &Path) -> Vec<(u32, String)> {
    let folder = folder.canonicalize().unwrap();
    let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_in_it =
        |process: &Path| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder));
    let found = all.filter_map(|process| {
        let number = process.file_name()?.to_str()?.parse::<u32>().ok().filter(|_| is_in_it(&process))?;
        Some((number, String::from_utf8_lossy(&fs::read(process.join("cmdline")).ok()?).replace('\0', " ")))
    });
    found.collect()
}

/// Runs `script` in a run, stops the run after the attack, and checks.
fn check_one(what: &str, script: &str, user: User, way: Way) {
    let scene = way.scene(script);
    let mut running = user.start(&scene, way.arguments());
    until("it has done its worst, or the run is over", || {
        (scene.path("work/up").exists() || running.has_ended()).then_some(())
    });
    if !running.has_ended() {
        running.signal("TERM");
    }
    let done = running.end();
    assert_eq!(left(&scene.path("work")), [], "{what}, {user:?}, {way:?}: {done:?}");
    let log = scene.provost(&["export", "last"]);
    assert_eq!(log.status, 0, "{what}, {user:?}, {way:?}: {log:?}");
    assert!(!log.stdout.contains(MAYBE_LEFT), "{what}, {user:?}, {way:?}: {}", log.stdout);
}

fn check(user: User, way: Way) {
    let all = hostile();
    let share = all.len().div_ceil(AT_ONCE);
    thread::scope(|scope| {
        for some in all.chunks(share) {
            scope.spawn(move || {
                for (what, script) in some {
                    check_one(what, script, user, way);
                }
            });
        }
    });
}

/// As root, who may make process namespaces, and as an ordinary user, who may not.
fn check_both(way: Way) {
    check(User::Mine, way);
    if is_root() {
        check(User::Nobody, way);
    }
}

#[test]
fn nothing_is_left_of_a_hostile_tool() {
    check_both(Way::Tool);
}

#[test]
fn nothing_is_left_of_a_hostile_hook() {
    check_both(Way::Hook);
}

#[test]
fn nothing_is_left_of_a_hostile_stop_hook() {
    check_both(Way::StopHook);
}

#[test]
fn nothing_is_left_of_a_hostile_external_agent() {
    check_both(Way::ExternalAgent);
}

/// What an ordinary user's tool reads of Provost, of its guard and of a sibling's guard.
const READS_MEMORY: &str = "provost=$(cut -d ' ' -f 4 /proc/$PPID/stat)
[ \"$(cat /proc/$provost/comm)\" = provost ] && echo it is there
for process in $provost $PPID $(cat /proc/$provost/task/*/children); do
  for file in mem maps environ auxv; do head -c 1 /proc/$process/$file && echo $file of $process; done
  ls /proc/$process/fd /proc/$process/map_files && echo descriptors of $process
done 2>/dev/null
true";

#[test]
fn an_ordinary_users_tool_reads_no_memory_of_provost_and_its_guards() {
    let scene = Way::Tool.scene(&format!("{{ {READS_MEMORY}\n}} > seen"));
    let user = if is_root() { User::Nobody } else { User::Mine };
    assert_eq!(user.start(&scene, &["run", "do it"]).end().status, 0);
    assert_eq!(fs::read_to_string(scene.path("work/seen")).unwrap(), "it is there\n");
}

/// Becomes root by a set-user-id program, so that Provost can't end it; the second time it does nothing.
const BECOMES_ROOT: &str = "[ -e up ] && exit 0; touch up; trap '' HUP
../becomes-root --reuid=0 --regid=0 --clear-groups sleep 4243 </dev/null >/dev/null 2>&1 &
until grep -q '^sleep' /proc/$!/comm; do :; done
";

/// A program that makes a user root, as sudo does; `None` where the system doesn't allow that.
fn root_maker(scene: &Scene) -> Option<()> {
    let maker = scene.path("becomes-root");
    fs::copy("/usr/bin/setpriv", &maker).ok()?;
    fs::set_permissions(&maker, fs::Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(scene.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let mut asks = Command::new(&maker);
    asks.args(["--reuid=0", "id", "-ru"])
        .env("PATH", std::env::var_os("PATH")?)
        .current_dir(scene.path("work"));
    let asked = as_nobody(&asks).output().ok()?;
    (asked.stdout == b"0\n").then_some(())
}

/// Checks a program that an ordinary user's Provost can't end, and the messages about it.
fn check_survivor(way: Way) {
    let scene = way.scene(BECOMES_ROOT);
    if root_maker(&scene).is_none() {
        return;
    }
    give_to_nobody(&scene);
    let done = Scene::spawn(as_nobody(&scene.command(way.arguments()))).end();
    let still_there = left(&scene.path("work"));
    for (number, _) in &still_there {
        assert!(Command::new("kill").args(["-KILL", &number.to_string()]).status().unwrap().success());
    }
    assert!(
        still_there.iter().any(|(_, line)| line.starts_with("sleep")),
        "{way:?}: else this shows nothing: {done:?}"
    );
    let log = scene.provost(&["export", "last"]).stdout;
    // What a hook leaves behind may go on, so that the log says it when the run has ended.
    let is_told = log.contains(MAYBE_LEFT) || log.contains("\"processes_left\"");
    assert!(is_told, "{way:?}: the log doesn't say that something is left: {log}");
    check_last_line(way, &done.stderr);
    if way == Way::StopHook {
        assert!(done.stderr.contains("stop hooks are broken: check"), "{}", done.stderr);
    }
}

/// The last line of a run with processes left.
fn check_last_line(way: Way, said: &str) {
    let last = said.lines().next_back().unwrap_or_default();
    assert!(last.contains(MAYBE_LEFT), "{way:?}: {said}");
}

/// The same if the run is stopped while the program runs.
fn check_survivor_of_a_stop(way: Way) {
    let scene = way.scene(&format!("{BECOMES_ROOT}touch ready\nexec sleep 4243\n"));
    if root_maker(&scene).is_none() {
        return;
    }
    give_to_nobody(&scene);
    let running = Scene::spawn(as_nobody(&scene.command(way.arguments())));
    until("it is root", || scene.path("work/ready").exists().then_some(()));
    running.signal("TERM");
    let done = running.end();
    for (number, _) in &left(&scene.path("work")) {
        assert!(Command::new("kill").args(["-KILL", &number.to_string()]).status().unwrap().success());
    }
    let log = scene.provost(&["export", "last"]).stdout;
    assert!(log.contains("processes_left"), "{way:?}: the run's log doesn't say it: {log}");
    let says_it = |line: &str| line.contains(MAYBE_LEFT);
    assert!(log.lines().any(says_it), "{way:?}: what the program was to the run isn't told: {log}");
    check_last_line(way, &done.stderr);
    assert_eq!(done.status, 130, "{way:?}: {}", done.stderr);
}

#[test]
fn what_an_ordinary_user_cant_end_is_said_to_be_left_also_when_the_run_is_stopped() {
    if !is_root() {
        return;
    }
    thread::scope(|scope| {
        for way in Way::ALL {
            scope.spawn(move || check_survivor_of_a_stop(way));
        }
    });
}

/// Concurrent runs whose stop hooks kill their guards and fork endlessly: each alone keeps a processor busy.
const OVERLOADED: usize = 24;

#[test]
fn runs_end_in_time_whose_stop_hooks_fork_without_end_on_an_overloaded_machine() {
    let user = if is_root() { User::Nobody } else { User::Mine };
    let all = hostile();
    let (what, script) = all.iter().find(|(what, _)| *what == "kills its guard and forks on and on").unwrap();
    thread::scope(|scope| {
        for _ in 0..OVERLOADED {
            scope.spawn(|| check_one(what, script, user, Way::StopHook));
        }
    });
}

#[test]
fn what_an_ordinary_user_cant_end_is_said_to_be_left_whatever_started_it() {
    if !is_root() {
        return;
    }
    thread::scope(|scope| {
        for way in Way::ALL {
            scope.spawn(move || check_survivor(way));
        }
    });
}
