//! The program from outside: its command line in, what it prints and leaves behind out.

#![cfg(unix)]

#[cfg(test)]
mod commands;
#[cfg(test)]
mod embedding;
#[cfg(test)]
mod exit_statuses;
#[cfg(test)]
mod interrupting;
#[cfg(test)]
mod resuming;
#[cfg(test)]
mod settings_errors;
#[cfg(test)]
mod settings_layers;
#[cfg(test)]
mod shown;
#[cfg(test)]
mod support;
#[cfg(test)]
mod transfer;
