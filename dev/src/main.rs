//! What `cargo xtask` hands on because it needs the workspace's crates.

mod approval_latency;
mod chaos;
mod kill_loop;
mod kill_matrix;
mod log_check;
mod overnight;
mod recording;

use std::path::Path;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let args = std::env::args().skip(1).collect::<Vec<_>>();
    let args = args.iter().map(String::as_str).collect::<Vec<_>>();
    match args.as_slice() {
        ["approval-latency"] => approval_latency::run(200),
        ["approval-latency", times] => approval_latency::run(times.parse()?),
        [approval_latency::WORKER, folder, times] => {
            approval_latency::work(Path::new(folder), times.parse()?)
        }
        ["chaos", rest @ ..] => chaos::run(&chaos::Options::read(rest)?),
        ["kill-loop"] => kill_loop::run(100),
        ["kill-loop", times] => kill_loop::run(times.parse()?),
        ["kill-matrix", rest @ ..] => kill_matrix::run(rest),
        ["overnight", rest @ ..] => overnight::run(overnight::Options::read(rest)?),
        ["recording", folder] => recording::record(Path::new(folder)),
        [kill_matrix::CHILD, scenario, folder, point] => kill_matrix::child(scenario, folder, point),
        other => bail!("`{}` isn't known; `cargo xtask` lists the commands", other.join(" ")),
    }
}
