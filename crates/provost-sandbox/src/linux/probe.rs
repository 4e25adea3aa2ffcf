//! What this machine can do.

use std::fs;
use std::path::{Path, PathBuf};

use crate::probe::{Finding, Probe};

/// Looks for all that a sandbox needs, and tries one.
pub(crate) fn probe(search: &std::ffi::OsStr) -> Probe {
    let bwrap = bwrap_in(search);
    let mut findings = vec![bwrap_finding(bwrap.as_deref()), namespaces(), landlock()];
    findings.extend(apparmor());
    findings.extend(container());
    Probe { bwrap, findings }
}

fn bwrap_in(search: &std::ffi::OsStr) -> Option<PathBuf> {
    let usual = ["/usr/bin", "/usr/local/bin", "/bin"].map(PathBuf::from);
    let folders = usual.into_iter().chain(std::env::split_paths(search).filter(|path| path.is_absolute()));
    folders.map(|folder| folder.join("bwrap")).find(|file| file.is_file())
}

fn bwrap_finding(bwrap: Option<&Path>) -> Finding {
    match bwrap {
        Some(path) => Finding::fine("bubblewrap", &path.display().to_string()),
        None => Finding::missing(
            "bubblewrap",
            "the program bwrap isn't there",
            "install bubblewrap: apt install bubblewrap, dnf install bubblewrap, pacman -S bubblewrap",
        ),
    }
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn namespaces() -> Finding {
    const NAME: &str = "user namespaces";
    if number("/proc/sys/user/max_user_namespaces") == Some(0) {
        return Finding::missing(NAME, "switched off", "sysctl user.max_user_namespaces=15000");
    }
    if number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0) {
        return Finding::missing(
            NAME,
            "only root may make them",
            "sysctl kernel.unprivileged_userns_clone=1",
        );
    }
    Finding::fine(NAME, "allowed")
}

/// Ubuntu lets only programs with a profile make user namespaces that are of use.
fn apparmor() -> Option<Finding> {
    let restricts = number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1);
    restricts.then(|| {
        Finding::note(
            "AppArmor",
            "restricts user namespaces to programs with a profile",
            "if the trial fails: give provost and bwrap a profile with `userns,`, or sysctl \
             kernel.apparmor_restrict_unprivileged_userns=0",
        )
    })
}

fn container() -> Option<Finding> {
    let is_one = ["/.dockerenv", "/run/.containerenv"].iter().any(|file| Path::new(file).exists());
    is_one.then(|| {
        Finding::note(
            "container",
            "this is one, which may forbid namespaces and mounts",
            "if the trial fails: the container is the boundary then; or start it with --security-opt seccomp=unconfined",
        )
    })
}

fn landlock() -> Finding {
    use landlock::{ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _};
    const NAME: &str = "Landlock";
    let has = |abi: ABI| {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        ruleset.handle_access(AccessFs::from_all(abi)).and_then(Ruleset::create).is_ok()
    };
    let newest = [ABI::V5, ABI::V3, ABI::V2, ABI::V1].into_iter().find(|abi| has(*abi));
    match newest {
        Some(abi) => Finding::fine(NAME, &format!("{abi:?} or newer")),
        None => Finding::note(
            NAME,
            "this kernel doesn't have it; what is mounted still confines",
            "use a kernel from 5.13 on with lsm=landlock",
        ),
    }
}
