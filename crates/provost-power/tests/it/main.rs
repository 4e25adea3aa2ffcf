//! The requests to the system, as seen by a logind that replaces the machine's.

#![cfg(target_os = "linux")]

#[cfg(test)]
mod child;
#[cfg(test)]
mod keeping;
#[cfg(test)]
mod logind;
