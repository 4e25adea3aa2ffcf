//! The engine from outside: scripts of events in, entries and effects out.

mod format;
mod laws;
mod turns;
mod world;
