//! The steps of a start. Each is this program again, with a hidden first argument; each replaces itself by the next:
//! `enter` (namespaces of the box, layers) → `bwrap` (what is mounted) → `inner` (Landlock, system calls) → program.
//! `open` makes the namespaces of a box and hands their descriptors back, `listen` a listener in its network; `canary`
//! is a program in the box.

use std::ffi::OsString;
use std::io::{self, IoSlice, Write as _};
use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd, RawFd};
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, Scope,
};
use provost_event::SandboxLimits;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::plan::Plan;
use super::{INNER, seccomp, sys};

/// The exit status of a program that couldn't be started, and of one that isn't there, as shells have them.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;
/// The exit status when the box itself couldn't be made.
const NO_BOX: i32 = 125;

/// Makes the namespaces of a box, and hands them back over the socket `number`.
pub(super) fn open(number: RawFd, own_network: OwnNetwork) -> io::Result<()> {
    let (user, group) = sys::user_and_group();
    let network = if own_network == OwnNetwork::No { 0 } else { libc::CLONE_NEWNET };
    sys::unshare(libc::CLONE_NEWUSER | network)?;
    // Not there on old kernels.
    let _ = std::fs::write("/proc/self/setgroups", "deny");
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    let mut handed = vec![sys::open_namespace(c"/proc/self/ns/user")?];
    if own_network == OwnNetwork::Yes {
        sys::loopback_up()?;
        handed.push(sys::open_namespace(c"/proc/self/ns/net")?);
    }
    hand_back(number, &handed)
}

/// Enters the network of a box by its user and network namespaces, and hands a listener in it back.
pub(super) fn listen(number: RawFd, user: RawFd, network: RawFd) -> io::Result<()> {
    sys::enter(user, libc::CLONE_NEWUSER)?;
    sys::enter(network, libc::CLONE_NEWNET)?;
    hand_back(number, &[TcpListener::bind("127.0.0.1:0")?.into()])
}

fn hand_back(number: RawFd, handed: &[OwnedFd]) -> io::Result<()> {
    let descriptors = handed.iter().map(|one| one.as_fd()).collect::<Vec<_>>();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    message.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(sys::inherited(number), &[IoSlice::new(b"n")], &mut message, SendFlags::empty())?;
    Ok(())
}

/// Whether a box has a network of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnNetwork {
    No,
    Yes,
}

impl OwnNetwork {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::No => "shared",
            Self::Yes => "own",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::No, Self::Yes].into_iter().find(|one| one.name() == name)
    }
}

/// Enters the namespaces of a box, mounts its layers, and becomes `bwrap`.
pub(super) fn enter(number: RawFd, program: &[OsString]) -> io::Result<i32> {
    let plan = Plan::read(number)?;
    sys::enter(plan.user, libc::CLONE_NEWUSER)?;
    if let Some(network) = plan.network {
        sys::enter(network, libc::CLONE_NEWNET)?;
    }
    // Entering a namespace may have reset it.
    sys::die_with_parent()?;
    sys::unshare(libc::CLONE_NEWNS)?;
    sys::make_mounts_private()?;
    for layer in &plan.layers {
        sys::mount_layer(&layer.folder, &layer.upper, &layer.work)?;
    }
    sys::ignore_signals();
    sys::close_on_exec_from(3)?;
    sys::keep_on_exec(number);
    let (bwrap, before) = plan.bwrap.split_first().ok_or(io::ErrorKind::InvalidData)?;
    let own = std::env::current_exe()?;
    let mut args = before.to_vec();
    args.push(own.into_os_string());
    args.extend(INNER.map(OsString::from));
    args.extend([number.to_string().into(), "--".into()]);
    args.extend(program.iter().cloned());
    Err(sys::exec(bwrap, &args))
}

/// Confines itself, the first process of the box, and with it all others; starts the program, reaps, and ends with it.
pub(super) fn inner(number: RawFd, program: &[OsString]) -> io::Result<i32> {
    let plan = Plan::read(number)?;
    sys::close_on_exec_from(3)?;
    limit(plan.limits)?;
    sys::no_new_rights()?;
    restrict_files(&plan)?;
    seccomp::apply()?;
    let (name, args) = program.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let Some(child) = sys::fork()? else {
        sys::default_signals();
        let error = sys::exec(name, args);
        say(&format!("{} can't be started in the sandbox: {error}", Path::new(name).display()));
        sys::exit(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE });
    };
    while let Some((pid, status)) = sys::wait() {
        if pid == child {
            let signal = status & 0x7f;
            return Ok(if signal == 0 { (status >> 8) & 0xff } else { 128 + signal });
        }
    }
    Ok(NO_BOX)
}

fn limit(limits: SandboxLimits) -> io::Result<()> {
    let seconds = |ms: u64| ms.div_ceil(1_000);
    let wanted = [
        (libc::RLIMIT_AS, limits.memory_bytes),
        (libc::RLIMIT_NPROC, limits.processes),
        (libc::RLIMIT_CPU, limits.cpu_time_ms.map(seconds)),
        (libc::RLIMIT_FSIZE, limits.file_size_bytes),
    ];
    for (resource, most) in wanted {
        most.map_or(Ok(()), |most| sys::limit(resource, most))?;
    }
    Ok(())
}

/// The second line of defence behind what is mounted: Landlock, as far as this kernel has it.
fn restrict_files(plan: &Plan) -> io::Result<()> {
    let abi = ABI::V6;
    let restrict = || {
        let reads = AccessFs::from_read(abi);
        let all = AccessFs::from_all(abi);
        let root = PathBeneath::new(PathFd::new("/")?, reads);
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .scope(Scope::AbstractUnixSocket)?
            .create()?
            .add_rule(root)?;
        for path in &plan.write {
            let access = if Path::new(path).is_dir() { all } else { all & AccessFs::from_file(abi) };
            rules = rules.add_rule(PathBeneath::new(PathFd::new(path)?, access))?;
        }
        rules.restrict_self().map(drop).map_err(Box::<dyn std::error::Error + Send + Sync>::from)
    };
    restrict().map_err(io::Error::other)
}

/// Standard error may be closed.
pub(super) fn say(words: &str) {
    let _ = writeln!(io::stderr(), "provost: {words}");
}

/// Runs a step and ends the process.
pub(super) fn finish(result: io::Result<i32>) -> ! {
    match result {
        Ok(code) => sys::exit(code),
        Err(error) => {
            say(&format!("the sandbox can't be made: {error}"));
            sys::exit(NO_BOX)
        }
    }
}
