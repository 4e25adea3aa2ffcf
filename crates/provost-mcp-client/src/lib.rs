//! Tools of MCP servers, for Provost's agents.
//!
//! ```text
//! settings ──▶ ServerSetup ──▶ McpServers ──▶ Connection (rmcp) ──▶ a program in a box, or an address
//! pins ──────▶ McpTool, ToolSearch ──▶ the registry of a run: hooks, permissions, approval, limits
//! ```
//!
//! | file | what lives there |
//! |---|---|
//! | `setup.rs` | a server as it is configured |
//! | `definition.rs`, `schema.rs` | a tool as a server defines it, and what of that is refused |
//! | `shown.rs` | texts of servers without hidden characters, quoted |
//! | `pins.rs`, `difference.rs` | what the user has agreed to, and what is different now |
//! | `connection.rs`, `stdio.rs`, `http.rs`, `handler.rs`, `oauth/` | the protocol; with `result.rs` the only files that see `rmcp` |
//! | `servers.rs`, `live.rs` | the servers of a run: started when needed, restarted within bounds, ended with it |
//! | `result.rs` | results for models |
//! | `tool.rs`, `tool_search.rs`, `catalog.rs` | the tools that agents have |
//! | `inspect.rs` | looks at a server without a run: to test it, and to agree to it |
//!
//! Invariants:
//! - Nothing that a server says about itself grants anything: annotations are shown and never believed.
//! - A tool is called only if the server still defines it as the user agreed to.
//! - A server sees the variables of the allow list and those that its settings name, and no others.
//! - Every message, definition, list, result and wait has a named limit.
//! - A token of a login is in its file and in requests to the address that it is for, and nowhere else.
//! - No type of `rmcp` is part of the public API.

mod catalog;
mod connection;
mod definition;
mod difference;
mod handler;
mod http;
mod inspect;
mod live;
mod oauth;
mod pins;
mod result;
mod schema;
mod servers;
mod setup;
mod shown;
mod stdio;
mod tool;
mod tool_search;

pub use catalog::{Catalog, ServerTools, TOOL_SEARCH, estimated_tokens};
pub use connection::{ConnectError, Lifecycle};
pub use definition::{DEFINITION_BYTES_MAX, RefusedTool, TOOLS_MAX, ToolDefinition, tool_name};
pub use difference::{Difference, ToolChange};
pub use inspect::{Inspection, inspect};
pub use oauth::{Login, LoginError, LoginRequest, PendingLogin};
pub use pins::{PinError, Pins, PinsFile};
pub use servers::McpServers;
pub use setup::{LoginSetup, Reach, ServerSetup};
pub use shown::{revealed, without_hidden};
pub use tool_search::search_tool;
