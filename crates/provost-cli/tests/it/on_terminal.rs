//! A command on a terminal of its own, with typed input.

use std::process::{Command, Stdio};

use crate::support::{Done, Scene, done};

/// Runs a command on a new pseudo-terminal of 100 columns and 30 lines. Each step waits until a text is shown after
/// the last one's, then types, or runs a shell command where the text begins with `!`. What was shown goes to
/// standard output.
pub(crate) const TYPIST: &str = r#"
import fcntl, os, pty, select, signal, struct, subprocess, sys, termios
steps, command = sys.argv[2:2 + 2 * int(sys.argv[1])], sys.argv[2 + 2 * int(sys.argv[1]):]
shown, at = b"", 0
def late(*_):
    sys.stdout.write(shown.decode(errors="replace"))
    sys.stdout.flush()
    os._exit(99)
signal.signal(signal.SIGALRM, late)
signal.alarm(20)
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    os.execvp(command[0], command)
def read():
    global shown
    try:
        more = os.read(terminal, 65536)
    except OSError:
        more = b""
    shown += more
    return more
for wait, send in zip(steps[::2], steps[1::2]):
    while shown.find(wait.encode(), at) < 0:
        if not read():
            sys.stdout.write(shown.decode(errors="replace"))
            sys.exit("never shown: " + wait)
    at = shown.find(wait.encode(), at) + len(wait.encode())
    if send.startswith("!"):
        subprocess.run(send[1:], shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    else:
        os.write(terminal, send.encode())
while read():
    pass
_, status = os.waitpid(pid, 0)
sys.stdout.write(shown.decode(errors="replace"))
sys.exit(os.waitstatus_to_exitcode(status))
"#;

/// The result of `provost` on a terminal; `stdout` is its output, without escape sequences.
pub(crate) fn on_terminal(scene: &Scene, args: &[&str], steps: &[(&str, &str)]) -> Done {
    let program = scene.command(args);
    let words = std::iter::once(program.get_program()).chain(program.get_args());
    let words = words.map(|word| word.to_str().unwrap()).collect::<Vec<_>>();
    program_on_terminal(scene, &words, steps)
}

/// The same for any program; it finds `provost` by the variable `PROVOST`.
pub(crate) fn program_on_terminal(scene: &Scene, words: &[&str], steps: &[(&str, &str)]) -> Done {
    let done = raw_on_terminal(scene, words, steps);
    Done { stdout: console::strip_ansi_codes(&done.stdout).into_owned(), ..done }
}

/// The same with escape sequences.
pub(crate) fn raw_on_terminal(scene: &Scene, words: &[&str], steps: &[(&str, &str)]) -> Done {
    let like = scene.command(&[]);
    let mut typist = Command::new("python3");
    typist.args(["-c", TYPIST, &steps.len().to_string()]);
    typist.args(steps.iter().flat_map(|(wait, send)| [wait, send])).args(words);
    typist.current_dir(like.get_current_dir().unwrap()).stdin(Stdio::null()).env_clear();
    typist.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    typist.env("TERM", "xterm").env("PROVOST", like.get_program());
    let mut done = done(&typist.output().unwrap());
    done.stdout = done.stdout.replace('\r', "");
    done
}
