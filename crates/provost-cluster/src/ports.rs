//! Ports of this machine for the members of a cluster.

use std::collections::HashSet;
use std::net::TcpListener;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::ClusterError;

/// Ports are below those that systems give to outgoing connections, so that none is taken while its member is down.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// How long the ports of a member that isn't running may be in use. The system releases those of a killed process after
/// its memory, and from then on it has no arguments by which it would be found.
const RELEASED_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Waits until the ports of a member that isn't running are free.
///
/// # Errors
/// With the one that isn't, after five seconds.
///
/// # Cancellation
/// Safe.
pub(crate) async fn free(member: &str, ports: &[u16]) -> Result<(), ClusterError> {
    let until = Instant::now() + RELEASED_WITHIN;
    while let Some(&port) = ports.iter().find(|port| !is_free(**port)) {
        if Instant::now() >= until {
            return Err(ClusterError::PortTaken { member: member.to_owned(), port });
        }
        sleep(LOOK_EVERY).await;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::{TcpListener, free};

    #[tokio::test]
    async fn the_port_of_a_process_that_is_just_ending_is_waited_for() {
        let held = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let ports = [held.local_addr().expect("its address").port()];
        let (free, ()) = tokio::join!(biased; free("node-1", &ports), async { drop(held) });
        free.expect("it was released meanwhile");
    }
}
