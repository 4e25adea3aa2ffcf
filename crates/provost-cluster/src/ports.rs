//! Ports of this machine for the members of a cluster.

use std::collections::HashSet;
use std::net::TcpListener;

use crate::ClusterError;

/// Ports are below those that systems give to outgoing connections, so that none is taken while its member is down.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Checks that the ports of a member that isn't running are free.
///
/// # Errors
/// With the one that isn't.
pub(crate) fn must_be_free(member: &str, ports: &[u16]) -> Result<(), ClusterError> {
    match ports.iter().find(|port| !is_free(**port)) {
        Some(&port) => Err(ClusterError::PortTaken { member: member.to_owned(), port }),
        None => Ok(()),
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// Gives free ports, each once.
pub(crate) struct FreePorts {
    taken: HashSet<u16>,
    next: u16,
}

impl FreePorts {
    /// Ports besides these.
    pub(crate) fn besides(taken: impl Iterator<Item = u16>) -> Self {
        Self { taken: taken.collect(), next: fastrand::u16(PORTS) }
    }

    pub(crate) fn take(&mut self) -> Result<u16, ClusterError> {
        for _ in PORTS {
            let port = self.next;
            self.next = if port + 1 < PORTS.end { port + 1 } else { PORTS.start };
            if self.taken.insert(port) && is_free(port) {
                return Ok(port);
            }
        }
        Err(ClusterError::NoPorts)
    }
}
