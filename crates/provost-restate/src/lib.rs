//! Provost's backend on a Restate cluster.
//!
//! The engine keeps one object per run. It serialises what is asked of that object, so any worker can decide; it keeps
//! the run's logs, repeats what is interrupted, and hands each effect to the worker that holds the run. A run is held
//! as on the embedded backend, by one process at a time: the engine knows whether that process lives, and the epoch of
//! the hold fences off one that was wrongly taken for gone.
//!
//! | | on Restate |
//! |---|---|
//! | post | an exclusive handler of the run's object |
//! | effect | an invocation of the holder's service: one step, then a post |
//! | timer | a delayed invocation of that service |
//! | stop | a message to the holder; the stored invocation is killed if the holder is gone or hangs |
//! | logs | pages in the blob store, the last entries in the object's state |
//! | list | an index object, and the objects of the runs |

mod addresses;
mod api;
mod backend;
mod blobs;
mod deciders;
mod effects;
mod endpoint;
mod engine;
mod feeds;
mod lease;
mod named;
mod pages;
mod payload;
mod run_object;
mod shared_objects;
mod state;
mod step;
mod wire;

pub use backend::RestateBackend;
pub use endpoint::{Listening, RunningWorker, WorkerEndpoint, shared_listener};
pub use engine::{BlobPlace, Engine};
