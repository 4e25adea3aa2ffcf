//! The words from outside.

#[cfg(test)]
mod record;
