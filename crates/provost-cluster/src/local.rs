//! Starting, showing and ending a cluster on this machine.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use provost_process::{Confinement, IntoFile, Launch, ProcessIdentity, start_into_file};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::ClusterError;
use crate::config::{NodeFiles, node_config};
use crate::folder::{ClusterFolder, Member};
use crate::health::answers;
use crate::key::IdentityKey;
use crate::plan::{ClusterPlan, NodePlan, VERSION, WorkerPlan};
use crate::ports::{self, FreePorts};
use crate::process::{Leaving, end, running};
use crate::request::{Snapshots, UpRequest, WorkerProgram};

/// How long nodes and workers may take until they are ready.
const READY_MAX: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a node may take to end.
const NODE_GRACE: Duration = Duration::from_secs(15);

const INGRESS_HEALTH: &str = "/restate/health";
const ADMIN_HEALTH: &str = "/health";
const WORKER_HEALTH: &str = "/ready";

/// What a member of a cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A node of the engine.
    Node,
    /// A worker.
    Worker,
}

/// What happens while a cluster is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A member is being started.
    Starting(String),
    /// All members of this kind are ready.
    Ready(Role),
}

/// The result of [`LocalCluster::up`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The cluster.
    pub plan: ClusterPlan,
    /// The members that were started now; the others ran already.
    pub started: Vec<String>,
}

/// The result of [`LocalCluster::down`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// The members that were running.
    pub members: Vec<String>,
}

/// How a cluster is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClusterStatus {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The ingress of each node.
    pub ingress: Vec<String>,
    /// The admin API of each node.
    pub admin: Vec<String>,
    /// Its members.
    pub members: Vec<MemberStatus>,
}

/// How a member is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemberStatus {
    /// Its name.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// Its process, if it runs.
    pub pid: Option<u32>,
    /// Whether it answers as a healthy one.
    pub ready: bool,
    /// Its ports on 127.0.0.1: of a node those for other nodes, of the ingress and of the admin API; of a worker those
    /// that the engine calls and of its health endpoints.
    pub ports: Vec<u16>,
    /// Its log.
    pub log: PathBuf,
}

/// A cluster whose files are in one folder.
#[derive(Debug, Clone)]
pub struct LocalCluster {
    folder: ClusterFolder,
}

impl LocalCluster {
    /// The one in `folder`, which needn't be there yet.
    #[must_use]
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder: ClusterFolder(folder) }
    }

    /// What it is made of; `None` if none was started, or it was removed.
    ///
    /// # Errors
    /// When that can't be read.
    pub fn plan(&self) -> Result<Option<ClusterPlan>, ClusterError> {
        self.folder.plan()
    }

    /// Where it keeps large bodies.
    #[must_use]
    pub fn blobs(&self) -> PathBuf {
        self.folder.blobs()
    }

    /// Starts what of it isn't running, and waits until all is ready. Called again it changes nothing.
    ///
    /// # Errors
    /// When a member can't be started or isn't ready in time. What runs then goes on running; [`down`](Self::down) ends it.
    ///
    /// # Cancellation
    /// What was started goes on running, and the next call waits for it.
    pub async fn up(
        &self,
        request: &UpRequest<'_>,
        mut progress: impl FnMut(Progress),
    ) -> Result<Started, ClusterError> {
        if ProcessIdentity::own().is_none() {
            return Err(ClusterError::Unsupported);
        }
        let _lock = self.folder.lock()?;
        let mut plan = self.plan_for(request)?;
        let mut started = Vec::new();
        loop {
            for node in &plan.nodes {
                if self.node(&node.name).is_none() {
                    progress(Progress::Starting(node.name.clone()));
                    self.start_node(&plan, node, request).await?;
                    started.push(node.name.clone());
                }
            }
            let ready = self.ready(plan.nodes.iter().map(|node| Awaited::node(node, self)).collect()).await;
            if !was_ending(&ready, &started) {
                break ready?;
            }
        }
        progress(Progress::Ready(Role::Node));
        if !plan.provisioned {
            plan.provisioned = true;
            self.folder.keep_plan(&plan)?;
        }
        if let Some(workers) = request.workers {
            self.end_surplus(&mut plan, workers).await?;
        }
        loop {
            for worker in &plan.workers {
                if self.worker(&worker.name).is_none() {
                    progress(Progress::Starting(worker.name.clone()));
                    self.start_worker(&plan, worker, &request.worker).await?;
                    started.push(worker.name.clone());
                }
            }
            let workers = plan.workers.iter().map(|worker| Awaited::worker(worker, self));
            let ready = self.ready(workers.collect()).await;
            if !was_ending(&ready, &started) {
                break ready?;
            }
        }
        progress(Progress::Ready(Role::Worker));
        Ok(Started { plan, started })
    }

    /// Ends all of it: the workers, which get `drain` to finish what they do, then the nodes. Data and ports are kept.
    ///
    /// # Errors
    /// When a process doesn't end.
    pub async fn down(&self, drain: Duration) -> Result<Ended, ClusterError> {
        if !self.folder.0.is_dir() {
            return Ok(Ended::default());
        }
        let _lock = self.folder.lock()?;
        let mut workers = Vec::new();
        let mut nodes = Vec::new();
        for Member { name, role } in self.folder.members()? {
            match role {
                Role::Node => {
                    nodes.extend(self.node(&name).map(|process| Leaving { member: name, process }));
                }
                Role::Worker => workers.extend(self.leaving_worker(&name)),
            }
        }
        let members = workers.iter().chain(&nodes).map(|one| one.member.clone()).collect();
        let mut stubborn = end(workers, drain).await;
        stubborn.extend(end(nodes, NODE_GRACE).await);
        if stubborn.is_empty() {
            Ok(Ended { members })
        } else {
            Err(ClusterError::NotEnded(stubborn.join(", ")))
        }
    }

    /// Ends all of it and removes its data: the runs in it are gone.
    ///
    /// # Errors
    /// As [`down`](Self::down), and when a file can't be removed.
    pub async fn remove(&self, drain: Duration) -> Result<Ended, ClusterError> {
        let ended = self.down(drain).await?;
        if self.folder.has_plan() {
            self.folder.remove()?;
        }
        Ok(ended)
    }

    /// How it is; `None` if there is none.
    ///
    /// # Errors
    /// When its files can't be read.
    pub async fn status(&self) -> Result<Option<ClusterStatus>, ClusterError> {
        let Some(plan) = self.folder.plan()? else { return Ok(None) };
        let mut members = Vec::new();
        for node in &plan.nodes {
            let ready =
                answers(node.ingress, INGRESS_HEALTH).await && answers(node.admin, ADMIN_HEALTH).await;
            members.push(self.member(&node.name, Role::Node, (self.node(&node.name), ready), &node.ports()));
        }
        for worker in &plan.workers {
            let ready = answers(worker.health, WORKER_HEALTH).await;
            let found = (self.worker(&worker.name), ready);
            members.push(self.member(&worker.name, Role::Worker, found, &worker.ports()));
        }
        Ok(Some(ClusterStatus {
            folder: self.folder.0.clone(),
            ingress: plan.ingress(),
            admin: plan.admin(),
            name: plan.name,
            members,
        }))
    }

    fn member(
        &self,
        name: &str,
        role: Role,
        (process, ready): (Option<ProcessIdentity>, bool),
        ports: &[u16],
    ) -> MemberStatus {
        MemberStatus {
            name: name.to_owned(),
            role,
            pid: process.map(|process| process.pid),
            // Another program may answer at its port.
            ready: ready && process.is_some(),
            ports: ports.to_vec(),
            log: self.folder.log(name),
        }
    }

    fn node(&self, name: &str) -> Option<ProcessIdentity> {
        running(&self.folder.node_argument(name))
    }

    fn worker(&self, name: &str) -> Option<ProcessIdentity> {
        running(&self.folder.worker_argument(name))
    }

    fn leaving_worker(&self, name: &str) -> Option<Leaving> {
        Some(Leaving { member: name.to_owned(), process: self.worker(name)? })
    }

    /// What the cluster is made of from now on.
    fn plan_for(&self, request: &UpRequest<'_>) -> Result<ClusterPlan, ClusterError> {
        let known = self.folder.plan()?;
        let has = known.as_ref().map(|plan| plan.nodes.len());
        if let (Some(has), Some(wanted)) = (has, request.nodes)
            && has != wanted
        {
            return Err(ClusterError::OtherSize { folder: self.folder.0.clone(), has, wanted });
        }
        let nodes = request.nodes.or(has).unwrap_or(1);
        let had = known.as_ref().map(|plan| plan.workers.len());
        let workers = request.workers.or(had).unwrap_or(1);
        let mut plan = match known.clone() {
            Some(plan) => plan,
            None => {
                let key = IdentityKey::new()?;
                self.folder.keep_identity(&key.pem)?;
                ClusterPlan {
                    version: VERSION,
                    name: format!("provost-{:08x}", fastrand::u32(..)),
                    identity_key: key.public,
                    provisioned: false,
                    snapshots: None,
                    nodes: Vec::new(),
                    shared: 0,
                    workers: Vec::new(),
                }
            }
        };
        match &request.snapshots {
            Snapshots::AsBefore => {}
            Snapshots::Off => plan.snapshots = None,
            Snapshots::To(bucket) => plan.snapshots = Some(bucket.clone()),
        }
        let mut ports = FreePorts::besides(plan.ports());
        if plan.shared == 0 {
            plan.shared = ports.take()?;
        }
        for number in plan.nodes.len()..nodes {
            let name = format!("node-{}", number + 1);
            let (fabric, ingress, admin) = (ports.take()?, ports.take()?, ports.take()?);
            plan.nodes.push(NodePlan { name, fabric, ingress, admin });
        }
        for number in plan.workers.len()..workers {
            let name = format!("worker-{}", number + 1);
            let (listen, health) = (ports.take()?, ports.take()?);
            plan.workers.push(WorkerPlan { name, listen, health });
        }
        if known.as_ref() != Some(&plan) {
            self.folder.keep_plan(&plan)?;
        }
        Ok(plan)
    }

    /// Ends the workers beyond `workers`.
    async fn end_surplus(&self, plan: &mut ClusterPlan, workers: usize) -> Result<(), ClusterError> {
        let surplus = plan.workers.split_off(workers.min(plan.workers.len()));
        if surplus.is_empty() {
            return Ok(());
        }
        let leaving = surplus.iter().filter_map(|worker| self.leaving_worker(&worker.name)).collect();
        let stubborn = end(leaving, READY_MAX).await;
        if !stubborn.is_empty() {
            return Err(ClusterError::NotEnded(stubborn.join(", ")));
        }
        self.folder.keep_plan(plan)
    }

    async fn start_node(
        &self,
        plan: &ClusterPlan,
        node: &NodePlan,
        request: &UpRequest<'_>,
    ) -> Result<(), ClusterError> {
        ports::free(&node.name, &node.ports()).await?;
        let (data, identity) = (self.folder.0.join("data"), self.folder.identity());
        let files = NodeFiles { data: &data, identity: &identity };
        let text = node_config(plan, node, &files);
        self.folder.replace(&ClusterFolder::config_name(&node.name), &text)?;
        let launch = Launch {
            program: request.server.into(),
            args: vec!["--no-logo".into(), self.folder.node_argument(&node.name)],
            env: request.env.clone(),
            cwd: self.folder.0.clone(),
            stdio: IntoFile { file: self.folder.open_log(&node.name)? },
            confinement: Confinement::Strongest,
        };
        start(&node.name, &launch)
    }

    async fn start_worker(
        &self,
        plan: &ClusterPlan,
        worker: &WorkerPlan,
        program: &WorkerProgram,
    ) -> Result<(), ClusterError> {
        ports::free(&worker.name, &worker.ports()).await?;
        let own = [
            format!("--name={}", worker.name).into(),
            format!("--listen=127.0.0.1:{}", worker.listen).into(),
            format!("--shared=127.0.0.1:{}", plan.shared).into(),
            format!("--health=127.0.0.1:{}", worker.health).into(),
            self.folder.worker_argument(&worker.name),
        ];
        let launch = Launch {
            program: program.program.clone().into(),
            args: program.args.iter().cloned().chain(own).collect(),
            env: program.env.clone(),
            cwd: program.cwd.clone(),
            stdio: IntoFile { file: self.folder.open_log(&worker.name)? },
            confinement: Confinement::Strongest,
        };
        start(&worker.name, &launch)
    }

    /// Waits until all of these are ready.
    async fn ready(&self, mut awaited: Vec<Awaited>) -> Result<(), ClusterError> {
        let until = Instant::now() + READY_MAX;
        loop {
            let mut left = Vec::new();
            for mut one in awaited {
                // A process shows no arguments at the moment in which it becomes another program.
                let is_missed = running(&one.argument).is_none();
                let was_missed = std::mem::replace(&mut one.is_missed, is_missed);
                if is_missed && was_missed {
                    let log = self.folder.log(&one.name);
                    let tail = self.folder.tail(&one.name);
                    return Err(ClusterError::Died { member: one.name, log, tail });
                }
                if is_missed || !one.is_ready().await {
                    left.push(one);
                }
            }
            let Some(first) = left.first() else { return Ok(()) };
            if Instant::now() >= until {
                return Err(ClusterError::NotReady {
                    member: first.name.clone(),
                    seconds: READY_MAX.as_secs(),
                    log: self.folder.log(&first.name),
                    tail: self.folder.tail(&first.name),
                });
            }
            awaited = left;
            sleep(LOOK_EVERY).await;
        }
    }
}

/// A member that is to be ready.
struct Awaited {
    name: String,
    argument: OsString,
    /// The ports and paths that must answer.
    asked: Vec<(u16, &'static str)>,
    /// Whether it wasn't found at the last look.
    is_missed: bool,
}

impl Awaited {
    fn node(node: &NodePlan, cluster: &LocalCluster) -> Self {
        let asked = vec![(node.ingress, INGRESS_HEALTH), (node.admin, ADMIN_HEALTH)];
        Self {
            name: node.name.clone(),
            argument: cluster.folder.node_argument(&node.name),
            asked,
            is_missed: false,
        }
    }

    fn worker(worker: &WorkerPlan, cluster: &LocalCluster) -> Self {
        let argument = cluster.folder.worker_argument(&worker.name);
        Self {
            name: worker.name.clone(),
            argument,
            asked: vec![(worker.health, WORKER_HEALTH)],
            is_missed: false,
        }
    }

    async fn is_ready(&self) -> bool {
        for (port, path) in &self.asked {
            if !answers(*port, path).await {
                return false;
            }
        }
        true
    }
}

/// Whether a member that seemed to run was only about to end: killed a moment ago, say.
fn was_ending(ready: &Result<(), ClusterError>, started: &[String]) -> bool {
    matches!(ready, Err(ClusterError::Died { member, .. }) if !started.contains(member))
}

fn start(member: &str, launch: &Launch<IntoFile>) -> Result<(), ClusterError> {
    let started = start_into_file(launch);
    started.map(drop).map_err(|source| ClusterError::Start { member: member.to_owned(), source })
}
