//! The gateway from outside: real HTTP on loopback, a provider that answers from a script, and a real log.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod budgets;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod unanswered;
