//! What a cluster is made of, as its folder records it.

use serde::{Deserialize, Serialize};

/// The version of the file.
pub(crate) const VERSION: u32 = 1;

/// The members of a cluster, with their ports on 127.0.0.1. They keep them for as long as its data is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterPlan {
    /// The version of this form.
    pub version: u32,
    /// The cluster's name, which no other cluster has.
    pub name: String,
    /// The public key by which workers know the engine's requests, `publickeyv1_…`.
    pub identity_key: String,
    /// Whether all nodes have been ready once.
    pub provisioned: bool,
    /// The bucket that the nodes write snapshots to, `s3://BUCKET/PREFIX`, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<String>,
    /// The engine's nodes.
    pub nodes: Vec<NodePlan>,
    /// The port that all workers listen on together, for decisions.
    pub shared: u16,
    /// The workers.
    pub workers: Vec<WorkerPlan>,
}

/// A node of the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePlan {
    /// Its name, `node-1`.
    pub name: String,
    /// The port for the other nodes.
    pub fabric: u16,
    /// The port of the ingress.
    pub ingress: u16,
    /// The port of the admin API.
    pub admin: u16,
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerPlan {
    /// Its name, `worker-1`.
    pub name: String,
    /// The port that the engine calls.
    pub listen: u16,
    /// The port of its health endpoints.
    pub health: u16,
}

impl ClusterPlan {
    /// The ingress of each node, as addresses.
    #[must_use]
    pub fn ingress(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("http://127.0.0.1:{}", node.ingress)).collect()
    }

    /// The admin API of each node, as addresses.
    #[must_use]
    pub fn admin(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("http://127.0.0.1:{}", node.admin)).collect()
    }

    /// All ports of all members.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u16> {
        let nodes = self.nodes.iter().flat_map(NodePlan::ports);
        nodes.chain([self.shared]).chain(self.workers.iter().flat_map(WorkerPlan::ports))
    }
}

impl NodePlan {
    pub(crate) const fn ports(&self) -> [u16; 3] {
        [self.fabric, self.ingress, self.admin]
    }
}

impl WorkerPlan {
    pub(crate) const fn ports(&self) -> [u16; 2] {
        [self.listen, self.health]
    }
}
