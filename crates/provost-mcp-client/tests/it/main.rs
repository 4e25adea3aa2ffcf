//! MCP servers as agents meet them: scripted ones, most of which mean harm.

mod calls;
mod harm;
mod lists;
mod questions;
mod stage;
mod web;
