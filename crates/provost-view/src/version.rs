//! The version of the views.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The version of all views. It rises when a member goes away or changes its meaning or its unit; members may be added
/// without that, so a reader ignores those that it doesn't know. Until the first release it stays 1.
pub const VIEW_VERSION: u32 = 1;

/// The member `v` of a view: always [`VIEW_VERSION`]. Reading a view of another version fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ViewVersion;

impl Serialize for ViewVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(VIEW_VERSION)
    }
}

impl<'de> Deserialize<'de> for ViewVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            VIEW_VERSION => Ok(Self),
            other => {
                Err(de::Error::custom(format_args!("this is a view of version {other}, not {VIEW_VERSION}")))
            }
        }
    }
}

impl JsonSchema for ViewVersion {
    fn schema_name() -> Cow<'static, str> {
        "ViewVersion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "integer",
            "const": VIEW_VERSION,
            "description": "The version of the view: it rises when a member goes away or changes its meaning.",
        })
    }
}
