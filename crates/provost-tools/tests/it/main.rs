//! The tools through their port, in real folders, with real processes.

#![cfg(unix)]

#[cfg(test)]
mod apply_patch;
#[cfg(test)]
mod call_forms;
#[cfg(test)]
mod containment;
#[cfg(test)]
mod edit_file;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod jobs;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod list_dir;
#[cfg(test)]
mod near_edits;
#[cfg(test)]
mod pictures;
#[cfg(test)]
mod reach;
#[cfg(test)]
mod read_file;
#[cfg(test)]
mod search;
#[cfg(test)]
mod shell;
#[cfg(test)]
mod shell_cwd;
#[cfg(test)]
mod specs;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod update_plan;
#[cfg(test)]
mod write_file;
