//! The configuration of one node, as the engine's server reads it.

use std::path::Path;
use std::time::Duration;

use crate::plan::{ClusterPlan, NodePlan};

/// The longest effect that the engine's timeouts allow for. An effect that takes longer is begun again.
const EFFECT_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Partitions of a new cluster: how many keys can be worked on side by side by different nodes.
const PARTITIONS: u32 = 12;

/// Where a node has its files.
pub(crate) struct NodeFiles<'a> {
    /// The folder of its data; the server makes one with the node's name in it.
    pub(crate) data: &'a Path,
    /// The private key.
    pub(crate) identity: &'a Path,
}

/// The text of the file for `node` of `cluster`. Replication is that of a majority, so that of three nodes one may be
/// gone.
pub(crate) fn node_config(cluster: &ClusterPlan, node: &NodePlan, files: &NodeFiles<'_>) -> String {
    let text = |text: &str| format!("{text:?}");
    let path = |path: &Path| text(&path.to_string_lossy());
    let addresses = cluster
        .nodes
        .iter()
        .map(|node| text(&format!("http://127.0.0.1:{}/", node.fabric)))
        .collect::<Vec<_>>();
    let is_first = cluster.nodes.first() == Some(node);
    let effect_max = EFFECT_MAX.as_secs() + 60 * 60;
    let snapshots = cluster.snapshots.as_deref().map_or(String::new(), |bucket| {
        format!(
            "\n[worker.snapshots]\ndestination = {}\nsnapshot-interval-num-records = 10000\n",
            text(bucket)
        )
    });
    format!(
        r#"# Written by `provost cluster up` each time; changes are lost.
cluster-name = {name}
node-name = {node_name}
base-dir = {data}
roles = ["metadata-server", "log-server", "worker", "admin", "http-ingress"]
# Only the first node, and only once, may begin a cluster.
auto-provision = {provisions}
default-num-partitions = {PARTITIONS}
default-replication = {replication}
listen-mode = "tcp"
bind-address = "127.0.0.1:{fabric}"
advertised-address = "http://127.0.0.1:{fabric}/"
shutdown-timeout = "10s"
disable-telemetry = true
rocksdb-total-memory-size = "512 MiB"
log-filter = "warn,restate=info,octocrab=off"
log-format = "compact"
log-disable-ansi-codes = true

[metadata-client]
type = "replicated"
addresses = [{addresses}]

[bifrost]
default-provider = "replicated"

[admin]
bind-address = "127.0.0.1:{admin}"
advertised-address = "http://127.0.0.1:{admin}/"

[ingress]
bind-address = "127.0.0.1:{ingress}"
advertised-address = "http://127.0.0.1:{ingress}/"

[worker.invoker]
request-identity-private-key-pem-file = {identity}
# Longer than every effect: one that were cut short would be begun, and paid, again.
inactivity-timeout = "{effect_max}s"
abort-timeout = "{effect_max}s"
{snapshots}"#,
        name = text(&cluster.name),
        node_name = text(&node.name),
        data = path(files.data),
        provisions = is_first && !cluster.provisioned,
        replication = cluster.nodes.len() / 2 + 1,
        fabric = node.fabric,
        admin = node.admin,
        ingress = node.ingress,
        addresses = addresses.join(", "),
        identity = path(files.identity),
    )
}
