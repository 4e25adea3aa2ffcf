//! Models seen from outside: scripts, and providers spoken to over a loopback server with their real wire format.

#[cfg(test)]
mod anthropic_answers;
#[cfg(test)]
mod anthropic_connection;
#[cfg(test)]
mod anthropic_faults;
#[cfg(test)]
mod anthropic_refusals;
#[cfg(test)]
mod anthropic_request;
#[cfg(test)]
mod resolving;
#[cfg(test)]
mod script_errors;
#[cfg(test)]
mod script_expectations;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod server;
#[cfg(test)]
mod support;
