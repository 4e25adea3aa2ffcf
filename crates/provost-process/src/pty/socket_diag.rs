//! The kernel's list of TCP connections with their traffic (netlink, `sock_diag(7)`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_AND_DUMP: u16 = 0x301;
const MESSAGE_DONE: u16 = 3;
const MESSAGE_ERROR: u16 = 2;
const PROTOCOL_TCP: u8 = 6;
const INFO: u16 = 2;
const ESTABLISHED: u32 = 1 << 1;

/// Maximum replies of a dump; each holds many connections.
const REPLIES_MAX: usize = 256;
const REPLY_BYTES_MAX: usize = 64 * 1024;

/// Offsets within `inet_diag_msg`, and its size.
const PORTS_AT: usize = 4;
const ADDRESSES_AT: usize = 8;
const INODE_AT: usize = 68;
const MESSAGE_BYTES: usize = 72;

/// Offsets within `tcp_info`.
const LAST_SENT_AT: usize = 44;
const LAST_RECEIVED_AT: usize = 52;
const ACKED_AT: usize = 120;
const RECEIVED_AT: usize = 128;
const ROUND_TRIP_MIN_AT: usize = 148;

/// An established connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Connection {
    pub(super) inode: u32,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    /// Payload bytes that the other end has acknowledged, and that were received.
    pub(super) sent: u64,
    pub(super) received: u64,
    /// How long ago payload was last sent, and received.
    pub(super) last_sent: Duration,
    pub(super) last_received: Duration,
    /// The shortest time in which the other end has acknowledged something; `None` if it hasn't yet.
    pub(super) round_trip_min: Option<Duration>,
}

/// All established connections; `None` if the kernel doesn't tell.
pub(super) fn connections() -> Option<Vec<Connection>> {
    let flags = SocketFlags::CLOEXEC;
    let family = AddressFamily::NETLINK;
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, Some(netlink::SOCK_DIAG)).ok()?;
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let request = request(u8::try_from(family).ok()?);
        rustix::net::send(&socket, &request, SendFlags::empty()).ok()?;
        let mut buffer = vec![0; REPLY_BYTES_MAX];
        for _ in 0..REPLIES_MAX {
            let (count, _) = rustix::net::recv(&socket, buffer.as_mut_slice(), RecvFlags::DONTWAIT).ok()?;
            if !read_reply(buffer.get(..count)?, &mut found)? {
                break;
            }
        }
    }
    Some(found)
}

fn request(family: u8) -> Vec<u8> {
    let mut body = vec![family, PROTOCOL_TCP, 1 << (INFO - 1), 0];
    body.extend(ESTABLISHED.to_ne_bytes());
    body.extend([0; 48]);
    let mut message = Vec::new();
    message.extend(u32::try_from(body.len() + 16).unwrap_or_default().to_ne_bytes());
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(REQUEST_AND_DUMP.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

/// Reads one reply; returns whether more follow. `None` for an error.
fn read_reply(mut rest: &[u8], found: &mut Vec<Connection>) -> Option<bool> {
    while rest.len() >= 16 {
        let length = usize::try_from(u32_at(rest, 0)?).ok()?;
        match u16_at(rest, 4)? {
            MESSAGE_DONE => return Some(false),
            MESSAGE_ERROR => return None,
            _ => found.extend(rest.get(16..length).and_then(connection)),
        }
        rest = rest.get(length.next_multiple_of(4).max(16)..).unwrap_or_default();
    }
    Some(true)
}

fn connection(message: &[u8]) -> Option<Connection> {
    let family = *message.first()?;
    let (local, remote) = (address(message, family, 0)?, address(message, family, 1)?);
    let info = attribute(message.get(MESSAGE_BYTES..)?, INFO)?;
    let millis = |at| u32_at(info, at).map(|millis| Duration::from_millis(u64::from(millis)));
    Some(Connection {
        inode: u32_at(message, INODE_AT)?,
        local,
        remote,
        sent: u64_at(info, ACKED_AT)?,
        received: u64_at(info, RECEIVED_AT)?,
        last_sent: millis(LAST_SENT_AT)?,
        last_received: millis(LAST_RECEIVED_AT)?,
        round_trip_min: u32_at(info, ROUND_TRIP_MIN_AT)
            .filter(|micros| *micros != u32::MAX)
            .map(|micros| Duration::from_micros(u64::from(micros))),
    })
}

/// The local (0) or the remote (1) end.
fn address(message: &[u8], family: u8, end: usize) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(message.get(PORTS_AT + 2 * end..)?.get(..2)?.try_into().ok()?);
    let bytes = message.get(ADDRESSES_AT + 16 * end..)?.get(..16)?;
    let ip = if i32::from(family) == libc::AF_INET {
        let bytes: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
        IpAddr::V4(Ipv4Addr::from(bytes))
    } else {
        let bytes: [u8; 16] = bytes.try_into().ok()?;
        IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
    };
    Some(SocketAddr::new(ip, port))
}

fn attribute(mut rest: &[u8], wanted: u16) -> Option<&[u8]> {
    while rest.len() >= 4 {
        let length = usize::from(u16_at(rest, 0)?);
        if u16_at(rest, 2)? == wanted {
            return rest.get(4..length);
        }
        rest = rest.get(length.next_multiple_of(4).max(4)..)?;
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..)?.get(..2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..)?.get(..4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..)?.get(..8)?.try_into().ok()?))
}
