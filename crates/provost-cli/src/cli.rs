//! The arguments of commands.

mod act;
mod cluster;
mod external;
mod look;
mod manage;
mod mcp;
mod run;
mod sandbox;
mod segment;
mod serve;
mod services;
mod store;

pub(crate) use act::{
    ActArgs, ApprovalsArgs, ApproveArgs, CancelArgs, DenyArgs, GoalCommand, GoalShowArgs, ReprioritizeArgs,
    SayArgs,
};
pub(crate) use cluster::{
    ClusterCommand, ClusterDownArgs, ClusterInstallArgs, ClusterStatusArgs, ClusterUpArgs, SnapshotsArg,
    WorkerArgs,
};
pub(crate) use external::{
    AttachArgs, ChannelArg, ExecArgs, GatewayArgs, ProfileCommand, ProfileMarkArgs, ProfileRecordArgs,
    ProfileTestArgs, ReplayArgs,
};
pub(crate) use look::{
    CostArgs, CostGroup, DiffArgs, ExplainArgs, LogsArgs, PsArgs, ShowArgs, StatusGroup, Whose,
};
pub(crate) use manage::{
    CheckArgs, ExportArgs, ImportArgs, InitArgs, ManArgs, ModelsArgs, ModelsCommand, SchemaArgs, TrustArgs,
};
pub(crate) use mcp::{
    AcpArgs, McpAddArgs, McpCommand, McpListArgs, McpLoginArgs, McpServeArgs, McpServerArgs, McpTestArgs,
    McpTrustArgs,
};
pub(crate) use run::{
    BudgetArgs, DemoArgs, FlowCheckArgs, FlowCommand, FlowRunArgs, RunArgs, ShownArgs, WorkArgs,
};
pub(crate) use sandbox::{
    PolicyCommand, PolicyTestArgs, SandboxCommand, SandboxExplainArgs, SandboxPolicyArgs, SandboxRunArgs,
};
pub(crate) use segment::{ForkArgs, ResumeArgs};
pub(crate) use serve::{ServeArgs, TopArgs};
pub(crate) use services::{BackgroundArgs, ServicesArgs, ServicesCommand, SuperviseArgs, UnattendedArgs};
pub(crate) use store::{BackupArgs, DoctorArgs, PruneArgs};

const RUN_HELP: &str = "The run: its id, the beginning of one, or `last`, the newest of this folder";
const AGENT_HELP: &str = "The run, as its id, the beginning of one, or `last`, the newest of this folder; or one of its agents: RUN.3, last.3";
