//! One attached terminal.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use provost_event::{Exit, TerminalEvent};
use provost_process::{Painted, WatcherKind};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::super::wire::{
    self, AttachUpdate, Display, FrameReader, FromClient, Hello, Role, VERSION, Welcome,
};
use super::replies::{ReplySplitter, SplitInput};
use super::{Booth, GUESTS_MAX, GuestSlot};

/// How long a client may take to send its hello.
const HELLO_MAX: Duration = Duration::from_secs(5);
/// Inputs queued for a program that doesn't read; further inputs are dropped, as a terminal does.
const INPUTS_MAX: usize = 64;
/// How long the last input may take to be written.
const LAST_KEYS_MAX: Duration = Duration::from_secs(1);
/// Maximum characters of a client's name.
const NAME_CHARS_MAX: usize = 80;

/// Serves the client of `stream` until it detaches or the program ends.
pub(super) async fn serve(stream: UnixStream, booth: Arc<Booth>) {
    let (from, mut to) = stream.into_split();
    let mut frames = FrameReader::of_client(from);
    let Ok(Ok(Some(FromClient::Hello(hello)))) = timeout(HELLO_MAX, frames.next()).await else { return };
    let refusal = if hello.version == VERSION {
        None
    } else {
        Some(format!("it speaks version {}, and the running Provost version {VERSION}", hello.version))
    };
    let guest_slot = if refusal.is_none() { booth.enter(&hello) } else { None };
    let Some(guest_slot) = guest_slot else {
        let why = refusal.unwrap_or_else(|| format!("{GUESTS_MAX} terminals are attached already"));
        // A refused client may already be gone.
        let _ = wire::write(&mut to, &AttachUpdate::Refused(why)).await;
        return;
    };
    let by = name_of(&hello);
    if hello.role.is_noted() {
        booth.notes.note(TerminalEvent::Attached { by: by.clone() }).await;
    }
    let guest = Guest { booth: &booth, slot: &guest_slot, role: hello.role, kind: kind_of(&hello) };
    if let Err(error) = guest.attend(frames, to).await {
        tracing::debug!(%error, "an attached terminal was cut off");
    }
    drop(guest_slot);
    if hello.role.is_noted() {
        booth.notes.note(TerminalEvent::Detached { by }).await;
    }
}

fn name_of(hello: &Hello) -> String {
    let name: String = hello.name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
    match hello.role {
        Role::Control => name,
        Role::Watch | Role::Look => format!("{name} (watching)"),
    }
}

/// A terminal that may not type can't answer either.
const fn kind_of(hello: &Hello) -> WatcherKind {
    match (hello.display, hello.role) {
        (Display::Terminal, Role::Control) => WatcherKind::Terminal,
        (Display::Terminal, Role::Watch | Role::Look) | (Display::Copy, _) => WatcherKind::Copy,
    }
}

/// An attached terminal.
struct Guest<'a> {
    booth: &'a Booth,
    slot: &'a GuestSlot,
    role: Role,
    kind: WatcherKind,
}

impl Guest<'_> {
    async fn attend(&self, frames: FrameReader<OwnedReadHalf>, to: OwnedWriteHalf) -> io::Result<()> {
        let (keys, typed) = mpsc::channel(INPUTS_MAX);
        let repaint = Notify::new();
        let ear = Ear { guest_slot: self.slot, role: self.role, keys, repaint: &repaint };
        let mut typing = pin!(self.hand_on(typed));
        tokio::select! {
            shown = self.show(to, &repaint) => shown,
            heard = ear.listen(frames) => {
                // Input that was typed before the client detached counts; a program that doesn't read isn't waited
                // for.
                let _ = timeout(LAST_KEYS_MAX, typing).await;
                heard
            }
            () = &mut typing => Ok(()),
        }
    }

    /// Sends what is painted, until the program ends.
    async fn show(&self, mut to: OwnedWriteHalf, repaint: &Notify) -> io::Result<()> {
        let booth = self.booth;
        let mut standing = booth.standing.clone();
        let mut gone = booth.gone.subscribe();
        let mut size = booth.present_size.subscribe();
        let mut fitted = self.slot.fits(*size.borrow_and_update());
        let mut state = standing.borrow_and_update().state;
        let welcome = Welcome { program: booth.program.clone(), state };
        wire::write(&mut to, &AttachUpdate::Welcome(welcome)).await?;
        let mut watcher = booth.pty.watch(self.kind).await.ok();
        loop {
            let next = async {
                match &mut watcher {
                    Some(watcher) => watcher.next().await,
                    None => std::future::pending().await,
                }
            };
            let repaints = tokio::select! {
                biased;
                painted = next => {
                    match painted {
                        Some(painted) => wire::write(&mut to, &shown(painted)).await?,
                        None => watcher = None,
                    }
                    false
                },
                Ok(()) = standing.changed() => {
                    let now = standing.borrow_and_update().state;
                    if std::mem::replace(&mut state, now) != now {
                        wire::write(&mut to, &AttachUpdate::State(now)).await?;
                    }
                    false
                }
                // A terminal whose own new size this is has what it shows; a copy gets a snapshot unasked.
                Ok(()) = size.changed() => {
                    let fits = self.slot.fits(*size.borrow_and_update());
                    !(std::mem::replace(&mut fitted, fits) && fits) && self.kind == WatcherKind::Terminal
                }
                () = repaint.notified() => true,
                exit = is_gone(&mut gone) => return wire::write(&mut to, &AttachUpdate::Gone(exit)).await,
            };
            if let Some(watcher) = watcher.as_ref().filter(|_| repaints) {
                // A program that has ended paints nothing more.
                let _ = watcher.repaint().await;
            }
        }
    }

    /// Writes the client's input to the program, until it detaches. A program that doesn't read blocks only this
    /// task.
    async fn hand_on(&self, mut typed: mpsc::Receiver<Vec<u8>>) {
        let mut splitter = ReplySplitter::default();
        while let Some(bytes) = typed.recv().await {
            let input = match self.kind {
                WatcherKind::Terminal => splitter.split(bytes),
                WatcherKind::Copy => SplitInput::of_keys(bytes),
            };
            // A program that has ended reads no input.
            if !input.replies.is_empty() {
                let _ = self.booth.pty.reply(&input.replies).await;
            }
            if !input.keys.is_empty() {
                self.booth.key_was_typed();
                let _ = self.booth.pty.input_raw(&input.keys).await;
            }
        }
    }
}

fn shown(painted: Painted) -> AttachUpdate {
    match painted {
        Painted::Snapshot { size, scrollback, bytes } => AttachUpdate::Screen { size, scrollback, bytes },
        Painted::Output(bytes) => AttachUpdate::Output(bytes),
    }
}

async fn is_gone(gone: &mut tokio::sync::watch::Receiver<Option<Option<Exit>>>) -> Option<Exit> {
    match gone.wait_for(Option::is_some).await {
        Ok(exit) => (*exit).flatten(),
        Err(_) => None,
    }
}

/// Receives a client's frames.
struct Ear<'a> {
    guest_slot: &'a GuestSlot,
    role: Role,
    keys: mpsc::Sender<Vec<u8>>,
    repaint: &'a Notify,
}

impl Ear<'_> {
    /// Runs until the client detaches.
    async fn listen(self, mut frames: FrameReader<OwnedReadHalf>) -> io::Result<()> {
        while let Some(message) = frames.next().await? {
            match message {
                FromClient::Input(bytes) if self.role == Role::Control => {
                    // Full: the program doesn't read.
                    let _ = self.keys.try_send(bytes);
                }
                FromClient::Input(_) | FromClient::Hello(_) => {}
                FromClient::Resize(size) => self.guest_slot.resize(size),
                FromClient::Repaint => self.repaint.notify_one(),
                FromClient::Detach => break,
            }
        }
        Ok(())
    }
}
