//! The program's side of attaching: the attached terminals, the window size that fits them all, and the listener.

mod guest;
mod replies;

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use provost_event::{Exit, SessionId, WindowSize};
use provost_process::PtySupervisor;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::socket_path::SocketPath;
use super::wire::{Hello, Role};
use super::{AttachError, Attendance};
use crate::driver::{Notes, RecorderHandle, TerminalStatus};

/// Terminals attached to one program at a time.
const GUESTS_MAX: usize = 16;
/// How long attached terminals may take to receive the end of the program.
const FAREWELL_MAX: Duration = Duration::from_secs(1);
const OWNER_ONLY: u32 = 0o600;

/// Accepts terminals that attach to one program. Dropping it closes the socket and disconnects them.
pub(crate) struct Hub {
    socket_path: SocketPath,
    booth: Arc<Booth>,
    tasks: JoinSet<()>,
}

/// State that all attached terminals share.
struct Booth {
    pty: Arc<PtySupervisor>,
    program: String,
    notes: Notes,
    standing: watch::Receiver<TerminalStatus>,
    /// The window size while no terminal is attached.
    size: WindowSize,
    roster: Mutex<Roster>,
    wanted_size: watch::Sender<WindowSize>,
    /// The window size that the program has.
    present_size: watch::Sender<WindowSize>,
    attendance: watch::Sender<Attendance>,
    gone: watch::Sender<Option<Option<Exit>>>,
}

#[derive(Default)]
struct Roster {
    last: u64,
    guests: Vec<(u64, Role, Option<WindowSize>)>,
}

impl Hub {
    /// Listens for terminals that attach to `program`. `size` is the window size while none is attached.
    pub(crate) fn open(
        folder: &Path,
        session: SessionId,
        (program, size): (&str, WindowSize),
        pty: &Arc<PtySupervisor>,
        desk: &RecorderHandle,
    ) -> Result<Self, AttachError> {
        let socket_path = SocketPath::of(folder, session);
        let failed = |source| AttachError::Failed { attempt: "make the terminal's socket", source };
        let owner = socket_path.prepare().map_err(failed)?;
        let listener = bound(&socket_path).map_err(failed)?;
        let booth = Arc::new(Booth {
            pty: pty.clone(),
            program: program.to_owned(),
            notes: desk.notes(),
            standing: desk.standing(),
            size,
            roster: Mutex::default(),
            wanted_size: watch::Sender::new(size),
            present_size: watch::Sender::new(size),
            attendance: watch::Sender::default(),
            gone: watch::Sender::new(None),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(stand_at_door(listener, owner, booth.clone()));
        Ok(Self { socket_path, booth, tasks })
    }

    pub(crate) fn attendance(&self) -> watch::Receiver<Attendance> {
        self.booth.attendance.subscribe()
    }

    /// Sends the end of the program to all attached terminals, and closes. A person's terminal that hasn't come yet is
    /// waited for until `awaited`: it shows what the program has shown.
    pub(crate) async fn close(mut self, exit: Option<Exit>, awaited: Option<Instant>) {
        if let Some(awaited) = awaited {
            let mut attendance = self.attendance();
            let _ = timeout_at(awaited, attendance.wait_for(|attendance| attendance.has_been)).await;
        }
        self.booth.gone.send_replace(Some(exit));
        // A client that doesn't read is disconnected.
        let _ = timeout(FAREWELL_MAX, self.tasks.join_next()).await;
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        if let Err(error) = self.socket_path.clear() {
            tracing::debug!(%error, "a terminal's socket could not be removed");
        }
    }
}

fn bound(socket_path: &SocketPath) -> io::Result<UnixListener> {
    let address = socket_path.address()?;
    let listener = UnixListener::bind(&address.path)?;
    fs::set_permissions(&address.path, Permissions::from_mode(OWNER_ONLY))?;
    Ok(listener)
}

/// Accepts terminals and keeps the window at the size that fits them all. Returns when the program and all
/// attached terminals are gone.
async fn stand_at_door(listener: UnixListener, owner: u32, booth: Arc<Booth>) {
    let (mut wanted, mut gone) = (booth.wanted_size.subscribe(), booth.gone.subscribe());
    let mut guests = JoinSet::new();
    loop {
        tokio::select! {
            () = async { drop(gone.wait_for(Option::is_some).await) } => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if is_of(&stream, owner) => {
                    guests.spawn(guest::serve(stream, booth.clone()));
                }
                Ok(_) => tracing::warn!("another user tried to attach to a terminal"),
                Err(error) => {
                    tracing::warn!(%error, "terminals can't be attached to any more");
                    break;
                }
            },
            Ok(()) = wanted.changed() => {
                let size = *wanted.borrow_and_update();
                // A program that has ended has no window.
                let _ = booth.pty.resize(size).await;
                booth.present_size.send_replace(size);
            }
            Some(_) = guests.join_next() => {}
        }
    }
    drop(listener);
    while guests.join_next().await.is_some() {}
}

fn is_of(stream: &UnixStream, owner: u32) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == owner)
}

impl Booth {
    /// Registers a terminal; `None` if the limit is reached. Dropping the result unregisters it.
    fn enter(self: &Arc<Self>, hello: &Hello) -> Option<GuestSlot> {
        let id = self.with_roster(|roster| {
            if roster.guests.len() >= GUESTS_MAX {
                return None;
            }
            roster.last += 1;
            roster.guests.push((roster.last, hello.role, hello.size));
            Some(roster.last)
        })?;
        Some(GuestSlot { booth: self.clone(), id })
    }

    /// Changes the list of attached terminals, and updates the window size and the attendance.
    fn with_roster<T>(&self, change: impl FnOnce(&mut Roster) -> T) -> T {
        let mut roster = self.roster.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut roster);
        let controls = roster.guests.iter().filter(|(_, role, _)| *role == Role::Control).count();
        let sizes = roster.guests.iter().filter_map(|(_, _, size)| *size);
        let size = sizes.reduce(WindowSize::smallest).unwrap_or(self.size);
        self.wanted_size.send_if_modified(|wanted| std::mem::replace(wanted, size) != size);
        self.attendance.send_if_modified(|attendance| {
            let before = std::mem::replace(&mut attendance.controls, controls);
            attendance.has_been |= controls > 0;
            if before > 0 && controls == 0 {
                attendance.left = Some(Instant::now());
            }
            before != controls
        });
        result
    }

    fn key_was_typed(&self) {
        self.attendance.send_modify(|attendance| attendance.last_key = Some(Instant::now()));
    }
}

/// The registration of an attached terminal.
struct GuestSlot {
    booth: Arc<Booth>,
    id: u64,
}

impl GuestSlot {
    /// Whether the program's window has the size of this one.
    fn fits(&self, window: WindowSize) -> bool {
        self.booth.with_roster(|roster| {
            roster.guests.iter().any(|(id, _, size)| *id == self.id && *size == Some(window))
        })
    }

    fn resize(&self, size: WindowSize) {
        self.booth.with_roster(|roster| {
            if let Some((.., own)) = roster.guests.iter_mut().find(|(id, ..)| *id == self.id) {
                *own = Some(size);
            }
        });
    }
}

impl Drop for GuestSlot {
    fn drop(&mut self) {
        self.booth.with_roster(|roster| roster.guests.retain(|(id, ..)| *id != self.id));
    }
}
