//! The workspace's own commands: `cargo xtask COMMAND`.

mod approval_latency;
mod example;
mod gate;
mod kill_loop;
mod kill_matrix;
mod log_check;
mod overnight;
mod shell;
mod wire_check;

use std::path::Path;

use anyhow::{Result, bail};

const USAGE: &str = "\
cargo xtask COMMAND

  fix-the-bug       run the example: a scripted agent repairs a small project in target/fix-the-bug
  approval-latency [N]
                    how soon an approval from another process is acted on: median and 99th percentile of N (default 200)
  ci                check everything: format, lints, tests, documentation, the example, a short kill loop
  kill-loop [N]     kill -9 a run at N random moments (default 100), resume it each time, check its log
  kill-matrix [--scenario NAME] [--every K]
                    kill -9 runs before and after every transaction of theirs, resume each, check its log
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
        ["approval-latency"] => approval_latency::run(200),
        ["approval-latency", times] => approval_latency::run(times.parse()?),
        [approval_latency::WORKER, folder, times] => {
            approval_latency::work(Path::new(folder), times.parse()?)
        }
        ["ci"] => gate::ci(),
        ["kill-loop"] => kill_loop::run(100),
        ["kill-loop", times] => kill_loop::run(times.parse()?),
        ["kill-matrix", rest @ ..] => kill_matrix::run(rest),
        ["overnight", rest @ ..] => overnight::run(overnight::Options::read(rest)?),
        ["wire-check", rest @ ..] => wire_check::run(rest),
        [kill_matrix::CHILD, scenario, folder, point] => kill_matrix::child(scenario, folder, point),
        ["--help" | "-h" | "help"] | [] => {
            print!("{USAGE}");
            Ok(())
        }
        other => bail!("`cargo xtask {}` isn't known\n\n{USAGE}", other.join(" ")),
    }
}
