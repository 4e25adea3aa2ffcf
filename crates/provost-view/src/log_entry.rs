//! An entry of a log.

use std::borrow::Cow;

use provost_event::Record;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::Value;

/// A committed entry of a log: the line of [`Record::to_line`]. Its member `v` is the version of the log's format, not
/// that of the views.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry(pub Record);

impl Serialize for LogEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let line = self.0.to_line().map_err(ser::Error::custom)?;
        serde_json::from_str::<Value>(&line).map_err(ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LogEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = Value::deserialize(deserializer)?.to_string();
        Record::from_line(&line).map(Self).map_err(de::Error::custom)
    }
}

impl JsonSchema for LogEntry {
    fn schema_name() -> Cow<'static, str> {
        "LogEntry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Record::json_schema(generator)
    }
}
