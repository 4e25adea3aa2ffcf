//! Whether a server on this machine answers.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const ANSWER_MAX: Duration = Duration::from_secs(2);
/// `HTTP/1.1 200`
const STATUS_BYTES: usize = 12;

/// Whether `GET path` at this port of 127.0.0.1 is answered with 200 within two seconds.
pub(crate) async fn answers(port: u16, path: &str) -> bool {
    timeout(ANSWER_MAX, status(port, path))
        .await
        .is_ok_and(|status| status.is_ok_and(|status| status == *b"200"))
}

async fn status(port: u16, path: &str) -> io::Result<[u8; 3]> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut line = [0; STATUS_BYTES];
    stream.read_exact(&mut line).await?;
    let [.., a, b, c] = line;
    Ok([a, b, c])
}
