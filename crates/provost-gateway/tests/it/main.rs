//! The gateway from outside: real HTTP on loopback, a provider that answers from a script, and a real log.

mod answers;
mod budgets;
mod crowd;
mod faults;
mod refusals;
mod stage;
