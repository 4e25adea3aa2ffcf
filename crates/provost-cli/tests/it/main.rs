//! The program from outside: its command line, its output, its files.

#![cfg(unix)]

#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod acp;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod acp_edges;
#[cfg(test)]
mod acting;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod acts_on_runs;
#[cfg(test)]
mod agents;
#[cfg(test)]
mod approvals;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod attach;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod awake;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod awake_embedded;
#[cfg(test)]
mod checks;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod completing;
#[cfg(test)]
mod control;
#[cfg(test)]
mod control_edges;
#[cfg(test)]
mod control_kill;
#[cfg(test)]
mod control_rules;
#[cfg(test)]
mod cost;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod demo;
#[cfg(test)]
mod detached;
#[cfg(test)]
mod diff;
#[cfg(test)]
mod end_checks;
#[cfg(test)]
mod ends_told;
#[cfg(test)]
mod evening;
#[cfg(test)]
mod exec;
#[cfg(test)]
mod exec_failures;
#[cfg(test)]
mod exec_hangup;
#[cfg(test)]
mod exec_menus;
#[cfg(test)]
mod exec_reach;
#[cfg(test)]
mod exit_statuses;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod file_reach;
#[cfg(test)]
mod flows;
#[cfg(test)]
mod flows_resumed;
#[cfg(test)]
mod flows_shown;
#[cfg(test)]
mod folder_rules;
#[cfg(test)]
mod forking;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod gateway;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod gateway_provider;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod gateway_streams;
#[cfg(test)]
mod git_environment;
#[cfg(test)]
mod goal_commands;
#[cfg(test)]
mod hints;
#[cfg(test)]
mod hook_models;
#[cfg(test)]
mod hooks_agents;
#[cfg(test)]
mod hooks_beside;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod imports;
#[cfg(test)]
mod init;
#[cfg(test)]
mod interrupting;
#[cfg(test)]
mod jobs;
#[cfg(test)]
mod json_views;
#[cfg(test)]
mod judge_refused;
#[cfg(test)]
#[cfg(unix)]
#[cfg(test)]
mod keys_cut;
#[cfg(test)]
#[cfg(unix)]
#[cfg(test)]
mod keys_masked;
#[cfg(test)]
mod limits_shown;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod live_view;
#[cfg(test)]
mod long_runs;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod lost_output;
#[cfg(test)]
mod lost_store;
#[cfg(test)]
mod lost_workspace;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod mcp_login;
#[cfg(test)]
mod mcp_serve;
#[cfg(test)]
mod model_server;
#[cfg(test)]
mod models_check;
#[cfg(test)]
mod models_update;
#[cfg(test)]
mod narrow;
#[cfg(test)]
mod nothing_silent;
#[cfg(test)]
mod notify;
#[cfg(test)]
mod on_terminal;
#[cfg(test)]
mod outages_shown;
#[cfg(test)]
mod pictures;
#[cfg(test)]
mod posing;
#[cfg(test)]
mod preamble;
#[cfg(test)]
mod profile_command;
#[cfg(test)]
mod progress;
#[cfg(test)]
mod providers_said;
#[cfg(test)]
mod ps_filters;
#[cfg(test)]
mod recording;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod replay;
#[cfg(all(test, target_os = "linux"))]
#[cfg(test)]
mod requests;
#[cfg(test)]
mod restarts;
#[cfg(test)]
mod resume_settings;
#[cfg(test)]
mod resuming;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod sandbox_agents;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod sandbox_escapes;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod sandbox_later;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod sandbox_leaving;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod sandbox_meanwhile;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod sandbox_runs;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod sandbox_stage;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod sandbox_works;
#[cfg(test)]
mod scripts_agreed;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod serve_client;
#[cfg(unix)]
mod serve_commands;
#[cfg(test)]
mod serve_safety;
#[cfg(test)]
mod serve_starts;
#[cfg(test)]
mod serve_terminal;
#[cfg(test)]
mod serve_tls;
#[cfg(test)]
mod served;
#[cfg(all(test, target_os = "linux"))]
#[cfg(test)]
mod services;
#[cfg(test)]
mod settings_agents;
#[cfg(test)]
mod settings_errors;
#[cfg(test)]
mod settings_external;
#[cfg(test)]
mod settings_goal;
#[cfg(test)]
mod settings_hooks;
#[cfg(test)]
mod settings_layers;
#[cfg(test)]
mod settings_named;
#[cfg(test)]
mod settings_permissions;
#[cfg(test)]
mod shown;
#[cfg(test)]
mod skills;
#[cfg(test)]
mod stdio_client;
#[cfg(test)]
mod steps_limits;
#[cfg(test)]
mod stopped_holder;
#[cfg(test)]
mod store_commands;
#[cfg(test)]
mod support;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod time_limit;
#[cfg(test)]
mod told;
#[cfg(test)]
mod top;
#[cfg(test)]
mod transfer;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[cfg(test)]
mod tree;
#[cfg(test)]
mod tree_acting;
#[cfg(test)]
mod tree_kill;
#[cfg(test)]
mod tree_shown;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod unanswered_calls;
#[cfg(test)]
mod verified;
#[cfg(test)]
mod worked_time;
mod worker_addresses;
