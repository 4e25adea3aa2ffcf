//! What the workspace's own commands share.

pub mod shell;
