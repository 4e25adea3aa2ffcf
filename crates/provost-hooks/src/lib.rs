//! Hooks that are programs: the contract of existing scripts.
//!
//! A hook program gets one form of question (JSON with Claude Code's names, and some of Provost's) and its answer
//! is read by one of three contracts. [`ProgramHooks`] asks commands and servers, and words what a harness asks
//! models; [`import_hooks`] imports the hooks of a project's `.claude` folder.
//!
//! | file | content |
//! |---|---|
//! | `programs.rs` | the port's implementation: selects hooks, asks them, reads their answers |
//! | `point.rs` | events by their names |
//! | `matcher.rs`, `condition.rs` | which questions a hook is asked |
//! | `tool.rs`, `tool/` | tools, arguments and results under the names that scripts know |
//! | `face.rs`, `face/` | calls in the shapes that scripts know, where they have others |
//! | `question.rs` | a hook's JSON input |
//! | `command.rs`, `whereabouts.rs`, `http.rs`, `model.rs` | asking a command, where it runs, asking a server, a model |
//! | `reply.rs` | a hook's JSON answer |
//! | `meaning.rs` | the decision of a reply or a refusal at a hook point |
//! | `contract.rs` | the contracts: exit statuses, output, replies |
//! | `shell.rs` | the shell of a contract's commands |
//! | `spill.rs` | texts that are too long |
//! | `ids.rs` | sessions as scripts name them |
//! | `import.rs`, `import/` | hooks of a `.claude/settings.json` |
//!
//! Invariants:
//! - No hook changes a call's arguments, its result, or a permission.
//! - Ignored parts of an answer, and parts of a settings file that can't be run, are reported in words.
//! - This crate doesn't read the environment: a command's environment comes through `provost-process`, and the
//!   values for headers are parameters. (The HTTP client reads its proxies there, as every such client does.)

mod background;
mod command;
mod condition;
mod contract;
mod face;
mod http;
mod ids;
mod import;
mod matcher;
mod meaning;
mod model;
mod point;
mod programs;
mod question;
mod reply;
mod shell;
mod spill;
mod tool;
mod transcript;
mod whereabouts;

pub use import::{HookFile, Imported, ImportedRule, RuleList, Skipped, import_hooks};
pub use matcher::{check_matcher, matches_any, matches_nothing};
pub use point::{UnknownEvent, hook_point_of};
pub use programs::{ProgramHooks, ProgramHooksOptions};
pub use shell::lacks_bash;
