//! Tests of the embedded backend, through its public API.

#[cfg(test)]
mod backends;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod deadly;
#[cfg(test)]
mod failing;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod forks;
#[cfg(test)]
mod kept;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod mailbox;
#[cfg(test)]
mod model;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod speed;
#[cfg(test)]
mod stores;
#[cfg(test)]
mod support;
#[cfg(test)]
mod transfer;
