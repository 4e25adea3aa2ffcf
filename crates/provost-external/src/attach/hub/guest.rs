//! One attached terminal.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use provost_event::{Exit, TerminalEvent};
use provost_process::Painted;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::super::wire::{self, AttachUpdate, FrameReader, FromClient, Hello, Role, VERSION, Welcome};
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
    if let Err(error) = attend(&booth, &guest_slot, hello.role, frames, to).await {
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

async fn attend(
    booth: &Booth,
    guest_slot: &GuestSlot,
    role: Role,
    frames: FrameReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
) -> io::Result<()> {
    let (keys, typed) = mpsc::channel(INPUTS_MAX);
    let repaint = Notify::new();
    let ear = Ear { guest_slot, role, keys, repaint: &repaint };
    let mut typing = pin!(hand_on(booth, typed));
    tokio::select! {
        shown = show(booth, to, &repaint) => shown,
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
async fn show(booth: &Booth, mut to: OwnedWriteHalf, repaint: &Notify) -> io::Result<()> {
    let (mut standing, mut gone) = (booth.standing.clone(), booth.gone.subscribe());
    let mut state = standing.borrow_and_update().state;
    wire::write(&mut to, &AttachUpdate::Welcome(Welcome { program: booth.program.clone(), state })).await?;
    let mut watcher = booth.pty.watch().await.ok();
    loop {
        let next = async {
            match &mut watcher {
                Some(watcher) => watcher.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            painted = next => match painted {
                Some(painted) => wire::write(&mut to, &shown(painted)).await?,
                None => watcher = None,
            },
            Ok(()) = standing.changed() => {
                let now = standing.borrow_and_update().state;
                if std::mem::replace(&mut state, now) != now {
                    wire::write(&mut to, &AttachUpdate::State(now)).await?;
                }
            }
            () = repaint.notified() => watcher = booth.pty.watch().await.ok(),
            exit = is_gone(&mut gone) => return wire::write(&mut to, &AttachUpdate::Gone(exit)).await,
        }
    }
}

fn shown(painted: Painted) -> AttachUpdate {
    match painted {
        Painted::Snapshot { size, bytes } => AttachUpdate::Screen { size, bytes },
        Painted::Output(bytes) => AttachUpdate::Output(bytes),
    }
}

async fn is_gone(gone: &mut tokio::sync::watch::Receiver<Option<Option<Exit>>>) -> Option<Exit> {
    match gone.wait_for(Option::is_some).await {
        Ok(exit) => (*exit).flatten(),
        Err(_) => None,
    }
}

/// Writes the client's input to the program, until it detaches. A program that doesn't read blocks only this task.
async fn hand_on(booth: &Booth, mut typed: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = typed.recv().await {
        booth.key_was_typed();
        // A program that has ended reads no input.
        let _ = booth.pty.input_raw(&bytes).await;
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
