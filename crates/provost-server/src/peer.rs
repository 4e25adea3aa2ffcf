//! Who is at the other end of a connection: what a run has started may look, and change nothing.
//!
//! A token that such a program has found somewhere doesn't help it: its process is known by its descent, as the commands
//! know it. Off Linux, and where the process can't be found, the token alone decides.

use std::net::SocketAddr;

use provost_process::descent_of;

/// Whether a client descends from a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// It does.
    OfRun,
    /// It doesn't, or that isn't known.
    Other,
}

/// By which way a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// TCP, which pages of any site can reach too.
    Tcp,
    /// The Unix socket, which no page can reach.
    Socket,
}

impl Peer {
    /// The process with this id.
    pub(crate) fn of_process(process: u32) -> Self {
        if descent_of(process).is_some() { Self::OfRun } else { Self::Other }
    }

    /// The processes that hold the other end of a connection on loopback. Blocks for as long as it takes to look at
    /// all processes.
    pub(crate) fn of_connection(client: SocketAddr, server: SocketAddr) -> Self {
        #[cfg(target_os = "linux")]
        if linux::holders(client, server).into_iter().any(|process| Self::of_process(process) == Self::OfRun)
        {
            return Self::OfRun;
        }
        let _ = (client, server);
        Self::Other
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::net::{IpAddr, SocketAddr};

    /// The processes that have the socket with this address of its own open.
    pub(super) fn holders(own: SocketAddr, other: SocketAddr) -> Vec<u32> {
        let Some(socket) = inode(own, other) else { return Vec::new() };
        let link = format!("socket:[{socket}]");
        let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
        let names =
            processes.flatten().filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
        names.filter(|process| has_open(*process, &link)).collect()
    }

    fn has_open(process: u32, link: &str) -> bool {
        let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
        files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == link))
    }

    /// The inode of a connection's socket, by its addresses (proc_pid_net(5)).
    fn inode(own: SocketAddr, other: SocketAddr) -> Option<u64> {
        let (own, other) = (written(own)?, written(other)?);
        let table = fs::read_to_string("/proc/net/tcp").ok()?;
        table.lines().find_map(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let is_it = fields.next()? == own && fields.next()? == other;
            is_it.then(|| fields.nth(6)?.parse().ok()).flatten()
        })
    }

    /// An address as the table has it: the bytes of a number in the machine's order.
    fn written(address: SocketAddr) -> Option<String> {
        let IpAddr::V4(ip) = address.ip() else { return None };
        Some(format!("{:08X}:{:04X}", u32::from_ne_bytes(ip.octets()), address.port()))
    }

    #[cfg(test)]
    mod tests {
        use std::net::{TcpListener, TcpStream};

        #[test]
        fn the_holder_of_a_connection_is_found() {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (_served, address) = listener.accept().unwrap();
            let found = super::holders(address, listener.local_addr().unwrap());
            assert_eq!(found, [std::process::id()]);
            drop(client);
        }
    }
}
