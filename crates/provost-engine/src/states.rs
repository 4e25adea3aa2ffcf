//! The states of the two kinds of actors, and what each event leads to. Tests compare the tables with the code.

#[doc = include_str!("states/session.md")]
pub mod session {}

#[doc = include_str!("states/run.md")]
pub mod run {}
