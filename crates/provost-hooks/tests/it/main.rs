//! Hook programs through their port: real shells, real servers, real settings files.

#![cfg(unix)]

#[cfg(test)]
mod agents;
#[cfg(test)]
mod background;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod choosing;
#[cfg(test)]
mod claude;
#[cfg(test)]
mod faces;
#[cfg(test)]
mod http;
#[cfg(test)]
mod import;
#[cfg(test)]
mod own;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod transcripts;
#[cfg(test)]
mod traps;
#[cfg(test)]
mod whereabouts;
