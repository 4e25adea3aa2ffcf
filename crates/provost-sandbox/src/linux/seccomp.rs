//! The system calls that no program in the box makes.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

/// Calls that change what is mounted, enter or make namespaces, load code into the kernel, or reach what isn't the
/// program's: none of them is needed to develop software.
const DENIED: &[i64] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_nfsservctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
];

/// The flags of `clone` and `unshare` that make namespaces.
const NAMESPACES: u64 = 0x7e02_0080;

/// `ioctl` requests that type at a terminal, or paste its selection.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// A call's number on x86-64 with this bit is one of the ABI with pointers of 32 bits, of which every call is denied:
/// it would pass by the numbers above.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Applies both filters to this process and all that it starts.
pub(super) fn apply() -> io::Result<()> {
    let apply = |program: &BpfProgram| apply_filter(program).map_err(io::Error::other);
    // The last one applied is asked first, so that the others see no call that it denies.
    apply(&denying(libc::EPERM, rules()?)?)?;
    // What these calls are told is in memory, which a filter doesn't see: programs fall back to `clone` and `openat`.
    let unseen = [libc::SYS_clone3, libc::SYS_openat2].map(|call| (call, Vec::new()));
    apply(&denying(libc::ENOSYS, BTreeMap::from(unseen))?)?;
    #[cfg(target_arch = "x86_64")]
    apply(&no_x32())?;
    Ok(())
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn denying(errno: i32, rules: Rules) -> io::Result<BpfProgram> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno.unsigned_abs()), arch);
    filter.and_then(TryInto::try_into).map_err(io::Error::other)
}

fn rules() -> io::Result<Rules> {
    let mut rules = DENIED.iter().map(|call| (*call, Vec::new())).collect::<Rules>();
    let any_of = |argument| {
        let bits = (0..u64::BITS).map(|bit| 1_u64 << bit).filter(|bit| NAMESPACES & bit != 0);
        let one = |bit| rule([(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(bit), bit)]);
        bits.map(one).collect::<io::Result<Vec<_>>>()
    };
    rules.insert(libc::SYS_clone, any_of(0)?);
    rules.insert(libc::SYS_unshare, any_of(0)?);
    let typing = TYPING.map(|request| rule([(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request)]));
    rules.insert(libc::SYS_ioctl, typing.into_iter().collect::<io::Result<_>>()?);
    // Sockets of the internet's families only: one in the file system leads out of the box.
    let families = [libc::AF_INET, libc::AF_INET6].map(|family| u64::from(family.unsigned_abs()));
    let [one, other] = families.map(|family| (0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family));
    rules.insert(libc::SYS_socket, vec![rule([one, other])?, raw_socket()?]);
    // One of a pair that isn't connected for good sends to any socket in the file system.
    let unconnected = [libc::SOCK_DGRAM, libc::SOCK_RAW].map(socket_type);
    rules.insert(libc::SYS_socketpair, unconnected.into_iter().collect::<io::Result<_>>()?);
    rules.extend(super::set_id::rules()?);
    Ok(rules)
}

/// Sockets that see or make packets of others.
fn raw_socket() -> io::Result<SeccompRule> {
    socket_type(libc::SOCK_RAW)
}

/// Sockets of a type, which shares its argument with flags.
fn socket_type(kind: i32) -> io::Result<SeccompRule> {
    const TYPE: u64 = 0xf;
    rule([(1, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(TYPE), u64::from(kind.unsigned_abs()))])
}

/// Calls whose arguments have each of these bits: the number of an argument, and a bit.
pub(super) fn has_bit(all: &[(u8, u32)]) -> io::Result<SeccompRule> {
    let condition = |(argument, bit): &(u8, u32)| {
        let bit = u64::from(*bit);
        let has = SeccompCmpOp::MaskedEq(bit);
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, has, bit).map_err(io::Error::other)
    };
    let conditions = all.iter().map(condition).collect::<io::Result<_>>()?;
    SeccompRule::new(conditions).map_err(io::Error::other)
}

fn rule<const N: usize>(
    conditions: [(u8, SeccompCmpArgLen, SeccompCmpOp, u64); N],
) -> io::Result<SeccompRule> {
    let made = conditions.map(|(argument, length, operator, value)| {
        SeccompCondition::new(argument, length, operator, value).map_err(io::Error::other)
    });
    SeccompRule::new(made.into_iter().collect::<io::Result<_>>()?).map_err(io::Error::other)
}

#[cfg(target_arch = "x86_64")]
fn no_x32() -> BpfProgram {
    // Loads the number; at or above the bit: "no such call", else allowed.
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(0x20, 0, 0, 0),
        step(0x35, 0, 1, X32),
        step(0x06, 0, 0, 0x0005_0000 | libc::ENOSYS.unsigned_abs()),
        step(0x06, 0, 0, 0x7fff_0000),
    ]
}
