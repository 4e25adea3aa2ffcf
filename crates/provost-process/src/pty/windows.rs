//! Windows terminals: pseudo-consoles. They block, so one thread each reads, writes and waits.
//!
//! Fewer guarantees than on Unix: neither processes nor the echo can be inspected, so secrets are refused; the
//! only signals are the interrupt key and the kill; closing the console ends the processes attached to it, but a
//! process that has detached is out of reach.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, ChildKiller, MasterPty, PtySize, native_pty_system};
use provost_event::{Exit, WindowSize};

use super::connections::ModelConnections;
use super::device::{Device, LineModes, Order};
use super::options::PtySignal;
use super::reader::KernelSample;
use super::shared::Shared;
use super::terminal::Terminal;
use super::{PtySupervisor, Start};
use crate::{AtTerminal, Launch, launch};

const PIECE_BYTES: usize = 16 * 1024;

/// Pieces of output that are read and not handled yet.
const PIECES_MAX: usize = 4;

/// A console has no end: after the program's end, output has ended when there was none for this long, at the
/// latest after the maximum.
const QUIET: Duration = Duration::from_millis(50);
const DRAIN_MAX: Duration = Duration::from_millis(500);

const INTERRUPT: u8 = 3;

type Wake = SyncSender<()>;

/// Opens the console, starts the program, and supervises both until the handle is dropped.
pub(super) fn supervise(start: Start) {
    let Start { launch, options, answer } = start;
    let (wake, wakes) = sync_channel(1);
    let (running, pid) = match Running::start(&launch, &wake) {
        Ok(started) => started,
        Err(error) => return drop(answer.send(Err(error))),
    };
    let (shared, inbox) = Shared::new(move || poke(&wake));
    let terminal = Terminal::new(running, Arc::clone(&shared), inbox, launch.stdio.size, options);
    drop(answer.send(Ok(PtySupervisor { shared, pid })));
    look_after(terminal, &wakes);
}

/// A pending wake-up is enough.
fn poke(wake: &Wake) {
    let _ = wake.try_send(());
}

/// A program at its console, as its thread owns it.
struct Running {
    /// Dropping it closes the console, and asks its processes to end.
    master: Option<Box<dyn MasterPty + Send>>,
    killer: Box<dyn ChildKiller + Send + Sync>,
    output: Receiver<Vec<u8>>,
    read: VecDeque<u8>,
    input: SyncSender<Vec<u8>>,
    exit: Receiver<Exit>,
}

impl Running {
    fn start(launch: &Launch<AtTerminal>, wake: &Wake) -> io::Result<(Self, u32)> {
        let pair = native_pty_system().openpty(pty_size(launch.stdio.size)).map_err(io::Error::other)?;
        let reader = pair.master.try_clone_reader().map_err(io::Error::other)?;
        let writer = pair.master.take_writer().map_err(io::Error::other)?;
        let child = pair.slave.spawn_command(launch::console_command(launch)).map_err(io::Error::other)?;
        let (killer, pid) = (child.clone_killer(), child.process_id().unwrap_or_default());
        let running = Self {
            master: Some(pair.master),
            killer,
            output: read_apart(reader, wake.clone())?,
            read: VecDeque::new(),
            input: write_apart(writer, wake.clone())?,
            exit: wait_apart(child, wake.clone())?,
        };
        Ok((running, pid))
    }
}

fn pty_size(size: WindowSize) -> PtySize {
    PtySize { rows: size.rows.max(1), cols: size.cols.max(1), pixel_width: 0, pixel_height: 0 }
}

fn apart(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // It ends with the console or the program.
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

fn read_apart(mut reader: Box<dyn Read + Send>, wake: Wake) -> io::Result<Receiver<Vec<u8>>> {
    let (sender, receiver) = sync_channel(PIECES_MAX);
    apart("terminal-output", move || {
        let mut buffer = vec![0; PIECE_BYTES];
        while let Ok(count) = reader.read(&mut buffer) {
            let piece = buffer.get(..count).unwrap_or_default().to_vec();
            if piece.is_empty() || sender.send(piece).is_err() {
                return;
            }
            poke(&wake);
        }
    })?;
    Ok(receiver)
}

fn write_apart(mut writer: Box<dyn Write + Send>, wake: Wake) -> io::Result<SyncSender<Vec<u8>>> {
    let (sender, receiver) = sync_channel::<Vec<u8>>(1);
    apart("terminal-input", move || {
        while let Ok(piece) = receiver.recv() {
            if writer.write_all(&piece).and_then(|()| writer.flush()).is_err() {
                return;
            }
            poke(&wake);
        }
    })?;
    Ok(sender)
}

fn wait_apart(mut child: Box<dyn Child + Send + Sync>, wake: Wake) -> io::Result<Receiver<Exit>> {
    let (sender, receiver) = sync_channel(1);
    apart("terminal-exit", move || {
        let code = child.wait().map_or(-1, |status| i32::from_ne_bytes(status.exit_code().to_ne_bytes()));
        let _ = sender.send(Exit::Code(code));
        poke(&wake);
    })?;
    Ok(receiver)
}

impl Device for Running {
    fn read(&mut self, buffer: &mut [u8]) -> usize {
        while self.read.len() < buffer.len()
            && let Ok(piece) = self.output.try_recv()
        {
            self.read.extend(piece);
        }
        self.read.read(buffer).unwrap_or_default()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.input.try_send(bytes.to_vec()) {
            Ok(()) => Ok(bytes.len()),
            Err(TrySendError::Full(_)) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TrySendError::Disconnected(_)) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn line_modes(&self) -> Option<LineModes> {
        None
    }

    fn sample(&mut self, _: Option<&mut dyn ModelConnections>) -> KernelSample {
        KernelSample::default()
    }

    fn resize(&mut self, size: WindowSize) -> io::Result<()> {
        let Some(master) = &self.master else { return Err(io::ErrorKind::BrokenPipe.into()) };
        master.resize(pty_size(size)).map_err(io::Error::other)
    }

    fn signal(&mut self, signal: PtySignal) -> Option<io::Result<()>> {
        match signal {
            PtySignal::Interrupt => Some(self.write(&[INTERRUPT]).map(drop)),
            PtySignal::Kill => Some(self.killer.kill()),
            PtySignal::Terminate
            | PtySignal::Hangup
            | PtySignal::Stop
            | PtySignal::Continue
            | PtySignal::Winch
            | PtySignal::Quit
            | PtySignal::User1
            | PtySignal::User2 => None,
        }
    }

    fn order(&mut self, order: Order) {
        self.master = None;
        if order == Order::Kill
            && let Err(error) = self.killer.kill()
        {
            tracing::debug!(%error, "a program at a console could not be killed");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.order(Order::Kill);
    }
}

/// The thread's main loop.
fn look_after(mut terminal: Terminal<Running>, wakes: &Receiver<()>) {
    let mut has_more = false;
    while !terminal.is_abandoned() {
        match terminal.patience() {
            _ if has_more => {}
            Some(patience) => drop(wakes.recv_timeout(patience)),
            None => drop(wakes.recv()),
        }
        has_more = terminal.reads() && terminal.read() > 0;
        terminal.obey();
        if let Ok(exit) = terminal.device.exit.try_recv() {
            drain(&mut terminal);
            terminal.exited(exit);
            terminal.gone(false);
        }
        terminal.pass_time();
    }
}

/// Handles the output from before the program's end, however full the queues are.
fn drain(terminal: &mut Terminal<Running>) {
    let (began, mut last) = (Instant::now(), Instant::now());
    while last.elapsed() < QUIET && began.elapsed() < DRAIN_MAX {
        if terminal.read() > 0 {
            last = Instant::now();
        } else {
            thread::sleep(Duration::from_millis(5));
        }
    }
}
