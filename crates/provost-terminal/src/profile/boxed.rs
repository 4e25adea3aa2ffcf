//! What a program needs in a sandbox of Provost's.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What a program needs in a sandbox of Provost's, where its own can't be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxedStart {
    /// Arguments before its own, which switch its own sandbox off.
    pub args: Vec<String>,
    /// Variables that do; they replace others of the same name.
    pub env: BTreeMap<String, String>,
    /// Variables that name folders in which it keeps settings and sessions, each with a name of its own. Where its calls go
    /// through the gateway it gets private ones, as it needs no login of the user's.
    pub folders: BTreeMap<String, String>,
}
