//! Servers on loopback with the Chat Completions API: plain, with TLS, and behind a proxy.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A stream that says `ready`.
pub(crate) const READY: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
    data: {\"model\":\"big-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ready\"},\"finish_reason\":\"stop\"}]}\n\n\
    data: {\"model\":\"big-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":1000000,\"completion_tokens\":2}}\n\n\
    data: [DONE]\n\n";

/// An answer with a status and a JSON body.
pub(crate) fn refusal(status: u16, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\nx-request-id: req_7\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// Serves each connection one answer; reports each request.
pub(crate) struct ModelServer {
    pub(crate) port: u16,
    requests: Receiver<String>,
}

impl ModelServer {
    /// Over plain HTTP, the answers one after the other, the last one again and again.
    pub(crate) fn plain(answers: Vec<String>) -> Self {
        Self::serve(answers, Ok)
    }

    /// Over plain HTTP, without any answer: connections stay open.
    pub(crate) fn silent() -> Self {
        let (tell, requests) = channel();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = tell.send(read_request(&mut stream).unwrap());
                open.push(stream);
            }
        });
        Self { port, requests }
    }

    /// Over TLS with a certificate of `authority`.
    pub(crate) fn tls(authority: &Authority, answers: Vec<String>) -> Self {
        let config = authority.server_config();
        Self::serve(answers, move |stream| secure(&config, stream))
    }

    /// A proxy that connects every tunnel to a server behind it, with TLS by `authority`; the first request
    /// reported is the proxy's.
    pub(crate) fn proxy(authority: &Authority, answers: Vec<String>) -> Self {
        let config = authority.server_config();
        let (tell, requests) = channel();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let head = read_head(&mut stream).unwrap();
                tell.send(head).unwrap();
                stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").unwrap();
                let mut inner = secure(&config, stream).unwrap();
                if let Ok(head) = read_request(&mut inner) {
                    tell.send(head).unwrap();
                    let _ = inner.write_all(answers[0].as_bytes());
                }
            }
        });
        Self { port, requests }
    }

    fn serve<S: Read + Write>(
        answers: Vec<String>,
        dress: impl Fn(TcpStream) -> io::Result<S> + Send + 'static,
    ) -> Self {
        let (tell, requests) = channel();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let answer = answers.get(number).or(answers.last()).unwrap();
                // A client that doesn't trust the certificate disconnects.
                let _ = dress(stream.unwrap()).and_then(|mut stream| {
                    let head = read_request(&mut stream)?;
                    let _ = tell.send(head);
                    stream.write_all(answer.as_bytes())?;
                    stream.flush()
                });
            }
        });
        Self { port, requests }
    }

    /// The requests so far, head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.try_iter().collect()
    }
}

/// An unknown certificate authority, and a certificate for `localhost` and `models.example.test`.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "A company's own authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    fn server_config(&self) -> Arc<ServerConfig> {
        let names = ["localhost", "models.example.test"].map(str::to_owned);
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config =
            config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
        Arc::new(config)
    }
}

fn secure(
    config: &Arc<ServerConfig>,
    stream: TcpStream,
) -> io::Result<StreamOwned<ServerConnection, TcpStream>> {
    let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
    Ok(StreamOwned::new(connection, stream))
}

fn read_head(stream: &mut impl Read) -> io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// A request's head, and behind it its body.
fn read_request(stream: &mut impl Read) -> io::Result<String> {
    let head = read_head(stream)?;
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    Ok(head + &String::from_utf8_lossy(&body))
}
