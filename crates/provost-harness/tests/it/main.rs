//! The harness from outside: as in an embedding program, with a real backend, real models, real shells.

#[cfg(test)]
mod agents_hooks;
#[cfg(test)]
mod agents_observed;
#[cfg(test)]
mod agents_stage;
#[cfg(test)]
mod control;
#[cfg(test)]
mod control_faults;
#[cfg(test)]
mod control_observers;
#[cfg(test)]
mod control_stage;
#[cfg(test)]
mod eight_hours;
#[cfg(test)]
mod embedding;
#[cfg(test)]
mod evidence;
#[cfg(test)]
mod evidence_stage;
#[cfg(test)]
mod external;
#[cfg(test)]
mod fault_matrix;
#[cfg(test)]
mod final_summary;
#[cfg(test)]
mod git_deaf;
#[cfg(test)]
mod goals;
#[cfg(test)]
mod goals_agents;
#[cfg(test)]
mod goals_late;
#[cfg(test)]
mod goals_observed;
#[cfg(test)]
mod goals_provider;
#[cfg(test)]
mod goals_stage;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod hooks_asked;
#[cfg(test)]
mod injection;
#[cfg(test)]
mod injection_texts;
#[cfg(test)]
mod long_counter;
#[cfg(test)]
mod long_desk;
#[cfg(test)]
mod long_histories;
#[cfg(test)]
mod long_job;
#[cfg(test)]
mod long_laws;
#[cfg(test)]
mod long_provider;
#[cfg(test)]
mod long_runs;
#[cfg(test)]
mod long_stage;
#[cfg(test)]
mod long_summaries;
#[cfg(test)]
mod long_texts;
#[cfg(test)]
mod long_trial;
#[cfg(test)]
mod model_panics;
#[cfg(test)]
mod observers;
#[cfg(test)]
mod observers_events;
#[cfg(test)]
mod observers_harness;
#[cfg(test)]
mod observers_order;
#[cfg(test)]
mod observers_order_script;
#[cfg(test)]
mod observers_shipped;
#[cfg(test)]
mod pictures;
#[cfg(test)]
mod provider_faults;
#[cfg(test)]
mod recall;
#[cfg(test)]
mod recall_stage;
#[cfg(test)]
mod remote_worktree;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod run_tools;
#[cfg(test)]
mod services;
#[cfg(test)]
mod shell_stop_hook;
#[cfg(test)]
mod supervisor;
#[cfg(test)]
mod tree;
#[cfg(test)]
mod tree_laws;
#[cfg(test)]
mod tree_preempted;
#[cfg(test)]
mod tree_script;
#[cfg(test)]
mod tree_stage;
#[cfg(test)]
mod verdict_law;
#[cfg(test)]
mod verdicts;
#[cfg(test)]
mod worktree;
