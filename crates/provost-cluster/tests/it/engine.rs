//! With Restate's server, where it is installed: `PROVOST_ENGINE_SERVER` names it, or it is in `PATH`.

use std::path::PathBuf;

use provost_cluster::find_server;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::stage::Stage;

fn server() -> Option<PathBuf> {
    let named = std::env::var_os("PROVOST_ENGINE_SERVER").map(PathBuf::from);
    named.or_else(|| find_server(&std::env::var_os("PATH")?))
}

async fn asked(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

#[tokio::test]
async fn three_nodes_are_one_cluster_that_outlives_the_first() {
    let Some(server) = server() else {
        eprintln!("skipped: the engine's server isn't installed");
        return;
    };
    let stage = Stage::new().with_server(server);
    let plan = stage.up(3, 0).await.expect("it starts").plan;
    let second = plan.nodes.get(1).expect("a node");
    let health = asked(second.admin, "/cluster-health").await;
    assert!(health.contains(&plan.name), "{health}");
    let log = std::fs::read_to_string(stage.folder.path().join("cluster/node-1.log")).expect("a log");
    assert!(log.contains(&plan.identity_key), "the engine has another public key than {}", plan.identity_key);
    // The queue experiment must be off.
    let features = asked(second.admin, "/version").await;
    assert!(features.contains("\"vqueues\":false"), "{features}");
    stage.kill("node-1").await;
    assert_eq!(stage.up(3, 0).await.expect("it comes back").started, ["node-1"]);
    assert_eq!(stage.down().await.len(), 3);
}
