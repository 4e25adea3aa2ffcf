//! The server's name in the first message of TLS.

use std::io;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// Bytes of a first message.
const HELLO_BYTES_MAX: usize = 64 * 1024;
/// The first byte of a TLS handshake record.
const HANDSHAKE: u8 = 0x16;

/// What a client begins with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// TLS, with the name of the server if it says one.
    Tls(Option<String>),
    /// TLS whose first message can't be read.
    Unreadable,
    Other,
}

impl Beginning {
    /// Why this isn't passed on to `host`; `None` if it is.
    pub(super) fn objection(&self, host: &str, port: u16) -> Option<String> {
        let is_address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
        match self {
            Self::Tls(Some(name)) if name.eq_ignore_ascii_case(host) => None,
            Self::Tls(Some(name)) => Some(format!("its TLS names another server, {name}")),
            Self::Tls(None) if is_address => None,
            Self::Tls(None) => Some("its TLS names no server".to_owned()),
            Self::Unreadable => Some("its TLS can't be read".to_owned()),
            Self::Other if port == 443 => Some("it isn't TLS".to_owned()),
            Self::Other => None,
        }
    }
}

/// Reads the beginning of what a client says into `bytes`, until the server's name is known.
pub(super) async fn server_name(client: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<Beginning> {
    let mut piece = [0; 4096];
    loop {
        match bytes.first() {
            Some(&HANDSHAKE) => match parse(bytes) {
                Parsed::Done(beginning) => return Ok(beginning),
                Parsed::Short if bytes.len() > HELLO_BYTES_MAX => return Ok(Beginning::Unreadable),
                Parsed::Short => {}
            },
            Some(_) => return Ok(Beginning::Other),
            None => {}
        }
        let count = client.read(&mut piece).await?;
        if count == 0 {
            return Ok(if bytes.is_empty() { Beginning::Other } else { Beginning::Unreadable });
        }
        bytes.extend_from_slice(piece.get(..count).unwrap_or_default());
    }
}

enum Parsed {
    Short,
    Done(Beginning),
}

/// Reads a ClientHello, which may be cut into several records.
fn parse(bytes: &[u8]) -> Parsed {
    let mut message = Vec::new();
    let mut rest = bytes;
    while let [kind, _, _, high, low, after @ ..] = rest {
        if *kind != HANDSHAKE {
            return Parsed::Done(Beginning::Unreadable);
        }
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let Some((fragment, next)) = after.split_at_checked(length) else { break };
        message.extend_from_slice(fragment);
        rest = next;
    }
    let [kind, a, b, c, body @ ..] = message.as_slice() else { return Parsed::Short };
    if *kind != 1 {
        return Parsed::Done(Beginning::Unreadable);
    }
    let length = (usize::from(*a) << 16) | (usize::from(*b) << 8) | usize::from(*c);
    match body.get(..length) {
        None => Parsed::Short,
        Some(body) => Parsed::Done(name_in(body).unwrap_or(Beginning::Unreadable)),
    }
}

/// The rest of a text of bytes.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<usize> {
        self.take(1)?.first().map(|byte| usize::from(*byte))
    }

    fn pair(&mut self) -> Option<usize> {
        let [high, low] = self.take(2)? else { return None };
        Some(usize::from(u16::from_be_bytes([*high, *low])))
    }
}

/// The name in the body of a ClientHello; `None` if that is no such body.
fn name_in(body: &[u8]) -> Option<Beginning> {
    const SERVER_NAME: usize = 0;
    /// An encrypted inner message could name another server.
    const ENCRYPTED_HELLO: usize = 0xfe0d;
    let mut body = Cursor(body);
    body.take(34)?;
    let session = body.byte()?;
    body.take(session)?;
    let ciphers = body.pair()?;
    body.take(ciphers)?;
    let compressions = body.byte()?;
    body.take(compressions)?;
    if body.0.is_empty() {
        return Some(Beginning::Tls(None));
    }
    let length = body.pair()?;
    let mut extensions = Cursor(body.take(length)?);
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.pair()?;
        let length = extensions.pair()?;
        let mut data = Cursor(extensions.take(length)?);
        if kind == ENCRYPTED_HELLO {
            tracing::debug!("the first message of TLS has an encrypted part; its outer name counts");
        }
        if kind == SERVER_NAME {
            if found.is_some() {
                return None;
            }
            data.pair()?;
            if data.byte()? != 0 {
                return None;
            }
            let length = data.pair()?;
            let name = std::str::from_utf8(data.take(length)?).ok()?;
            found = Some(name.trim_end_matches('.').to_owned());
        }
    }
    Some(Beginning::Tls(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(name: &str) -> Vec<u8> {
        let pair = |number: usize| u16::try_from(number).unwrap().to_be_bytes();
        let mut entry = vec![0];
        entry.extend(pair(name.len()));
        entry.extend(name.as_bytes());
        let mut data = pair(entry.len()).to_vec();
        data.extend(entry);
        let mut extension = vec![0, 0];
        extension.extend(pair(data.len()));
        extension.extend(data);
        let mut body = vec![0; 34];
        body.extend([0, 0, 2, 0x13, 0x01, 1, 0]);
        body.extend(pair(extension.len()));
        body.extend(extension);
        let mut message = vec![1, 0];
        message.extend(pair(body.len()));
        message.extend(body);
        message
    }

    fn record(message: &[u8]) -> Vec<u8> {
        let mut bytes = vec![HANDSHAKE, 3, 1];
        bytes.extend(u16::try_from(message.len()).unwrap().to_be_bytes());
        bytes.extend(message);
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Beginning> {
        match parse(bytes) {
            Parsed::Short => None,
            Parsed::Done(beginning) => Some(beginning),
        }
    }

    #[test]
    fn the_servers_name_is_read_also_from_a_message_in_pieces() {
        let message = hello("api.example.com");
        let whole = Beginning::Tls(Some("api.example.com".to_owned()));
        assert_eq!(read(&record(&message)).as_ref(), Some(&whole));
        let (one, other) = message.split_at(20);
        let cut = [record(one), record(other)].concat();
        assert_eq!(read(&cut).as_ref(), Some(&whole));
        for end in 0..cut.len() {
            assert_eq!(read(&cut[..end]), None, "{end}");
        }
    }

    #[test]
    fn another_name_than_the_tunnels_is_an_objection() {
        let tls = |name: &str| Beginning::Tls(Some(name.to_owned()));
        assert_eq!(tls("A.example").objection("a.example", 443), None);
        assert!(tls("evil.example").objection("a.example", 443).is_some());
        assert!(Beginning::Tls(None).objection("a.example", 443).is_some());
        assert_eq!(Beginning::Tls(None).objection("10.0.0.1", 443), None);
        assert!(Beginning::Other.objection("a.example", 443).is_some());
        assert_eq!(Beginning::Other.objection("a.example", 5432), None);
        assert!(Beginning::Unreadable.objection("a.example", 5432).is_some());
    }
}
