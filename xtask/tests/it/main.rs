//! The house from outside.

#[cfg(test)]
mod house;
#[cfg(all(test, unix))]
mod kill_matrix;
