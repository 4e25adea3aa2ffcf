//! The head of a request to a proxy.

/// What is requested, and of which host.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bytes both ways.
    Tunnel,
    /// One request.
    Request {
        /// The head for the server.
        text: String,
        /// The length of its body.
        body_bytes: u64,
    },
}

/// Headers that are between client and proxy, or that the proxy sets itself.
const DROPPED: [&str; 6] =
    ["proxy-connection", "proxy-authorization", "connection", "keep-alive", "host", "upgrade"];

impl Head {
    /// Reads a head; `None` if it is none, or one whose body's length isn't clear.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        if method == "CONNECT" {
            let (host, port) = split(target, None)?;
            return Some(Self { host, port, kind: Kind::Tunnel });
        }
        let rest = target.strip_prefix("http://")?;
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at_checked(at)?,
            None => (rest, ""),
        };
        let (host, port) = split(authority, Some(80))?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut text =
            format!("{method} {slash}{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n");
        let mut body_bytes = None;
        for line in lines.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':')?;
            let name = name.to_ascii_lowercase();
            match name.as_str() {
                "transfer-encoding" => return None,
                "content-length" if body_bytes.is_some() => return None,
                "content-length" => body_bytes = Some(value.trim().parse().ok()?),
                _ if DROPPED.contains(&name.as_str()) => continue,
                _ => {}
            }
            if line.contains(['\r', '\n']) {
                return None;
            }
            text.push_str(line);
            text.push_str("\r\n");
        }
        text.push_str("\r\n");
        Some(Self { host, port, kind: Kind::Request { text, body_bytes: body_bytes.unwrap_or_default() } })
    }
}

/// Host, in lower case, and port.
fn split(authority: &str, usual: Option<u16>) -> Option<(String, u16)> {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if is_port(port) => (host, port.parse().ok()?),
        _ => (authority, usual?),
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_[]:".contains(&byte);
    let is_host = !host.is_empty() && host.bytes().all(fits);
    is_host.then(|| (host.trim_end_matches('.').to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_made_to_the_host_in_its_first_line_whatever_its_headers_say() {
        let head = Head::parse(
            b"GET http://Good.example/a?b HTTP/1.1\r\nHost: evil.example\r\nAccept: x\r\nProxy-Connection: keep-alive\r\n\r\n",
        )
        .unwrap();
        assert_eq!((head.host.as_str(), head.port), ("good.example", 80));
        let Kind::Request { text, body_bytes: 0 } = head.kind else { panic!("{head:?}") };
        assert_eq!(text, "GET /a?b HTTP/1.1\r\nHost: Good.example\r\nConnection: close\r\nAccept: x\r\n\r\n");
    }

    #[test]
    fn a_body_whose_length_is_not_clear_is_refused() {
        for headers in
            ["Transfer-Encoding: chunked", "Content-Length: 1\r\nContent-Length: 2", "Content-Length: -1"]
        {
            let text = format!("POST http://h/ HTTP/1.1\r\n{headers}\r\n\r\n");
            assert_eq!(Head::parse(text.as_bytes()), None, "{headers}");
        }
    }

    #[test]
    fn tunnels_name_host_and_port() {
        let head = Head::parse(b"CONNECT A.Example.:443 HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(head, Head { host: "a.example".to_owned(), port: 443, kind: Kind::Tunnel });
        for text in [
            "CONNECT a HTTP/1.1\r\n\r\n",
            "CONNECT a:x HTTP/1.1\r\n\r\n",
            "CONNECT u@h:1 HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(Head::parse(text.as_bytes()), None, "{text}");
        }
    }
}
