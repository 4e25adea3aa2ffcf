//! Real processes, from outside: the guarantees of `run` and of terminals about endings, output, descendants and
//! sudden death.

#![cfg(target_os = "linux")]

#[cfg(test)]
mod descendants;
#[cfg(test)]
mod ending;
#[cfg(test)]
mod helper;
#[cfg(test)]
mod hostile;
mod identity;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod launch;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod output;
#[cfg(test)]
mod piped;
#[cfg(test)]
mod pty;
#[cfg(test)]
mod pty_ending;
#[cfg(test)]
mod pty_input;
#[cfg(test)]
mod pty_killed;
#[cfg(test)]
mod pty_output;
#[cfg(test)]
mod pty_start;
#[cfg(test)]
mod pty_watch;
#[cfg(test)]
mod pty_work;
#[cfg(test)]
mod real_program;
#[cfg(test)]
mod real_programs;
#[cfg(test)]
mod start;
#[cfg(test)]
mod support;
