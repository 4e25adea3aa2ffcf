//! A logind on a bus of the test's own: it records requests, and sees when a lock is released.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use zbus::blocking::Connection;
use zbus::zvariant::OwnedFd;

/// How long an operation may take before a test fails.
const DEADLINE: Duration = Duration::from_secs(30);

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Grants,
    RefusesSleep,
    NeverAnswers,
}

/// A requested lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockRequest {
    /// Who, what for, what and how.
    pub(crate) words: String,
    pub(crate) is_held: bool,
}

#[derive(Default)]
struct Book {
    asked: Mutex<Vec<LockRequest>>,
    changed: Condvar,
}

pub(crate) struct Logind {
    address: String,
    book: Arc<Book>,
    _connection: Connection,
    _bus: Bus,
}

impl Logind {
    pub(crate) fn start(manner: Manner) -> Self {
        let (bus, address) = Bus::start();
        let book = Arc::<Book>::default();
        let manager = Manager { manner, book: Arc::clone(&book) };
        let connection = zbus::blocking::connection::Builder::address(address.as_str())
            .and_then(|builder| builder.serve_at("/org/freedesktop/login1", manager))
            .and_then(|builder| builder.name("org.freedesktop.login1"))
            .and_then(zbus::blocking::connection::Builder::build)
            .expect("a place on the bus");
        Self { address, book, _connection: connection, _bus: bus }
    }

    /// The address of its bus.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// All requests so far, sorted.
    pub(crate) fn asked(&self) -> Vec<String> {
        let mut asked =
            self.book.asked.lock().unwrap().iter().map(|asked| asked.words.clone()).collect::<Vec<_>>();
        asked.sort();
        asked
    }

    /// The locks that are held now.
    pub(crate) fn held(&self) -> Vec<String> {
        held(&self.book.asked.lock().unwrap())
    }

    /// Waits until exactly this many locks are held.
    #[track_caller]
    pub(crate) fn wait_until_held(&self, count: usize) {
        self.wait_until(&format!("{count} locks are held"), |asked| held(asked).len() == count);
    }

    /// Waits until this many locks were requested.
    #[track_caller]
    pub(crate) fn wait_until_asked(&self, count: usize) {
        self.wait_until(&format!("{count} locks were asked for"), |asked| asked.len() == count);
    }

    #[track_caller]
    fn wait_until(&self, what: &str, is_so: impl Fn(&[LockRequest]) -> bool) {
        let asked = self.book.asked.lock().unwrap();
        let (asked, wait) =
            self.book.changed.wait_timeout_while(asked, DEADLINE, |asked| !is_so(asked)).unwrap();
        assert!(!wait.timed_out(), "waited {DEADLINE:?} until {what}: {asked:?}");
    }
}

fn held(asked: &[LockRequest]) -> Vec<String> {
    let mut held =
        asked.iter().filter(|asked| asked.is_held).map(|asked| asked.words.clone()).collect::<Vec<_>>();
    held.sort();
    held
}

struct Manager {
    manner: Manner,
    book: Arc<Book>,
}

#[zbus::interface(name = "org.freedesktop.login1.Manager")]
impl Manager {
    /// The method that takes a lock. The caller holds it for as long as its end of the returned pipe is open.
    async fn inhibit(&self, what: &str, who: &str, why: &str, mode: &str) -> zbus::fdo::Result<OwnedFd> {
        let is_granted =
            self.manner == Manner::Grants || (self.manner == Manner::RefusesSleep && what == "idle");
        let words = format!("{who}, {why}: {what}, {mode}");
        let place = {
            let mut asked = self.book.asked.lock().unwrap();
            asked.push(LockRequest { words, is_held: is_granted });
            asked.len() - 1
        };
        self.book.changed.notify_all();
        if self.manner == Manner::NeverAnswers {
            std::future::pending::<()>().await;
        }
        if !is_granted {
            return Err(zbus::fdo::Error::AccessDenied(format!("{what} may not be held off")));
        }
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let book = Arc::clone(&self.book);
        thread::spawn(move || {
            assert_eq!(reader.read(&mut [0]).expect("the pipe"), 0, "there is no writer");
            book.asked.lock().unwrap()[place].is_held = false;
            book.changed.notify_all();
        });
        Ok(std::os::fd::OwnedFd::from(writer).into())
    }
}

/// A message bus that allows every client everything.
struct Bus {
    daemon: Child,
    _folder: TempDir,
}

impl Bus {
    fn start() -> (Self, String) {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("bus.conf");
        let text = format!(
            "<busconfig><type>system</type><listen>unix:path={}</listen><auth>EXTERNAL</auth>
             <policy context='default'>
               <allow send_destination='*'/><allow receive_sender='*'/><allow own='*'/><allow user='*'/>
             </policy></busconfig>",
            folder.path().join("bus").display()
        );
        fs::write(&config, text).unwrap();
        let mut daemon = Command::new("dbus-daemon")
            .args(["--nofork", "--nopidfile", "--print-address=1"])
            .arg(format!("--config-file={}", config.display()))
            .stdout(Stdio::piped())
            .spawn()
            .expect("dbus-daemon; Debian has it in the package of that name");
        let mut address = String::new();
        BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut address).unwrap();
        (Self { daemon, _folder: folder }, address.trim().to_owned())
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        drop(self.daemon.kill());
        drop(self.daemon.wait());
    }
}
