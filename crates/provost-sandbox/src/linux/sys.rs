//! The system calls of the steps. A step is a process with one thread.

#![expect(unsafe_code, reason = "namespaces, mounts and forks have no safe interface")]

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::ptr;

use libc::{c_int, c_ulong, pid_t};

fn checked(result: c_int) -> io::Result<c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Makes namespaces for this process.
pub(super) fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: no memory is involved; there is one thread.
    checked(unsafe { libc::unshare(flags) }).map(drop)
}

/// Enters the namespace of an inherited descriptor.
pub(super) fn enter(namespace: RawFd, kind: c_int) -> io::Result<()> {
    // SAFETY: no memory is involved; there is one thread.
    checked(unsafe { libc::setns(namespace, kind) }).map(drop)
}

pub(super) fn user_and_group() -> (u32, u32) {
    // SAFETY: no memory is involved.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// The flag of an interface that is up, as `ioctl` has it.
const UP: libc::c_short = 1;

/// Switches the loopback interface of this process's network namespace on.
pub(super) fn loopback_up() -> io::Result<()> {
    let mut request = [0_u8; 40];
    for (place, byte) in request.iter_mut().zip(b"lo") {
        *place = *byte;
    }
    // SAFETY: the request is as large as the kernel's structure, whose flags follow the 16 bytes of the name.
    unsafe {
        let socket = checked(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?;
        let mut done = libc::ioctl(socket, libc::SIOCGIFFLAGS, request.as_mut_ptr());
        if done == 0 {
            let flags = request.as_mut_ptr().add(16).cast::<libc::c_short>();
            flags.write_unaligned(flags.read_unaligned() | UP);
            done = libc::ioctl(socket, libc::SIOCSIFFLAGS, request.as_mut_ptr());
        }
        let result = checked(done).map(drop);
        libc::close(socket);
        result
    }
}

/// Keeps mounts of this process from being seen outside.
pub(super) fn make_mounts_private() -> io::Result<()> {
    let none = ptr::null::<libc::c_char>();
    // SAFETY: the path ends with a zero.
    let done =
        unsafe { libc::mount(none, c"/".as_ptr(), none, libc::MS_PRIVATE | libc::MS_REC, ptr::null()) };
    checked(done).map(drop)
}

/// Mounts a writable layer over a folder.
pub(super) fn mount_layer(folder: &OsStr, upper: &OsStr, work: &OsStr) -> io::Result<()> {
    let mut options = OsString::from("lowerdir=");
    options.push(folder);
    options.push(",upperdir=");
    options.push(upper);
    options.push(",workdir=");
    options.push(work);
    options.push(",userxattr");
    let options = CString::new(options.as_bytes())?;
    let folder = CString::new(folder.as_bytes())?;
    let kind = c"overlay".as_ptr();
    // SAFETY: all texts end with a zero.
    let done = unsafe { libc::mount(kind, folder.as_ptr(), kind, 0, options.as_ptr().cast()) };
    checked(done).map(drop)
}

/// Has the kernel kill this process when its parent ends.
pub(super) fn die_with_parent() -> io::Result<()> {
    let kill = c_ulong::from(libc::SIGKILL.unsigned_abs());
    // SAFETY: no memory is involved.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, kill, 0, 0, 0) }).map(drop)
}

/// No exec gives this process or its children more rights.
pub(super) fn no_new_rights() -> io::Result<()> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }).map(drop)
}

/// Marks all descriptors from `first` on to be closed by the next exec.
pub(super) fn close_on_exec_from(first: RawFd) -> io::Result<()> {
    // SAFETY: no memory is involved.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, c_int::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has the next exec keep a descriptor.
pub(super) fn keep_on_exec(descriptor: RawFd) {
    // SAFETY: no memory is involved.
    unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) };
}

/// Signals that ask for the end of a program, or come from a terminal: they are meant for the program in the box.
const FOR_PROGRAM: [c_int; 8] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGWINCH,
];

/// Ignores the signals that are meant for the program, across execs.
pub(super) fn ignore_signals() {
    for signal in FOR_PROGRAM {
        // SAFETY: no memory is involved.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Gives them, and SIGPIPE, their default effect again.
pub(super) fn default_signals() {
    for signal in FOR_PROGRAM.into_iter().chain([libc::SIGPIPE]) {
        // SAFETY: no memory is involved.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Limits a resource for good.
pub(super) fn limit(resource: libc::__rlimit_resource_t, most: u64) -> io::Result<()> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure outlives both calls.
    unsafe {
        checked(libc::getrlimit(resource, &raw mut now))?;
        let most = most.min(now.rlim_max);
        let wanted = libc::rlimit { rlim_cur: most, rlim_max: most };
        checked(libc::setrlimit(resource, &raw const wanted)).map(drop)
    }
}

/// Replaces this process by `program`, a path or a name looked up in `PATH`; returns only when that fails.
pub(super) fn exec(program: &OsStr, args: &[OsString]) -> io::Error {
    let text = |word: &OsStr| CString::new(word.as_bytes());
    let words = std::iter::once(program).chain(args.iter().map(OsString::as_os_str));
    let words = match words.map(text).collect::<Result<Vec<_>, _>>() {
        Ok(words) => words,
        Err(error) => return error.into(),
    };
    let mut pointers = words.iter().map(|word| word.as_ptr()).collect::<Vec<_>>();
    pointers.push(ptr::null());
    let Some(first) = words.first() else { return io::ErrorKind::InvalidInput.into() };
    // SAFETY: the array ends with a null pointer, and all texts with a zero.
    unsafe { libc::execvp(first.as_ptr(), pointers.as_ptr()) };
    io::Error::last_os_error()
}

/// Forks; `None` in the new process.
pub(super) fn fork() -> io::Result<Option<pid_t>> {
    // SAFETY: there is one thread.
    let pid = checked(unsafe { libc::fork() })?;
    Ok((pid != 0).then_some(pid))
}

/// Waits for the next child's end; its process id and raw status. `None`: there is no child any more.
pub(super) fn wait() -> Option<(pid_t, c_int)> {
    loop {
        let mut status = 0;
        // SAFETY: the status outlives the call.
        match checked(unsafe { libc::waitpid(-1, &raw mut status, 0) }) {
            Ok(pid) => return Some((pid, status)),
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => return None,
        }
    }
}

pub(super) fn exit(code: c_int) -> ! {
    // SAFETY: no memory is involved.
    unsafe { libc::_exit(code) }
}

/// The inherited descriptor, which stays open.
pub(super) const fn inherited(number: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the step before left it open, and this process doesn't close it.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Opens a file of this process's own namespace.
pub(super) fn open_namespace(path: &CStr) -> io::Result<std::os::fd::OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    Ok(open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// The numbers of descriptors, to hand them down.
pub(super) fn number(descriptor: &impl AsRawFd) -> RawFd {
    descriptor.as_raw_fd()
}
