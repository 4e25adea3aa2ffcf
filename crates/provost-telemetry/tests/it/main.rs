//! Tests of the data sent to collectors.

#[cfg(test)]
mod collector;
#[cfg(test)]
mod content;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod goals;
#[cfg(test)]
mod log;
#[cfg(test)]
mod shown;
#[cfg(test)]
mod traces;
