//! Folders for tests of the sandbox: outside of the temporary folder, which a box has of its own.

use std::fs;
use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::on_terminal::TYPIST;
use crate::support::until;

/// An ordinary user.
pub(crate) const NOBODY: &str = "65534";

/// What a script for Python begins with.
const PYTHON: &str = "import sys, os, ctypes\nL = ctypes.CDLL(None, use_errno=True)\ndef call(number, *args):\n    \
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]\n    r = L.syscall(ctypes.c_long(number), *args)\n    \
    sys.exit(1 if r < 0 and ctypes.get_errno() in (1, 13, 38) else 0)\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Mine,
    Nobody,
}

impl User {
    /// Those that tests can be.
    pub(crate) fn all() -> Vec<Self> {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t0"));
        if is_root { vec![Self::Mine, Self::Nobody] } else { vec![Self::Mine] }
    }

    pub(crate) fn is_root(self) -> bool {
        self == Self::Mine && Self::all().len() == 2
    }
}

/// A user's folders: a home with secrets, a repository as the workspace, and what is outside.
pub(crate) struct Stage {
    folder: TempDir,
    user: User,
    victim: Child,
    /// Held open while the stage is.
    _peers: Peers,
    variables: Vec<(&'static str, String)>,
    /// A segment of shared memory.
    shared: String,
}

struct Peers {
    _v4: TcpListener,
    _v6: Option<TcpListener>,
    _socket: UnixListener,
    _datagrams: UnixDatagram,
    _abstract: UnixListener,
}

impl Stage {
    pub(crate) fn new(user: User, name: &str) -> Self {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let is_private = ["/tmp", "/var/tmp"].iter().any(|private| place.starts_with(private));
        assert!(!is_private, "in a sandbox {} is another folder: build outside of /tmp", place.display());
        let folder = tempfile::Builder::new().prefix("box-").tempdir_in(place).unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
        furnish(&root);
        let (peers, mut variables) = peers(&root, name);
        let at = |name: &str| root.join(name).display().to_string();
        variables.extend([
            ("OUT", at("out")),
            ("HOME", at("home")),
            ("WORK", at("work")),
            ("WORK2", at("work2")),
            ("STATE", at("state")),
            ("PROVOST_STATE_DIR", at("state")),
            ("PROBE", name.to_owned()),
            ("PY", at("python")),
        ]);
        give(user, &root);
        let mut sleep = Command::new("sleep");
        let victim = as_user(user, sleep.arg("300").env("VICTIM_TOKEN", "SECRET")).spawn().unwrap();
        let name = format!("/proc/{}/comm", victim.id());
        until("the other process is what it will be", || {
            fs::read_to_string(&name).is_ok_and(|name| name.trim() == "sleep").then_some(())
        });
        variables.push(("VICTIM", victim.id().to_string()));
        let shared = shared_memory(user);
        variables.push(("SHM", shared.clone()));
        Self { folder, user, victim, _peers: peers, variables, shared }
    }

    /// Writes a file, and the folders that it is in.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Gives all that a test has written to the stage's user.
    pub(crate) fn give(&self) {
        give(self.user, self.folder.path());
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// `program` with these arguments, as the stage's user, in the workspace.
    pub(crate) fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let mut command = as_user(self.user, &mut command);
        command.current_dir(self.path("work")).stdin(Stdio::null());
        command
    }

    pub(crate) fn output(&self, program: &str, args: &[&str]) -> Output {
        self.command(program, args).output().unwrap()
    }

    /// `provost` with these arguments.
    pub(crate) fn provost(&self, args: &[&str]) -> Output {
        self.output(env!("CARGO_BIN_EXE_provost"), args)
    }

    /// The same on a terminal, with what is typed after each of these texts is shown.
    pub(crate) fn on_terminal(&self, args: &[&str], steps: &[(&str, &str)]) -> Output {
        let mut words = vec!["-c".to_owned(), TYPIST.to_owned(), steps.len().to_string()];
        words.extend(steps.iter().flat_map(|(wait, send)| [(*wait).to_owned(), (*send).to_owned()]));
        words.push(env!("CARGO_BIN_EXE_provost").to_owned());
        words.extend(args.iter().map(|arg| (*arg).to_owned()));
        let words = words.iter().map(String::as_str).collect::<Vec<_>>();
        self.command("python3", &words).env("TERM", "xterm").output().unwrap()
    }

    /// A shell script in the sandbox.
    pub(crate) fn inside(&self, script: &str) -> Output {
        self.provost(&["sandbox", "run", "--", "sh", "-c", script])
    }

    /// The same without one.
    pub(crate) fn outside(&self, script: &str) -> Output {
        self.output("sh", &["-c", script])
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let _ = Command::new("ipcrm").args(["-m", &self.shared]).status();
    }
}

/// The id of a new segment of shared memory.
fn shared_memory(user: User) -> String {
    let made = as_user(user, Command::new("ipcmk").args(["-M", "64"])).output().unwrap();
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    said.split_whitespace().next_back().unwrap_or_else(|| panic!("{made:?}")).to_owned()
}

fn give(user: User, root: &Path) {
    if user == User::Nobody {
        let owned = Command::new("chown").args(["-R", &format!("{NOBODY}:{NOBODY}")]).arg(root).status();
        assert!(owned.unwrap().success());
    }
}

/// Writes what is there before a probe.
fn furnish(root: &Path) {
    let write = |name: &str, text: &str| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for secret in [".ssh/id_rsa", ".aws/credentials", ".npmrc", ".config/gh/hosts.yml"] {
        write(&format!("home/{secret}"), "SECRET");
    }
    // The tests' own folder may be in a repository.
    write(".git", "gitdir: /nowhere\n");
    write("home/.bashrc", "");
    write("home/bin/keep", "");
    write("state/secret", "SECRET");
    write("out/file", "old\n");
    write("out/.env", "SECRET");
    write("out/.env.local", "SECRET");
    write("out/denied", "SECRET");
    write("work2/keep", "");
    write("work/.vscode/settings.json", "{}");
    write("work/.mcp.json", "{}");
    write(
        "work/provost.toml",
        &format!(
            "[sandbox]\nmode = \"workspace\"\ndeny_read = [\"{}\"]\n",
            root.join("out/denied").display()
        ),
    );
    write("work/.venv/pyvenv.cfg", "");
    write("work/.venv/bin/python", "#!/bin/sh\n");
    write("python", &format!("#!/bin/sh\nexec /usr/bin/python3 -c \"{}$1\"\n", PYTHON.replace('"', "\\\"")));
    fs::set_permissions(root.join("python"), fs::Permissions::from_mode(0o755)).unwrap();
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]).args(args);
        let done = git.current_dir(root.join("work")).env("HOME", root).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "one"]);
}

/// What a probe could reach on this machine, with the variables that name it.
fn peers(root: &Path, name: &str) -> (Peers, Vec<(&'static str, String)>) {
    let v4 = TcpListener::bind("0.0.0.0:0").unwrap();
    let v6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).ok();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let socket = UnixListener::bind(root.join("out/s")).unwrap();
    let datagrams = UnixDatagram::bind(root.join("out/d")).unwrap();
    let abstract_name = SocketAddr::from_abstract_name(format!("provost-{name}")).unwrap();
    let abstract_socket = UnixListener::bind_addr(&abstract_name).unwrap();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port().to_string();
    let port6 = v6.as_ref().map(port).unwrap_or_default();
    let variables =
        vec![("PORT", port(&v4)), ("PORT6", port6), ("UDP", udp.local_addr().unwrap().port().to_string())];
    answer(v4.try_clone().unwrap());
    std::thread::spawn(move || {
        let mut byte = [0; 16];
        while let Ok((_, from)) = udp.recv_from(&mut byte) {
            let _ = udp.send_to(b"y", from);
        }
    });
    assert!(v4.as_raw_fd() > 2);
    (
        Peers { _v4: v4, _v6: v6, _socket: socket, _datagrams: datagrams, _abstract: abstract_socket },
        variables,
    )
}

/// Answers each connection as a server of HTTP would, until the test ends.
fn answer(listener: TcpListener) {
    use std::io::{Read as _, Write as _};
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut some = [0; 1024];
            let _ = stream.set_read_timeout(Some(std::time::Duration::from_millis(300)));
            let _ = stream.read(&mut some);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        }
    });
}

/// `command`, started by `user`.
fn as_user(user: User, command: &mut Command) -> Command {
    let mut other = match user {
        User::Mine => Command::new(command.get_program()),
        User::Nobody => {
            let mut other = Command::new("setpriv");
            other.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups", "--"]);
            other.arg(command.get_program());
            other
        }
    };
    other.args(command.get_args());
    other.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    other.env("PATH", std::env::var_os("PATH").unwrap());
    other
}
