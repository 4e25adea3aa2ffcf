//! Programs whose arguments are commands.

use super::scan::Word;

/// How a program takes the command that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrap {
    /// Its arguments are the command, behind options and operands.
    Command {
        /// Letters of options that take a value.
        valued: &'static str,
        /// Arguments between the options and the command.
        operands: usize,
        /// Whether it adds arguments that aren't written.
        adds: bool,
    },
    /// The command stands behind the options that `find` has for that.
    Find,
    /// All its arguments together are a script.
    Eval,
    /// A shell.
    Shell,
    /// Its first argument is a script.
    Trap,
    /// Its arguments give scripts names.
    Alias,
    /// What follows `-c` is a script.
    Su,
    /// Like a command, but for `-S`.
    Env,
    /// What follows the options and `operands` arguments is a script, all together.
    Script { valued: &'static str, operands: usize },
}

const fn command(valued: &'static str, operands: usize) -> Wrap {
    Wrap::Command { valued, operands, adds: false }
}

/// How `program`, without its folder and in lower case, runs others.
pub(super) fn wrap_of(program: &str) -> Option<Wrap> {
    Some(match program {
        "sudo" => command("CDghpRrTtUu", 0),
        "doas" => command("uCa", 0),
        "nohup" | "builtin" | "setsid" | "busybox" | "toybox" | "fakeroot" | "unbuffer" | "ltrace"
        | "pkexec" | "caffeinate" | "torsocks" | "chronic" | "setarch" | "systemd-run" | "prlimit"
        | "command" => command("", 0),
        "nice" => command("n", 0),
        "ionice" => command("cnpPu", 0),
        "timeout" | "gtimeout" => command("ks", 1),
        "chroot" | "chrt" | "taskset" => command("", 1),
        "exec" => command("a", 0),
        "stdbuf" => command("ioe", 0),
        "time" => command("fo", 0),
        "strace" => command("aeIobOpPsSuUX", 0),
        "unshare" => command("RwSG", 0),
        "nsenter" => command("tSG", 0),
        "xargs" => Wrap::Command { valued: "adEILnPs", operands: 0, adds: true },
        "parallel" => Wrap::Command { valued: "aIjLnNS", operands: 0, adds: true },
        "find" | "gfind" | "fd" | "fdfind" => Wrap::Find,
        "eval" => Wrap::Eval,
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "mksh" | "ash" | "fish" | "rbash" => Wrap::Shell,
        "trap" => Wrap::Trap,
        "alias" => Wrap::Alias,
        "su" | "runuser" | "script" => Wrap::Su,
        "env" => Wrap::Env,
        "watch" => Wrap::Script { valued: "nq", operands: 0 },
        "flock" => Wrap::Script { valued: "wE", operands: 1 },
        "ssh" => Wrap::Script { valued: "BbcDEeFIiJLlmOoPpQRSWw", operands: 1 },
        _ => return None,
    })
}

/// Places in the arguments of one program at which a command may begin.
pub(super) const STARTS_MAX: usize = 8;

/// Where in `arguments` a command may begin: more than one place where an option is long and may take the word
/// behind it. Of more than [`STARTS_MAX`] places one more is given.
pub(super) fn starts(arguments: &[Word], valued: &str, operands: usize) -> Vec<usize> {
    let (mut starts, mut ahead) = (Vec::new(), vec![0]);
    let mut seen = vec![false; arguments.len() + 3];
    while let Some(mut at) = ahead.pop().filter(|_| starts.len() <= STARTS_MAX) {
        while let Some(word) = arguments.get(at) {
            match seen.get_mut(at) {
                Some(seen) if !*seen => *seen = true,
                _ => break,
            }
            let value = word.value.as_str();
            if value == "--" {
                at += 1;
                break;
            }
            if let Some(long) = value.strip_prefix("--") {
                if !long.contains('=') {
                    ahead.push(at + 2);
                }
                at += 1;
            } else if let Some(letters) = value.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                let takes_next =
                    letters.find(|c| valued.contains(c)).is_some_and(|found| found + 1 == letters.len());
                at += if takes_next { 2 } else { 1 };
            } else if is_setting(value) {
                at += 1;
            } else {
                break;
            }
        }
        let start = at + operands;
        if start < arguments.len() && !starts.contains(&start) {
            starts.push(start);
        }
    }
    starts
}

/// Whether it is a `NAME=value` as `env` and `sudo` take them.
fn is_setting(value: &str) -> bool {
    value.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
    })
}
