//! Why a cluster couldn't be started, shown or ended.

use std::io;
use std::path::PathBuf;

use provost_process::SpawnError;

/// A command on a cluster of this machine couldn't do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A file or folder of it can't be used.
    #[error("can't {attempt} {}", path.display())]
    Folder {
        /// What was attempted.
        attempt: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another command is starting or ending it.
    #[error("another command is working on the cluster in {}", folder.display())]
    Busy {
        /// Its folder.
        folder: PathBuf,
    },
    /// The file that records it isn't readable.
    #[error("{} doesn't describe a cluster: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// It has another number of nodes, which can't be changed.
    #[error("the cluster in {} has {has} {}, not {wanted}", folder.display(), if *has == 1 { "node" } else { "nodes" })]
    OtherSize {
        /// Its folder.
        folder: PathBuf,
        /// The nodes that it has.
        has: usize,
        /// The nodes that were asked for.
        wanted: usize,
    },
    /// A port of a member is in use by a program that isn't of this cluster.
    #[error("port {port} of {member} is in use by another program")]
    PortTaken {
        /// The member.
        member: String,
        /// The port on 127.0.0.1.
        port: u16,
    },
    /// There are no free ports.
    #[error("no free ports are left on 127.0.0.1")]
    NoPorts,
    /// A member's program can't be started.
    #[error("can't start {member}")]
    Start {
        /// The member.
        member: String,
        /// Why.
        source: SpawnError,
    },
    /// A member has ended by itself.
    #[error("{member} has ended; the end of {}:\n{tail}", log.display())]
    Died {
        /// The member.
        member: String,
        /// Its log.
        log: PathBuf,
        /// The end of the log.
        tail: String,
    },
    /// A member doesn't answer in time.
    #[error("{member} isn't ready after {seconds} s; the end of {}:\n{tail}", log.display())]
    NotReady {
        /// The member.
        member: String,
        /// How long was waited.
        seconds: u64,
        /// Its log.
        log: PathBuf,
        /// The end of the log.
        tail: String,
    },
    /// Processes of the cluster couldn't be ended.
    #[error("these processes of the cluster don't end: {0}")]
    NotEnded(String),
    /// The system gives no random bytes.
    #[error("the system gives no random bytes for the cluster's key: {0}")]
    NoEntropy(String),
    /// Processes can't be told apart here.
    #[error("a cluster on one machine needs Linux")]
    Unsupported,
}
