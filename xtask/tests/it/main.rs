//! The house from outside.

#[cfg(test)]
mod house;
#[cfg(unix)]
#[cfg(test)]
mod kill_matrix;
