//! What confines the programs and the file tools of an agent.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;

/// What the programs and the file tools of an agent may read, write and reach. The default confines nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SandboxPolicy {
    /// What may be written and read at all.
    pub mode: SandboxMode,
    /// Whether nothing is started where the system can't confine it. Otherwise it is started unconfined.
    #[serde(skip_serializing_if = "is_default")]
    pub require: bool,
    /// Folders and files that may be written besides the workspace, absolute.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
    /// Folders and files that may not be read besides those that never may, absolute.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny_read: Vec<PathBuf>,
    /// Files that stay as they are though they lie where may be written, absolute: those that hooks run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<PathBuf>,
    /// What of the network may be reached.
    #[serde(skip_serializing_if = "is_default")]
    pub network: SandboxNetwork,
    /// The hosts that may be reached through the proxy: a name or an address, `*.` before a name for all names below
    /// it, and a port after a colon. Without a port: 80 and 443.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_hosts: Vec<String>,
    /// Variables that programs get besides those that any program of an agent gets, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Limits of each program.
    #[serde(skip_serializing_if = "is_default")]
    pub limits: SandboxLimits,
    /// Whether hooks and stop hooks are confined too.
    #[serde(skip_serializing_if = "is_default")]
    pub hooks: bool,
}

impl SandboxPolicy {
    /// Whether it confines nothing.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.mode == SandboxMode::Off
    }
}

/// What the programs of an agent may write and read at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Everything that the user may.
    #[default]
    Off,
    /// They write a temporary folder of their own, and read everything but what never may be read.
    ReadOnly,
    /// They write the workspace too.
    Workspace,
    /// The same, and they read only the system's folders, the workspace and caches.
    Strict,
}

impl SandboxMode {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::Off, Self::ReadOnly, Self::Workspace, Self::Strict];

    /// Its name in the settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::ReadOnly => "read-only",
            Self::Workspace => "workspace",
            Self::Strict => "strict",
        }
    }

    /// How much it allows: the highest allows the least.
    #[must_use]
    pub const fn strictness(self) -> u8 {
        match self {
            Self::Off => 0,
            Self::Workspace => 1,
            Self::Strict => 2,
            Self::ReadOnly => 3,
        }
    }
}

/// What of the network the programs of an agent reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxNetwork {
    /// Nothing but each other, on a loopback interface of their own.
    #[default]
    None,
    /// The same, and allowed hosts through a proxy.
    Proxy,
    /// Everything that the user's programs reach.
    Open,
}

impl SandboxNetwork {
    /// All of them, the strictest first.
    pub const ALL: [Self; 3] = [Self::None, Self::Proxy, Self::Open];

    /// Its name in the settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Proxy => "proxy",
            Self::Open => "open",
        }
    }

    /// How much of the network is reached: the highest reaches the most.
    #[must_use]
    pub const fn openness(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Proxy => 1,
            Self::Open => 2,
        }
    }
}

/// Limits of each program in the box, its children included where the kernel counts them together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SandboxLimits {
    /// Bytes of address space of each process; absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processes and threads at a time; absent: no limit. The kernel doesn't count those of root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Milliseconds of processor time of each process; absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_time_ms: Option<u64>,
    /// Bytes of each file that is written; absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size_bytes: Option<u64>,
}
