//! The server over a store of its own, from outside.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod page;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod stage;
