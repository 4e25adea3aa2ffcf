//! Tests of the workspace: its layers and its packages.

#[cfg(test)]
mod layers;
#[cfg(test)]
mod packages;
