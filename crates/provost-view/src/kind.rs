//! The views by name, each with its JSON Schema.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Approval, RunGoals, RunListItem, Spending};

/// A top-level view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewKind {
    /// [`RunListItem`], a line of `provost ps --json`.
    RunListItem,
    /// [`Approval`], a line of `provost approvals --json`.
    Approval,
    /// [`RunGoals`], what `provost goal show --json` prints.
    RunGoals,
    /// [`Spending`], what `provost cost --json` prints.
    Spending,
}

impl ViewKind {
    /// All views.
    pub const ALL: &'static [Self] = &[Self::RunListItem, Self::Approval, Self::RunGoals, Self::Spending];

    /// The name of its schema: the command that prints it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RunListItem => "ps",
            Self::Approval => "approvals",
            Self::RunGoals => "goal",
            Self::Spending => "cost",
        }
    }

    /// The whole command that prints it.
    #[must_use]
    pub const fn command(self) -> &'static str {
        match self {
            Self::RunListItem => "provost ps --json",
            Self::Approval => "provost approvals --json",
            Self::RunGoals => "provost goal show RUN --json",
            Self::Spending => "provost cost --json",
        }
    }

    /// The name of its type.
    #[must_use]
    pub const fn type_name(self) -> &'static str {
        match self {
            Self::RunListItem => "RunListItem",
            Self::Approval => "Approval",
            Self::RunGoals => "RunGoals",
            Self::Spending => "Spending",
        }
    }

    /// Its JSON Schema, draft 2020-12, of one printed object.
    #[must_use]
    pub fn schema(self) -> Schema {
        match self {
            Self::RunListItem => schema_of::<RunListItem>(),
            Self::Approval => schema_of::<Approval>(),
            Self::RunGoals => schema_of::<RunGoals>(),
            Self::Spending => schema_of::<Spending>(),
        }
    }

    /// Reads `value` into its type, and writes it again: the same value if it is one of this view and has no member
    /// that isn't known.
    ///
    /// # Errors
    /// When it isn't one of this view.
    pub fn read_back(self, value: &Value) -> Result<Value, serde_json::Error> {
        match self {
            Self::RunListItem => read_back::<RunListItem>(value),
            Self::Approval => read_back::<Approval>(value),
            Self::RunGoals => read_back::<RunGoals>(value),
            Self::Spending => read_back::<Spending>(value),
        }
    }
}

fn read_back<T: Serialize + DeserializeOwned>(value: &Value) -> Result<Value, serde_json::Error> {
    serde_json::to_value(serde_json::from_str::<T>(&value.to_string())?)
}

fn schema_of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}
