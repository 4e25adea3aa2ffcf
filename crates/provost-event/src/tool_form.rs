//! Other forms of a tool's calls: the names and values that models learned from other programs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;

/// Another form of a tool's calls. A call in it is made as the tool's own: permissions, hooks and the tool see the
/// tool's own name and arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallForm {
    /// The names of the tool in this form. The first form of a tool is also that of calls by its own name and by its
    /// aliases.
    #[serde(default, skip_serializing_if = "is_default")]
    pub names: Vec<String>,
    /// The argument whose value selects this form, where other tools have the same name in theirs. It is left out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub when: Option<SelectingField>,
    /// The arguments that differ.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fields: Vec<FieldForm>,
    /// Arguments without a counterpart that change nothing; they are left out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ignored: Vec<String>,
}

/// An argument with a fixed value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SelectingField {
    /// The argument.
    pub field: String,
    /// Its value.
    pub value: String,
}

/// Another form of an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldForm {
    /// The tool's own name of it.
    pub field: String,
    /// Its other names. None: only its value differs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub names: Vec<String>,
    /// How its value differs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub value: ValueForm,
}

/// How the value of an argument differs. A value that isn't of the described form stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValueForm {
    /// Not at all.
    #[default]
    Same,
    /// 0 means that it isn't given.
    ZeroIsAbsent,
    /// Milliseconds, by its other names; the tool takes seconds. Parts of a second count as one.
    Millis,
    /// A list of words; the tool takes a command line.
    Words,
    /// The numbers of the first and the last line (-1: to the end); the tool takes the first and, in the argument
    /// `count`, how many.
    LineRange {
        /// The argument with the number of lines.
        count: String,
    },
    /// Other words for some of its values: each with the tool's own.
    Renamed(BTreeMap<String, String>),
    /// A list of objects whose fields have these forms.
    Items {
        /// The fields that differ.
        fields: Vec<FieldForm>,
        /// Fields without a counterpart that change nothing.
        #[serde(default, skip_serializing_if = "is_default")]
        ignored: Vec<String>,
    },
}

impl CallForm {
    /// Whether the tool has this name in this form.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }
}
