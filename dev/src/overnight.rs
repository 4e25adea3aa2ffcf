//! `cargo xtask overnight`: a night of work with a provider that has all kinds of failures: a run with sub-agents
//! and a goal, and a workflow beside it, unattended, with random kills if requested. At the end the logs, the
//! effects and the money are checked from outside.

mod agent;
mod provider;
mod verify;

use std::cell::Cell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use provider::{Night, Phase, Provider};
use xtask::shell::{built_provost, workspace};

const HOST: &str = "provider.night.test";

/// The options of the night.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub(crate) length: Duration,
    /// Whether the programs are killed at random moments.
    pub(crate) kills: bool,
}

impl Options {
    /// Of the command line: `[--minutes N] [--kill]`.
    pub(crate) fn read(args: &[&str]) -> Result<Self> {
        let mut options = Self { length: Duration::from_secs(20 * 60), kills: false };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match *arg {
                "--kill" => options.kills = true,
                "--minutes" => {
                    let minutes: f64 = args.next().context("--minutes needs a number")?.parse()?;
                    ensure!(minutes > 0.0 && minutes < 1_000.0, "--minutes: {minutes} makes no night");
                    options.length = Duration::from_secs_f64(minutes * 60.0);
                }
                other => bail!("`{other}` isn't known; there are --minutes N and --kill"),
            }
        }
        Ok(options)
    }
}

/// Runs the night.
pub(crate) fn run(options: Options) -> Result<()> {
    let program = built_provost(&[])?;
    let seed = std::env::var("OVERNIGHT_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    let folder = workspace().join("target").join("overnight");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let names = Names::new(&folder)?;
    let night = Night::of(options.length, names.is_possible);
    let mut works = Vec::new();
    for (name, args) in [
        ("tree", vec!["run".to_owned(), format!("{}root.", agent::NAMED)]),
        ("flow", vec!["flow".to_owned(), "run".to_owned(), "flow.toml".to_owned()]),
    ] {
        let provider = Provider::start(night)?;
        works.push(Work::new(&program, &folder.join(name), args, (provider, names.host()))?);
    }
    let passed = pass(night, options, seed, &mut works, &names);
    passed.with_context(|| format!("seed {seed}; what is left of it: {}", folder.display()))?;
    for work in &works {
        let told = verify::check(work).with_context(|| format!("seed {seed}: {}", work.folder.display()))?;
        println!("{told}");
    }
    if !names.is_possible {
        println!(
            "names were never unknown: this machine allows no mount namespace, so connections were refused instead"
        );
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// Runs both until they are done: resumes them after a kill, and once a missing key or credit is restored.
fn pass(night: Night, options: Options, seed: u64, works: &mut [Work], names: &Names) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(seed);
    let deadline = Instant::now() + options.length * 2 + Duration::from_secs(180);
    // One check each 20 ms, and three kills in two parts of the night.
    let odds = 1.5 * 0.02 / night.part().as_secs_f64();
    while works.iter().any(|work| !work.is_done) {
        ensure!(Instant::now() < deadline, "it isn't done: {}", left(works));
        names.tell(night.phase())?;
        for work in works.iter_mut().filter(|work| !work.is_done) {
            work.look(night.phase(), names)?;
            if options.kills && random.f64() < odds {
                work.kill()?;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn left(works: &[Work]) -> String {
    let left = works.iter().filter(|work| !work.is_done);
    left.map(|work| format!("{}: {}", work.folder.display(), work.last_output()))
        .collect::<Vec<_>>()
        .join("; ")
}

/// One run, in whichever process works on it now.
struct Work {
    program: PathBuf,
    folder: PathBuf,
    args: Vec<String>,
    provider: Provider,
    child: Option<Child>,
    is_done: bool,
    kills: u32,
    /// How it was suspended, each time.
    suspended: Vec<String>,
}

const SETTINGS: &str = "\
[agent]
model = \"night/worker\"

[budget]
usd = 100

[spawn]
max_agents = 3
";

const GOAL: &str = "
[goal]
condition = \"The root agent has written into ledger.txt.\"
judge = \"night/judge\"
";

const FLOW: &str = "\
[flow]
name = \"books\"

[[flow.steps]]
name = \"first\"
goal = \"Keep the ledger as first.\"

[[flow.steps]]
name = \"second\"
goal = \"Keep the ledger as second.\"

[[flow.steps]]
name = \"sum\"
needs = [\"first\", \"second\"]
goal = \"Keep the ledger as sum.\"
";

impl Work {
    fn new(
        program: &Path,
        folder: &Path,
        args: Vec<String>,
        (provider, host): (Provider, &str),
    ) -> Result<Self> {
        fs::create_dir_all(folder.join("work"))?;
        fs::create_dir_all(folder.join(".config/provost"))?;
        let is_flow = args.first().is_some_and(|arg| arg == "flow");
        let settings = if is_flow { SETTINGS.to_owned() } else { format!("{SETTINGS}{GOAL}") };
        fs::write(folder.join("work/provost.toml"), settings)?;
        fs::write(folder.join("work/flow.toml"), FLOW)?;
        let port = provider.port;
        let user = format!(
            "[providers.night]\nbase_url = \"http://{host}:{port}/v1\"\napi_key_env = \"NIGHT_KEY\"\n\n\
             [models.\"night/worker\"]\nwindow_tokens = 200_000\ninput_usd = 1\noutput_usd = 10\n\n\
             [models.\"night/judge\"]\nwindow_tokens = 200_000\ninput_usd = 1\noutput_usd = 10\n"
        );
        fs::write(folder.join(".config/provost/config.toml"), user)?;
        Ok(Self {
            program: program.to_owned(),
            folder: folder.to_owned(),
            args,
            provider,
            child: None,
            is_done: false,
            kills: 0,
            suspended: Vec::new(),
        })
    }

    /// A command of the program, in its folder, without a terminal.
    fn provost(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args);
        self.dressed(command)
    }

    fn dressed(&self, mut command: Command) -> Command {
        command.current_dir(self.folder.join("work")).stdin(Stdio::null());
        command.env("PROVOST_STATE_DIR", self.folder.join("state")).env("HOME", &self.folder);
        command.env("NIGHT_KEY", "night-key-0123456789").env_remove("XDG_CONFIG_HOME");
        command
    }

    /// Starts it if it isn't running, and records how it ended.
    fn look(&mut self, phase: Phase, names: &Names) -> Result<()> {
        let Some(child) = &mut self.child else {
            let is_waited_for = matches!(phase, Phase::WrongKey | Phase::UsedUp);
            let was_suspended = !self.suspended.is_empty();
            if !(is_waited_for && was_suspended) {
                self.start(names)?;
            }
            return Ok(());
        };
        let Some(status) = child.try_wait()? else { return Ok(()) };
        self.child = None;
        let said = self.last_output();
        match status.code() {
            Some(0) => self.is_done = true,
            Some(4) => self.suspended.push(said),
            // A kill that came after the end.
            Some(2)
                if self.kills > 0 && (said.contains("completed") || said.contains("all steps of run")) =>
            {
                self.is_done = true;
            }
            None => {}
            Some(code) => bail!("it ended with {code}: {said}"),
        }
        Ok(())
    }

    fn start(&mut self, names: &Names) -> Result<()> {
        let has_begun = self.provost(&["show", "last"]).output()?.status.success();
        let args = if has_begun { vec!["resume".to_owned(), "last".to_owned()] } else { self.args.clone() };
        let errors = File::options().create(true).append(true).open(self.folder.join("stderr"))?;
        let mut command = self.dressed(names.command(&self.program, &args));
        self.child = Some(command.stdout(Stdio::null()).stderr(errors).spawn()?);
        Ok(())
    }

    fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
            self.kills += 1;
        }
        Ok(())
    }

    /// The end of its output.
    fn last_output(&self) -> String {
        let said = fs::read(self.folder.join("stderr")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let lines = said.lines().rev().take(4).collect::<Vec<_>>();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }
}

/// The resolution of the provider's name, which can be unknown for a while: a hosts file of the programs' own.
/// Needs a mount namespace; without one names are always known.
struct Names {
    hosts: PathBuf,
    services: PathBuf,
    is_possible: bool,
    is_known: Cell<bool>,
}

impl Names {
    fn new(folder: &Path) -> Result<Self> {
        let hosts = folder.join("hosts");
        let services = folder.join("nsswitch.conf");
        fs::write(&services, "hosts: files\npasswd: files\ngroup: files\n")?;
        let mut names = Self { hosts, services, is_possible: true, is_known: Cell::new(false) };
        names.tell(Phase::Well)?;
        let can = names.command(Path::new("true"), &[]).stderr(Stdio::null()).status();
        names.is_possible = can.is_ok_and(|status| status.success());
        Ok(names)
    }

    fn host(&self) -> &'static str {
        if self.is_possible { HOST } else { "127.0.0.1" }
    }

    fn tell(&self, phase: Phase) -> Result<()> {
        let is_known = phase != Phase::Unresolved;
        if self.is_known.replace(is_known) != is_known {
            let known = format!("127.0.0.1 localhost {HOST}\n");
            fs::write(&self.hosts, if is_known { &known } else { "127.0.0.1 localhost\n" })?;
        }
        Ok(())
    }

    /// `program` with this hosts file.
    fn command(&self, program: &Path, args: &[String]) -> Command {
        if !self.is_possible {
            let mut command = Command::new(program);
            command.args(args);
            return command;
        }
        let script = "mount --bind \"$1\" /etc/hosts && mount --bind \"$2\" /etc/nsswitch.conf && shift 2 && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--", "sh", "-c", script, "sh"]).arg(&self.hosts).arg(&self.services);
        command.arg(program).args(args);
        command
    }
}
