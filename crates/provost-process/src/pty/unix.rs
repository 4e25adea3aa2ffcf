//! Unix terminals: opened, connected to a program below its guard, and supervised by one thread each.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use provost_event::{Exit, WindowSize};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Winsize};
use rustix::termios::{tcgetattr, tcgetpgrp, tcsetattr, tcsetwinsize};

use super::connections::ModelConnections;
use super::device::{Device, LineModes, Order};
use super::kernel::Looker;
use super::options::PtySignal;
use super::reader::KernelSample;
use super::shared::Shared;
use super::terminal::Terminal;
use super::{PtySupervisor, Start};
use crate::guard::{self, signal_message};
use crate::launch::{self, ChildEnds, Guarded};
use crate::leftover::Ledger;
use crate::registry::{self, Registered};
use crate::{AtTerminal, Launch, sweep};

/// Maximum bytes to read after the program's end, in case another process goes on writing.
const DRAIN_BYTES_MAX: usize = 1024 * 1024;
const DRAIN_MAX: Duration = Duration::from_millis(200);

/// The retry interval for a terminal that can't be read (a process has hung it up).
const UNREADABLE_PAUSE: Duration = Duration::from_millis(100);

/// How long a guard may take to kill all processes and end, once its channel is closed.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// How long a running guard may take to send the child's process id.
const GUARD_WORD_MAX: Duration = Duration::from_secs(5);

/// Opens the terminal, starts the program, and supervises both until the handle is dropped.
pub(super) fn supervise(start: Start) {
    let Start { launch, mut options, answer } = start;
    let ledger = options.ledger.take();
    let size = launch.stdio.size;
    let opened = open_terminal(size).and_then(|(master, slave)| Running::start(&launch, master, slave));
    let (running, wake) = match opened.and_then(|running| Ok((running, UnixStream::pair()?))) {
        Ok(opened) => opened,
        Err(error) => return drop(answer.send(Err(error))),
    };
    let mut running = running;
    running.ledger = ledger.and_then(|folder| Ledger::begin(&folder, running.pid));
    let (wake, waker) = wake;
    if let Err(error) = wake.set_nonblocking(true).and_then(|()| waker.set_nonblocking(true)) {
        return drop(answer.send(Err(error)));
    }
    let pid = running.pid;
    // A full channel wakes as well as one more byte.
    let (shared, inbox) = Shared::new(move || drop((&waker).write(&[0])));
    let terminal = Terminal::new(running, Arc::clone(&shared), inbox, size, options);
    // If the caller is gone, the handle is dropped, and thereby the program killed.
    drop(answer.send(Ok(PtySupervisor { shared, pid })));
    look_after(terminal, wake);
}

fn open_terminal(size: WindowSize) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    #[cfg(target_os = "linux")]
    let flags = flags | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    #[cfg(not(target_os = "linux"))]
    rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let path = ptsname(&master, Vec::new())?;
    let slave = open(path.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    tcsetwinsize(&slave, winsize(size))?;
    // Erase removes a character, not a byte.
    let mut modes = tcgetattr(&slave)?;
    modes.input_modes |= InputModes::IUTF8;
    tcsetattr(&slave, OptionalActions::Now, &modes)?;
    fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
    Ok((master, slave))
}

fn winsize(size: WindowSize) -> Winsize {
    Winsize { ws_row: size.rows.max(1), ws_col: size.cols.max(1), ws_xpixel: 0, ws_ypixel: 0 }
}

/// A program at its terminal, as its thread owns it.
pub(super) struct Running {
    master: File,
    /// Kept open: otherwise the terminal can't be read while no process has it open, and the last output may be
    /// lost. The guard holds neither this nor the master.
    slave: OwnedFd,
    /// The channel to the guard; closing it kills everything.
    control: Option<UnixStream>,
    guard: Registered<Child>,
    pid: u32,
    /// The received bytes of the status.
    status: Vec<u8>,
    looker: Looker,
    ledger: Option<Ledger>,
    unreadable_until: Option<Instant>,
    is_buried: bool,
}

impl Running {
    fn start(launch: &Launch<AtTerminal>, master: OwnedFd, slave: OwnedFd) -> io::Result<Self> {
        let ends = ChildEnds {
            stdin: slave.try_clone()?.into(),
            stdout: slave.try_clone()?.into(),
            stderr: slave.try_clone()?.into(),
        };
        let Guarded { guard, control } = launch::start_at_terminal(launch, ends)?;
        let looker = Looker::new(guard.pid(), ptsname(&master, Vec::new()).ok());
        let mut running = Self {
            master: master.into(),
            slave,
            control: Some(control),
            guard,
            pid: 0,
            status: Vec::new(),
            looker,
            ledger: None,
            unreadable_until: None,
            is_buried: false,
        };
        running.pid = running.hear_number()?;
        Ok(running)
    }

    fn hear_number(&mut self) -> io::Result<u32> {
        let Some(control) = &mut self.control else { return Err(io::ErrorKind::NotConnected.into()) };
        control.set_read_timeout(Some(GUARD_WORD_MAX))?;
        let mut number = [0; 4];
        control.read_exact(&mut number)?;
        control.set_nonblocking(true)?;
        Ok(u32::from_ne_bytes(number))
    }

    /// Reads the guard's message.
    fn hear(&mut self) -> GuardMessage {
        let Some(control) = &mut self.control else { return GuardMessage::Nothing };
        let mut bytes = [0; 16];
        match control.read(&mut bytes) {
            Ok(0) => GuardMessage::Gone,
            Ok(count) => {
                let had = self.status.len();
                self.status.extend_from_slice(bytes.get(..count).unwrap_or_default());
                match self.status.first_chunk() {
                    Some(status) if had < status.len() => GuardMessage::Exit(exit_of(*status)),
                    _ => GuardMessage::Nothing,
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                GuardMessage::Nothing
            }
            Err(_) => GuardMessage::Gone,
        }
    }

    /// How long the terminal still can't be read; `None` if it can.
    fn unreadable_for(&self) -> Option<Duration> {
        let pause = self.unreadable_until?.saturating_duration_since(Instant::now());
        Some(pause).filter(|pause| !pause.is_zero())
    }

    /// Reaps the guard, which ends as soon as no process is left; returns whether that was observed.
    fn bury(&mut self) -> bool {
        self.control = None;
        let guard = self.guard.pid();
        // A stopped guard doesn't notice that its channel is closed.
        if !sweep::until_dead(guard, ANSWER_MAX) {
            registry::end_guard(guard);
        }
        self.is_buried = true;
        // If the system doesn't release a process, its guard is left running.
        let status = self.guard.try_wait();
        let is_all_ended =
            matches!(status, Ok(Some(status)) if status.success()) || registry::end_adopted(guard);
        if is_all_ended {
            self.guard.strike_out();
            if let Some(ledger) = self.ledger.take() {
                ledger.close();
            }
        }
        is_all_ended
    }
}

/// Kills the rest, and reaps the guard. Only on the terminal's own thread: it blocks.
impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_buried {
            self.bury();
        }
    }
}

enum GuardMessage {
    Nothing,
    Exit(Exit),
    Gone,
}

fn exit_of(status: [u8; 4]) -> Exit {
    let status = ExitStatus::from_raw(i32::from_ne_bytes(status));
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(libc::SIGKILL)),
    }
}

impl Device for Running {
    fn read(&mut self, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        // A read brings some 4 KiB at most.
        while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
            match self.master.read(room) {
                Ok(count) if count > 0 => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // A process has hung it up; it may be opened again.
                Ok(_) | Err(_) => {
                    self.unreadable_until = Instant::now().checked_add(UNREADABLE_PAUSE);
                    break;
                }
            }
        }
        filled
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.master.write(bytes)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    fn line_modes(&self) -> Option<LineModes> {
        let modes = tcgetattr(&self.slave).ok()?;
        // Off is zero on Linux and all ones elsewhere.
        let end_of_input =
            Some(modes.special_codes[SpecialCodeIndex::VEOF]).filter(|key| !matches!(key, 0 | 0xff));
        Some(LineModes {
            echo: modes.local_modes.contains(LocalModes::ECHO),
            canonical: modes.local_modes.contains(LocalModes::ICANON),
            end_of_input,
        })
    }

    fn sample(&mut self, connections: Option<&mut dyn ModelConnections>) -> KernelSample {
        let modes = self.line_modes();
        let foreground = tcgetpgrp(&self.master).ok().map(|group| group.as_raw_nonzero().get());
        let foreground = foreground.and_then(|group| u32::try_from(group).ok());
        let looked = self.looker.look(foreground, self.pid, modes.is_some_and(|modes| modes.canonical));
        if let Some(ledger) = &mut self.ledger {
            ledger.note(&looked.others);
        }
        KernelSample {
            echo: modes.map(|modes| modes.echo),
            canonical: modes.map(|modes| modes.canonical),
            reads_terminal: looked.reads_terminal,
            polls: looked.polls,
            is_busy: looked.is_busy,
            foreground,
            tool_started: looked.tool_started,
            awaits_answer: connections.and_then(|source| source.awaits_answer(&looked.processes)),
            model_calls: None,
        }
    }

    fn resize(&mut self, size: WindowSize) -> io::Result<()> {
        Ok(tcsetwinsize(&self.master, winsize(size))?)
    }

    fn signal(&mut self, signal: PtySignal) -> Option<io::Result<()>> {
        let foreground = tcgetpgrp(&self.master).ok().map(|group| group.as_raw_nonzero().get());
        let group = foreground.or_else(|| i32::try_from(self.pid).ok()).unwrap_or_default();
        let message = signal_message(signal.number(), group)?;
        let Some(control) = &mut self.control else { return Some(Err(io::ErrorKind::NotConnected.into())) };
        Some(control.write_all(&message))
    }

    fn force(&mut self) {
        registry::end_guard(self.guard.pid());
    }

    fn order(&mut self, order: Order) {
        let order = match order {
            Order::HangUp => guard::Order::HangUp,
            Order::Kill => guard::Order::Kill,
        };
        if let Some(control) = &mut self.control
            && let Err(error) = control.write_all(&[order.byte()])
        {
            tracing::trace!(%error, "the guard is already gone");
        }
    }
}

impl PtySignal {
    /// Its number.
    pub(crate) const fn number(self) -> libc::c_int {
        match self {
            Self::Interrupt => libc::SIGINT,
            Self::Terminate => libc::SIGTERM,
            Self::Hangup => libc::SIGHUP,
            Self::Kill => libc::SIGKILL,
            Self::Stop => libc::SIGSTOP,
            Self::Continue => libc::SIGCONT,
            Self::Winch => libc::SIGWINCH,
            Self::Quit => libc::SIGQUIT,
            Self::User1 => libc::SIGUSR1,
            Self::User2 => libc::SIGUSR2,
        }
    }
}

/// The thread's main loop.
fn look_after(mut terminal: Terminal<Running>, wake: UnixStream) {
    while !terminal.is_abandoned() {
        let ready = wait(&terminal, &wake);
        if ready.woken {
            let mut told = [0; 64];
            while (&wake).read(&mut told).is_ok_and(|count| count == told.len()) {}
        }
        // Available output is painted before any input is typed: an answer is for what is shown.
        if ready.output || ready.woken && terminal.reads() {
            terminal.read();
        }
        terminal.obey();
        if ready.guard {
            hear(&mut terminal);
        }
        terminal.pass_time();
    }
}

fn hear(terminal: &mut Terminal<Running>) {
    match terminal.device.hear() {
        GuardMessage::Nothing => {}
        GuardMessage::Exit(exit) => {
            drain(terminal);
            terminal.exited(exit);
        }
        GuardMessage::Gone => {
            // The guard has closed its channel by ending, or was killed.
            let is_all_ended = terminal.device.bury();
            drain(terminal);
            terminal.gone(is_all_ended);
        }
    }
}

/// Reads the output from before the program's end, however full the queues are.
fn drain(terminal: &mut Terminal<Running>) {
    let began = Instant::now();
    let mut drained = 0;
    while drained < DRAIN_BYTES_MAX && began.elapsed() < DRAIN_MAX {
        match terminal.read() {
            0 => return,
            count => drained += count,
        }
    }
}

#[derive(Default)]
struct Ready {
    woken: bool,
    output: bool,
    guard: bool,
}

fn wait(terminal: &Terminal<Running>, wake: &UnixStream) -> Ready {
    let device = &terminal.device;
    let mut wish = PollFlags::empty();
    wish.set(PollFlags::IN, terminal.reads());
    wish.set(PollFlags::OUT, terminal.wants_to_write());
    // Without a requested event, poll would still report a terminal that was hung up, all the time.
    let retry = device.unreadable_for();
    let master = (retry.is_none() && !wish.is_empty()).then(|| device.master.as_fd());
    let mut fds = Vec::with_capacity(3);
    fds.push(PollFd::new(wake, PollFlags::IN));
    let guard = device.control.as_ref().map(|control| PollFd::new(control, PollFlags::IN));
    let has_guard = guard.is_some();
    fds.extend(guard);
    let has_master = master.is_some();
    fds.extend(master.map(|master| PollFd::from_borrowed_fd(master, wish)));
    let patience = [terminal.patience(), retry].into_iter().flatten().min();
    let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
    if poll(&mut fds, timeout.as_ref()).is_err() {
        // Interrupted: nothing is known until the next round.
        return Ready::default();
    }
    let mut told = fds.iter().map(PollFd::revents);
    let mut next = |is_there: bool| if is_there { told.next() } else { None }.unwrap_or(PollFlags::empty());
    let (woken, guard, output) = (next(true), next(has_guard), next(has_master));
    Ready {
        woken: !woken.is_empty(),
        guard: !guard.is_empty(),
        output: wish.contains(PollFlags::IN)
            && output.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR),
    }
}
