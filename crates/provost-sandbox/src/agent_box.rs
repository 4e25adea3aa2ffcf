//! The box of one agent: opened with its first program.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use provost_event::{SandboxMode, SandboxNetwork, SandboxPolicy};
use provost_harness::{AgentSandbox, GrantedFolder, SandboxRequest, ScratchFolder};
use provost_process::{BoxedCommand, Confinement, Launch, ProgramBox, run_helper};

use crate::covers::Covers;
use crate::denial::{denials, real};
use crate::linux::{BoxFolder, CANARY, GREETING, OpenBox, ProgramBoxParts, STEP, SharedParts};
use crate::probe::Probe;
use crate::proxy::{Denials, HostPattern, Inlet, Proxy, environment, serve};
use crate::sandbox::SandboxOptions;
use crate::{FileRules, Places, folders};

/// How long a trial may take.
const TRIAL_MAX: Duration = Duration::from_secs(10);

/// What all boxes of a process share.
#[derive(Debug)]
pub(crate) struct Shared {
    parts: SharedParts,
    places: Places,
    trial: OnceLock<Result<(), String>>,
    /// Boxes that need the covers.
    live: AtomicUsize,
    /// Serves the proxies.
    runtime: Mutex<Option<tokio::runtime::Runtime>>,
}

impl Shared {
    pub(crate) fn new(options: &SandboxOptions, probe: &Probe) -> Result<Self, String> {
        if let Some(obstacle) = probe.obstacle() {
            return Err(obstacle);
        }
        let bwrap = probe.bwrap.clone().ok_or("the program bwrap isn't there")?;
        let folder = options.places.state.join("sandbox");
        let made = folders::private(&folder).and_then(|()| {
            // What covers a file that isn't read: an empty one.
            std::fs::write(folder.join("empty"), "")?;
            folders::unreadable(&folder.join("unreadable"))?;
            remove_dead_boxes(&folder.join("boxes"));
            Covers::open(&folder.join("covers"))
        });
        let covers = made.map_err(|error| format!("{} can't be written: {error}", folder.display()))?;
        let parts = SharedParts { helper: options.helper.clone(), bwrap, folder, covers: Arc::new(covers) };
        Ok(Self {
            parts,
            places: options.places.clone(),
            trial: OnceLock::new(),
            live: AtomicUsize::new(0),
            runtime: Mutex::new(None),
        })
    }

    /// Whether a box can be made; tried once.
    pub(crate) fn tried(&self) -> Result<(), String> {
        self.trial.get_or_init(|| self.try_one().map_err(|error| error.to_string())).clone()
    }

    fn try_one(&self) -> io::Result<()> {
        let policy = SandboxPolicy { mode: SandboxMode::ReadOnly, ..SandboxPolicy::default() };
        let rules = FileRules::new(&policy, Path::new("/usr"), &self.places);
        let parts = ProgramBoxParts { policy: &policy, rules: &rules, shared: &self.parts };
        let opened = OpenBox::open(&parts, Arc::new(BoxFolder::make(&self.parts)?))?;
        let command = BoxedCommand {
            program: "true".into(),
            args: Vec::new(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            cwd: PathBuf::from("/usr"),
            descriptors: Vec::new(),
        };
        let command = opened.enclose(command, &parts)?;
        run_trial(command)
    }

    /// Serves a listener in a box until the handle is dropped.
    fn serve(&self, inlet: Inlet, listener: TcpListener) -> io::Result<Served> {
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if runtime.is_none() {
            let made = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name("sandbox-proxy")
                .enable_all()
                .build()?;
            *runtime = Some(made);
        }
        let runtime = runtime.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let task = runtime.spawn(async move {
            if let Err(error) = serve(inlet, listener).await {
                tracing::warn!(%error, "a way out of a sandbox ended");
            }
        });
        Ok(Served(task))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let runtime = self.runtime.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Removes the folders of boxes whose process is gone.
fn remove_dead_boxes(folder: &Path) {
    for found in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_dead = match std::fs::File::open(found.path().join("lock")) {
            Ok(lock) => lock.try_lock().is_ok(),
            // One that is just being made has no lock yet.
            Err(_) => found
                .metadata()
                .and_then(|facts| facts.modified())
                .is_ok_and(|at| at.elapsed().is_ok_and(|since| since > TRIAL_MAX)),
        };
        if is_dead {
            let _ = std::fs::remove_dir_all(found.path());
        }
    }
}

#[derive(Debug)]
struct Served(tokio::task::JoinHandle<()>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A listener of the host that greets whatever connects, until it is dropped.
struct Greeter {
    port: u16,
    is_over: Arc<AtomicBool>,
}

impl Greeter {
    fn new() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten().take_while(|_| !over.load(Ordering::Acquire)) {
                let _ = stream.write_all(GREETING);
            }
        });
        Ok(Self { port, is_over })
    }
}

impl Drop for Greeter {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // Wakes it.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// The box of one agent. Its folder is removed with it.
pub(crate) struct AgentBox(Arc<Inner>);

struct Inner {
    policy: SandboxPolicy,
    workspace: PathBuf,
    hosts: Vec<HostPattern>,
    shared: Arc<Shared>,
    opened: Mutex<Option<Arc<Opened>>>,
    denied: Arc<Denials>,
    folder: Arc<BoxFolder>,
    is_released: AtomicBool,
    granted: Mutex<Vec<GrantedFolder>>,
    /// The addresses of the host that are reached, with those inside.
    admitted: Mutex<HashMap<SocketAddr, (SocketAddr, Served)>>,
    checked: OnceLock<Result<(), String>>,
}

struct Opened {
    program_box: OpenBox,
    env: Vec<(String, String)>,
    _proxy: Option<Served>,
}

impl AgentBox {
    pub(crate) fn new(request: SandboxRequest<'_>, shared: Arc<Shared>) -> Result<Self, String> {
        let writes =
            std::iter::once(request.workspace).chain(request.policy.write.iter().map(PathBuf::as_path));
        if let Some(folder) = writes.into_iter().find(|folder| shared.parts.bwrap.starts_with(real(folder))) {
            let bwrap = shared.parts.bwrap.display();
            return Err(format!(
                "{bwrap} lies in {}, where the agent may write: work elsewhere, or install it elsewhere",
                folder.display()
            ));
        }
        let hosts = request.policy.allow_hosts.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        let folder = BoxFolder::make(&shared.parts)
            .map_err(|error| format!("the folder of a box can't be made: {error}"))?;
        shared.live.fetch_add(1, Ordering::AcqRel);
        Ok(Self(Arc::new(Inner {
            policy: request.policy.clone(),
            workspace: request.workspace.to_owned(),
            hosts,
            shared,
            opened: Mutex::default(),
            denied: Arc::default(),
            folder: Arc::new(folder),
            is_released: AtomicBool::new(false),
            granted: Mutex::default(),
            admitted: Mutex::default(),
            checked: OnceLock::new(),
        })))
    }

    /// Removes the covers, if no other box needs them and no program of this one runs.
    pub(crate) fn release(&self) {
        if Arc::strong_count(&self.0) == 1 {
            self.0.release();
        }
    }

    /// Whether it is the one that is asked for.
    pub(crate) fn is_for(&self, request: SandboxRequest<'_>) -> bool {
        self.0.policy == *request.policy && self.0.workspace == request.workspace
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.release();
    }
}

impl Inner {
    fn release(&self) {
        if !self.is_released.swap(true, Ordering::AcqRel)
            && self.shared.live.fetch_sub(1, Ordering::AcqRel) == 1
        {
            self.shared.parts.covers.remove();
        }
    }

    fn rules(&self) -> FileRules {
        let rules = FileRules::new(&self.policy, &self.workspace, &self.shared.places);
        let granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        FileRules { granted, ..rules }
    }

    fn opened(&self, parts: &ProgramBoxParts<'_>) -> io::Result<Arc<Opened>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = &*opened {
            return Ok(Arc::clone(opened));
        }
        let program_box = OpenBox::open(parts, Arc::clone(&self.folder))?;
        let listener = match self.policy.network {
            SandboxNetwork::Proxy => program_box.listen(&parts.shared.helper)?,
            SandboxNetwork::None | SandboxNetwork::Open => None,
        };
        let mut env = Vec::new();
        let proxy = match listener {
            None => None,
            Some(listener) => {
                env = environment(listener.local_addr()?.port(), &self.hosts);
                let proxy = Proxy { hosts: self.hosts.clone(), denials: Arc::clone(&self.denied) };
                Some(self.shared.serve(Inlet::Proxy(proxy), listener)?)
            }
        };
        let made = Arc::new(Opened { program_box, env, _proxy: proxy });
        *opened = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Where programs reach an address of the host.
    fn admit(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        let rules = self.rules();
        let parts = ProgramBoxParts { policy: &self.policy, rules: &rules, shared: &self.shared.parts };
        let opened = self.opened(&parts)?;
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((inside, _)) = admitted.get(&address) {
            return Ok(*inside);
        }
        let Some(listener) = opened.program_box.listen(&self.shared.parts.helper)? else {
            return Ok(address);
        };
        let inside = listener.local_addr()?;
        let served = self.shared.serve(Inlet::Address(address), listener)?;
        admitted.insert(address, (inside, served));
        Ok(inside)
    }

    /// Runs a program in the box that looks whether it holds.
    fn check(&self) -> io::Result<()> {
        let secret = self.shared.parts.folder.join("canary");
        std::fs::write(&secret, "sings")?;
        let host = Greeter::new()?;
        let port = if self.policy.network == SandboxNetwork::Open { 0 } else { host.port };
        let command = self.enclose(BoxedCommand {
            program: self.shared.parts.helper.clone().into_os_string(),
            args: vec![STEP.into(), CANARY.into(), port.to_string().into(), secret.into_os_string()],
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            cwd: self.workspace.clone(),
            descriptors: Vec::new(),
        })?;
        run_trial(command)
    }

    /// The environment in the box: a temporary folder, caches, the proxy, and what the policy hands on.
    fn environment(&self, command: &mut BoxedCommand, opened: &Opened, rules: &FileRules) {
        let mut set = vec![("TMPDIR".to_owned(), "/tmp".to_owned())];
        let absent = rules.caches.iter().filter(|cache| !cache.is_there);
        set.extend(absent.map(|cache| (cache.variable.to_owned(), cache.folder.display().to_string())));
        set.extend(opened.env.iter().cloned());
        let variables = &self.shared.places.variables;
        let handed =
            self.policy.env.iter().filter_map(|name| Some((name.clone(), variables.get(name)?.clone())));
        set.extend(handed);
        command.env.retain(|(name, _)| !set.iter().any(|(own, _)| name == own.as_str()));
        command.env.extend(set.into_iter().map(|(name, value)| (name.into(), value.into())));
    }
}

impl Inner {
    fn enclose_by(&self, rules: &FileRules, mut command: BoxedCommand) -> io::Result<BoxedCommand> {
        let parts = ProgramBoxParts { policy: &self.policy, rules, shared: &self.shared.parts };
        let opened = self.opened(&parts)?;
        self.environment(&mut command, &opened, rules);
        opened.program_box.enclose(command, &parts)
    }
}

impl ProgramBox for Inner {
    fn enclose(&self, command: BoxedCommand) -> io::Result<BoxedCommand> {
        self.enclose_by(&self.rules(), command)
    }
}

/// The box for one program that may use some folders besides.
#[derive(Debug)]
struct WidenedBox {
    inner: Arc<Inner>,
    granted: Vec<GrantedFolder>,
}

impl ProgramBox for WidenedBox {
    fn enclose(&self, command: BoxedCommand) -> io::Result<BoxedCommand> {
        let mut rules = self.inner.rules();
        rules.granted.extend(self.granted.iter().cloned());
        self.inner.enclose_by(&rules, command)
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBox").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

impl AgentSandbox for AgentBox {
    fn confinement(&self) -> Confinement {
        Confinement::Boxed(Arc::<Inner>::clone(&self.0))
    }

    fn confinement_with(&self, granted: Vec<GrantedFolder>) -> Confinement {
        Confinement::Boxed(Arc::new(WidenedBox { inner: Arc::clone(&self.0), granted }))
    }

    fn may_read(&self, path: &Path) -> Result<(), String> {
        let path = real(path);
        let rules = self.0.rules();
        rules.read_denied(&path).or_else(|| rules.is_private(&path)).map_or(Ok(()), Err)
    }

    fn may_write(&self, path: &Path) -> Result<(), String> {
        let path = real(path);
        let rules = self.0.rules();
        let denied = rules.read_denied(&path).or_else(|| rules.is_private(&path));
        denied.or_else(|| rules.write_denied(&path)).map_or(Ok(()), Err)
    }

    fn denials(&self, output: &str) -> Vec<String> {
        let mut all = self.0.denied.take();
        all.extend(denials(output, &self.0.rules(), self.0.policy.network));
        all
    }

    fn confines(&self) -> bool {
        true
    }

    fn policy(&self) -> Option<&SandboxPolicy> {
        Some(&self.0.policy)
    }

    fn scratch(&self) -> Option<ScratchFolder> {
        Some(ScratchFolder { outside: self.0.folder.temporary(), inside: PathBuf::from("/tmp") })
    }

    fn grant(&self, folder: GrantedFolder) {
        let mut granted = self.0.granted.lock().unwrap_or_else(PoisonError::into_inner);
        if !granted.contains(&folder) {
            granted.push(folder);
        }
    }

    fn admit(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        self.0.admit(address)
    }

    fn check(&self) -> Result<(), String> {
        self.0.checked.get_or_init(|| self.0.check().map_err(|error| error.to_string())).clone()
    }
}

/// Runs a step that tries whether something holds, and returns when it has ended.
fn run_trial(command: BoxedCommand) -> io::Result<()> {
    let launch = Launch {
        program: command.program,
        args: command.args,
        env: command.env,
        cwd: command.cwd,
        stdio: (),
        confinement: Confinement::Strongest,
    };
    run_helper(&launch, command.descriptors, TRIAL_MAX)
}
