//! What the system is asked for, seen from a logind that stands in for the machine's.

#![cfg(target_os = "linux")]

#[cfg(test)]
mod child;
#[cfg(test)]
mod keeping;
#[cfg(test)]
mod logind;
