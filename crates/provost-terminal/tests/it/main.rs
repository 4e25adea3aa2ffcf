//! Tests of the crate's public API.

#[cfg(test)]
mod agents;
#[cfg(test)]
mod cast;
#[cfg(test)]
mod completion;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod detect;
#[cfg(test)]
mod detect_laws;
#[cfg(test)]
mod held_out;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod mask;
#[cfg(test)]
mod overpainted;
#[cfg(test)]
mod profile;
#[cfg(test)]
mod query;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod recording;
#[cfg(test)]
mod score;
#[cfg(test)]
mod screen;
#[cfg(test)]
mod signal;
#[cfg(test)]
mod stream;
#[cfg(test)]
mod stream_law;
#[cfg(test)]
mod subject;
