//! Whether a program waits for an answer over the network.
//!
//! A connection alone says little: programs keep it open between requests. What counts is that the program has sent
//! a request on it, and has received nothing since. Small messages (acknowledgements, pings, window updates of
//! HTTP/2) are no requests. An answer that is being streamed can't be told from one that is complete; while it is
//! streamed the program paints. Connections between processes of the program don't count.

#[cfg(target_os = "linux")]
use std::cmp::Ordering;
use std::time::Duration;

/// Tells whether a program waits for an answer of its model.
///
/// The kernel's view of sockets is one source; a proxy that the program's requests pass through knows better.
pub trait ModelConnections: Send {
    /// Whether one of these processes has an open request. `None`: unknown.
    fn awaits_answer(&mut self, processes: &[u32]) -> Option<bool>;

    /// The requests to models that have begun so far, where all of them are counted. `None`: they aren't.
    fn model_calls(&self) -> Option<u64> {
        None
    }
}

/// The kernel's view: what each TCP connection has sent and received. Empty on other systems than Linux.
#[derive(Debug, Default)]
pub struct KernelConnections {
    #[cfg(target_os = "linux")]
    seen: std::collections::HashMap<u32, Traffic>,
}

/// Payload bytes that make a request; less is a control message.
#[cfg(target_os = "linux")]
const REQUEST_BYTES_MIN: u64 = 200;

/// A request without any answer for this long is taken for lost.
#[cfg(target_os = "linux")]
const ANSWER_MAX: Duration = Duration::from_secs(15 * 60);

/// What was sent longer ago than this, on a connection that wasn't seen before, belongs to earlier work.
#[cfg(target_os = "linux")]
const RECENT: Duration = Duration::from_secs(5);

/// The longest tick of a kernel (100 a second).
#[cfg(target_os = "linux")]
const TICK: Duration = Duration::from_millis(10);

/// Maximum descriptors to check in each process.
#[cfg(target_os = "linux")]
const DESCRIPTORS_MAX: usize = 4096;

/// The traffic of a connection when something was last received.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy)]
struct Traffic {
    received: u64,
    sent_then: u64,
}

#[cfg(not(target_os = "linux"))]
impl ModelConnections for KernelConnections {
    fn awaits_answer(&mut self, _processes: &[u32]) -> Option<bool> {
        let _ = Duration::ZERO;
        None
    }
}

#[cfg(target_os = "linux")]
impl ModelConnections for KernelConnections {
    fn awaits_answer(&mut self, processes: &[u32]) -> Option<bool> {
        let own: std::collections::HashSet<u32> = processes.iter().flat_map(|pid| sockets_of(*pid)).collect();
        if own.is_empty() {
            self.seen.clear();
            return Some(false);
        }
        let all = super::socket_diag::connections()?;
        let is_own = |inode: &u32| own.contains(inode);
        let ends: std::collections::HashSet<_> =
            all.iter().filter(|socket| is_own(&socket.inode)).map(|socket| socket.local).collect();
        self.seen.retain(|inode, _| is_own(inode));
        let mut awaits = false;
        for socket in all.iter().filter(|socket| is_own(&socket.inode) && !ends.contains(&socket.remote)) {
            awaits |= self.is_open(socket);
        }
        Some(awaits)
    }
}

#[cfg(target_os = "linux")]
impl KernelConnections {
    /// Whether a request was sent on it since something was last received.
    fn is_open(&mut self, socket: &super::socket_diag::Connection) -> bool {
        let now = Traffic { received: socket.received, sent_then: socket.sent };
        let last = match self.seen.get(&socket.inode).copied() {
            Some(last) if last.received == socket.received => last,
            Some(_) => {
                self.seen.insert(socket.inode, now);
                return false;
            }
            // First seen: whether the last message was a request is known only of one that was just sent.
            None => {
                let is_request = has_sent_last(socket) && socket.last_sent < RECENT;
                let sent_then = if is_request { 0 } else { socket.sent };
                let first = Traffic { received: socket.received, sent_then };
                self.seen.insert(socket.inode, first);
                first
            }
        };
        socket.sent.saturating_sub(last.sent_then) >= REQUEST_BYTES_MIN && socket.last_sent < ANSWER_MAX
    }
}

/// Whether it has sent something since it last received something.
///
/// The kernel counts both in ticks. Within one tick the order is known only where an answer can't have come: nothing was
/// received at all (both times are then those of the connection's start), or the way to the other end and back takes longer.
#[cfg(target_os = "linux")]
fn has_sent_last(socket: &super::socket_diag::Connection) -> bool {
    match socket.last_sent.cmp(&socket.last_received) {
        Ordering::Less => true,
        Ordering::Greater => false,
        Ordering::Equal => socket.received == 0 || socket.round_trip_min.is_some_and(|way| way > TICK),
    }
}

/// The sockets of a process, by their inodes.
#[cfg(target_os = "linux")]
fn sockets_of(pid: u32) -> Vec<u32> {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let links =
        descriptors.take(DESCRIPTORS_MAX).flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links
        .filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
        .collect()
}
