//! Events from outside.

#[cfg(test)]
mod chain;
#[cfg(test)]
mod record;
