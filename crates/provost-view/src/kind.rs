//! The views by name, each with its JSON Schema.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::explain::RunExplanation;
use crate::{
    Approval, CheckedSettings, CheckedStore, ConversationView, LogEntry, McpServerView, McpTestView,
    ModelList, PrunedRuns, RunChanges, RunDetails, RunGoals, RunListItem, ServiceView, Spending, StoreBackup,
};

/// A view for each type: its name, and the command that prints it.
macro_rules! views {
    ($($view:ident = $name:literal: $command:literal, $printed:literal;)*) => {
        /// A top-level view.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ViewKind {
            $(#[doc = concat!("[`", stringify!($view), "`], ", $printed, " `", $command, "`.")] $view,)*
        }

        impl ViewKind {
            /// All views.
            pub const ALL: &'static [Self] = &[$(Self::$view,)*];

            /// The name of its schema: the command that prints it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$view => $name,)* }
            }

            /// The whole command that prints it.
            #[must_use]
            pub const fn command(self) -> &'static str {
                match self { $(Self::$view => $command,)* }
            }

            /// The name of its type.
            #[must_use]
            pub const fn type_name(self) -> &'static str {
                match self { $(Self::$view => stringify!($view),)* }
            }

            /// Its JSON Schema, draft 2020-12, of one printed object.
            #[must_use]
            pub fn schema(self) -> Schema {
                match self { $(Self::$view => schema_of::<$view>(),)* }
            }

            /// Reads `value` into its type, and writes it again: the same value if it is one of this view and has no
            /// member that isn't known.
            ///
            /// # Errors
            /// When it isn't one of this view.
            pub fn read_back(self, value: &Value) -> Result<Value, serde_json::Error> {
                match self { $(Self::$view => read_back::<$view>(value),)* }
            }
        }
    };
}

views! {
    RunListItem = "ps": "provost ps --json", "a line of";
    RunDetails = "show": "provost show RUN --json", "printed by";
    LogEntry = "logs": "provost logs RUN --json", "a line of";
    ConversationView = "view": "provost logs RUN --view --json", "printed by";
    Approval = "approvals": "provost approvals --json", "a line of";
    RunGoals = "goal": "provost goal show RUN --json", "printed by";
    Spending = "cost": "provost cost --json", "printed by";
    RunChanges = "diff": "provost diff RUN --json", "printed by";
    ServiceView = "services": "provost services --json", "a line of";
    McpServerView = "mcp": "provost mcp list --json", "a line of";
    McpTestView = "mcp-test": "provost mcp test NAME --json", "printed by";
    RunExplanation = "explain": "provost explain RUN --json", "printed by";
    ModelList = "models": "provost models --json", "printed by";
    CheckedSettings = "check": "provost check --json", "printed by";
    StoreBackup = "backup": "provost backup FILE --json", "printed by";
    CheckedStore = "doctor": "provost doctor --store --json", "printed by";
    PrunedRuns = "prune": "provost prune --json", "printed by";
}

fn read_back<T: Serialize + DeserializeOwned>(value: &Value) -> Result<Value, serde_json::Error> {
    serde_json::to_value(serde_json::from_str::<T>(&value.to_string())?)
}

fn schema_of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}
