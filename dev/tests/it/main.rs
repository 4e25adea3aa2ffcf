//! The kill matrix in its short form.

#[cfg(unix)]
#[cfg(test)]
mod kill_matrix;
