//! A collector on loopback that responds as configured and keeps the requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// How it responds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Manner {
    /// Correctly.
    Good,
    /// With this status.
    Status(u16),
    /// With this status first, then correctly.
    StatusOnce(u16),
    /// With success and bytes that aren't a message.
    Malformed,
    /// With success and a page.
    Page,
    /// Never.
    Stalls,
    /// With another address.
    Redirects,
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Got {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Collector {
    pub(crate) fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let got = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&got);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let keep = Arc::clone(&keep);
                thread::spawn(move || serve(stream.expect("a connection"), manner, &keep));
            }
        });
        Self { address, got }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.got.lock().expect("the requests").clone()
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let requests = self.requests("/v1/traces");
        let requests = requests.iter().map(|body| ExportTraceServiceRequest::decode(&**body).expect("spans"));
        let resources = requests.flat_map(|request| request.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    /// The metrics of the last request, cumulative.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let requests = self.requests("/v1/metrics");
        let last = requests.last().map(|body| ExportMetricsServiceRequest::decode(&**body).expect("metrics"));
        let resources = last.into_iter().flat_map(|request| request.resource_metrics);
        resources.flat_map(|resource| resource.scope_metrics).flat_map(|scope| scope.metrics).collect()
    }

    fn requests(&self, path: &str) -> Vec<Vec<u8>> {
        self.got().into_iter().filter(|one| one.path == path).map(|one| one.body).collect()
    }
}

fn serve(mut stream: TcpStream, manner: Manner, keep: &Mutex<Vec<Got>>) {
    let Some(got) = read(&stream) else { return };
    let path = got.path.clone();
    let earlier = {
        let mut all = keep.lock().expect("the requests");
        let earlier = all.iter().filter(|one| one.path == path).count();
        all.push(got);
        earlier
    };
    let ok = "200 OK\r\ncontent-type: application/x-protobuf";
    let (head, body): (String, &[u8]) = match manner {
        Manner::Good => (ok.to_owned(), b""),
        Manner::StatusOnce(status) if earlier == 0 => (format!("{status} No"), b"secret words"),
        Manner::StatusOnce(_) => (ok.to_owned(), b""),
        Manner::Status(status) => (format!("{status} No"), b"secret words"),
        Manner::Malformed => (ok.to_owned(), b"\xff\xff\xff\xff"),
        Manner::Page => ("200 OK\r\ncontent-type: text/html; charset=utf-8".to_owned(), b"<html>"),
        Manner::Redirects => ("307 There\r\nlocation: http://elsewhere.invalid/".to_owned(), b""),
        Manner::Stalls => {
            // Until the client times out and closes.
            let _ = stream.read(&mut [0]);
            return;
        }
    };
    let head = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

fn read(stream: &TcpStream) -> Option<Got> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Got { path, headers, body })
}
