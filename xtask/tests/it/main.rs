//! The house from outside.

#[cfg(test)]
mod house;
