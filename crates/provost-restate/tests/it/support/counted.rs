//! What a client asks of the engine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// An address that passes everything on to the engine's ingress, and remembers what was sent.
pub(crate) struct Counted {
    pub(crate) url: Url,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Counted {
    pub(crate) async fn start(ingress: &Url) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address")).parse().expect("a URL");
        let to = format!("127.0.0.1:{}", ingress.port().expect("a port"));
        let sent = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let all = Arc::clone(&sent);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = {
                    let mut all = all.lock().expect("a lock");
                    all.push(Vec::new());
                    all.len() - 1
                };
                tokio::spawn(pass_on(client, to.clone(), (Arc::clone(&all), number)));
            }
        });
        Self { url, sent }
    }

    /// How often each handler was called.
    pub(crate) fn calls(&self) -> BTreeMap<String, usize> {
        let mut calls = BTreeMap::new();
        for sent in &*self.sent.lock().expect("a lock") {
            let text = String::from_utf8_lossy(sent);
            let paths = text.split("POST /").skip(1).filter_map(|request| request.split(' ').next());
            for handler in paths.filter_map(|path| path.rsplit('/').next()) {
                *calls.entry(handler.to_owned()).or_default() += 1;
            }
        }
        calls
    }
}

async fn pass_on(client: TcpStream, to: String, (all, number): (Arc<Mutex<Vec<Vec<u8>>>>, usize)) {
    let Ok(server) = TcpStream::connect(to).await else { return };
    let ((mut asks, mut gets), (mut answers, mut asked)) = (client.into_split(), server.into_split());
    let back = tokio::spawn(async move { tokio::io::copy(&mut answers, &mut gets).await });
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = asks.read(&mut bytes).await {
        let Some(bytes) = bytes.get(..count) else { break };
        all.lock().expect("a lock").get_mut(number).expect("a connection").extend_from_slice(bytes);
        if asked.write_all(bytes).await.is_err() {
            break;
        }
    }
    back.abort();
}
