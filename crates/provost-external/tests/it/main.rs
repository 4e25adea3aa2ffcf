//! Tests of the crate's public API.

#[cfg(target_os = "linux")]
#[cfg(test)]
mod attached;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod channels;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod evidence;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod metered;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod moments;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod provider;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod stage;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod structured;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod structured_stage;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod turns;
