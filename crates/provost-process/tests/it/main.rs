//! Real processes, seen from outside: what `run` promises about endings, output, descendants and sudden death.

#![cfg(target_os = "linux")]

#[cfg(test)]
mod descendants;
#[cfg(test)]
mod ending;
#[cfg(test)]
mod helper;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod output;
#[cfg(test)]
mod start;
#[cfg(test)]
mod support;
