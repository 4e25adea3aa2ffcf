//! The runs that work on the cluster.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::cluster::{Cluster, said};
use super::verify::{Checked, Crowd, check};

/// Steps of each agent, each with an effect that can be counted afterwards.
pub(super) const STEPS: usize = 4;
/// Tokens of a run, more than it takes.
pub(super) const TOKENS_MAX: u64 = 2_000_000;

/// How often a run that a crash loop has suspended is resumed.
const RESUMES_MAX: u32 = 50;

/// The agents of a run: the first one, and those that it asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Agents {
    pub(super) subs: usize,
}

impl Agents {
    /// How many of those asked for may work at a time: not all of them, so that some wait for their turn.
    pub(super) fn at_a_time(self) -> usize {
        self.subs / 2 + 1
    }

    /// Model calls that follow on one another: that of the first agent for the others, those of the others in turns, and
    /// its own.
    pub(super) fn calls_in_a_row(self) -> usize {
        1 + (STEPS + 1) * (self.subs.div_ceil(self.at_a_time()) + 1)
    }
}

/// All runs, those that have ended and were checked included.
pub(super) struct Fleet<'a> {
    cluster: &'a Cluster,
    folder: PathBuf,
    agents: Agents,
    model_takes: Duration,
    started: usize,
    open: Vec<Work>,
    checked: Checked,
}

/// A run that hasn't ended.
struct Work {
    run: String,
    folder: PathBuf,
    resumes: u32,
}

impl Work {
    fn named(&self) -> String {
        format!("run {} in {}", self.run, self.folder.display())
    }
}

impl<'a> Fleet<'a> {
    pub(super) fn new(cluster: &'a Cluster, folder: &Path, agents: Agents, model_takes: Duration) -> Self {
        let folder = folder.join("work");
        Self {
            cluster,
            folder,
            agents,
            model_takes,
            started: 0,
            open: Vec::new(),
            checked: Checked::default(),
        }
    }

    /// Starts a run if fewer than `wanted` are open.
    pub(super) fn fill(&mut self, wanted: usize) -> Result<()> {
        if self.open.len() >= wanted {
            return Ok(());
        }
        self.started += 1;
        let folder = self.folder.join(self.started.to_string());
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("agent.yaml"), script(self.agents, self.model_takes))?;
        fs::write(folder.join("provost.toml"), settings(self.agents))?;
        let args = ["run", "--detach", "Keep the ledger."];
        let mut command = self.cluster.provost(&args);
        let run = said(&args, command.current_dir(&folder).output()?).context("a run isn't started")?;
        self.open.push(Work { run: run.trim().to_owned(), folder, resumes: 0 });
        Ok(())
    }

    /// Checks those that have ended, and resumes those that a crash loop has suspended.
    pub(super) fn look(&mut self) -> Result<()> {
        let listed = self.cluster.must(&["ps", "--all", "--json"])?;
        let mut left = Vec::new();
        for mut work in std::mem::take(&mut self.open) {
            match status_of(&listed, &work.run)?.as_str() {
                "completed" => {
                    let lines = self.cluster.must(&["logs", &work.run, "--json"])?;
                    let checked = check(&lines, &work.folder, self.agents);
                    if checked.is_err() {
                        fs::write(work.folder.join("log.jsonl"), &lines)?;
                    }
                    self.checked.add(checked.with_context(|| work.named())?);
                }
                "running" | "interrupted" => left.push(work),
                _ if work.resumes < RESUMES_MAX => {
                    work.resumes += 1;
                    self.resume(&work)?;
                    left.push(work);
                }
                other => anyhow::bail!("run {} is {other}", work.run),
            }
        }
        self.open = left;
        Ok(())
    }

    /// As the page does: a process that only asks for it.
    fn resume(&self, work: &Work) -> Result<()> {
        self.cluster.must(&["resume", &work.run, "--detach"]).map(drop)
    }

    pub(super) fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn left(&self) -> String {
        self.open.iter().map(|work| work.run.as_str()).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn told(&self) -> String {
        let Checked { runs, entries, agents, unknown, .. } = &self.checked;
        let Crowd { most, average } = self.checked.crowd();
        format!(
            "{runs} runs with {agents} agents ended once each, {most} agents at a time at most, {average} on average: \
             {entries} entries, 0 lost, 0 doubled; no limit was passed; {unknown} calls with unknown effect, all said so"
        )
    }
}

/// The status of a run in what `ps --json` lists.
fn status_of(listed: &str, run: &str) -> Result<String> {
    for line in listed.lines() {
        let value: serde_json::Value = serde_json::from_str(line)?;
        if value.get("run").and_then(serde_json::Value::as_str) == Some(run) {
            let status = value.get("status").and_then(serde_json::Value::as_str);
            return Ok(status.context("a status")?.to_owned());
        }
    }
    anyhow::bail!("run {run} isn't listed")
}

fn settings(agents: Agents) -> String {
    format!(
        "[agent]\nmodel = \"script:agent.yaml\"\n\n[budget]\ntokens = {TOKENS_MAX}\n\n[spawn]\nmax_agents = {}\n",
        agents.at_a_time()
    )
}

/// The first agent asks for the others at once, each of which writes a line at each step, and then writes its own.
fn script(agents: Agents, model_takes: Duration) -> String {
    let mut text = format!("delay_ms: {}\nanswers:\n  - tools:\n", model_takes.as_millis());
    for number in 0..agents.subs {
        text.push_str(&format!("      - spawn_agent: {{ goal: 'Write as writer-{number}.' }}\n"));
    }
    text.push_str(&steps("root", "  "));
    text.push_str("agents:\n");
    for number in 0..agents.subs {
        text.push_str(&format!(
            "  - goal: writer-{number}.\n    answers:\n{}",
            steps(&format!("writer-{number}"), "      ")
        ));
    }
    text
}

fn steps(writer: &str, indent: &str) -> String {
    let mut text = String::new();
    for step in 0..STEPS {
        text.push_str(&format!(
            "{indent}- text: step {step}\n{indent}  tools:\n{indent}    - list_dir: {{}}\n{indent}    - shell: {{ command: 'echo {writer}-{step} >> effects.txt; sleep 0.2' }}\n"
        ));
    }
    text.push_str(&format!("{indent}- text: 'done. VERDICT: PASS'\n"));
    text
}
