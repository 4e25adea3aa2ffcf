//! `provost serve` beyond loopback's plain connections: TLS, service files, the access log.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::Arc;

use rustls::pki_types::ServerName;

use crate::served::Served;
use crate::support::Scene;

const NAME: &str = "box.example";

/// Writes a certificate of its own authority, and returns what trusts it.
fn certificate(scene: &Scene) -> rustls::ClientConfig {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
    scene.write("cert.pem", &made.cert.pem());
    scene.write("key.pem", &made.signing_key.serialize_pem());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    builder.unwrap().with_root_certificates(roots).with_no_client_auth()
}

#[test]
fn it_is_reached_by_its_name_over_tls_and_signs_browsers_in_there() {
    let scene = Scene::new();
    let client = Arc::new(certificate(&scene));
    let (cert, key, token) = (scene.path("cert.pem"), scene.path("key.pem"), scene.path("token"));
    let (cert, key, token) = (cert.to_str().unwrap(), key.to_str().unwrap(), token.to_str().unwrap());
    let args = ["serve", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--host", NAME];
    let mut command = scene.command(&[&args[..], &["--token-file", token]].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (host, path) = line.trim().strip_prefix("https://").unwrap().split_once('/').unwrap();
    let port = host.strip_prefix(&format!("{NAME}:")).unwrap().parse::<u16>().unwrap();
    let ask = |path: &str, headers: &str| {
        let name = ServerName::try_from(NAME).unwrap();
        let mut secure = rustls::ClientConnection::new(client.clone(), name).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut stream = rustls::Stream::new(&mut secure, &mut stream);
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // A server may close without saying so.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    };
    let token = std::fs::read_to_string(token).unwrap();
    let signed = format!("Authorization: Bearer {}\r\n", token.trim());
    assert!(ask("/v1/runs", &signed).starts_with("HTTP/1.1 200"));
    assert!(ask("/v1/runs", "").starts_with("HTTP/1.1 401"));
    assert!(ask("/v1/runs", &format!("{signed}Origin: http://{host}\r\n")).starts_with("HTTP/1.1 403"));
    assert!(ask("/v1/runs", &format!("{signed}Origin: https://{host}\r\n")).starts_with("HTTP/1.1 200"));
    let entered = ask(&format!("/{path}"), "");
    assert!(entered.contains("; Secure") && entered.starts_with("HTTP/1.1 303"), "{entered}");
    // Without TLS nothing is answered.
    let mut plain = TcpStream::connect(("127.0.0.1", port)).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn other_machines_reach_it_only_where_that_is_said_and_with_tls() {
    let scene = Scene::new();
    certificate(&scene);
    let refused = |args: &[&str], word: &str| {
        let done = scene.provost(args);
        assert_eq!(done.status, 2, "{done:?}");
        assert!(done.stderr.contains(word), "{done:?}");
    };
    refused(&["serve", "--listen", "0.0.0.0:0"], "--beyond-loopback says that this is meant");
    refused(&["serve", "--listen", "0.0.0.0:0", "--beyond-loopback"], "with TLS only");
    refused(&["serve", "--listen", "127.0.0.1:0"], "with TLS only");
    let (cert, odd) = (scene.path("cert.pem"), scene.path("odd.pem"));
    let (cert, odd) = (cert.to_str().unwrap(), odd.to_str().unwrap());
    refused(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", odd], "by which name");
    let args = ["serve", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", odd, "--host", "x"];
    let done = scene.provost(&args);
    assert!(done.status == 1 && done.stderr.contains("odd.pem"), "{done:?}");
}

#[test]
fn a_service_file_is_written_and_only_its_own_is_overwritten() {
    let scene = Scene::new();
    let done = scene.provost(&["serve", "--install", "--port", "7001"]);
    assert_eq!(done.status, 0, "{done:?}");
    let name = if cfg!(target_os = "macos") {
        "home/Library/LaunchAgents/dev.provost.serve.plist"
    } else {
        "home/.config/systemd/user/provost.service"
    };
    assert!(
        done.stdout.contains(name.trim_start_matches("home/")) && done.stdout.contains("start it: "),
        "{done:?}"
    );
    assert!(std::fs::read_to_string(scene.path(name)).unwrap().contains("serve --port 7001 "));
    assert_eq!(scene.provost(&["serve", "--install"]).status, 0, "again");
    scene.write(name, "mine");
    let refused = scene.provost(&["serve", "--install"]);
    assert!(refused.status == 2 && refused.stderr.contains("provost didn't write it"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(scene.path(name)).unwrap(), "mine");
}

#[test]
fn each_request_is_in_the_access_log_without_secrets() {
    let scene = Scene::new();
    let served = Served::start(&scene);
    served.get("/v1/runs?limit=1");
    served.enter();
    served.exact("GET", "/v1/runs", &[("host", "evil.example")], "");
    let made = served.post("/v1/links", "{}").json();
    let link = made["link"].as_str().unwrap();
    assert!(link.starts_with(&format!("http://{}/enter/", served.page)), "{link}");
    let log = std::fs::read_to_string(scene.path("state/server-access.log")).unwrap();
    let seen = log.lines().map(crate::support::json);
    let seen =
        seen.map(|line| format!("{} {} {} {}", line["method"], line["path"], line["status"], line["by"]));
    let expected = [
        "\"GET\" \"/v1/runs\" 200 \"token\"",
        "\"GET\" \"/enter/\" 303 \"none\"",
        "\"GET\" \"/v1/runs\" 421 \"none\"",
        "\"POST\" \"/v1/links\" 200 \"token\"",
    ];
    assert_eq!(seen.collect::<Vec<_>>(), expected);
    assert!(
        !log.contains(&served.token) && !log.contains(served.link.trim_start_matches("/enter/")),
        "{log}"
    );
}
