//! `cargo xtask ci`: everything that must hold, in the order that fails fastest.

use std::time::Instant;

use anyhow::Result;
use xtask::shell::{TESTS_ARE_BUILT, cargo, must};

use crate::{example, in_dev, needs, packages, wire_check};

/// The benchmarks are a workspace of their own; what they share is built once.
const BENCHMARKS: [&str; 4] = ["--manifest-path", "bench/Cargo.toml", "--target-dir", "target"];

/// So is the example of a backend outside of Provost, which must pass the public suites.
const OWN_BACKEND: [&str; 4] = ["--manifest-path", "examples/backend/Cargo.toml", "--target-dir", "target"];

/// The part of `ci` after the tests.
pub(crate) const AFTER_TESTS: &str = "ci-after-tests";

/// Checks everything.
pub(crate) fn ci() -> Result<()> {
    eprintln!(
        "Checks everything: 30 to 60 minutes the first time, most of it for building and for the tests."
    );
    // The tests build this program, too, in the same place.
    let again = std::env::current_exe()?;
    step("what the tests need", || needs::programs().and_then(|()| needs::restate_server()))?;
    let mut nextest = needs::nextest()?;
    step("format", || must(cargo().args(["fmt", "--all", "--check"])))?;
    step("packages", packages::pack)?;
    step("lints", || {
        let lints = ["--all-targets", "--locked", "--", "-D", "warnings"];
        must(cargo().args(["clippy", "--workspace"]).args(lints))?;
        must(cargo().arg("clippy").args(BENCHMARKS).args(lints))?;
        must(cargo().arg("clippy").args(OWN_BACKEND).args(lints))
    })?;
    let run = ["nextest", "run", "--profile", "ci", "--workspace", "--locked", "--no-fail-fast"];
    step("tests", || must(nextest.args(run)))?;
    must(std::process::Command::new(again).arg(AFTER_TESTS).env(TESTS_ARE_BUILT, "1"))
}

/// What uses the programs that the tests were built with.
pub(crate) fn after_tests() -> Result<()> {
    step("demo", example::fix_the_bug)?;
    step("a backend of an embedder", || {
        must(cargo().arg("test").args(OWN_BACKEND).args(["--locked", "--quiet"]))
    })?;
    step("wire check", wire_check::if_possible)?;
    step("examples in the documentation", || {
        must(cargo().args(["test", "--workspace", "--doc", "--locked", "--quiet"]))
    })?;
    step("documentation", || {
        let doc = ["doc", "--workspace", "--no-deps", "--locked", "--quiet"];
        // As docs.rs builds it, but on the stable toolchain.
        must(cargo().args(doc).env("RUSTDOCFLAGS", "--cfg docsrs -D warnings"))
    })?;
    step("kill loop", || in_dev(&["kill-loop", "10"]))?;
    step("chaos", || in_dev(&["chaos", "--minutes", "1"]))?;
    step("overnight", || in_dev(&["overnight", "--minutes", "0.5", "--kill"]))
}

fn step(name: &str, check: impl FnOnce() -> Result<()>) -> Result<()> {
    eprintln!("== {name}");
    let started = Instant::now();
    check()?;
    eprintln!("== {name}: passed in {:.1} s", started.elapsed().as_secs_f32());
    Ok(())
}
