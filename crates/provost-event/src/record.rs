//! A record: one committed entry with its position; and the serialized form of the log.
//!
//! A record is one line of JSON: `v` (format version), `actor`, `seq`, `at_ms`,
//! `elapsed_ms`, `type`, then the entry's own fields.

use std::borrow::Cow;
use std::fmt::Write as _;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{ActorKey, Elapsed, Entry, Seq, SessionId, Timestamp};

/// The version of the serialized form. From the first release on it is raised when a kind of entry is added or changes
/// its meaning, and every older version stays readable; until then it changes in place.
pub const FORMAT_VERSION: u32 = 1;

/// One committed entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The actor of the log.
    pub actor: ActorKey,
    /// The position in that log.
    pub seq: Seq,
    /// When it was decided, by the wall clock, which may have been set back since the previous entry.
    pub at: Timestamp,
    /// The run's elapsed time at that point. Never decreases within a log.
    pub elapsed: Elapsed,
    /// The entry.
    pub entry: Entry,
}

/// A line isn't a valid record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The line is from a newer version of Provost.
    #[error("written in format {needs}; this Provost reads up to {FORMAT_VERSION}: use a newer one")]
    Newer {
        /// The version that can read it.
        needs: u32,
    },
    /// There is no such version.
    #[error("format {found} doesn't exist: the first is 1")]
    NoSuchVersion {
        /// The version that the line names.
        found: u32,
    },
    /// The line's version has no such kind.
    #[error("there is no entry of type `{kind}`")]
    UnknownKind {
        /// The kind's name.
        kind: String,
    },
    /// The line doesn't match the format.
    #[error("not a record of the log")]
    Malformed(#[source] serde_json::Error),
}

#[derive(Deserialize)]
struct Head {
    v: u32,
    actor: Option<ActorKey>,
    seq: Option<Seq>,
    at_ms: Option<Timestamp>,
    #[serde(default)]
    elapsed_ms: Elapsed,
    r#type: Option<String>,
}

impl Record {
    /// The record as one line of JSON, without a line terminator.
    ///
    /// # Errors
    /// See [`Entry::body`].
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        let body = self.entry.body()?;
        let mut line = String::with_capacity(body.len() + 96);
        // Writing to a String can't fail.
        let _ = write!(
            line,
            r#"{{"v":{FORMAT_VERSION},"actor":"{}","seq":{},"at_ms":{},"elapsed_ms":{},"type":"{}""#,
            self.actor,
            self.seq,
            self.at.0,
            self.elapsed.0,
            self.entry.kind()
        );
        match body.strip_prefix('{') {
            None | Some("}") => line.push('}'),
            Some(fields) => {
                line.push(',');
                line.push_str(fields);
            }
        }
        Ok(line)
    }

    /// Reads one line.
    ///
    /// # Errors
    /// [`FormatError::Newer`] for a line of a later version, whatever else it contains; otherwise what is invalid.
    pub fn from_line(line: &str) -> Result<Self, FormatError> {
        let head: Head = serde_json::from_str(line).map_err(FormatError::Malformed)?;
        FormatError::check_version(head.v)?;
        let missing = |name: &'static str| {
            FormatError::Malformed(<serde_json::Error as serde::de::Error>::missing_field(name))
        };
        let kind = head.r#type.ok_or_else(|| missing("type"))?;
        Ok(Self {
            actor: head.actor.ok_or_else(|| missing("actor"))?,
            seq: head.seq.ok_or_else(|| missing("seq"))?,
            at: head.at_ms.ok_or_else(|| missing("at_ms"))?,
            elapsed: head.elapsed_ms,
            entry: read_body(&kind, line)?,
        })
    }

    /// Assembles a record from the parts in a store.
    ///
    /// # Errors
    /// As [`Record::from_line`].
    pub fn from_parts(head: RecordHead, kind: &str, body: &str) -> Result<Self, FormatError> {
        FormatError::check_version(head.v)?;
        let RecordHead { actor, seq, at, elapsed, .. } = head;
        Ok(Self { actor, seq, at, elapsed, entry: read_body(kind, body)? })
    }
}

/// The line of [`Record::to_line`].
impl JsonSchema for Record {
    fn schema_name() -> Cow<'static, str> {
        "Record".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let actor = generator.subschema_for::<ActorKey>();
        let seq = generator.subschema_for::<Seq>();
        let at = generator.subschema_for::<Timestamp>();
        let elapsed = generator.subschema_for::<Elapsed>();
        let entry = generator.subschema_for::<Entry>();
        json_schema!({
            "description": "A committed entry of a log, with its position.",
            "type": "object",
            "properties": {
                "v": { "const": FORMAT_VERSION, "description": "The version of the log's format." },
                "actor": actor,
                "seq": seq,
                "at_ms": at,
                "elapsed_ms": elapsed,
                "type": { "enum": Entry::KINDS, "description": "The kind of the entry, which its other members depend on." },
            },
            "required": ["v", "actor", "seq", "at_ms", "elapsed_ms", "type"],
            "allOf": [entry],
        })
    }
}

/// A record's position and version, as a store keeps them beside the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHead {
    /// The format the entry was written in.
    pub v: u32,
    /// The actor of the log.
    pub actor: ActorKey,
    /// The position in the log.
    pub seq: Seq,
    /// When it was decided.
    pub at: Timestamp,
    /// The run's elapsed time at that point.
    pub elapsed: Elapsed,
}

impl FormatError {
    /// Checks the version that a line names.
    ///
    /// # Errors
    /// When this Provost can't read it.
    pub const fn check_version(found: u32) -> Result<(), Self> {
        match found {
            0 => Err(Self::NoSuchVersion { found }),
            needs if needs > FORMAT_VERSION => Err(Self::Newer { needs }),
            _ => Ok(()),
        }
    }
}

fn read_body(kind: &str, body: &str) -> Result<Entry, FormatError> {
    match Entry::from_body(kind, body) {
        Some(entry) => entry.map_err(FormatError::Malformed),
        None => Err(FormatError::UnknownKind { kind: kind.to_owned() }),
    }
}

/// A piece of an answer that is still streaming, or what a running tool call prints: shown as provisional, never
/// stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delta {
    /// The session of the answer or of the call.
    pub session: SessionId,
    /// Text, reasoning, or output.
    pub kind: DeltaKind,
    /// The piece.
    pub text: String,
}

/// The kind of a delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeltaKind {
    /// The answer.
    Text,
    /// The reasoning before it.
    Thinking,
    /// The end of what the session's running call has printed so far: it replaces the one before.
    Output,
}
