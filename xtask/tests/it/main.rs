//! Tests of the workspace: its layers and the kill matrix.

#[cfg(test)]
mod house;
#[cfg(unix)]
#[cfg(test)]
mod kill_matrix;
