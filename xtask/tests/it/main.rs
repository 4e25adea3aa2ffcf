//! Tests of the workspace: its layers and the kill matrix.

#[cfg(unix)]
#[cfg(test)]
mod kill_matrix;
#[cfg(test)]
mod layers;
