//! Drives other people's agents: gives their programs words, hands on what they ask, answers them, and ends them. At a
//! terminal, which any program has, or by the structured stream of those that have one.
//!
//! | file | what lives there |
//! |---|---|
//! | `drivers.rs` | the port's implementation: one driver a session, from its first exchange until it is closed |

mod drivers;

pub use drivers::{Drivers, DriversOptions};
