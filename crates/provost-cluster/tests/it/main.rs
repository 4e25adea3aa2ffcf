//! Clusters whose processes are real: stand-ins for nodes and workers that answer health checks, and Restate's server where it
//! is installed.
#![cfg(target_os = "linux")]

#[cfg(test)]
mod engine;
#[cfg(test)]
mod life;
#[cfg(test)]
mod stage;
