//! Where runs are kept: the store, and files beside it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use provost_backend::{Damage, EmbeddedBackend};
use provost_cluster::LocalCluster;
use provost_config::{Folders, Settings, Skills, TrustStore, home_folder};
use provost_event::RunId;
use provost_external::{Drivers, DriversOptions};
use provost_harness::{
    AgentHarness, Backend, BackendError, HarnessDeps, MaskedPaths, ModelGateway, Models, NoPower, Observers,
    Power, Sandbox, ServiceStarter, Services, SystemClock, confine_own_git,
};
use provost_hooks::{ProgramHooks, ProgramHooksOptions};
use provost_mcp_client::McpServers;
use provost_sandbox::{LocalSandbox, Places, SandboxOptions};
use provost_sqlite::SqliteStore;
use provost_tools::{BackgroundJobs, Jobs, Shell, Terminal, UseSkill, builtin};

use crate::engine::{EngineSetup, local_cluster};
use crate::{EngineConnection, Notice, Refusal, RunContext, RuntimeError, SeenFile, Variables, external};

const SERVER_SOCKET: &str = "server.sock";
const SERVER_TOKEN: &str = "server.token";
/// What stands before these names where runs are kept in an engine.
const ENGINE_SERVER: &str = "engine-";
const SERVER_KEYS: &str = "server-keys";
/// The folder with what users were told of runs.
const NOTIFIED: &str = "notified";
/// Which runs the user has looked at.
const SEEN: &str = "seen";
const DATABASE: &str = "provost.db";
const TRANSCRIPTS: &str = "transcripts";
const OBSERVERS: &str = "observers";
const LONG_TEXTS: &str = "hook-texts";
const WORKTREES: &str = "worktrees";
/// The folder where the guards of running programs are written down.
const GUARDS: &str = "guards";
const TERMINALS: &str = "terminals";
const LIVE: &str = "live";
/// The folder with the logs of agents' background commands.
const JOBS: &str = "jobs";

/// The folder with the records and logs of services.
const SERVICES: &str = "services";

const PROGRAM: &str = "provost";
/// The folder with the engine's server, where it was installed.
const ENGINE_PROGRAM: &str = "engine";

/// The command of the program that supervises a service. Its argument is the path of the service's record.
pub const SUPERVISE: &str = "supervise-service";

/// Where runs are kept.
pub struct StateDir {
    folder: PathBuf,
    /// Where agents get worktrees of their own.
    worktrees: PathBuf,
    /// The engine that keeps the runs, if the store in the folder doesn't.
    engine: Option<EngineSetup>,
    report: fn(&Notice),
}

impl StateDir {
    /// The folder that `settings` or the platform say. `report` gets what the user should be told.
    #[must_use]
    pub fn new(settings: &Settings, folders: &Folders, report: fn(&Notice)) -> Self {
        let folder = settings.state_dir.clone().unwrap_or_else(|| folders.state.clone());
        let worktrees = settings.engine.worktrees.clone().unwrap_or_else(|| folder.join(WORKTREES));
        Self { folder, worktrees, engine: None, report }
    }

    /// The same, where runs are kept in the engine that `settings` name, if they do. `variables` have what its access needs.
    #[must_use]
    pub fn with_engine(mut self, settings: &Settings, variables: &Variables) -> Self {
        self.engine = EngineSetup::of(&settings.engine, &self.folder, variables);
        self
    }

    /// Where the engine is that keeps the runs; `None` if the store in this folder does.
    #[must_use]
    pub fn engine(&self) -> Option<String> {
        self.engine.as_ref().map(EngineSetup::url)
    }

    /// A way to the engine on which runs can be served.
    ///
    /// # Errors
    /// When the settings name none, or it can't be reached.
    pub async fn connect(&self) -> Result<EngineConnection, RuntimeError> {
        match &self.engine {
            Some(engine) => engine.connect().await,
            None => {
                Err(Refusal::new("no engine is set", "give --engine restate://HOST:PORT, or set engine.url")
                    .into())
            }
        }
    }

    /// The cluster on this machine.
    #[must_use]
    pub fn cluster(&self) -> LocalCluster {
        local_cluster(&self.folder)
    }

    /// The folder for what is installed for that cluster.
    #[must_use]
    pub fn engine_program(&self) -> PathBuf {
        self.folder.join(ENGINE_PROGRAM)
    }

    /// The skills that agents in `workspace` may use.
    ///
    /// # Errors
    /// When what the user trusts can't be read.
    pub fn skills(&self, folders: &Folders, workspace: &Path) -> Result<Skills, RuntimeError> {
        Ok(Skills::find(&folders.user_file, workspace, &self.trust())?)
    }

    /// What the user trusts.
    pub fn trust(&self) -> TrustStore {
        TrustStore::new(&self.folder)
    }

    /// Opens the backend in it; makes the folder if needed.
    ///
    /// # Errors
    /// When that can't be done.
    pub async fn open(&self) -> Result<Arc<dyn Backend>, RuntimeError> {
        match &self.engine {
            Some(engine) => engine.follow().await,
            None => Ok(self.open_store()?),
        }
    }

    /// The same, to import and remove runs, which its store does itself.
    ///
    /// # Errors
    /// As [`open`](Self::open); also where runs are kept in an engine.
    pub fn open_store(&self) -> Result<Arc<EmbeddedBackend>, RuntimeError> {
        self.must_be_store()?;
        let path = self.folder.join(DATABASE);
        let open = || self.backend_over(SqliteStore::open(&path)?);
        Ok(opened(open().map_err(|source| self.not_opened(source))?))
    }

    /// Opens the backend in it to look, also where nothing can be written; makes the folder if needed and possible.
    ///
    /// # Errors
    /// When there is nothing that can be read.
    pub async fn open_to_read(&self) -> Result<Arc<dyn Backend>, RuntimeError> {
        match &self.engine {
            Some(engine) => engine.follow().await,
            None => Ok(opened(self.read_only()?)),
        }
    }

    /// The same, to show logs: of a damaged one the part before the damage, and then an error.
    ///
    /// # Errors
    /// As [`open_to_read`](Self::open_to_read).
    pub async fn open_to_show(&self) -> Result<Arc<dyn Backend>, RuntimeError> {
        match &self.engine {
            Some(engine) => engine.follow().await,
            None => Ok(opened(self.read_only()?.noting_damage())),
        }
    }

    fn read_only(&self) -> Result<EmbeddedBackend, RuntimeError> {
        let path = self.folder.join(DATABASE);
        let open = || {
            // The reason why it can't be written is more useful than why it can't be read.
            let store = SqliteStore::open(&path)
                .or_else(|error| SqliteStore::open_to_read(&path).map_err(|_| error))?;
            self.backend_over(store)
        };
        open().map_err(|source| self.not_opened(source))
    }

    fn not_opened(&self, source: BackendError) -> RuntimeError {
        RuntimeError::Store { folder: self.folder.clone(), source }
    }

    /// A backend over a store; reports what the store has lost.
    fn backend_over(&self, store: SqliteStore) -> Result<EmbeddedBackend, BackendError> {
        if let Some(loss) = store.loss()? {
            (self.report)(&Notice::StoreLoss(loss.to_string()));
        }
        EmbeddedBackend::new(store, Arc::new(SystemClock))
    }

    /// The database.
    ///
    /// # Errors
    /// When runs are kept in an engine.
    pub fn database(&self) -> Result<PathBuf, RuntimeError> {
        self.must_be_store()?;
        Ok(self.folder.join(DATABASE))
    }

    fn must_be_store(&self) -> Result<(), Refusal> {
        let Some(engine) = &self.engine else { return Ok(()) };
        let what = format!(
            "this works on the store of this machine, and runs are kept in the engine {}",
            engine.url()
        );
        let hint =
            "`export` writes a run of the engine to a file; docs/cluster.md says how an engine is backed up";
        Err(Refusal::new(what, hint))
    }

    /// Bytes of the database.
    pub fn bytes(&self) -> u64 {
        std::fs::metadata(self.folder.join(DATABASE)).map_or(0, |facts| facts.len())
    }

    /// Removes a run's files beside the store: transcripts for hooks, recordings, reports on observers. Returns
    /// their bytes.
    pub fn remove_files_of(&self, run: RunId) -> u64 {
        let folders =
            [TRANSCRIPTS, OBSERVERS, TERMINALS, LIVE, JOBS, NOTIFIED].map(|name| self.folder.join(name));
        let files = folders.iter().map(|folder| remove_files(folder, run)).sum::<u64>();
        files.saturating_add(self.services().forget_ended_of_run(run))
    }

    /// The one that the record of a service is in.
    #[must_use]
    pub fn of_service(record: &Path, report: fn(&Notice)) -> Option<Self> {
        let folder = record.parent()?.parent()?.to_owned();
        Some(Self { worktrees: folder.join(WORKTREES), folder, engine: None, report })
    }

    /// The services that agents have started.
    #[must_use]
    pub fn services(&self) -> Services {
        Services::in_folder(self.folder.join(SERVICES))
    }

    /// Has the guards of this process recorded, which isn't one that works on runs.
    pub fn keep_ledger(&self) {
        provost_process::keep_ledger(self.folder.join(GUARDS));
    }

    /// Where agents get worktrees of their own.
    pub fn worktrees(&self) -> PathBuf {
        self.worktrees.clone()
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A server over the runs of an engine isn't the one over those of this machine.
    fn of_server(&self, name: &str) -> PathBuf {
        let prefix = if self.engine.is_some() { ENGINE_SERVER } else { "" };
        self.folder.join(format!("{prefix}{name}"))
    }

    /// The Unix socket of a server over these runs.
    pub fn server_socket(&self) -> PathBuf {
        self.of_server(SERVER_SOCKET)
    }

    /// The file with that server's token, while it runs.
    pub fn server_token(&self) -> PathBuf {
        self.of_server(SERVER_TOKEN)
    }

    /// Where a server keeps idempotency keys.
    pub fn server_keys(&self) -> PathBuf {
        self.of_server(SERVER_KEYS)
    }

    /// Which runs the user has looked at.
    #[must_use]
    pub fn seen(&self) -> SeenFile {
        SeenFile::at(self.folder.join(SEEN))
    }

    /// Where files about the terminals of external programs are kept.
    pub fn terminals(&self) -> PathBuf {
        self.folder.join(TERMINALS)
    }

    /// Where processes tell on sockets what the models of their runs are writing.
    #[must_use]
    pub fn live(&self) -> PathBuf {
        self.folder.join(LIVE)
    }

    /// Where is kept how observers fared.
    pub fn observers(&self) -> PathBuf {
        self.folder.join(OBSERVERS)
    }

    /// Ends what a killed Provost has left below guards that were stopped, and has the guards of this process
    /// recorded.
    fn end_leftovers(&self) {
        let guards = self.folder.join(GUARDS);
        match provost_process::end_leftovers(&guards) {
            Ok(0) => {}
            Ok(count) => (self.report)(&Notice::LeftoversEnded { count }),
            Err(error) => (self.report)(&Notice::LeftoversUnknown(error.to_string())),
        }
        provost_process::keep_ledger(guards);
    }

    /// The sandbox of this machine, whose files are in this folder. The running program must answer its steps
    /// ([`provost_sandbox::run_step_if_asked`]).
    pub fn sandbox(&self, variables: Variables) -> LocalSandbox {
        LocalSandbox::new(SandboxOptions {
            helper: std::env::current_exe().unwrap_or_default(),
            places: self.places(variables),
        })
    }

    /// The user and the folders that the rules of sandboxes are made for.
    pub fn places(&self, variables: Variables) -> Places {
        Places { home: home_folder(), state: self.folder.clone(), variables }
    }

    /// A harness over `backend` with the built-in tools, these models, and programs as hooks.
    pub fn harness(&self, backend: Arc<dyn Backend>, models: Models, around: RunContext) -> AgentHarness {
        self.end_leftovers();
        let programs = ProgramHooks::new(ProgramHooksOptions {
            clock: Arc::new(SystemClock),
            spill: Some(self.folder.join(LONG_TEXTS)),
            header_env: around.header_env,
            redactor: Arc::clone(&around.redactor),
            extra_env: around.hook_env,
        });
        let power: Arc<dyn Power> = match around.power {
            Some(power) => Arc::new(power),
            None => Arc::new(NoPower),
        };
        let gateway = around.programs.gateway;
        let gateway = gateway.map(|setup| setup.gateway(Arc::clone(&backend), Arc::clone(&around.redactor)));
        let masked = Arc::new(MaskedPaths::of_user().and(around.hidden).and([self.folder.clone()]));
        let drivers = Drivers::new(DriversOptions {
            folder: self.terminals(),
            records: around.programs.records,
            env: external::environment(),
            passed: around.programs.passed,
            profiles: around.programs.profiles,
            gateway: gateway.map(|gateway| Arc::new(gateway) as Arc<dyn ModelGateway>),
            masked: Arc::clone(&masked),
            private: Arc::default(),
            streams: around.streams,
        });
        let jobs = BackgroundJobs::in_folder(self.folder.join(JOBS));
        let services = ServiceStarter {
            services: self.services(),
            // Where the program doesn't know its own path, it is looked up as the user's shell does.
            program: std::env::current_exe().unwrap_or_else(|_| PROGRAM.into()),
            args: vec![SUPERVISE.into()],
            keep: around.keep_services,
        };
        let shell = Shell::new().with_jobs(jobs.clone()).with_variables(around.env.clone());
        let tools = builtin()
            .with(Jobs::new(jobs).with_services(services.services.clone()))
            .with(shell.with_services(services))
            .with(Terminal::new().with_variables(around.env))
            .with(UseSkill::new(around.skills));
        let sandbox: Arc<dyn Sandbox> = Arc::new(self.sandbox(around.variables));
        let tools = tools.and(around.mcp.registry(&McpServers::new(Arc::clone(&sandbox))));
        if around.boxes_git {
            confine_own_git(&sandbox);
        }
        let told = (self.folder.join(NOTIFIED), Arc::clone(&around.redactor), self.report);
        // The process that performs the effects tells of them, once.
        let observers = match backend.performs_here() {
            true => around.notifying.observed(around.observers, Arc::clone(&backend), told),
            false => Observers::new(),
        };
        AgentHarness::new(HarnessDeps {
            external: Arc::new(drivers),
            callback: around.callback,
            observers,
            hook_programs: Arc::new(programs),
            power,
            redactor: around.redactor,
            sandbox,
            transcripts: Some(self.folder.join(TRANSCRIPTS)),
            masked,
            ..HarnessDeps::new(backend, models, tools)
        })
    }
}

/// The backend that this process has opened.
static OPENED: OnceLock<Arc<EmbeddedBackend>> = OnceLock::new();

fn opened(backend: EmbeddedBackend) -> Arc<EmbeddedBackend> {
    let backend = Arc::new(backend);
    // A command opens one. Were it to open another, the next process to open the store would settle that one.
    let _ = OPENED.set(Arc::clone(&backend));
    backend
}

/// Prepares the store that this process has opened for copying. Returns what of it couldn't be read.
pub async fn leave_store() -> Vec<Damage> {
    let Some(backend) = OPENED.get() else { return Vec::new() };
    // Where it can't be written, it is left with its log of writes.
    let _ = backend.settle().await;
    backend.noted_damage()
}

/// Removes a run's files, found by their names, from a folder and the folders in it. Returns their bytes.
fn remove_files(folder: &Path, run: RunId) -> u64 {
    let Ok(found) = std::fs::read_dir(folder) else { return 0 };
    let mut bytes = 0_u64;
    for entry in found.flatten() {
        let Ok(facts) = entry.metadata() else { continue };
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(&run.to_string()));
        if facts.is_dir() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-')) {
            // All of it is the run's, or an agent's of it.
            let held = folder_bytes(&entry.path());
            if std::fs::remove_dir_all(entry.path()).is_ok() {
                bytes = bytes.saturating_add(held);
            }
        } else if facts.is_dir() {
            bytes = bytes.saturating_add(remove_files(&entry.path(), run));
        } else if rest.is_some_and(|rest| rest.starts_with(['.', '-']))
            && std::fs::remove_file(entry.path()).is_ok()
        {
            bytes = bytes.saturating_add(facts.len());
        }
    }
    bytes
}

/// The bytes of the files in a folder.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => folder_bytes(&entry.path()),
        Ok(facts) => facts.len(),
        Err(_) => 0,
    });
    bytes.sum()
}
