//! A cluster of Restate nodes and Provost workers on this machine, for trying and for tests.
//!
//! [`LocalCluster`] starts the processes, tells how they are, and ends them. Everything is in one folder: the ports and
//! names ([`ClusterPlan`]), the nodes' configuration, data and logs. No process id is recorded: a process of the cluster
//! is one that was started with the argument that names its file in the folder, so that what a killed command has
//! started is found like everything else. Linux only.

mod config;
mod error;
mod folder;
mod health;
mod key;
mod local;
mod plan;
mod ports;
mod process;
mod request;
mod server;

pub use error::ClusterError;
pub use local::{ClusterStatus, Ended, LocalCluster, MemberStatus, Progress, Role, Started};
pub use plan::{ClusterPlan, NodePlan, WorkerPlan};
pub use request::{Snapshots, UpRequest, WorkerProgram};
pub use server::{ENGINE_VERSION, SERVER_PROGRAM, find_server, installed_server, npm_package};
