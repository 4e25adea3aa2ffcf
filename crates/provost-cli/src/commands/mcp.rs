//! `provost mcp`: the Model Context Protocol.

pub(super) mod serve;
