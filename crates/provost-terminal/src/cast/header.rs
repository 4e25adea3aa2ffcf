//! The first line of a recording.

use std::collections::BTreeMap;

use provost_event::WindowSize;
use serde::{Deserialize, Serialize};

use crate::Mask;

/// The version that is written and read.
pub(super) const VERSION: u8 = 2;

/// The metadata of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CastHeader {
    /// The window at the start.
    pub size: WindowSize,
    /// When it started, in seconds since 1970.
    pub timestamp: Option<u64>,
    /// The command, as a user would type it.
    pub command: Option<String>,
    /// The title that players show.
    pub title: Option<String>,
    /// The variable `TERM`.
    pub term: Option<String>,
    /// The variable `SHELL`. No other variable is ever kept.
    pub shell: Option<String>,
}

/// The format's fields; players know others besides.
#[derive(Serialize, Deserialize)]
struct CastHeaderLine {
    version: u8,
    width: u16,
    height: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timestamp: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    env: Option<BTreeMap<String, Option<String>>>,
}

impl CastHeader {
    pub(super) fn to_line(&self, mask: Option<&Mask>) -> serde_json::Result<String> {
        let masked = |text: &Option<String>| {
            text.as_deref().map(|text| mask.map_or_else(|| text.to_owned(), |mask| mask(text).into_owned()))
        };
        let variables = [("TERM", &self.term), ("SHELL", &self.shell)];
        let env: BTreeMap<_, _> = variables
            .into_iter()
            .filter(|(_, value)| value.is_some())
            .map(|(name, value)| (name.to_owned(), value.clone()))
            .collect();
        serde_json::to_string(&CastHeaderLine {
            version: VERSION,
            width: self.size.cols,
            height: self.size.rows,
            timestamp: self.timestamp,
            command: masked(&self.command),
            title: masked(&self.title),
            env: (!env.is_empty()).then_some(env),
        })
    }

    pub(super) fn from_line(line: &str) -> serde_json::Result<Self> {
        let line: CastHeaderLine = serde_json::from_str(line)?;
        let mut env = line.env.unwrap_or_default();
        Ok(Self {
            size: WindowSize::new(line.height, line.width),
            timestamp: line.timestamp,
            command: line.command,
            title: line.title,
            term: env.remove("TERM").flatten(),
            shell: env.remove("SHELL").flatten(),
        })
    }
}
