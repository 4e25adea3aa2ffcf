//! `cargo xtask ci`: everything that must hold, in the order that fails fastest.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::shell::{cargo, must};
use crate::{example, kill_loop, overnight, wire_check};

/// Kills in the short version of the kill loop.
const KILLS: u32 = 10;

/// The short version of the night.
const NIGHT: Duration = Duration::from_secs(30);

/// The benchmarks are a workspace of their own; what they share is built once.
const BENCHMARKS: [&str; 4] = ["--manifest-path", "bench/Cargo.toml", "--target-dir", "target"];

/// So is the example of a backend outside of Provost, which must pass the public suites.
const OWN_BACKEND: [&str; 4] = ["--manifest-path", "examples/backend/Cargo.toml", "--target-dir", "target"];

/// Checks everything.
pub(crate) fn ci() -> Result<()> {
    step("format", || must(cargo().args(["fmt", "--all", "--check"])))?;
    step("lints", || {
        let lints = ["--all-targets", "--locked", "--", "-D", "warnings"];
        must(cargo().args(["clippy", "--workspace"]).args(lints))?;
        must(cargo().arg("clippy").args(BENCHMARKS).args(lints))?;
        must(cargo().arg("clippy").args(OWN_BACKEND).args(lints))
    })?;
    step("example", example::fix_the_bug)?;
    step("tests", || must(cargo().args(["nextest", "run", "--workspace", "--locked", "--no-fail-fast"])))?;
    step("a backend of an embedder", || {
        must(cargo().arg("test").args(OWN_BACKEND).args(["--locked", "--quiet"]))
    })?;
    step("wire check", wire_check::if_possible)?;
    step("examples in the documentation", || {
        must(cargo().args(["test", "--workspace", "--doc", "--locked", "--quiet"]))
    })?;
    step("documentation", || {
        let doc = ["doc", "--workspace", "--no-deps", "--locked", "--quiet"];
        must(cargo().args(doc).env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    step("kill loop", || kill_loop::run(KILLS))?;
    step("overnight", || overnight::run(overnight::Options { length: NIGHT, kills: true }))
}

fn step(name: &str, check: impl FnOnce() -> Result<()>) -> Result<()> {
    eprintln!("== {name}");
    let started = Instant::now();
    check()?;
    eprintln!("== {name}: passed in {:.1} s", started.elapsed().as_secs_f32());
    Ok(())
}
