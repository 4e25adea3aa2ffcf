//! The server over a store of its own, from outside.

mod answers;
mod page;
mod requests;
mod stage;
