//! The engine from outside: scripts of events in, entries and effects out.

#[cfg(test)]
mod format;
#[cfg(test)]
mod gates;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod permissions;
#[cfg(test)]
mod permissions_laws;
#[cfg(test)]
mod turns;
#[cfg(test)]
mod world;
