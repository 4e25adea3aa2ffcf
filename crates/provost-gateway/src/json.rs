//! Changes of single members of a JSON object: all other bytes stay as they are.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object, each value with its bytes.
pub(crate) struct Members<'t> {
    text: &'t str,
    all: Vec<(String, &'t RawValue)>,
}

/// A replacement of some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    range: Range<usize>,
    text: String,
}

impl<'t> Members<'t> {
    /// Reads an object.
    ///
    /// # Errors
    /// If it isn't one, or a member stands twice: clients and servers may differ on which of them counts.
    pub(crate) fn of(text: &'t str) -> Result<Self, serde_json::Error> {
        let Pairs(all) = serde_json::from_str(text)?;
        Ok(Self { text, all })
    }

    /// The same members again.
    pub(crate) fn copied(&self) -> Self {
        Self { text: self.text, all: self.all.clone() }
    }

    /// The text of a member's value.
    pub(crate) fn get(&self, name: &str) -> Option<&'t str> {
        self.all.iter().find(|(known, _)| known == name).map(|(_, value)| value.get())
    }

    /// The first of several names that is a member.
    pub(crate) fn first<'n>(&self, names: &[&'n str]) -> Option<(&'n str, &'t str)> {
        names.iter().find_map(|name| Some((*name, self.get(name)?)))
    }

    /// Replaces a member's value, or adds the member.
    pub(crate) fn set(&self, name: &str, value: &str) -> Edit {
        if let Some(old) = self.get(name) {
            let at = self.place(old);
            return Edit { range: at..at + old.len(), text: value.to_owned() };
        }
        let at = self.text.find('{').map_or(0, |at| at + 1);
        let comma = if self.all.is_empty() { "" } else { "," };
        let name = serde_json::Value::from(name);
        Edit { range: at..at, text: format!("{name}:{value}{comma}") }
    }

    /// The object without a member.
    pub(crate) fn without(&self, name: &str) -> String {
        let rest = self.all.iter().filter(|(known, _)| known != name);
        let rest = rest.map(|(name, value)| format!("{}:{value}", serde_json::Value::from(name.as_str())));
        format!("{{{}}}", rest.collect::<Vec<_>>().join(","))
    }

    /// Where a value of this object begins in its text.
    pub(crate) fn place(&self, value: &str) -> usize {
        value.as_ptr().addr().saturating_sub(self.text.as_ptr().addr())
    }
}

impl Edit {
    /// The same change in a text in which the object begins at `at`.
    pub(crate) fn within(mut self, at: usize) -> Self {
        self.range = self.range.start + at..self.range.end + at;
        self
    }
}

/// `text` with the changes, which don't overlap.
pub(crate) fn edited(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| edit.range.start);
    let mut out = String::with_capacity(text.len() + 64);
    let mut done = 0;
    for edit in edits {
        out.push_str(text.get(done..edit.range.start).unwrap_or_default());
        out.push_str(&edit.text);
        done = edit.range.end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

struct Pairs<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::<(String, &'de RawValue)>::new();
        while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
            if all.iter().any(|(known, _)| *known == name) {
                return Err(A::Error::custom(format!("`{name}` stands twice")));
            }
            all.push((name, value));
        }
        Ok(Pairs(all))
    }
}
