//! The backend on a real Restate server on loopback.

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod deadlines;
#[cfg(test)]
mod follow;
#[cfg(test)]
mod jobs;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod large;
#[cfg(test)]
mod same_log;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod support;
