//! The system calls of the guard, each async-signal-safe. Errors without a remedy are ignored.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, FromRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr;

use libc::{c_int, pid_t};

/// Whether this process adopts orphaned descendants.
pub(super) const ADOPTS_ORPHANS: bool = cfg!(target_os = "linux");

/// Where descriptors can only be closed one by one, those above this stay open.
const CLOSE_ONE_BY_ONE_MAX: c_int = 65_536;

const SIGNAL_MAX: c_int = 64;

pub(super) enum Reaped {
    One(pid_t, c_int),
    NoneYet,
    NoneLeft,
}

fn checked(result: c_int) -> io::Result<c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Forks; `None` in the new process.
///
/// # Safety
/// The process must have one thread only, or the new one may only use async-signal-safe functions.
pub(super) unsafe fn fork() -> io::Result<Option<pid_t>> {
    // SAFETY: the caller's promise.
    let pid = checked(unsafe { libc::fork() })?;
    Ok((pid != 0).then_some(pid))
}

pub(super) fn exit() -> ! {
    // SAFETY: no memory is involved; `_exit` runs no handlers.
    unsafe { libc::_exit(0) }
}

pub(super) fn own_pid() -> pid_t {
    // SAFETY: no memory is involved.
    unsafe { libc::getpid() }
}

pub(super) fn parent_pid() -> pid_t {
    // SAFETY: no memory is involved.
    unsafe { libc::getppid() }
}

/// The stream with this descriptor.
///
/// # Safety
/// The descriptor is an open stream's, and only the caller uses it.
pub(super) unsafe fn stream(descriptor: RawFd) -> UnixStream {
    // SAFETY: the caller's promise.
    unsafe { UnixStream::from_raw_fd(descriptor) }
}

/// Starts a new session, without a controlling terminal.
pub(super) fn new_session() -> io::Result<()> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::setsid() }).map(drop)
}

/// Makes the terminal at standard input the one that controls this process's session.
pub(super) fn take_terminal() -> io::Result<()> {
    // SAFETY: `Command` has put the child's standard input there before it calls what was installed.
    let input = unsafe { BorrowedFd::borrow_raw(0) };
    Ok(rustix::process::ioctl_tiocsctty(input)?)
}

/// Makes orphaned descendants children of this process.
pub(super) fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    const ON: libc::c_ulong = 1;
    #[cfg(target_os = "linux")]
    // SAFETY: no memory is involved.
    checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, ON, 0, 0, 0) })?;
    Ok(())
}

/// Makes the kernel kill this process when its parent dies.
pub(super) fn die_with_parent() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    let signal = libc::c_ulong::from(libc::SIGKILL.unsigned_abs());
    #[cfg(target_os = "linux")]
    // SAFETY: no memory is involved.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) })?;
    Ok(())
}

/// Takes another process name: `pkill -9 provost` must not kill the guards too.
pub(super) fn take_own_name() {
    #[cfg(target_os = "linux")]
    // SAFETY: the name ends with a zero and has no more than 16 bytes with it.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"child-guard".as_ptr(), 0, 0, 0)
    };
}

/// Changes to the root, so that no folder is kept busy.
pub(super) fn leave_folder() {
    // SAFETY: the path ends with a zero.
    unsafe { libc::chdir(c"/".as_ptr()) };
}

pub(super) fn block_signals() {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigfillset` initialises the set before it is read.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), ptr::null_mut());
    }
}

pub(super) fn unblock_signals() {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set before it is read.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), ptr::null_mut());
    }
}

/// Gives every signal its default effect. An ignored one would stay ignored in the program, and with an
/// ignored SIGCHLD no exit could be waited for.
pub(super) fn reset_handlers() {
    for signal in 1..=SIGNAL_MAX {
        // SAFETY: no memory is involved; a number that is no signal is refused.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Closes all descriptors but these two, which may be the same.
pub(super) fn close_all_but([one, other]: [c_int; 2]) {
    let (low, high) = (one.min(other), one.max(other));
    if close_range(0, low.saturating_sub(1), 0)
        && close_range(low.saturating_add(1), high.saturating_sub(1), 0)
        && close_range(high.saturating_add(1), c_int::MAX, 0)
    {
        return;
    }
    for fd in (0..descriptors_max()).filter(|fd| *fd != low && *fd != high) {
        // SAFETY: nothing in this process uses another descriptor any more.
        unsafe { libc::close(fd) };
    }
}

/// Marks all descriptors but standard input, output and error to be closed by the coming exec. Children don't get
/// the descriptors that Provost inherited.
pub(super) fn close_on_exec() {
    #[cfg(target_os = "linux")]
    if close_range(3, c_int::MAX, libc::CLOSE_RANGE_CLOEXEC) {
        return;
    }
    for fd in 3..descriptors_max() {
        // SAFETY: no memory is involved; a number that is no descriptor is refused.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// Has the coming exec keep a descriptor.
pub(super) fn keep_on_exec(descriptor: RawFd) {
    // SAFETY: no memory is involved; a number that is no descriptor is refused.
    unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) };
}

#[cfg(target_os = "linux")]
fn close_range(first: c_int, last: c_int, flags: libc::c_uint) -> bool {
    // By number: the function is missing from older C libraries.
    // SAFETY: no memory is involved; the callers say why they may.
    first > last || last < 0 || unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn close_range(_first: c_int, _last: c_int, _flags: libc::c_uint) -> bool {
    false
}

fn descriptors_max() -> c_int {
    // SAFETY: no memory is involved.
    let limit = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    c_int::try_from(limit)
        .ok()
        .filter(|limit| (0..CLOSE_ONE_BY_ONE_MAX).contains(limit))
        .unwrap_or(CLOSE_ONE_BY_ONE_MAX)
}

/// Returns a descriptor that becomes readable when a child ends, or a negative number.
pub(super) fn child_signals() -> c_int {
    #[cfg(target_os = "linux")]
    {
        let mut set = MaybeUninit::uninit();
        // SAFETY: `sigemptyset` initialises the set before it is read.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
            libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        -1
    }
}

/// Waits until one of `listened` is readable, a child has ended, or the time is over (negative: never); returns
/// which of the first are readable. Negative descriptors are skipped.
pub(super) fn wait_readable(listened: [c_int; 2], child_signals: c_int, timeout_ms: c_int) -> [bool; 2] {
    let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let [one, other] = listened;
    let mut entries = [entry(one), entry(other), entry(child_signals)];
    let mut told = [0_u8; 512];
    // SAFETY: both pointers come with the length of what they point to; the last descriptor doesn't block.
    unsafe {
        libc::poll(entries.as_mut_ptr(), 3, timeout_ms);
        libc::read(child_signals, told.as_mut_ptr().cast(), told.len());
    }
    let [one, other, _] = entries;
    [one.revents != 0, other.revents != 0]
}

/// Reaps one ended child.
pub(super) fn reap() -> Reaped {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
        0 => Reaped::NoneYet,
        -1 => Reaped::NoneLeft,
        pid => Reaped::One(pid, status),
    }
}

pub(super) fn kill_group(group: pid_t, signal: c_int) {
    if group > 1 {
        // SAFETY: no memory is involved.
        unsafe { libc::killpg(group, signal) };
    }
}

pub(super) fn group_lives(group: pid_t) -> bool {
    // SAFETY: no memory is involved.
    let answer = checked(unsafe { libc::killpg(group, 0) });
    answer.is_ok() || answer.is_err_and(|error| error.raw_os_error() == Some(libc::EPERM))
}

pub(super) fn group_of(pid: pid_t) -> Option<pid_t> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::getpgid(pid) }).ok()
}

/// Calls `visit` for each child of this process; false if the system doesn't list them.
pub(super) fn each_child(visit: impl FnMut(pid_t)) -> bool {
    // This process has one thread, so it forked them all.
    each_child_in(c"/proc/thread-self/children", visit)
}

/// Calls `visit` for each child of another process with one thread.
#[cfg(target_os = "linux")]
pub(super) fn each_child_of(pid: pid_t, visit: impl FnMut(pid_t)) -> bool {
    let mut path = [0_u8; 64];
    let mut at = 0;
    let mut append = |bytes: &[u8]| {
        for byte in bytes {
            if let Some(place) = path.get_mut(at) {
                *place = *byte;
                at = at.saturating_add(1);
            }
        }
    };
    let mut digits = [0_u8; 10];
    let mut rest = pid.unsigned_abs();
    let mut first = digits.len();
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789".get(usize::try_from(rest % 10).unwrap_or_default()).copied().unwrap_or(b'0');
        rest /= 10;
        first = first.saturating_sub(1);
        if rest == 0 {
            break;
        }
    }
    let number = digits.get(first..).unwrap_or_default();
    for part in [b"/proc/".as_slice(), number, b"/task/", number, b"/children"] {
        append(part);
    }
    std::ffi::CStr::from_bytes_until_nul(&path).is_ok_and(|path| each_child_in(path, visit))
}

fn each_child_in(path: &std::ffi::CStr, mut visit: impl FnMut(pid_t)) -> bool {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero.
    let list = unsafe { libc::open(path.as_ptr(), flags) };
    if list < 0 {
        return false;
    }
    let mut buffer = [0_u8; 4096];
    let mut number: pid_t = 0;
    loop {
        // SAFETY: the pointer comes with the length of what it points to.
        let count = unsafe { libc::read(list, buffer.as_mut_ptr().cast(), buffer.len()) };
        let bytes = usize::try_from(count).ok().and_then(|count| buffer.get(..count)).unwrap_or_default();
        for byte in bytes {
            if byte.is_ascii_digit() {
                number = number.saturating_mul(10).saturating_add(pid_t::from(byte & 0xf));
            } else if number != 0 {
                visit(number);
                number = 0;
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    // SAFETY: `list` was opened above and isn't used any more.
    unsafe { libc::close(list) };
    true
}

/// The process id of a namespace's first process, within it.
#[cfg(target_os = "linux")]
pub(super) const FIRST_PROCESS: pid_t = 1;

/// The result of [`try_process_namespace`] if one can be made.
pub(super) const POSSIBLE: c_int = libc::ECANCELED;

/// Makes the next fork of this process the first process of a new namespace.
#[cfg(target_os = "linux")]
pub(super) fn enter_process_namespace() -> io::Result<()> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::unshare(libc::CLONE_NEWPID) }).map(drop)
}

/// Puts the `/proc` of this process's namespace in the place of the existing one, for this process and its forks:
/// that one shows the processes outside, and root's programs could reach their memory there. Other mounts stay,
/// shared with the outside if they were.
#[cfg(target_os = "linux")]
pub(super) fn mount_own_proc() -> io::Result<()> {
    let (proc, none) = (c"proc".as_ptr(), ptr::null());
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: all texts end with a zero.
    unsafe {
        checked(libc::unshare(libc::CLONE_NEWNS))?;
        // The mount over it must not be visible outside.
        checked(libc::mount(none, c"/proc".as_ptr(), none, libc::MS_PRIVATE | libc::MS_REC, ptr::null()))?;
        // Where it may not be unmounted, it is only covered.
        libc::umount2(c"/proc".as_ptr(), libc::MNT_DETACH);
        checked(libc::mount(proc, c"/proc".as_ptr(), proc, flags, ptr::null()))?;
    }
    Ok(())
}

/// Makes a process namespace, and ends it; returns [`POSSIBLE`], or why there is none. Only to be called in a
/// fork.
pub(super) fn try_process_namespace() -> io::Error {
    #[cfg(target_os = "linux")]
    {
        if let Err(error) = enter_process_namespace() {
            return error;
        }
        // SAFETY: it is called in a fork, which has only this thread.
        let first = match unsafe { fork() } {
            Ok(None) => {
                let status = c_int::from(mount_own_proc().is_err());
                // SAFETY: no memory is involved.
                unsafe { libc::_exit(status) }
            }
            Ok(Some(first)) => first,
            Err(error) => return error,
        };
        let is_made = wait_for(first) == Some(0);
        io::Error::from_raw_os_error(if is_made { POSSIBLE } else { libc::EPERM })
    }
    #[cfg(not(target_os = "linux"))]
    io::Error::from_raw_os_error(libc::ENOSYS)
}

/// Waits for a child's end; returns its raw wait status.
#[cfg(target_os = "linux")]
pub(super) fn wait_for(child: pid_t) -> Option<c_int> {
    let mut status = 0;
    // SAFETY: `status` outlives the call. All signals are blocked, so it isn't interrupted.
    (unsafe { libc::waitpid(child, &raw mut status, 0) } == child).then_some(status)
}

/// Whether a child has ended; reaps it.
#[cfg(target_os = "linux")]
pub(super) fn has_ended(child: pid_t) -> bool {
    // SAFETY: a null pointer is valid: the status isn't returned.
    unsafe { libc::waitpid(child, ptr::null_mut(), libc::WNOHANG) != 0 }
}

#[cfg(target_os = "linux")]
pub(super) fn kill_one(child: pid_t, signal: c_int) {
    if child > 1 {
        // SAFETY: no memory is involved.
        unsafe { libc::kill(child, signal) };
    }
}

/// Signals all processes of the namespace of which this is the first process, except itself.
#[cfg(target_os = "linux")]
pub(super) fn kill_all(signal: c_int) {
    if own_pid() == FIRST_PROCESS {
        // SAFETY: no memory is involved.
        unsafe { libc::kill(-1, signal) };
    }
}
