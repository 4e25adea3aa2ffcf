//! The typed client, against the real server.

use std::net::SocketAddr;

use provost_client::{Answer, Client, ClientError, NewRun, ServerAddress};
use provost_event::{Entry, LifecycleEntry};

use crate::served::Served;
use crate::support::Scene;

const ASKS: &str =
    "answers:\n  - tools: [{ shell: { command: echo published >> effects } }]\n  - text: done\n";

fn client(served: &Served) -> Client {
    let address = SocketAddr::from(([127, 0, 0, 1], served.port));
    Client::new(ServerAddress::Tcp(address), &served.token)
}

#[tokio::test]
async fn a_run_is_started_followed_and_answered_by_the_client() {
    let scene = Scene::scripted(ASKS).with_settings("[permissions]\nask = [\"shell\"]\n");
    let served = Served::start(&scene);
    let client = client(&served);
    let wanted = NewRun::new("publish it", scene.path("work"));
    let run = client.start(&wanted, Some("k")).await.unwrap();
    assert_eq!(client.start(&wanted, Some("k")).await.unwrap(), run);
    let mut entries = client.entries(run, None).await.unwrap();
    let (question, last) = loop {
        let heard = entries.next().await.unwrap().unwrap();
        if let Some(question) = client.approvals().await.unwrap().pop() {
            break (question, heard.id);
        }
    };
    client.answer(&question, &Answer::Allow).await.unwrap();
    let late = client.answer(&question, &Answer::Deny { reason: String::new() }).await;
    assert!(matches!(late, Err(ClientError::Refused { status: 409, .. })), "{late:?}");
    // Another stream goes on behind the last entry.
    let mut entries = client.entries(run, Some(&last)).await.unwrap();
    loop {
        let entry = entries.next().await.unwrap().unwrap().entry.0;
        if matches!(entry.entry, Entry::Lifecycle(LifecycleEntry::Ended(_))) {
            break;
        }
    }
    assert_eq!(client.run(run).await.unwrap().item.goal, "publish it");
    assert_eq!(client.groups().await.unwrap().questions, 0);
    let refused = client.start(&NewRun::new("x", "nowhere"), None).await;
    assert!(matches!(refused, Err(ClientError::Refused { status: 422, .. })), "{refused:?}");
    assert!(!format!("{client:?}").contains(&served.token));
}

#[cfg(unix)]
#[tokio::test]
async fn the_client_speaks_over_the_unix_socket_too() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let served = Served::start(&scene);
    let address = ServerAddress::Unix(scene.path("state/server.sock"));
    let client = Client::new(address, &served.token);
    let run = scene.last_run().parse().unwrap();
    assert_eq!(client.spend(run).await.unwrap().total.calls, 1);
    let none = client.cancel(run).await;
    assert!(matches!(none, Err(ClientError::Refused { status: 409, .. })), "{none:?}");
}
