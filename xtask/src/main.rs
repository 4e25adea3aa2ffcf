//! The workspace's own commands: `cargo xtask COMMAND`.

mod example;
mod gate;
mod needs;
mod packages;
mod recording;
mod wire_check;

use anyhow::{Result, bail};
use xtask::shell::{cargo, must, program_in, tests_are_built};

const USAGE: &str = "\
cargo xtask COMMAND

  fix-the-bug       run the demo: a scripted agent repairs a small project in target/fix-the-bug
  ci                check everything: format, lints, packages, tests, documentation, the demo, a short kill loop;
                    installs what the tests need, or says what is missing
  restate-server    install the engine of the cluster's tests into target/tools/restate, with npm
  release-check     package every crate and build it from its package, as its users would; takes long
  recording         record the demo anew at a terminal: docs/demo.cast and docs/demo.svg, which the README shows

  approval-latency [N]
                    how soon an approval from another process is acted on: median and 99th percentile of N (default 200)
  chaos [--minutes M] [--seed SEED] [--runs N] [--sub-agents N] [--model-seconds S] [--kill-every-seconds S] [--program PATH]
                    kill -9 nodes and workers of a cluster on this machine for M minutes (default 5) while N runs (default 12)
                    work on it, each with N sub-agents (default 4), half of which and one more at a time; check that each run
                    ends once, no entry is lost or doubled, no limit passed, nothing done twice unsaid; a model takes S
                    seconds for an answer (default 0), and a process is killed every S seconds (default 5, at random between
                    0.4 and 1.6 times that); PATH is a `provost` to try in place of a debug build
  kill-loop [N]     kill -9 a run at N random moments (default 100), resume it each time, check its log
  kill-matrix [--scenario NAME] [--every K] [--on-engine]
                    kill -9 runs before and after every transaction of theirs, resume each, check its log; with --on-engine
                    the worker that holds the run, before and after each effect and post
  overnight [--minutes N] [--kill]
                    a night's work (default 20 minutes) with a provider that is overloaded, unreachable, slow, silent, without
                    a key, without money; with --kill also killed at random moments; check logs, effects and money
  wire-check [--recordings DIR]
                    validate every kind of request to a provider against its own SDK's types; with DIR read the
                    answers recorded there (VCR cassettes, JSONL) and compare them with a plain reading
";

fn main() -> Result<()> {
    let args = std::env::args().skip(1).collect::<Vec<_>>();
    let args = args.iter().map(String::as_str).collect::<Vec<_>>();
    match args.as_slice() {
        ["fix-the-bug"] => example::fix_the_bug(),
        ["ci"] => gate::ci(),
        [gate::AFTER_TESTS] => gate::after_tests(),
        ["restate-server"] => needs::restate_server(),
        ["release-check"] => packages::release_check(),
        ["recording"] => recording::recording(),
        ["approval-latency" | "chaos" | "kill-loop" | "kill-matrix" | "overnight", ..] => in_dev(&args),
        ["wire-check", rest @ ..] => wire_check::run(rest),
        ["--help" | "-h" | "help"] | [] => {
            print!("{USAGE}");
            Ok(())
        }
        other => bail!("`cargo xtask {}` isn't known\n\n{USAGE}", other.join(" ")),
    }
}

/// Runs a command that needs the workspace's crates.
fn in_dev(args: &[&str]) -> Result<()> {
    if tests_are_built() {
        return must(std::process::Command::new(program_in("debug", "provost-dev")).args(args));
    }
    must(cargo().args(["run", "--package", "provost-dev", "--locked", "--"]).args(args))
}
