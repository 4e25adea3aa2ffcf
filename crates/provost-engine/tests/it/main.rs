//! The engine from outside: scripts of events in, entries and effects out.

#[cfg(test)]
mod asked_again;
#[cfg(test)]
mod asking_tools;
#[cfg(test)]
mod call_forms;
#[cfg(test)]
mod change;
#[cfg(test)]
mod clocks;
#[cfg(test)]
mod external;

#[cfg(test)]
mod external_calls;
#[cfg(test)]
mod final_summary;
#[cfg(test)]
mod flow;
#[cfg(test)]
mod forks;
#[cfg(test)]
mod format;
#[cfg(test)]
mod gates;
#[cfg(test)]
mod goal_laws;
#[cfg(test)]
mod goals;
#[cfg(test)]
mod goals_budget;
#[cfg(test)]
mod goals_failures;
#[cfg(test)]
mod goals_interval;
#[cfg(test)]
mod goals_judges;
#[cfg(test)]
mod goals_late;
#[cfg(test)]
mod goals_limit;
#[cfg(test)]
mod goals_progress;
#[cfg(test)]
mod goals_recover;
#[cfg(test)]
mod goals_stop;
#[cfg(test)]
mod goals_tree;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod leaving;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod limits_bind;
#[cfg(test)]
mod log_laws;
#[cfg(test)]
mod long;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod permissions;
#[cfg(test)]
mod permissions_attempts;
#[cfg(test)]
mod permissions_everyday;
#[cfg(test)]
mod permissions_folders;
#[cfg(test)]
mod permissions_laws;
#[cfg(test)]
mod permissions_reach;
#[cfg(test)]
mod permissions_writes;
#[cfg(test)]
mod replaced_calls;
#[cfg(test)]
mod restart;
#[cfg(test)]
mod retry;
#[cfg(test)]
mod scripts_named;
#[cfg(test)]
mod segments;
#[cfg(test)]
mod services;
#[cfg(test)]
mod spawn;
#[cfg(test)]
mod states;
#[cfg(test)]
mod steps;
#[cfg(test)]
mod time;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod tree;
#[cfg(test)]
mod tree_laws;
#[cfg(test)]
mod tree_world;
#[cfg(test)]
mod turns;
#[cfg(test)]
mod view;
#[cfg(test)]
mod window;
#[cfg(test)]
mod window_laws;
#[cfg(test)]
mod workspace;
#[cfg(test)]
mod world;
