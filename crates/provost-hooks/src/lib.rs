//! Hooks that are programs: the contract of existing scripts.
//!
//! A hook program is asked in one form (JSON with Claude Code's names, and a few of Provost's beside them) and read
//! by one of two contracts. [`ProgramHooks`] asks commands and servers; [`import_claude`] reads the hooks that a
//! project has in its `.claude` folder.
//!
//! | file | what lives there |
//! |---|---|
//! | `programs.rs` | the port's implementation: wants, asks, reads |
//! | `moment.rs` | events by their names |
//! | `matcher.rs`, `condition.rs` | whether a hook wants to be asked |
//! | `tool.rs`, `tool/` | tools, arguments and results under the names that scripts know |
//! | `question.rs` | the JSON that a hook is given |
//! | `command.rs`, `http.rs` | asking a command, asking a server |
//! | `reply.rs` | the JSON that a hook answers with |
//! | `meaning.rs` | what a reply or a refusal comes to at a moment |
//! | `contract.rs` | what an answer means: exit statuses, output, replies |
//! | `spill.rs` | texts that are too long |
//! | `import.rs`, `import/` | hooks of a `.claude/settings.json` |
//!
//! Invariants:
//! - Nothing a hook says changes a call's arguments, its result, or a permission.
//! - What can't be taken of an answer, or can't be run of a settings file, is told in words.
//! - Nothing here reads the environment: what a command sees comes through `provost-process`, what headers name is
//!   handed in. (The HTTP client finds its proxies there, as every such client does.)

mod command;
mod condition;
mod contract;
mod http;
mod import;
mod matcher;
mod meaning;
mod moment;
mod programs;
mod question;
mod reply;
mod spill;
mod tool;

pub use import::{Imported, Skipped, import_claude};
pub use matcher::{check_matcher, matches_nothing};
pub use moment::{UnknownEvent, moment_of};
pub use programs::{ProgramHooks, ProgramHooksOptions};
