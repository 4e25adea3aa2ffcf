//! MCP servers as agents meet them: scripted ones, most of which mean harm.

#[cfg(test)]
mod calls;
#[cfg(test)]
mod harm;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod locked;
#[cfg(test)]
mod logins;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod web;
