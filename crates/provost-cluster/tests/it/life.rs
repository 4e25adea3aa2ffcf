//! Starting and ending, with stand-ins for the programs.

use std::net::TcpListener;

use provost_cluster::{ClusterError, Snapshots};

use crate::stage::Stage;

#[tokio::test]
async fn starting_twice_starts_nothing_twice_and_ending_leaves_nothing() {
    let stage = Stage::new();
    let first = stage.up(3, 2).await.expect("it starts");
    assert_eq!(first.started, ["node-1", "node-2", "node-3", "worker-1", "worker-2"]);
    let pids = stage.pids().await;
    assert!(pids.iter().all(Option::is_some) && stage.status().await.members.iter().all(|one| one.ready));
    let second = stage.up(3, 2).await.expect("it runs");
    assert!(second.started.is_empty(), "{second:?}");
    assert_eq!((second.plan, stage.pids().await), (first.plan, pids));
    assert_eq!(stage.down().await.len(), 5);
    assert!(stage.pids().await.iter().all(Option::is_none));
    assert!(stage.down().await.is_empty());
}

#[tokio::test]
async fn what_was_killed_is_started_again_at_the_same_ports() {
    let stage = Stage::new();
    let before = stage.up(3, 1).await.expect("it starts").plan;
    stage.kill("node-2").await;
    stage.kill("worker-1").await;
    let again = stage.up(None, None).await.expect("it starts again");
    assert_eq!(again.started, ["node-2", "worker-1"]);
    assert_eq!(again.plan, before);
}

#[tokio::test]
async fn what_ends_while_it_is_waited_for_is_started_again() {
    let stage = Stage::new();
    stage.up(1, 1).await.expect("it starts");
    for (member, pid) in ["node-1", "worker-1"].into_iter().zip(stage.pids().await) {
        let signal = |name: &str| {
            let pid = pid.expect("it runs").to_string();
            let status = std::process::Command::new("kill").args(["-s", name, &pid]).status();
            assert!(status.is_ok_and(|status| status.success()));
        };
        // It is there, and answers nothing: as one is that was killed and hasn't gone yet.
        signal("STOP");
        let again = async {
            tokio::task::yield_now().await;
            signal("KILL");
        };
        let (again, ()) = tokio::join!(stage.up(None, None), again);
        assert_eq!(again.expect("it starts again").started, [member]);
    }
}

#[tokio::test]
async fn workers_are_added_and_taken_away_and_nodes_are_not() {
    let stage = Stage::new();
    stage.up(1, 1).await.expect("it starts");
    assert_eq!(stage.up(1, 3).await.expect("more workers").started, ["worker-2", "worker-3"]);
    assert!(stage.up(1, 1).await.expect("fewer workers").started.is_empty());
    assert_eq!(stage.pids().await.len(), 2);
    let error = stage.up(3, 1).await.expect_err("other nodes");
    assert!(matches!(error, ClusterError::OtherSize { has: 1, wanted: 3, .. }), "{error}");
    assert_eq!(stage.down().await, ["worker-1", "node-1"]);
}

#[tokio::test]
async fn only_the_first_node_may_begin_a_cluster_and_only_once() {
    let stage = Stage::new();
    stage.up(3, 0).await.expect("it starts");
    let config = |node| {
        let file = stage.folder.path().join("cluster").join(format!("node-{node}.toml"));
        std::fs::read_to_string(file).expect("a configuration")
    };
    assert!(config(1).contains("auto-provision = true") && config(2).contains("auto-provision = false"));
    assert!(config(1).contains("default-replication = 2"));
    stage.down().await;
    // A node that has lost its disk would begin a second cluster.
    stage.up(3, 0).await.expect("it starts again");
    assert!(config(1).contains("auto-provision = false"));
}

#[tokio::test]
async fn a_cluster_keeps_its_bucket_for_snapshots() {
    let mut stage = Stage::new();
    stage.snapshots = Snapshots::To("s3://bucket/prefix".to_owned());
    stage.up(1, 0).await.expect("it starts");
    stage.down().await;
    let file = stage.folder.path().join("cluster/node-1.toml");
    let config = || std::fs::read_to_string(&file).expect("a file");
    stage.snapshots = Snapshots::AsBefore;
    stage.up(None, None).await.expect("it starts again");
    assert!(config().contains("destination = \"s3://bucket/prefix\""), "{}", config());
    stage.down().await;
    stage.snapshots = Snapshots::Off;
    stage.up(None, None).await.expect("it starts without");
    assert!(!config().contains("destination"), "{}", config());
}

#[tokio::test]
async fn a_port_that_another_program_has_is_named() {
    let stage = Stage::new();
    let plan = stage.up(1, 0).await.expect("it starts").plan;
    stage.down().await;
    let port = plan.nodes.first().expect("a node").ingress;
    let _other = TcpListener::bind(("127.0.0.1", port)).expect("the port");
    let error = stage.up(1, 0).await.expect_err("the port is taken");
    assert!(matches!(&error, ClusterError::PortTaken { port: taken, .. } if *taken == port), "{error}");
    assert_eq!(stage.pids().await, [None]);
}

#[tokio::test]
async fn a_node_that_ends_is_told_of_with_the_end_of_its_log() {
    let stage = Stage::new();
    let broken = stage.program("broken", "#!/bin/sh\necho it has no data >&2\nexit 3\n");
    let stage = stage.with_server(broken);
    let error = stage.up(1, 0).await.expect_err("it ends");
    let told = error.to_string();
    assert!(matches!(error, ClusterError::Died { .. }) && told.contains("it has no data"), "{told}");
}

#[tokio::test]
async fn a_program_that_ignores_the_request_to_end_is_killed() {
    let stage = Stage::new();
    let stand_in = stage.server.display().to_string();
    let deaf = format!("#!/bin/sh\ntrap '' TERM\n{stand_in} \"$@\" &\nwait\nwait\n");
    let deaf = stage.program("deaf", &deaf);
    let stage = stage.with_server(deaf);
    stage.up(1, 0).await.expect("it starts");
    let ended = stage.cluster.remove(std::time::Duration::from_millis(100)).await.expect("it is ended");
    assert_eq!(ended.members, ["node-1"]);
    assert!(!stage.folder.path().join("cluster").exists());
}

#[tokio::test]
async fn a_cluster_whose_file_is_damaged_can_be_ended_and_removed() {
    let stage = Stage::new();
    stage.up(1, 1).await.expect("it starts");
    let file = stage.folder.path().join("cluster").join("cluster.json");
    std::fs::write(file, "{").expect("a file");
    let error = stage.up(1, 1).await.expect_err("what it is made of isn't known");
    assert!(matches!(error, ClusterError::Damaged { .. }), "{error}");
    let ended = stage.cluster.remove(std::time::Duration::ZERO).await.expect("it is ended");
    assert_eq!(ended.members, ["worker-1", "node-1"]);
    assert!(!stage.folder.path().join("cluster").exists());
}
