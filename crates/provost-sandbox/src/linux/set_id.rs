//! Files that run with their owner's rights, whichever user starts them, would outlive the box: no call gives a file these bits.

use std::collections::BTreeMap;
use std::io;

use seccompiler::SeccompRule;

use super::seccomp::has_bit;

/// The bits of a mode that have a program run with the rights of its file's owner or group.
const SET_ID: [u32; 2] = [libc::S_ISUID, libc::S_ISGID];

/// Calls with a mode, and which argument it is. A folder that is made never gets these bits by `mkdir`.
const BY_MODE: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];

/// Calls that take a mode only if their flags say that a file is made, with the arguments for flags and mode. Else the
/// mode may be anything.
const BY_FLAGS: &[(i64, u8, u8)] = &[
    (libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
];

/// The flags that make a file. `O_TMPFILE` has the bit of folders too, which doesn't make any.
const MAKES: [i32; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];

/// The calls that are refused, by what of their arguments.
pub(super) fn rules() -> io::Result<BTreeMap<i64, Vec<SeccompRule>>> {
    let mut rules = BTreeMap::new();
    for (call, mode) in BY_MODE {
        let refused = SET_ID.map(|bit| has_bit(&[(*mode, bit)]));
        rules.insert(*call, refused.into_iter().collect::<io::Result<_>>()?);
    }
    for (call, flags, mode) in BY_FLAGS {
        let makes = MAKES.map(i32::unsigned_abs).into_iter();
        let refused = makes.flat_map(|makes| SET_ID.map(|bit| has_bit(&[(*flags, makes), (*mode, bit)])));
        rules.insert(*call, refused.collect::<io::Result<_>>()?);
    }
    Ok(rules)
}
