//! What must be true in the morning: the logs, the effects, the money.
#![expect(clippy::indexing_slicing, reason = "a JSON value indexed by a missing name is null")]

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::Ordering;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::Work;
use crate::log_check;

/// Returns the report of the night.
pub(super) fn check(work: &Work) -> Result<String> {
    let lines = said(work, &["export", "last"])?.lines().map(str::to_owned).collect::<Vec<_>>();
    let logs = log_check::check(&lines)?;
    let ledger = fs::read_to_string(work.folder.join("work/ledger.txt")).unwrap_or_default();
    let mut times = BTreeMap::<&str, u32>::new();
    ledger.lines().for_each(|line| *times.entry(line).or_default() += 1);
    for (line, times) in &times {
        ensure!(*times == 1, "`{line}` was written {times} times");
    }
    let written =
        lines.iter().filter(|line| line.contains("tool_finished") && line.contains("\"shell\"")).count();
    let money = money(work)?;
    let shown: Value = serde_json::from_str(&said(work, &["show", "last", "--json"])?)?;
    ensure!(shown["status"] == "completed", "its status is {}", shown["status"]);
    let requests = work.provider.sent.requests.lock().map(|requests| requests.clone()).unwrap_or_default();
    let mut phases = BTreeMap::<String, usize>::new();
    requests.iter().for_each(|phase| *phases.entry(format!("{phase:?}")).or_default() += 1);
    Ok(format!(
        "{}: completed after {} kills and {} suspensions; {} calls ({} with unknown effect), {} effects, none twice \
         ({written} results of a shell)\n  requests: {phases:?}\n  {money}\n  suspended: {:#?}",
        work.args.join(" "),
        work.kills,
        work.suspended.len(),
        logs.calls,
        logs.unknown,
        times.len(),
        work.suspended
    ))
}

/// All usage that is charged as reported was sent, and all usage that was sent is charged as reported, or marked.
fn money(work: &Work) -> Result<String> {
    let cost: Value = serde_json::from_str(&said(work, &["cost", "last", "--json"])?)?;
    let total = &cost["total"];
    let count = |name: &str| total[name].as_u64().unwrap_or_default();
    let all = ["input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"].map(count);
    let all = all.into_iter().sum::<u64>();
    let estimated = count("estimated_tokens");
    let unconfirmed = count("unconfirmed_tokens");
    let sent = work.provider.sent.tokens.load(Ordering::Relaxed);
    let answers = work.provider.sent.answers.load(Ordering::Relaxed);
    let reported = all.saturating_sub(estimated + unconfirmed);
    let told = format!(
        "{answers} whole answers with {sent} tokens were sent; {all} are charged, of them {reported} as reported, \
         {estimated} estimated, {unconfirmed} unconfirmed"
    );
    ensure!(reported <= sent && sent <= all, "{told}");
    ensure!(work.kills > 0 || reported == sent, "{told}");
    Ok(told)
}

fn said(work: &Work, args: &[&str]) -> Result<String> {
    let output = work.provost(args).output()?;
    ensure!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}
