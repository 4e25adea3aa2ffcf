//! Wakes the writers of a store, in whichever process they are.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Called when another writer wakes this one; returns whether it still wants to be woken.
pub type OnWake = Box<dyn Fn() -> bool + Send>;

/// Wakes all writers of a store that listen. A wake-up may be lost: writers also poll.
pub trait WakeUps: Send + Sync {
    /// From here on `on_wake` is called at each wake-up, from any thread, until the returned value is dropped. `None`
    /// if that isn't possible here.
    fn listen(&self, on_wake: OnWake) -> Option<Listening>;

    /// Wakes all that listen, the caller too. Never blocks.
    fn wake(&self);
}

/// A writer that listens, until this is dropped.
pub struct Listening {
    _guard: Box<dyn Send>,
}

impl Listening {
    /// Listens until `guard` is dropped.
    pub fn new(guard: impl Send + 'static) -> Self {
        Self { _guard: Box::new(guard) }
    }
}

/// No wake-ups: all writers poll.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoWakeUps;

impl WakeUps for NoWakeUps {
    fn listen(&self, _on_wake: OnWake) -> Option<Listening> {
        None
    }

    fn wake(&self) {}
}

/// Wake-ups within one process, shared only with clones of this value.
#[derive(Clone, Default)]
pub struct LocalWakeUps {
    listeners: Arc<Mutex<Vec<OnWake>>>,
}

impl WakeUps for LocalWakeUps {
    fn listen(&self, on_wake: OnWake) -> Option<Listening> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(on_wake);
        // A listener that has ended is removed at the next wake-up.
        Some(Listening::new(()))
    }

    fn wake(&self) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).retain(|on_wake| on_wake());
    }
}

/// Wake-ups between processes, by sockets in `folder`, which is created on first use. Where the platform or the file
/// system has none, its users poll.
#[must_use]
pub fn wake_ups_in(folder: PathBuf) -> Arc<dyn WakeUps> {
    #[cfg(unix)]
    return Arc::new(sockets::SocketWakeUps::new(folder));
    #[cfg(not(unix))]
    {
        drop(folder);
        Arc::new(NoWakeUps)
    }
}

#[cfg(unix)]
mod sockets {
    use std::fs;
    use std::io;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixDatagram;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::{Listening, OnWake, WakeUps};
    use crate::folder;

    const SUFFIX: &str = "sock";
    /// How often a listener without wake-ups checks whether it is still wanted: if its socket's file was removed by
    /// hand, the end isn't announced.
    const CHECK_EVERY: Duration = Duration::from_secs(60);

    /// One datagram socket for each listener in a folder; a datagram wakes and says nothing.
    #[derive(Debug, Clone)]
    pub(crate) struct SocketWakeUps {
        folder: PathBuf,
    }

    impl SocketWakeUps {
        /// Sockets in `folder`, which is created on first use.
        pub(crate) fn new(folder: PathBuf) -> Self {
            Self { folder }
        }

        fn try_listen(&self, on_wake: OnWake) -> io::Result<Bound> {
            static NUMBER: AtomicU64 = AtomicU64::new(0);
            folder::create(&self.folder)?;
            self.remove_stale();
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = self.folder.join(format!("{}-{number}.{SUFFIX}", std::process::id()));
            // An earlier process with this id may have left it.
            let _ = fs::remove_file(&path);
            let socket = UnixDatagram::bind(&path)?;
            let bound = Bound { path };
            fs::set_permissions(&bound.path, fs::Permissions::from_mode(0o600))?;
            socket.set_read_timeout(Some(CHECK_EVERY))?;
            std::thread::Builder::new()
                .name("provost-wake".to_owned())
                .spawn(move || listen(&socket, &on_wake))?;
            Ok(bound)
        }

        fn sockets(&self) -> impl Iterator<Item = PathBuf> {
            let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
            files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|end| end == SUFFIX))
        }

        /// Removes the sockets of processes that were killed.
        fn remove_stale(&self) {
            for path in self.sockets() {
                let connected = UnixDatagram::unbound().and_then(|socket| socket.connect(&path));
                if connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
                    let _ = fs::remove_file(path);
                }
            }
        }
    }

    impl WakeUps for SocketWakeUps {
        fn listen(&self, on_wake: OnWake) -> Option<Listening> {
            // A path can be too long for a socket, and some file systems have none.
            self.try_listen(on_wake)
                .inspect_err(|error| tracing::debug!(%error, folder = ?self.folder, "no socket: polling"))
                .ok()
                .map(Listening::new)
        }

        fn wake(&self) {
            let Ok(socket) = UnixDatagram::unbound() else { return };
            if socket.set_nonblocking(true).is_err() {
                return;
            }
            for path in self.sockets() {
                wake_one(&socket, &path);
            }
        }
    }

    /// A full queue is fine: it wakes too. So is a socket whose process is gone.
    fn wake_one(socket: &UnixDatagram, path: &Path) {
        let _ = socket.send_to(&[0], path);
    }

    fn listen(socket: &UnixDatagram, on_wake: &OnWake) {
        loop {
            match socket.recv(&mut [0]) {
                Ok(_) => {}
                Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::debug!(%error, "a socket fails: polling");
                    return;
                }
            }
            if !on_wake() {
                return;
            }
        }
    }

    fn is_timeout(error: &io::Error) -> bool {
        matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
    }

    /// A socket's file.
    struct Bound {
        path: PathBuf,
    }

    impl Drop for Bound {
        fn drop(&mut self) {
            // The listener notices that it isn't wanted any more.
            if let Ok(socket) = UnixDatagram::unbound()
                && socket.set_nonblocking(true).is_ok()
            {
                wake_one(&socket, &self.path);
            }
            let _ = fs::remove_file(&self.path);
        }
    }

    #[cfg(test)]
    mod tests {
        use std::sync::mpsc;

        use super::*;

        const DEADLINE: Duration = Duration::from_secs(10);

        #[test]
        fn a_socket_of_a_killed_process_is_removed_and_the_others_are_woken() {
            let folder = tempfile::tempdir().unwrap();
            let wake_ups = SocketWakeUps::new(folder.path().join("wake"));
            folder::create(&wake_ups.folder).unwrap();
            let stale = wake_ups.folder.join(format!("1-0.{SUFFIX}"));
            drop(UnixDatagram::bind(&stale).unwrap());
            let (sender, woken) = mpsc::channel();
            let listen = |name: &'static str| {
                let sender = sender.clone();
                wake_ups.listen(Box::new(move || sender.send(name).is_ok())).unwrap()
            };
            let one = listen("one");
            let two = listen("two");
            assert!(!stale.exists());
            wake_ups.wake();
            let mut names = [(); 2].map(|()| woken.recv_timeout(DEADLINE).unwrap());
            names.sort_unstable();
            assert_eq!(names, ["one", "two"]);
            for socket in wake_ups.sockets() {
                assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
            }
            drop((one, two));
            assert_eq!(wake_ups.sockets().count(), 0, "a file was left");
        }

        #[test]
        fn where_the_path_is_too_long_there_is_no_listener_and_nothing_is_left() {
            let folder = tempfile::tempdir().unwrap();
            let wake_ups = SocketWakeUps::new(folder.path().join("long".repeat(40)));
            assert!(wake_ups.listen(Box::new(|| true)).is_none());
            wake_ups.wake();
            assert_eq!(fs::read_dir(&wake_ups.folder).unwrap().count(), 0);
        }
    }
}
